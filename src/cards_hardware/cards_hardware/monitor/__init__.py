"""Snapshots of a real robot for display, from its boards or from topics."""
