"""URDF: robots written for RViz and URDF tools, and read with muscles of a file of their own."""
