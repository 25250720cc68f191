"""What to start for given launch arguments: decided here, without ROS, so it can be tested."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_bringup import node_list
from cards_bringup.launch_arguments import arguments_for, is_true
from cards_bringup.node_list import NodeList, NodeSpec
from cards_bringup.parameters import load_parameters
from cards_bringup.resources import find_file
from cards_core.errors import CardsError, UnknownNameError

HOST_PACKAGES = {
    "mujoco": "cards_sim",
    "gazebo": "cards_muscle_plugin",
    "hardware": "cards_hardware",
}
"""Which package brings which host."""


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

    def parameters(self, node: NodeSpec) -> dict[str, Any]:
        """Return the parameters of a node that go beyond the parameter file."""
        out = node.overrides(self.values)
        if self.values["namespace"]:
            # ROS matches the file's keys with the full name, and the robot has moved
            out = {**load_parameters(self.parameter_file, node.name), **out}
        if self.use_sim_time and node.role != "host":
            out["use_sim_time"] = True
        for name, value in out.items():
            if isinstance(value, str) and "{urdf}" in value:
                out[name] = value.replace("{urdf}", self._urdf())
        return out

    def _urdf(self) -> str:
        from cards_core.description import load
        from cards_core.description.urdf import to_urdf

        return to_urdf(load(self.values["robot"]))


def is_installed(package: str) -> bool:
    """Tell whether a ROS package, or a Python package of that name, can be used."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        marker = Path(prefix, "share", "ament_index", "resource_index", "packages", package)
        if prefix and marker.is_file():
            return True
    return importlib.util.find_spec(package) is not None


def make_plan(
    given: Mapping[str, str],
    robot: str,
    *,
    installed: Callable[[str], bool] = is_installed,
) -> Plan:
    """Decide what to start.

    Args:
        given: Values of launch arguments; the others have their defaults.
        robot: Robot, if ``given`` does not name one.
        installed: Tells whether a package is there.

    Raises:
        CardsError: The arguments make no sense together, or need what is not installed; the
            message says which package brings it.
    """
    robots = node_list.read(given.get("robot") or robot)
    values = _checked(given, robots)
    simulated = is_true(values, "sim")
    notes: list[str] = []
    if simulated:
        values["simulator"] = _choose_simulator(values["simulator"], robots, values, installed)
    _check_time(values, simulated)
    if values["world"] != "empty" and values["simulator"] != "gazebo":
        notes.append("world is for Gazebo; the MuJoCo simulator does not read it")
    nodes = []
    for node in robots.nodes:
        if not node.runs(values):
            continue
        if installed(node.package):
            nodes.append(node)
        elif node.optional:
            notes.append(f"{node.name} left out: package {node.package} is not installed")
        else:
            raise CardsError(
                f"node '{node.name}' needs package {node.package}, which is not installed"
            )
    if not any(node.role == "host" for node in nodes):
        host = values["simulator"] if simulated else "hardware"
        raise _no_host(host, robots, installed)
    file = robots.parameter_file
    if values["params_file"]:
        file = find_file(values["params_file"], folder="config", suffix=".yaml")
    return Plan(tuple(nodes), file, values, tuple(notes))


def _checked(given: Mapping[str, str], robots: NodeList) -> dict[str, str]:
    arguments = arguments_for(robots.robot, robots.defaults, robots.controllers)
    known = {argument.name: argument for argument in arguments}
    values = {argument.name: argument.default for argument in arguments}
    for name, value in given.items():
        if name not in known:
            raise UnknownNameError("launch argument", name, known)
        values[name] = value
    values["robot"] = robots.robot
    for name, argument in known.items():
        choices = argument.choices
        if "true" in choices and values[name] != "auto":
            values[name] = "true" if is_true(values, name) else "false"
        elif choices and values[name] not in choices:
            raise CardsError(f"{name}:={values[name]} (expected: {', '.join(choices)})")
    return values


def _choose_simulator(
    wanted: str,
    robots: NodeList,
    values: Mapping[str, str],
    installed: Callable[[str], bool],
) -> str:
    if wanted != "auto":
        return wanted
    for name in ("gazebo", "mujoco"):
        trial = {**values, "simulator": name}
        hosts = [node for node in robots.nodes if node.role == "host" and node.runs(trial)]
        if hosts and all(installed(node.package) for node in hosts):
            return name
    raise CardsError(f"no simulator for {robots.robot} is installed; cards_sim brings MuJoCo")


def _check_time(values: dict[str, str], simulated: bool) -> None:
    if values["use_sim_time"] == "auto":
        values["use_sim_time"] = "true" if simulated else "false"
    if not simulated and values["use_sim_time"] == "true":
        raise CardsError("use_sim_time:=true with sim:=false: the real robot has no /clock")
    if not simulated and values["mode"] != "realtime":
        raise CardsError(f"mode:={values['mode']} with sim:=false (expected: realtime)")


def _no_host(host: str, robots: NodeList, installed: Callable[[str], bool]) -> CardsError:
    package = HOST_PACKAGES[host]
    argument = "sim:=false" if host == "hardware" else f"simulator:={host}"
    if not installed(package):
        return CardsError(
            f"{argument} needs package {package}, which is not installed "
            "(sim:=true simulator:=mujoco works without it)"
        )
    return CardsError(f"{robots.source} lists no host for {argument}")
