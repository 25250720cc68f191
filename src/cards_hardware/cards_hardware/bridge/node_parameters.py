"""Parameters of the node ``hardware``."""

from __future__ import annotations

from cards_core.loop.host import impedance_gains
from cards_core.loop.model_agreement import accept_parameter
from cards_core.parameters.declaration import Parameter
from cards_core.robot.model import Robot
from cards_hardware.real_time import MAX_PRIORITY


def parameters() -> list[Parameter]:
    """Return the parameters of the bridge to the real robot."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "boards",
            "",
            "Which board has which muscles: name in config/, or path, of a .boards.yaml file; "
            "empty: the robot's.",
        ),
        Parameter("part", "", "Only the boards with this namespace in that file, e.g. left_arm."),
        Parameter(
            "port",
            "/dev/ttyACM0",
            "Serial port that stands for {port} in that file; several with commas: {port_1} ...",
        ),
        Parameter(
            "baudrate",
            1_000_000,
            "Baud rate that stands for {baudrate} there.",
            lower=9600,
            default_text="1000000",
        ),
        Parameter(
            "autostart",
            True,
            "Configure and activate once at start-up; otherwise use ros2 lifecycle.",
        ),
        Parameter(
            "command_timeout",
            0.1,
            "Time without a valid command that is reported, and oldest state that may be "
            "answered; the boards have watchdogs of their own.",
            "s",
            lower=1e-3,
            upper=3600.0,
        ),
        Parameter(
            "relax_time",
            0.5,
            "Time at the safe tension between the last command and drives off.",
            "s",
            lower=0.0,
            upper=60.0,
        ),
        Parameter(
            "real_time_priority",
            5,
            "For the real-time scheduler once the boards are there, where that is permitted; the "
            "threads of the lines have a higher one; 0: none.",
            lower=0,
            upper=MAX_PRIORITY,
        ),
        accept_parameter(
            "Accept commands even if another node has a different model (compiler.md)."
        ),
        Parameter("log_dir", "", "Folder for hardware.npz, one row per state; empty: no log."),
    ]


def robot_parameters(robot: Robot) -> list[Parameter]:
    """Return the parameters whose size depends on the robot.

    Args:
        robot: With the limits and impedance laws of its boards, see `Layout.limited`.
    """
    return impedance_gains(robot, default="the boards file, else the muscle's <control>")
