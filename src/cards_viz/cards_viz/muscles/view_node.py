"""Node ``browser_view``: the page of a robot with muscles behind ROS topics.

It draws what any host publishes (simulator, Gazebo, hardware) and commands through services,
parameters and, while no controller runs, ``force_command``. It runs in a process of its own and
looks at the topics 30 times a second.
"""

from __future__ import annotations

import logging
import queue
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.msg import ParameterType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Int32, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.muscles.command import command_limits
from cards_core.parameters.parameter_saving import parameter_file_of, save_parameters
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.trajectories.live import target_duration
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import StopFlag, run
from cards_ros.messages import JointStateWriter
from cards_ros.parameters import Parameter
from cards_viz.labels import Labels
from cards_viz.muscles.controller_parameters import ControllerParameters
from cards_viz.muscles.interface import MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.pushing import Push
from cards_viz.muscles.scene import Scene
from cards_viz.muscles.tracking import Tracking, tracked
from cards_viz.muscles.watcher import MODEL, TERRAIN, WORLD, DrawingNode, MuscleWatcher
from cards_viz.muscles.world_scene import WorldScene
from cards_viz.muscles.world_watcher import watch_world
from cards_viz.nodes import PORT, WINDOW, PageNode

LOG = logging.getLogger(__name__)

PATIENCE = 1.0
"""Time for a service to appear before a command is given up, [s]."""

HAND_PERIOD = 0.02
"""Time between two commands by hand, [s]; the hosts' watchdogs expect them regularly."""


NOT_SAVED = "States are kept where simulator and controller are one process: ./cards demo --no-ros"
"""What the page says instead of saving states."""


class CommandError(CardsError):
    """A command that no node can execute."""


@dataclass
class _Call:
    """A service call that waits for its service."""

    client: Any
    name: str
    request: Any
    deadline: float
    then: Callable[[], None] | None


