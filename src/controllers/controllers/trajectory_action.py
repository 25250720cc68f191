"""Node ``trajectory_action``: the action ``FollowJointTrajectory`` in front of a controller.

MoveIt and other planners send their trajectories to it. It hands each on to the controller's
``~/reference``, watches ``joint_states``, and answers with feedback and result. A new goal
replaces the present one, and a cancelled one is held where it is. Time is that of
``joint_states``.

The action is that of ``control_msgs``; without that package the node says so and ends.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from cards_core.errors import CardsError, UnknownNameError
from cards_core.exit_codes import ExitCode
from cards_core.parameters.declaration import Parameter
from cards_core.trajectories.execution import (
    Progress,
    ResultCode,
    TrajectoryExecution,
    tolerances,
)
from cards_core.trajectories.live import TrajectoryPoint, from_joint_trajectory
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import StopFlag, run
from cards_ros.parameters import Parameters

NODE_NAME = "trajectory_action"

_WAIT = 0.1
"""Longest wait for a state, [s]: a goal may have been cancelled."""

_LOST = 2.0
"""Time without any state after which a goal is given up, [s]."""


def parameters() -> list[Parameter]:
    """Return the parameters of the node."""
    return [
        Parameter("controller", "ctc_joint", "Controller that carries trajectories out."),
        Parameter(
            "action",
            "~/follow_joint_trajectory",
            "Name of the action.",
        ),
        Parameter(
            "path_tolerance",
            0.0,
            "Maximum distance from the path where a goal says none; 0: any.",
            "rad or m",
            lower=0.0,
        ),
        Parameter(
            "goal_tolerance",
            0.02,
            "Maximum distance from the goal where a goal says none; 0: any.",
            "rad or m",
            lower=0.0,
        ),
        Parameter(
            "goal_time",
            5.0,
            "Time beyond the trajectory's in which the goal must be reached where a goal says "
            "none; 0: no limit.",
            "s",
            lower=0.0,
        ),
    ]


class TrajectoryActionNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends the loop.
        action: The action type, for tests; that of ``control_msgs`` if None.
        make_server: Makes the action server, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Raises:
        CardsError: ``control_msgs`` is not installed, or a parameter is wrong.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        action: Any = None,
        make_server: Callable[..., Any] = ActionServer,
        **node_options: Any,
    ) -> None:
        self._action = _action_type() if action is None else action
        super().__init__(NODE_NAME, context=context, **node_options)
        self._stop = stop
        self.values = Parameters(self)
        self.values.declare(parameters())
        self.values.refuse_others()
        self._changed = threading.Condition()
        self._state: JointState | None = None
        self._desired: JointState | None = None
        self._latest: Any = None  # the goal that counts
        controller = self.values["controller"]
        group = ReentrantCallbackGroup()
        make = self.create_subscription
        make(JointState, topics.JOINT_STATES, self._on_state, topics.STATE_INPUT_QOS)
        desired = topics.DESIRED.replace("~", controller)
        make(JointState, desired, self._on_desired, topics.STATE_QOS)
        reference = topics.REFERENCE.replace("~", controller)
        self._reference = self.create_publisher(JointTrajectory, reference, topics.COMMAND_QOS)
        self._server = make_server(
            self,
            self._action,
            self.values["action"],
            execute_callback=self.execute,
            goal_callback=self.on_goal,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
            callback_group=group,
        )

    # Goals, in threads of the executor --------------------------------------------------------

    def on_goal(self, request: Any) -> GoalResponse:
        """Accept what can be carried out; say why not, otherwise."""
        try:
            self._execution(request)
        except CardsError as error:
            self.get_logger().error(f"goal refused: {error}")
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def execute(self, goal: Any) -> Any:
        """Carry a goal out; return its result."""
        result = self._action.Result()
        with self._changed:
            self._latest = goal
            self._changed.notify_all()
        try:
            execution, begun = self._execution(goal.request)
        except CardsError as error:
            wrong = isinstance(error, UnknownNameError)
            code = ResultCode.INVALID_JOINTS if wrong else ResultCode.INVALID_GOAL
            return _ended(goal.abort, result, code, str(error))
        self._reference.publish(goal.request.trajectory)
        seen = begun
        while True:
            state = self._wait(goal, seen)
            if state is None:
                text = f"no {topics.JOINT_STATES} for {_LOST:g} s"
                return _ended(goal.abort, result, ResultCode.INVALID_GOAL, text)
            if goal.is_cancel_requested:
                self._hold()
                return _ended(goal.canceled, result, ResultCode.SUCCESSFUL, "cancelled: held")
            if self._latest is not goal:
                text = "another goal has taken its place"
                return _ended(goal.abort, result, ResultCode.INVALID_GOAL, text)
            if self._stop:
                return _ended(goal.abort, result, ResultCode.INVALID_GOAL, "the node ends")
            now = _time(state)
            if now < seen:
                text = "time went back: the simulator was reset"
                return _ended(goal.abort, result, ResultCode.OLD_HEADER_TIMESTAMP, text)
            if now == seen:
                continue
            seen = now
            progress = execution.look(now - begun, _positions(state, execution.names))
            goal.publish_feedback(self._feedback(execution, progress, state))
            if progress.code is not None:
                end = goal.succeed if progress.code == ResultCode.SUCCESSFUL else goal.abort
                if progress.code != ResultCode.SUCCESSFUL:
                    self._hold()
                return _ended(end, result, progress.code, progress.text)

    def _wait(self, goal: Any, seen: float) -> JointState | None:
        """Wait for a state of another time, or an end; return the newest, None: there is none."""

        def news() -> bool:
            state = self._state
            fresh = state is not None and _time(state) != seen
            ended = goal.is_cancel_requested or self._latest is not goal
            return fresh or ended or bool(self._stop)

        with self._changed:
            return self._state if self._changed.wait_for(news, _LOST) else None

    def _execution(self, request: Any) -> tuple[TrajectoryExecution, float]:
        """Return how a goal is to be carried out, and the time of the present state, [s].

        Raises:
            CardsError: It cannot be.
        """
        with self._changed:
            state, desired = self._state, self._desired
        if state is None:
            raise CardsError(f"no {topics.JOINT_STATES} yet (expected: a host that runs)")
        names = list(state.name)
        # the controller begins where it wants the robot to be
        known = desired is not None and set(desired.name) == set(names)
        trajectory = request.trajectory
        points = [
            TrajectoryPoint(
                _seconds(p.time_from_start), p.positions, p.velocities, p.accelerations
            )
            for p in trajectory.points
        ]
        reference = from_joint_trajectory(
            trajectory.joint_names,
            points,
            joint_names=names,
            start=_positions(desired if known and desired is not None else state, names),
        )
        path = {one.name: one.position for one in request.path_tolerance}
        end = {one.name: one.position for one in request.goal_tolerance}
        limit = _seconds(request.goal_time_tolerance) or self.values["goal_time"] or np.inf
        execution = TrajectoryExecution(
            reference,
            names,
            tolerances(names, self.values["path_tolerance"], path, "path_tolerance"),
            tolerances(names, self.values["goal_tolerance"], end, "goal_tolerance"),
            limit,
        )
        return execution, _time(state)

    def _feedback(
        self, execution: TrajectoryExecution, progress: Progress, state: JointState
    ) -> Any:
        feedback = self._action.Feedback()
        feedback.header.stamp = state.header.stamp
        feedback.joint_names = list(execution.names)
        for name in ("desired", "actual", "error"):
            getattr(feedback, name).positions = getattr(progress, name).tolist()
        return feedback

    def _hold(self) -> None:
        """Have the robot stay where the controller wants it now."""
        with self._changed:
            state = self._desired or self._state
        if state is None:
            return
        point = JointTrajectoryPoint(positions=list(state.position))
        self._reference.publish(JointTrajectory(joint_names=list(state.name), points=[point]))

    # Topics -----------------------------------------------------------------------------------

    def _on_state(self, message: JointState) -> None:
        with self._changed:
            self._state = message
            self._changed.notify_all()

    def _on_desired(self, message: JointState) -> None:
        with self._changed:
            self._desired = message

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Serve until the stop flag is set; return the exit code."""
        executor = MultiThreadedExecutor(num_threads=4, context=self.context)
        executor.add_node(self)
        try:
            while not self._stop:
                executor.spin_once(timeout_sec=_WAIT)
        finally:
            with self._changed:
                self._changed.notify_all()
            executor.shutdown(timeout_sec=1.0)
        return ExitCode.DONE

    def close(self) -> None:
        """Leave the ROS graph."""
        self._server.destroy()
        self.destroy_node()


def _action_type() -> Any:
    """Return the type of the action. Raises `CardsError` where it is not installed."""
    try:
        return importlib.import_module("control_msgs.action").FollowJointTrajectory
    except ImportError as error:
        raise CardsError(
            f"{error}: the action FollowJointTrajectory is in the package control_msgs (expected: "
            "apt install ros-$ROS_DISTRO-control-msgs, and ROS sourced)"
        ) from error


def _ended(end: Callable[[], object], result: Any, code: ResultCode, text: str) -> Any:
    end()
    result.error_code = int(code)
    result.error_string = text
    return result


def _positions(message: JointState, names: Sequence[str]) -> Array:
    by_name = dict(zip(message.name, message.position, strict=True))
    return np.array([by_name[name] for name in names])


def _time(message: JointState) -> float:
    return _seconds(message.header.stamp)


def _seconds(duration: Any) -> float:
    return float(duration.sec) + 1e-9 * float(duration.nanosec)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``trajectory_action``."""
    return run(TrajectoryActionNode, NODE_NAME, args)


if __name__ == "__main__":
    sys.exit(main())
