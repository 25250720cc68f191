"""Joints whose limits leave no motion are fixed where they stand, and named."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.locked_joints import fix_locked_joints
from cards_core.robot import Robot
from cards_core.robot.elements import (
    WORLD,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
)
from cards_core.spatial import Pose, rpy_matrix

X, Y = np.eye(3)[0], np.eye(3)[1]
PLACES = (
    Pose(rpy_matrix(0.1, 0.2, 0.3), np.array([0.1, 0.0, 0.2])),
    Pose(rpy_matrix(-0.2, 0.3, 0.1), np.array([0.0, 0.1, -0.3])),
)


def robot(kind, axes, home=()):
    """Return a robot with the joint, and a muscle over it and over a joint that always moves."""
    inertia = Inertia(1.0, np.array([0.1, 0.0, 0.0]), np.eye(3))
    return Robot(
        "r",
        (Link("a", inertia), Link("b", inertia)),
        (
            Joint("j", kind, WORLD, "a", *PLACES, axes, motor=True, line=7),
            Joint("k", "revolute", "a", "b", PLACES[1], axes=(JointAxis(X),)),
        ),
        (
            Muscle(
                "m",
                (
                    ViaPoint(WORLD, np.array([0.3, 0.0, 0.0])),
                    ViaPoint("a", np.array([0.0, 0.4, 0.0])),
                    ViaPoint("b", np.array([0.2, 0.0, 0.5])),
                ),
                0.0,
                10.0,
            ),
        ),
        home={"j": home} if home else {},
        source="file.xml",
    )


def numbers(model, q):
    dynamics = make_dynamics(model, "numeric")
    state = dynamics.update(np.array(q), np.zeros(len(q)))
    return (
        np.array(state.muscle_lengths),
        np.array(state.muscle_jacobian)[:, 1:] if len(q) > 1 else np.array(state.muscle_jacobian),
    )


@pytest.mark.parametrize(("index", "kept"), [(0, "Y"), (1, "X")])
def test_one_axis_of_a_universal_joint(index, kept):
    """Lengths and moment arms are those of the universal joint with that coordinate held."""
    axes = [JointAxis(X), JointAxis(Y)]
    axes[index] = replace(axes[index], lower=0.4, upper=0.4)
    findings = FindingList()
    found = fix_locked_joints(robot("universal", tuple(axes), (0.1, 0.2)), findings)
    joint = found.joint("j")
    assert joint.kind == "revolute"
    assert joint.axes[0].axis.tolist() == {"X": X, "Y": Y}[kept].tolist()
    assert joint.motor
    assert found.home == {"j": ((0.1, 0.2)[1 - index],)}
    free = robot("universal", (JointAxis(X), JointAxis(Y)))
    both = [0.7, 0.7]
    both[index] = 0.4
    length, arms = numbers(found, [0.7, -0.3])
    wanted, wanted_arms = numbers(free, [*both, -0.3])
    np.testing.assert_allclose(length, wanted, rtol=1e-14)
    np.testing.assert_allclose(arms, wanted_arms[:, -1:], atol=1e-14)
    (finding,) = findings.warnings
    assert (finding.code, finding.source, finding.line) == ("joint-locked", "file.xml", 7)
    assert "a revolute joint here" in finding.message


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_muscle_over_a_fixed_joint_keeps_its_length_and_moment_arms(kind):
    findings = FindingList()
    found = fix_locked_joints(robot(kind, (JointAxis(X, -0.2, -0.2),), (-0.2,)), findings)
    assert found.joint("j").kind == "fixed"
    assert not found.joint("j").motor
    assert found.home == {}
    length, arms = numbers(found, [0.6])
    wanted, wanted_arms = numbers(robot(kind, (JointAxis(X),)), [-0.2, 0.6])
    np.testing.assert_allclose(length, wanted, rtol=1e-14)
    np.testing.assert_allclose(arms, wanted_arms, atol=1e-14)
    (finding,) = findings.warnings
    assert "a fixed joint here, without its motor" in finding.message


@pytest.mark.parametrize("limits", [(1.0, 0.0), (math.inf, math.inf), (-math.inf, -math.inf)])
def test_limits_that_are_none_are_an_error(limits):
    wrong = robot("revolute", (JointAxis(X, *limits),))
    with pytest.raises(DescriptionError, match=r"file\.xml:7: joint 'j': limits"):
        fix_locked_joints(wrong, FindingList())
    held = JointAxis(X, 0.0, 0.0)
    planar = robot("planar", (held, JointAxis(Y), JointAxis(np.eye(3)[2])))
    with pytest.raises(DescriptionError, match="planar joint, or another kind"):
        fix_locked_joints(planar, FindingList())


def test_joints_that_move_stay_as_they_are():
    same = robot("revolute", (JointAxis(X, 0.0, 1e-12),))
    findings = FindingList()
    assert fix_locked_joints(same, findings).joints == same.joints
    assert not len(findings)