class MuscleRosCommands:
    """Fulfils `cards_viz.muscles.interface.MuscleCommands`.

    The methods of the protocol may be called from any thread: they queue the command, and
    `update`, called by the thread that spins the node, carries it out.

    Args:
        node: Node to act through.
        robot: The robot.
        watcher: Knows the controller and the time.
        simulator: Node name of the simulator.
        notify: Called with the text of what went wrong.
        say: Called with the text of what was done.
        file: Parameter file in which gains are saved, None: nowhere.
    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        watcher: MuscleWatcher,
        *,
        simulator: str,
        notify: Callable[[str], None],
        say: Callable[[str], None] = lambda _: None,
        file: Path | None = None,
    ) -> None:
        self._say, self._file = say, file
        self._node = node
        self._watcher = watcher
        self._notify = notify
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._clients: dict[str, Any] = {}
        self._parameters: dict[str, AsyncParameterClient] = {}
        self._waiting: list[_Call] = []
        self._simulator = simulator
        self._muscles = {muscle.name: muscle for muscle in robot.muscles}
        self._hand: dict[str, tuple[CommandKind, float]] = {}  # commanded by hand
        self._hand_active = False
        self._hand_sent = 0.0
        self._publishers: dict[CommandKind, Any] = {}
        self._writers: dict[CommandKind, JointStateWriter] = {}
        self._references: dict[str, Any] = {}
        self._later: list[Callable[[], None]] = []
        self._unsent = 0.0
        self._joint_names = robot.tree.position_names
        self._push: Push | None = None
        self._wrenches: Any = None
        self._unheard = 0.0
        self._links = [link.name for link in robot.links]
        self._body, self._wrench_topic, self._turn = "", topics.APPLY_WRENCH, np.eye(3)
        self._link_poses: Callable[[Array], Array] | None = None
        self._gain_lengths: dict[str, int] = {}  # of those gains that are lists
        for name, kind in self._host_services().items():
            self._client(name, kind)

    def _host_services(self) -> dict[str, type]:
        return {
            topics.PAUSE_SERVICE: SetBool,
            topics.STEP_SERVICE: Trigger,
            topics.RESET_SERVICE: Trigger,
            self._of(self._simulator, topics.ESTOP_SERVICE): Trigger,
        }

    @staticmethod
    def _of(node: str, service: str) -> str:
        return service.replace("~", node)

    def draws(self, scene: Scene, world: WorldScene | None) -> None:
        """Take over what is drawn: where links are, and what they are called in their world."""
        self._link_poses = scene.link_poses
        if world is not None:
            self._body = world.model or scene.robot.name
            self._turn = world.world_to_robot[:3, :3].T
            # the world of robots with namespaces has none
            self._wrench_topic = f"{'/' if world.namespace else ''}{topics.APPLY_WRENCH}"

    # Protocol, any thread ---------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Call ``sim/pause``; as `step`, `reset` and `set_speed` not for a real robot.

        Raises:
            CommandError: The robot is a real one.
        """
        self._need_simulator("paused")
        request = SetBool.Request(data=paused)
        self._todo.put(lambda: self._call(topics.PAUSE_SERVICE, SetBool, request))

    def step(self) -> None:
        """Call ``sim/step``."""
        self._need_simulator("stepped")
        self._todo.put(lambda: self._call(topics.STEP_SERVICE, Trigger))

    def reset(self) -> None:
        """Call ``sim/reset``."""
        self._need_simulator("reset")
        self._todo.put(self._reset)

    def estop(self, active: bool) -> None:
        """Stop host and controller; releasing resets the host and enables the controller.

        A real robot is not armed by that: releasing calls its ``~/clear``.
        """
        self._todo.put(self._stop if active else self._release)

    def set_command(self, name: str, kind: CommandKind, value: float) -> None:
        """Command a muscle by hand from now on, and ideal cables to keep their tension.

        Args:
            name: Name of the muscle.
            kind: What is commanded: a kind that the muscle's actuator takes.
            value: Tension [N], length [m], pressure [Pa] or excitation 0..1.

        Raises:
            CommandError: A controller commands the muscles, or the muscle takes no such command.
            UnknownNameError: There is no such muscle.
        """
        check_choice(name, "muscle", self._muscles)
        accepted = self._muscles[name].actuator.accepted_commands
        if kind not in accepted:
            raise CommandError(
                f"{kind} of '{name}' not set: a {self._muscles[name].kind} takes "
                f"{' or '.join(accepted) or 'no'} commands"
            )
        controller = self._watcher.controller
        if controller is not None:
            raise CommandError(
                f"{kind} of '{name}' not set: {controller} commands the muscles (expected: no "
                "controller, or a disabled one)"
            )
        self._todo.put(lambda: self._set_hand(name, kind, value))

    def push(self, push: Push | None) -> None:
        """Publish ``apply_wrench`` as often as the page is drawn; None: no more.

        Raises:
            CommandError: The robot is a real one.
        """
        self._need_simulator("pushed")
        self._todo.put(lambda: self._set_push(push))

    def set_gains(self, kp: Sequence[float], kd: Sequence[float]) -> None:
        """Set the parameters ``kp`` and ``kd`` of the controller; one value means all equal."""
        stiffness, damping = list(kp), list(kd)
        self._todo.put(lambda: self._set_gains(stiffness, damping))

    def set_target(self, names: Sequence[str], target: Array) -> None:
        """Publish the controller's ``~/reference``.

        Raises:
            CommandError: The robot is a real one, or no controller tracks these coordinates.
        """
        self._need_simulator("sent to a target from the page")
        tracking, controller = self._watcher.tracking, self._watcher.known_controller
        if tracking is None or controller is None or not self._tracks(tracking.labels, names):
            raise CommandError("no target set: no controller tracks these coordinates")
        message: Any
        if tuple(names) == self._joint_names:
            message = self._trajectory(tracking, np.asarray(target, dtype=float))
        else:
            message = self._pose(tracking, names, target)
        self._todo.put(lambda: self._send_reference(controller, message))

    @staticmethod
    def _tracks(labels: Labels, names: Sequence[str]) -> bool:
        return tuple(labels.names[: len(names)]) == tuple(names)

    def _trajectory(self, tracking: Tracking, target: Array) -> JointTrajectory:
        duration = target_duration(tracking.desired, target, tracking.labels.units)
        rest = [0.0] * len(target)
        point = JointTrajectoryPoint(
            positions=target.tolist(), velocities=rest, accelerations=rest
        )
        point.time_from_start.sec = int(duration)
        point.time_from_start.nanosec = int(1e9 * (duration % 1.0))
        return JointTrajectory(joint_names=list(tracking.labels.names), points=[point])

    def _pose(self, tracking: Tracking, names: Sequence[str], target: Array) -> PoseStamped:
        message = PoseStamped()
        message.header.frame_id = "world"
        for name, value in zip(names, target, strict=True):
            setattr(message.pose.position, name, float(value))
        if len(tracking.desired) == len(names) + 4:  # the orientation stays
            turn = message.pose.orientation
            turn.w, turn.x, turn.y, turn.z = (float(x) for x in tracking.desired[len(names) :])
        return message

    def _send_reference(self, controller: str, message: Any) -> None:
        name = self._of(controller, topics.REFERENCE)
        if name not in self._references:
            self._references[name] = self._node.create_publisher(
                type(message), name, topics.COMMAND_QOS
            )
            self._unsent = time.monotonic() + PATIENCE
        publisher = self._references[name]
        if publisher.get_subscription_count():
            publisher.publish(message)
        elif time.monotonic() < self._unsent:  # not found each other yet
            self._later.append(lambda: self._send_reference(controller, message))
        else:
            self._notify(f"no target set: nobody reads {name}")

    def save_gains(self) -> None:
        """Write the controller's parameters ``kp`` and ``kd`` into the parameter file.

        Raises:
            CommandError: This node was started without a parameter file.
        """
        if self._file is None:
            raise CommandError(
                "gains not saved: the view was started without a parameter file (expected: "
                "--ros-args --params-file FILE, as ./cards demo and launch files do)"
            )
        self._todo.put(self._save_gains)

    def save(self, name: str) -> None:
        """Refuse: no service reaches the states of simulator and controllers at one instant.

        Raises:
            CommandError: Always; `load` and `delete` too.
        """
        raise CommandError(f"state '{name}' not saved: {NOT_SAVED}")

    def load(self, name: str) -> None:
        """Refuse, as `save`."""
        raise CommandError(f"state '{name}' not restored: {NOT_SAVED}")

    def delete(self, name: str) -> None:
        """Refuse, as `save`."""
        raise CommandError(f"state '{name}' not deleted: {NOT_SAVED}")

    def set_speed(self, factor: float) -> None:
        """Set the parameter ``speed`` of the simulator."""
        self._need_simulator("made faster or slower")
        values = [RosParameter("speed", value=float(factor))]
        self._todo.put(lambda: self._set_parameters(self._simulator, values))

    def set_switch(self, name: str, on: bool) -> None:
        """Set a boolean parameter of the controller."""
        values = [RosParameter(name, value=on)]
        self._todo.put(lambda: self._set_of_controller(name, values))

    def _need_simulator(self, what: str) -> None:
        host = self._watcher.real_host
        if host is not None:
            raise CommandError(f"a real robot ({host}) cannot be {what}")

    # Spinning thread --------------------------------------------------------------------------

    def update(self) -> None:
        """Carry out what is queued, repeat the commands by hand."""
        later, self._later = self._later, []
        for action in later:
            action()
        while True:
            try:
                action = self._todo.get_nowait()
            except queue.Empty:
                break
            action()
        now = time.monotonic()
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._try(call, now)
        self._command_by_hand(now)
        self._push_on(now)

    def _client(self, name: str, kind: type) -> Any:
        if name not in self._clients:
            self._clients[name] = self._node.create_client(kind, name)
        return self._clients[name]

    def _call(
        self,
        name: str,
        kind: Any,
        request: Any = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Call a service, waiting a moment for it; ``then`` runs if it succeeds."""
        now = time.monotonic()
        request = kind.Request() if request is None else request
        self._try(_Call(self._client(name, kind), name, request, now + PATIENCE, then), now)

    def _try(self, call: _Call, now: float) -> None:
        if call.client.service_is_ready():
            future = call.client.call_async(call.request)
            future.add_done_callback(lambda done: self._answered(call, done))
        elif now < call.deadline:
            self._waiting.append(call)
        else:
            self._notify(f"service {call.name} is not there: is its node running?")

    def _answered(self, call: _Call, future: Any) -> None:
        if future.exception() is not None:
            self._notify(f"{call.name}: {future.exception()}")
        elif not future.result().success:
            self._notify(f"{call.name}: {future.result().message}")
        elif call.then is not None:
            call.then()

    def _stop(self) -> None:
        self._hand_active = False
        # the host first: it is what acts on the muscles
        host = self._watcher.real_host or self._simulator
        self._call(self._of(host, topics.ESTOP_SERVICE), Trigger)
        controller = self._watcher.known_controller
        if controller is not None:
            self._call(self._of(controller, topics.ESTOP_SERVICE), Trigger)

    def _release(self) -> None:
        controller = self._watcher.known_controller
        enable = None
        if controller is not None:
            name = self._of(controller, topics.ENABLE_SERVICE)
            request = SetBool.Request(data=True)

            def enable() -> None:
                self._call(name, SetBool, request)

        self._hand_active = False
        real = self._watcher.real_host
        release = self._of(real, topics.CLEAR_SERVICE) if real else topics.RESET_SERVICE
        self._call(release, Trigger, then=enable)

    def _reset(self) -> None:
        # time stands still after a reset until a command comes: not until one by accident
        self._hand_active = False
        self._call(topics.RESET_SERVICE, Trigger)

    # Commands by hand -------------------------------------------------------------------------

    def _set_hand(self, name: str, kind: CommandKind, value: float) -> None:
        if not self._hand_active:
            self._hand_active = True
            self._hand = {}
            # what only knows tensions keeps the one it has; others have a state of their own
            for muscle, now in zip(self._muscles.values(), self._watcher.tensions, strict=True):
                if muscle.actuator.accepted_commands == ("force", "impedance"):
                    low, high = command_limits(muscle, "force")
                    kept = float(np.clip(now, low, high)) if np.isfinite(now) else low
                    self._hand[muscle.name] = ("force", kept)
        self._hand[name] = (kind, value)
        self._hand_sent = 0.0

    def _command_by_hand(self, now: float) -> None:
        if not self._hand_active or now - self._hand_sent < HAND_PERIOD:
            return
        if self._watcher.controller is not None:
            self._hand_active = False
            return
        self._hand_sent = now
        stamp = max(self._watcher.stamp, 0)
        for kind in dict.fromkeys(kind for kind, _ in self._hand.values()):
            told = {name: value for name, (k, value) in self._hand.items() if k == kind}
            if kind not in self._publishers:
                # not before it is needed: who publishes commands counts as a controller
                self._publishers[kind] = self._node.create_publisher(
                    JointState, topics.COMMAND_TOPICS[kind], topics.COMMAND_QOS
                )
            writer = self._writers.get(kind)
            if writer is None or writer.names != tuple(told):
                writer = JointStateWriter(list(told), topics.COMMAND_FIELDS[kind])
                self._writers[kind] = writer
            self._publishers[kind].publish(writer.write(stamp, np.array(list(told.values()))))

    # Pushes -----------------------------------------------------------------------------------

    def _set_push(self, push: Push | None) -> None:
        if self._wrenches is None:
            self._wrenches = self._node.create_publisher(
                WrenchStamped, self._wrench_topic, topics.WRENCH_QOS
            )
            self._unheard = time.monotonic() + PATIENCE
        if self._push is not None and (push is None or push.link != self._push.link):
            self._publish_wrench(self._push.link, np.zeros(6))
        self._push = push

    def _push_on(self, now: float) -> None:
        push = self._push
        if push is None or self._link_poses is None or not np.isfinite(self._watcher.q).all():
            return
        if not self._wrenches.get_subscription_count():
            if now > self._unheard:
                self._push = None
                self._notify("nothing pushed: the host of this robot takes no wrenches")
            return
        poses = self._link_poses(self._watcher.q)
        self._publish_wrench(push.link, push.wrench(poses[self._links.index(push.link)]))

    def _publish_wrench(self, link: str, wrench: Array) -> None:
        message = WrenchStamped()
        message.header.frame_id = f"{self._body}::{link}" if self._body else link
        force, torque = message.wrench.force, message.wrench.torque
        turned = np.concatenate([self._turn @ wrench[:3], self._turn @ wrench[3:]])
        force.x, force.y, force.z, torque.x, torque.y, torque.z = turned.tolist()
        self._wrenches.publish(message)

    # Parameters -------------------------------------------------------------------------------

    def remote(self, node: str) -> AsyncParameterClient:
        """Return the client of a node's parameters."""
        if node not in self._parameters:
            self._parameters[node] = AsyncParameterClient(self._node, node)
        return self._parameters[node]

    def _set_gains(self, kp: list[float], kd: list[float]) -> None:
        values = []
        for name, gains in (("kp", kp), ("kd", kd)):
            # one value for all: as the number, or as the list, that the parameter was
            count = self._gain_lengths.get(name)
            value: Any = gains
            if len(gains) == 1:
                value = gains[0] if count is None else gains * count
            values.append(RosParameter(name, value=value))
        self._set_of_controller("gains", values)

    def _set_of_controller(self, what: str, values: list[RosParameter]) -> None:
        controller = self._watcher.known_controller
        if controller is None:
            self._notify(f"{what} not set: no controller publishes commands")
            return
        self._set_parameters(controller, values)

    def _set_parameters(self, node: str, values: list[RosParameter]) -> None:
        client = self.remote(node)
        if not client.services_are_ready():
            self._notify(f"parameters of {node} cannot be set: is the node running?")
            return

        def answered(future: Any) -> None:
            if future.exception() is not None:
                self._notify(f"parameters of {node}: {future.exception()}")
                return
            for result in future.result().results:
                if not result.successful:
                    self._notify(result.reason)

        client.set_parameters(values, answered)

    def _save_gains(self) -> None:
        controller, file = self._watcher.known_controller, self._file
        if controller is None or file is None:
            self._notify("gains not saved: no controller publishes commands")
            return
        client = self.remote(controller)
        if not client.services_are_ready():
            self._notify(f"gains not saved: {controller} does not answer")
            return

        def answered(future: Any) -> None:
            if future.exception() is not None:
                self._notify(f"gains not saved: {controller}: {future.exception()}")
                return
            values = {}
            for name, value in zip(("kp", "kd"), future.result().values, strict=False):
                numbers = _numbers(value)
                values[name] = numbers[0] if value.type in _SCALARS and numbers else numbers
            if len(values) < 2 or not all(values.values()):
                self._notify(f"gains not saved: {controller} has no kp and kd")
                return
            try:
                backup = save_parameters(file, controller.rpartition("/")[2], values)
            except CardsError as error:
                self._notify(str(error))
            else:
                self._say(f"gains of {controller} saved in {file}; as it was: {backup.name}")

        client.get_parameters(["kp", "kd"], answered)

    def read_gains(self, node: str, then: Callable[[list[float], list[float]], None]) -> bool:
        """Ask a controller for its gains; ``then`` gets kp and kd, with -1 replaced.

        Returns:
            Whether it could be asked; ask again later if not.
        """
        client = self.remote(node)
        if not client.services_are_ready():
            return False

        def answered(future: Any) -> None:
            if future.exception() is not None:
                LOG.warning("gains of %s: %s", node, future.exception())
                return
            # a node that lacks one of them answers with an empty list
            found = dict(zip(("kp", "kd"), future.result().values, strict=False))
            if len(found) < 2:
                return
            kp, kd = (_numbers(value) for value in found.values())
            self._gain_lengths = {
                name: len(_numbers(value))
                for name, value in found.items()
                if value.type not in _SCALARS
            }
            count = max(len(kp), len(kd))
            kp, kd = (gains * count if len(gains) == 1 else gains for gains in (kp, kd))
            if not kp or len(kp) != len(kd) or min(kp) < 0.0:
                return  # of a matrix kp there are no sliders
            # a negative damping stands for critical damping
            kd = [d if d >= 0.0 else 2.0 * p**0.5 for p, d in zip(kp, kd, strict=True)]
            then(kp, kd)

        client.get_parameters(["kp", "kd"], answered)
        return True


_SCALARS = (ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER)


def _numbers(value: Any) -> list[float]:
    """Numbers of a parameter value, none if it holds none."""
    match value.type:
        case ParameterType.PARAMETER_DOUBLE:
            return [value.double_value]
        case ParameterType.PARAMETER_INTEGER:
            return [float(value.integer_value)]
        case ParameterType.PARAMETER_DOUBLE_ARRAY:
            return list(value.double_array_value)
        case ParameterType.PARAMETER_INTEGER_ARRAY:
            return [float(x) for x in value.integer_array_value]
        case _:
            return []


NODE_NAME = "browser_view"


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        MODEL,
        WORLD,
        TERRAIN,
        Parameter(
            "host", "127.0.0.1", "Address to listen on; 0.0.0.0 opens the view to the network."
        ),
        PORT,
        Parameter("rate", 30.0, "Maximum rate of updates.", "Hz", lower=1.0, upper=60.0),
        WINDOW,
        Parameter(
            "simulator",
            "simulator",
            "Node name of the simulator, for its e-stop and speed; a real robot is found.",
        ),
    ]


