"""What the simulator node says about itself on ``/diagnostics``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.stamps import seconds

if TYPE_CHECKING:
    from cards_sim.simulator_node import SimulatorNode

ANSWER_PATIENCE = 1.0
"""Real time after which a missing answer in lockstep is an error, [s]."""

REFUSAL_SHOWN = 2.0
"""Real time for which a refused command stays in the diagnostics, [s]."""


class Health:
    """Reports the statuses ``world``, ``commands`` and ``loop``.

    Args:
        node: The simulator node, whose public attributes are read.
        robot: Name of the robot.
    """

    def __init__(self, node: SimulatorNode, robot: str) -> None:
        self._node = node
        self._diagnostics = Diagnostics(node, robot, ("world", "commands", "loop"))
        self._refused_at = -REFUSAL_SHOWN
        self._time = self._progress = time.monotonic()
        self._steps = self._seen = 0
        self._samples = 0

    def refused(self, reason: str) -> None:
        """Note that a command was refused; warns once while refusals go on."""
        now = time.monotonic()
        if now - self._refused_at > REFUSAL_SHOWN:
            self._node.get_logger().warning(reason)
        self._refused_at = now

    def update(self) -> None:
        """Look at the node and publish if something changed or a second is over."""
        now = time.monotonic()
        if self._node.steps != self._seen:
            self._seen = self._node.steps
            self._progress = now
        self._report_world()
        self._report_commands(now)
        self._report_loop(now)
        self._diagnostics.update()

    def _report_world(self) -> None:
        node, world = self._node, self._diagnostics["world"]
        state = node.host.state
        world.values.update(time=seconds(node.host.stamp), mode=node.mode, contacts=state.contacts)
        if node.failure is not None:
            world.report(Level.ERROR, str(node.failure))
        elif node.log_failure:
            world.report(Level.ERROR, node.log_failure)
        elif node.paused:
            world.report(Level.WARN, "paused")
        else:
            world.ok("waiting for a command" if node.waiting and not node.steps else "running")

    def _report_commands(self, now: float) -> None:
        node, status = self._node, self._diagnostics["commands"]
        gate = node.host.command
        status.values.update(accepted=gate.accepted, refused=gate.refused)
        if gate.stopped:
            status.report(Level.ERROR, "emergency stop: tensions at their minimum until sim/reset")
        elif now - self._refused_at < REFUSAL_SHOWN and gate.last_refusal is not None:
            status.report(Level.WARN, f"command refused: {gate.last_refusal}")
        elif not node.steps:
            status.report(Level.WARN, "waiting for the first command")
        elif node.mode == "lockstep" and node.waiting and now - self._progress > ANSWER_PATIENCE:
            self._complain(
                f"no answer to the state of t = {seconds(node.host.stamp):g} s: the world waits"
            )
        elif node.mode != "lockstep" and gate.stale:
            names = ", ".join(gate.stale_muscles) or "all muscles"
            self._complain(f"no valid command for {gate.timeout:g} s: {names} at minimum tension")
        else:
            status.ok()

    def _complain(self, text: str) -> None:
        # the log gets it once, the diagnostics as long as it lasts
        if self._diagnostics["commands"].report(Level.ERROR, text):
            self._node.get_logger().warning(text)

    def _report_loop(self, now: float) -> None:
        node, loop = self._node, self._diagnostics["loop"]
        loop.values.update(
            missed_deadlines=node.pacer.overruns, dropped_deadlines=node.pacer.dropped
        )
        if now - self._time < 1.0:
            return
        rate = max(0, node.steps - self._steps) / (now - self._time)
        self._time, self._steps = now, node.steps
        factor = rate * node.host.simulator.dt
        loop.values.update(step_rate_hz=rate, realtime_factor=factor)
        self._samples = self._samples + 1 if node.running else 0
        wanted = float(node.parameters["speed"])
        # the first second of a run is shorter than a second
        if node.mode == "realtime" and self._samples > 1 and factor < 0.95 * wanted:
            loop.report(Level.WARN, f"slower than {wanted:g} times real time")
        else:
            loop.ok()
