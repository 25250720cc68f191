"""Degrees, millimetres and grams are doubted, robots as they are are not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from cards_core.formats import known_models, load
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.units import doubtful_units
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.urdf.importer import import_urdf
from cards_core.robot.elements import WORLD
from cards_core.spatial import Pose

OURS = [name for name in known_models() if not has_rods(find_model(name))]


def found(robot):
    findings = FindingList()
    doubtful_units(robot, findings)
    assert {item.code for item in findings} <= {"units-doubtful"}
    return [(item.subject, item.message) for item in findings]


def placed(robot, name, position):
    """Return the robot with a joint at another place of its parent."""
    joints = [
        dataclasses.replace(
            joint, parent_to_joint=Pose(joint.parent_to_joint.rotation, np.array(position))
        )
        if joint.name == name
        else joint
        for joint in robot.joints
    ]
    return dataclasses.replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("name", OURS)
def test_our_robots_are_not_doubted(name):
    assert found(load(name)) == []


ARM = """<robot name="arm">
  <link name="base">{mass}</link><link name="upper">{mass}</link><link name="lower">{mass}</link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.3"/><axis xyz="0 1 0"/><limit {limit} effort="1" velocity="1"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/>
    <origin xyz="{elbow}"/><axis xyz="0 1 0"/>
    <limit lower="-0.1" upper="0.1" effort="1" velocity="1"/></joint>
</robot>"""
MASS = '<inertial><mass value="{}"/><inertia ixx="{}" iyy="{}" izz="{}"/></inertial>'


def arm(limit='lower="-1.5" upper="1.5"', elbow="0 0 0.3", mass=1.0):
    inertia = MASS.format(mass, *[0.01 * mass] * 3)
    model = import_urdf(ARM.format(limit=limit, elbow=elbow, mass=inertia))
    return [item for item in model.warnings if item.code == "units-doubtful"]


def test_an_arm_in_si_units():
    assert arm() == []
    assert arm(limit='lower="-12.5" upper="12.5"') == []  # two turns
    assert arm(limit='lower="-1e5" upper="1e5"') == []  # none
    assert arm(elbow="0 0 1.9") == []


@pytest.mark.parametrize(("lower", "upper"), [(-90.0, 90.0), (0.0, 180.0)])
def test_degrees(lower, upper):
    (warning,) = arm(limit=f'lower="{lower}" upper="{upper}"')
    assert (warning.subject, warning.line) == ("joint 'shoulder'", 3)
    assert "in degrees? In radians they would be" in warning.message
    assert warning.message.endswith(f" {math.radians(lower):.4g} .. {math.radians(upper):.4g}")


@pytest.mark.parametrize("elbow", ["0 0 -300", "30 0 0", "0 6.5 0"])
def test_a_joint_far_from_everything_else(elbow):
    (warning,) = arm(elbow=elbow)
    assert warning.subject == "joint 'elbow'"
    assert "in millimetres?" in warning.message
    assert "the rest of the robot measures 0.3 m" in warning.message


def test_tonnes():
    (warning,) = arm(mass=4000.0)
    assert "weigh 1.2e+04 kg" in warning.message
    assert arm(mass=3000.0) == []


@pytest.mark.parametrize("name", ["roboy_arm", "planar_2r"])
def test_all_places_in_millimetres(name):
    robot = load(name)
    for joint in robot.joints:
        near = joint.parent_to_joint.translation
        if joint.parent == WORLD or np.linalg.norm(near) < 0.05:
            continue
        said = found(placed(robot, joint.name, 1000.0 * near))
        assert [subject for subject, _ in said] == [f"joint '{joint.name}'"]


def test_a_base_may_stand_anywhere():
    robot = load("roboy_arm")
    (base,) = [joint for joint in robot.joints if joint.parent == WORLD]
    assert found(placed(robot, base.name, [3e4, 0.0, 0.0])) == []
