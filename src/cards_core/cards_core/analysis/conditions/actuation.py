"""What drives a robot: muscles that take a tension, motors of joints, and passive muscles."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.cable import BlankevoortLigament
from cards_core.robot.actuators import Ligament
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

FORCES = "N", "Nm"
"""Units of generalised forces: of coordinates that slide, and of those that turn."""

ACCELERATIONS = "m/s^2", "rad/s^2"
"""The same of accelerations."""


class Actuation:
    """Actuators of a robot, as rows of one matrix L with limits.

    Columns of L that belong to motors without effort limit are left out: they carry whatever is
    asked of them. A motor with a limit is one more row ``-e_k`` with ``-effort <= f <= effort``.
    Muscles that take no tension (ligaments) are no rows but part of the load.

    Args:
        dynamics: Of the robot.
        motors: Whether the limited motors become rows; without, their coordinates are left out
            like those of motors without limit.

    Attributes:
        lower, upper: Limits of the rows, shape (m,), [N] or [Nm].
        coordinates: Indices of the velocities that count, shape (nv,).
        muscles: Number of rows that are muscles.
        turning: Which of the coordinates are rotations, shape (nv,), bool.
    """

    def __init__(self, dynamics: Dynamics, *, motors: bool = True) -> None:
        robot, tree = dynamics.robot, dynamics.tree
        found = motors_of(tree)
        greatest = found.efforts if motors else np.full(len(found), np.inf)
        driven = dict(zip(found.rows.tolist(), greatest.tolist(), strict=True))
        chosen = [
            i for i, m in enumerate(robot.muscles) if "force" in m.actuator.accepted_commands
        ]
        others = [i for i in range(len(robot.muscles)) if i not in chosen]
        self._all = len(chosen) == len(robot.muscles) and not driven
        self._chosen: npt.NDArray[np.intp] = np.array(chosen, dtype=np.intp)
        self._ligaments = [
            (i, SimpleNamespace(k=a.stiffness, toe=a.toe_strain, l0=a.slack_length, q=0.0))
            for i in others
            if isinstance(a := robot.muscles[i].actuator, Ligament)
        ]
        free = [k for k in range(tree.nv) if driven.get(k, 0.0) < np.inf]
        self.coordinates: npt.NDArray[np.intp] = np.array(free, dtype=np.intp)
        limited = [(free.index(k), effort) for k, effort in driven.items() if effort < np.inf]
        self._motor_rows = np.zeros((len(limited), len(free)))
        for row, (k, _) in enumerate(limited):
            self._motor_rows[row, k] = -1.0
        efforts = [effort for _, effort in limited]
        self.muscles = len(chosen)
        self.lower = np.array(
            [robot.muscles[i].tension_min for i in chosen] + [-e for e in efforts]
        )
        self.upper = np.array([robot.muscles[i].tension_max for i in chosen] + efforts)
        turning = np.zeros(tree.nv, dtype=bool)
        for node in tree.nodes:
            turning[node.v : node.v + node.nv] = node.kind != "prismatic"
        self.turning: npt.NDArray[np.bool_] = turning[self.coordinates]

    @property
    def facets(self) -> int:
        """Combinations of nv - 1 rows that facets of what they make can belong to."""
        wide = int(np.count_nonzero(self.upper > self.lower))
        return math.comb(wide, max(len(self.coordinates) - 1, 0))

    def jacobian(self, state: BatchState) -> Array:
        """Return L of all rows, shape (n, m, nv); a view where nothing has to be left out."""
        full = state.muscle_jacobian
        if self._all:
            return full
        part: Array = full[:, self._chosen][:, :, self.coordinates]
        if len(self._motor_rows):
            motors = np.broadcast_to(self._motor_rows, (len(full), *self._motor_rows.shape))
            part = np.concatenate([part, motors], axis=1)
        return part

    def load(self, state: BatchState) -> Array:
        """Return G and what ligaments do, ``G + L_p' f_p``, shape (n, nv); without damping."""
        load = state.gravity
        for i, p in self._ligaments:
            strain = np.maximum(state.muscle_lengths[:, i] / p.l0 - 1.0, 0.0)
            tension = BlankevoortLigament.elastic(NUMPY, p, strain)
            load = load + state.muscle_jacobian[:, i] * np.asarray(tension)[:, None]
        return load if self._all else load[:, self.coordinates]

    def scale(self, length: float | None) -> Array:
        """Return the factor of each coordinate: 1/length of rotations, so that all are forces.

        Args:
            length: Characteristic length, [m]; None leaves every coordinate in its own unit.
        """
        if length is None:
            return np.ones(len(self.coordinates))
        return np.where(self.turning, 1.0 / length, 1.0)

    def unit(self, length: float | None, units: tuple[str, str] = FORCES) -> str:
        """Return the unit of what is scaled by `scale`: one, or two where coordinates differ.

        Args:
            length: Characteristic length, [m]; None leaves every coordinate in its own unit.
            units: Unit at a coordinate that slides, and at one that turns.
        """
        sliding, turning = units
        if length is not None or not self.turning.any():
            return sliding
        return turning if self.turning.all() else f"{sliding} or {turning}"
