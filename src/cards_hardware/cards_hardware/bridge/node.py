"""Node ``hardware``: the real robot behind the topics that every CARDS host has.

A lifecycle node. *unconfigured*: no port is open. *inactive*: all boards are identified, states
are published, commands are not heard. *active*: the boards are armed and commands pass.

Whatever ends the active state without being asked to (a board is lost or faulty, its watchdog
relaxed it, an emergency stop) makes the node inactive, and only a transition by hand arms again.
Nothing is repeated: when commands stop, the boards' own watchdogs see it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from std_srvs.srv import Trigger

from cards_core.analysis.impedance_loop import growth_text, slowest_motion
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.urdf.writer import to_urdf
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.robot.model import Robot
from cards_core.stamps import NANOSECONDS
from cards_hardware.boards.board import COMMANDED
from cards_hardware.boards.events import BoardEvent, state_word
from cards_hardware.boards.layout import read_layout
from cards_hardware.bridge.board_host import LOG_NAME, BoardHost
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.bridge.health import BridgeHealth
from cards_hardware.bridge.node_parameters import parameters, robot_parameters
from cards_hardware.bridge.states import HardwareState
from cards_hardware.real_time import LINE_PRIORITY, MAX_PRIORITY, make_real_time
from cards_ros import topics
from cards_ros.host_shell import HostShell
from cards_ros.loop import HOT_NICE, NodeLoop, StopFlag, run
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

MakeHardware: TypeAlias = Callable[..., Hardware]
"""Called with robot, layout, ``on_state`` and ``on_event``; tests have their own."""

NODE_NAME = "hardware"

GRACE = 1.2
"""Time for the boards' watchdogs to come to their end, [s]; what is armed then is disarmed."""

RETRY_PERIOD = 1.0
"""Time between two attempts to deliver an emergency stop while no port is open, [s]."""

_WAIT = 0.02  # [s], longest wait of the loop

