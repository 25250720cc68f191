"""What the node ``live_analysis`` publishes: metrics, wrenches, pose, and diagnostics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.robot.model import Tree
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_model_compiler.live_analysis.analyses import (
    Analysis,
    Answer,
    ConditionAnalysis,
    RobotState,
)
from cards_model_compiler.live_analysis.parameters import FORWARD_KINEMATICS, INTERACTION
from cards_model_compiler.live_analysis.state import Problem
from cards_model_compiler.live_analysis.workers import Outcome
from cards_ros import topics
from cards_ros.diagnostics import Level, Status
from cards_ros.loop import HotPublisher
from cards_ros.messages import JointStateWriter

Said = Outcome[RobotState, Answer]
"""What an analysis said last."""

Latest = Callable[[str], Said | None]
"""Returns what an analysis said last, by its name."""

SLOW = 0.9
"""Share of the wanted rate below which that is a warning."""


class LiveOutput:
    """Publishers of metrics, joint wrenches and the pose from lengths.

    Args:
        node: The node.
        tree: Of the robot.
        analyses: By name.
    """

    def __init__(self, node: Node, tree: Tree, analyses: Mapping[str, Analysis]) -> None:
        self._columns = {
            name: analysis.columns for name, analysis in analyses.items() if name != INTERACTION
        }
        self._slots = tree.velocity_slots
        self._qd = np.zeros(tree.nq)
        self._sent = {INTERACTION: -1, FORWARD_KINEMATICS: -1}
        names = [
            f"{name}/{column}"
            for name, columns in self._columns.items()
            for column in ("status", *columns, "age")
        ]
        self._metrics_writer = JointStateWriter(names, ("position",))
        self._interaction_writer = JointStateWriter(analyses[INTERACTION].columns, ("effort",))
        self._estimate_writer = JointStateWriter(tree.position_names, ("position", "velocity"))
        self._metrics, self._interaction, self._estimate = (
            HotPublisher(node, JointState, topic, topics.STATE_QOS)
            for topic in (topics.METRICS, topics.INTERACTION, topics.ESTIMATE)
        )

    def refresh(self) -> None:
        """Check which topics have subscribers."""
        for publisher in (self._metrics, self._interaction, self._estimate):
            publisher.refresh()

    @property
    def unread(self) -> frozenset[str]:
        """Analyses without subscribers."""
        return frozenset() if self._interaction.wanted else frozenset({INTERACTION})

    def publish(self, state: RobotState, latest: Latest) -> None:
        """Publish what is known now.

        Args:
            state: The newest one; its stamp is that of the metrics.
            latest: What the analyses said last. Wrenches and pose have the stamp of the state
                that they belong to, and are sent once.
        """
        if self._metrics.wanted:
            self._metrics.publish(
                self._metrics_writer.write(state.stamp, self._numbers(state, latest))
            )
        if self._interaction.wanted and (new := self._new(INTERACTION, latest)) is not None:
            stamp, answer = new
            self._interaction.publish(self._interaction_writer.write(stamp, answer.values))
        if self._estimate.wanted and (new := self._new(FORWARD_KINEMATICS, latest)) is not None:
            stamp, answer = new
            if (estimate := answer.detail) is not None:
                self._qd[self._slots] = estimate.qd
                message = self._estimate_writer.write(stamp, estimate.q, self._qd)
                self._estimate.publish(message)

    def _numbers(self, state: RobotState, latest: Latest) -> Array:
        """Of every analysis its status, its columns and the age of its state."""
        out: list[float] = []
        for name, columns in self._columns.items():
            outcome = latest(name)
            if outcome is None or outcome.result is None:
                out += [np.nan] * (len(columns) + 2)
                continue
            age = state.came - outcome.item.came
            out += [float(outcome.result.status), *outcome.result.values.tolist(), age]
        return np.array(out)

    def _new(self, name: str, latest: Latest) -> tuple[int, Answer] | None:
        """Return stamp and answer if it has not been sent."""
        outcome = latest(name)
        if outcome is None or outcome.result is None or outcome.item.number <= self._sent[name]:
            return None
        self._sent[name] = outcome.item.number
        return outcome.item.stamp, outcome.result


def report_states(status: Status, problem: Problem | None, state: RobotState | None) -> None:
    """Report whether states arrive and can be used.

    Args:
        status: Takes the report.
        problem: Why the states cannot be used; None if they can.
        state: The last state, if there was one.
    """
    if state is not None:
        status.values.update(time=seconds(state.stamp), time_difference=state.time_difference)
    if problem is None:
        status.ok()
    else:
        status.report(problem.level, problem.text)


def report_conditions(
    status: Status,
    outcomes: Mapping[str, Said | None],
    conditions: Mapping[str, ConditionAnalysis],
    missing: Mapping[str, str],
) -> None:
    """Report which conditions do not hold, and which have no answer and why.

    Args:
        status: Takes the report.
        outcomes: Last outcome of each analysis by name; None: none yet.
        conditions: The analyses that are conditions, by name.
        missing: Conditions that this robot cannot have, and why.
    """
    failed, infeasible, without = [], [], []
    for name, outcome in outcomes.items():
        if outcome is None:
            continue
        if outcome.result is None:
            failed.append(f"{name}: {type(outcome.error).__name__}: {outcome.error}")
            status.values[name] = "failed"
            continue
        found = outcome.result.status
        words = conditions[name].words(outcome.result.values)
        status.values[name] = ", ".join([found.name, *words.values()])
        if found is PointStatus.INFEASIBLE:
            infeasible.append(name)
        elif found not in ANSWERS:
            without.append(f"{name} ({found.name})")
    for name, reason in missing.items():
        status.values[name] = reason
        without.append(f"{name} (not for this robot)")
    parts = [
        f"{word}: {', '.join(names)}"
        for word, names in (("infeasible", infeasible), ("no answer", without))
        if names
    ]
    if failed:
        status.report(Level.ERROR, "; ".join([*failed, *parts]))
    elif parts:
        status.report(Level.WARN, "; ".join(parts))
    else:
        status.ok()


def report_estimate(
    status: Status, outcome: Said | None, limit: float, names: tuple[str, ...]
) -> None:
    """Report whether the pose from muscle lengths agrees with the joint states.

    Args:
        status: Where.
        outcome: Of the forward kinematics.
        limit: Difference that is a warning, [rad] or [m].
        names: Of the velocities.
    """
    if outcome is None:
        status.ok("waiting for lengths")
        return
    if outcome.result is None:
        status.report(Level.ERROR, f"{type(outcome.error).__name__}: {outcome.error}")
        return
    answer = outcome.result
    if answer.detail is None:
        if answer.status is PointStatus.NO_MUSCLES:
            status.ok("the robot has no muscles")
        else:
            status.report(Level.STALE, "the muscle lengths are not known")
        return
    residual, difference, _ = answer.values.tolist()
    values = {"status": answer.status.name, "residual": residual, "difference": difference}
    if answer.status not in (PointStatus.FEASIBLE, PointStatus.RANK_DEFICIENT):
        text = f"no pose has the measured lengths: {answer.status.name}, {residual:.3g} m off"
        status.report(Level.WARN, text, **values)
    elif np.isnan(difference):
        status.ok("no joint_states to compare with", **values)
    elif difference > limit:
        worst = names[int(np.argmax(np.abs(answer.detail.differences)))]
        unsure = " (lengths do not determine it)" * (answer.status is PointStatus.RANK_DEFICIENT)
        text = f"pose from lengths differs from joint_states at '{worst}'{unsure}"
        values["limit"] = limit
        status.report(Level.WARN, text, **values)
    else:
        status.ok(**values)


class LoopHealth:
    """Measures the rate of the loop and its processor load over a second.

    Args:
        rate: Wanted, [Hz].
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._published = self._ticks = 0
        self._begin = time.monotonic()
        self._used = time.process_time()

    def looked(self) -> None:
        """Count a look at the topics."""
        self._ticks += 1

    def published(self) -> None:
        """Count what was published."""
        self._published += 1

    def report(self, status: Status, outcomes: Mapping[str, Said | None]) -> None:
        """Report how fast the loop and the analyses are, and which of them fail."""
        now = time.monotonic()
        duration = now - self._begin
        if duration < max(1.0, 2.0 / self._rate):
            return
        used = time.process_time()
        status.values.update(
            rate_hz=self._published / duration,
            cpu_percent=100.0 * (used - self._used) / duration,
        )
        slow, failed = [], []
        for name, outcome in outcomes.items():
            if outcome is not None and outcome.error is not None:
                failed.append(f"{name}: {type(outcome.error).__name__}: {outcome.error}")
            if outcome is not None:
                status.values[f"{name}_ms"] = 1e3 * outcome.seconds
                if outcome.seconds * self._rate > 1.0:
                    slow.append(name)
        # looks without news are the host's business
        late = self._ticks < SLOW * self._rate * duration - 1.0
        if failed:
            status.report(Level.ERROR, "; ".join(failed))
        elif late:
            status.report(Level.WARN, f"slower than {self._rate:g} Hz")
        else:
            status.ok(f"slower than the rate: {', '.join(slow)}" if slow else "ok")
        self._published = self._ticks = 0
        self._begin, self._used = now, used
