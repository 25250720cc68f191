"""The nodes of a robot, read from ``config/<robot>.nodes.yaml``.

Launch files and ``./cards`` read the same list. Format::

    robot: roboy_arm
    parameter_file: roboy_arm.yaml        # in the same folder
    defaults: {controller: ctc_joint}     # of launch arguments; optional
    nodes:
      - name: simulator                   # node name, and key in the parameter file
        package: cards_sim
        executable: simulator
        module: cards_sim.simulator_node  # has the executable's main; default: package.executable
        role: host                        # host | controller | view | tool
        namespace: left_arm               # of the node, below that of the launch; optional
        when: {sim: true, simulator: mujoco}      # launch argument: value or list of values
        from_arguments: {mode: mode}      # parameter: launch argument (empty ones are not passed)
        parameters: {ground: true}        # beyond those in the parameter file
        arguments: ["-d", "{rviz}"]
        optional: false                   # true: left out where the package is not installed

A name may appear more than once where the namespaces differ, or where ``when`` lets one of them
run at most. ``{config}`` stands for the folder of the file, ``{urdf}`` for the robot as URDF text,
``{rviz}`` for a file with the RViz configuration of the robot.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cards_bringup.gazebo.process import STOP_TIME
from cards_bringup.nodes import launch_arguments
from cards_core.errors import UnknownNameError
from cards_core.formats.locate import find_model, has_rods, model_file
from cards_core.named_files import is_folder
from cards_core.shared_files import find_file, shared_folder, shared_folders
from cards_core.yaml_fields import Field, read_yaml

SUFFIX = ".nodes.yaml"
ROLES = ("host", "controller", "view", "tool")
"""host: simulator or hardware; the system ends with it. tool: programs that are not ours."""

PLACEHOLDERS = ("config", "urdf", "rviz")

STANDARD = "standard"
"""Folder in ``config`` with the lists of robots that have none of their own."""

PARAMETERS = "parameters.yaml"
"""Parameter file of such a robot, beside its SDF."""

_LIST_KEYS = ("robot", "parameter_file", "defaults", "nodes")
_NODE_KEYS = (
    "name",
    "package",
    "executable",
    "module",
    "role",
    "namespace",
    "when",
    "from_arguments",
    "parameters",
    "arguments",
    "optional",
)


@dataclass(frozen=True)
class NodeSpec:
    """A node that may be started.

    Attributes:
        name: Node name.
        package, executable: What to start, as in ``ros2 run``.
        module: Module whose ``main`` the executable calls.
        role: One of `ROLES`.
        namespace: Namespace of the node, below that of the launch.
        when: Launch argument to the values for which the node runs; all must hold.
        from_arguments: Parameter name to the launch argument that sets it.
        parameters: Parameter values beyond those of the parameter file.
        arguments: Command line arguments.
        optional: Leave it out, with a note, where the package is not installed.
    """

    name: str
    package: str
    executable: str
    module: str
    role: str
    namespace: str = ""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_arguments: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    optional: bool = False

    @property
    def full_name(self) -> str:
        """Name with the namespace, as ROS has it without a leading slash."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def stop_time(self) -> float | None:
        """Time [s] that the node may take to end; None: as for any process."""
        return STOP_TIME if self.executable == "gazebo_simulator" else None

    def runs(self, values: Mapping[str, str]) -> bool:
        """Tell whether the node runs for these values of the launch arguments."""
        return all(values[name] in accepted for name, accepted in self.when.items())

    def overrides(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters to set on top of the parameter file."""
        out = dict(self.parameters)
        for parameter, argument in self.from_arguments.items():
            if values[argument] != "":
                out[parameter] = _typed(values[argument])
        return out

    def command(self, parameter_file: Path, overrides: Mapping[str, Any]) -> list[str]:
        """Return the command line that starts one of our nodes with this Python, without launch.

        Args:
            parameter_file: YAML file keyed by node name.
            overrides: Parameters that win over the file.
        """
        # as an installed executable does
        start = f"executable({self.module!r})()"
        script = f"import sys; from cards_core.executable import executable; sys.exit({start})"
        line = [sys.executable, "-P", "-c", script, *self.arguments]
        line += ["--ros-args", "-r", f"__node:={self.name}", "--params-file", str(parameter_file)]
        if self.namespace:
            line += ["-r", f"__ns:=/{self.namespace}"]
        # addressed to the node, as in the file; parameters for all nodes have lower priority.
        # With a namespace the file's section does not match, and ROS knows no full names here
        node = "" if self.namespace else f"{self.name}:"
        for name, value in overrides.items():
            line += ["-p", f"{node}{name}:={json.dumps(value)}"]
        return line


@dataclass(frozen=True)
class NodeList:
    """A robot's file: its nodes, parameter file and defaults of launch arguments."""

    robot: str
    source: Path
    parameter_file: Path
    nodes: tuple[NodeSpec, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the user should know, one sentence each."""

    @property
    def controllers(self) -> tuple[str, ...]:
        """The values that the launch argument ``controller`` may have, without ``none``."""
        names = (node.name for node in self.nodes if node.role == "controller")
        return tuple(dict.fromkeys(names))

    @property
    def rods(self) -> bool:
        """Whether this is a robot of rods, without muscles and controllers."""
        return any(node.package == "cards_rods" for node in self.nodes)


def load(robot: str) -> list[NodeSpec]:
    """Return all nodes of a robot; see `read` for the rest of the file."""
    return list(read(robot).nodes)


def read(robot: str) -> NodeList:
    """Read the node list of a robot.

    Args:
        robot: Name, or the path of a ``.nodes.yaml`` file; or a robot without a list, see
            `standard_list`.

    Raises:
        UnknownNameError: There is no list and no robot of this name; the message names the lists.
        DescriptionError: The list is wrong; the message names file, line and key.
    """
    try:
        file = find_file(robot, folder="config", suffix=SUFFIX)
    except UnknownNameError as unknown:
        _check_model(robot, unknown.known)
    else:
        if file.suffix in (".yaml", ".yml"):
            return read_file(file)
    file = find_model(robot)
    shipped = _shipped_list(file)
    return standard_list(file) if shipped is None else read_file(shipped)


def _check_model(robot: str, lists: Sequence[str]) -> None:
    """Refuse what is neither a model nor the name of a list."""
    if is_folder(Path(robot)):
        model_file(Path(robot))
    try:
        find_model(robot)
    except UnknownNameError as error:
        known = sorted({*error.known, *lists})
        raise UnknownNameError("model or file", error.name, known) from None


def _shipped_list(model: Path) -> Path | None:
    """Return the node list of a shipped robot that is given by its path."""
    for folder in shared_folders():
        if model.resolve().parent.parent == (folder / "models").resolve():
            file = folder / "config" / f"{model.resolve().parent.name}{SUFFIX}"
            return file if file.is_file() else None
    return None


def standard_list(model: Path) -> NodeList:
    """Return the node list of a robot that has none: that of its kind, in ``config/standard``.

    Args:
        model: SDF file of the robot. `PARAMETERS` beside it replaces the standard's parameters.

    Raises:
        DescriptionError: The robot, or a file of it, is wrong; the message names file and line.
    """
    # loaded where it is needed: robots with a list do without the analyses behind it
    from cards_bringup.nodes.standard_run import standard_run
    from cards_core.formats import load as load_robot
    from cards_core.rods.robots.reader import read_rod_robot

    rods = has_rods(model)
    folder = shared_folder() / "config" / STANDARD
    base = read_file(folder / f"{'rods' if rods else 'muscles'}{SUFFIX}")
    own = model.with_name(PARAMETERS)
    parameter_file = own if own.is_file() else base.parameter_file
    defaults = dict(base.defaults)
    said: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Any]] = {}
    nodes = base.nodes
    if rods:
        name = read_rod_robot(model).name
    else:
        robot = load_robot(model)
        name = robot.name
        chosen = standard_run(robot, parameter_file)
        parameters, said = chosen.parameters, chosen.notes
        defaults |= {"controller": chosen.controller, "terrain": chosen.terrain}
        nodes = tuple(
            node for node in nodes if node.role != "controller" or node.name in chosen.controllers
        )
    source = {"model": str(model.resolve())}
    nodes = tuple(
        node
        if node.role == "tool"
        else replace(
            node, parameters={**node.parameters, **source, **parameters.get(node.name, {})}
        )
        for node in nodes
    )
    return NodeList(name, base.source, parameter_file, nodes, defaults, said)


def read_file(file: Path) -> NodeList:
    """Read a node list; see `read`."""
    document = read_yaml(file)
    top = Field(document, (), document.data)
    top.mapping(_LIST_KEYS)
    robot = top["robot"].text()
    if f"{robot}{SUFFIX}" != file.name:
        raise top["robot"].error(
            f"is '{robot}'", f"'{file.name.removesuffix(SUFFIX)}', as the file"
        )
    parameter_file = file.parent / top["parameter_file"].text()
    if not parameter_file.is_file():
        raise top["parameter_file"].error("no such file", "a file beside this one")
    nodes = tuple(_node(item, file.parent) for item in top["nodes"].items())
    _check_unique(top["nodes"], nodes)
    defaults = _arguments(top["defaults"]) if top.has("defaults") else {}
    chosen = defaults.get("controller", "none")
    known = [node.name for node in nodes if node.role == "controller"]
    if chosen != "none" and chosen not in known:
        raise top["defaults"]["controller"].error(f"no controller '{chosen}'", ", ".join(known))
    return NodeList(robot, file, parameter_file, nodes, defaults)


def _node(item: Field, config: Path) -> NodeSpec:
    item.mapping(_NODE_KEYS)
    when: dict[str, tuple[str, ...]] = {}
    if item.has("when"):
        for name in item["when"].mapping(launch_arguments.NAMES):
            value = item["when"][name]
            several = value.items() if isinstance(value.value, list) else [value]
            when[name] = tuple(_text(one) for one in several)
    role = item["role"].text(ROLES)
    name = item["name"].name()
    if role == "controller":
        when.setdefault("controller", (name,))
    sources = item["from_arguments"] if item.has("from_arguments") else None
    parameters = item["parameters"] if item.has("parameters") else None
    package, executable = item["package"].text(), item["executable"].text()
    return NodeSpec(
        name=name,
        package=package,
        executable=executable,
        module=item["module"].text() if item.has("module") else f"{package}.{executable}",
        role=role,
        namespace=item["namespace"].text().strip("/") if item.has("namespace") else "",
        when=when,
        from_arguments={
            key: sources[key].text(launch_arguments.NAMES) for key in (sources.mapping())
        }
        if sources
        else {},
        parameters={key: _value(parameters[key], config) for key in parameters.mapping()}
        if parameters
        else {},
        arguments=tuple(str(_value(one, config)) for one in item["arguments"].items())
        if item.has("arguments")
        else (),
        optional=item["optional"].flag() if item.has("optional") else False,
    )


def _value(item: Field, config: Path) -> Any:
    if not isinstance(item.value, str | float | bool):
        raise item.error("neither text nor number nor true/false", "a single value")
    if not isinstance(item.value, str):
        return item.value
    value = item.value.replace("{config}", str(config))
    if "{" in value.replace("{urdf}", "").replace("{rviz}", ""):
        raise item.error(f"is '{item.value}'", f"{{{'} or {'.join(PLACEHOLDERS)}}} in braces")
    return value


def _text(item: Field) -> str:
    """Return a launch argument's value as it is written on a command line."""
    if isinstance(item.value, bool):
        return "true" if item.value else "false"
    return item.text()


def _arguments(item: Field) -> dict[str, str]:
    return {name: _text(item[name]) for name in item.mapping(launch_arguments.NAMES)}


def _check_unique(item: Field, nodes: tuple[NodeSpec, ...]) -> None:
    seen: dict[str, list[NodeSpec]] = {}
    for field_, node in zip(item.items(), nodes, strict=True):
        others = seen.setdefault(f"{node.namespace}/{node.name}", [])
        if any(_may_run_together(node, other) for other in others):
            raise field_["name"].error(
                f"'{node.name}' appears twice", "unique names of nodes that run together"
            )
        others.append(node)


def _may_run_together(one: NodeSpec, other: NodeSpec) -> bool:
    shared = one.when.keys() & other.when.keys()
    return all(set(one.when[name]) & set(other.when[name]) for name in shared)


def _typed(text: str) -> Any:
    """Convert the text of a launch argument to the type of a parameter."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
