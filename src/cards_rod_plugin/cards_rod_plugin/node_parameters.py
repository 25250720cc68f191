"""Parameters of the node ``rod_solver`` in Gazebo: those of the node itself, and of the world."""

from __future__ import annotations

import dataclasses

from cards_core.parameters.declaration import Parameter
from cards_rods.node_parameters import parameters as node_parameters

WORLDS = ("model", "duration", "rate", "substeps", "solve_timeout")
"""Parameters of the node that mean something else here, or nothing."""


def parameters() -> list[Parameter]:
    """Return the parameters; ``mode``, ``dt`` and ``speed`` of the simulator are accepted too."""
    kept = [p for p in node_parameters() if p.name not in WORLDS]
    kept = [
        dataclasses.replace(p, description="Rate of ~/shapes, ~/rods and the lines in the window.")
        if p.name == "draw_rate"
        else p
        for p in kept
    ]
    return [
        Parameter(
            "coupling",
            "kinematic",
            "kinematic: the plate is put where the rods are in equilibrium; dynamic: the rods "
            "pull it, and it has mass, contacts and loads of the world.",
            choices=("kinematic", "dynamic"),
        ),
        Parameter(
            "base_joints",
            "commands",
            "What moves base joints that exist in the world; lengths are always commanded.",
            choices=("commands", "world"),
        ),
        Parameter(
            "joint_speed",
            0.5,
            "Fastest motion of a commanded joint with dynamic coupling.",
            "m/s or rad/s",
            1e-6,
            1e3,
        ),
        Parameter(
            "theta",
            0.55,
            "Weight of the step's end, dynamic coupling: 0.5 keeps energy, 1 takes most of it.",
            lower=0.5,
            upper=1.0,
        ),
        Parameter(
            "rate", 200.0, "Rate of ~/state and joint_states in simulated time.", "Hz", 1.0, 1e6
        ),
        Parameter("clock_rate", 100.0, "Rate of /clock in simulated time.", "Hz", 0.1, 1e6),
        Parameter(
            "substeps",
            1,
            "Maximum number of solves per step; each moves the plate by at most 5 mm or 2 "
            "degrees.",
            lower=1,
            upper=100,
        ),
        Parameter(
            "duration", 0.0, "Simulated time after which Gazebo ends; 0: endless.", "s", lower=0.0
        ),
        Parameter(
            "solve_timeout",
            0.1,
            "Longest time that ~/solve takes; Gazebo waits for it.",
            "s",
            1e-3,
            60.0,
        ),
        *kept,
    ]
