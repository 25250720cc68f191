"""Node ``browser_view``: the page of a robot with muscles behind ROS topics.

It draws what any host publishes (simulator, Gazebo, hardware) and commands through services,
parameters and, while no controller runs, ``force_command``. It runs in a process of its own and
looks at the topics 30 times a second.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rcl_interfaces.msg import ParameterType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Int32, String
from std_srvs.srv import SetBool, Trigger

from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot.model import Robot
from cards_ros import topics
from cards_ros.loop import StopFlag, run
from cards_ros.messages import JointStateWriter
from cards_ros.parameters import Parameter
from cards_viz.muscles.controller_parameters import ControllerParameters
from cards_viz.muscles.interface import MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.tracking import tracked
from cards_viz.muscles.watcher import MODEL, TERRAIN, WORLD, DrawingNode, MuscleWatcher
from cards_viz.muscles.world_watcher import watch_world
from cards_viz.nodes import PORT, WINDOW, PageNode

LOG = logging.getLogger(__name__)

PATIENCE = 1.0
"""Time for a service to appear before a command is given up, [s]."""

HAND_PERIOD = 0.02
"""Time between two commands by hand, [s]; the hosts' watchdogs expect them regularly."""


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
    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        watcher: MuscleWatcher,
        *,
        simulator: str,
        notify: Callable[[str], None],
    ) -> None:
        self._node = node
        self._watcher = watcher
        self._notify = notify
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._clients: dict[str, Any] = {}
        self._parameters: dict[str, AsyncParameterClient] = {}
        self._waiting: list[_Call] = []
        self._simulator = simulator
        self._muscles = {muscle.name: muscle for muscle in robot.muscles}
        self._hand: dict[str, float] = {}  # tensions commanded by hand
        self._hand_active = False
        self._hand_sent = 0.0
        self._publisher: Any = None
        self._writer = JointStateWriter([], ("effort",))
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

    def set_tension(self, name: str, tension: float) -> None:
        """Command a muscle by hand from now on, and ideal cables to keep their tension.

        Raises:
            CommandError: A controller commands the muscles, or the muscle takes no tension.
            UnknownNameError: There is no such muscle.
        """
        if name not in self._muscles:
            raise UnknownNameError("muscle", name, self._muscles)
        accepted = self._muscles[name].actuator.accepted_commands
        if "force" not in accepted:
            raise CommandError(
                f"tension of '{name}' not set: a {self._muscles[name].kind} takes "
                f"{' or '.join(accepted) or 'no'} commands"
            )
        controller = self._watcher.controller
        if controller is not None:
            raise CommandError(
                f"tension of '{name}' not set: {controller} commands the muscles (expected: no "
                "controller, or a disabled one)"
            )
        self._todo.put(lambda: self._set_hand(name, tension))

    def set_gains(self, kp: Sequence[float], kd: Sequence[float]) -> None:
        """Set the parameters ``kp`` and ``kd`` of the controller; one value means all equal."""
        stiffness, damping = list(kp), list(kd)
        self._todo.put(lambda: self._set_gains(stiffness, damping))

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

    def _set_hand(self, name: str, tension: float) -> None:
        if not self._hand_active:
            self._hand_active = True
            # what only knows tensions keeps the one it has; others have a state of their own
            self._hand = {
                muscle.name: float(np.clip(now, muscle.tension_min, muscle.tension_max))
                if np.isfinite(now)
                else muscle.tension_min
                for muscle, now in zip(self._muscles.values(), self._watcher.tensions, strict=True)
                if muscle.actuator.accepted_commands == ("force", "impedance")
            }
        self._hand[name] = tension
        if tuple(self._hand) != self._writer.names:
            self._writer = JointStateWriter(list(self._hand), ("effort",))
        self._hand_sent = 0.0

    def _command_by_hand(self, now: float) -> None:
        if not self._hand_active or now - self._hand_sent < HAND_PERIOD:
            return
        if self._watcher.controller is not None:
            self._hand_active = False
            return
        if self._publisher is None:
            # not before it is needed: who publishes commands counts as a controller
            self._publisher = self._node.create_publisher(
                JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS
            )
        self._hand_sent = now
        tensions = np.array(list(self._hand.values()))
        self._publisher.publish(self._writer.write(max(self._watcher.stamp, 0), tensions))

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
            if not kp or len(kp) != len(kd):
                return
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
            self, self.robot, self.watcher, simulator=value["simulator"], notify=self.tell
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
        # the page answers from here on
        self._pages = self.create_publisher(Int32, topics.PAGES, topics.LATCHED_QOS)
        self._watching = -1

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
