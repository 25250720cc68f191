"""Paths of muscles over links and wrap surfaces: lengths and their derivatives."""
