"""Measurements behind ``./cards bench``. No test judges the times."""
