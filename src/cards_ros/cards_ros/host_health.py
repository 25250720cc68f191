"""What a simulator of muscles says about itself on ``/diagnostics``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from rclpy.node import Node

from cards_core.loop.host import Host
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
    """How time passes for a host.

    Attributes:
        mode: ``lockstep`` or another.
        steps: Done since the last reset.
    """

    mode: str
    steps: int

    @property
    def paused(self) -> bool:
        """Whether somebody stopped time."""
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
            world.report(Level.WARN, "a muscle path over a surface could not be solved: guessed")
        else:
            world.ok("waiting for a command" if view.waiting and not view.steps else "running")

    def _report_commands(self, now: float) -> None:
        view, status = self._view, self._diagnostics["commands"]
        gate, missing = self._host.gate, self._host.unanswered
        half = bool(missing) and missing != gate.addressees  # of an answer in lockstep came
        status.values.update(accepted=gate.accepted, refused=gate.refused)
        if gate.stopped:
            status.report(Level.ERROR, f"emergency stop: {gate.at_rest} until sim/reset")
        elif now - self._refused_at < REFUSAL_SHOWN and gate.last_refusal is not None:
            status.report(Level.WARN, f"command refused: {gate.last_refusal}")
        elif not view.steps and not (half and view.mode == "lockstep"):
            status.report(Level.WARN, "waiting for the first command")
        elif view.mode == "lockstep" and view.waiting and now - self._progress > ANSWER_PATIENCE:
            text = (
                f"no answer to the state of t = {seconds(self._host.stamp):g} s: the world waits"
            )
            if half:
                text += f" for a command for the {missing[0]}"
            self._complain(text)
        elif view.mode != "lockstep" and gate.stale:
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
