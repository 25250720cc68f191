"""Node ``live_analysis``: conditions, stiffness, joint wrenches and a pose from lengths, live.

It works beside a host, on the newest state, at most ``rate`` times a second. Every analysis has a
thread of its own: a slow one is published late, with its age, and delays nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future as Job
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.robot.model import Robot
from cards_model_compiler.job import error_text
from cards_model_compiler.live_analysis.analyses import (
    Answer,
    ConditionAnalysis,
    InteractionAnalysis,
    RobotState,
    state_at_home,
)
from cards_model_compiler.live_analysis.output import (
    LiveOutput,
    LoopHealth,
    Said,
    report_conditions,
    report_estimate,
    report_states,
)
from cards_model_compiler.live_analysis.parameters import (
    FORWARD_KINEMATICS,
    make_analyses,
    make_stiffness,
    parameters,
)
from cards_model_compiler.live_analysis.report import PoseReport
from cards_model_compiler.live_analysis.state import LiveState
from cards_model_compiler.live_analysis.workers import MOST, LatestWorkers
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.loop import (
    DRAWING_NICE,
    HotSubscription,
    StopFlag,
    describe,
    run,
)
from cards_ros.messages import JointStateReader, JointStateSample
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

NODE_NAME = "live_analysis"

STATUSES = ("states", "conditions", FORWARD_KINEMATICS, "loop", "model")

_WAIT = 0.02  # [s], longest wait of the loop: bounds how late a signal is noticed
_LOOK_PERIOD = 0.1  # [s] between two looks at models, subscribers and diagnostics


class LiveAnalysisNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        analyses: By name.
        missing: Why conditions are not among them.
        models: What this and other nodes say of their models.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, context=context, **node_options)
        self._stop = stop
        self.parameters = value = Parameters(self)
        value.declare(parameters())
        value.refuse_others()
        self.robot = robot or load(value["model"])
        self.dynamics = make_dynamics(self.robot)
        self.analyses, self.missing = make_analyses(self.robot, value)
        for name, reason in self.missing.items():
            self.get_logger().warning(f"{name} is left out: {reason}")
        self._conditions = {
            name: analysis
            for name, analysis in self.analyses.items()
            if isinstance(analysis, ConditionAnalysis)
        }
        self._report = self._make_report()
        self._prepare()
        self._period = 1.0 / value["rate"]
        self._states = LiveState(self.dynamics.tree, value["state_timeout"])
        self.models = ModelTopic(
            self, "observer", identity_of(self.robot), lambda: bool(value[ACCEPT])
        )
        self._make_topics()
        self._diagnostics = Diagnostics(self, self.robot.name, STATUSES)
        self._loop = LoopHealth(value["rate"])
        self._looked = -_LOOK_PERIOD
        self._open: RobotState | None = None
        self._jobs: list[tuple[Job[str], Future]] = []
        self._pool = ThreadPoolExecutor(1, "report")
        self._workers: LatestWorkers[RobotState, Answer] = LatestWorkers(
            {name: analysis.evaluate for name, analysis in self.analyses.items()},
            patience=MOST * self._period,
        )

    def _make_report(self) -> PoseReport:
        # with analyses of its own: it is made while the others run
        return PoseReport(
            make_dynamics(self.robot),
            self.parameters["tension_distribution"],
            make_stiffness(self.robot, self.parameters),
            InteractionAnalysis(make_dynamics(self.robot)),
            self._conditions,
        )

    def _prepare(self) -> None:
        """Compile what the analyses need now, not while states come."""
        home = state_at_home(self.dynamics)
        with np.errstate(all="ignore"):
            for name, analysis in self.analyses.items():
                if name != FORWARD_KINEMATICS:  # it would remember
                    analysis.evaluate(home)

    def _make_topics(self) -> None:
        self._reader = JointStateReader()
        self._joints, self._muscles = (
            HotSubscription(self, JointState, topic, topics.RECENT_QOS)
            for topic in (topics.JOINT_STATES, topics.MUSCLE_STATES)
        )
        self._output = LiveOutput(self, self.dynamics.tree, self.analyses)
        self.create_service(
            Trigger,
            topics.REPORT_SERVICE,
            self._on_report,
            callback_group=ReentrantCallbackGroup(),
        )
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Analyse until the stop flag is set; return the exit code."""
        due = time.monotonic()
        publish_by = due
        while not self._stop and self.context.ok():
            now = time.monotonic()
            if self._open is None and now >= due:
                due = max(due + self._period, now)
                self._begin(now)
                publish_by = now + 0.5 * self._period
            if self._open is not None:
                wait = min(max(publish_by - now, 0.0), _WAIT)
                if self._workers.wait(wait) or time.monotonic() >= publish_by:
                    self._publish(self._open)
                    self._open = None
            if now - self._looked >= _LOOK_PERIOD:
                self._looked = now
                self._look(now)
            self._answer_calls()
            wait = 0.0 if self._open is not None else due - time.monotonic()
            self._executor.spin_once(timeout_sec=min(max(wait, 0.0), _WAIT))
        return 0

    def _begin(self, now: float) -> None:
        """Take the newest state and hand it to the analyses."""
        joints, muscles = self._take(self._joints), self._take(self._muscles)
        news = self._states.take(joints, muscles, now)
        self._loop.looked()
        if not news or not self.models.settled() or self.models.refusal:
            return
        self._open = state = self._states.state
        assert state is not None
        self._workers.submit(state, without=self._output.unread)

    def _take(self, hot: HotSubscription) -> list[JointStateSample]:
        samples = []
        while (data := hot.take()) is not None:
            samples.append(self._reader.read(data))
        return samples

    def _publish(self, state: RobotState) -> None:
        if not self.models.refusal:
            self._output.publish(state, self._workers.latest)
            self._loop.published()

    # Health -----------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Check models and subscribers, and report diagnostics."""
        self.models.update()
        self._output.refresh()
        outcomes = {name: self._workers.latest(name) for name in self.analyses}
        statuses = self._diagnostics
        report_states(statuses["states"], self._states.problem(now), self._states.state)
        refusal = self.models.refusal
        if refusal or self._states.stale(now):
            text = "stopped: another model" if refusal else "no states"
            for name in ("conditions", FORWARD_KINEMATICS):
                statuses[name].report(Level.STALE, text)
        else:
            self._report_answers(outcomes)
        self._loop.report(statuses["loop"], outcomes)
        self.models.report(statuses["model"], "nothing is published")
        statuses.log_errors()
        statuses.update()

    def _report_answers(self, outcomes: dict[str, Said | None]) -> None:
        statuses = self._diagnostics
        conditions = {name: outcomes[name] for name in self._conditions}
        report_conditions(statuses["conditions"], conditions, self._conditions, self.missing)
        report_estimate(
            statuses[FORWARD_KINEMATICS],
            outcomes[FORWARD_KINEMATICS],
            self.parameters["difference_limit"],
            self.dynamics.tree.velocity_names,
        )

    # Report -----------------------------------------------------------------------------------

    async def _on_report(self, _request: Any, response: Any) -> Any:
        state, refusal = self._states.state, self.models.refusal
        if refusal:
            response.message = error_text("ModelError", refusal)
            return response
        if state is None:
            response.message = error_text("StateError", f"no {topics.JOINT_STATES} yet")
            return response
        future = Future(executor=self._executor)
        self._jobs.append((self._pool.submit(self._make_text, state), future))
        response.message = await future
        response.success = not response.message.startswith('{"error"')
        return response

    def _make_text(self, state: RobotState) -> str:
        latest = {name: self._workers.latest(name) for name in self.analyses}
        age = time.monotonic() - state.came
        try:
            with np.errstate(all="ignore"):
                report = self._report.make(state, latest, self.missing, age)
            return json.dumps(report, allow_nan=False)
        except Exception as error:  # a service must not end the node
            return error_text(type(error).__name__, describe(error))

    def _answer_calls(self) -> None:
        """Hand over the reports that are ready."""
        for job, future in [entry for entry in self._jobs if entry[0].done()]:
            future.set_result(job.result())
            self._jobs.remove((job, future))

    def close(self) -> None:
        """End all threads and destroy the node."""
        self._workers.close()
        self._pool.shutdown(cancel_futures=True)
        self._executor.shutdown()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``live_analysis``."""
    return run(LiveAnalysisNode, NODE_NAME, args, nice=DRAWING_NICE)


if __name__ == "__main__":
    sys.exit(main())
