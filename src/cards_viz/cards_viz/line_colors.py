"""Colours of lines, shared by the plots of a run and the live plots."""

DESIRED = "#9a9a9a"
ACTUAL = "#1f5fa8"
ERROR = "#c23b4b"

LINE_COLORS = (
    "#1f5fa8", "#e07b1a", "#2d8f5a", "#c23b4b", "#7d57b5", "#7a5230", "#d1639f", "#5b6770",
    "#a3a51f", "#22a3b5", "#0b2f55", "#f2a9a0", "#8fcf9f", "#b9a4e3", "#e0c35c", "#3d3d3d",
)  # fmt: skip
"""Line colours that eleven muscles can be told apart by; then they repeat."""
