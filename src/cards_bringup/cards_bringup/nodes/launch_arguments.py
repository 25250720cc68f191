"""The launch arguments of every robot: name, default, meaning, accepted values.

Plain data, so that the launch files, the node lists and the tests agree without ROS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cards_core.errors import CardsError

BOOLEAN = ("true", "false", "True", "False")
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


@dataclass(frozen=True)
class LaunchArgument:
    """An argument ``name:=value``; empty `choices` means any text."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


ARGUMENTS = (
    LaunchArgument("robot", "", "Robot: config/ROBOT.nodes.yaml says which nodes it has."),
    LaunchArgument(
        "sim", "true", "true: simulate; false: drive the real robot (cards_hardware).", BOOLEAN
    ),
    LaunchArgument(
        "simulator",
        "auto",
        "Which simulator if sim is true; auto: gazebo if it can be used, else mujoco, or rods for "
        "robots of rods.",
        ("auto", "mujoco", "gazebo", "rods"),
    ),
    LaunchArgument(
        "mode",
        "realtime",
        "How simulated time advances; lockstep waits for the controller at each step.",
        ("realtime", "as_fast_as_possible", "lockstep"),
    ),
    LaunchArgument(
        "world",
        "empty",
        "World for Gazebo: name of a file in worlds/, or a path; the robot is put into it.",
    ),
    LaunchArgument("controller", "none", "Controller node; none: send force_command yourself."),
    LaunchArgument(
        "reference", "", "What to track, a name in the reference file; empty: as in params_file."
    ),
    LaunchArgument(
        "params_file", "", "Parameter file, keyed by node name; empty: config/ROBOT.yaml."
    ),
    LaunchArgument(
        "use_sim_time",
        "auto",
        "Whether nodes take time from /clock; auto: if sim is true. Never with the real robot.",
        ("auto", *BOOLEAN),
    ),
    LaunchArgument("rviz", "true", "Start RViz, where it is installed.", BOOLEAN),
    LaunchArgument("view", "false", "Start the browser view, http://127.0.0.1:8080.", BOOLEAN),
    LaunchArgument("headless", "false", "true: no window, neither RViz's nor Gazebo's.", BOOLEAN),
    LaunchArgument("namespace", "", "Namespace of all nodes; moves the whole robot."),
    LaunchArgument(
        "log_level",
        "info",
        "Least severity that is printed.",
        ("debug", "info", "warn", "error", "fatal"),
    ),
    LaunchArgument("log_dir", "", "Folder for one .npz log per node; empty: no logs."),
    LaunchArgument(
        "autostart",
        "true",
        "false: the controller waits for its service ~/enable, the real robot for ros2 lifecycle.",
        BOOLEAN,
    ),
    LaunchArgument(
        "record", "false", "Record all topics to an MCAP file (needs ros2 bag).", BOOLEAN
    ),
    LaunchArgument(
        "port", "/dev/ttyACM0", "Serial port of the real robot; several with commas between them."
    ),
    LaunchArgument("baudrate", "1000000", "Baud rate of these ports."),
)

NAMES = tuple(argument.name for argument in ARGUMENTS)


def arguments_for(
    robot: str, defaults: Mapping[str, str], controllers: Sequence[str]
) -> tuple[LaunchArgument, ...]:
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
