"""Where moment arms jump: told by checks and the editor, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.analysis.arm_jumps import arm_jumps
from cards_core.analysis.robot_check import check_robot
from cards_core.analysis.workspace.points import Samples
from cards_core.dynamics import make_dynamics
from cards_core.editing.live_analysis import LiveAnalysis
from cards_core.formats import load
from cards_core.robot.elements import (
    Cylinder,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, axis_rotation


def arm(side):
    """A muscle over a cylinder along the hinge; its end passes behind it, seen from the side."""
    link = Link("arm", Inertia(1.0, np.array([0.0, 0.0, -0.1]), np.diag([0.01, 0.01, 0.01])))
    hinge = Joint(
        "h", "revolute", "world", "arm", axes=(JointAxis(np.array([0.0, 1.0, 0.0]), -1.2, 1.2),)
    )
    path = (
        ViaPoint("world", np.array([0.02, 0.0, 0.2])),
        Wrap("s", side=None if side is None else np.array([side[0], 0.0, side[1]])),
        ViaPoint("arm", np.array([0.0, 0.0, -0.2])),
    )
    lying = Pose(rotation=axis_rotation(np.array([1.0, 0.0, 0.0]), 0.5 * np.pi))
    surface = WrapSurface("s", "world", Cylinder(0.05, np.inf), lying)
    muscles = (Muscle("m", path, 0.0, 100.0),)
    return Robot("r", (link,), (hinge,), muscles, wrap_surfaces=(surface,))


def jump_of(robot):
    dynamics = make_dynamics(robot)
    (jump,) = arm_jumps(dynamics, dynamics.tree.lower, dynamics.tree.upper)
    return jump


def test_an_end_that_passes_behind():
    """The side point is opposite to the end at 0.5 rad: l jumps there, as states beside say."""
    robot = arm((np.sin(0.5), np.cos(0.5)))
    jump, dynamics = jump_of(robot), make_dynamics(robot)
    assert jump.q[0] == pytest.approx(0.5, abs=1e-6)
    low, high = dynamics.batch(np.array([[0.5 - 1e-7], [0.5 + 1e-7]])).muscle_lengths[:, 0]
    assert jump.length == pytest.approx(abs(high - low), abs=1e-6)
    assert jump.length > 1e-3


def test_without_a_side_only_the_arm_jumps():
    """Where both ways are equally long: the line passes the axis, at atan2(-0.02, -0.2)."""
    jump = jump_of(arm(None))
    assert jump.length < 1e-5
    assert abs(jump.arm) == pytest.approx(0.1, abs=1e-3)
    assert abs(jump.q[0]) == pytest.approx(np.arctan2(0.02, 0.2), abs=1e-4)


def test_checks_and_the_editor_tell_it():
    robot = arm(None)
    found = check_robot(make_dynamics(robot), Samples(20)).findings
    (warning,) = (x for x in found if x.part == "moment_arms" and x.severity == "warning")
    assert warning.subject == "m"
    assert "about h jumps by 100 mm" in warning.text
    told = LiveAnalysis(robot).analyse(robot, whole=False).problem
    assert told.startswith("the moment arm of m about h jumps at ")


@pytest.mark.parametrize("name", ["wrap_elbow", "roboy_arm"])
def test_lift_off_is_no_jump(name):
    robot = load(name)
    dynamics = make_dynamics(robot)
    low, high = dynamics.tree.lower, dynamics.tree.upper
    assert arm_jumps(dynamics, low, high) == []
    assert "jumps" not in LiveAnalysis(robot).analyse(robot, whole=False).problem
    bare = replace(robot, muscles=robot.muscles[:0])
    assert arm_jumps(make_dynamics(bare), low, high) == []
