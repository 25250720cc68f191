"""A robot of the embedded simulator behind its topics, with its diagnostics."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rclpy.node import Node

from cards_core.formats.urdf.writer import to_urdf
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.model_identity import identity_of
from cards_core.stamps import NANOSECONDS
from cards_ros.health import HostHealth
from cards_ros.host_shell import HostShell
from cards_ros.model_topic import ModelTopic
from cards_sim.build import PlacedRobot
from cards_sim.errors import SimulationStoppedError
from cards_sim.time_control import TimeControl
from cards_sim.world_topics import ContactForceTopic, WorldTopics, grasped_text


class SimulatedRobot:
    """A robot with a node of its own, or on that of the simulator.

    Args:
        node: The node.
        placed: The robot.
        control: When time advances.
        number: Of the robot among those of the world.
        world: Topics of the world.
        period: From one state to the next, [s].

    Attributes:
        node: As given.
        host: World, command gate and log.
        parameters: Of the robot.
        shell: Its topics.
        contact_forces: What touches its links.
        models: What this and other nodes say of their models.
        health: What is said on ``/diagnostics``.
    """

    def __init__(
        self,
        node: Node,
        placed: PlacedRobot,
        control: TimeControl,
        number: int,
        *,
        world: WorldTopics,
        period: float,
    ) -> None:
        self.node = node
        self.host = placed.host
        self.parameters = value = placed.parameters
        self._control = control
        self._number = number
        self._world = world
        self._stale_after = round(value["command_timeout"] * NANOSECONDS)
        robot = self.host.robot
        self.contact_forces = ContactForceTopic(node, self.host.simulator)
        self.models = ModelTopic(node, "host", identity_of(robot), lambda: value[ACCEPT])
        self.models.states_every(period)
        self.health = HostHealth(node, self.host, self, self.models)
        self.shell = HostShell(
            node, self.host, self.health, models=self.models, description=to_urdf(robot)
        )

    def receive(self) -> None:
        """Take over the commands that have come."""
        control = self._control
        for stamp in self.shell.obey(lockstep=control.answered, patience=self._stale_after):
            if not control.released:
                control.commanded(self._number, time.monotonic())
            # muscles and motors have messages of their own, and both are the answer
            if control.watches and not self.host.unanswered:
                control.answered_by(self._number, stamp)
        if control.mode == "paced" and self.host.gate.stopped and not control.released:
            # a stopped robot obeys nobody: it sinks before the eyes of who stopped it
            control.commanded(self._number, time.monotonic())

    def close(self) -> None:
        """Say how it was and write the log."""
        self.health.tell_verdict("until the end")
        self.shell.close()

    # What `HostHealth` looks at ---------------------------------------------------------------

    @property
    def mode(self) -> str:
        """How time advances."""
        return self._control.mode

    @property
    def steps(self) -> int:
        """Steps done since the last reset."""
        return self._control.steps

    @property
    def paused(self) -> bool:
        """Whether the simulation is paused."""
        return self._control.paused

    @property
    def failure(self) -> SimulationStoppedError | None:
        """Why the world stopped, if it did."""
        return self._control.failure

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        return self.host.dt

    @property
    def waiting(self) -> bool:
        """Whether time stands still until a command for this robot comes."""
        return self._control.waits_for(self._number)

    @property
    def running(self) -> bool:
        """Whether time advances."""
        return self._control.running

    @property
    def wanted_speed(self) -> float:
        """Simulated time per real time that is to be reached; 0: none in particular."""
        return float(self.parameters["speed"]) if self._control.clocked else 0.0

    @property
    def path_failures(self) -> int:
        """Muscle contacts that could not be solved since the last reset."""
        return self.host.simulator.muscles.engine.failures

    def world_values(self) -> Mapping[str, object]:
        """Return what else to show of the world."""
        world = self.host.simulator.world
        return {
            "contacts": len(world.contacts),
            "grasped": grasped_text(world.grasped),
            "wrench_refused": self._world.refusal,
        }

    def loop_values(self) -> Mapping[str, object]:
        """Return what else to show of the loop."""
        pacer = self._control.pacer
        values: dict[str, object] = {
            "missed_deadlines": pacer.overruns,
            "dropped_deadlines": pacer.dropped,
        }
        if self._control.watches:
            values["unanswered_states"] = self._control.watches[self._number].unanswered
        return values
