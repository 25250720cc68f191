"""Experiments of papers: published results beside ours, behind ``./cards reproduce``."""
