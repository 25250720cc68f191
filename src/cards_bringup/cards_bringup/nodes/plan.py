"""Which nodes to start for given launch arguments. Works without ROS."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cards_bringup.gazebo import installation
from cards_bringup.gazebo.engines import ENGINE_OF_WORLD
from cards_bringup.gazebo.process import network
from cards_bringup.nodes import node_list
from cards_bringup.nodes.launch_arguments import arguments_for, is_true, read_values
from cards_bringup.nodes.node_list import NodeList, NodeSpec
from cards_core.errors import CardsError
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import (
    Section,
    check_nodes,
    load_parameters,
    own_parameters,
    read_file,
)
from cards_core.robot.terrain import read_terrain, terrain_text
from cards_core.shared_files import find_file

HOST_PACKAGES = {
    "mujoco": "cards_sim",
    "gazebo": "cards_muscle_plugin",
    "rods": "cards_rods",
    "hardware": "cards_hardware",
}
"""Which package brings which host."""

ROBOT_ALONE = {"mujoco": "", "gazebo": "empty"}
"""Simulators that have worlds, and the one of each for a robot alone; empty: it needs none."""

_OF_HOSTS = (
    ("world", "", "worlds"),
    ("terrain", "", "terrains"),
    ("physics_engine", ENGINE_OF_WORLD, "physics engines"),
)
"""Launch arguments that only some hosts have: name, what means nothing, what they have not."""

UNLISTED = ("model_compiler", "live_analysis")
"""Nodes that are in no node list, but may be in a parameter file."""


@dataclass(frozen=True)
class Plan:
    """What to start.

    Attributes:
        nodes: In this order.
        parameter_file: Keyed by node name.
        values: All launch arguments; nothing is ``auto`` any more.
        notes: What the user should know, one sentence each.
    """

    nodes: tuple[NodeSpec, ...]
    parameter_file: Path
    values: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def use_sim_time(self) -> bool:
        """Whether nodes other than the host take their time from ``/clock``."""
        return is_true(self.values, "use_sim_time")

    def environment(self) -> dict[str, str]:
        """Return the variables that all nodes share: with Gazebo, its network.

        Nodes that draw in Gazebo's window could not find it otherwise.
        """
        in_gazebo = is_true(self.values, "sim") and self.values["simulator"] == "gazebo"
        return network(os.environ) if in_gazebo else {}

    def parameters(self, node: NodeSpec) -> dict[str, Any]:
        """Return the parameters of a node that go beyond the parameter file."""
        out = node.overrides(self.values)
        if self.values["namespace"] or node.namespace:
            # ROS matches the file's keys with the full name, and the robot has moved; what is for
            # every node reaches it all the same
            out = {**own_parameters(self.parameter_file, node.name), **out}
        if self.use_sim_time and node.role != "host":
            out["use_sim_time"] = True
        if node.namespace and out.get("log_dir"):
            out["log_dir"] = str(Path(out["log_dir"], node.namespace))  # several write the same
        for name, value in out.items():
            if isinstance(value, str) and "{urdf}" in value:
                out[name] = value.replace("{urdf}", self._urdf())
        return out

    def arguments(self, node: NodeSpec) -> list[str]:
        """Return the command line arguments of a node."""
        if not any("{rviz}" in argument for argument in node.arguments):
            return list(node.arguments)
        from cards_bringup.nodes.rviz_config import rviz_config

        namespace = "/".join(filter(None, (self.values["namespace"], node.namespace)))
        rods = any(one.package == "cards_rods" or one.name == "rod_solver" for one in self.nodes)
        file = str(rviz_config(self._model(), rods=rods, namespace=namespace))
        return [argument.replace("{rviz}", file) for argument in node.arguments]

    def parameters_of(self, node: str, overrides: Mapping[str, Mapping[str, Any]]) -> ParameterSet:
        """Return the parameters of a node: those of the file, launch arguments, overrides.

        Args:
            node: Its name, with its namespace.
            overrides: Name of a node, with its namespace, to parameters beyond the others.
        """
        given = {**self.given(node), **overrides.get(node, {})}
        return ParameterSet(given, node, self.sections(node))

    def given(self, node: str) -> dict[str, Any]:
        """Return the parameters of a node in the file and by launch arguments, by name."""
        return {**load_parameters(self.parameter_file, node), **self._listed(node)}

    def sections(self, node: str) -> list[Section]:
        """Return where the parameters of a node may come from, for messages."""
        return [
            *read_file(self.parameter_file),
            Section(node, self._listed(node), source="node list"),
        ]

    def _listed(self, node: str) -> dict[str, Any]:
        (spec,) = (spec for spec in self.nodes if spec.full_name == node)
        return self.parameters(spec)

    def _urdf(self) -> str:
        from cards_core.formats import load
        from cards_core.formats.urdf.writer import to_urdf

        return to_urdf(load(self._model()))

    def _model(self) -> str:
        host = next(node for node in self.nodes if node.role == "host")
        return self.given(host.full_name).get("model") or self.values["robot"]


def is_installed(package: str) -> bool:
    """Tell whether a ROS package, or a Python package of that name, can be used."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        marker = Path(prefix, "share", "ament_index", "resource_index", "packages", package)
        if prefix and marker.is_file():
            return True
    return importlib.util.find_spec(package) is not None


