"""A robot with some muscles cut, without compiling it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.dynamics.interface import DynamicsState, OperationalState
from cards_core.typing import Array


class WithoutMuscles:
    """Dynamics of a robot from which muscles were taken; see `cards_core.dynamics.Dynamics`.

    Muscles have no mass, so everything but l and L is that of the whole robot, and l and L lose
    rows.

    Args:
        dynamics: Of the whole robot.
        removed: Names of muscles.

    Raises:
        UnknownNameError: No muscle has this name.
    """

    def __init__(self, dynamics: Dynamics, removed: Iterable[str]) -> None:
        robot = dynamics.robot
        gone = {robot.muscle(name).name for name in removed}
        self._whole = dynamics
        self._kept = np.array(
            [i for i, m in enumerate(robot.muscles) if m.name not in gone], dtype=np.intp
        )
        self.robot = replace(robot, muscles=tuple(robot.muscles[i] for i in self._kept))
        self.tree = self.robot.tree

    def update(self, q: Array, qd: Array) -> DynamicsState:
        """See `Dynamics.update`."""
        state = self._whole.update(q, qd)
        return SimpleNamespace(
            mass_matrix=state.mass_matrix,
            coriolis=state.coriolis,
            gravity=state.gravity,
            muscle_lengths=state.muscle_lengths[self._kept],
            muscle_jacobian=state.muscle_jacobian[self._kept],
        )

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """See `Dynamics.batch`."""
        return self.part(self._whole.batch(q, qd, threads))

    @property
    def path_failures(self) -> int:
        """See `Dynamics.path_failures`; of the whole robot."""
        return self._whole.path_failures

    def part(self, state: BatchState) -> BatchState:
        """Return what is left of states of the whole robot."""
        return BatchState(
            mass_matrix=state.mass_matrix,
            coriolis=state.coriolis,
            gravity=state.gravity,
            muscle_lengths=state.muscle_lengths[:, self._kept],
            muscle_jacobian=state.muscle_jacobian[:, self._kept],
        )

    def jacobian_gradient(self, q: Array) -> Array:
        """See `Dynamics.jacobian_gradient`."""
        gradient: Array = self._whole.jacobian_gradient(q)[self._kept]
        return gradient

    def operational(self, q: Array, qd: Array, frame: str | None = None) -> OperationalState:
        """See `Dynamics.operational`."""
        return self._whole.operational(q, qd, frame)

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """See `Dynamics.muscle_bias`."""
        bias: Array = self._whole.muscle_bias(q, qd)[self._kept]
        return bias

    def batch_link_poses(self, q: Array, threads: int = 1) -> Array:
        """Return the poses of many states; they do not depend on muscles."""
        return self._whole.batch_link_poses(q, threads)

    def link_poses(self, q: Array) -> Array:
        """See `Dynamics.link_poses`."""
        return self._whole.link_poses(q)
