"""Rates of muscle Jacobians by differences, for paths whose contacts have no closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cards_core.paths.layout import tree_layout
from cards_core.robot.model import Tree
from cards_core.typing import Array

STEP = 1e-5
"""Step of the central difference along the motion, [rad] or [m]; its error is of order 1e-9."""


def geodesic_muscles(tree: Tree) -> npt.NDArray[np.intp]:
    """Return the indices of the muscles with a contact that has no closed form."""
    layout = tree_layout(tree)
    return np.unique([layout.contacts[i].muscle for i in layout.geodesics]).astype(np.intp)


def bias_by_differences(
    tree: Tree, jacobian: Callable[[Array], Array], q: Array, qd: Array
) -> Array:
    """Return dL/dt qd, shape (m,), as central difference of ``L qd`` along qd at qdd = 0.

    Args:
        tree: Integrates q.
        jacobian: Gives L at q; what it returns may be overwritten by its next call.
        q: Joint coordinates, shape (nq,).
        qd: Joint velocities, shape (nv,).
    """
    speed = float(np.max(np.abs(qd), initial=0.0))
    if speed == 0.0:
        return np.zeros(len(tree.robot.muscles))
    h = STEP / speed
    rates = []
    for sign in (1.0, -1.0):
        rates.append(jacobian(tree.integrate(q, sign * h * np.asarray(qd))) @ qd)
    return np.asarray((rates[0] - rates[1]) / (2.0 * h))


def gradient_by_differences(tree: Tree, jacobian: Callable[[Array], Array], q: Array) -> Array:
    """Return dL/dq, shape (m, nv, nv), as central differences along every tangent direction.

    Args:
        tree: Moves q.
        jacobian: Gives L at q; what it returns may be overwritten by its next call.
        q: Joint coordinates, shape (nq,).
    """
    gradient = np.empty((len(tree.robot.muscles), tree.nv, tree.nv))
    for k, direction in enumerate(np.eye(tree.nv)):
        ahead = jacobian(tree.integrate(q, STEP * direction)).copy()
        gradient[:, :, k] = (ahead - jacobian(tree.integrate(q, -STEP * direction))) / (2.0 * STEP)
    return gradient