class BrowserViewNode(PageNode, DrawingNode):
    """See the module; arguments as `DrawingNode`.

    Attributes:
        page: The page.
        commands: What its buttons and sliders do.
    """

    page: MusclePage

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, parameters(), context, stop, robot, **node_options)
        value = self.values
        self.commands = MuscleRosCommands(
            self,
            self.robot,
            self.watcher,
            simulator=value["simulator"],
            notify=self.tell,
            say=self._say,
            file=parameter_file_of(sys.argv),
        )
        self._controller_parameters = ControllerParameters(self.commands.remote)
        world = watch_world(self, self.robot, value["world"], value["terrain"])
        self._world = None if world is None else world[1]
        self._run_state = ""
        self.create_subscription(String, topics.RUN_STATE, self._on_run_state, topics.LATCHED_QOS)
        self._gains_of: str | None = None
        self._asked = 0.0
        self.page = MusclePage(
            self.robot,
            self.commands,
            host=value["host"],
            port=value["port"],
            rate=value["rate"],
            window=value["window"],
            world=None if world is None else world[0],
        )
        self.commands.draws(self.page.scene, None if world is None else world[0])
        # the page answers from here on
        self._pages = self.create_publisher(Int32, topics.PAGES, topics.LATCHED_QOS)
        self._watching = -1

    def _say(self, text: str) -> None:
        self.get_logger().info(text)
        self.page.say(text)

    def _on_run_state(self, message: String) -> None:
        self._run_state = message.data

    def _count_pages(self) -> None:
        """Tell how many pages are open, whenever that changes."""
        watching = self.page.watching
        if watching != self._watching:
            self._watching = watching
            self._pages.publish(Int32(data=watching))

    def tick(self) -> None:
        """Look at the topics, carry out commands, show the newest state."""
        new = self.watcher.poll()
        if self._world is not None:
            self._world.poll()
        self.commands.update()
        self._follow_gains()
        self._controller_parameters.follow(self.watcher.known_controller)
        self._count_pages()
        if self.watcher.stamp >= 0 or new:
            self.page.show(self.snapshot())

    def snapshot(self) -> MuscleSnapshot:
        """Return what there is to show now."""
        watcher = self.watcher
        known: dict[str, Any] = {}
        if watcher.tracking is not None and np.all(np.isfinite(watcher.q)):
            goal = tracked(watcher.tracking, self.page.scene, watcher.q)
            if goal is not None:
                known = vars(goal).copy()
                known["desired_position"] = known.pop("position")
        return MuscleSnapshot(
            watcher.time,
            watcher.q,
            watcher.tensions,
            states=watcher.states,
            controller=watcher.controller,
            idle=watcher.known_controller if watcher.controller is None else None,
            paused=watcher.paused,
            stopped=watcher.stopped,
            real=watcher.real_host is not None,
            real_time_factor=watcher.real_time_factor,
            control_rate=watcher.control_rate,
            bodies={} if self._world is None else dict(self._world.poses),
            message=watcher.trouble,
            state=self._run_state,
            released=watcher.released,
            necessary=watcher.necessary,
            switches=self._controller_parameters.switches,
            limits=self._controller_parameters.limits,
            not_saved=NOT_SAVED,
            **known,
        )

    def _follow_gains(self) -> None:
        """Show the gains of the controller, once per controller."""
        name = self.watcher.known_controller
        if name is None or name == self._gains_of or time.monotonic() - self._asked < 0.5:
            return
        self._asked = time.monotonic()

        def show(kp: list[float], kd: list[float]) -> None:
            self._gains_of = name
            tracking = self.watcher.tracking
            names = () if tracking is None else tracking.labels.error_names
            if len(names) != len(kp):
                names = tuple(str(i + 1) for i in range(len(kp)))
            self.page.set_gains(kp, kd, names)

        self.commands.read_gains(name, show)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``browser_view``."""
    return run(BrowserViewNode, NODE_NAME, args)
