"""Simulator and controller in one process, without ROS: the same objects, a plain loop.

In lockstep the trajectory equals that of the nodes over topics to the last bit.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_bringup.plan import Plan
from cards_core.errors import CardsError
from cards_core.muscles.command import CommandRefusedError
from cards_ros.model_agreement import ACCEPT
from cards_ros.model_differences import differences
from cards_ros.model_identity import identity_of
from cards_ros.parameter_file import Section, load_parameters, read_file
from cards_ros.parameter_spec import ParameterSet
from cards_ros.stamps import end_of
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost
from cards_sim.pacing import Pacer
from controllers.build import build_session
from controllers.session import ControlSession

LOG = logging.getLogger(__name__)

TIME_PERIOD = 0.1
"""How often progress is reported, [s] of wall time."""


def check_models(session: ControlSession, host: SimulatorHost) -> None:
    """Compare the models of controller and simulator, as the nodes do over the topic ``model``.

    Raises:
        CardsError: They differ; the message says in what.
    """
    found = differences(identity_of(session.robot), identity_of(host.simulator.robot))
    if found:
        raise CardsError(
            f"controller (here) and simulator (there) have different models: {'; '.join(found)}; "
            f"give both the same parameter model, or set {ACCEPT} of both"
        )


@dataclass(frozen=True)
class InProcessRun:
    """What to run; see `cards_bringup.node_run.NodeRun` for the attributes."""

    plan: Plan
    overrides: Mapping[str, Mapping[str, Any]]
    duration: float
    folder: Path

    def run(self, on_time: Callable[[float], None]) -> float:
        """Run to the end; return the wall time of the loop, [s].

        Args:
            on_time: Called with the simulated time [s] a few times a second.

        Raises:
            CardsError: The robot, a parameter or the physics is at fault; the message says why.
        """
        (host_name,) = (node.name for node in self.plan.nodes if node.role == "host")
        controllers = [node.name for node in self.plan.nodes if node.role == "controller"]
        parameters = self.parameters(host_name)
        host = build_host(parameters)
        session = None
        try:
            if controllers:
                own = self.parameters(controllers[0])
                session = build_session(controllers[0], own)
                if not (parameters[ACCEPT] and own[ACCEPT]):
                    check_models(session, host)
            return self._loop(host, session, self._pacer(host), on_time)
        finally:
            host.close()
            if session is not None:
                session.close()

    def parameters(self, node: str) -> ParameterSet:
        """Return the parameters of a node: file, launch arguments, overrides."""
        (spec,) = (spec for spec in self.plan.nodes if spec.name == node)
        given = load_parameters(self.plan.parameter_file, node)
        listed, overrides = self.plan.parameters(spec), self.overrides.get(node, {})
        sections = read_file(self.plan.parameter_file)
        sections.append(Section(node, listed, source="node list"))
        return ParameterSet({**given, **listed, **overrides}, node, sections)

    def _pacer(self, host: SimulatorHost) -> Pacer | None:
        return Pacer(host.simulator.dt) if self.plan.values["mode"] == "realtime" else None

    def _loop(
        self,
        host: SimulatorHost,
        session: ControlSession | None,
        pacer: Pacer | None,
        on_time: Callable[[float], None],
    ) -> float:
        clock = time.perf_counter
        begin = shown = clock()
        end = end_of(self.duration)
        if pacer is not None:
            pacer.start(begin)
        while end == 0 or host.stamp < end:
            start = clock()
            if session is not None:
                state = host.state
                session.step(host.stamp, state.q, state.qd)
                for part in session.controller.command:
                    # a refusal is counted by the gate, and its watchdog sees to the rest
                    with contextlib.suppress(CommandRefusedError):
                        host.submit(part.names, part.values, part.kind)
                overruns = 0 if pacer is None else pacer.overruns
                session.record(1e6 * (clock() - start), overruns)
            host.step()
            if pacer is not None:
                now = clock()
                pacer.done(now)
                host.behind = pacer.behind
                if (rest := pacer.remaining(now)) > 0.0:
                    time.sleep(rest)
            if start - shown > TIME_PERIOD:
                shown = start
                on_time(host.state.time)
        if host.command.refused:
            LOG.warning(
                "%d commands were refused, the last: %s",
                host.command.refused,
                host.command.last_refusal,
            )
        return clock() - begin
