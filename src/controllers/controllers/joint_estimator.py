"""Node ``joint_estimator``: joint angles from the lengths of muscles.

It listens to ``muscle_states`` and publishes ``~/joint_states`` with the stamp of the lengths,
whoever measures or simulates them. Controllers of robots without joint sensors can be told
``joint_states:=joint_estimator/joint_states``. While the pose is not known nothing is published,
and ``/diagnostics`` says why.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.control.mrc.joint_angles import EstimatedAngles, noise_from, noise_parameters
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.estimation.joint_estimator import Estimate
from cards_core.formats import load
from cards_core.loop.model_agreement import ACCEPT, accept_parameter
from cards_core.loop.model_identity import identity_of
from cards_core.parameters.declaration import Parameter
from cards_core.robot.model import Robot
from cards_core.stamps import seconds
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level, Status
from cards_ros.loop import HOT_NICE, HotPublisher, HotSubscription, NodeLoop, StopFlag, run
from cards_ros.messages import (
    JointStateReader,
    JointStateSample,
    JointStateWriter,
    MuscleStateNames,
    NameOrder,
)
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

NODE_NAME = "joint_estimator"

_WAIT = 0.02  # [s], longest wait of the loop


def parameters() -> list[Parameter]:
    """Return the parameters of the node."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "rate",
            40.0,
            "Of the estimates, in the time of the states; 0: one for each muscle_states.",
            "Hz",
            lower=0.0,
            upper=1e4,
        ),
        *noise_parameters(),
        Parameter(
            "state_timeout",
            0.5,
            "Real time without muscle_states after which that is an error.",
            "s",
            lower=0.01,
            upper=3600.0,
        ),
        accept_parameter("Publish even if the host has a different model (compiler.md)."),
    ]


class JointEstimatorNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
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
        self._robot = robot = load(value["model"]) if robot is None else robot
        known = robot.commanded()
        self._dynamics = make_dynamics(known)
        noise = noise_from(value)
        # lengths of passive muscles are not measured: hosts compute them from the pose
        self._angles = EstimatedAngles(self._dynamics, GeometricBodyImage(known), noise)
        self._period = 1.0 / value["rate"] if value["rate"] > 0.0 else 0.0
        self._muscle_names = [muscle.name for muscle in known.muscles]
        self._places = [
            i
            for i, muscle in enumerate(robot.muscles)
            if muscle.name in frozenset(self._muscle_names)
        ]
        self._came = -math.inf
        self._problem = ""  # of a message
        self._last: Estimate | None = None
        self.models = ModelTopic(self, "observer", identity_of(robot), lambda: bool(value[ACCEPT]))
        self._make_topics(with_joints=noise.joints > 0.0)
        self._diagnostics = Diagnostics(self, robot.name, ("states", "estimate", "model"))

    def _make_topics(self, *, with_joints: bool) -> None:
        tree = self._dynamics.tree
        self._reader = JointStateReader()
        self._names = MuscleStateNames([muscle.name for muscle in self._robot.muscles])
        self._order = NameOrder(tree.position_names)
        self._joints = np.full(tree.nq, np.nan)
        self._slots = None if tree.nq == tree.nv else tree.velocity_slots
        self._muscles = HotSubscription(
            self, JointState, topics.MUSCLE_STATES, topics.STATE_INPUT_QOS
        )
        self._sensors: HotSubscription | None = None
        if with_joints:
            self._sensors = HotSubscription(
                self, JointState, topics.JOINT_STATES, topics.STATE_QOS
            )
        self._estimate = HotPublisher(self, JointState, topics.ESTIMATE, topics.STATE_QOS)
        self._writer = JointStateWriter(tree.position_names, ("position", "velocity"))
        hot = [self._muscles, *([self._sensors] if self._sensors else [])]
        self._loop = NodeLoop(self, hot, self._stop, polls=True)

    def run(self) -> int:
        """Estimate until the stop flag is set; return the exit code."""
        self.get_logger().info("ready")
        while not self._stop:
            data = self._muscles.take()
            if data is None:
                self._loop.wait(_WAIT)
            else:
                self._came = time.monotonic()
                self._take_joints()
                self._take_muscles(self._reader.read(data))
            if self._loop.serve():
                self._estimate.refresh()
                self.models.update()
                self._report()
        return 0

    def _take_joints(self) -> None:
        """Keep the newest readings of joint sensors, if there are any."""
        if self._sensors is None:
            return
        # a host publishes joints first: those of these lengths, or of the lengths before
        while (data := self._sensors.take()) is not None:
            sample = self._reader.read(data)
            try:
                order = self._order.order(sample.names)
                self._joints[:] = sample.position[order]
            except (CardsError, IndexError) as error:
                self._joints[:] = np.nan
                self._problem = f"joint_states: {error}"

    def _take_muscles(self, sample: JointStateSample) -> None:
        """Estimate with new lengths, and publish that."""
        try:
            places, _ = self._names.places(sample.names)
            if sample.position.size != len(sample.names):
                raise CardsError(
                    f"{sample.position.size} lengths for {len(sample.names)} names (expected: one "
                    "for every name)"
                )
        except CardsError as error:
            self._problem = f"muscle_states: {error}"
            return
        self._problem = ""
        if not self.models.settled() or self.models.refusal:
            return
        lengths = sample.position[places][self._places]
        now = seconds(sample.stamp)
        none = np.zeros(lengths.size)  # of tensions: this body image is rigid
        found = self._angles.step(
            now, lengths, none, self._joints, guess=None, period=self._period
        )
        self._last = found
        self._joints[:] = np.nan
        if found is None or self._angles.time != now:
            return  # a state that is repeated gets the same answer: the first one may be lost
        rates = found.qd
        if self._slots is not None:
            rates = np.zeros(found.q.size)
            rates[self._slots] = found.qd
        if self._estimate.wanted:
            self._estimate.publish(self._writer.write(sample.stamp, found.q, rates))

    # Health -----------------------------------------------------------------------------------

    def _report(self) -> None:
        statuses = self._diagnostics
        self._report_states(statuses["states"], time.monotonic() - self._came)
        self._report_estimate(statuses["estimate"])
        self.models.report(statuses["model"], "nothing is published")
        statuses.log_errors()
        statuses.update()

    def _report_states(self, status: Status, age: float) -> None:
        if not math.isfinite(age):
            status.report(Level.WARN, f"waiting for {topics.MUSCLE_STATES}")
        elif age > self.parameters["state_timeout"]:
            timeout = self.parameters["state_timeout"]
            status.report(Level.ERROR, f"no {topics.MUSCLE_STATES} for {timeout:g} s")
        elif self._problem:
            status.report(Level.ERROR, self._problem)
        else:
            status.ok()

    def _report_estimate(self, status: Status) -> None:
        found = self._last
        if self.models.refusal:
            status.report(Level.STALE, "stopped: another model")
        elif not math.isfinite(self._came):
            status.report(Level.WARN, self._angles.problem)
        elif found is None:
            status.report(Level.ERROR, self._angles.problem)
        else:
            worst = int(np.argmax(found.std))
            status.values.update(
                time=self._angles.time,
                std_max=float(found.std[worst]),
                least_known=self._dynamics.tree.velocity_names[worst],
                offset_max=float(np.abs(found.offsets).max()),
                offset_std_max=float(found.offset_std.max()),
            )
            out = [
                name
                for name, suspect in zip(self._muscle_names, found.suspect, strict=True)
                if suspect
            ]
            if out:
                status.report(
                    Level.WARN, f"excluded, inconsistent with the others: {', '.join(out)}"
                )
            else:
                status.ok()

    def close(self) -> None:
        """Destroy the node."""
        self._loop.close()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``joint_estimator``."""
    return run(JointEstimatorNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
