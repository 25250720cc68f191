"""Continuum parallel robots: their description, their reader, their geometrico-static solver."""