def gazebo_problem() -> str:
    """Return why Gazebo cannot be used, with what to do; empty if it can."""
    return installation.problem(installation.examine()[1])


def make_plan(
    given: Mapping[str, str],
    robot: str,
    *,
    installed: Callable[[str], bool] = is_installed,
    gazebo: Callable[[], str] = gazebo_problem,
) -> Plan:
    """Decide what to start.

    Args:
        given: Values of launch arguments; the others have their defaults.
        robot: Robot, if ``given`` does not name one.
        installed: Tells whether a package is there.
        gazebo: Returns what is wrong with Gazebo, empty if nothing is.

    Raises:
        CardsError: The arguments make no sense together, or need what is not installed; the
            message says which package brings it.
    """
    robots = node_list.read(given.get("robot") or robot)
    if given.get("controller", "").endswith(".py"):
        robots, kind = _with_file(robots, given["controller"])
        given = {**given, "controller": kind}
    _check_controller(robots, given.get("controller", "none"))
    arguments = arguments_for(robots.robot, robots.defaults, robots.controllers)
    values = {**read_values(given, arguments), "robot": robots.robot}
    simulated = is_true(values, "sim")
    notes = [] if "controller" in given else list(robots.notes)
    if simulated:
        values["simulator"] = _Simulators(robots, values, installed, gazebo).choose(notes)
    _check_time(values, simulated)
    if simulated and values["simulator"] in ROBOT_ALONE:
        world = values["world"] or ROBOT_ALONE[values["simulator"]]
        if world:
            values["world"] = str(find_file(world, folder="worlds", suffix=".sdf").resolve())
    if values["terrain"]:
        # refused here, before anything runs, and with paths that all nodes find
        values["terrain"] = terrain_text(read_terrain(values["terrain"]).resolved())
    nodes = []
    for node in robots.nodes:
        if not node.runs(values):
            continue
        if installed(node.package):
            nodes.append(node)
        elif node.optional:
            notes.append(f"{node.name} left out: package {node.package} is not installed")
        elif node.role == "host" and not simulated:
            raise CardsError(
                f"sim:=false needs package {node.package}, which is not installed "
                "(sim:=true works without it)"
            )
        else:
            raise CardsError(
                f"node '{node.name}' needs package {node.package}, which is not installed"
            )
    hosts = [node for node in nodes if node.role == "host"]
    if not hosts:
        raise CardsError(f"{robots.source} lists no host for sim:={values['sim']}")
    for name, nothing, plural in _OF_HOSTS:
        asked = values[name] not in (nothing, robots.defaults.get(name, nothing))
        if asked and not any(name in host.from_arguments.values() for host in hosts):
            notes.append(f"{name}:={values[name]} is left out: {hosts[0].name} has no {plural}")
    follows = any("reference" in node.from_arguments.values() for node in robots.nodes)
    if values["reference"] and not follows:
        raise CardsError(
            f"reference:={values['reference']}: no node of {robots.robot} follows a reference "
            "(expected: without it)"
        )
    file = robots.parameter_file
    if values["params_file"]:
        file = find_file(values["params_file"], folder="config", suffix=".yaml")
    check_nodes(file, [*(node.name for node in robots.nodes), *UNLISTED])
    return Plan(tuple(nodes), file, values, tuple(notes))


