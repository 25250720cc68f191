"""Parameters of the node ``simulator``."""

from __future__ import annotations

from cards_core.kinematics.tree import Tree
from cards_ros.parameter_spec import Parameter

MODES = ("realtime", "as_fast_as_possible", "lockstep")


def general_parameters() -> list[Parameter]:
    """Return the parameters that do not depend on the robot."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter("mode", "realtime", "How time advances.", choices=MODES),
        Parameter("dt", 0.001, "Time step.", "s", lower=1e-6, upper=0.1),
        Parameter(
            "speed",
            1.0,
            "Simulated time per real time in mode realtime.",
            lower=1e-3,
            upper=1e3,
            live=True,
        ),
        Parameter(
            "publish_rate",
            1000.0,
            "Rate of the states in simulated time; in lockstep every step is published.",
            "Hz",
            lower=0.1,
            upper=1e6,
        ),
        Parameter(
            "clock_rate", 100.0, "Rate of /clock in simulated time.", "Hz", lower=0.1, upper=1e6
        ),
        Parameter(
            "command_timeout",
            0.1,
            "Simulated time without a valid command after which tensions decay to the minimum.",
            "s",
            lower=1e-3,
            upper=3600.0,
        ),
        Parameter("decay_time", 0.0, "How long that decay takes.", "s", lower=0.0, upper=3600.0),
        Parameter(
            "wait_for_command",
            True,
            "Time starts with the first accepted command (always so in lockstep).",
        ),
        Parameter("ground", False, "Put a ground plane at z = ground_height."),
        Parameter("ground_height", 0.0, "Height of the ground plane.", "m"),
        Parameter(
            "duration",
            0.0,
            "Simulated time after which the node ends; 0: endless.",
            "s",
            lower=0.0,
        ),
        Parameter("log_dir", "", "Folder for simulator.npz, one row per step; empty: no log."),
    ]


def robot_parameters(tree: Tree) -> list[Parameter]:
    """Return the parameters whose size depends on the robot."""
    return [
        Parameter(
            "initial_positions",
            tuple(tree.home),
            "Joint coordinates at time zero.",
            "rad or m",
            length=tree.nq,
            names=tree.position_names,
            default_text="the model's home",
        )
    ]
