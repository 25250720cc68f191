"""Checks of the firmware's own C code on lines with transmission errors."""
