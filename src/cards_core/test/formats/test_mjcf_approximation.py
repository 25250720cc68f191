"""Paths that MuJoCo cannot have, replaced by the nearest that it can."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.mjcf.approximation import with_native_paths
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Pulley,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rpy_matrix


def hinge(path, surfaces):
    """A link on a hinge about z at the origin, and one muscle."""
    inertia = Inertia(1.0, np.array([0.2, 0.0, 0.0]), 0.01 * np.eye(3))
    axis = JointAxis(np.array([0.0, 0.0, 1.0]), -0.1, 1.0)
    joint = Joint("j", "revolute", "world", "arm", axes=(axis,))
    muscle = Muscle("m", tuple(path), 0.0, 100.0)
    return Robot("r", (Link("arm", inertia),), (joint,), (muscle,), wrap_surfaces=tuple(surfaces))


START = ViaPoint("world", np.array([-0.3, 0.05, 0.01]))
END = ViaPoint("arm", np.array([0.25, 0.03, 0.0]))
UP = np.array([0.0, 0.3, 0.0])


def errors(robot, native, count=40):
    ours, theirs = make_dynamics(robot, "numeric"), make_dynamics(native, "numeric")
    worst = 0.0
    for q in np.linspace(robot.tree.lower, robot.tree.upper, count):
        a, b = (d.update(q, np.zeros(1)) for d in (ours, theirs))
        worst = max(worst, abs(float(a.muscle_lengths[0] - b.muscle_lengths[0])))
    return worst


def test_what_is_native_comes_back_itself():
    for name in ("planar_2r", "roboy_arm"):
        robot = load(name)
        assert with_native_paths(robot) == (robot, ())
    surface = WrapSurface("s", "arm", Sphere(0.04))
    robot = hinge([START, Wrap("s"), END], [surface])
    assert with_native_paths(robot)[0] is robot


def test_a_cylinder_whose_ends_are_not_reached_becomes_endless_without_error():
    surface = WrapSurface("s", "world", Cylinder(0.06, 0.2))
    robot = hinge([START, Wrap("s", UP), END], [surface])
    native, (change,) = with_native_paths(robot)
    assert change.length_error < 1e-12
    assert "the same in" in str(change)
    assert errors(robot, native) < 1e-12
    (wrap,) = [item for item in native.muscles[0].path if isinstance(item, Wrap)]
    assert native.wrap_surface(wrap.surface).geometry == Cylinder(0.06, math.inf)


@pytest.mark.parametrize(
    ("geometry", "pose", "largest"),
    [
        # a long one is a cylinder about the hinge
        (Ellipsoid(np.array([0.06, 0.06, 0.3])), Pose(), 5e-5),
        (Ellipsoid(np.array([0.05, 0.08, 0.1])), Pose(rpy_matrix(0.2, 0.1, 0.3)), 3e-4),
    ],
)
def test_other_surfaces_become_spheres_or_cylinders(geometry, pose, largest):
    surface = WrapSurface("s", "world", geometry, pose)
    robot = hinge([START, Wrap("s", UP), END], [surface])
    native, (change,) = with_native_paths(robot)
    assert change.length_error < largest
    # what is stated holds in poses that were not looked at, and leaving it out is far worse
    assert errors(robot, native) < 1.5 * change.length_error + 1e-9
    straight = hinge([START, END], [])
    assert errors(robot, straight) > 3.0 * errors(robot, native)
    kinds = [type(native.wrap_surface(w.surface).geometry) for w in native.muscles[0].path[1:-1]]
    assert set(kinds) <= {Sphere, Cylinder}


def test_several_surfaces_in_a_row_get_a_site_between():
    surfaces = [
        WrapSurface("a", "world", Sphere(0.05), Pose(translation=np.array([-0.15, 0.05, 0.0]))),
        WrapSurface("b", "arm", Sphere(0.05), Pose(translation=np.array([0.1, 0.0, 0.0]))),
    ]
    robot = hinge([START, Wrap("a", UP), Wrap("b", UP), END], surfaces)
    native, (change,) = with_native_paths(robot)
    path = native.muscles[0].path
    assert all(
        not (isinstance(x, Wrap) and isinstance(y, Wrap)) for x, y in itertools.pairwise(path)
    )
    assert errors(robot, native) < 1.5 * change.length_error + 1e-9
    left_out = dataclasses.replace(
        robot, muscles=(dataclasses.replace(robot.muscles[0], path=(START, END)),)
    )
    assert errors(robot, left_out) > 2.0 * errors(robot, native)
    assert f"{1e3 * change.length_error:.2g} mm" in str(change)


def test_a_pulley_becomes_a_site_and_its_error_is_stated():
    pulley = Pulley("world", np.array([-0.3, 0.2, 0.0]), np.array([0.0, 1.0, 0.0]), 0.03)
    robot = hinge([pulley, END], [])
    native, (change,) = with_native_paths(robot)
    assert isinstance(native.muscles[0].path[0], ViaPoint)
    assert 1e-6 < change.length_error < 0.05
    assert errors(robot, native) < 1.5 * change.length_error
    assert "pulley became a site" in str(change)
