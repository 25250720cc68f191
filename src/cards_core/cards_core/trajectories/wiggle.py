"""A small motion around home that every robot can be asked for, without a trajectory file.

All coordinates that are an angle or a length go from home to one side, to the other and back, at
rest at every knot, by quintics (`cards_core.trajectories.splines.quintic_spline`):

    t / T      0        1             3               4
    q          home     home + a      home - b        home

a and b are `ANGLE` or `LENGTH`, less where many joints move, and at most half of the room to the
joint limit on that side. Ball joints stay at home.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cards_core.robot.model import Tree
from cards_core.trajectories.base import Reference, Sample
from cards_core.trajectories.splines import quintic_spline
from cards_core.typing import Array

WIGGLE = "wiggle"
"""Name of the reference. A trajectory file may have one of this name, which is taken instead."""

ANGLE = 0.05
"""Maximum way of a joint to one side, [rad]."""

LENGTH = 0.02
"""Likewise, [m]."""

ANGLE_OF_ALL = 0.3
"""Maximum sum of the ways of all joints, [rad]: the tip of a chain of many must not go far."""

KNOTS = (0.0, 1.0, 3.0, 4.0)
"""Times of the knots, [s]."""


class Wiggle(Reference):
    """The motion; see the module.

    Args:
        tree: Gives home, limits, and which coordinates are lengths. A home beyond a limit stays
            where it is on that side.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.nq, KNOTS[-1], KNOTS)
        up, down = _ways(tree)
        zero = np.zeros(tree.nv)
        self._home = tree.home.copy()
        self._entries, self._rates = _scalar_entries(tree)
        self._nv = tree.nv
        self._motion = quintic_spline(KNOTS, np.array([zero, up, -down, zero]))
        self.name = WIGGLE
        self.coordinate_names = tree.position_names

    def __call__(self, t: float) -> Sample:
        """Return y, shape (nq,), yd and ydd, shape (nv,); see `Reference`."""
        offset, rate, acceleration = self._motion(t)
        y = self._home.copy()
        y[self._entries] += offset[self._rates]
        return y, rate, acceleration


def _scalar_entries(tree: Tree) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the entries of q and of qd that belong to joints of one coordinate each."""
    nodes = [node for node in tree.nodes if node.kind != "ball"]
    q = np.array([node.q for node in nodes], dtype=np.intp)
    v = np.array([node.v for node in nodes], dtype=np.intp)
    return q, v


def _ways(tree: Tree) -> tuple[Array, Array]:
    """Return how far each velocity coordinate goes to either side, shape (nv,) each, >= 0."""
    up, down = np.zeros(tree.nv), np.zeros(tree.nv)
    turning = sum(node.kind == "revolute" for node in tree.nodes)
    angle = min(ANGLE, ANGLE_OF_ALL / max(turning, 1))
    for node in tree.nodes:
        if node.kind == "ball":
            continue
        most = angle if node.kind == "revolute" else LENGTH
        home = tree.home[node.q]
        up[node.v] = np.clip(0.5 * (tree.upper[node.q] - home), 0.0, most)
        down[node.v] = np.clip(0.5 * (home - tree.lower[node.q]), 0.0, most)
    return up, down
