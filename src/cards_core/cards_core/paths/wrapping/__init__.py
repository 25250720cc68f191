"""Shortest paths over wrap surfaces: closed forms, geodesics, several surfaces in a row."""
