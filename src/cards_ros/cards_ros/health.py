"""What simulators and controllers of muscles say about themselves on ``/diagnostics``."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from rclpy.node import Node

from cards_core.control import ControlOutput, ControlStatus
from cards_core.loop.host import ANSWERED_MODES, Host
from cards_core.loop.verdict import Ending, HostFacts, judge
from cards_core.muscles.command import MuscleCommand
from cards_core.stamps import seconds
from cards_ros.diagnostics import Diagnostics, Level, tell
from cards_ros.model_topic import ModelTopic

ANSWER_PATIENCE = 1.0
"""Real time after which a missing answer in lockstep is an error, [s]."""

REFUSAL_SHOWN = 2.0
"""Real time for which a refused command stays in the diagnostics, [s]."""


class HostView(Protocol):
    """How time passes for a host."""

    @property
    def mode(self) -> str:
        """How time advances, see `cards_core.loop.host.MODES`."""
        ...

    @property
    def steps(self) -> int:
        """Steps done since the last reset."""
        ...

    @property
    def paused(self) -> bool:
        """Whether the simulation is paused."""
        ...

    @property
    def failure(self) -> Exception | None:
        """Why the world stopped, if it did."""
        ...

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        ...

    @property
    def path_failures(self) -> int:
        """Muscle contacts that could not be solved since the last reset."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether time stands still until a command comes."""
        ...

    @property
    def running(self) -> bool:
        """Whether time advances."""
        ...

    @property
    def wanted_speed(self) -> float:
        """Simulated time per real time that is to be reached; 0: none in particular."""
        ...

    def world_values(self) -> Mapping[str, object]:
        """Return what else to show of the world."""
        ...

    def loop_values(self) -> Mapping[str, object]:
        """Return what else to show of the loop."""
        ...


class HostHealth:
    """Reports the statuses ``world``, ``commands``, ``loop`` and ``model``.

    Args:
        node: The node that publishes.
        host: The host.
        view: How time passes; often the node itself.
        models: What this and other nodes say of their models.

    Attributes:
        log_failure: Why the log stopped, if it did.
    """

    def __init__(self, node: Node, host: Host, view: HostView, models: ModelTopic) -> None:
        self._node = node
        self._host = host
        self._view = view
        self._models = models
        self.log_failure = ""
        names = ("world", "commands", "loop", "model")
        self._diagnostics = Diagnostics(node, host.robot.name, names)
        self._refused_at = self._guessed_at = -REFUSAL_SHOWN
        self._guesses = 0
        self._time = self._progress = time.monotonic()
        self._steps = self._seen = 0
        self._samples = 0

    def refused(self, reason: str) -> None:
        """Note that a command was refused; warns once while refusals go on."""
        now = time.monotonic()
        if now - self._refused_at > REFUSAL_SHOWN:
            self._node.get_logger().warning(reason)
        self._refused_at = now

    def tell_verdict(self, part: str) -> None:
        """Write into the node's output whether the muscles were ever let go.

        Args:
            part: Of what, e.g. ``until the reset``.
        """
        view, gate, now = self._view, self._host.gate, seconds(self._host.stamp)
        if not view.steps:
            return
        facts = HostFacts(
            view.steps,
            watchdog=gate.lapses,
            watchdog_time=gate.first_lapse,
            watchdog_duration=gate.lapses * view.dt,
            stopped=int(gate.stopped),
            stopped_time=now,
            refused=gate.refused,
            accepted=gate.accepted,
            refusal=gate.last_refusal or "",
        )
        failure = "" if view.failure is None else str(view.failure)
        verdict = judge(facts, None, Ending(now, stopped=True, failure=failure))
        tell(self._node, f"host {part}", verdict)

    def update(self) -> None:
        """Look at the host and publish if something changed or a second is over."""
        now = time.monotonic()
        if self._view.steps != self._seen:
            self._seen = self._view.steps
            self._progress = now
        self._report_world(now)
        self._report_commands(now)
        self._report_loop(now)
        self._models.report(self._diagnostics["model"])
        self._diagnostics.update()

    def _report_world(self, now: float) -> None:
        view, world = self._view, self._diagnostics["world"]
        world.values.update(time=seconds(self._host.stamp), mode=view.mode, **view.world_values())
        if view.path_failures:
            world.values.update(path_failures=view.path_failures)
        if view.path_failures > self._guesses:
            self._guessed_at = now
        self._guesses = view.path_failures
        if view.failure is not None:
            world.report(Level.ERROR, str(view.failure))
        elif self.log_failure:
            world.report(Level.ERROR, self.log_failure)
        elif view.paused:
            world.report(Level.WARN, "paused")
        elif now - self._guessed_at < REFUSAL_SHOWN:
            world.report(Level.WARN, "a muscle path over a surface did not converge: approximated")
        else:
            world.ok("waiting for a command" if view.waiting and not view.steps else "running")

    def _report_commands(self, now: float) -> None:
        view, status = self._view, self._diagnostics["commands"]
        gate, missing = self._host.gate, self._host.unanswered
        half = bool(missing) and missing != gate.addressees  # of an answer in lockstep came
        answered = view.mode in ANSWERED_MODES
        status.values.update(accepted=gate.accepted, refused=gate.refused)
        if gate.stopped:
            status.report(Level.ERROR, f"emergency stop: {gate.at_rest} until sim/reset")
        elif now - self._refused_at < REFUSAL_SHOWN and gate.last_refusal is not None:
            status.report(Level.WARN, f"command refused: {gate.last_refusal}")
        elif not view.steps and not (half and answered):
            status.report(Level.WARN, "waiting for the first command")
        elif answered and view.waiting and now - self._progress > ANSWER_PATIENCE:
            text = (
                f"no answer to the state of t = {seconds(self._host.stamp):g} s: the world waits"
            )
            if half:
                text += f" for a command for the {missing[0]}"
            self._complain(text)
        elif not answered and gate.stale:
            self._complain(f"no valid command for {gate.timeout:g} s: {_relaxed(gate)}")
        else:
            status.ok()

    def _complain(self, text: str) -> None:
        # the log gets it once, the diagnostics as long as it lasts
        if self._diagnostics["commands"].report(Level.ERROR, text):
            self._node.get_logger().warning(text)

    def _report_loop(self, now: float) -> None:
        view, loop = self._view, self._diagnostics["loop"]
        loop.values.update(view.loop_values())
        if now - self._time < 1.0:
            return
        rate = max(0, view.steps - self._steps) / (now - self._time)
        self._time, self._steps = now, view.steps
        factor = rate * view.dt
        loop.values.update(step_rate_hz=rate, realtime_factor=factor)
        self._samples = self._samples + 1 if view.running else 0
        wanted = view.wanted_speed
        # the first second of a run is shorter than a second
        if self._samples > 1 and factor < 0.95 * wanted:
            loop.report(Level.WARN, f"slower than {wanted:g} times real time")
        else:
            loop.ok()


