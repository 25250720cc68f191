"""A robot whose cable meets a model beside it, without gravity."""

import numpy as np

from cards_core.robot.actuators import Cable
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Inertia,
    Joint,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

SHAPES = {
    "box": Box(np.array([0.03, 0.03, 0.06])),
    "sphere": Sphere(0.02),
    "capsule": Capsule(0.008, 0.06),
}


def body(name, place, *shapes, mass=0.05, com=(0.0, 0.0, 0.0)):
    """A free link and its joint."""
    link = Link(
        name,
        Inertia(mass, np.array(com), np.diag([2e-5, 2.5e-5, 3e-5])),
        collisions=tuple(Collision(f"c{i}", shape) for i, shape in enumerate(shapes)),
    )
    joint = Joint(f"{name}_free", "free", WORLD, name, Pose(translation=np.array(place)))
    return link, joint


def thrower(friction=0.0, *, shape=None, name="thrower", at=0.0):
    """Two bodies, 10 cm apart along x, and a cable between them that is just taut."""
    pairs = [body("left", (-0.05, at, 0)), body("right", (0.05, at, 0))]
    if shape is not None:
        pairs[0] = body("left", (-0.05, at, 0), shape)
    links, joints = zip(*pairs, strict=True)
    ends = (ViaPoint("left", np.array([0.01, 0, 0])), ViaPoint("right", np.array([-0.01, 0, 0])))
    cable = Muscle(
        "cable",
        ends,
        tension_max=100.0,
        actuator=Cable(stiffness=200.0, damping=0.5, rest_length=0.08),
        contact=True,
        friction=friction,
    )
    return Robot(name, links, joints, muscles=(cable,), gravity=np.zeros(3))


def thing(shape, com=(0.0, 0.0, 0.0)):
    link, joint = body("thing", (0.003, 0.06, 0.0), shape, mass=0.08, com=com)
    return Robot("thing", (link,), (joint,))
