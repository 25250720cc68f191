"""Robots become native code: a command, and a node that does it on demand and tells the others."""
