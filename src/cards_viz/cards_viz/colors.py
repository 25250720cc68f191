"""Colours of tensions (one perceptual map for browser, RViz and plots) and of lines in plots.

The map is the lower 86 % of matplotlib's *plasma* (CC0): its lightness grows monotonically, so it
survives grey print and colour-blind eyes, and its bright yellow end, which white paper swallows,
is cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.robot.model import Robot
from cards_core.typing import Array

_ANCHORS = np.array(
    [
        [13, 8, 135], [46, 5, 149], [72, 3, 159], [96, 1, 166],
        [117, 1, 168], [139, 10, 165], [160, 26, 156], [177, 42, 144],
        [193, 59, 130], [207, 76, 116], [219, 92, 104], [231, 110, 91],
        [240, 128, 78], [247, 147, 66], [252, 168, 53], [254, 190, 42],
    ],
    dtype=float,
)  # fmt: skip

NOT_A_NUMBER = (128, 128, 128)
"""Colour of a tension that is not finite."""


def colors(fraction: Array) -> npt.NDArray[np.uint8]:
    """Return RGB in 0..255, shape (..., 3), of values in 0..1; values outside are clamped."""
    values = np.asarray(fraction, dtype=float)
    finite = np.isfinite(values)
    position = np.clip(np.where(finite, values, 0.0), 0.0, 1.0) * (len(_ANCHORS) - 1)
    grid = np.arange(len(_ANCHORS))
    rgb = np.stack([np.interp(position, grid, _ANCHORS[:, k]) for k in range(3)], axis=-1)
    rgb[~finite] = NOT_A_NUMBER
    return np.asarray(np.rint(rgb), dtype=np.uint8)


def linear_light(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return sRGB colours, 0..255, as linear light, 0..255, as renderers take vertex colours."""
    c = np.asarray(rgb) / 255.0
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return np.rint(255.0 * linear).astype(np.uint8)


def css(color: npt.NDArray[np.uint8] | tuple[int, ...]) -> str:
    """Return ``#rrggbb`` of an RGB colour in 0..255."""
    return "#{:02x}{:02x}{:02x}".format(*(int(c) for c in color))


def css_gradient() -> str:
    """Return the map from left to right as a CSS ``linear-gradient``."""
    return f"linear-gradient(to right, {', '.join(css(row) for row in _ANCHORS.astype(int))})"


def nice_ceiling(value: float) -> float:
    """Return the smallest of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten >= ``value``."""
    if not math.isfinite(value) or value <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):
        if factor * power >= value * (1.0 - 1e-12):
            return factor * power
    raise AssertionError("unreachable: ten times the power exceeds the value")


@dataclass
class TensionScale:
    """Range of tensions that the colours span, [N]; grows with what it sees, never shrinks.

    A robot's limits are often far above what a motion needs (thousands of newtons against a
    hundred), so the range follows the tensions themselves and ends at a round number.

    Attributes:
        low, high: Ends of the scale, [N].
        limit: `high` never exceeds this, [N].
    """

    low: float = 0.0
    high: float = 1.0
    limit: float = math.inf

    def include(self, tensions: Array) -> bool:
        """Widen the scale so that it holds ``tensions``, [N]; return True if it changed."""
        finite = np.asarray(tensions)[np.isfinite(tensions)]
        if not finite.size or finite.max() <= self.high:
            return False
        high = min(nice_ceiling(float(finite.max())), self.limit)
        changed = high > self.high
        self.high = max(high, self.high)
        return changed

    def fraction(self, tensions: Array) -> Array:
        """Return the position of ``tensions`` [N] on the scale, 0..1 within it."""
        return (np.asarray(tensions, dtype=float) - self.low) / max(self.high - self.low, 1e-12)

    def colors(self, tensions: Array) -> npt.NDArray[np.uint8]:
        """Return RGB in 0..255, shape (m, 3), of ``tensions``, shape (m,), [N]."""
        return colors(self.fraction(tensions))


def first_scale(robot: Robot) -> TensionScale:
    """Return the colour scale to use until the first tensions arrive."""
    lower = max((muscle.tension_min for muscle in robot.muscles), default=0.0)
    upper = max((muscle.tension_max for muscle in robot.muscles), default=1.0)
    high = nice_ceiling(max(4.0 * lower, 1.0))
    return TensionScale(0.0, min(high, upper) if upper > 0.0 else high, upper)


DESIRED = "#9a9a9a"
ACTUAL = "#1f5fa8"
ERROR = "#c23b4b"

LINE_COLORS = (
    "#1f5fa8", "#e07b1a", "#2d8f5a", "#c23b4b", "#7d57b5", "#7a5230", "#d1639f", "#5b6770",
    "#a3a51f", "#22a3b5", "#0b2f55", "#f2a9a0", "#8fcf9f", "#b9a4e3", "#e0c35c", "#3d3d3d",
)  # fmt: skip
"""Line colours that eleven muscles can be told apart by; then they repeat."""
