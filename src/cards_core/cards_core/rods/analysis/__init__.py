"""Analyses of rod robots: where the plate can be, and which wrench acts on it."""
