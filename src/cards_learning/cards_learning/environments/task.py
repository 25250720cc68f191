"""What a task of n robots is: how it begins, what an action does, what it is worth.

Everything is done for all robots at once, and what happens to one does not depend on how many
there are: a single environment is a task of one robot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice, finite_number
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_learning.environments.quantities import Layout
from cards_sim.batch import EXACT, Batch, ModelErrors

FAILURE = -10.0
"""Reward of a step in which the physics diverged, and of nothing else in that step."""

Flags = npt.NDArray[np.bool_]

Errors = ModelErrors | Mapping[str, float]
"""How far robots are from their description, and noise; a mapping has the fields by name."""


class ActionError(CardsError, ValueError):
    """An action of the wrong shape, or with a value that is no finite number."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a step led to, for n robots.

    Attributes:
        observations: Shape (n, k), between -1 and 1.
        terms: Of the reward, which is their sum, each of shape (n,).
        terminated: Whether the task is over, shape (n,).
        info: More, by name, each of shape (n,).
    """

    observations: Array
    terms: Mapping[str, Array]
    terminated: Flags
    info: Mapping[str, npt.NDArray[Any]]

    @property
    def rewards(self) -> Array:
        """Sum of the terms, shape (n,)."""
        return np.asarray(sum(self.terms.values()), dtype=float)


class Task(ABC):
    """A task of n robots.

    Noise of sensors is in what is observed and not in the reward. It is drawn from the random
    numbers of the episode, one number for each joint coordinate and each length at every step.

    Args:
        batch: The robots.
        period: Time between two actions, [s]; a whole number of steps of the batch.
        errors: Of them counts the noise of sensors; the batch has the errors of the model.

    Attributes:
        batch: As given.
        n: How many robots.
        steps: Steps of the batch under one action.
        period: steps x dt, [s].
        actions: Names of what an action consists of; each is between -1 and 1.
        layout: Of the observations.

    Raises:
        CardsError: The period is no whole number of steps.
    """

    actions: tuple[str, ...]
    layout: Layout

    def __init__(self, batch: Batch, period: float, errors: ModelErrors = EXACT) -> None:
        self.batch, self.n = batch, batch.n
        self._deviations = (errors.joint_noise, errors.length_noise)
        sizes = (batch.robot.tree.nq, len(batch.robot.muscles))
        self._noise: tuple[Array, ...] = tuple(np.zeros((self.n, size)) for size in sizes)
        self._sensors: list[np.random.Generator] = [np.random.default_rng(0)] * self.n
        finite_number(period, "period [s]", above=0.0, at_most=10.0)
        self.steps = round(period / batch.dt)
        if self.steps < 1 or abs(self.steps * batch.dt - period) > 1e-9:
            raise CardsError(
                f"period is {period:g} s (expected: a multiple of the time step, {batch.dt:g} s)"
            )
        self.period = self.steps * batch.dt

    def reset(self, rows: Sequence[int], generators: Sequence[np.random.Generator]) -> Array:
        """Let robots start again; return the observations of all, shape (n, k).

        Args:
            rows: Their numbers.
            generators: The random numbers of each of them.
        """
        for i, generator in zip(rows, generators, strict=True):
            self._draw(i, generator)
            if any(self._deviations):
                # of its own: what is drawn between two episodes does not change the next one
                self._sensors[i] = np.random.default_rng(generator.integers(2**63))
        chosen = np.asarray(rows, dtype=np.intp)
        self._place(chosen)
        self._begin(chosen, self.batch.state)
        self._draw_noise(rows)
        return self.layout.observation(self._seen(self._measured(self.batch.state)))

    def _draw_noise(self, rows: Iterable[int]) -> None:
        for values, deviation in zip(self._noise, self._deviations, strict=True):
            if deviation:
                for i in rows:
                    values[i] = deviation * self._sensors[i].standard_normal(values.shape[1])

    def _measured(self, state: BatchRobotState) -> BatchRobotState:
        """Return the state as sensors tell it."""
        if not any(self._deviations):
            return state
        q, lengths = state.q + self._noise[0], state.muscle_lengths + self._noise[1]
        return replace(state, q=q, muscle_lengths=lengths)

    def step(self, actions: npt.ArrayLike) -> Outcome:
        """Act for a period.

        Args:
            actions: Shape (n, len(actions)); values beyond -1 and 1 count as these.

        Raises:
            ActionError: A wrong shape, or a value that is no finite number; nothing is done then.
        """
        self._act(np.clip(self._checked(actions), -1.0, 1.0))
        self.batch.step(self.steps)
        state = self.batch.state
        terms, done, info = self._judge(state)
        self._draw_noise(range(self.n))
        lost = state.diverged
        terms = {name: np.where(lost, 0.0, values) for name, values in terms.items()}
        terms["failure"] = np.where(lost, FAILURE, 0.0)
        return Outcome(
            self.layout.observation(self._seen(self._measured(state))),
            terms,
            done | lost,
            {**info, "diverged": lost.copy()},
        )

    def _checked(self, actions: npt.ArrayLike) -> Array:
        shape = (self.n, len(self.actions))
        try:
            array = np.asarray(actions, dtype=float)
        except (TypeError, ValueError):
            raise ActionError(
                f"the action is no array of numbers (expected: numbers, shape {shape})"
            ) from None
        if array.shape != shape:
            raise ActionError(f"actions have shape {array.shape}, expected {shape}")
        if not np.isfinite(array).all():
            i, j = np.argwhere(~np.isfinite(array))[0]
            raise ActionError(
                f"action '{self.actions[j]}' of robot {i} is {array[i, j]} (expected: a finite "
                "number, -1 to 1)"
            )
        return array

    def target(self, i: int) -> Array | None:
        """Return where robot i is to go, shape (3,), [m]; None if that is no point."""
        return None

    @abstractmethod
    def _draw(self, i: int, generator: np.random.Generator) -> None:
        """Draw everything random of an episode of robot i."""

    @abstractmethod
    def _place(self, rows: npt.NDArray[np.intp]) -> None:
        """Reset robots of the batch."""

    @abstractmethod
    def _begin(self, rows: npt.NDArray[np.intp], state: BatchRobotState) -> None:
        """Take over the first state of an episode."""

    @abstractmethod
    def _act(self, actions: Array) -> None:
        """Command the batch; the actions are between -1 and 1."""

    @abstractmethod
    def _seen(self, state: BatchRobotState) -> dict[str, Array]:
        """Return the quantities of the layout by name, in SI units."""

    @abstractmethod
    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        """Return terms of the reward, who has finished, and information; called once per step."""


def loaded(robot: str | Robot) -> Robot:
    """Return a robot that is given by name or path, or as it is.

    Raises:
        CardsError: There is none, or it is a robot of rods.
    """
    return robot if isinstance(robot, Robot) else load(robot)


def model_errors(errors: Errors) -> tuple[ModelErrors, ModelErrors]:
    """Return errors as they are given, and those of the batch: without noise.

    Raises:
        UnknownNameError: There is no such error.
        CardsError: A number out of its range.
    """
    if not isinstance(errors, ModelErrors):
        if not isinstance(errors, Mapping):
            raise CardsError(f"errors is {errors!r} (expected: ModelErrors, or a dict)")
        names = [field.name for field in fields(ModelErrors)]
        for name in errors:
            check_choice(name, "model error", names)
        errors = ModelErrors(**errors)  # type: ignore[arg-type]  # the seed is checked there
    return errors, replace(errors, joint_noise=0.0, length_noise=0.0)
