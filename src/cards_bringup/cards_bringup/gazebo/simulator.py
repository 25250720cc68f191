"""Executable ``gazebo_simulator``: the host ``simulator`` in Gazebo, or ``rod_solver`` of rods.

It is started like the embedded simulator: same name, same parameters, same topics, and it ends
with the run. The node itself lives in the plugin inside ``gz sim``. This process
makes the world, sees to it that muscles and rods are compiled (Gazebo's Python has no CasADi),
starts ``gz sim`` with the environment that the plugin needs, and cleans up.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cards_bringup.gazebo.engines import ENGINE_OF_WORLD, PHYSICS_ENGINES, engine_arguments
from cards_bringup.gazebo.installation import Gazebo, examine, problem, python_environment
from cards_bringup.gazebo.process import network, run_until_end
from cards_bringup.gazebo.world import World, make_world
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.loop.host import CLOCKED_MODES, GAINS
from cards_core.parameters.declaration import Parameter, ParameterSet
from cards_core.parameters.parameter_file import Section, check_parameters, command_line_sections
from cards_core.robot.model import Robot
from cards_core.shared_files import find_file

if TYPE_CHECKING:
    from cards_muscle_plugin.surroundings import Surroundings

NODE_NAME = "simulator"

ROS_ARGUMENTS = "CARDS_GAZEBO_ROS_ARGS"
"""Environment variable with the ROS arguments of the plugin's node, quoted as in a shell."""

LOADS_IN_BACKGROUND = 10
"""From this major version on time runs while models are still being loaded, unless told not to: at
unlimited speed that is a minute of simulated time."""

OWN = ("world", "headless", "physics_engine", "model", "terrain")
"""Parameters that are used here; the others are passed to the plugin."""

_VERBOSITY = {"debug": "4", "info": "2", "warn": "2", "error": "1", "fatal": "1"}


def world_parameters() -> list[Parameter]:
    """Return the parameters of the simulator that only Gazebo has."""
    return [
        Parameter("world", "empty", "World: name of a file in worlds/, or a path."),
        Parameter("headless", False, "Simulate without a window."),
        Parameter(
            "physics_engine",
            ENGINE_OF_WORLD,
            "Physics engine; world: the one that the world names, else dartsim.",
            choices=PHYSICS_ENGINES,
        ),
    ]


def main(args: Sequence[str] | None = None) -> int:
    """Run the host; the entry point of the executable ``gazebo_simulator``."""
    try:
        return run(sys.argv[1:] if args is None else args)
    except CardsError as error:
        print(f"{NODE_NAME}: {error}", file=sys.stderr)
        return ExitCode.ERROR
    except KeyboardInterrupt:
        return ExitCode.DONE


def run(args: Sequence[str]) -> int:
    """Run Gazebo to its end; return the exit code.

    Raises:
        CardsError: Something is missing or wrong; the message says what to do.
    """
    arguments = read_ros_arguments(args, NODE_NAME)
    parameters = _parameters(arguments)
    gazebo, findings = examine()
    if gazebo is None:
        raise CardsError(problem(findings))
    with tempfile.TemporaryDirectory(prefix="cards-world-") as name:
        return _run_in(Path(name), arguments, parameters, gazebo)


def _run_in(
    folder: Path, arguments: RosArguments, parameters: ParameterSet, gazebo: Gazebo
) -> int:
    """Run Gazebo with its files in a folder; return the exit code."""
    file = find_file(parameters["world"], folder="worlds", suffix=".sdf")
    factor = parameters["speed"] if parameters["mode"] in CLOCKED_MODES else 0.0
    world = make_world(
        file,
        robot=parameters["model"],
        step=parameters["dt"],
        real_time_factor=factor,
        terrain=_terrain(parameters, folder),
    )
    if len(world.robots) > 1 and arguments.namespace:
        raise CardsError(
            f"namespace {arguments.namespace} for a world with {len(world.robots)} robots "
            "(expected: none; each robot's namespace is its name in the world)"
        )
    _refuse_others(arguments, parameters, world)
    robots = _muscle_robots(world)
    _compile(world, robots, parameters["dt"])
    around = _surroundings(file, parameters, robots)
    world_file = Path(folder, "world.sdf")
    world_file.write_text(world.text)
    own = Path(folder, "parameters.yaml")
    own.write_text(_parameter_text(arguments))
    environ = gazebo_environment(gazebo, [file.resolve().parent], os.environ)
    if around:
        from cards_muscle_plugin.surroundings import leave_surroundings

        environ |= leave_surroundings(Path(folder, "surroundings"), around)
    environ[ROS_ARGUMENTS] = shlex.join(["--ros-args", *arguments.rest, "--params-file", str(own)])
    command = [str(gazebo.program), "sim", "-r"]
    command += ["-v", _VERBOSITY.get(arguments.log_level, "2")]
    command += engine_arguments(parameters["physics_engine"])
    if gazebo.major >= LOADS_IN_BACKGROUND:
        command.append("--wait-for-assets")
    if parameters["headless"] or not _has_display():
        command.append("-s")
    names = ", ".join(robot.name for robot in world.robots)
    print(
        f"{gazebo.title}: {names} in {file} (GZ_PARTITION={environ['GZ_PARTITION']})",
        flush=True,
    )
    return run_until_end([*command, str(world_file)], environ)


