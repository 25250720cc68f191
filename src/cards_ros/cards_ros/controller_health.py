"""What a controller node says about itself on ``/diagnostics``."""

from __future__ import annotations

import math
import time
from typing import Protocol

import numpy as np
from rclpy.node import Node

from cards_core.control import ControlOutput, ControlStatus
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.model_topic import ModelTopic

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


class ControllerView(Protocol):
    """What is looked at.

    Attributes:
        enabled: Whether states are answered.
        problem: Why states cannot be answered, if so.
        log_failure: Why the log stopped, if it did.
        refusal: Why the models do not allow to command, if so.
        unready: Name of the host that obeys no commands now, if so.
        models: What this and other nodes say of their models.
    """

    enabled: bool
    problem: str
    log_failure: str
    refusal: str
    unready: str
    models: ModelTopic

    @property
    def missed(self) -> int:
        """States that came and went without an answer."""
        ...

    @property
    def output(self) -> ControlOutput:
        """How the controller came to its last command."""
        ...

    @property
    def state_timeout(self) -> float:
        """Real time without states after which that is an error, [s]."""
        ...


class ControllerHealth:
    """Reports the statuses ``states``, ``control``, ``loop`` and ``model``.

    Args:
        node: The node that publishes.
        view: What is looked at; often the node itself.
        robot: Name of the robot.
    """

    def __init__(self, node: Node, view: ControllerView, robot: str) -> None:
        self._logger = node.get_logger()
        self._view = view
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
        out = self._view.output
        if out.status is not ControlStatus.OK:
            self._not_ok += 1
            self._worst = max(self._worst, out.status)
            self._residual = max(self._residual, out.residual)

    def update(self) -> None:
        """Look at the node and publish if something changed or a second is over."""
        now = time.monotonic()
        self._report_states(now)
        self._report_control()
        self._view.models.report(self._diagnostics["model"])
        if now - self._time >= 1.0:
            self._report_loop(now)
        self._diagnostics.update()

    def _report_states(self, now: float) -> None:
        view, status = self._view, self._diagnostics["states"]
        age = now - self._came
        if not math.isfinite(age):
            status.report(Level.WARN, "waiting for joint_states")
        elif age > view.state_timeout:
            text = f"no joint_states for {view.state_timeout:g} s: no commands"
            if status.report(Level.ERROR, text):
                self._logger.warning(text)
        elif view.problem:
            status.report(Level.ERROR, view.problem)
        else:
            status.ok()

    def _report_control(self) -> None:
        """Report the worst status since the last regular message at once."""
        view, status = self._view, self._diagnostics["control"]
        if view.log_failure:
            status.report(Level.ERROR, view.log_failure)
        elif not view.enabled:
            status.report(Level.WARN, _DISABLED)
        elif view.refusal:
            status.report(Level.WARN, _OTHER_MODEL)
        elif view.unready:
            status.report(Level.WARN, _UNREADY.format(view.unready))
        elif _LEVELS[self._worst] >= status.level and self._worst is not ControlStatus.OK:
            status.report(_LEVELS[self._worst], _TEXTS[self._worst])
        elif status.message in (_DISABLED, _OTHER_MODEL) or status.message.startswith("waiting"):
            status.ok()

    def _report_loop(self, now: float) -> None:
        view, loop, control = self._view, self._diagnostics["loop"], self._diagnostics["control"]
        used = self._durations[: min(self._count, _DURATIONS)]
        p50, p99 = np.percentile(used, (50, 99)) if used.size else (math.nan, math.nan)
        loop.values.update(
            rate_hz=self._count / (now - self._time),
            loop_p50_us=float(p50),
            loop_p99_us=float(p99),
            missed_deadlines=view.missed,
        )
        new = view.missed - self._missed
        share = new / max(new + self._count, 1)
        if share > 0.05:
            loop.report(Level.WARN, "more than 5 % of the states are not answered in time")
        else:
            loop.ok()
        control.values.update(steps_not_ok=self._not_ok, residual_max=self._residual)
        commands = view.enabled and not view.refusal and not view.unready
        if commands and self._worst is ControlStatus.OK and not view.log_failure:
            control.ok()
        self._time, self._count, self._missed = now, 0, view.missed
        self._worst, self._not_ok, self._residual = ControlStatus.OK, 0, 0.0
