"""Conditions that a point of the workspace meets or not."""
