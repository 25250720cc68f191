"""Values as JSON holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def json_value(value: Any) -> Any:
    """Return a value that JSON can hold: null for NaN and infinity, text for other objects.

    Args:
        value: Numbers and arrays of NumPy and Python, and mappings, lists and tuples of them.
    """
    match value:
        case float() | np.floating():
            return float(value) if math.isfinite(value) else None
        case bool() | np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case None | str():
            return value
        case np.ndarray():
            return json_value(value.tolist())
        case Mapping():
            return {str(key): json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [json_value(item) for item in value]
        case _:
            return str(value)
