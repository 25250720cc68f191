"""An arm that muscles pull follows a path with its hand, e.g. a flower, again and again.

Actions and reward are those of `cards_learning.environments.arm`; where the hand should be is
y(t_0 + t) of a reference, which starts again when it ends. t_0 is drawn among the times that are
multiples of the period and at which the arm can be there, where it begins, at rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_number
from cards_core.dynamics.model_function import CompiledModel
from cards_core.errors import CardsError
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.model import Robot, Tree
from cards_core.trajectories.library import read_reference
from cards_core.typing import Array
from cards_learning.environments.arm import ArmTask
from cards_learning.environments.quantities import Layout, Quantity
from cards_learning.environments.task import Errors, Flags
from cards_sim.batch import EXACT

STARTS = 64
"""Places of the path at which an episode may begin."""

MISS = 1e-3
"""How far from its place the hand may begin, [m]."""

ITERATIONS = 300
"""Of the search for postures."""

DAMPING = 0.02
"""Of its steps, as length of the hand's way per rad or m, [m]."""

MIDDLE = 0.05
"""Share of the way to the middle of the joints' ranges in a step, where it moves no hand."""


class TrackingTask(ArmTask):
    """Follow a path with the hand; see the module.

    An observation has joint coordinates and velocities, tensions, where the hand should be and
    where a while later, seen from the hand, and the velocity that it should have, in world axes.
    It is over when the physics diverges.

    Args:
        reference: Name in the trajectory file; in operational space.
        reference_file: Trajectory file, or the name of one; the robot's own if empty.
        ahead: How much later the second point is, [s].
        n, robot, period, largest_tension, effort_weight, close, errors, threads: See `ArmTask`.

    Raises:
        CardsError: As `ArmTask`; or there is no such reference, it is of another space, or no
            place of it can be reached.
    """

    def __init__(
        self,
        n: int,
        *,
        robot: str | Robot = "roboy_arm",
        reference: str = "flower",
        reference_file: str = "",
        period: float = 0.02,
        largest_tension: float | None = 200.0,
        effort_weight: float = 0.1,
        close: float = 0.05,
        ahead: float = 0.2,
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
        tree = self.batch.robot.tree
        path = read_reference(
            reference,
            reference_file,
            self.batch.robot,
            tree,
            space="operational",
            operational_size=3,
        )
        ahead = finite_number(ahead, "ahead [s]", at_least=0.0, at_most=path.duration)
        count = max(1, round(path.duration / self.period))
        times: Array = self.period * np.arange(count, dtype=np.float64)
        self._path, self._velocity, _ = path.sample(times)
        self._later = round(ahead / self.period)
        self._now: npt.NDArray[np.intp] = np.zeros(n, dtype=np.intp)
        starts = np.unique(np.linspace(0, count - 1, STARTS).astype(np.intp))
        found, misses = postures(self._model, tree, self._path[starts])
        good = misses <= MISS
        if not good.any():
            raise CardsError(
                f"the hand of '{self.batch.robot.name}' gets nowhere to reference '{reference}', "
                f"at best within {misses.min():.3g} m (expected: a path within its reach)"
            )
        self._starts, self._postures = starts[good], found[good]
        speed = max(float(np.abs(self._velocity).max()), 1e-3)
        self.layout = Layout(
            [
                *self._quantities,
                Quantity.of("ahead", "m", tuple("xyz"), -self._size, self._size),
                Quantity.of("velocity", "m/s", tuple("xyz"), -speed, speed),
            ]
        )

    def _draw(self, i: int, generator: np.random.Generator) -> None:
        chosen = generator.integers(len(self._starts))
        self._now[i], self._start[i] = self._starts[chosen], self._postures[chosen]

    def _begin(self, rows: npt.NDArray[np.intp], state: BatchRobotState) -> None:
        pass

    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        self._now = (self._now + 1) % len(self._path)
        return super()._judge(state)

    def _wanted(self, state: BatchRobotState) -> Array:
        out: Array = self._path[self._now]
        return out

    def _seen(self, state: BatchRobotState) -> dict[str, Array]:
        seen = super()._seen(state)
        later = self._path[(self._now + self._later) % len(self._path)]
        seen["ahead"] = seen["error"] + later - self._path[self._now]
        seen["velocity"] = self._velocity[self._now]
        return seen


def postures(model: CompiledModel, tree: Tree, points: Array) -> tuple[Array, Array]:
    """Return joint coordinates with the hand at points, within the limits of the joints.

    Damped steps of least squares from home, cut off at the limits, with a pull to the middle m of
    the ranges in the null space of J [Siciliano2009]_ (section 3.5):

        q <- q + J^+ (y - y(q)) + (1 - J^+ J) c (m - q),     J^+ = J' (J J' + k^2)^-1

    Args:
        model: Gives y and J.
        tree: Of joints that have limits and one coordinate each.
        points: y, shape (n, 3), [m].

    Returns:
        q, shape (n, nq), and the distance of the hand from the points, shape (n,), [m].
    """
    q = np.tile(tree.home, (len(points), 1))
    middle, free = 0.5 * (tree.lower + tree.upper), np.eye(tree.nv)
    for step in range(ITERATIONS):
        values = model.batch(q)
        jacobian = values["J"][:, :3]
        turned = np.swapaxes(jacobian, 1, 2)
        inverse = turned @ np.linalg.inv(jacobian @ turned + DAMPING**2 * np.eye(3))
        share = MIDDLE * (1.0 - step / ITERATIONS)
        pull = (free - inverse @ jacobian) @ (share * (middle - q))[:, :, None]
        q = q + (inverse @ (points - values["y"])[:, :, None] + pull)[:, :, 0]
        q = np.clip(q, tree.lower, tree.upper)
    return q, np.linalg.norm(points - model.batch(q)["y"], axis=1)
