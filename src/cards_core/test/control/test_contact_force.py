"""Forces that a robot is to exert: joint forces by virtual work, ramps, what is refused."""

import numpy as np
import pytest

from cards_core.control import make_controller
from cards_core.control.contact_force import ContactForces
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.formats import load
from random_robots import random_robot

DT = 0.008


def pose_of(robot, dynamics, link, q):
    row = [one.name for one in robot.links].index(link)
    return np.array(dynamics.link_poses(q)[row])


@pytest.mark.parametrize("kinds", [("revolute",), ("ball", "revolute"), ("universal",)])
def test_joint_forces_do_the_work_of_the_forces(kinds):
    """Virtual work, tau' dq = F' dp + M' dphi, for all small dq, by differences of poses."""
    robot = random_robot(4, n_links=3, kinds=kinds)
    dynamics = make_dynamics(robot, "numeric")
    forces, rng = ContactForces(dynamics, 0.0), np.random.default_rng(1)
    tree, link = robot.tree, robot.links[-1].name
    force, moment, point = rng.normal(size=(3, 3))
    forces.set(link, force, point, moment)
    forces.set(robot.links[0].name, 2.0 * force)
    step = 1e-6
    for _ in range(5):
        q = tree.random(rng, span=0.5)
        work = np.zeros(tree.nv)
        for name, f, p, m in (
            (link, force, point, moment),
            (robot.links[0].name, 2.0 * force, np.zeros(3), np.zeros(3)),
        ):
            for i, direction in enumerate(np.eye(tree.nv)):
                back, on = (
                    pose_of(robot, dynamics, name, tree.integrate(q, sign * step * direction))
                    for sign in (-1.0, 1.0)
                )
                moved = (on[:3, :3] - back[:3, :3]) @ p + on[:3, 3] - back[:3, 3]
                turned = on[:3, :3] @ back[:3, :3].T
                angle = [turned[2, 1], turned[0, 2], turned[1, 0]]
                angle -= np.array([turned[1, 2], turned[2, 0], turned[0, 1]])
                work[i] += (f @ moved + m @ (0.5 * angle)) / (2.0 * step)
        assert forces.torque(q) == pytest.approx(work, abs=1e-7)


def test_a_force_is_reached_on_a_ramp_and_left_on_one():
    robot = load("musashi_like")
    forces = ContactForces(make_dynamics(robot, "numeric"), 0.08)
    q = robot.tree.home
    assert forces.torque(q) is None
    forces.set("left_hand", [0.0, 0.0, 10.0])
    assert not forces.torque(q).any()
    sizes = []
    for _ in range(12):
        forces.advance(DT)
        # one that repeats itself does not put the end off
        forces.set("left_hand", [0.0, 0.0, 10.0])
        sizes.append(np.abs(forces.torque(q)).max())
    assert np.diff(sizes[:10]) == pytest.approx(np.full(9, sizes[9] / 10.0))
    assert max(sizes[9:]) == pytest.approx(min(sizes[9:]))
    forces.set("left_hand", [0.0, 0.0, 0.0])
    forces.advance(0.04)
    assert np.abs(forces.torque(q)).max() == pytest.approx(0.5 * sizes[-1])
    forces.advance(0.04)
    assert forces.torque(q) is None


@pytest.mark.parametrize(
    ("link", "force", "point", "error", "message"),
    [
        ("left_hand", [0.0, np.nan, 0.0], None, ShapeError, "force of 'left_hand'"),
        ("left_hand", [0.0, 1.0], None, ShapeError, r"finite numbers of shape \(3,\)"),
        ("left_hand", "up", None, ShapeError, r"numbers of shape \(3,\)"),
        ("left_hand", [0.0, 0.0, 1.0], [np.inf, 0, 0], ShapeError, "point of 'left_hand'"),
        ("left_hnad", [0.0, 0.0, 1.0], None, UnknownNameError, "did you mean 'left_hand'"),
        ("", [0.0, 0.0, 1.0], None, UnknownNameError, "left_hand"),
    ],
)
def test_what_is_no_force_is_refused_and_the_last_one_kept(link, force, point, error, message):
    robot = load("musashi_like")
    controller = make_controller("mrc", robot, force_ramp=0.0)
    controller.set_contact_force("left_hand", [1.0, 2.0, 30.0])
    q = robot.tree.home
    before = controller._torque(q, controller._loads(q))
    assert np.abs(before - make_controller("mrc", robot)._torque(q, ())).max() > 1.0
    with pytest.raises(error, match=message):
        controller.set_contact_force(link, force, point)
    assert np.array_equal(controller._torque(q, controller._loads(q)), before)


def test_controllers_that_take_no_forces_say_so():
    with pytest.raises(
        CardsError, match=r"'impedance' takes no contact forces \(expected: .*'mrc'"
    ):
        make_controller("impedance", load("tetraspine_hardware")).set_contact_force("x", [0, 0, 1])
