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


def test_the_largest_force_and_moment_are_taken_and_no_larger_ones():
    """By their size, whatever the direction; the last one stays."""
    robot = load("musashi_like")
    dynamics = make_dynamics(robot, "numeric")
    forces = ContactForces(dynamics, 0.0, force_max=5.0, moment_max=13.0)
    q = robot.tree.home
    forces.set("left_hand", [3.0, 0.0, 4.0], moment=[0.0, -12.0, 5.0])
    before = forces.torque(q)
    for force, moment, words in (
        ([3.0, 0.01, 4.0], None, r"force of 'left_hand' is 5.00001 N .*at most force_max, 5 N"),
        ([0.0, 0.0, 1.0], [0.1, -12.0, 5.0], r"is 13.0004 Nm .*at most moment_max, 13 Nm"),
    ):
        with pytest.raises(CardsError, match=words):
            forces.set("left_hand", force, moment=moment)
        assert np.array_equal(forces.torque(q), before)
    with pytest.raises(ShapeError, match="moment of 'left_hand'"):
        forces.set("left_hand", [0.0, 0.0, 1.0], moment=[1.0, 2.0])
    assert np.array_equal(forces.torque(q), before)
    # without limits all are taken
    ContactForces(dynamics, 0.0).set("left_hand", [1e9, 0.0, 0.0], moment=[1e9, 0.0, 0.0])


def test_without_a_ramp_forces_come_and_go_at_once():
    robot = load("musashi_like")
    forces = ContactForces(make_dynamics(robot, "numeric"), 0.0)
    q = robot.tree.home
    forces.set("left_hand", [0.0, 0.0, 0.0])
    assert forces.torque(q) is None
    forces.set("left_hand", [0.0, 0.0, 10.0])
    at_once = forces.torque(q)
    assert at_once.any()
    forces.advance(DT)
    assert np.array_equal(forces.torque(q), at_once)
    forces.set("left_hand", [0.0, 0.0, 20.0])
    assert forces.torque(q) == pytest.approx(2.0 * at_once)
    forces.set("left_hand", [0.0, 0.0, 0.0])
    assert forces.torque(q) is None


def test_a_force_that_moves_to_another_point_begins_a_ramp_of_its_own():
    robot = load("musashi_like")
    dynamics = make_dynamics(robot, "numeric")
    q = robot.tree.home

    def settled(force, point):
        one = ContactForces(dynamics, 0.0)
        one.set("left_hand", force, point)
        return one.torque(q)

    point, other = [0.1, 0.0, 0.0], [0.0, 0.2, 0.0]
    forces = ContactForces(dynamics, 0.08)
    forces.set("left_hand", [0.0, 0.0, 10.0], point)
    forces.advance(0.02)
    assert forces.torque(q) == pytest.approx(0.25 * settled([0.0, 0.0, 10.0], point))
    forces.advance(0.06)
    assert forces.torque(q) == pytest.approx(settled([0.0, 0.0, 10.0], point))
    # halfway to a new one, from what there was
    forces.set("left_hand", [0.0, 0.0, 30.0], other)
    assert forces.torque(q) == pytest.approx(settled([0.0, 0.0, 10.0], other))
    forces.advance(0.04)
    assert forces.torque(q) == pytest.approx(settled([0.0, 0.0, 20.0], other))
    forces.advance(1.0)
    assert forces.torque(q) == pytest.approx(settled([0.0, 0.0, 30.0], other))


def test_each_link_has_its_own_force():
    robot = load("musashi_like")
    dynamics = make_dynamics(robot, "numeric")
    q = robot.tree.home
    both, one = ContactForces(dynamics, 0.0), ContactForces(dynamics, 0.0)
    both.set("left_hand", [0.0, 0.0, 10.0])
    both.set("right_hand", [0.0, 5.0, 0.0])
    one.set("right_hand", [0.0, 5.0, 0.0])
    right = one.torque(q)
    one.set("right_hand", [0.0, 0.0, 0.0])
    one.set("left_hand", [0.0, 0.0, 10.0])
    assert both.torque(q) == pytest.approx(one.torque(q) + right)
    both.set("left_hand", [0.0, 0.0, 0.0])
    assert both.torque(q) == pytest.approx(right)
