"""MuJoCo models of robots: contacts at home, names of coordinates, the robots that ship."""

import dataclasses

import mujoco
import numpy as np
import pytest

from cards_core.formats import known_models, load
from cards_core.robot.elements import WORLD, Box, Collision, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_core.robot.world import empty_world_with
from cards_core.spatial import Pose
from cards_sim.model import build_model, joint_of_coordinate, joint_of_velocity, links_in_contact
from cards_sim.simulator import Simulator
from random_robots import random_robot

X, Y, Z = np.eye(3)


def stack(gap):
    """Three boxes on parallel rails; neighbours in the row are ``gap`` apart."""
    hull = (Collision("hull", Box(np.full(3, 0.2))),)
    body = Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))
    links = tuple(Link(f"box{i}", body, collisions=hull) for i in range(3))
    joints = tuple(
        Joint(
            f"rail{i}",
            "prismatic",
            WORLD,
            f"box{i}",
            Pose(np.eye(3), i * (0.2 + gap) * X),
            axes=(JointAxis(X),),
        )
        for i in range(3)
    )
    return Robot("stack", links, joints)


def test_pairs_that_overlap_at_home_are_excluded_and_others_are_not():
    overlapping = stack(-0.01)
    model = build_model(empty_world_with(overlapping), timestep=1e-3)
    assert model.nexclude == 2
    assert links_in_contact(model, overlapping) == set()
    assert build_model(empty_world_with(stack(0.01)), timestep=1e-3).nexclude == 0
    apart = dataclasses.replace(overlapping, home={"rail0": (-0.5,), "rail2": (0.5,)})
    assert build_model(empty_world_with(apart), timestep=1e-3).nexclude == 0


def test_contact_with_the_world_is_never_excluded():
    sunk = build_model(empty_world_with(stack(0.01)), timestep=1e-3, ground=-0.05)
    assert sunk.nexclude == 0
    data = mujoco.MjData(sunk)
    mujoco.mj_forward(sunk, data)
    assert data.ncon > 0


@pytest.mark.parametrize("seed", range(10))
def test_coordinates_belong_to_the_joints_and_bodies_that_they_move(seed):
    robot = random_robot(seed, kinds=("revolute", "prismatic", "universal", "planar"))
    tree = robot.tree
    model = build_model(empty_world_with(robot), timestep=1e-3)
    child = {joint.name: joint.child for joint in robot.joints}
    for index, name in enumerate(tree.position_names):
        expected = (name, child[name.split("_")[0]])
        assert joint_of_coordinate(model, index) == expected
        assert joint_of_velocity(model, index) == expected


def test_all_coordinates_of_a_free_joint_belong_to_it():
    joint = Joint("base", "free", WORLD, "box")
    link = Link("box", Inertia(1.0, np.zeros(3), np.eye(3)))
    model = build_model(empty_world_with(Robot("box", (link,), (joint,))), timestep=1e-3)
    assert {joint_of_coordinate(model, i) for i in range(7)} == {("base", "box")}
    assert {joint_of_velocity(model, i) for i in range(6)} == {("base", "box")}


@pytest.mark.parametrize("name", known_models(rods=False))
def test_shipped_models_start_at_home_and_run(name):
    robot = load(name)
    sim = Simulator(robot, muscle_backend="numeric")
    np.testing.assert_allclose(sim.state.q, sim.tree.home, atol=1e-12)
    minimum = np.array([muscle.tension_min for muscle in robot.muscles])
    for _ in range(500):
        sim.step(minimum)
    q = sim.state.q
    assert np.all(q > sim.tree.lower - 0.05)
    assert np.all(q < sim.tree.upper + 0.05)
