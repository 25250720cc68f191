"""The system that Gazebo loads: ``<module_name>cards_muscle_plugin.system</module_name>``.

A thin boundary. An exception that reached Gazebo would switch the system off for good, silently:
every one ends here, the muscles let go, the world is paused, and ``/diagnostics`` says why.

Nothing is kept in this module: instances, one for each robot, share its globals.
"""

from __future__ import annotations

import gc
import os
import shlex
import sys
import traceback
from typing import TYPE_CHECKING, Any

from cards_core.errors import CardsError
from cards_muscle_plugin.gazebo import GazeboModel, GazeboWorld, bindings, step_info

if TYPE_CHECKING:
    from rclpy.context import Context

    from cards_muscle_plugin.fault_node import FaultNode
    from cards_muscle_plugin.node import SimulatorNode

ROS_ARGUMENTS = "CARDS_GAZEBO_ROS_ARGS"
"""Environment variable with the ROS arguments of the nodes, quoted as in a shell, e.g.
``--ros-args --params-file robot.yaml -p mode:=lockstep``."""


class MusclePlugin:
    """Muscles of one model."""

    def __init__(self) -> None:
        self._context: Context | None = None
        self._node: SimulatorNode | FaultNode | None = None
        self._model: GazeboModel | None = None
        self._orphan: GazeboWorld | None = None  # a world to pause, where there is no node

    def configure(self, entity: int, sdf: Any, ecm: Any, _event_manager: Any) -> None:
        """Read the muscles and make the node."""
        try:
            self._open(entity, sdf.to_string(""), ecm)
        except Exception as error:
            self._complain(error)
            self._close()

    def pre_update(self, info: Any, ecm: Any) -> None:
        """Apply the muscles; called before each step and while paused."""
        if (world := self._orphan) is not None:
            self._orphan = None
            world.pause(True)
        node, model = self._node, self._model
        if node is None or model is None:
            return
        try:
            model.bind(ecm)
            node.before_step(step_info(info))
            # newer versions of Gazebo destroy the system with its model, older ones call on
            if node.gone:
                self._close()
        except Exception as error:
            self._fail(error)

    def post_update(self, info: Any, ecm: Any) -> None:
        """Publish the state; called after each step and while paused."""
        node, model = self._node, self._model
        if node is None or model is None:
            return
        try:
            model.bind(ecm)
            node.after_step(step_info(info))
        except Exception as error:
            self._fail(error)

    def reset(self, info: Any, ecm: Any) -> None:
        """Start anew; Gazebo keeps the instance."""
        node, model = self._node, self._model
        if node is None or model is None:
            return
        try:
            model.bind(ecm)
            if model.exists():
                node.reset(step_info(info))
            else:
                self._close()
        except Exception as error:
            self._fail(error)

    def shutdown(self) -> None:
        """Leave; called when the model is removed and when Gazebo ends."""
        self._close()

    # Inside -----------------------------------------------------------------------------------

    def _open(self, entity: int, block: str, ecm: Any) -> None:
        gz = bindings()
        self._model = GazeboModel(gz, entity, ecm)
        self._orphan = world = GazeboWorld(gz, self._model.world_name)

        # here and not above: what cannot be imported is to be reported, too
        from cards_muscle_plugin import load_rclpy  # noqa: F401, I001, before all that use rclpy
        from rclpy.context import Context

        from cards_muscle_plugin.fault_node import FaultNode
        from cards_muscle_plugin.hosted_robot import host_robot, namespace_of
        from cards_muscle_plugin.node import SimulatorNode
        from cards_ros.loop import HOT_NICE, set_nice

        def context() -> Context:
            out = Context()
            # no signal handlers: Ctrl-C is Gazebo's
            out.init(args=shlex.split(os.environ.get(ROS_ARGUMENTS, "")))
            return out

        self._context = context()
        path = self._model.path
        namespace = namespace_of(path, ())
        try:
            hosted = host_robot(self._model, block)
            namespace = hosted.namespace
            self._node = SimulatorNode(self._context, hosted, self._model, world)
        except Exception as error:
            if not isinstance(error, CardsError | OSError):
                traceback.print_exc()
            # a node that could not be finished goes with its context
            self._context.try_shutdown()
            self._context = context()
            self._node = FaultNode(self._context, namespace, path[-1], error, world)
        self._orphan = None
        set_nice(HOT_NICE)  # of this thread, the one that simulates
        # what start-up made needs no further look: shorter collections in the loop
        gc.collect()
        gc.freeze()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, CardsError):
            traceback.print_exc()
        try:
            if self._node is not None:
                self._node.fail(error)
        except Exception as again:
            self._complain(again)
            self._close()

    def _close(self) -> None:
        node, context = self._node, self._context
        self._node = self._context = self._model = None
        try:
            if node is not None:
                node.close()
            if context is not None:
                context.try_shutdown()
        except Exception as error:
            self._complain(error)

    @staticmethod
    def _complain(error: Exception) -> None:
        """Say it where there is no node to say it."""
        print(f"cards_muscle_plugin: {error}", file=sys.stderr)
        traceback.print_exception(error)


def get_system() -> MusclePlugin:
    """Return a new system; Gazebo calls it once for each plugin element."""
    return MusclePlugin()
