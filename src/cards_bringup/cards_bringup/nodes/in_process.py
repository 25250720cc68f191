"""Run a plan in one process, without ROS: see `cards_core.loop.closed_loop`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_bringup.nodes.plan import Plan
from cards_core.loop.closed_loop import check_models, run_closed_loop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.pacing import Pacer
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import Section, load_parameters, read_file
from cards_sim.build import build_host

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InProcessRun:
    """What to run; see `cards_bringup.nodes.node_run.NodeRun` for the attributes."""

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
        control = None
        try:
            if controllers:
                own = self.parameters(controllers[0])
                control = make_control_loop(controllers[0], own)
                if not (parameters[ACCEPT] and own[ACCEPT]):
                    check_models(control, host)
            pacer = Pacer(host.dt) if self.plan.values["mode"] == "realtime" else None
            took = run_closed_loop(host, control, self.duration, pacer=pacer, on_time=on_time)
            if host.gate.refused:
                LOG.warning(
                    "%d commands were refused, the last: %s",
                    host.gate.refused,
                    host.gate.last_refusal,
                )
            return took
        finally:
            host.close()
            if control is not None:
                control.close()

    def parameters(self, node: str) -> ParameterSet:
        """Return the parameters of a node: file, launch arguments, overrides."""
        (spec,) = (spec for spec in self.plan.nodes if spec.name == node)
        given = load_parameters(self.plan.parameter_file, node)
        listed, overrides = self.plan.parameters(spec), self.overrides.get(node, {})
        sections = read_file(self.plan.parameter_file)
        sections.append(Section(node, listed, source="node list"))
        return ParameterSet({**given, **listed, **overrides}, node, sections)
