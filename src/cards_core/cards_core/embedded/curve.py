"""The curve that the example of an exported controller tracks: a flower."""

from __future__ import annotations

import numpy as np

from cards_core.control.base import QpController
from cards_core.trajectories.curves import Flower
from cards_core.typing import Array

SIZE = 0.1
"""Length of a petal of a curve about home, [rad] of joints; at most a quarter of their ranges."""

REACH = 0.02
"""Length of a petal about home in an operational space, [m]."""

DURATION = 10.0
"""Of a curve about home, [s]."""


def curve_at_home(controller: QpController) -> Flower:
    """Return a flower about the place at home.

    In joint space it is drawn by the first two coordinates (both by the only one), in an
    operational space by the first and the last axis of the task.

    Args:
        controller: Whose reference it is to be.
    """
    tree = controller.dynamics.tree
    home = np.clip(tree.home, tree.lower, tree.upper)
    size = SIZE
    if controller.space == "joint":
        span = np.minimum(tree.upper - tree.lower, 4.0 * SIZE)
        size = min(SIZE, 0.25 * float(span[:2].min()))
        home = np.clip(home, tree.lower + 0.5 * span, tree.upper - 0.5 * span)
    else:
        size = REACH
    centre: Array = controller.place(home, np.zeros(tree.nv))
    count = centre.size
    u, v = np.zeros(max(count, 2)), np.zeros(max(count, 2))
    u[0], v[-1 if controller.space == "operational" else 1] = 1.0, 1.0
    padded = np.zeros(max(count, 2))
    padded[:count] = centre
    return Flower(padded, size, DURATION, axes=(u, v))


def curve_text(curve: Flower, count: int, unit: str, speed: float) -> str:
    """Return the header with the numbers of a curve.

    Args:
        curve: Its first coordinates are those of the task.
        count: Number of coordinates of the task.
        unit: Of lengths of the curve, [m] or [rad].
        speed: Largest on the way to its beginning, per second.
    """
    text = "/* A rose curve; `main.c` has its equation. */\n"
    text += "#ifndef CARDS_CURVE_H\n#define CARDS_CURVE_H\n\n"
    defined = {
        "AMPLITUDE": curve.amplitude,
        "K": float(curve.k),
        "START": curve.start_angle,
        "SWEEP": curve.sweep,
        "ANGLE": curve.turn,
        "DURATION": curve.duration,
        "SPEED": speed,
    }
    for name, value in defined.items():
        text += f"#define CURVE_{name} {float(value)!r}\n"
    text += f'#define CURVE_UNIT "{unit}"\n'
    for name, values in (("centre", curve.centre), ("u", curve.u), ("v", curve.v)):
        numbers = ", ".join(repr(float(value)) for value in values[:count])
        text += f"static const double curve_{name}[] = {{{numbers}}};\n"
    return text + "\n#endif\n"
