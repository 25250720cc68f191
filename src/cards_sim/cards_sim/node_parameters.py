"""Parameters of the node ``simulator``."""

from __future__ import annotations

from typing import get_args

from cards_core.loop.host import host_parameters, impedance_gains, initial_positions
from cards_core.parameters.declaration import Parameter
from cards_core.robot.model import Robot
from cards_sim.free_bodies import Integration

TIME_STEP = Parameter("dt", 0.001, "Time step.", "s", lower=1e-6, upper=0.1)


def general_parameters() -> list[Parameter]:
    """Return the parameters that do not depend on the robot."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "world",
            "",
            "World that the robot is put into: name of a file in worlds/, or path of an SDF; "
            "empty: none.",
        ),
        Parameter(
            "terrain",
            "",
            "Terrain, KIND or KIND:NAME=VALUE,...; in place of a model "
            "'ground' of the world; empty: nothing.",
        ),
        TIME_STEP,
        Parameter(
            "integrator",
            "Euler",
            "Of MuJoCo, or midpoint: Euler with free bodies that keep momentum and energy.",
            choices=get_args(Integration),
        ),
        Parameter(
            "speed",
            1.0,
            "Simulated time per real time in modes realtime and paced.",
            lower=1e-3,
            upper=1e3,
            live=True,
        ),
        *host_parameters(),
        Parameter("ground", False, "Put a ground plane at z = ground_height."),
        Parameter("ground_height", 0.0, "Height of the ground plane.", "m"),
        Parameter(
            "world_rate",
            100.0,
            "Rate of object_states and contacts in simulated time.",
            "Hz",
            lower=0.1,
            upper=1e6,
        ),
        Parameter(
            "wrench_duration",
            0.1,
            "How long a wrench of apply_wrench acts.",
            "s",
            lower=1e-6,
            upper=3600.0,
            live=True,
        ),
        Parameter(
            "grasped",
            "",
            "What is grasped, LINK/BODY with commas between: welded together as they are; "
            "all others are released.",
            live=True,
        ),
    ]


SEVERAL = ("speed", "command_timeout", "decay_time", "accept_other_model")
"""General parameters that each of several robots of one world has too, for itself."""


def robot_parameters(robot: Robot) -> list[Parameter]:
    """Return the parameters whose size depends on the robot."""
    return [initial_positions(robot.tree), *impedance_gains(robot)]
