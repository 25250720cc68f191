"""Seeing runs: browser view, RViz markers, run folders with plots and recordings."""
