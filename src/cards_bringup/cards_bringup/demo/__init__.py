"""Demonstration runs: simulator, controller, view, and a folder with the results."""
