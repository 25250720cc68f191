"""Run a robot's nodes as processes until the simulated time is over."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards_bringup.nodes.audience import Audience, AudienceTopics, Opening
from cards_bringup.nodes.node_list import NodeSpec
from cards_bringup.nodes.plan import Plan
from cards_bringup.nodes.ros_network import RosDomain, RosListener
from cards_bringup.nodes.supervisor import Supervisor
from cards_core.errors import CardsError

START_TIMEOUT = 60.0
"""Time [s] in which the first simulated second must begin."""

STALL_TIMEOUT = 30.0
"""Time [s] that simulated time may stand still while the nodes run (unless a view may pause)."""


@dataclass
class NodeRun:
    """What to run.

    Attributes:
        plan: Nodes, parameter file and launch arguments.
        overrides: Name of a node, with its namespace, to parameters beyond the plan's.
        duration: Simulated time, [s]; 0: until Ctrl-C.
        folder: Where the nodes write their logs.
        may_pause: Whether simulated time may stand still for long.
        clock: Makes the `Clock` of the run.
        audience: Who is to see the run from its beginning; nobody if None.
        views: Where the views go on after the run, until it is closed; they end with the run if
            None.
    """

    plan: Plan
    overrides: Mapping[str, Mapping[str, Any]]
    duration: float
    folder: Path
    may_pause: bool = False
    clock: Callable[[], Clock] = field(default_factory=lambda: Clock)
    audience: Audience | None = None
    views: contextlib.ExitStack | None = None
    _topics: AudienceTopics | None = field(default=None, init=False)
    _begun: tuple[Supervisor, Clock] | None = field(default=None, init=False)

    def start_views(self, on_ready: Callable[[str], None]) -> None:
        """Start the views ahead of `run`, while the rest of the run is still prepared.

        They need ``views``, and their part of ``overrides``. What else is in there, and
        ``duration``, may change until `run`.

        Args:
            on_ready: As of `run`.
        """
        assert self.views is not None
        self._begun = self._join(self.views, on_ready)
        self._start_nodes(self._begun[0], ("view",))

    def give_up(self) -> None:
        """End views that were started for a run that cannot start, and delete their logs."""
        if self.views is not None:
            self.views.close()
        for name in self._processes("view"):
            (self.folder / "logs" / f"{name}.log").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files are in there
            (self.folder / "logs").rmdir()

    def run(self, on_time: Callable[[float], None], on_ready: Callable[[str], None]) -> float:
        """Start the nodes, wait for the end of the run, stop the nodes.

        Args:
            on_time: Called with the simulated time [s] a few times a second.
            on_ready: Called with notes: on the ROS domain, on where to watch.

        Returns:
            Wall time from the start of the nodes to the end of the simulation, [s].

        Raises:
            ProcessFailedError: A node ended with an error.
            CardsError: Simulated time does not advance.
        """
        with contextlib.ExitStack() as until_end:
            stack = until_end if self.views is None else self.views
            nodes, clock = self._begun or self._join(stack, on_ready)
            begin = time.monotonic()
            try:
                self._start(nodes, clock, on_ready)
                wall = self._wait(nodes, clock, on_time, begin)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    # the host first: it must not find its controllers gone
                    nodes.stop(*self._processes("host"))
                nodes.stop()
                raise
            # controllers first: their logs are complete, the host must not wait for them
            nodes.stop(*self._processes("controller"))
            nodes.stop(*self._processes("host"))
            self.tell("finished: results are being written")
            return wall

    def _join(
        self, stack: contextlib.ExitStack, note: Callable[[str], None]
    ) -> tuple[Supervisor, Clock]:
        """Join the ROS network; return who starts the nodes, and the clock. They end with it."""
        domain = stack.enter_context(RosDomain())
        domain.join(note)
        environment = {**domain.environment, **self.plan.environment()}
        clock = stack.enter_context(self.clock())
        return stack.enter_context(Supervisor(self.folder / "logs", environment)), clock

    def tell(self, state: str) -> None:
        """Show the state of the run in the pages."""
        if self._topics is not None:
            self._topics.tell(state)

    def _processes(self, *roles: str) -> list[str]:
        """Return the names of the processes of nodes with these roles."""
        return [_process(spec) for spec in self.plan.nodes if spec.role in roles]

    def _start(self, nodes: Supervisor, clock: Clock, note: Callable[[str], None]) -> None:
        """Start all nodes; with an audience the views first, and the controllers' work last."""
        if self.audience is None:
            # tools are programs of a ROS installation: the launch files start them
            self._start_nodes(nodes, ("host", "controller", "view"))
            return
        if self._begun is None:
            self._start_nodes(nodes, ("view",))
        self.audience.meanwhile()
        self._topics = topics = AudienceTopics(clock.node, self.audience)
        opening = Opening(self.audience, note)
        ready: float | None = None
        while True:
            ended = nodes.poll()
            now = time.monotonic()
            gone = {name for name in self.audience.pages if _process_of(name) in ended}
            begins = opening.look(now, topics.watching, gone)
            # a host without a controller waits for nobody
            starts = opening.up if self.audience.controllers else begins
            if starts and ready is None:
                # not before: a machine of two cores would show the first picture later
                ready = now
                self._start_nodes(nodes, ("host", "controller"))
            if (begins and topics.enable()) or set(self._processes("host")) & ended:
                return
            if begins and ready is not None and now - ready > START_TIMEOUT:
                raise CardsError(
                    f"the controllers do not answer after {START_TIMEOUT:.0f} s although the "
                    f"nodes run; their output is in {self.folder / 'logs'}"
                )
            clock.wait(0.05)

    def _start_nodes(self, nodes: Supervisor, roles: Collection[str]) -> None:
        for spec in self.plan.nodes:
            if spec.role not in roles:
                continue
            parameters = {
                **self.plan.parameters(spec),
                **self.overrides.get(spec.full_name, {}),
            }
            essential = spec.role in ("host", "controller")
            command = spec.command(self.plan.parameter_file, parameters)
            nodes.start(_process(spec), command, essential=essential, stop_time=spec.stop_time)

    def _wait(
        self, nodes: Supervisor, clock: Clock, on_time: Callable[[float], None], begin: float
    ) -> float:
        hosts = set(self._processes("host"))
        moved = time.monotonic()
        last = 0.0
        while True:
            ended = nodes.poll()
            if hosts & ended:
                return time.monotonic() - begin
            now_simulated = clock.wait(0.1)
            now = time.monotonic()
            if now_simulated != last:
                last, moved = now_simulated, now
                on_time(last)
            limit = STALL_TIMEOUT if last else START_TIMEOUT
            if now - moved > limit and not (self.may_pause and last):
                raise CardsError(
                    f"simulation stalled at t = {last:.3f} s for {limit:.0f} s; nodes still "
                    f"running, their output is in {self.folder / 'logs'}"
                )


def _process(spec: NodeSpec) -> str:
    """Return the name of a node's process, of which its output has a file."""
    return _process_of(spec.full_name)


def _process_of(full_name: str) -> str:
    return full_name.replace("/", ".")


class Clock(RosListener):
    """Listens to ``/clock``. Context manager."""

    def _subscribe(self) -> None:
        from cards_ros import topics

        message = importlib.import_module("rosgraph_msgs.msg").Clock
        self._time = 0.0
        self._node.create_subscription(message, topics.CLOCK, self._on_clock, topics.CLOCK_QOS)

    def _on_clock(self, message: Any) -> None:
        self._time = message.clock.sec + 1e-9 * message.clock.nanosec

    def wait(self, seconds: float) -> float:
        """Wait, then return the newest simulated time, [s]."""
        end = time.monotonic() + seconds
        # a pause between takes: every message of a depth-1 topic would wake us otherwise
        time.sleep(0.8 * seconds)
        self._spin(max(0.0, end - time.monotonic()))
        return self._time
