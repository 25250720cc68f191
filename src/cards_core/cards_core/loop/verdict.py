"""Whether a run did what it was for: `judge`, a pure function of what was recorded.

A run has **failed** if

- it ended before its time, for whatever reason but a wish of the user's;
- the watchdog of the host acted, or an emergency stop: the muscles were let go;
- a state, a tension or an answer was not a finite number;
- at least half of the commands were refused;
- the controller found no tensions within their limits that do what is asked
  (`ControlStatus.INFEASIBLE` or worse) in more than `INFEASIBLE_SHARE` of its steps;
- the RMS error, or the error at the end, is above the tolerance of what was tracked
  (`cards_core.trajectories.tolerance_of`); positions and angles are judged each for themselves;
- it was to run in real time and did not: more than `LATE_SHARE` of the deadlines were missed, or
  more than `NOTABLE_SHARE` of the time lost. Its numbers say how busy the machine was, not how
  good the controller is.

What a task survives is a **warning**: states that got no answer, muscles at their maximum
tension, slack cables, a host slower than real time, a reference that was longer than the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from cards_core.exit_codes import ExitCode

VerdictName: TypeAlias = Literal["ok", "failed", "stopped"]

INFEASIBLE_SHARE = 0.05
"""Share of the controller's steps above which what is asked exceeds what the muscles can do."""

NOTABLE_SHARE = 0.05
"""Share of states without an answer, of steps that gave way to a joint limit, and of real time
lost, above which there is a warning; of the last a failure in real time."""

LATE_SHARE = 0.01
"""Share of states without an answer in time above which a run in real time has failed; there is a
warning if there are any."""

SATURATED_SHARE = 0.01
"""Share of the time at the maximum tension above which a muscle is named in a warning."""

SLACK_SHARE = 0.01
"""Share of the time without tension above which a cable is named in a warning."""

NAMED = 8
"""Muscles that a warning names."""

EXIT_CODES: Mapping[VerdictName, ExitCode] = {
    "ok": ExitCode.DONE,
    "failed": ExitCode.FAILED,
    "stopped": ExitCode.INTERRUPTED,
}
"""Exit codes of programs that end with a verdict."""


@dataclass(frozen=True)
class Verdict:
    """What is said of a run.

    Attributes:
        name: ``ok``, ``failed``, or ``stopped``: ended by the user, with nothing wrong until then.
        failures: Why it failed, a sentence each; empty unless `name` is ``failed``.
        warnings: What else deserves attention.
    """

    name: VerdictName
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, failures: Sequence[str], warnings: Sequence[str] = (), *, stopped: bool = False
    ) -> Verdict:
        """Return the verdict that follows from what was found.

        Args:
            failures: Reasons why the run failed, a sentence each.
            warnings: Warnings, a sentence each.
            stopped: Whether the user ended the run.
        """
        name: VerdictName = "failed" if failures else "stopped" if stopped else "ok"
        return cls(name, tuple(failures), tuple(warnings))

    @property
    def exit_code(self) -> int:
        """The exit code that says the same, see `EXIT_CODES`."""
        return EXIT_CODES[self.name]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``summary.json``."""
        return {
            "verdict": self.name,
            "failures": list(self.failures),
            "warnings": list(self.warnings),
        }


def verdict_line(summary: Mapping[str, Any]) -> str:
    """Return the verdict of a run in one line, with everything that was found.

    Args:
        summary: What `Verdict.entries` returned, with or without other entries.
    """
    parts = (summary["verdict"].upper(), "; ".join(summary["failures"]))
    line = ": ".join(filter(None, parts))
    warnings = summary["warnings"]
    if not warnings:
        return line
    plural = "s" if len(warnings) > 1 else ""
    return f"{line} ({len(warnings)} warning{plural}: {'; '.join(warnings)})"


LATE_START = 0.01
"""Time by which a controller may begin after its host, and so leave off before the end of its
reference, [s]. Gazebo's first state is that after its first step."""


@dataclass(frozen=True)
class Ending:
    """How a run came to its end.

    Attributes:
        reached: Time at the end, [s].
        wanted: Time that the run was to take, [s]; 0: until the user ends it.
        stopped: Whether the user ended it.
        failure: What ended it before its time, if something did.
        step: Time between two states, [s]: a run may end as much before its time.
    """

    reached: float
    wanted: float = 0.0
    stopped: bool = False
    failure: str = ""
    step: float = 0.0


@dataclass(frozen=True)
class HostFacts:
    """What a host of muscles did.

    Attributes:
        steps: How many.
        watchdog: Steps in which its watchdog acted.
        watchdog_time: When it did so first, [s].
        watchdog_duration: How long, all in all, [s].
        stopped: Steps under an emergency stop.
        stopped_time: When that began, [s].
        refused: Commands refused.
        accepted: Commands accepted; None where that is not known.
        refusal: Why the last refused command was refused; empty where that is not known.
        behind: Real time lost, [s].
        duration: Time of the host that passed, [s].
        saturated: Muscle to the share of the steps in which it had its maximum tension.
        slack: Cable whose tension is commanded to the share of the steps in which it had none.
        not_finite: Sentences on what was not finite.
    """

    steps: int
    watchdog: int = 0
    watchdog_time: float = math.nan
    watchdog_duration: float = 0.0
    stopped: int = 0
    stopped_time: float = math.nan
    refused: int = 0
    accepted: int | None = None
    refusal: str = ""
    behind: float = 0.0
    duration: float = 0.0
    saturated: Mapping[str, float] = field(default_factory=dict)
    slack: Mapping[str, float] = field(default_factory=dict)
    not_finite: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tracking:
    """How well the lengths, or the angles, of a task were followed.

    With e_k the error of step k and T_k the tolerance then:

    Attributes:
        unit: ``m`` or ``rad``.
        rms: ``sqrt(mean |e_k|^2)``.
        end: |e| of the last step.
        used: ``sqrt(mean (|e_k| / T_k)^2)``; failed above 1.
        used_at_end: |e| / T of the last step, likewise.
    """

    unit: str
    rms: float
    end: float
    used: float
    used_at_end: float


