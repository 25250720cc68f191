"""A platform in cables fetches a load at one point and brings it to another.

What is modelled: winches under the impedance law of the muscles,

    T = max(T_min, T0 + K (l - l0) + B l'),     l0 = l(p),

with the prestress T0 that holds the empty platform at home, and cable lengths l(p) of the platform
at the set-point p, turned as at home. An action moves the set-point: p <- p + v_max a dt, within
the box of the points. The load is taken up when the platform is at it, within `tolerance` and
slower than `slow`, and put down at the other point likewise. While it is carried, all moving
masses are (m + m_load)/m times as large: a load fixed to the platform whose mass is spread as the
platform's is, at once as fast as that. The platform sags and swings under it. What is not
modelled: gripper, contact, and the load while it is not carried.

With the way D that remains, d from the platform to where it is to go next,

    D = d + |p_place - p_pick| before, d after the load was taken up,

the reward of a step is

    progress    by how much D has become shorter, [m]
    picked      1 when the load is taken up
    placed      2 when it is put down, which ends the episode
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_array, finite_number
from cards_core.dynamics.model_function import compile_model
from cards_core.errors import CardsError
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_learning.environments.quantities import Layout, Quantity
from cards_learning.environments.task import Errors, Flags, Task, loaded, model_errors
from cards_sim.batch import EXACT, Batch

BOX = ((-0.8, -0.6, 0.4), (0.8, 0.6, 1.2))
"""Corners of the box of IPAnema 1 in which the points are, [m]."""

APART = 0.25
"""Smallest distance of both points, as share of the diagonal of the box."""

BEYOND = 0.3
"""Range of places that is shown beyond the box, and of the way to the set-point, [m]."""

TURN = 0.5
"""Range of angles that is shown on both sides of home, [rad]."""

TURN_RATE = 2.0
"""Range of their rates, [rad/s]."""

PICKED, PLACED = 1.0, 2.0
"""Rewards."""


class PickAndPlaceTask(Task):
    """Fetch the load and bring it where it belongs; see the module for model and reward.

    An observation has coordinates and velocities of the platform, tensions, the set-point, the
    point where to go next and the one where the load belongs, all three seen from the platform,
    and whether the load is carried. An episode begins at home, at rest, with points that are
    drawn; it is over when the load is put down or the physics diverges.

    Args:
        n: How many robots.
        robot: Name, path or robot: a platform with joints along x, y, z and then further ones, in
            ideal cables.
        period: Time between two actions, [s].
        load: m_load, [kg].
        largest_speed: v_max, [m/s].
        tolerance: [m].
        slow: [m/s].
        box: Two corners of the box of the points, [m].
        stiffness: K, [N/m].
        damping: B, [N s/m].
        prestress: Mean of T0, as share of the largest tension.
        errors: How far robots are from their description, and noise of joint angles and lengths.
        threads: How many share the work.

    Raises:
        CardsError: A robot of another kind, or a number out of its range.
    """

    actions = ("x", "y", "z")

    def __init__(
        self,
        n: int,
        *,
        robot: str | Robot = "ipanema_1",
        period: float = 0.05,
        load: float = 10.0,
        largest_speed: float = 0.5,
        tolerance: float = 0.05,
        slow: float = 0.1,
        box: Sequence[Sequence[float]] = BOX,
        stiffness: float = 2e4,
        damping: float = 500.0,
        prestress: float = 0.3,
        errors: Errors = EXACT,
        threads: int | None = None,
    ) -> None:
        found = loaded(robot)
        stiffness = finite_number(stiffness, "stiffness [N/m]", at_least=0.0)
        damping = finite_number(damping, "damping [N s/m]", at_least=0.0)
        muscles = [
            replace(muscle, control=replace(muscle.control, stiffness=stiffness, damping=damping))
            for muscle in found.muscles
        ]
        found = replace(found, muscles=tuple(muscles))
        errors, of_model = model_errors(errors)
        batch = Batch(found, n, errors=of_model, threads=threads)
        super().__init__(batch, period, errors)
        if self.batch.physics != "compiled":
            raise CardsError(
                f"'{found.name}' is not stepped by generated code (expected: a platform with "
                "joints in ideal cables, e.g. ipanema_1)"
            )
        found.frame_name()  # refuses a robot without a place that counts
        tree = found.tree
        self._model = compile_model(found, ["l", "L", "G", "M", "J"])
        home = self._model.update(tree.home, np.zeros(tree.nv))
        if tree.nv < 3 or not np.allclose(home["J"][:3, :3], np.eye(3), atol=1e-9):
            raise CardsError(
                f"the first three joints of '{found.name}' do not move its operational frame "
                "along x, y and z (expected: a platform, e.g. ipanema_1)"
            )
        self._corners = finite_array(box, "box", (2, 3))
        size = self._corners[1] - self._corners[0]
        if not (size > 0.0).all():
            raise CardsError(f"box is {self._corners.tolist()} (expected: low corner first)")
        if (np.clip(tree.home[:3], *self._corners) != tree.home[:3]).any():
            raise CardsError(
                f"box is {self._corners.tolist()} (expected: one with the home of "
                f"'{found.name}' in it, {tree.home[:3].tolist()})"
            )
        self._load = 1.0 + finite_number(load, "load [kg]", above=0.0) / float(home["M"][0, 0])
        self._fastest = finite_number(largest_speed, "largest_speed [m/s]", above=0.0)
        self._tolerance = finite_number(tolerance, "tolerance [m]", above=0.0)
        self._slow = finite_number(slow, "slow [m/s]", above=0.0)
        share = finite_number(prestress, "prestress", at_least=0.0, at_most=1.0)
        low = np.array([muscle.tension_min for muscle in found.muscles])
        high = np.array([muscle.tension_max for muscle in found.muscles])
        mean = low + share * (high - low)
        # of all tensions that hold the platform those nearest to the mean
        missing = home["G"] + home["L"].T @ mean
        self._prestress = np.clip(mean - np.linalg.pinv(home["L"].T) @ missing, low, high)
        self._set_points: Array = np.tile(tree.home, (n, 1))
        self._pick: Array = np.zeros((n, 3))
        self._put: Array = np.zeros((n, 3))
        self._carrying: Flags = np.zeros(n, dtype=np.bool_)
        self._before: Array = np.zeros(n)
        places = (self._corners[0] - BEYOND, self._corners[1] + BEYOND)
        turns = tree.home[3:]
        fastest = np.where(np.arange(tree.nv) < 3, 2.0 * self._fastest, TURN_RATE)
        across = size + 2.0 * BEYOND
        names = [muscle.name for muscle in found.muscles]
        self.layout = Layout(
            [
                Quantity.of(
                    "q",
                    "m or rad",
                    tree.position_names,
                    np.concatenate([places[0], turns - TURN]),
                    np.concatenate([places[1], turns + TURN]),
                ),
                Quantity.of("qd", "m/s or rad/s", tree.velocity_names, -fastest, fastest),
                Quantity.of("tensions", "N", names, 0.0, high),
                Quantity.of("set_point", "m", tuple("xyz"), -BEYOND, BEYOND),
                Quantity.of("next", "m", tuple("xyz"), -across, across),
                Quantity.of("place", "m", tuple("xyz"), -across, across),
                Quantity.of("carrying", "", ("carrying",), 0.0, 1.0),
            ]
        )

    def _draw(self, i: int, generator: np.random.Generator) -> None:
        low, high = self._corners
        least = APART * np.linalg.norm(high - low)
        self._pick[i] = self._put[i] = generator.uniform(low, high)
        while np.linalg.norm(self._put[i] - self._pick[i]) < least:
            self._put[i] = generator.uniform(low, high)

    def _place(self, rows: npt.NDArray[np.intp]) -> None:
        self._carrying[rows] = False
        self._set_points[rows] = self.batch.robot.tree.home
        self.batch.reset(rows)

    def _begin(self, rows: npt.NDArray[np.intp], state: BatchRobotState) -> None:
        pass

    def _act(self, actions: Array) -> None:
        self._before = self._next_distance(self.batch.state)
        moved = self._set_points[:, :3] + self._fastest * self.period * actions
        self._set_points[:, :3] = np.clip(moved, *self._corners)
        lengths = self._model.batch(self._set_points)["l"]
        self.batch.command(self._prestress, rest_lengths=lengths)

    def target(self, i: int) -> Array:
        """Return where the platform is to go next; see `Task`."""
        out: Array = self._next()[i]
        return out

    def _next(self) -> Array:
        """Return where each is to go next, shape (n, 3), [m]."""
        return np.where(self._carrying[:, None], self._put, self._pick)

    def _next_distance(self, state: BatchRobotState) -> Array:
        out: Array = np.linalg.norm(self._next() - state.q[:, :3], axis=1)
        return out

    def _judge(
        self, state: BatchRobotState
    ) -> tuple[dict[str, Array], Flags, dict[str, npt.NDArray[Any]]]:
        distance = self._next_distance(state)
        speed = np.linalg.norm(state.qd[:, :3], axis=1)
        there = (distance <= self._tolerance) & (speed <= self._slow) & ~state.diverged
        placed, picked = there & self._carrying, there & ~self._carrying
        self._carrying = self._carrying | picked
        if picked.any():
            self.batch.scale_masses(np.where(self._carrying, self._load, 1.0))
        terms = {
            "progress": self._before - distance,
            "picked": PICKED * picked,
            "placed": PLACED * placed,
        }
        info = {"carrying": self._carrying.copy(), "is_success": placed}
        return terms, placed, info

    def _seen(self, state: BatchRobotState) -> dict[str, Array]:
        at = state.q[:, :3]
        return {
            "q": state.q,
            "qd": state.qd,
            "tensions": state.tensions,
            "set_point": self._set_points[:, :3] - at,
            "next": self._next() - at,
            "place": self._put - at,
            "carrying": self._carrying[:, None].astype(float),
        }
