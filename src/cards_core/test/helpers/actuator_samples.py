"""Robots that are nothing but actuators, for tests."""

from __future__ import annotations

import numpy as np

from cards_core.robot.actuators import (
    Actuator,
    Cable,
    Hill,
    Ligament,
    Motor,
    Pneumatic,
    SeriesElastic,
    Spring,
    Thermal,
    Valve,
)
from cards_core.robot.elements import WORLD, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

HILL = {
    "max_isometric_force": 1000.0,
    "optimal_fiber_length": 0.1,
    "tendon_slack_length": 0.2,
}
BRAID = {"thread_length": 0.3, "turns": 2.0, "rest_length": 0.27}
TRIANGLE = Spring(law="triangle", stiffness=30680.0)

WARM = Thermal(heat_per_square_force=1e-3)

MIXED: tuple[Actuator, ...] = (
    Hill(**HILL),
    Hill(**HILL, curves="thelen_2003"),
    Hill(**HILL, tendon="rigid"),
    Hill(**HILL, pennation_angle=0.4, damping=0.05),
    Cable(stiffness=1e4, damping=10.0, rest_length=0.29),
    Cable(stiffness=1e5, winch_speed=0.1),
    SeriesElastic(spring=TRIANGLE),
    SeriesElastic(
        spring=Spring(law="exponential", force_scale=15.0, growth=350.0), thermal=Thermal()
    ),
    Pneumatic(**BRAID),
    Pneumatic(**BRAID, valve=Valve(), end_correction=1.3, bladder_stiffness=200.0),
    Ligament(stiffness=1000.0, slack_length=0.28),
    Cable(),
    Cable(thermal=WARM),
    Cable(stiffness=1e5, damping=10.0, thermal=WARM),
    Cable(stiffness=1e4, damping=10.0, motor=Motor()),
    Cable(stiffness=1e4, motor=Motor(backdrivable=False, envelope="symmetric", dry_friction=1e-3)),
    Cable(stiffness=1e4, motor=Motor(), thermal=Thermal()),
    Hill(**HILL, curves="millard_2012"),
    Hill(**HILL, curves="millard_2012", active_floor=0.0, passive_strain=0.6, pennation_angle=0.3),
    Hill(**HILL, curves="thelen_2003", active_width=0.5, passive_growth=4.0, velocity_shape=0.3),
    Hill(**HILL, thermal=WARM),
    Hill(**HILL, tendon="rigid", thermal=WARM),
    Pneumatic(**BRAID, thermal=WARM),
    Pneumatic(**BRAID, valve=Valve(), thermal=WARM),
)
"""One of each model."""


def actuator_robot(
    *actuators: Actuator, tension_min: float = 0.0, tension_max: float = 2000.0
) -> Robot:
    """Return a robot with these muscles, named m0, m1, ..., that move nothing."""
    path = (ViaPoint(WORLD, np.zeros(3)), ViaPoint("body", np.array([0.0, 0.0, 0.3])))
    muscles = tuple(
        Muscle(f"m{i}", path, tension_min, tension_max, actuator)
        for i, actuator in enumerate(actuators)
    )
    return Robot("actuators", (Link("body"),), (), muscles)


def mixed_lengths() -> np.ndarray:
    """Return lengths at which the muscles of `MIXED` work, [m]."""
    return np.array([0.25 if a.kind == "pneumatic" else 0.3 for a in MIXED])
