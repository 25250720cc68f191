"""Robots as functions: from a state to M, C, G, l, L; from joints of a rod robot to its plate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cards_core.dynamics.model_function import compile_model
from cards_core.dynamics.variables import DEFAULT
from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import REJECTED
from cards_core.rods.tracking.tracker import Tracker
from cards_core.typing import Array

Coordinates: TypeAlias = Array | Sequence[float] | Mapping[str, float | Sequence[float]]
"""All joint coordinates in the order of the tree, or some by the name of their joint."""


class Quantities:
    """Named quantities at one state, e.g. ``state.M``; copies that stay as they are."""

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = dict(values)
        self._what = what

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(self._values)
            raise AttributeError(f"{self._what} has no '{name}' (it has {known})") from None

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise UnknownNameError(f"quantity of {self._what}", name, self._values) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        shapes = (f"{name} {np.shape(value)}" for name, value in self._values.items())
        return f"<{self._what}: {', '.join(shapes)}>"


class Model:
    """Equations of motion of a robot with muscles, as native code.

        M qdd + C + G = -L' f

    Args:
        robot: The robot.
        emit: Names of the quantities, see `cards_core.dynamics.VARIABLES`.
        frame: Of y, R, J and Jdot_qd; the operational frame if None.

    Attributes:
        robot, emit: As given.

    Raises:
        UnknownNameError: No such quantity or frame; the message lists those there are.
    """

    def __init__(
        self, robot: Robot, emit: str | Iterable[str] = DEFAULT, *, frame: str | None = None
    ) -> None:
        self.robot = robot
        self._compiled = compile_model(robot, emit, frame=frame)
        self.emit = self._compiled.emit

    def __call__(
        self, q: Coordinates | None = None, qd: Array | Sequence[float] | None = None
    ) -> Quantities:
        """Return the quantities at a state.

        Args:
            q: Joint coordinates, shape (nq,); or by joint name, the others at home; home if None.
            qd: Joint velocities, shape (nv,); at rest if None.

        Raises:
            ShapeError: A wrong number of values, or one that is not finite.
            UnknownNameError: No joint has this name.
        """
        tree = self.robot.tree
        velocity = np.zeros(tree.nv) if qd is None else np.asarray(qd, dtype=float)
        position = coordinates(self.robot, q)
        values = self._compiled.update(tree.check_q(position), tree.check_qd(velocity))
        copies = {name: value.copy() for name, value in values.items()}
        return Quantities(copies, f"state of {self.robot.name}")

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> Quantities:
        """Return the quantities for n states q, shape (n, nq), and qd, shape (n, nv)."""
        return Quantities(
            self._compiled.batch(q, qd, threads), f"batch of states of {self.robot.name}"
        )


def coordinates(robot: Robot, q: Coordinates | None) -> Array:
    """Return all joint coordinates, shape (nq,).

    Args:
        robot: The robot.
        q: All of them, or some by joint name, or None for home.

    Raises:
        UnknownNameError: No joint has this name.
        CardsError: A joint has another number of coordinates.
    """
    tree = robot.tree
    if q is None:
        return tree.home.copy()
    if not isinstance(q, Mapping):
        return np.asarray(q, dtype=float)
    slices = joint_slices(tree)
    out = tree.home.copy()
    for name, values in q.items():
        if name not in slices:
            raise UnknownNameError("joint", name, slices)
        given = np.atleast_1d(np.asarray(values, dtype=float))
        part = slices[name][0]
        if given.shape != (part.stop - part.start,):
            raise CardsError(
                f"joint '{name}' has {part.stop - part.start} coordinates, {given.size} given"
            )
        out[part] = given
    return out


class RodModel:
    """Equilibrium of a robot of rods.

    It starts from the robot's first equilibrium and moves to each command in small steps, so
    that it stays on one branch; the next call goes on from there.

    Args:
        robot: The robot.

    Attributes:
        robot: As given.
        tracker: What goes from command to command.

    Raises:
        CardsError: No equilibrium was found to start from.
    """

    def __init__(self, robot: RodRobot) -> None:
        self.robot = robot
        self.tracker = Tracker(robot)
        started = self.tracker.start()
        if started.solution is None:
            raise CardsError(f"{robot.name} has no state to start from: {started.message}")

    def __call__(
        self,
        q: Coordinates | None = None,
        *,
        pose: Array | None = None,
        wrench: Array | Sequence[float] | None = None,
    ) -> Quantities:
        """Return the equilibrium for joints, or for a pose of the plate.

        Args:
            q: Joint coordinates, shape (n,); or by joint name, the others at home.
            pose: Pose of the plate in the world, shape (4, 4), [m], in place of ``q``.
            wrench: Force and moment on the plate about its origin, in world axes, shape (6,),
                [N, Nm]; the last one if None.

        Returns:
            ``q``; ``pose`` of the plate, (4, 4); ``K``, its stiffness, (6, 6); ``J``, its motion
            per joint, (6, n); ``base_wrenches``, (n, 6); ``min_eigenvalue`` of K; ``solution``,
            which knows more.

        Raises:
            CardsError: Both or neither of q and pose, or the robot cannot go there; the message
                says why.
        """
        if (q is None) is (pose is None):
            raise CardsError("give q or pose, one of them")
        if wrench is not None:
            loaded = self.tracker.set_wrench(np.asarray(wrench, dtype=float))
            if loaded.status in REJECTED:
                raise CardsError(f"wrench: {loaded.message}")
        if pose is not None:
            result = self.tracker.command_pose(np.asarray(pose, dtype=float))
        elif isinstance(q, Mapping):
            values = {name: float(np.squeeze(value)) for name, value in q.items()}
            result = self.tracker.command_joints(self.robot.q_of(values))
        else:
            result = self.tracker.command_joints(np.asarray(q, dtype=float))
        if result.status not in REJECTED:
            result = self.tracker.run()
        if not result.arrived:
            raise CardsError(f"{self.robot.name} does not get there: {result.message}")
        return self._quantities(self.tracker.solution)

    def _quantities(self, solution: Solution) -> Quantities:
        values = {
            "q": solution.q.copy(),
            "pose": solution.pose.copy(),
            "K": solution.stiffness.copy(),
            "J": solution.jacobian.copy(),
            "base_wrenches": solution.base_wrenches.copy(),
            "min_eigenvalue": solution.min_eigenvalue,
            "solution": solution,
        }
        return Quantities(values, f"equilibrium of {self.robot.name}")


def compile(
    robot: Robot | RodRobot, emit: str | Iterable[str] = DEFAULT, *, frame: str | None = None
) -> Model | RodModel:
    """Return a robot as a function of its state, in native code.

    Args:
        robot: The robot.
        emit: Names of the quantities, as of `Model`; robots of rods have all of theirs.
        frame: As of `Model`.

    Raises:
        UnknownNameError: No such quantity or frame; the message lists those there are.
        CardsError: A robot of rods has no equilibrium to start from.
    """
    if isinstance(robot, RodRobot):
        return RodModel(robot)
    return Model(robot, emit, frame=frame)
