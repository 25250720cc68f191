"""Robots as functions: from a state to mass matrix, muscle lengths, Jacobians, or a plate's pose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cards_core.dynamics.model_function import compile_model
from cards_core.dynamics.variables import DEFAULT
from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Robot
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