_DONE, _FAILED = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class BridgeNode(LifecycleNode):
    """The node: parameters, lifecycle, services.

    Args:
        context: ROS context.
        stop: Ends `run`.
        robot: Replaces the parameter ``model``, for tests.
        make: Makes the boards' side.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        hardware: The boards.
        host: The robot: its states, command gate and log.
        health: Reports on ``/diagnostics``.
        reason: Why the node became inactive by itself or could not be started, empty otherwise.
        models: What this and other nodes say of their models.
    """

    def __init__(
        self,
        context: Context,
        stop: StopFlag,
        *,
        robot: Robot | None = None,
        make: MakeHardware = Hardware,
        **node_options: Any,
    ) -> None:
        super().__init__(NODE_NAME, context=context, **node_options)
        if self.get_parameter("use_sim_time").value:
            raise CardsError("parameter 'use_sim_time' is True (expected: False, a real robot)")
        value = self.parameters = Parameters(self, self._on_parameters)
        value.declare(parameters())
        robot = robot or load(value["model"])
        self._dynamics = make_dynamics(robot)  # of this node; the boards' side has its own
        layout = self._layout = read_layout(
            value["boards"] or robot.name,
            robot,
            port=value["port"],
            baudrate=value["baudrate"],
            namespace=value["part"],
            dynamics=self._dynamics,
        )
        gains = robot_parameters(layout.limited(robot))
        value.declare(gains)
        value.refuse_others()
        self._stop = stop
        self._events: queue.SimpleQueue[BoardEvent] = queue.SimpleQueue()
        # no thread of the boards runs, and nothing wakes the loop, before they are opened
        self.hardware = make(robot, layout, on_state=self._wake, on_event=self._events.put)
        if (priority := value["real_time_priority"]) >= LINE_PRIORITY:
            self.hardware.lines.priority = min(priority + 1, MAX_PRIORITY)
        elif not priority:
            self.hardware.lines.priority = 0
        log_dir: str = value["log_dir"]
        self.host = BoardHost(
            robot,
            layout,
            self.hardware,
            command_timeout=value["command_timeout"],
            log_path=Path(log_dir, LOG_NAME) if log_dir else None,
        )
        self.host.change({spec.name: value[spec.name] for spec in gains})
        self._patience = round(value["command_timeout"] * NANOSECONDS)
        self.models = ModelTopic(
            self, "host", identity_of(robot), lambda: value[ACCEPT], ready=False
        )
        self.reason = ""
        self.health = BridgeHealth(self, self.host, layout, self, self.models)
        self._shell = HostShell(
            self,
            self.host,
            self.health,
            models=self.models,
            description=to_urdf(robot),
            on_estop=self._on_estop,
        )
        self._loop = NodeLoop(
            self, self._shell.topics.subscriptions, stop, urgent=[self._shell.estop]
        )
        self._busy = self._finished = False
        self._armed_at = self._disarm_at = self._deliver_at = 0.0
        self.create_service(Trigger, topics.CLEAR_SERVICE, self._on_clear)
        change = self._service_change_state
        change.callback = self._checked(change.callback)

    @property
    def active(self) -> bool:
        """Whether commands pass."""
        return self.host.active

    # Loop -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Pass states and commands until the stop flag is set; return the exit code."""
        for board in self._layout.boards:
            self.get_logger().info(
                f"board {board.name} at {board.port}: {len(board.muscles)} muscles, "
                f"{len(board.joints)} joints"
            )
        self._warn_of_gains()
        if self.parameters["autostart"] and self.trigger_configure() == _DONE:
            self.trigger_activate()
        while not self._stop and not self._finished:
            self._pass_on()
            if self._loop.serve():
                self._housekeeping()
        if self.active:
            self.trigger_deactivate()
        return 0

    def _warn_of_gains(self) -> None:
        """Say so if the boards' impedance laws would shake the robot at home."""
        law, dynamics = self.host.gate.impedance, self._dynamics
        gains = law.stiffness, law.damping
        motion = slowest_motion(dynamics, dynamics.tree.home, *gains)
        if motion is not None and not motion.stable:
            name = dynamics.robot.muscles[motion.muscle].name
            self.get_logger().warning(f"muscle '{name}': {growth_text(motion, *gains)}")

    def _on_parameters(self, changes: Any) -> None:
        """Take over gains of the impedance law; states and commands go on meanwhile."""

        def change() -> None:
            self.host.change(changes)
            self._warn_of_gains()

        self._meanwhile(change, obeying=True)

    def _pass_on(self) -> None:
        """Pass on a state and the commands that have come; without a state, wait a little."""
        sample = self.hardware.take()
        if sample is not None:
            self._check(sample)
            if self.host.read(sample):
                self._shell.publish()
                self._shell.record()
        self._obey()
        if sample is None:
            self._loop.wait(_WAIT)

    def _wake(self) -> None:
        """There is a new state; from any thread."""
        self._loop.wake()

    def _obey(self) -> None:
        if not self.active or self._busy:
            self.health.ignored += sum(1 for _ in self._shell.topics.commands())
            return
        for _ in self._shell.obey(lockstep=False, patience=self._patience):
            pass  # time goes on by itself

    def _meanwhile(self, work: Callable[[], object], *, obeying: bool = False) -> None:
        """Run in a thread what waits for boards; states and the emergency stop go on.

        Args:
            work: What to do.
            obeying: Whether commands go on, too.
        """
        error: list[BaseException] = []

        def do() -> None:
            try:
                work()
            except BaseException as reason:
                error.append(reason)
            self._loop.wake()

        thread = threading.Thread(target=do, name="boards", daemon=True)
        busy, self._busy = self._busy, not obeying
        try:
            thread.start()
            while thread.is_alive():
                self._pass_on()
                self._loop.serve_urgent()
        finally:
            self._busy = busy
        if error:
            raise error[0]

    def _housekeeping(self) -> None:
        status = self.host.refresh()
        while not self._events.empty():
            self.health.event(self._events.get())
        if self.active and status.problem:
            self._give_up(status.problem)
        now = time.monotonic()
        if self._disarm_at and now > self._disarm_at:
            self._disarm_at = 0.0
            if not self.host.gate.stopped:  # a stopped arm is held, not dropped
                reason = self.reason
                self._try(self.hardware.disarm)
                self.reason = reason or self.reason  # why it began, not what came of it
        if self._deliver_at and now > self._deliver_at:
            self._deliver()
        self._shell.refresh()

    def _try(self, work: Callable[[], object]) -> bool:
        """Do it, or log why not; tell whether it was done."""
        try:
            self._meanwhile(work)
        except CardsError as error:
            self.reason = str(error)
            self.get_logger().error(self.reason)
            return False
        return True

    # Lifecycle --------------------------------------------------------------------------------

    def on_configure(self, _state: Any) -> TransitionCallbackReturn:
        """Open the ports and identify the boards."""
        self.reason = ""
        deliver, self._deliver_at = self._deliver_at, 0.0
        if not self._try(self.hardware.open):
            self.hardware.close()
            self._deliver_at = deliver  # an emergency stop that waits goes on waiting
            return _FAILED
        self.host.clock.adjust()
        self.host.refresh()
        if priority := self.parameters["real_time_priority"]:
            # the threads of the links exist now; those that keep the lines have a higher one
            got = make_real_time(os.getpid(), priority)
            self.get_logger().debug(f"scheduled as {got}")
        self.get_logger().info("inactive: states are published, commands are not obeyed")
        return _DONE

    def on_activate(self, _state: Any) -> TransitionCallbackReturn:
        """Arm the boards; from now on commands pass."""
        self.reason = ""
        self._disarm_at = 0.0
        if self.host.gate.stopped:
            self._refuse_to_arm("emergency stop: call ~/clear first")
            return _FAILED
        self.host.reset()
        self.host.clock.adjust()
        if not self._try(self.hardware.arm):
            return _FAILED
        if self.host.gate.stopped:
            self._refuse_to_arm("emergency stop while the boards were armed")
            return _FAILED
        self._armed_at = time.monotonic()  # what was measured before says nothing
        self.host.active = True
        self._shell.topics.refresh()
        self.health.armed()
        self.models.ready(True)
        self.get_logger().info("active: the boards are armed, commands pass")
        return _DONE

    def _refuse_to_arm(self, reason: str) -> None:
        self.reason = reason
        self.get_logger().error(f"not activated: {reason}")

    def on_deactivate(self, _state: Any) -> TransitionCallbackReturn:
        """Let the muscles down to their safe tension, then switch the drives off."""
        asked = self.active  # else `_give_up` was here
        self._stop_commanding()
        if asked and not self.host.gate.stopped:
            self._try(self.hardware.relax)
            self._meanwhile(lambda: time.sleep(self.parameters["relax_time"]))
            if not self.host.gate.stopped:
                self._try(self.hardware.disarm)
            self.get_logger().info("inactive: drives are off")
        self._log_times()
        return _DONE

    def _log_times(self) -> None:
        """Say how well the lines kept time since their ports were opened."""
        for board in self.host.refresh().boards:
            if (line := board.line).beats:
                self.get_logger().info(
                    f"board {board.name}: heartbeats at most {1e3 * line.beat_gap:.1f} ms apart, "
                    f"off by {line.beat_jitter}; replies within {1e3 * line.reply:.1f} ms, "
                    f"{line.replies}"
                )

    def on_cleanup(self, _state: Any) -> TransitionCallbackReturn:
        """Close the ports."""
        self._disarm_at = 0.0
        self.hardware.close()
        return _DONE

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """End the node."""
        if self.active:
            self.on_deactivate(state)
        self.hardware.close()
        self._finished = True
        return _DONE

    def _stop_commanding(self) -> None:
        self.host.active = False
        self.models.ready(False)

    def _give_up(self, reason: str) -> None:
        """Become inactive because of something that nobody asked for.

        Nothing is sent to the boards: they are in a safe state by themselves, or will be when
        their watchdogs see no commands. What is still armed after that is disarmed.
        """
        self._stop_commanding()
        self.reason = reason
        self._disarm_at = time.monotonic() + GRACE
        self.get_logger().error(f"inactive: {reason}; to arm again: lifecycle transition activate")
        self.trigger_deactivate()

    def _check(self, sample: HardwareState) -> None:
        """Give up if a board no longer takes commands."""
        if self.active and sample.time > self._armed_at and sample.state not in COMMANDED:
            self._give_up(self._why(sample))

    def _why(self, sample: HardwareState) -> str:
        """Say why a board takes no commands."""
        if self.host.gate.stopped:
            return "emergency stop"
        problem = self.host.refresh().problem
        return problem or f"a board is in state {state_word(sample.state)}"

    def _checked(self, change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Let a transition that is not possible now be refused rather than not answered."""

        def checked(request: Any, response: Any) -> Any:
            try:
                return change(request, response)
            except _rclpy.RCLError:
                wanted = request.transition.label or request.transition.id
                self.get_logger().error(f"no transition '{wanted}' in the present state")
                response.success = False
                return response

        return checked

    # Services ---------------------------------------------------------------------------------

    def _on_estop(self) -> str:
        if self.lifecycle_state == "unconfigured":
            self._deliver_at = time.monotonic()
        self.get_logger().warning("emergency stop: safe tensions until ~/clear")
        message = "safe tensions; ~/clear releases the stop, activate arms again"
        if lost := [board.name for board in self.hardware.status().boards if not board.connected]:
            message = (
                f"remembered for board {', '.join(lost)}, which is not connected: it gets the "
                "stop as soon as it is"
            )
        if self.active and not self._busy:
            self._give_up("emergency stop")
        return message

    def _deliver(self) -> None:
        """Try to get an emergency stop to boards whose ports are not open."""
        self._deliver_at = time.monotonic() + RETRY_PERIOD
        try:
            self._meanwhile(self.hardware.open)
            self._deliver_at = 0.0
            self.get_logger().warning("emergency stop delivered")
        except CardsError:
            pass  # the stop stays remembered
        finally:
            self.hardware.close()

    def _on_clear(self, _request: Any, response: Any) -> Any:
        if self.active:
            response.message = "nothing to clear: active"
            return response
        try:
            self._meanwhile(self.hardware.clear)
        except CardsError as error:
            response.message = str(error)
            return response
        self._deliver_at = 0.0
        self.host.reset()
        self.reason = ""
        response.success = True
        response.message = "cleared; nothing is armed: lifecycle transition activate"
        self.get_logger().info(response.message)
        return response

    # Rest -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the ports, write the log and destroy the node."""
        self.hardware.close()
        self._shell.close()
        self._loop.close()
        self.destroy_node()
        # rclpy leaves it to the garbage collector, and until then its services are still announced
        self._state_machine.destroy_when_not_in_use()

    @property
    def lifecycle_state(self) -> str:
        """Name of the lifecycle state."""
        return str(self._state_machine.current_state[1])


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``bridge``."""
    return run(BridgeNode, NODE_NAME, args, nice=HOT_NICE)


if __name__ == "__main__":
    sys.exit(main())
