"""The browser view of a robot of rods that is solved in this process, in real time.

The page runs in threads of its own. What its sliders and buttons ask for is queued, and done
between two steps.
"""

from __future__ import annotations

import json
import math
import queue
import time
from collections.abc import Callable

import numpy as np

from cards_core.errors import CardsError
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_rods.messages import state_names, state_values, status_text
from cards_rods.rod_simulation import RodSimulation
from cards_viz.rods.interface import RodSnapshot
from cards_viz.rods.page import RodPage
from cards_viz.rods.state_numbers import snapshot_of

RATE = 30.0
"""Snapshots a second that are handed over, [Hz]."""


class RodSession:
    """Steps a robot of rods in real time; `cards_viz.rods.interface.RodCommands` of its page.

    Args:
        simulation: The robot under command.
        period: Time between two steps, [s]; steps that are late are left out.
        points: Of each centre line.
        port: Wanted port of the page.
        host: Address that it listens on.

    Attributes:
        page: The page.

    Raises:
        PortError: No port to listen on.
    """

    def __init__(
        self,
        simulation: RodSimulation,
        period: float,
        points: int,
        port: int,
        *,
        host: str = "127.0.0.1",
    ) -> None:
        self._simulation = simulation
        self._period = period
        self._points = points
        self._names = state_names(simulation.robot)
        self._todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._skipped = 0
        self._rate = math.nan
        self.page = RodPage(simulation.robot, self, host=host, port=port)

    def run(self, duration: float, on_time: Callable[[float], None]) -> None:
        """Step until a time [s], 0: until Ctrl-C, then close the page.

        Args:
            duration: Of the run, [s].
            on_time: Called with the time [s] as often as the page is drawn.
        """
        begin, shown, step = time.monotonic(), -math.inf, 0
        marked = (begin, 0)
        try:
            while not duration or step * self._period <= duration:
                self.serve()
                self._simulation.step(step * self._period)
                now = time.monotonic()
                if now - shown >= 1.0 / RATE:
                    shown = now
                    self.page.show(self.snapshot(step * self._period))
                    on_time(step * self._period)
                if now - marked[0] >= 1.0:
                    self._rate = (self._simulation.steps - marked[1]) / (now - marked[0])
                    marked = (now, self._simulation.steps)
                late = int((now - begin) / self._period)
                self._skipped += max(late - step - 1, 0)
                step = max(step + 1, late)
                if (rest := begin + step * self._period - now) > 0.0:
                    time.sleep(rest)
        finally:
            self.page.stop()

    def serve(self) -> None:
        """Do what was asked for."""
        while True:
            try:
                action = self._todo.get_nowait()
            except queue.Empty:
                return
            try:
                action()
            except CardsError as error:
                self.page.notify(str(error))

    def snapshot(self, now: float) -> RodSnapshot:
        """Return what there is to show at a time [s]."""
        simulation = self._simulation
        shapes = simulation.tracker.solver.shapes(simulation.solution, self._points)
        columns = (shapes.curvature, shapes.stress, shapes.strain)
        lines = np.concatenate(
            [shapes.positions, *(column[..., None] for column in columns)], axis=-1
        )
        numbers = state_values(simulation, shapes, self._rate, self._skipped)
        values = dict(zip(self._names, numbers.tolist(), strict=True))
        said = json.loads(status_text(simulation))
        return snapshot_of(now, simulation.robot.joint_names, values, said, lines)

    # Sliders and buttons, any thread ----------------------------------------------------------

    def joints(self, q: Array) -> None:
        """Go to joint coordinates, shape (n,), [m] or [rad]."""
        self._todo.put(lambda: self._simulation.command_joints((), np.asarray(q, dtype=float)))

    def pose(self, pose: Array) -> None:
        """Bring the plate to a pose in the world, shape (4, 4)."""
        place, turn = pose[:3, 3].tolist(), matrix_quaternion(pose[:3, :3]).tolist()
        self._todo.put(lambda: self._simulation.command_pose(place, turn))

    def wrench(self, wrench: Array, frame: str) -> None:
        """Load the plate, shape (6,), [N, Nm], in the axes of ``world`` or ``plate``."""
        self._todo.put(lambda: self._simulation.set_wrench(wrench, frame))

    def home(self) -> None:
        """Return to the start."""
        self._todo.put(self._simulation.home)

    def hold(self) -> None:
        """Stay here."""
        self._todo.put(self._simulation.stop)

    def restore(self) -> None:
        """Return to the shape before the rods snapped to another one."""
        self._todo.put(self._simulation.restore)

    def accept(self) -> None:
        """Go on with the shape that the rods have snapped to."""
        self._todo.put(self._simulation.accept_branch)

    def play(self, on: bool) -> None:
        """Start or end the demo motion."""
        self._todo.put(lambda: self._simulation.play(on))

    def save(self, name: str) -> None:
        """Keep the present state under a name."""
        self._todo.put(lambda: self._simulation.save(name))

    def load(self, name: str) -> None:
        """Return to a saved state."""
        self._todo.put(lambda: self._simulation.load(name))

    def delete(self, name: str) -> None:
        """Forget a saved state."""
        self._todo.put(lambda: self._simulation.states.delete(name))
