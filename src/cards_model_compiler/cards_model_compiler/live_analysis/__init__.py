"""Analyses of a running robot: conditions, stiffness, joint wrenches, a pose from lengths."""
