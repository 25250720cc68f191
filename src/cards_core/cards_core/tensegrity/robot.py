"""A structure as a robot of free links with cables, and as an SDF in a folder.

Numbers are rounded to 1e-12 m and to 12 digits: far below what matters, and enough for the same
bytes on every machine.
"""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path

import numpy as np

from cards_core.files import check_new
from cards_core.formats.sdf.writer import write_model
from cards_core.robot.actuators import Cable as CableActuator
from cards_core.robot.actuators import Motor
from cards_core.robot.elements import (
    WORLD,
    Box,
    Collision,
    Cylinder,
    Inertia,
    Joint,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
    Visual,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.tensegrity.kinds import Winch
from cards_core.tensegrity.structure import Anchor, Body, Cable, Solid, Structure
from cards_core.typing import Array, Vector3

DECIMALS = 12
"""Of places in metres, and digits of other numbers."""


def to_robot(structure: Structure) -> Robot:
    """Return the structure as a robot: a free link per body, a muscle per cable.

    The cable is an elastic one whose law is that of NASA's toolkit,
    ``T = E + min(max(b l', -E), E)`` with ``E = max(0, k (l - L0))``: the toolkit limits the
    damping to as much as the elastic part, so that T is between 0 and 2 E. A command changes L0.
    """
    links = tuple(_link(body) for body in structure.bodies)
    joints = tuple(Joint(f"{link.name}_free", "free", WORLD, link.name) for link in links)
    home = {
        joint.name: (*_place(body.position).tolist(), 1.0, 0.0, 0.0, 0.0)
        for joint, body in zip(joints, structure.bodies, strict=True)
    }
    muscles = tuple(_muscle(cable) for cable in structure.cables)
    return Robot(structure.name, links, joints, muscles, home=home)


def write_structure(
    structure: Structure, folder: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write ``model.sdf`` and ``model.config`` into a folder; return the path of ``model.sdf``.

    Args:
        structure: What is written.
        folder: Made if there is none.
        force: Replace the files of a model that is there.

    Raises:
        CardsError: There is a model and ``force`` is not set.
        DescriptionError: The SDF cannot state it.
        OSError: The folder cannot be written.
    """
    for name in ("model.sdf", "model.config"):
        check_new(Path(folder) / name, force=force)
    text = structure.description or (
        f"{structure.name}: a tensegrity of {len(structure.bodies)} bodies and "
        f"{len(structure.cables)} cables."
    )
    return write_model(to_robot(structure), folder, description=text)


def _place(values: Array) -> Vector3:
    """Return a place without digits that are only rounding, [m]."""
    return np.round(np.asarray(values, dtype=float), DECIMALS) + 0.0


def _digits(value: float) -> float:
    return float(f"{value:.{DECIMALS}g}")


def _link(body: Body) -> Link:
    tensor = body.inertia.tensor
    decimals = DECIMALS - math.floor(math.log10(np.abs(tensor).max()))
    inertia = Inertia(_digits(body.mass), np.zeros(3), np.round(tensor, decimals) + 0.0)
    visuals = [
        Visual(f"visual_{i}", _geometry(solid), _pose(solid), solid.color)
        for i, solid in enumerate(body.solids)
    ]
    color = next((s.color for s in body.solids if isinstance(s.geometry, Cylinder)), None)
    for i, (place, radius) in enumerate(body.joints):
        if color is not None:  # rods that meet look like one piece
            ball = Sphere(_digits(radius))
            visuals.append(Visual(f"joint_{i}", ball, Pose(translation=_place(place)), color))
    collisions = tuple(
        Collision(f"collision_{i}", _geometry(solid), _pose(solid), solid.friction)
        for i, solid in enumerate(body.solids)
    )
    return Link(body.name, inertia, tuple(visuals), collisions)


def _geometry(solid: Solid) -> Cylinder | Box | Sphere:
    match solid.geometry:
        case Cylinder(radius, length):
            return Cylinder(_digits(radius), _digits(length))
        case Box(size):
            return Box(np.array([_digits(value) for value in size]))
        case Sphere(radius):
            return Sphere(_digits(radius))


def _pose(solid: Solid) -> Pose:
    return Pose(solid.pose.rotation, _place(solid.pose.translation))


def _muscle(cable: Cable) -> Muscle:
    winch = cable.actuator
    actuator = CableActuator(
        stiffness=_digits(cable.stiffness),
        damping=_digits(cable.damping),
        rest_length=_digits(cable.rest_length),
    )
    if winch is not None and winch.rotor:
        actuator = _wound(actuator, winch)
    elif winch is not None:
        actuator = dataclasses.replace(actuator, winch_speed=_digits(winch.speed_max))
    return Muscle(
        cable.name,
        (_via(cable.first), _via(cable.second)),
        0.0,
        _digits(cable.tension_max),
        actuator,
        contact=cable.contact,
        friction=cable.friction,
        control=cable.control,
    )


def _wound(cable: CableActuator, winch: Winch) -> CableActuator:
    """Return a cable with the motor of eq. 3.3, by its stall torque and no-load speed.

    Its torque constant is 1 N m/A: what it has in amperes and volts is its torque [N m] and speed
    [rad/s].
    """
    assert winch.radius is not None
    assert winch.friction is not None
    assert winch.inertia is not None
    stall, fastest = winch.tension_max * winch.radius, winch.speed_max / winch.radius
    motor = Motor(
        resistance=_digits(fastest / stall),
        torque_constant=1.0,
        voltage=_digits(fastest),
        max_current=_digits(stall),
        rotor_inertia=_digits(winch.inertia),
        gear_ratio=1.0,
        gear_efficiency=1.0,
        viscous_friction=_digits(winch.friction),
        backdrivable=winch.backdrivable,
        envelope="symmetric",
    )
    return dataclasses.replace(
        cable,
        spool_radius=_digits(winch.radius),
        position_gain=winch.position_gain,
        velocity_gain=winch.velocity_gain,
        motor=motor,
    )


def _via(anchor: Anchor) -> ViaPoint:
    return ViaPoint(anchor.body, _place(anchor.position))
