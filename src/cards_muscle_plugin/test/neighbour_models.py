"""For tests: a robot whose cable is thrown at a model beside it, and the same embedded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from touched_models import thing

from cards_core.formats import load, write_model
from cards_core.formats.sdf.reader import GRAVITY
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.world import World, WorldModel
from cards_muscle_plugin.surroundings import Surroundings

THROWN = 0.6
"""Velocity of both ends of the cable along y, [m/s]."""


def around(shape):
    return Surroundings((), (("thing", thing(shape).links[0]),))


def written(folder, robot):
    """Write a model; its file and the element of the plugin.

    Gravity is the world's: with its own the file would be a world, which cannot be included.
    """
    file = write_model(replace(robot, gravity=GRAVITY), folder / robot.name)
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
