"""Rods and rod robots in motion: plates on rods without mass, and rods with mass."""
