"""For tests: a robot whose cable is thrown at a model beside it, and the same embedded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cards_core.formats import load, write_model
from cards_core.muscles.command import NO_COMMAND
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
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_muscle_plugin.surroundings import Surroundings

SHAPES = {
    "box": Box(np.array([0.03, 0.03, 0.06])),
    "sphere": Sphere(0.02),
    "capsule": Capsule(0.008, 0.06),
}
THROWN = 0.6
"""Velocity of both ends of the cable along y, [m/s]."""


def body(name, place, *shapes, mass=0.05):
    inertia = Inertia(mass, np.zeros(3), np.diag([2e-5, 2.5e-5, 3e-5]))
    link = Link(name, inertia, collisions=tuple(Collision("c", shape) for shape in shapes))
    return link, Joint(f"{name}_free", "free", WORLD, name, Pose(translation=np.array(place)))


def thrower(friction=0.0):
    """Two bodies, 10 cm apart along x, and a cable between them that is just taut."""
    links, joints = zip(body("left", (-0.05, 0, 0)), body("right", (0.05, 0, 0)), strict=True)
    ends = (ViaPoint("left", np.array([0.01, 0, 0])), ViaPoint("right", np.array([-0.01, 0, 0])))
    spring = Cable(stiffness=200.0, damping=0.5, rest_length=0.08)
    cable = Muscle(
        "cable", ends, tension_max=100.0, actuator=spring, contact=True, friction=friction
    )
    return Robot("thrower", links, joints, muscles=(cable,))


def thing(shape):
    link, joint = body("thing", (0.003, 0.06, 0.0), shape, mass=0.08)
    return Robot("thing", (link,), (joint,))


def around(shape):
    return Surroundings((), (("thing", thing(shape).links[0]),))


def written(folder, robot):
    """Write a model; its file and the element of the plugin."""
    file = write_model(robot, folder / robot.name)
    text = open(file).read()  # noqa: SIM115
    return file, text[text.index("<plugin") : text.index("</plugin>") + len("</plugin>")]


def embedded(file, shape, q, qd):
    """The same in the embedded simulator: a function that steps and returns the tension."""
    from cards_sim.simulator import Simulator

    world = World("w", (WorldModel("thing", thing(shape)),), gravity=np.zeros(3))
    simulator = Simulator(replace(load(file), gravity=np.zeros(3)), world=world)
    simulator.reset(q=q, qd=qd)

    def step():
        simulator.step(np.zeros(1), np.array([NO_COMMAND]))
        return simulator.state.tensions[0]

    return step
