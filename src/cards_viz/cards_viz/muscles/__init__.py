"""Robots with muscles: what there is to draw of them, and their page."""
