"""Repair inertia tensors so that the mass matrix changes as little as possible.

Planar CASPR models often state the one moment that matters and fill in zeros or dummies for the
rest. Where a link can only turn about one axis u of its own, only ``u' I u`` enters M, C and G:
that moment is kept and the others are changed, so that the repair changes nothing that moves.
Links that can turn about more axes get the nearest valid tensor
(`cards_core.robot.inertia.repair_inertia`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from cards_core.robot.elements import Inertia
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.inertia import (
    SMALLEST_RATIO,
    InertiaRepair,
    inertia_problem,
    repair_inertia,
    repair_links,
)
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.typing import Array, Vector3

_POSES = 4  # random poses at which the axes of a link are collected
_MARGIN = 1e-9  # room for rounding in the triangle inequality


def repair_inertias(robot: Robot) -> tuple[Robot, tuple[InertiaRepair, ...]]:
    """Return the robot with valid inertias, and what was changed.

    Links without mass and inertia stay: they are frames between joints.

    Raises:
        DescriptionError: A link has inertia but no mass.
    """
    axes = cache(lambda: turning_axes(robot.tree))  # most robots need no repair
    return repair_links(robot, lambda link: repair_for_motion(link.inertia, axes()[link.name]))


def turning_axes(tree: Tree) -> dict[str, Array]:
    """Return an orthonormal basis of the axes that every link can turn about, in link axes.

    Returns:
        Link name to basis, shape (k, 3) with k = 0..3.
    """
    rng = np.random.default_rng(0)
    samples: dict[str, list[Array]] = {link.name: [] for link in tree.robot.links}
    for _ in range(_POSES):
        motion = forward_kinematics(tree, tree.random(rng), np.zeros(tree.nv))
        for name, rows in samples.items():
            node, pose = tree.link_node[name]
            if node != WORLD_NODE:
                rotation = motion.rotation[node] @ pose.rotation
                rows.append((rotation.T @ motion.angular_jacobian[node]).T)
    out: dict[str, Array] = {}
    for name, rows in samples.items():
        table = np.vstack([np.zeros((1, 3)), *rows])
        _, values, basis = np.linalg.svd(table)
        out[name] = basis[: int(np.sum(values > 1e-9))]
    return out


def repair_for_motion(inertia: Inertia, axes: Array) -> Inertia:
    """Return a valid inertia; the moment about the only axis in ``axes`` stays, if it can.

    With a = u' I u the moment about u, and b <= c the principal moments across it: c - b is cut to
    a, and b + c raised to a, by equal changes of b and c; products with u are dropped.

    Args:
        inertia: To be repaired.
        axes: From `turning_axes`, shape (k, 3).

    Raises:
        DescriptionError: The mass is not positive.
    """
    if len(axes) == 1:
        candidate = _keep_moment(inertia, axes[0])
        if candidate is not None and inertia_problem(candidate) is None:
            return candidate
    return repair_inertia(inertia)


def _keep_moment(inertia: Inertia, u: Vector3) -> Inertia | None:
    a = float(u @ inertia.tensor @ u)
    _, _, basis = np.linalg.svd(u[None, :])
    across = basis[1:]
    (b, c), directions = np.linalg.eigh(across @ inertia.tensor @ across.T)
    if c - b > a * (1.0 - _MARGIN):
        b, c = 0.5 * (b + c - a * (1.0 - _MARGIN)), 0.5 * (b + c + a * (1.0 - _MARGIN))
    lift = max(0.0, 0.5 * (a * (1.0 + _MARGIN) - b - c))
    b, c = b + lift, c + lift
    if min(a, b) < SMALLEST_RATIO * max(a, c):
        return None
    block = (directions * np.array([b, c])) @ directions.T
    tensor = a * np.outer(u, u) + across.T @ block @ across
    return replace(inertia, tensor=0.5 * (tensor + tensor.T))
