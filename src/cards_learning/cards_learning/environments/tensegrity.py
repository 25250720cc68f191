"""Tensegrity locomotion: cables that pull a structure over the ground.

An action sets v0 of the impedance law of each cable, as a pattern generator does
(`cards_core.control.cpg.controller`); l0 is the length at home, T0 constant:

    T = max(T_floor, T0 + K (l - l0) + B (l' - v0)),     v0 = a v_max

v_max is the speed of the cable's winch. With p_k, the place of the centre of mass in the plane
after k periods, and the lengths l and tensions T of the cables, the reward of a step is

    distance   |p_k - p_0| - |p_{k-1} - p_0|          [m]: sums up to the distance of the episode
    work       -w sum T_{k-1} max(0, l_{k-1} - l_k)   w: `work_weight` [1/J]; shortening costs,
                                                      lengthening is free

the measures ``distance`` and ``work_ideal`` of `cards_learning.measures` for steps of a period.
The weight w = c/(m g) makes the sum of an episode, over its distance, 1 - c COT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_number
from cards_core.control.set_points import told_muscles
from cards_core.dynamics.batch import BatchKernels
from cards_core.dynamics.symbolic import symbolic_kernels
from cards_core.errors import CardsError
from cards_core.paths.layout import fingerprint
from cards_core.robot.actuators import Cable
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_learning.environments.quantities import Layout, Quantity
from cards_learning.environments.task import Errors, Flags, Task, loaded, model_errors
from cards_sim.batch import EXACT, Batch

LENGTHS = (0.5, 1.5)
"""Range of lengths that is shown, as shares of those at home."""

ROOM = 2.0
"""Range of places of bodies that is shown, as multiple of the structure's radius at home."""

LARGEST_SPEED = 1.0
"""Range of speeds of the centre of mass that is shown, [m/s]."""

NO_WAY = 1e-3
"""A way shorter than this has no direction, [m]."""


