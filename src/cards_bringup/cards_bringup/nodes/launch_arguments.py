"""The launch arguments of every robot, declared as the parameters of nodes are.

Plain data, so that launch files, node lists, documentation and tests agree without ROS. The value
of a launch argument is always a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cards_bringup.gazebo.engines import PHYSICS_ENGINES
from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.loop.host import MODES
from cards_core.parameters.declaration import Parameter

BOOLEAN = ("true", "false", "True", "False")
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


ARGUMENTS = (
    Parameter(
        "robot",
        "",
        "Robot: config/ROBOT.nodes.yaml says which nodes it has.",
        default_text="the file's",
    ),
    Parameter(
        "sim",
        "true",
        "true: simulate; false: drive the real robot (cards_hardware).",
        choices=BOOLEAN,
    ),
    Parameter(
        "simulator",
        "auto",
        "Which simulator if sim is true; auto: gazebo if it can be used, else mujoco, or rods for "
        "robots of rods.",
        choices=("auto", "mujoco", "gazebo", "rods"),
    ),
    Parameter(
        "mode",
        "realtime",
        "How simulated time advances; lockstep waits for the controller at each step, paced too, "
        "and is not faster than real time.",
        choices=MODES,
    ),
    Parameter(
        "world",
        "",
        "World of the simulation: name of a file in worlds/, or a path; the robot is put into it. "
        "Empty: the robot alone, in Gazebo with ground and light.",
    ),
    Parameter(
        "terrain",
        "",
        "What the robot stands on in the simulation, KIND or KIND:NAME=VALUE,...; empty: nothing "
        "beside the world.",
    ),
    Parameter(
        "physics_engine",
        "world",
        "Physics engine of Gazebo; world: the one that the world names, else dartsim.",
        choices=PHYSICS_ENGINES,
    ),
    Parameter(
        "controller",
        "none",
        "Controller node; none: send force_command yourself.",
        default_text="the robot's",
    ),
    Parameter(
        "reference", "", "What to track, a name in the reference file; empty: as in params_file."
    ),
    Parameter("params_file", "", "Parameter file, keyed by node name; empty: config/ROBOT.yaml."),
    Parameter(
        "use_sim_time",
        "auto",
        "Whether nodes take time from /clock; auto: if sim is true. Never with the real robot.",
        choices=("auto", *BOOLEAN),
    ),
    Parameter("rviz", "true", "Start RViz, where it is installed.", choices=BOOLEAN),
    Parameter(
        "view", "false", "Start the browser view; the terminal shows its link.", choices=BOOLEAN
    ),
    Parameter(
        "headless", "false", "true: no window, neither RViz's nor Gazebo's.", choices=BOOLEAN
    ),
    Parameter("namespace", "", "Namespace of all nodes; moves the whole robot."),
    Parameter(
        "log_level",
        "info",
        "Minimum severity that is printed.",
        choices=("debug", "info", "warn", "error", "fatal"),
    ),
    Parameter("log_dir", "", "Folder for one .npz log per node; empty: no logs."),
    Parameter(
        "autostart",
        "true",
        "false: the controller waits for its service ~/enable, the real robot for ros2 lifecycle.",
        choices=BOOLEAN,
    ),
    Parameter(
        "record", "false", "Record all topics to an MCAP file (needs ros2 bag).", choices=BOOLEAN
    ),
    Parameter(
        "port", "/dev/ttyACM0", "Serial port of the real robot; several with commas between them."
    ),
    Parameter("baudrate", "1000000", "Baud rate of these ports."),
)

NAMES = tuple(argument.name for argument in ARGUMENTS)


def arguments_for(
    robot: str, defaults: Mapping[str, str], controllers: Sequence[str]
) -> tuple[Parameter, ...]:
    """Return the arguments of one robot's launch file.

    Args:
        robot: Its name.
        defaults: Defaults of its own, by argument name.
        controllers: The controllers it can be launched with.
    """
    out = []
    for argument in ARGUMENTS:
        own = {"robot": robot, **defaults}.get(argument.name, argument.default)
        choices = (*controllers, "none") if argument.name == "controller" else argument.choices
        out.append(replace(argument, default=own, choices=choices))
    return tuple(out)


def read_values(given: Mapping[str, str], arguments: Iterable[Parameter]) -> dict[str, str]:
    """Return the values of all arguments; what means true or false becomes ``true`` or ``false``.

    Args:
        given: Values as they were given; the others have their defaults.
        arguments: What may be given.

    Raises:
        UnknownNameError: There is no such argument.
        CardsError: A value is not among the choices.
    """
    known = {argument.name: argument for argument in arguments}
    for name in given:
        check_choice(name, "launch argument", known)
    values = {name: given.get(name, str(argument.default)) for name, argument in known.items()}
    for name, argument in known.items():
        choices = argument.choices
        if "true" in choices and values[name] != "auto":
            values[name] = "true" if is_true(values, name) else "false"
        elif choices and values[name] not in choices:
            raise CardsError(f"{name}:={values[name]} (expected: {', '.join(choices)})")
    return values


def argument_table(arguments: Iterable[Parameter] = ARGUMENTS) -> list[str]:
    """Return the rows of a Markdown table: name, default, values, meaning."""
    rows = ["| argument | default | values | meaning |", "|---|---|---|---|"]
    for one in arguments:
        default = one.default_text or (f"`{one.default}`" if one.default else "")
        # capital letters are for Python's True and False
        values = ", ".join(f"`{choice}`" for choice in one.choices if choice.islower())
        rows.append(f"| `{one.name}` | {default} | {values} | {one.description} |")
    return rows


def is_true(values: Mapping[str, str], name: str) -> bool:
    """Read a boolean argument.

    Raises:
        CardsError: The value means neither true nor false.
    """
    text = values[name].lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise CardsError(f"{name}:={values[name]} (expected: true or false)")
