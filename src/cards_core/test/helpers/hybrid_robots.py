"""A robot with cables and joint motors, for the tests of all packages."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from cards_core.robot.elements import (
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

X, Y, Z = np.eye(3)
MOTORS = ("shoulder", "elbow")
LIMITS = (12.0, 5.0)
"""Effort limits of the motors, [Nm]."""

_SPACER = Inertia(1e-6, np.zeros(3), 1e-6 * np.eye(3))


def _at(x: float, z: float) -> Pose:
    return Pose(np.eye(3), np.array([x, 0.0, z]))


def _rope(name: str, anchor: tuple[float, float], place: tuple[float, float]) -> Muscle:
    points = ((WORLD, anchor), ("platform", place))
    path = tuple(ViaPoint(link, np.array([x, 0.0, z])) for link, (x, z) in points)
    return Muscle(name, path, 2.0, 400.0)


@cache
def platform_arm(efforts: tuple[float, float] = LIMITS) -> Robot:
    """A platform that four cables hold in a vertical plane, with an arm of two motors on it.

    q is (x, z, turn, shoulder, elbow): five coordinates, four cables and two motors.
    """
    links = (
        Link("along", _SPACER),
        Link("above", _SPACER),
        Link("platform", Inertia(3.0, np.zeros(3), 0.05 * np.eye(3))),
        Link("upper_arm", Inertia(0.6, 0.2 * X, 0.01 * np.eye(3))),
        Link("lower_arm", Inertia(0.4, 0.15 * X, 0.005 * np.eye(3))),
    )

    def axis(direction: np.ndarray, span: float, effort: float = math.inf) -> tuple[JointAxis]:
        return (JointAxis(direction, -span, span, effort),)

    joints = (
        Joint("x", "prismatic", WORLD, "along", axes=axis(X, 1.0)),
        Joint("z", "prismatic", "along", "above", _at(0.0, 1.0), axes=axis(Z, 0.5)),
        Joint("turn", "revolute", "above", "platform", axes=axis(Y, 0.5)),
        Joint(
            "shoulder",
            "revolute",
            "platform",
            "upper_arm",
            _at(0.0, -0.1),
            axes=axis(Y, 2.5, efforts[0]),
            motor=True,
        ),
        Joint(
            "elbow",
            "revolute",
            "upper_arm",
            "lower_arm",
            _at(0.4, 0.0),
            axes=axis(Y, 2.5, efforts[1]),
            motor=True,
        ),
    )
    ropes = (
        _rope("top_left", (-2.0, 3.0), (-0.3, -0.1)),
        _rope("top_right", (2.0, 3.0), (0.3, -0.1)),
        _rope("bottom_left", (-2.0, -0.5), (-0.3, 0.1)),
        _rope("bottom_right", (2.0, -0.5), (0.3, 0.1)),
    )
    hand = Frame("hand", "lower_arm", _at(0.3, 0.0))
    home = {"shoulder": (0.4,), "elbow": (0.8,)}
    return Robot("platform_arm", links, joints, ropes, (hand,), "hand", home=home)


def without_motors(robot: Robot) -> Robot:
    """The same robot with joints that nothing drives."""
    return replace(robot, joints=tuple(replace(joint, motor=False) for joint in robot.joints))
