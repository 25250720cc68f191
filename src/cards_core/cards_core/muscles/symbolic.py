"""CasADi expressions of the muscle engine; see `cards_core.muscles.engine` for the formulas."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy.typing as npt

from cards_core.dynamics.symbolic import Expr, Kernel, constant, direction
from cards_core.typing import Array


def muscle_kernel(
    n_links: int,
    point_link: npt.NDArray[Any],
    point_position: Array,
    bounds: npt.NDArray[Any],
) -> Kernel:
    """Return the kernel ``muscles``.

    Args:
        n_links: Number of links; link index ``n_links`` is the world.
        point_link: Link index of every path point, shape (p,).
        point_position: In link coordinates, shape (p, 3), [m].
        bounds: Muscle i owns the points ``bounds[i]:bounds[i + 1]``, shape (m + 1,).
    """
    m = len(bounds) - 1
    poses = ca.SX.sym("poses", 16 * n_links)
    twists = ca.SX.sym("twists", 6 * n_links)
    tensions = ca.SX.sym("tensions", m)
    arms: list[Expr] = []
    points: list[Expr] = []
    velocities: list[Expr] = []
    for link, local in zip(point_link, point_position, strict=True):
        position = constant(local)
        if link == n_links:
            arms.append(position)
            points.append(position)
            velocities.append(ca.SX.zeros(3))
            continue
        matrix = ca.reshape(poses[16 * link : 16 * link + 16], 4, 4).T
        arm = matrix[:3, :3] @ position
        arms.append(arm)
        points.append(matrix[:3, 3] + arm)
        twist = twists[6 * link : 6 * link + 6]
        velocities.append(twist[:3] + ca.cross(twist[3:], arm))
    lengths = [ca.SX(0.0)] * m
    rates = [ca.SX(0.0)] * m
    forces = [ca.SX.zeros(3) for _ in points]
    for i in range(m):
        for a in range(bounds[i], bounds[i + 1] - 1):
            b = a + 1
            length, u = direction(points[b] - points[a])
            lengths[i] += length
            rates[i] += ca.dot(u, velocities[b] - velocities[a])
            forces[a] += tensions[i] * u
            forces[b] -= tensions[i] * u
    wrenches = [ca.SX.zeros(6) for _ in range(n_links + 1)]
    for link, arm, force in zip(point_link, arms, forces, strict=True):
        wrenches[link] += ca.vertcat(force, ca.cross(arm, force))
    return Kernel(
        "muscles",
        (
            ("poses", (n_links, 4, 4), poses),
            ("twists", (n_links, 6), twists),
            ("tensions", (m,), tensions),
        ),
        (
            ("lengths", (m,), ca.vertcat(*lengths)),
            ("rates", (m,), ca.vertcat(*rates)),
            ("wrenches", (n_links + 1, 6), ca.vertcat(*wrenches)),
        ),
    )
