"""Robots small enough to be written as expressions, and their backends, made once per run."""

from __future__ import annotations

from functools import cache

import numpy as np

from cards_core.dynamics.sympy_backend import SymbolicOptions, SympyDynamics
from cards_core.formats import load
from random_robots import random_robot

PROJECT = ("planar_2r", "planar_xy", "antagonist_joint", "bm_arm", "ipanema_1", "spherical_2s")
RANDOM = {
    "revolute": (2, 2, ("revolute",)),
    "prismatic_revolute": (8, 2, ("planar", "prismatic", "revolute")),
    "ball": (1, 1, ("ball",)),
    "free": (1, 1, ("free",)),
    "ball_prismatic": (4, 2, ("ball", "prismatic")),
    "universal": (4, 2, ("universal", "fixed")),
}
"""Name to seed, number of links and kinds of joints."""

STATE = ("mass_matrix", "coriolis", "gravity", "muscle_lengths", "muscle_jacobian")
OPERATIONAL = ("position", "rotation", "jacobian", "bias")


@cache
def robot_of(name: str):
    if name in RANDOM:
        seed, links, kinds = RANDOM[name]
        return random_robot(seed, n_links=links, n_muscles=2, kinds=kinds)
    robot = load(name)
    return straight(robot)


def straight(robot):
    """The robot without muscles that wrap."""
    from dataclasses import replace

    from cards_core.robot.elements import ViaPoint

    muscles = [m for m in robot.muscles if all(isinstance(item, ViaPoint) for item in m.path)]
    return replace(robot, muscles=tuple(muscles))


@cache
def sympy_of(name: str) -> SympyDynamics:
    return SympyDynamics(robot_of(name), SymbolicOptions())


def states(tree, count: int = 3):
    rng = np.random.default_rng(7)
    return [(tree.random(rng), rng.normal(size=tree.nv)) for _ in range(count)]


def derivative(function, tree, q, direction, eps=1e-6):
    """Central difference of function(q) along a tangent direction."""
    plus = np.array(function(tree.integrate(q, eps * direction)))
    minus = np.array(function(tree.integrate(q, -eps * direction)))
    return (plus - minus) / (2 * eps)
