"""Analyses of robots: kinematics, tension distribution, stiffness, workspaces."""
