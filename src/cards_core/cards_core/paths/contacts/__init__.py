"""Cables that touch what is in their way."""
