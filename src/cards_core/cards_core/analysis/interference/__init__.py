"""Interference: how close muscles come to each other and to links."""

from cards_core.analysis.interference.condition import Interference
from cards_core.analysis.interference.distances import (
    Body,
    bodies_of,
    body_distances,
    piece_distances,
)
from cards_core.analysis.interference.pairs import InterferenceOptions

__all__ = [
    "Body",
    "Interference",
    "InterferenceOptions",
    "bodies_of",
    "body_distances",
    "piece_distances",
]
