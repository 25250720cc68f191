"""Run a plan in one process, without ROS: see `cards_core.loop.closed_loop`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cards_bringup.nodes.node_list import NodeSpec
from cards_bringup.nodes.plan import Plan
from cards_core.errors import CardsError
from cards_core.formats.sdf.world import load_world
from cards_core.loop.closed_loop import check_models, run_closed_loops, strides
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.host import ANSWERED_MODES, CLOCKED_MODES, Host
from cards_core.loop.model_agreement import ACCEPT
from cards_core.loop.pacing import Pacer
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import own_parameters
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_sim.build import PlacedRobot, Simulation, build_simulation

if TYPE_CHECKING:  # the browser view is loaded where it is wanted
    from cards_bringup.nodes.muscle_session import MuscleSession
    from cards_viz.muscles.world_scene import WorldScene

LOG = logging.getLogger(__name__)

VIEW = "browser_view"
"""Node whose page is opened in this process, where the plan has it."""


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
        (host,) = (node for node in self.plan.nodes if node.role == "host")
        parameters = self.parameters(host.full_name)
        simulation = build_simulation(parameters, lambda *robot: self._of_robot(host, *robot))
        world = simulation.world
        controllers = self._controllers([robot.namespace for robot in simulation.robots])
        controls: list[ControlLoop] = []
        try:
            pairs: list[tuple[Host, ControlLoop | None]] = []
            shown: list[tuple[PlacedRobot, ControlLoop | None, ParameterSet | None]] = []
            for robot in simulation.robots:
                control = own = None
                if robot.namespace in controllers:
                    node = controllers[robot.namespace]
                    own = self.parameters(node.full_name)
                    control = make_control_loop(node.name, own)
                    controls.append(control)
                    if not (robot.parameters[ACCEPT] and own[ACCEPT]):
                        check_models(control, robot.host)
                pairs.append((robot.host, control))
                shown.append((robot, control, own))
            mode = self.plan.values["mode"]
            pacer = Pacer(world.dt) if mode in CLOCKED_MODES else None
            step, every = world.step, 1
            if mode == "as_fast_as_possible" and len(pairs) == 1:
                # controllers see the states that nodes would publish
                only = simulation.robots[0].host
                every = max(1, round(1.0 / (parameters["publish_rate"] * world.dt)))
                step = strides(only, every, self.duration)
            with self._pages(simulation, shown, pacer) as session:
                if session is not None:
                    step = session.stepping(step)
                took = run_closed_loops(
                    pairs,
                    step,
                    self.duration,
                    period=every * world.dt,
                    pacer=pacer,
                    deadlines=mode not in ANSWERED_MODES,
                    on_time=on_time,
                )
            for robot in simulation.robots:
                gate = robot.host.gate
                if gate.refused:
                    whose = f" of {robot.namespace}" if robot.namespace else ""
                    LOG.warning(
                        "%d commands%s were refused, the last: %s",
                        gate.refused,
                        whose,
                        gate.last_refusal,
                    )
            return took
        finally:
            world.close()
            for control in controls:
                control.close()

    @contextlib.contextmanager
    def _pages(
        self,
        simulation: Simulation,
        shown: Sequence[tuple[PlacedRobot, ControlLoop | None, ParameterSet | None]],
        pacer: Pacer | None,
    ) -> Iterator[MuscleSession | None]:
        """Open the pages of the views that the plan has; None without any."""
        views = {node.namespace: node for node in self.plan.nodes if node.name == VIEW}
        if not views:
            yield None
            return
        from cards_bringup.nodes.muscle_session import MuscleSession

        session = MuscleSession(simulation, pacer, self.plan.parameter_file)
        try:
            for robot, control, parameters in shown:
                if robot.namespace in views:
                    view = views[robot.namespace].full_name
                    given = self.overrides.get(view, {})
                    session.open(
                        robot,
                        control,
                        parameters,
                        port=int(given.get("port", 8080)),
                        host=str(given.get("host", "127.0.0.1")),
                        world=self._world_of(robot),
                    )
            yield session
        finally:
            session.close()

    def _world_of(self, robot: PlacedRobot) -> WorldScene | None:
        """Return what is to be drawn around a robot, None if nothing is."""
        from cards_viz.muscles.world_scene import WorldScene

        name, terrain = self.plan.values["world"], self.plan.values["terrain"]
        around = load_world(name) if name else None
        if terrain:
            around = on_terrain(read_terrain(terrain), robot.host.robot, around)
        return None if around is None else WorldScene(around, robot.namespace)

    def _controllers(self, namespaces: Sequence[str]) -> dict[str, NodeSpec]:
        """Return the controllers by namespace. Raises `CardsError` for one without a robot."""
        found = {node.namespace: node for node in self.plan.nodes if node.role == "controller"}
        for namespace, node in found.items():
            if namespace not in namespaces:
                there = ", ".join(namespace or "one without" for namespace in namespaces)
                raise CardsError(
                    f"controller {node.full_name} has no robot in the world (expected: a robot "
                    f"in its namespace; there are {there})"
                )
        return found

    def parameters(self, node: str) -> ParameterSet:
        """Return the parameters of a node: file, launch arguments, overrides.

        Args:
            node: Its name, with its namespace.
        """
        return self.plan.parameters_of(node, self.overrides)

    def _of_robot(self, host: NodeSpec, namespace: str, names: Collection[str]) -> ParameterSet:
        """Return the parameters of one of several robots; see `StoreFactory`."""
        node = f"{namespace}/{host.name}"
        own = {**self.plan.given(host.full_name), **self.overrides.get(host.full_name, {})}
        given = {k: v for k, v in own.items() if k in names}
        given |= own_parameters(self.plan.parameter_file, node)
        return ParameterSet(given, node, self.plan.sections(host.full_name))
