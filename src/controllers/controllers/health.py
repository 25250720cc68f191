"""What a controller node says about itself on ``/diagnostics``."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from cards_core.control import ControlStatus
from cards_ros.diagnostics import Diagnostics, Level

if TYPE_CHECKING:
    from controllers.controller_node import ControllerNode

_LEVELS = {
    ControlStatus.OK: Level.OK,
    ControlStatus.JOINT_LIMIT: Level.WARN,
    ControlStatus.INFEASIBLE: Level.WARN,
    ControlStatus.FALLBACK: Level.ERROR,
    ControlStatus.INVALID_STATE: Level.ERROR,
}
_TEXTS = {
    ControlStatus.JOINT_LIMIT: "the task gives way to a joint limit",
    ControlStatus.INFEASIBLE: "tensions within their limits cannot do what is asked",
    ControlStatus.FALLBACK: "the QP solver failed and a substitute is used",
    ControlStatus.INVALID_STATE: "state, reference or model is not finite: minimum tensions",
}
_DISABLED, _OTHER_MODEL = "disabled", "no commands: another node has another model"
_UNREADY = "waiting until {} is active"
_DURATIONS = 4096  # loop durations kept for the percentiles of a second


class Health:
    """Reports the statuses ``states``, ``control``, ``loop`` and ``model``.

    Args:
        node: The controller node, whose public attributes are read.
        robot: Name of the robot.
    """

    def __init__(self, node: ControllerNode, robot: str) -> None:
        self._node = node
        self._diagnostics = Diagnostics(node, robot, ("states", "control", "loop", "model"))
        self._came = -math.inf
        self._durations = np.zeros(_DURATIONS)
        self._count = 0
        self._worst = ControlStatus.OK
        self._residual = 0.0
        self._not_ok = 0
        self._missed = 0
        self._time = time.monotonic()

    def state_came(self) -> None:
        """Note that a state came."""
        self._came = time.monotonic()

    def answered(self, duration: float) -> None:
        """Note an answer that took ``duration`` [us]."""
        self._durations[self._count % _DURATIONS] = duration
        self._count += 1
        out = self._node.controller.output
        if out.status is not ControlStatus.OK:
            self._not_ok += 1
            self._worst = max(self._worst, out.status)
            self._residual = max(self._residual, out.residual)

    def update(self) -> None:
        """Look at the node and publish if something changed or a second is over."""
        now = time.monotonic()
        self._report_states(now)
        self._report_control()
        self._node.models.report(self._diagnostics["model"])
        if now - self._time >= 1.0:
            self._report_loop(now)
        self._diagnostics.update()

    def _report_states(self, now: float) -> None:
        node, status = self._node, self._diagnostics["states"]
        age = now - self._came
        if not math.isfinite(age):
            status.report(Level.WARN, "waiting for joint_states")
        elif age > float(node.parameters["state_timeout"]):
            text = f"no joint_states for {node.parameters['state_timeout']:g} s: no commands"
            if status.report(Level.ERROR, text):
                node.get_logger().warning(text)
        elif node.problem:
            status.report(Level.ERROR, node.problem)
        else:
            status.ok()

    def _report_control(self) -> None:
        """Report the worst status since the last regular message at once."""
        node, status = self._node, self._diagnostics["control"]
        if node.log_failure:
            status.report(Level.ERROR, node.log_failure)
        elif not node.enabled:
            status.report(Level.WARN, _DISABLED)
        elif node.refusal:
            status.report(Level.WARN, _OTHER_MODEL)
        elif node.unready:
            status.report(Level.WARN, _UNREADY.format(node.unready))
        elif _LEVELS[self._worst] >= status.level and self._worst is not ControlStatus.OK:
            status.report(_LEVELS[self._worst], _TEXTS[self._worst])
        elif status.message in (_DISABLED, _OTHER_MODEL) or status.message.startswith("waiting"):
            status.ok()

    def _report_loop(self, now: float) -> None:
        node, loop, control = self._node, self._diagnostics["loop"], self._diagnostics["control"]
        used = self._durations[: min(self._count, _DURATIONS)]
        p50, p99 = np.percentile(used, (50, 99)) if used.size else (math.nan, math.nan)
        loop.values.update(
            rate_hz=self._count / (now - self._time),
            loop_p50_us=float(p50),
            loop_p99_us=float(p99),
            missed_deadlines=node.missed,
        )
        new = node.missed - self._missed
        share = new / max(new + self._count, 1)
        if share > 0.05:
            loop.report(Level.WARN, "more than 5 % of the states are not answered in time")
        else:
            loop.ok()
        control.values.update(steps_not_ok=self._not_ok, residual_max=self._residual)
        commands = node.enabled and not node.refusal and not node.unready
        if commands and self._worst is ControlStatus.OK and not node.log_failure:
            control.ok()
        self._time, self._count, self._missed = now, 0, node.missed
        self._worst, self._not_ok, self._residual = ControlStatus.OK, 0, 0.0