class TensegrityTask(Task):
    """Get far, in any direction; see the module for actions and reward.

    An observation has, for every cable, length, rate and tension; the place of each link's centre
    of mass from that of the structure, in world axes; the velocity of the latter during the last
    period; and the direction of the way from the begin, zero if there is none. An episode begins
    at home, with velocities that are drawn; it is over when the physics diverges.

    Args:
        n: How many robots.
        robot: Name, path or robot, of links and cables that take the impedance law.
        muscles: Patterns of names of the commanded muscles; the others stay as they
            were built.
        terrain: What they stand on (`cards_core.robot.terrain`).
        period: Time between two actions, [s].
        perturbation: Largest random velocity at time zero, [m/s, rad/s].
        tension: T0, [N].
        largest_rate: v_max of all cables, [m/s]; as their winches have it if None.
        work_weight: w, [1/J].
        errors: How far robots are from their description, and noise of joint angles and lengths.
        threads: How many share the work.

    Raises:
        CardsError: A cable without a winch speed and no `largest_rate`, a pattern without a
            cable, or a number out of its range.
    """

    def __init__(
        self,
        n: int,
        *,
        robot: str | Robot = "tetrahedral_6",
        muscles: Sequence[str] = ("*",),
        terrain: str = "flat:friction=0.5",
        period: float = 0.05,
        perturbation: float = 0.01,
        tension: float = 0.0,
        largest_rate: float | None = None,
        work_weight: float = 0.0,
        errors: Errors = EXACT,
        threads: int | None = None,
    ) -> None:
        found = loaded(robot)
        errors, of_model = model_errors(errors)
        batch = Batch(found, n, terrain=terrain, errors=of_model, threads=threads)
        super().__init__(batch, period, errors)
        told = told_muscles(found, muscles)
        names = [muscle.name for muscle in told]
        order = [muscle.name for muscle in found.muscles]
        self._columns = np.array([order.index(name) for name in names], dtype=np.intp)
        self._perturbation = finite_number(perturbation, "perturbation", at_least=0.0)
        self._work_weight = finite_number(work_weight, "work_weight [1/J]", at_least=0.0)
        self._tension = np.full(len(told), finite_number(tension, "tension [N]", at_least=0.0))
        self._fastest = np.array(
            [_speed(muscle.name, muscle.actuator, largest_rate) for muscle in told]
        )
        tree = found.tree
        self._poses = BatchKernels(
            fingerprint(tree), lambda name: symbolic_kernels().robot_kernel(found, name)
        )
        masses = np.array([link.inertia.mass for link in found.links])
        self._weights = masses / masses.sum()
        self._coms = np.array([link.inertia.com for link in found.links])
        self._rates: Array = np.zeros((n, tree.nv))
        state = self.batch.state
        self._home = state.muscle_lengths[0, self._columns]
        places = self._centres(state.q[:1])[0]
        radius = float(np.linalg.norm(places - self._weights @ places, axis=1).max(initial=0.0))
        links = [f"{link.name}.{axis}" for link in found.links for axis in "xyz"]
        self.actions = tuple(names)
        self.layout = Layout(
            [
                Quantity.of(
                    "lengths", "m", names, LENGTHS[0] * self._home, LENGTHS[1] * self._home
                ),
                Quantity.of("rates", "m/s", names, -2.0 * self._fastest, 2.0 * self._fastest),
                Quantity.of("tensions", "N", names, 0.0, [m.tension_max for m in told]),
                Quantity.of("links", "m", links, -ROOM * radius - 0.01, ROOM * radius + 0.01),
                Quantity.of("velocity", "m/s", tuple("xyz"), -LARGEST_SPEED, LARGEST_SPEED),
                Quantity.of("way", "", tuple("xy"), -1.0, 1.0),
            ]
        )
        self._first: Array = np.zeros((n, 3))
        self._place_now: Array = np.zeros((n, 3))
        self._velocity: Array = np.zeros((n, 3))
        self._lengths: Array = np.zeros((n, len(names)))
        self._tensions: Array = np.zeros((n, len(names)))

    def _centres(self, q: Array) -> Array:
        """Return the links' centres of mass, shape (n, links, 3), [m]."""
        poses = self._poses.evaluate("link_poses", [q])["link_poses"]
        turned = np.einsum("nlij,lj->nli", poses[:, :, :3, :3], self._coms)
        out: Array = turned + poses[:, :, :3, 3]
        return out

    def _centre(self, q: Array) -> Array:
        out: Array = np.einsum("l,nlj->nj", self._weights, self._centres(q))
        return out

    def _draw(self, i: int, generator: np.random.Generator) -> None:
        limit = self._perturbation
        self._rates[i] = generator.uniform(-limit, limit, self._rates.shape[1])

    def _place(self, rows: npt.NDArray[np.intp]) -> None:
        self.batch.reset(rows, qd=self._rates)

    def _begin(self, rows: npt.NDArray[np.intp], state: BatchRobotState) -> None:
        self._first[rows] = self._place_now[rows] = self._centre(state.q)[rows]
        self._velocity[rows] = 0.0
        self._take(rows, state)

    def _take(self, rows: npt.NDArray[Any] | slice, state: BatchRobotState) -> None:
        self._lengths[rows] = state.muscle_lengths[rows][:, self._columns]
        self._tensions[rows] = state.tensions[rows][:, self._columns]

    def _act(self, actions: Array) -> None:
        self.batch.command(
            self._tension,
            rest_lengths=self._home,
            rest_rates=actions * self._fastest,
            muscles=self.actions,
        )

    def _seen(self, state: BatchRobotState) -> dict[str, Array]:
        places = self._centres(state.q)
        centre = np.einsum("l,nlj->nj", self._weights, places)
        way = centre[:, :2] - self._first[:, :2]
        length = np.hypot(way[:, :1], way[:, 1:])
        return {
            "lengths": state.muscle_lengths[:, self._columns],
            "rates": state.muscle_rates[:, self._columns],
            "tensions": state.tensions[:, self._columns],
            "links": (places - centre[:, None]).reshape(self.n, -1),
            "velocity": self._velocity,
            "way": np.where(length > NO_WAY, way / np.maximum(length, NO_WAY), 0.0),
        }

    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        centre = self._centre(state.q)
        before = self._distance(self._place_now)
        after = self._distance(centre)
        self._velocity = (centre - self._place_now) / self.period
        self._place_now = centre
        shorter = np.maximum(self._lengths - state.muscle_lengths[:, self._columns], 0.0)
        work = np.sum(self._tensions * shorter, axis=1)
        self._take(slice(None), state)
        terms = {"distance": after - before, "work": 0.0 - self._work_weight * work}
        info: dict[str, npt.NDArray[Any]] = {"distance": after, "work": work}
        return terms, np.zeros(self.n, dtype=np.bool_), info

    def _distance(self, place: Array) -> Array:
        out: Array = np.hypot(*(place - self._first)[:, :2].T)
        return out


def _speed(name: str, actuator: object, largest_rate: float | None) -> float:
    """Return v_max of a muscle, [m/s]."""
    if largest_rate is not None:
        return finite_number(largest_rate, "largest_rate [m/s]", above=0.0)
    speed = actuator.winch_speed if isinstance(actuator, Cable) else None
    if speed is None:
        raise CardsError(
            f"muscle '{name}' has no winch whose speed is known (expected: winch_speed in the "
            "description, largest_rate, or muscles without it)"
        )
    return float(speed)