@dataclass(frozen=True)
class TaskFacts:
    """What a controller did.

    Attributes:
        steps: How many.
        infeasible: Steps with `ControlStatus.INFEASIBLE` or `ControlStatus.FALLBACK`.
        invalid: Steps with `ControlStatus.INVALID_STATE`.
        joint_limit: Steps with `ControlStatus.JOINT_LIMIT`.
        missed: States without an answer.
        remaining: What was left of the reference at the end, [s]; 0 if nothing, or without end.
        tracking: Of lengths and angles, as far as there are any with a tolerance.
        not_finite: Sentences on what was not finite, beside what `invalid` counts.
    """

    steps: int
    infeasible: int = 0
    invalid: int = 0
    joint_limit: int = 0
    missed: int = 0
    remaining: float = 0.0
    tracking: tuple[Tracking, ...] = ()
    not_finite: tuple[str, ...] = ()


def ending_failures(ending: Ending) -> list[str]:
    """Return what was wrong with the end of a run: a sentence, or nothing."""
    if ending.failure:
        return [ending.failure]
    short = ending.wanted - ending.reached
    if ending.stopped or short <= 1.001 * ending.step + 1e-9 * ending.wanted:
        return []
    return [f"it ended after {ending.reached:g} s of {ending.wanted:g} s without being told to"]


def judge(
    host: HostFacts | None, task: TaskFacts | None, ending: Ending, *, real_time: bool = False
) -> Verdict:
    """Return the verdict on a run.

    Args:
        host: What the host did; None where that is not known, as in a controller's node.
        task: What the controller did; None without one.
        ending: How the run ended.
        real_time: Whether time went on without waiting for answers, at the pace of the clock.
    """
    failures = ending_failures(ending)
    warnings: list[str] = []
    if host is not None:
        _judge_host(host, failures, warnings, real_time)
    if task is not None:
        _judge_task(task, failures, warnings, real_time)
        if task.remaining > LATE_START and not ending.stopped and not failures:
            warnings.append(f"the reference was not finished, {task.remaining:.3g} s were left")
    return Verdict.of(failures, warnings, stopped=ending.stopped)


def _judge_host(
    host: HostFacts, failures: list[str], warnings: list[str], real_time: bool
) -> None:
    failures += host.not_finite
    if host.watchdog:
        failures.append(
            f"the watchdog let the muscles go for {host.watchdog_duration:.3g} s, first at "
            f"t = {host.watchdog_time:.3f} s: no valid command came"
        )
    if host.stopped:
        failures.append(f"emergency stop at t = {host.stopped_time:.3f} s")
    if host.refused:
        reason = f", the last: {host.refusal}" if host.refusal else ""
        text = f"{host.refused} commands were refused by the host{reason}"
        # an emergency stop, which refuses all of them, is a failure of its own
        useless = host.accepted is not None and host.refused >= host.accepted
        (failures if useless and not host.stopped else warnings).append(text)
    if host.behind > NOTABLE_SHARE * host.duration:
        took = host.duration + host.behind
        text = f"slower than real time: {host.duration:.3g} s took {took:.3g} s"
        (failures if real_time else warnings).append(text)
    for what, shares, least in (
        ("at the maximum tension", host.saturated, SATURATED_SHARE),
        ("slack", host.slack, SLACK_SHARE),
    ):
        found = [f"{name} for {share:.0%}" for name, share in shares.items() if share > least]
        if found:
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            warnings.append(f"{what}: {', '.join(found[:NAMED])} of the time{more}")


def _judge_task(
    task: TaskFacts, failures: list[str], warnings: list[str], real_time: bool
) -> None:
    failures += task.not_finite
    steps = max(task.steps, 1)
    if task.invalid:
        failures.append(f"{task.invalid} of {task.steps} states, or answers, were not finite")
    if task.infeasible:
        text = (
            f"no tensions within their limits do what is asked in {task.infeasible} of "
            f"{task.steps} steps"
        )
        (failures if task.infeasible > INFEASIBLE_SHARE * steps else warnings).append(text)
    for one in task.tracking:
        allowed = f"tolerance {_shown(one.rms / one.used if one.used else 0.0, one.unit)}"
        if not one.used <= 1.0:
            failures.append(f"RMS error {_shown(one.rms, one.unit)}, {allowed}")
        elif not one.used_at_end <= 1.0:
            limit = _shown(one.end / one.used_at_end, one.unit)
            failures.append(f"error at the end {_shown(one.end, one.unit)}, tolerance {limit}")
    if task.joint_limit > NOTABLE_SHARE * steps:
        warnings.append(
            f"the task gave way to a joint limit in {task.joint_limit} of {task.steps} steps"
        )
    states = task.missed + task.steps
    if task.missed > (0.0 if real_time else NOTABLE_SHARE) * states:
        text = f"missed deadlines: {task.missed} of {states} states got no answer, or a late one"
        starved = real_time and task.missed > LATE_SHARE * states
        (failures if starved else warnings).append(text)


def _shown(value: float, unit: str) -> str:
    """Return a length or angle in thousandths of its unit."""
    return f"{1e3 * value:.3g} m{unit}"
