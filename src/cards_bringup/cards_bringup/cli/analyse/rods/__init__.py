"""Analyses of robots with elastic rods."""
