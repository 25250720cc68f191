"""Arms that muscles pull, and a hand that reaches for points.

An action sets the tension of every muscle that takes one, from the least to the largest:

    T = T_min + (a + 1)/2 (T_top - T_min)

A step is worth, with the distance d of the hand from where it should be,

    closeness   1/(1 + (d/s)^2)             s: `close`, [m]
    effort      -w mean(((a + 1)/2)^2)      w: `effort_weight`
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_number
from cards_core.dynamics.model_function import compile_model
from cards_core.errors import CardsError
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_learning.environments.quantities import Layout, Quantity
from cards_learning.environments.task import Errors, Flags, Task, loaded, model_errors
from cards_sim.batch import EXACT, Batch

LARGEST_RATE = 30.0
"""Range of joint velocities that is shown, where a joint has no limit of its own, [rad/s, m/s]."""

MARGIN = 0.1
"""By how much of the range of a joint angles are shown beyond its limits."""

SAMPLES = 512
"""Poses by which the room of the hand is measured."""


class ArmTask(Task):
    """What tasks of an arm have in common: actions, reward, and most of what is seen.

    Args:
        n: How many robots.
        robot: Name, path or robot, of joints with limits and muscles that take tensions, with an
            operational frame: the hand.
        period: Time between two actions, [s].
        largest_tension: T_top, [N]; that of each muscle if None or larger.
        effort_weight: w.
        close: s, [m].
        errors: How far robots are from their description, and noise of joint angles and lengths.
        threads: How many share the work.

    Raises:
        CardsError: A joint without limits, no such muscle, no operational frame, or a number out
            of its range.
    """

    def __init__(
        self,
        n: int,
        *,
        robot: str | Robot,
        period: float,
        largest_tension: float | None,
        effort_weight: float,
        close: float,
        errors: Errors,
        threads: int | None,
    ) -> None:
        found = loaded(robot)
        errors, of_model = model_errors(errors)
        batch = Batch(found, n, errors=of_model, threads=threads)
        super().__init__(batch, period, errors)
        tree = found.tree
        for name, low, high in zip(tree.position_names, tree.lower, tree.upper, strict=True):
            if not np.isfinite([low, high]).all():
                raise CardsError(
                    f"joint '{name}' of '{found.name}' has no limits (expected: an arm whose "
                    "joints have limits)"
                )
        found.frame_name()  # refuses a robot without a hand
        names = self.batch.muscles("force")
        if not names:
            raise CardsError(f"no muscle of '{found.name}' takes a tension (expected: some)")
        muscles = [found.muscle(name) for name in names]
        order = [muscle.name for muscle in found.muscles]
        self._columns = np.array([order.index(name) for name in names], dtype=np.intp)
        self._least = np.array([muscle.tension_min for muscle in muscles])
        most = np.array([muscle.tension_max for muscle in muscles])
        if largest_tension is not None:
            top = finite_number(largest_tension, "largest_tension [N]", above=self._least.max())
            most = np.minimum(most, top)
        self._span = most - self._least
        self._effort_weight = finite_number(effort_weight, "effort_weight", at_least=0.0)
        self._close = finite_number(close, "close [m]", above=0.0)
        self._model = compile_model(found, ["y", "J"])
        self._effort: Array = np.zeros(n)
        self._start: Array = np.tile(tree.home, (n, 1))
        self.actions = tuple(names)
        q = np.random.default_rng(0).uniform(tree.lower, tree.upper, (SAMPLES, tree.nq))
        hands = self._hand(q)
        self._size = hands.max(axis=0) - hands.min(axis=0) + 0.01
        range_ = tree.upper - tree.lower
        fastest = np.full(tree.nv, LARGEST_RATE)
        for name, (_, where) in joint_slices(tree).items():
            stated = np.array([axis.velocity for axis in found.joint(name).axes])
            fastest[where] = np.where(np.isfinite(stated), stated, LARGEST_RATE)
        self._quantities = [
            Quantity.of(
                "q",
                "rad or m",
                tree.position_names,
                tree.lower - MARGIN * range_,
                tree.upper + MARGIN * range_,
            ),
            Quantity.of("qd", "rad/s or m/s", tree.velocity_names, -fastest, fastest),
            Quantity.of("tensions", "N", names, 0.0, most),
            Quantity.of("error", "m", tuple("xyz"), -self._size, self._size),
        ]

    def _hand(self, q: Array) -> Array:
        """Return where the hand is, shape (n, 3), [m]."""
        out: Array = self._model.batch(q)["y"]
        return out

    def _place(self, rows: npt.NDArray[np.intp]) -> None:
        self.batch.reset(rows, q=self._start)

    def _act(self, actions: Array) -> None:
        shares = 0.5 * (actions + 1.0)
        self._effort = np.mean(shares**2, axis=1)
        self.batch.command(self._least + shares * self._span, kind="force")

    def _seen(self, state: BatchRobotState) -> dict[str, Array]:
        return {
            "q": state.q,
            "qd": state.qd,
            "tensions": state.tensions[:, self._columns],
            "error": self._wanted(state) - self._hand(state.q),
        }

    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        distance = np.linalg.norm(self._wanted(state) - self._hand(state.q), axis=1)
        terms = {
            "closeness": 1.0 / (1.0 + (distance / self._close) ** 2),
            "effort": 0.0 - self._effort_weight * self._effort,
        }
        return terms, np.zeros(self.n, dtype=np.bool_), {"distance": distance}

    def target(self, i: int) -> Array:
        """Return where the hand should be; see `Task`."""
        out: Array = self._wanted(self.batch.state)[i]
        return out

    @abstractmethod
    def _wanted(self, state: BatchRobotState) -> Array:
        """Return where the hand should be, shape (n, 3), [m]."""


class ReachTask(ArmTask):
    """Bring the hand to a point and hold it there; see the module for actions and reward.

    An observation has joint coordinates and velocities, tensions, and the point seen from the
    hand, in world axes. An episode begins near home, at rest; the point is where the hand is with
    joints that are drawn. It is over when the physics diverges.

    Args:
        spread: How far from home the joints are at the point, [rad] or [m].
        reached: How near counts as ``is_success`` in the information, [m].
        start_spread: How far from home the joints begin, [rad] or [m].
        n, robot, period, largest_tension, effort_weight, close, errors, threads: See `ArmTask`.
    """

    def __init__(
        self,
        n: int,
        *,
        robot: str | Robot = "roboy_arm",
        period: float = 0.02,
        largest_tension: float | None = 200.0,
        effort_weight: float = 0.1,
        close: float = 0.1,
        spread: float = 0.6,
        reached: float = 0.03,
        start_spread: float = 0.05,
        errors: Errors = EXACT,
        threads: int | None = None,
    ) -> None:
        super().__init__(
            n,
            robot=robot,
            period=period,
            largest_tension=largest_tension,
            effort_weight=effort_weight,
            close=close,
            errors=errors,
            threads=threads,
        )
        self._reached = finite_number(reached, "reached [m]", above=0.0)
        around = finite_number(start_spread, "start_spread", at_least=0.0)
        tree = self.batch.robot.tree
        spread = finite_number(spread, "spread", above=0.0)
        self._first, self._last = (
            (np.maximum(tree.lower, tree.home - far), np.minimum(tree.upper, tree.home + far))
            for far in (around, spread)
        )
        self._points: Array = np.zeros((n, 3))
        self.layout = Layout(self._quantities)

    def _draw(self, i: int, generator: np.random.Generator) -> None:
        self._start[i] = generator.uniform(*self._first)
        goal = generator.uniform(*self._last)
        self._points[i] = self._hand(goal[None])[0]

    def _begin(self, rows: npt.NDArray[np.intp], state: BatchRobotState) -> None:
        pass

    def _wanted(self, state: BatchRobotState) -> Array:
        return self._points

    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        terms, done, info = super()._judge(state)
        reached = np.asarray(info["distance"] <= self._reached)
        return terms, done, {**info, "is_success": reached}
