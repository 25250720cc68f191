"""Static plots of runs and analyses."""
