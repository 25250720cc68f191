"""Inertia tensors: which are valid, and the least change that makes them so."""

import dataclasses

import numpy as np
import pytest

from cards_core.errors import DescriptionError
from cards_core.formats import load
from cards_core.formats.imports.inertias import mass_matrix_change
from cards_core.robot import (
    Inertia,
    Joint,
    JointAxis,
    Link,
    Robot,
    inertia_problem,
    repair_inertia,
    repair_robot,
)
from cards_core.robot.elements import WORLD
from cards_core.spatial import Pose
from random_robots import random_inertia, random_robot, random_rotation


def inertia(*moments, mass=1.0, rotation=None):
    r = np.eye(3) if rotation is None else rotation
    return Inertia(mass, np.zeros(3), r @ np.diag(moments) @ r.T)


def test_bodies_made_of_points_are_valid():
    rng = np.random.default_rng(0)
    for _ in range(100):
        points, masses = rng.normal(size=(5, 3)), rng.uniform(0.1, 1, 5)
        points -= masses @ points / masses.sum()
        tensor = sum(
            m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True)
        )
        assert inertia_problem(Inertia(masses.sum(), np.zeros(3), tensor)) is None


def test_a_flat_body_is_valid_in_any_axes():
    rng = np.random.default_rng(1)
    for _ in range(50):
        a, b = rng.uniform(0.1, 1, 2)
        assert inertia_problem(inertia(a, b, a + b, rotation=random_rotation(rng))) is None


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (inertia(0.083333, 0.0, 0.083333), "not all positive"),
        (inertia(0, 0, 0), "not all positive"),
        (inertia(1, 1, -0.1), "not all positive"),
        (inertia(1, 1, 2.001), "exceeds the sum"),
        (inertia(1, 1, 1, mass=0.0), "mass 0 kg is not positive"),
        (inertia(1, 1, 1, mass=-2.0), "mass -2 kg"),
        (inertia(1, 1, np.nan), "not finite"),
        (Inertia(1.0, np.zeros(3), np.eye(3) + np.eye(3, k=1)), "not symmetric"),
    ],
)
def test_problems_are_named(bad, message):
    assert message in inertia_problem(bad)


@pytest.mark.parametrize("seed", range(30))
def test_repair_is_valid_and_small(seed):
    rng = np.random.default_rng(seed)
    moments = rng.uniform(-0.2, 1, 3) * 10.0 ** rng.uniform(-4, 2)
    before = inertia(*moments, mass=rng.uniform(0.01, 10), rotation=random_rotation(rng))
    after = repair_inertia(before)
    assert inertia_problem(after) is None
    assert after.mass == before.mass
    if inertia_problem(before) is None:
        assert after is before
        return
    old, new = np.linalg.eigvalsh(before.tensor), np.linalg.eigvalsh(after.tensor)
    assert new[2] == pytest.approx(old[2])
    # no other valid pair of the smaller moments is nearer
    floor = 1e-6 * old[2]
    small = np.linspace(floor, old[2], 20001)
    middle = np.maximum(np.maximum(old[1], floor), old[2] - small)
    best = np.hypot(small - old[0], middle - old[1]).min()
    assert np.linalg.norm(new - old) <= best + 3e-9 * old[2]


def test_principal_axes_and_good_entries_stay():
    after = repair_inertia(inertia(0.083333, 0.0, 0.083333))
    np.testing.assert_array_equal(after.tensor, np.diag([0.083333, 0.083333 * 1e-6, 0.083333]))


def test_a_point_mass_becomes_a_tiny_sphere():
    tensor = repair_inertia(inertia(0, 0, 0, mass=2.0)).tensor
    np.testing.assert_allclose(tensor, 0.4 * 2.0 * 1e-3**2 * np.eye(3))


def test_nothing_to_go_by_is_an_error():
    infinite = Inertia(1.0, np.zeros(3), np.full((3, 3), np.inf))
    for bad in (inertia(1, 1, 5, mass=0.0), infinite):
        with pytest.raises(DescriptionError, match="cannot be repaired"):
            repair_inertia(bad)


def pendulum(body):
    axis = (JointAxis(np.array([0.0, 1.0, 0.0])),)
    return Robot("p", (Link("rod", body),), (Joint("j", "revolute", "world", "rod", axes=axis),))


def test_repairs_name_links_and_are_small():
    body = Inertia(0.1, np.array([0.0, 0.0, 0.5]), np.diag([0.08, 0.0, 0.08]))
    repaired, repairs = repair_robot(pendulum(body))
    assert [item.link for item in repairs] == ["rod"]
    # M = m c^2 + Iyy = 0.025 + 0.08e-6
    change = mass_matrix_change(pendulum(body), repaired)
    assert change == pytest.approx(0.08e-6 / 0.025, rel=1e-6)
    assert repairs[0].change == pytest.approx(1e-6)
    assert "link 'rod'" in str(repairs[0])
    assert inertia_problem(repaired.link("rod").inertia) is None


def test_a_valid_robot_comes_back_unchanged():
    robot = random_robot(3)
    same, repairs = repair_robot(robot)
    assert same is robot
    assert repairs == ()
    assert mass_matrix_change(robot, same) == 0.0


def test_massless_links_are_left_alone():
    robot = load("planar_2r")
    robot = dataclasses.replace(robot, links=(*robot.links[:2], Link("link_2")))
    assert repair_robot(robot)[1] == ()


def test_a_negative_mass_is_an_error_with_the_link():
    robot = pendulum(dataclasses.replace(random_inertia(np.random.default_rng(0)), mass=-1.0))
    with pytest.raises(DescriptionError, match="link 'rod': inertia with mass -1 kg"):
        repair_robot(robot)


def test_the_change_of_the_mass_matrix_is_relative():
    body = Inertia(2.0, np.zeros(3), np.diag([1.0, 0.5, 1.0]))
    heavier = Inertia(2.0, np.zeros(3), np.diag([1.0, 0.6, 1.0]))
    assert mass_matrix_change(pendulum(body), pendulum(heavier)) == pytest.approx(0.2)


def test_the_change_of_m_is_looked_for_where_it_is_largest():
    """A double pendulum that folds: M_11 is small in a few degrees around one angle of the elbow.

    With links of length 1 and point masses 1e-3 and 1 at their ends, M_11 is 1e-3 + 2 + 2 cos q2,
    and what the first link gains counts by far most where q2 is pi.
    """
    lumps = [Inertia(mass, np.array([0.0, 0.0, -1.0]), 1e-9 * np.eye(3)) for mass in (1e-3, 1.0)]
    heavier = dataclasses.replace(lumps[0], mass=1.1e-3)
    axis = JointAxis(np.array([0.0, 1.0, 0.0]), lower=-np.pi, upper=np.pi)
    below = Pose(np.eye(3), np.array([0.0, 0.0, -1.0]))
    joints = (
        Joint("hip", "revolute", WORLD, "thigh", axes=(axis,)),
        Joint("knee", "revolute", "thigh", "shank", parent_to_joint=below, axes=(axis,)),
    )
    robots = [
        Robot("legs", (Link("thigh", first), Link("shank", lumps[1])), joints)
        for first in (lumps[0], heavier)
    ]
    largest = 1e-4 / 1e-3  # at q2 = pi, where the shank's mass is in the axis of the hip
    assert mass_matrix_change(*robots) == pytest.approx(largest, rel=1e-3)
    assert mass_matrix_change(*robots, samples=10, steps=0) < 0.9 * largest