def _relaxed(gate: MuscleCommand) -> str:
    """Say what the watchdog did to whom."""
    parts = []
    if gate.stale_muscles or not gate.stale_motors:
        parts.append(f"{', '.join(gate.stale_muscles) or 'all muscles'} at minimum tension")
    if gate.stale_motors:
        parts.append(f"{', '.join(gate.stale_motors)} without effort")
    return ", ".join(parts)


_LEVELS = {
    ControlStatus.OK: Level.OK,
    ControlStatus.JOINT_LIMIT: Level.WARN,
    ControlStatus.INFEASIBLE: Level.WARN,
    ControlStatus.FALLBACK: Level.ERROR,
    ControlStatus.INVALID_STATE: Level.ERROR,
}
_TEXTS = {
    ControlStatus.JOINT_LIMIT: "the task yields to a joint limit",
    ControlStatus.INFEASIBLE: "no tensions within their limits produce the commanded motion",
    ControlStatus.FALLBACK: "the QP solver failed; bounded least squares are used instead",
    ControlStatus.INVALID_STATE: "state, reference or model is not finite: tensions go to "
    "their minimum",
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
        """States that were not answered."""
        ...

    @property
    def reason(self) -> str:
        """Why the last status is what it is, where the status does not say it."""
        ...

    @property
    def native(self) -> str:
        """Whether steps are compiled: ``yes``, or ``no, `` and the reason."""
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
        self._reason = ""
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
            if out.status >= self._worst:
                self._worst, self._reason = out.status, self._view.reason
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
            status.report(_LEVELS[self._worst], self._reason or _TEXTS[self._worst])
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
        control.values.update(
            steps_not_ok=self._not_ok, residual_max=self._residual, native=view.native
        )
        commands = view.enabled and not view.refusal and not view.unready
        if commands and self._worst is ControlStatus.OK and not view.log_failure:
            control.ok()
        self._time, self._count, self._missed = now, 0, view.missed
        self._worst, self._not_ok, self._residual = ControlStatus.OK, 0, 0.0
