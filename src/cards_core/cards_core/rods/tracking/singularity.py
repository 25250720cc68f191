"""Singular states: motions that no equation resists, and folds where the plate collapses.

At a state, the Jacobian J of all equations by all scaled unknowns has singular values; where the
smallest is zero, its right singular vector is a motion that no equation resists: a plate that
turns freely, or joints without effect. For joints given, it is a motion of plate and rods at rest;
for a pose given, a motion of the joints that does not move the plate.

The plate's stiffness at fixed joints, K (6 x 6), is positive definite where a small push on the
plate causes a small motion. Its smallest eigenvalue falls to zero at a fold, as the square root of
the distance that is left::

    lambda^2 = a (f_fold - f)   =>   f_fold = f + lambda^2 / slope,   slope = -d(lambda^2)/df

so two accepted steps tell where the fold is, long before the smallest eigenvalue is small. Both
kinds of motion are put into words by their largest components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.tracking.levenberg_marquardt import Equations
from cards_core.typing import Array

SINGULAR = 1e-8
"""Smallest singular value of the scaled Jacobian that counts as zero."""


def weakest_mode(equations: Equations, state: InitialGuess | Solution) -> tuple[float, str]:
    """Return the smallest singular value of the scaled Jacobian, and its motion in words.

    Returns:
        NaN and an empty text if the equations are not finite there.
    """
    _, J = equations.linearise(state)
    if not np.isfinite(J).all():
        return float("nan"), ""
    _, values, vectors = np.linalg.svd(J)
    return float(values[-1]), describe_mode(equations, vectors[-1])


def describe_mode(equations: Equations, vector: Array) -> str:
    """Describe a motion by the joints, plate coordinates or rods that take part.

    Args:
        equations: The vector has their scaled unknowns.
        vector: Shape (number of unknowns,).
    """
    robot, k = equations.robot, len(equations.slots)
    rows, nq = robot.n_limbs * k, len(equations.q_free)
    joints, plate = vector[rows : rows + nq], vector[rows + nq :]
    motions = np.concatenate([joints, plate])
    names = [f"joint '{robot.joint_names[i]}'" for i in equations.q_free]
    names += [_plate_name(robot.coordinates[i]) for i in equations.x_free]
    forces = np.linalg.norm(vector[:rows].reshape(-1, k), axis=1)
    largest = float(np.abs(motions).max(initial=0.0))
    if largest < 1e-3 * float(forces.max(initial=0.0)):
        taking = [robot.limbs[i].name for i in np.flatnonzero(forces > 0.3 * forces.max())]
        return f"the loads of {', '.join(taking)} (no motion: a stress that nothing determines)"
    order = np.argsort(-np.abs(motions))
    *most, last = [names[i] for i in order if abs(motions[i]) > 0.3 * largest]
    return f"{', '.join(most)} and {last} together" if most else last


def _plate_name(coordinate: str) -> str:
    if coordinate.startswith("r"):
        return f"the plate turning about {coordinate[1]}"
    return f"the plate sliding along {coordinate}"


WARN_FRACTION = 0.05
"""Smallest eigenvalue relative to the start below which NEAR_LIMIT is reported."""

STOP_FRACTION = 0.01
"""Smallest eigenvalue relative to the start below which motion stops."""


@dataclass
class FoldPrediction:
    """Follows the smallest eigenvalue along a command and predicts where it vanishes.

    Attributes:
        fraction: Of the command at the last accepted state, 0..1.
        eigenvalue: Smallest eigenvalue there.
        slope: Fall of the squared eigenvalue per fraction; <= 0 while it rises.
    """

    fraction: float
    eigenvalue: float
    slope: float = 0.0

    def accept(self, fraction: float, eigenvalue: float) -> None:
        """Record an accepted state."""
        way = fraction - self.fraction
        if way > 0.0:
            squares = self.eigenvalue * abs(self.eigenvalue) - eigenvalue * abs(eigenvalue)
            self.slope = squares / way
        self.fraction, self.eigenvalue = fraction, eigenvalue

    @property
    def way_left(self) -> float:
        """Fraction of the command between the last state and the fold; inf if none is ahead."""
        if self.slope <= 0.0:
            return float("inf")
        return self.eigenvalue * abs(self.eigenvalue) / self.slope


def plate_lever(robot: RodRobot) -> float:
    """Return the mean distance of the plate's joints from its origin, at least 0.02 m."""
    levers = [float(np.linalg.norm(limb.tip.joint_pose[:3, 3])) for limb in robot.limbs]
    return max(0.02, float(np.mean(levers)))


def describe_direction(eigenvector: Array, lever: float) -> str:
    """Describe how the plate would move along an eigenvector.

    Args:
        eigenvector: Shape (6,), [translation m, rotation rad] in world axes; its sign has no
            meaning.
        lever: Weight of a rotation, [m], see `plate_lever`.
    """
    weights = [float(x) for x in eigenvector[:3]] + [lever * float(x) for x in eigenvector[3:]]
    largest = max(weights, key=abs)
    if not abs(largest) > 0.0:
        return "in no direction"
    parts = []
    for index in sorted(range(6), key=lambda i: -abs(weights[i])):
        if abs(weights[index]) < 0.35 * abs(largest):
            break
        sign = "+" if weights[index] * largest > 0.0 else "-"
        verb = "slides along" if index < 3 else "turns about"
        parts.append(f"{verb} {sign}{'xyz'[index % 3]}")
    return " and ".join(parts)


def describe_margin(eigenvalue: float, reference: float) -> str:
    """Return an eigenvalue as text, with its ratio to the start value."""
    if not reference > 0.0:
        return f"{eigenvalue:.3g}"
    return f"{eigenvalue:.3g}, {100.0 * eigenvalue / reference:.2g} % of its value at the start"