def _terrain(parameters: ParameterSet, folder: Path) -> str | None:
    """Return the SDF of the terrain, None without one; its meshes are in the folder.

    Of two bodies in contact Gazebo takes the smaller friction (DART): where all shapes of the
    robot have the same, the ground gets the product.
    """
    if not parameters["terrain"]:
        return None
    from cards_core.formats import load
    from cards_core.formats.sdf.terrain import terrain_sdf
    from cards_core.robot.terrain import read_terrain, terrain_model
    from cards_core.robot.terrain_place import level_under

    terrain = read_terrain(parameters["terrain"])
    robot = load(parameters["model"])
    model = terrain_model(terrain, level_under(terrain, robot))
    values = {item.friction for link in robot.links for item in link.collisions}
    friction = terrain.friction * values.pop() if len(values) == 1 else None
    return terrain_sdf(model, folder, friction)


def gazebo_environment(
    gazebo: Gazebo, folders: Sequence[Path], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of ``gz sim``.

    Args:
        gazebo: What is installed.
        folders: Searched for ``model://`` besides the folders of models.
        environ: The environment to start from.
    """
    from cards_core.codegen.cache import cache_folder
    from cards_core.named_files import resource_folders

    out = python_environment(gazebo.python, gazebo.python_path, environ)
    given = [Path(entry) for entry in environ.get("GZ_SIM_RESOURCE_PATH", "").split(":") if entry]
    path = dict.fromkeys(str(folder) for folder in (*resource_folders(), *folders, *given))
    out["GZ_SIM_RESOURCE_PATH"] = os.pathsep.join(path)
    out["CARDS_CACHE"] = str(cache_folder().absolute())
    return out | network(environ)


def _parameters(arguments: RosArguments) -> ParameterSet:
    from cards_sim.node_parameters import general_parameters

    out = ParameterSet(arguments.parameters)
    shared = ("model", "terrain", "mode", "dt", "speed")
    out.declare(world_parameters())
    out.declare(spec for spec in general_parameters() if spec.name in shared)
    return out


def _refuse_others(arguments: RosArguments, own: ParameterSet, world: World) -> None:
    """Refuse parameters that no node of the world has; their nodes get them without the places.

    Raises:
        DescriptionError: There is one; names file and line.
    """
    from cards_rod_plugin.node_parameters import parameters as rod_parameters
    from cards_rods.node_parameters import parameters as node_parameters
    from cards_sim.node_parameters import general_parameters

    known = set(own)
    if any(not robot.rods for robot in world.robots):
        # those of the embedded simulator too: it reads the same section
        known |= {spec.name for spec in general_parameters()} | {"initial_positions", *GAINS}
    if any(robot.rods for robot in world.robots):
        known |= {spec.name for spec in (*rod_parameters(), *node_parameters())}
    full = f"{arguments.namespace}/{arguments.node}"
    check_parameters(full, arguments.parameters, known, arguments.sections)


def _parameter_text(arguments: RosArguments) -> str:
    """Return a parameter file for the plugin's nodes, whatever their namespace."""
    values: dict[str, Any] = {k: v for k, v in arguments.parameters.items() if k not in OWN}
    return yaml.safe_dump({"/**": {"ros__parameters": values}})


def _muscle_robots(world: World) -> dict[str, Robot]:
    """Return the robots with muscles of a world, by their names in it."""
    from cards_core.formats import load

    return {
        robot.name: load(robot.file, model=robot.model) for robot in world.robots if not robot.rods
    }


def _compile(world: World, robots: Mapping[str, Robot], dt: float) -> None:
    """Compile what Gazebo's Python can load, but not compile."""
    from cards_core.muscles.system import MuscleSystem
    from cards_core.rods.robots.reader import read_rod_robot
    from cards_core.rods.robots.solver import RodRobotSolver

    for robot in world.robots:
        if robot.rods:
            RodRobotSolver(read_rod_robot(robot.file, model=robot.model))
    for muscle_robot in robots.values():
        MuscleSystem(muscle_robot, dt)


def _surroundings(
    file: Path, parameters: ParameterSet, robots: Mapping[str, Robot]
) -> dict[str, Surroundings]:
    """Return what is around each robot that has cables with contact, by its name."""
    from cards_core.formats.sdf.world import load_world
    from cards_core.paths.contacts.of_robot import with_mesh_files
    from cards_core.robot.terrain import read_terrain
    from cards_core.robot.terrain_place import on_terrain

    touching = [name for name, r in robots.items() if any(m.contact for m in r.muscles)]
    if not touching:
        return {}
    try:
        scene = load_world(file)
        if parameters["terrain"]:
            (robot,) = robots.values()
            scene = on_terrain(read_terrain(parameters["terrain"]), robot, scene)
    except CardsError as error:
        print(f"{NODE_NAME}: cables touch nothing but their robot: {error}", file=sys.stderr)
        return {}
    from cards_muscle_plugin.surroundings import Surroundings

    return {
        name: Surroundings(
            scene.surroundings(name),
            tuple(
                (other.name, with_mesh_files(link, other.robot.source))
                for other, link in scene.neighbours(name)
            ),
        )
        for name in touching
    }


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# ROS arguments -----------------------------------------------------------------------------------
#
# Read without ROS: the node of this name runs inside Gazebo. Parameters that concern the world are
# used here, the rest is passed on.


@dataclass(frozen=True)
class RosArguments:
    """What stands behind ``--ros-args``.

    Attributes:
        node: Node name, from ``-r __node:=``.
        namespace: From ``-r __ns:=``, without slashes at its ends.
        log_level: From ``--log-level``; empty if not given.
        parameters: Parameters of this node, from files and ``-p``.
        rest: All other tokens, remappings included, as they were.
        sections: Where the parameters come from.
    """

    node: str
    namespace: str = ""
    log_level: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    rest: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


def read_ros_arguments(arguments: Sequence[str], node: str) -> RosArguments:
    """Read a command line.

    Args:
        arguments: Without the program.
        node: Node name where the arguments give none.

    Raises:
        CardsError: A token without its value, a parameter that is no ``name:=value``, a file that
            cannot be read, or an argument outside ``--ros-args``.
    """
    tokens = _pairs(arguments)
    namespace, log_level = "", ""
    rest: list[str] = []
    for flag, value in tokens:
        if flag in ("-r", "--remap"):
            rule, _, target = value.partition(":=")
            if rule == "__node":
                node = target
            elif rule == "__ns":
                namespace = target.strip("/")
                if not namespace:
                    continue  # `/` is for nodes that have none; it would undo one of their own
            rest += [flag, value]
        elif flag == "--log-level":
            log_level = value
            rest += [flag, value]
        elif flag not in ("-p", "--param", "--params-file"):
            rest += [flag, value] if value else [flag]
    # as in ROS: a section counts if it has the node's full name, the section that was named first
    # is read first, and the last one wins, not the one with more in its name
    full = f"{namespace}/{node}" if namespace else node
    own = tuple(one for one in command_line_sections(arguments) if one.concerns(full))
    merged: dict[str, dict[str, Any]] = {}
    for section in own:
        merged.setdefault(section.name.lstrip("/"), {}).update(section.values)
    parameters: dict[str, Any] = {}
    for values in merged.values():
        parameters |= values
    return RosArguments(node, namespace, log_level, parameters, tuple(rest), own)


_WITH_VALUE = ("-r", "--remap", "-p", "--param", "--params-file", "--log-level", "-e", "--enclave")


def _pairs(arguments: Sequence[str]) -> list[tuple[str, str]]:
    out = []
    inside = False
    given = iter(arguments)
    for token in given:
        if token == "--ros-args":
            inside = True
        elif token == "--" and inside:
            inside = False
        elif not inside:
            raise CardsError(f"argument '{token}' (expected: --ros-args, then ROS arguments)")
        elif token in _WITH_VALUE:
            value = next(given, None)
            if value is None:
                raise CardsError(f"{token} without a value")
            out.append((token, value))
        else:
            out.append((token, ""))
    return out


if __name__ == "__main__":
    sys.exit(main())
