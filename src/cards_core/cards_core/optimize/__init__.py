"""Quadratic programs and programs of goals with strict priorities."""
