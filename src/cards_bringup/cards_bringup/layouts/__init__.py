"""Layouts for Foxglove and PlotJuggler: what there is to see of a robot, and their files."""
