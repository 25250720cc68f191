"""Length of a string pulled tight over a surface by relaxation: knows nothing of geodesics.

A chain of many points between two fixed ends: each moves towards the middle of its neighbours and,
where it got inside, out along the normal (projected successive over-relaxation). What remains is
that chords are shorter than arcs, by (h kappa)^2/24 of the arc with links of length h.
"""

import numpy as np

from cards_core.robot.elements import Cylinder, Ellipsoid, Sphere, Torus


class ClosedTorus(Torus):
    """Convex hull of a torus."""


def _level(shape, x):
    """Return a function that is negative inside, and its gradient."""
    match shape:
        case Sphere():
            return (x**2).sum(-1) - shape.radius**2, 2 * x
        case Ellipsoid():
            return ((x / shape.radii) ** 2).sum(-1) - 1, 2 * x / shape.radii**2
        case Cylinder():
            flat = x * [1.0, 1.0, 0.0]
            return (flat**2).sum(-1) - shape.radius**2, 2 * flat
        case ClosedTorus():
            flat = x * [1.0, 1.0, 0.0]
            distance = np.maximum(np.linalg.norm(flat, axis=-1, keepdims=True), 1e-12)
            out = x - np.minimum(shape.radius / distance, 1.0) * flat
            return (out**2).sum(-1) - shape.tube_radius**2, 2 * out
        case Torus():
            flat = x * [1.0, 1.0, 0.0]
            distance = np.linalg.norm(flat, axis=-1, keepdims=True)
            out = x - shape.radius * flat / distance
            return (out**2).sum(-1) - shape.tube_radius**2, 2 * out
        case _:
            raise AssertionError(shape)


def _outside(shape, x):
    for _ in range(3):
        value, slope = _level(shape, x)
        step = np.minimum(value, 0.0) / (slope**2).sum(-1)
        x = x - step[:, None] * slope
    return x


def taut_length(shape, start, end, side, links=400):
    """Return the length of the string, [m]; arguments as of `taut_string`."""
    x = taut_string(shape, start, end, side, links)
    return float(np.linalg.norm(np.diff(x, axis=0), axis=1).sum())


def taut_string(shape, start, end, side, links=400):
    """Return the points of the string, shape (links + 1, 3), [m].

    Args:
        shape: The surface.
        start: First end in its axes, shape (3,).
        end: Second end.
        side: Where the middle of the first guess is off the straight line, shape (3,).
        links: Even number of links.
    """
    t = np.linspace(0.0, 1.0, links + 1)[:, None]
    x = start + t * (end - start) + np.sin(np.pi * t) * np.asarray(side, float)
    relax = 2.0 / (1.0 + np.sin(np.pi / links))
    odd, even = np.arange(1, links, 2), np.arange(2, links, 2)
    before = np.inf
    for sweep in range(20 * links):
        for part in (odd, even):
            middle = 0.5 * (x[part - 1] + x[part + 1])
            x[part] = _outside(shape, x[part] + relax * (middle - x[part]))
        if sweep % links == links - 1:
            length = np.linalg.norm(np.diff(x, axis=0), axis=1).sum()
            if abs(length - before) < 1e-10:
                break
            before = length
    return x
