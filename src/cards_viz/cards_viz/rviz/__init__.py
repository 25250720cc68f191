"""Muscles in RViz."""
