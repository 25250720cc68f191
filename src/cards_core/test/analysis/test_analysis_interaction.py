"""Joint wrenches against Pinocchio's recursion, with muscles as forces on the bodies."""

from __future__ import annotations

import numpy as np
import pytest
from pinocchio_models import pinocchio_model, to_pinocchio

from cards_core.analysis.interaction import JointInteraction
from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError
from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from random_robots import random_robot

SEEDS = range(8)


def random_motion(dynamics, seed):
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    robot = dynamics.robot
    return {
        "q": tree.random(rng),
        "qd": rng.normal(size=tree.nv),
        "qdd": rng.normal(size=tree.nv),
        "tensions": rng.uniform(1.0, 50.0, len(robot.muscles)),
        "external": rng.normal(size=(len(robot.links), 6)),
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("surfaces", [(), ("sphere", "ellipsoid")])
def test_agrees_with_pinocchio(seed, surfaces):
    """RNEA with the muscle engine's wrenches as external forces; last node of every joint."""
    pin = pytest.importorskip("pinocchio")
    robot = random_robot(seed, surfaces=surfaces, pulleys=bool(surfaces))
    dynamics = make_dynamics(robot, "numeric")
    tree, given = dynamics.tree, random_motion(dynamics, seed)
    found = JointInteraction(dynamics).solve(**given)

    poses = dynamics.link_poses(given["q"]).copy()
    engine = MuscleEngine(robot, "numeric")
    pulls = engine.update(poses, np.zeros((len(robot.links), 6)), given["tensions"]).wrenches
    loads = pulls + given["external"]
    model = pinocchio_model(pin, robot, tree)
    data = model.createData()
    q = to_pinocchio(tree, given["q"])
    pin.forwardKinematics(model, data, q)
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero() for _ in range(model.njoints)])
    for link, pose, load_ in zip(robot.links, poses, loads, strict=True):
        node = tree.link_node[link.name][0]
        if node >= 0:
            at_link = pin.SE3(np.eye(3), pose[:3, 3])
            world = at_link.act(pin.Force(load_[:3], load_[3:]))
            forces[node + 1] += data.oMi[node + 1].actInv(world)
    pin.rnea(model, data, q, given["qd"], given["qdd"], forces)
    for j, joint in enumerate(robot.joints):
        if joint.kind == "fixed":
            continue  # merged into its parent's node there
        node, offset = tree.link_node[joint.child]
        force = data.f[node + 1]
        scale = 1.0 + np.abs(force.vector).max()
        rotation = offset.rotation.T
        np.testing.assert_allclose(found.forces[j], rotation @ force.linear, atol=1e-9 * scale)
        np.testing.assert_allclose(found.moments[j], rotation @ force.angular, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_joints_carry_what_hangs_on_them(seed):
    """A weld between two links: the wrench on it by cutting the robot there."""
    robot = random_robot(seed, kinds=("fixed", "revolute"), n_muscles=0)
    dynamics = make_dynamics(robot, "numeric")
    found = JointInteraction(dynamics).solve(dynamics.tree.home)
    poses = dict(
        zip((k.name for k in robot.links), dynamics.link_poses(dynamics.tree.home), strict=True)
    )
    children = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    for j, joint in enumerate(robot.joints):
        beyond, open_ = [], [joint.child]
        while open_:
            beyond.append(open_.pop())
            open_ += children.get(beyond[-1], [])
        weight = -sum(robot.link(name).inertia.mass for name in beyond) * robot.gravity
        rotation = poses[joint.child][:3, :3]
        np.testing.assert_allclose(found.forces[j], rotation.T @ weight, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_along_its_motion_a_joint_carries_the_imbalance(seed):
    """Power of all joint wrenches over the relative motion: invariant 11, for any tensions."""
    robot = random_robot(seed)
    dynamics = make_dynamics(robot, "numeric")
    tree, given = dynamics.tree, random_motion(dynamics, seed)
    found = JointInteraction(dynamics).solve(**given)
    rng = np.random.default_rng([seed, 1])
    qd, h = rng.normal(size=tree.nv), 1e-6
    index = {link.name: i for i, link in enumerate(robot.links)}
    sides = [dynamics.link_poses(tree.integrate(given["q"], s * h * qd)).copy() for s in (1, -1)]
    here = dynamics.link_poses(given["q"]).copy()
    power = 0.0
    for j, joint in enumerate(robot.joints):
        child = index[joint.child]
        moves = []
        for poses in (*sides, here):
            parent = np.eye(4) if joint.parent == "world" else poses[index[joint.parent]]
            # the joint's frame on the side of the child, seen from the parent
            local = np.linalg.inv(parent) @ poses[child] @ joint.joint_to_child.inverse().matrix
            moves.append(local)
        velocity = (moves[0] - moves[1]) / (2 * h)
        spin = velocity[:3, :3] @ moves[2][:3, :3].T
        parent_rotation = np.eye(3)
        if joint.parent != "world":
            parent_rotation = here[index[joint.parent]][:3, :3]
        rotation = here[child][:3, :3]
        linear = parent_rotation @ velocity[:3, 3]
        angular = parent_rotation @ np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        power += rotation @ found.forces[j] @ linear + rotation @ found.moments[j] @ angular
    scale = 1.0 + np.abs(found.forces).max() + np.abs(found.moments).max()
    assert power == pytest.approx(found.imbalance @ qd, abs=1e-6 * scale)


def test_tensions_of_a_motion_leave_nothing_for_the_joints_to_do():
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    q, qd, qdd = np.array([0.1, 0.1, 0.1, -0.3]), 0.1 * np.ones(4), 0.2 * np.ones(4)
    tensions = InverseDynamics(dynamics).step(q, qd, qdd).tensions
    found = JointInteraction(dynamics).solve(q, qd, qdd, tensions)
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(found.imbalance, 0.0, atol=1e-8)
    # the ball that the first three joints are has no moment; the elbow turns about x
    np.testing.assert_allclose(found.moments[2], 0.0, atol=1e-7)
    elbow = [joint.name for joint in dynamics.robot.joints].index("elbow")
    assert found.moments[elbow][0] == pytest.approx(0.0, abs=1e-7)
    assert np.abs(found.forces).max() > 10.0


def test_a_free_platform_has_no_joint_to_load():
    dynamics = make_dynamics(load("ipanema_1"), "numeric")
    q = np.array([0.1, 0.1, 1.0, 0.0, 0.0, 0.0])
    solved = InverseDynamics(dynamics).step(q)
    found = JointInteraction(dynamics).solve(q, tensions=solved.tensions)
    assert solved.status is PointStatus.FEASIBLE
    # the six joints have small bodies between them, whose weight is all that is left
    names = [joint.name for joint in dynamics.robot.joints]
    small = [link.inertia.mass for link in dynamics.robot.links if link.name.endswith("_link")]
    assert len(small) == 5
    last = found.forces[names.index("platform_yaw")]
    assert np.abs(last).max() <= sum(small) * 9.81
    np.testing.assert_allclose(found.moments[names.index("platform_yaw")], 0.0, atol=1e-9)


def test_bad_numbers_and_shapes():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    interaction = JointInteraction(dynamics)
    found = interaction.solve(np.array([np.nan, 0.0]))
    assert found.status is PointStatus.NOT_FINITE
    assert np.isnan(found.forces).all()
    assert interaction.solve(np.array([4.0, 0.0])).status is PointStatus.OUTSIDE_LIMITS
    with pytest.raises(ShapeError, match="tensions"):
        interaction.solve(np.zeros(2), tensions=np.zeros(3))
