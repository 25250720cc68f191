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
from cards_muscle_plugin.gazebo import GazeboModel, GazeboWorld, step_info
from cards_ros.gazebo_bindings import bindings

if TYPE_CHECKING:
    from rclpy.context import Context

ROS_ARGUMENTS = "CARDS_GAZEBO_ROS_ARGS"
"""Environment variable with the ROS arguments of the nodes, quoted as in a shell, e.g.
``--ros-args --params-file robot.yaml -p mode:=lockstep``."""


def load_rclpy() -> None:
    """Load rclpy into Gazebo's process; to be called before anything that uses rclpy is imported.

    rclpy from wheels brings a spdlog of its own, and Gazebo has another one loaded already. Left
    to itself the dynamic linker binds rclpy's calls to Gazebo's spdlog, and rclpy.init crashes.
    With RTLD_DEEPBIND libraries look for a symbol among their own first.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
    try:
        # the extension module is loaded by this attribute, not by `import rclpy`
        from rclpy.impl.implementation_singleton import rclpy_implementation  # noqa: F401
    finally:
        sys.setdlopenflags(flags)


class MusclePlugin:
    """Muscles of one model.

    Plugins of other robots change what is made (`_read`, `_make_node`, `_make_fault`) and share
    the rest.
    """

    NAME = "cards_muscle_plugin"

    def __init__(self) -> None:
        self._context: Context | None = None
        self._node: Any = None
        self._model: GazeboModel | None = None
        self._orphan: GazeboWorld | None = None  # a world to pause, where there is no node

    def configure(self, entity: int, sdf: Any, ecm: Any, _event_manager: Any) -> None:
        """Read the robot and make the node.

        Args:
            entity: The model in Gazebo.
            sdf: The ``<plugin>`` element.
            ecm: Gazebo's entity component manager.
            _event_manager: Not used.
        """
        try:
            self._open(entity, sdf.to_string(""), ecm)
        except Exception as error:
            self._complain(error)
            self._close()

    def pre_update(self, info: Any, ecm: Any) -> None:
        """Act on the world; called before each step and while paused."""
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
        """Restart; Gazebo keeps the instance."""
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
        load_rclpy()
        from rclpy.context import Context

        from cards_ros.loop import HOT_NICE, set_nice
        from cards_ros.middleware import use_udp
        from cards_ros.namespaces import namespace_of
        from cards_ros.parameters import keep_arguments

        def context() -> Context:
            use_udp()
            out = Context()
            arguments = shlex.split(os.environ.get(ROS_ARGUMENTS, ""))
            # no signal handlers: Ctrl-C is Gazebo's
            out.init(args=arguments)
            keep_arguments(out, arguments)
            return out

        self._context = context()
        path = self._model.path
        namespace = namespace_of(path, ())
        try:
            hosted = self._read(self._model, block)
            namespace = hosted.namespace
            self._node = self._make_node(self._context, hosted, self._model, world)
        except Exception as error:
            if not isinstance(error, CardsError | OSError):
                traceback.print_exc()
            # a node that could not be finished goes with its context
            self._context.try_shutdown()
            self._context = context()
            self._node = self._make_fault(self._context, namespace, path[-1], error, world)
        self._orphan = None
        if self._model.slow:
            self._node.get_logger().info(
                f"links are read one by one, which takes longer: {self._model.slow}"
            )
        set_nice(HOT_NICE)  # of this thread, the one that simulates
        # what start-up made needs no further look: shorter collections in the loop
        gc.collect()
        gc.freeze()

    def _read(self, model: Any, block: str) -> Any:
        """Return the robot, with its ``namespace``; raises CardsError."""
        from cards_muscle_plugin.hosted_robot import host_robot

        return host_robot(model, block)

    def _make_node(self, context: Context, hosted: Any, model: Any, world: Any) -> Any:
        """Return the robot's node."""
        from cards_muscle_plugin.node import SimulatorNode

        return SimulatorNode(context, hosted, model, world)

    def _make_fault(
        self, context: Context, namespace: str, robot: str, error: Exception, world: Any
    ) -> Any:
        """Return what stands in where there is no robot."""
        from cards_muscle_plugin.fault_node import FaultNode

        return FaultNode(context, namespace, robot, error, world)

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

    def _complain(self, error: Exception) -> None:
        """Report an error where there is no node to report it."""
        print(f"{self.NAME}: {error}", file=sys.stderr)
        traceback.print_exception(error)


def get_system() -> MusclePlugin:
    """Return a new system; Gazebo calls it once for each plugin element."""
    return MusclePlugin()
