"""Health of the node ``rod_solver`` on ``/diagnostics``."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node

from cards_core.rods.status import RodStatus
from cards_rods.rod_simulation import RodSimulation
from cards_ros.diagnostics import Diagnostics, Level

STATUSES = ("robot", "commands", "loop")

SHOW_REFUSED = 2.0
"""How long a refused command is shown, [s]."""

_WINDOW = 512

_LEVELS = {
    RodStatus.OK: Level.OK,
    RodStatus.MOVING: Level.OK,
    RodStatus.NEAR_LIMIT: Level.WARN,
    RodStatus.BRANCH_CHANGED: Level.WARN,
    RodStatus.YIELD: Level.WARN,
    RodStatus.AMBIGUOUS: Level.WARN,
    RodStatus.LIMIT: Level.WARN,
    RodStatus.UNREACHABLE: Level.WARN,
}
"""All other statuses are errors: there is no equilibrium that may be acted upon."""


class RodHealth:
    """Reports robot, commands and loop; counts steps that were left out.

    Args:
        node: The node.
        simulation: The robot under command.
        period: Of the steps, [s].

    Attributes:
        skipped: Steps left out since the start because others took too long.
        rate_hz: Steps per second.
    """

    def __init__(self, node: Node, simulation: RodSimulation, period: float) -> None:
        self._simulation = simulation
        self._period = period
        self._statuses = Diagnostics(node, simulation.robot.name, STATUSES)
        self._times = np.zeros(_WINDOW)
        self._steps = 0
        self._begin, self._counted = time.monotonic(), 0
        self.skipped = self._skipped_before = 0
        self.rate_hz = 0.0
        self._refusals, self._refused_at = 0, -np.inf

    def stepped(self, skipped: int) -> None:
        """Count a step, and those that were left out before it."""
        self._times[self._steps % _WINDOW] = self._simulation.step_us
        self._steps += 1
        self.skipped += skipped

    def update(self, now: float) -> None:
        """Publish if something changed or a second is over."""
        self._robot()
        self._commands(now)
        if now - self._begin >= 1.0:
            self.rate_hz = (self._steps - self._counted) / (now - self._begin)
            self._begin, self._counted = now, self._steps
            self._loop()
        self._statuses.update()

    def _robot(self) -> None:
        result, status = self._simulation.result, self._statuses["robot"]
        solution = self._simulation.solution
        level = _LEVELS.get(result.status, Level.ERROR)
        text = result.message or ("moving" if self._simulation.moving else "ok")
        status.report(
            level,
            text if level is Level.OK else f"{result.status.name}: {text}",
            held=result.held,
            mode=self._simulation.mode,
            min_eigenvalue=float(result.min_eigenvalue),
            start_eigenvalue=float(result.reference_eigenvalue),
            condition=float(solution.condition),
            residual=float(solution.residual),
            remaining=float(result.remaining.fraction),
        )

    def _commands(self, now: float) -> None:
        simulation, status = self._simulation, self._statuses["commands"]
        if simulation.refusals != self._refusals:
            self._refusals, self._refused_at = simulation.refusals, now
        if simulation.refused and now - self._refused_at < SHOW_REFUSED:
            status.report(
                Level.WARN, f"refused: {simulation.refused}", refused=simulation.refusals
            )
        else:
            status.ok("demo motion" if simulation.playing else "ok", refused=simulation.refusals)

    def _loop(self) -> None:
        recent = self._times[: min(self._steps, _WINDOW)]
        p50, p99 = np.percentile(recent, [50.0, 99.0]) if recent.size else (0.0, 0.0)
        late = self.skipped - self._skipped_before
        self._skipped_before = self.skipped
        values: dict[str, object] = {
            "rate_hz": float(self.rate_hz),
            "step_p50_us": float(p50),
            "step_p99_us": float(p99),
            "solve_us": 1e6 * float(self._simulation.solution.time_s),
            "iterations": int(self._simulation.solution.iterations),
            "skipped": self.skipped,
        }
        status = self._statuses["loop"]
        status.values.update(values)
        if late:
            status.report(
                Level.WARN,
                f"steps take longer than {1e3 * self._period:.3g} ms: some were left out",
            )
        else:
            status.ok()
