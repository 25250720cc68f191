"""Vectors on the command line, e.g. ``--q 0.3,-0.5``."""

from __future__ import annotations

import numpy as np

from cards_bringup.option_types import number_in
from cards_core.errors import ShapeError
from cards_core.typing import Array


def vector(text: str | None, name: str) -> Array | None:
    """Read ``0.3,-0.5``; blanks may separate too.

    Args:
        text: Value of an option; None if it was not given.
        name: Name of the option, without dashes.

    Raises:
        ShapeError: Not finite numbers.
    """
    if text is None:
        return None
    place = f"--{name} '{text}':"
    found = [number_in(part, place, ShapeError) for part in text.replace(",", " ").split()]
    if not found:
        raise ShapeError(f"{place} no numbers (expected: e.g. 0.3,-0.5)")
    return np.array(found)
