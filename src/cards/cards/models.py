"""Robots as functions: from a state to M, C, G, l, L; from joints of a rod robot to its plate."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from cards.robots import check_robot
from cards_core.checks import check_choice, check_count, check_kind, real_array
from cards_core.dynamics.model_function import compile_model
from cards_core.dynamics.variables import DEFAULT
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import REJECTED
from cards_core.rods.tracking.tracker import Tracker, TrackingResult
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
        except (KeyError, TypeError):
            raise UnknownNameError(f"quantity of {self._what}", name, self._values) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        shapes = (f"{name} {np.shape(value)}" for name, value in self._values.items())
        return f"<{self._what}: {', '.join(shapes)}>"


class Model:
    """Equations of motion of a robot with muscles, as native code.

        M qdd + C + G = -L' f

    Several threads may call one model; they take turns.

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
        check_kind(robot, Robot, "the robot", 'a robot with muscles, e.g. cards.load("planar_2r")')
        if frame is not None:  # also where no quantity of a frame is wanted
            robot.frame(frame)
        self.robot = robot
        self._compiled = compile_model(robot, emit, frame=frame)
        # its arrays are overwritten by each call
        self._lock = Lock()
        self.emit = self._compiled.emit

    def __call__(self, q: Coordinates | None = None, qd: Coordinates | None = None) -> Quantities:
        """Return the quantities at a state.

        Rows of a muscle whose path over its surfaces is not found are NaN, and a warning names it.

        Args:
            q: Joint coordinates, shape (nq,); or by joint name, the others at home; home if None.
            qd: Joint velocities, shape (nv,); or by joint name, the others at rest; at rest if
                None.

        Raises:
            ShapeError: A wrong number of values, or one that is no finite number.
            UnknownNameError: No joint has this name.
        """
        tree = self.robot.tree
        position = tree.check_q(coordinates(self.robot, q))
        velocity = tree.check_qd(velocities(self.robot, qd))
        with self._lock:
            values = self._compiled.update(position, velocity)
            copies = {name: value.copy() for name, value in values.items()}
        if lost := self._compiled.lost_names:
            warnings.warn(
                f"no path is found at this state of {', '.join(lost)}: what depends on it is NaN",
                RuntimeWarning,
                stacklevel=2,
            )
        return Quantities(copies, f"state of {self.robot.name}")

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> Quantities:
        """Return the quantities for n states.

        Args:
            q: Joint coordinates, shape (n, nq); a row that is not finite gives NaN.
            qd: Joint velocities, shape (n, nv); at rest if None.
            threads: How many share the work, at least 1.

        Raises:
            ShapeError: The shapes do not fit, or what is given are no numbers.
            CardsError: The number of threads is no whole number, or less than 1.
        """
        check_count(threads, "threads")
        with self._lock:
            values = self._compiled.batch(q, qd, threads)
        return Quantities(values, f"batch of states of {self.robot.name}")


def coordinates(robot: Robot, q: Coordinates | None) -> Array:
    """Return all joint coordinates, shape (nq,); whether they fit says `Tree.check_q`.

    Args:
        robot: The robot.
        q: All of them, or some by joint name, or None for home.

    Raises:
        UnknownNameError: No joint has this name.
        ShapeError: A joint has another number of coordinates, or what is given are no numbers.
    """
    where = {name: slices[0] for name, slices in joint_slices(robot.tree).items()}
    return _joint_values(robot.tree.home, where, q, "q")


def velocities(robot: Robot, qd: Coordinates | None) -> Array:
    """Return all joint velocities, shape (nv,); the same as `coordinates`, from rest."""
    where = {name: slices[1] for name, slices in joint_slices(robot.tree).items()}
    return _joint_values(np.zeros(robot.tree.nv), where, qd, "qd")


def _joint_values(
    others: Array, where: Mapping[str, slice], given: Coordinates | None, what: str
) -> Array:
    """Return values as given, or those of the joints that are named among the others."""
    if given is None:
        return others.copy()
    if not isinstance(given, Mapping):
        return real_array(given, what)
    out = others.copy()
    for name, values in given.items():
        check_choice(name, "joint", where)
        part = where[name]
        entries = np.atleast_1d(real_array(values, f"{what} of joint '{name}'"))
        if entries.shape != (part.stop - part.start,):
            raise ShapeError(
                f"{what}: joint '{name}' has {part.stop - part.start} coordinates, "
                f"{entries.size} given"
            )
        out[part] = entries
    return out


class RodModel:
    """Equilibrium of a robot of rods.

    It starts from the robot's first equilibrium and moves to each command in small steps, so
    that it stays on one branch; the next call goes on from there. A call that is refused changes
    nothing. Threads take turns.

    Args:
        robot: The robot.

    Attributes:
        robot: As given.
        tracker: What goes from command to command.

    Raises:
        CardsError: No equilibrium was found to start from.
    """

    def __init__(self, robot: RodRobot) -> None:
        check_kind(robot, RodRobot, "the robot", "a robot of rods")
        self.robot = robot
        self.tracker = Tracker(robot)
        self._lock = Lock()
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
        with self._lock:
            if wrench is not None:
                self._check(self.tracker.set_wrench(real_array(wrench, "wrench")))
            if pose is not None:
                self._check(self.tracker.command_pose(real_array(pose, "pose")))
            else:
                self._check(self.tracker.command_joints(self._joints(q)))
            result = self.tracker.run()
            if not result.arrived:
                raise CardsError(f"{self.robot.name} does not get there: {result.message}")
            return self._quantities(self.tracker.solution)

    def _check(self, result: TrackingResult) -> None:
        """Refuse a command that the tracker has refused, and forget those before it."""
        if result.status in REJECTED:
            self.tracker.stop()  # else the wrench of this call would act in the next one
            raise CardsError(f"{self.robot.name}: {result.message}")

    def _joints(self, q: Coordinates | None) -> Array:
        robot = self.robot
        where = {name: slice(i, i + 1) for i, name in enumerate(robot.joint_names)}
        if isinstance(q, Mapping):  # by joint or limb
            q = {robot.joint_names[robot.joint_index(name)]: value for name, value in q.items()}
        return _joint_values(robot.home_q, where, q, "q")

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
    robot: Robot | RodRobot,
    emit: str | Iterable[str] | None = None,
    *,
    frame: str | None = None,
) -> Model | RodModel:
    """Return a robot as a function of its state, in native code.

    Args:
        robot: The robot.
        emit: Names of the quantities, as of `Model`; M, C, G, l, L if None. Robots of rods have
            all of theirs.
        frame: As of `Model`.

    Raises:
        UnknownNameError: No such quantity or frame; the message lists those there are.
        CardsError: It is no robot; or a robot of rods, which has no equilibrium to start from, or
            for which quantities or a frame were given.
    """
    check_robot(robot)
    if isinstance(robot, RodRobot):
        if emit is not None or frame is not None:
            raise CardsError(
                f"{robot.name} is a robot of rods, which has neither emit nor frame (expected: "
                "cards.compile(robot), which gives all quantities)"
            )
        return RodModel(robot)
    return Model(robot, DEFAULT if emit is None else emit, frame=frame)
