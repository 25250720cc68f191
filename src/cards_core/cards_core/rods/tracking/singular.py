"""Motions that a robot leaves undetermined: a plate that turns freely, joints that do nothing.

At a state, the Jacobian J of all equations by all scaled unknowns has singular values; where the
smallest is zero, its right singular vector is a motion that no equation resists. For joints given,
that is a motion of plate and rods at rest; for a pose given, a motion of the joints that does not
show in the plate. The vector is put into words by its largest parts.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.robots.guess import Guess
from cards_core.rods.robots.solution import Solution
from cards_core.rods.tracking.levenberg import Equations
from cards_core.typing import Array

SINGULAR = 1e-8
"""Smallest singular value of the scaled Jacobian that counts as zero."""


def weakest_mode(equations: Equations, state: Guess | Solution) -> tuple[float, str]:
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
    """Say which joints, plate coordinates or rods take part in a motion.

    Args:
        equations: Whose unknowns the vector has, scaled.
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
