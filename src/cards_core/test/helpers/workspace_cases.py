"""Robots and a condition whose answers are known in closed form, for tests of workspaces.

Other processes register the condition with ``CARDS_TEST_CONDITIONS=1`` and an import of this
module.
"""

import itertools
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.analysis.conditions.base import STATUS, Column, Options, option
from cards_core.analysis.conditions.registry import CONDITIONS, ConditionKind
from cards_core.analysis.status import PointStatus
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot

GATE, OPEN_CALLS = os.environ.get("CARDS_TEST_GATE"), int(os.environ.get("CARDS_TEST_CALLS", "0"))
"""File that the condition waits for in this process, and after how many calls it does."""

CALLS = itertools.count()


@dataclass(frozen=True, kw_only=True)
class BallOptions(Options):
    radius: float = option(0.5, "Radius of the ball.", "m", above=0.0)
    pause: float = option(0.0, "Time that every call takes.", "s", lower=0.0)


class InBall:
    """Feasible where |q| <= radius; ``margin`` = radius - |q|. Beyond 10 radii: no answer."""

    name = "in_ball"
    columns = (STATUS, Column("margin", "float64", "m", "distance to the sphere"))

    def __init__(self, dynamics, options):
        self.options = options

    def evaluate(self, q):
        assert np.isfinite(q).all(), "the engine keeps such rows away"
        time.sleep(self.options.pause)
        while GATE and next(CALLS) >= OPEN_CALLS and not Path(GATE).exists():
            time.sleep(0.01)
        distance = np.sqrt((q * q).sum(axis=1))
        margin = self.options.radius - distance
        status = np.where(margin >= 0.0, PointStatus.FEASIBLE, PointStatus.INFEASIBLE)
        far = distance > 10.0 * self.options.radius
        status[far] = PointStatus.NOT_CONVERGED
        return {"status": status, "margin": np.where(far, np.nan, margin)}


KIND = ConditionKind(InBall, BallOptions, "within a ball")


def killed_in_the_works(job, index, values):
    """Instead of a chunk: what a worker process does that is killed for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get("CARDS_TEST_CONDITIONS"):
    CONDITIONS["in_ball"] = KIND


def chain(name, joints, home):
    """A chain of joints: (name, kind, axis, lower, upper)."""
    tensor = np.diag([0.01, 0.01, 0.01])
    links, items, parent = [], [], WORLD
    for joint, kind, axis, lower, upper in joints:
        links.append(Link(f"{joint}_link", Inertia(1.0, np.zeros(3), tensor)))
        axes = () if kind == "ball" else (JointAxis(np.array(axis, float), lower, upper),)
        items.append(Joint(joint, kind, parent, links[-1].name, axes=axes))
        parent = links[-1].name
    return Robot(name, tuple(links), tuple(items), home=home)


def cube_robot():
    """Moves along x, y, z within +-1 m; home is the origin."""
    joints = [(n, "prismatic", a, -1.0, 1.0) for n, a in zip("xyz", np.eye(3), strict=True)]
    return chain("cube", joints, {})


def chain_robot(*, limits=True):
    low, high = (-1.5, 2.5) if limits else (-np.inf, np.inf)
    joints = [
        ("slide", "prismatic", (1, 0, 0), low, high),
        ("turn", "revolute", (0, 0, 1), low, high),
        ("lift", "prismatic", (0, 0, 1), low, high),
        ("arm_a", "revolute", (0, 1, 0), low, high),
        ("arm_b", "revolute", (0, 1, 0), low, high),
        ("leg_a", "revolute", (0, 1, 0), low, high),
    ]
    return chain("chain", joints, {"slide": (0.125,)})


def ball_robot():
    joints = [
        ("slide", "prismatic", (1, 0, 0), -1.0, 1.0),
        ("wrist", "ball", None, 0.0, 0.0),
    ]
    return chain("ball", joints, {"wrist": (0.5, 0.5, -0.5, 0.5)})
