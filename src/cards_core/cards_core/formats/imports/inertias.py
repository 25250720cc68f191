"""Inertias of imported robots: repaired so that the mass matrix changes as little as possible.

Descriptions of planar robots often state the one moment that matters and fill in zeros or dummies
for the rest. Where a link can only turn about one axis u of its own, only ``u' I u`` enters M, C
and G: that moment is kept and the others are changed, so that the repair changes nothing that
moves. Links that can turn about more axes get the nearest valid tensor
(`cards_core.robot.inertia.repair_inertia`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import cache

import numpy as np

from cards_core.dynamics import make_dynamics
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

# Change of the mass matrix ---------------------------------------------------------------------


def mass_matrix_change(
    original: Robot, changed: Robot, *, samples: int = 50, steps: int = 100, seed: int = 0
) -> float:
    """Return the largest relative difference of the mass matrices of two robots that is found.

    ``max |M'_ij - M_ij| / sqrt(M_ii M_jj)`` over all entries; the scaling makes rows in metres and
    in radians comparable. Looked at are random configurations within the joint limits, and then
    steps uphill from the worst of them, because M_ii may be small in a small region only. That is
    a lower end of the largest difference over all configurations, and mostly close to it.

    Args:
        original: The robot.
        changed: One with the same coordinates and other inertias.
        samples: Number of random configurations.
        steps: Number of configurations tried on the way uphill: a random direction each, longer
            after a success, shorter after a failure.
        seed: Seed of both.
    """
    # muscles do not count in M, and are most of the work
    bare = [
        dataclasses.replace(robot, muscles=(), wrap_surfaces=()) for robot in (original, changed)
    ]
    first, second = (make_dynamics(robot, "numeric") for robot in bare)
    tree = first.tree
    still = np.zeros(tree.nv)
    rng = np.random.default_rng(seed)

    def change(q: Array) -> float:
        before = np.array(first.update(q, still).mass_matrix)
        difference = np.array(second.update(q, still).mass_matrix) - before
        scale = np.sqrt(np.maximum(np.diag(before), np.finfo(float).tiny))
        return float(np.abs(difference / np.outer(scale, scale)).max(initial=0.0))

    tried = [tree.random(rng) for _ in range(samples)]
    found = [change(q) for q in tried]
    if not any(found):
        return 0.0
    worst = max(found)
    place = tried[found.index(worst)]
    length = 0.5
    for _ in range(steps):
        q = tree.integrate(place, length * rng.normal(size=tree.nv))
        q = np.clip(q, tree.lower, tree.upper)
        if (value := change(q)) > worst:
            place, worst, length = q, value, 2.0 * length
        else:
            length *= 0.85
    return worst


# Repair of inertias ----------------------------------------------------------------------------


_AXIS_POSES = 4  # random poses at which the axes of a link are collected
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
    for _ in range(_AXIS_POSES):
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


# Home position ---


def home_within_limits(robot: Robot) -> Robot:
    """Return the robot with its home position moved to the nearest one within the limits.

    Joints whose home is not given stand at zero, and get one if zero is outside.
    """
    home = dict(robot.home)
    for joint in robot.joints:
        if not joint.axes:
            continue  # ball and free joints have no limits
        before = home.get(joint.name, (0.0,) * len(joint.axes))
        after = tuple(
            min(max(value, axis.lower), axis.upper)
            for value, axis in zip(before, joint.axes, strict=True)
        )
        if after != tuple(before):
            home[joint.name] = after
    return replace(robot, home=home)