def _check_controller(robots: NodeList, name: str) -> None:
    """Refuse a controller that the robot cannot have, and say why it has none."""
    known = (*robots.controllers, "none")
    if name not in known:
        why = "" if robots.controllers else "".join(f"; {note}" for note in robots.notes)
        raise CardsError(f"controller:={name} (expected: {', '.join(known)}{why})")


def _with_file(robots: NodeList, path: str) -> tuple[NodeList, str]:
    """Return a node list with the node of a controller from a Python file, and its kind."""
    from cards_core.control.registry import controller_file

    if any(node.namespace for node in robots.nodes if node.role == "controller"):
        raise CardsError(
            f"controller:={path} with {robots.robot}, which is several robots (expected: one)"
        )
    kind = controller_file(path)
    node = NodeSpec(
        kind,
        "cards_ros",
        "controller",
        "cards_ros.file_controller",
        "controller",
        when={"controller": (kind,)},
        from_arguments={name: name for name in ("reference", "autostart", "log_dir")},
        arguments=(str(Path(path).expanduser().resolve()),),
    )
    return replace(robots, nodes=(*robots.nodes, node)), kind


@dataclass(frozen=True)
class _Simulators:
    """Which simulators this robot and this machine have."""

    robots: NodeList
    values: Mapping[str, str]
    installed: Callable[[str], bool]
    gazebo: Callable[[], str]

    def choose(self, notes: list[str]) -> str:
        """Return the simulator to use; add a note if it was chosen automatically.

        Raises:
            CardsError: The wanted one cannot be used, or none can.
        """
        wanted = self.values["simulator"]
        if wanted != "auto":
            if reason := self._missing(wanted):
                raise CardsError(f"simulator:={wanted} {reason}")
            return wanted
        reasons = {}
        # robots with muscles have no simulator of rods, and vice versa
        embedded = "rods" if self._hosts("rods") else "mujoco"
        for name in ("gazebo", embedded):
            reasons[name] = self._missing(name)
            if not reasons[name]:
                why = f": gazebo {reasons['gazebo']}" if name == embedded else ""
                notes.append(f"simulator:={name}{why}")
                return name
        raise CardsError(
            f"no simulator for {self.robots.robot} can be used: gazebo {reasons['gazebo']}; "
            f"{embedded} {reasons[embedded]}"
        )

    def _hosts(self, name: str) -> list[NodeSpec]:
        """Return the hosts that the robot has for a simulator."""
        trial = {**self.values, "simulator": name}
        return [node for node in self.robots.nodes if node.role == "host" and node.runs(trial)]

    def _missing(self, name: str) -> str:
        """Return what is missing for a simulator, empty if nothing is."""
        if not self._hosts(name):
            return f"is not in {self.robots.source.name}"
        package = HOST_PACKAGES[name]
        if name == "gazebo" and self.robots.rods:
            package = "cards_rod_plugin"
        if not self.installed(package):
            return f"needs package {package}, which is not installed"
        problem = self.gazebo() if name == "gazebo" else ""
        return f"cannot be used: {problem}" if problem else ""


def _check_time(values: dict[str, str], simulated: bool) -> None:
    if values["use_sim_time"] == "auto":
        values["use_sim_time"] = "true" if simulated else "false"
    if not simulated and values["use_sim_time"] == "true":
        raise CardsError("use_sim_time:=true with sim:=false: the real robot has no /clock")
    if not simulated and values["mode"] != "realtime":
        raise CardsError(f"mode:={values['mode']} with sim:=false (expected: realtime)")
