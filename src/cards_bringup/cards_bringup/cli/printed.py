"""Numbers for people to read: arrays without -0, and a dash where there is no number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


def array_text(values: npt.ArrayLike, decimals: int = 6) -> str:
    """Return an array as text, rounded to some decimals.

    Args:
        values: Numbers, of any shape.
        decimals: Digits after the point.
    """
    rounded = np.round(np.asarray(values, dtype=float), decimals) + 0.0  # -0 + 0 is 0
    return np.array2string(rounded, precision=decimals, suppress_small=True, max_line_width=120)


def number_text(value: Any, width: int = 14) -> str:
    """Return a number in a column, with a dash in place of NaN.

    Args:
        value: The number.
        width: Of the column.
    """
    return f"{'-':>{width}}" if math.isnan(value) else f"{value + 0.0:{width}.8g}"
