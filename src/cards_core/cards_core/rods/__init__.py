"""Cosserat rods: single rods, and parallel robots made of them."""
