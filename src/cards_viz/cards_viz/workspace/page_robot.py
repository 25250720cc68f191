"""The robot in the page of a workspace, where the axes of the page are directions in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.robot.elements import WORLD, Wrap
from cards_core.robot.model import WORLD_NODE, Robot
from cards_core.typing import Array
from cards_viz.muscles.scene import Scene

DISPLACEMENTS = (0.0, 0.1)
"""Displacements of all coordinates, [m] or [rad], at which directions of the hand are compared."""

MOST_CORNERS = 8
"""A link with more attachments is drawn without lines between them."""


@dataclass(frozen=True, eq=False)
class RobotLines:
    """A robot in coordinates of the page.

    Attributes:
        axes: The coordinate along x, y and z; None where no coordinate moves.
        lines: Muscles and links, shape (n, 2, 3): coordinates along axes that have one, else
            places in the world, [m].
        level: Where the points are along axes without a coordinate, shape (3,), [m].
    """

    axes: tuple[str | None, str | None, str | None]
    lines: Array
    level: Array


def robot_lines(
    robot: Robot, names: Sequence[str], fixed: Mapping[str, float]
) -> RobotLines | None:
    """Return the lines of a robot whose hand moves along x, y or z with each of the coordinates.

    Args:
        robot: The robot.
        names: Of up to three coordinates, the axes of the page.
        fixed: Values of others; those not named are at home.

    Returns:
        None if a coordinate moves the hand along no axis of the world, or two along the same, or
        the robot has no hand.
    """
    tree = robot.tree
    places = {name: i for i, name in enumerate(tree.position_names)}
    if (
        robot.operational_frame is None
        or not names
        or any(n not in places or n not in tree.velocity_names for n in names)
    ):
        return None
    scene = Scene(robot, with_shapes=False, backend="numeric")
    q = tree.home.copy()
    for name, value in fixed.items():
        if name in places:
            q[places[name]] = value

    dynamics, still = make_dynamics(robot, "numeric"), np.zeros(tree.nv)
    jacobians = [dynamics.operational(q + d, still).jacobian[:3].copy() for d in DISPLACEMENTS]
    here = dynamics.operational(q, still).position.copy()
    axes: list[str | None] = [None, None, None]
    for name in names:
        column = tree.velocity_names.index(name)
        along = _axis([jacobian[:, column] for jacobian in jacobians])
        if along is None or axes[along] is not None:
            return None
        axes[along] = name
    shift = np.array(
        [0.0 if n is None else q[places[n]] - p for n, p in zip(axes, here, strict=True)]
    )
    frame = scene.frame(q, np.zeros(len(robot.muscles)), 1.0)
    lines = np.concatenate([frame.segments.reshape(-1, 2, 3), _links(robot, frame.link_poses)])
    return RobotLines((axes[0], axes[1], axes[2]), lines + shift, here)


def _axis(directions: Sequence[Array]) -> int | None:
    """Return the axis of the world that all directions are along, forwards."""
    for axis, unit in enumerate(np.eye(3)):
        if all(np.abs(direction - unit).max() < 1e-9 for direction in directions):
            return axis
    return None


def _links(robot: Robot, poses: Array) -> Array:
    """Return lines between the attachments of each link that moves, shape (n, 2, 3), [m]."""
    corners: dict[str, list[Array]] = {link.name: [] for link in robot.links}
    for muscle in robot.muscles:
        for item in muscle.path:
            if not isinstance(item, Wrap) and item.link != WORLD:
                known = corners[item.link]
                if not any(np.allclose(item.position, other, atol=1e-6) for other in known):
                    known.append(item.position)
    out = [np.zeros((0, 2, 3))]
    for pose, (name, points) in zip(poses, corners.items(), strict=True):
        moves = robot.tree.link_node[name][0] != WORLD_NODE
        if moves and 2 <= len(points) <= MOST_CORNERS:
            placed = np.array(points) @ pose[:3, :3].T + pose[:3, 3]
            out.append(np.array(list(combinations(placed, 2))))
    return np.concatenate(out)
