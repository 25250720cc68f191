"""A handle that both hands hold and turn: its world, and the motion of the arms that turns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats.sdf.world import load_world
from cards_core.robot.model import Robot
from cards_core.robot.world import ModelJoint
from cards_core.spatial import Pose, axis_rotation
from cards_core.trajectories.base import Reference, Sample
from cards_core.typing import Array
from cards_sim.host import SimulatorHost
from cards_sim.simulator import Simulator
from cards_sim.world_simulator import WorldSimulator

WORLD = "handle"
"""World with the handle."""

GRIPS = {"left_grip": "left_end", "right_grip": "right_end"}
"""Frames of the hands to the links of the handle that they hold."""

ANGLES = np.linspace(-1.0, 1.0, 13)
"""Parts of the largest angle at which the arms are placed; between them is a spline."""

POSTURE = 0.02
"""Weight of the distance from the middle posture, [m/rad]: an arm has more joints than the
position of its hand has coordinates."""

MISSED = 2e-3
"""Distance between hand and handle at which the handle is out of reach, [m]."""


class Strokes(Reference):
    """Joint coordinates over time while the handle turns to and fro, resting in between.

    Args:
        places: Joint coordinates at `ANGLES`, shape (k, n), [rad].
        steps: Duration [s] of every step and the part of the largest angle at its end.
    """

    def __init__(self, places: Array, steps: list[tuple[float, float]]) -> None:
        ends = np.cumsum([0.0, *(duration for duration, _ in steps)])
        super().__init__(places.shape[1], float(ends[-1]), ends.tolist())
        self._curve = CubicSpline(ANGLES, places)
        self._slope, self._bend = self._curve.derivative(), self._curve.derivative(2)
        self._ends = ends
        self._parts = np.array([0.0, *(part for _, part in steps)])

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd; see `Reference`."""
        t = min(max(t, 0.0), self.duration)
        step = min(int(np.searchsorted(self._ends, t, side="right")) - 1, len(self._parts) - 2)
        length = self._ends[step + 1] - self._ends[step]
        s = (t - self._ends[step]) / length
        change = self._parts[step + 1] - self._parts[step]
        # at rest at both ends, with no jump of the acceleration
        a = self._parts[step] + change * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        ad = change * 30.0 * s**2 * (1.0 - s) ** 2 / length
        add = change * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / length**2
        slope = self._slope(a)
        return self._curve(a), slope * ad, slope * add + self._bend(a) * ad**2


def handle_reference(robot: Robot, setup: Mapping[str, Any]) -> Strokes:
    """Return the motion that turns the handle.

    Args:
        robot: The robot, with the frames of `GRIPS`.
        setup: ``posture``: joint coordinates to stay near, shape (n,), [rad]; ``angle``: largest
            angle of the handle, [rad]; ``steps``: durations [s] with the part of it at their end.

    Raises:
        CardsError: The handle is out of reach.
    """
    posture = np.asarray(setup["posture"], dtype=float)
    dynamics = make_dynamics(robot, "numeric")
    index = {link.name: i for i, link in enumerate(robot.links)}
    frames = [robot.frame(name) for name in GRIPS]
    pivot, ends = _geometry()

    def gap(q: Array, angle: float) -> Array:
        poses = dynamics.link_poses(q)
        turned = axis_rotation([1.0, 0.0, 0.0], angle)
        out = []
        for frame, end in zip(frames, ends, strict=True):
            pose = poses[index[frame.link]]
            grip = pose[:3, :3] @ frame.pose.translation + pose[:3, 3]
            out.append(grip - (pivot + turned @ end))
        return np.concatenate(out)

    def placed(angle: float, start: Array) -> Array:
        found = least_squares(
            lambda q: np.concatenate([gap(q, angle), POSTURE * 0.05 * (q - posture)]), start
        )
        missed = float(np.abs(gap(found.x, angle)).max())
        if missed > MISSED:
            raise CardsError(
                f"the hands of {robot.name} miss the handle by {1e3 * missed:.1f} mm at "
                f"{np.degrees(angle):.0f} deg (expected: a handle within reach)"
            )
        return np.asarray(found.x)

    largest = float(setup["angle"])
    middle = len(ANGLES) // 2
    places = [posture] * len(ANGLES)
    places[middle] = placed(0.0, posture)
    for order in (range(middle + 1, len(ANGLES)), range(middle - 1, -1, -1)):
        last = places[middle]
        for i in order:
            last = places[i] = placed(largest * ANGLES[i], last)
    return Strokes(np.array(places), [(float(t), float(part)) for t, part in setup["steps"]])


def handle_world(robot: Robot, start: Array, *, dt: float) -> SimulatorHost:
    """Return a robot whose hands hold the handle by ball joints.

    Args:
        robot: The robot.
        start: Joint coordinates at time zero, hands at the handle, shape (n,), [rad].
        dt: Time step, [s].
    """
    world = load_world(WORLD).with_robot(robot)
    joints = []
    for name, end in GRIPS.items():
        frame = robot.frame(name)
        joints.append(
            ModelJoint(
                name=f"{name}_holds",
                kind="ball",
                parent=f"{robot.name}::{frame.link}",
                child=f"handle::{end}",
                parent_to_joint=frame.pose,
                child_to_joint=Pose(),
            )
        )
    simulator = WorldSimulator(replace(world, joints=(*world.joints, *joints)), dt)
    return SimulatorHost(
        Simulator.within(simulator, robot.name), command_timeout=0.1, initial_positions=start
    )


def _geometry() -> tuple[Array, list[Array]]:
    """Return where the handle turns, and its ends from there, in the world, [m]."""
    model = load_world(WORLD).model("handle")
    tree = model.robot.tree
    poses = make_dynamics(model.robot, "numeric").link_poses(tree.home)
    places = {link.name: pose[:3, 3] for link, pose in zip(model.robot.links, poses, strict=True)}
    return places["rod"], [places[end] - places["rod"] for end in GRIPS.values()]
