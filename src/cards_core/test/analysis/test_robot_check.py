"""Whether robots are fit to be controlled: known ones, broken ones, and closed forms."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hybrid_robots import platform_arm

from cards_core.analysis.robot_check import check_robot
from cards_core.analysis.workspace.points import Axis, Grid, Samples
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.robot.actuators import Ligament
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

X, Y, Z = np.eye(3)


def rope(name, anchor, place, link="body", limits=(1.0, 200.0)):
    path = (ViaPoint(WORLD, np.array(anchor, dtype=float)),
            ViaPoint(link, np.array(place, dtype=float)))  # fmt: skip
    return Muscle(name, path, *limits)


def slider(muscles, lower=-0.5, upper=0.5, gravity=0.0, **more):
    """A body of 1 kg on a rail along x."""
    body = Link("body", Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)))
    joint = Joint("x", "prismatic", WORLD, "body", axes=(JointAxis(X, lower, upper),), **more)
    return Robot("slider", (body,), (joint,), muscles, gravity=np.array([gravity, 0.0, 0.0]))


def pendulum(height):
    """A rod about y from the origin, two cables from (+-1, 0, height) to its end at 0.5 m."""
    rod = Link("body", Inertia(1.0, 0.25 * Z, 0.02 * np.eye(3)))
    joint = Joint("turn", "revolute", WORLD, "body", axes=(JointAxis(Y, -1.5, 1.5),))
    muscles = (
        rope("left", (-1, 0, height), (0, 0, 0.5)),
        rope("right", (1, 0, height), (0, 0, 0.5)),
    )
    return Robot("pendulum", (rod,), (joint,), muscles)


def checked(robot, samples=200, **options):
    return check_robot(make_dynamics(robot, "numeric"), Samples(samples), **options)


def parts(result, severity="unfit"):
    return {(f.part, f.subject) for f in result.findings if f.severity == severity}


def test_robots_that_are_fit():
    for name, rank in (("roboy_arm", 4), ("wrap_elbow", 1)):
        dynamics = make_dynamics(load(name))
        result = check_robot(dynamics, Samples(300, 1))
        assert result.fit, result.findings
        assert (result.rank == rank).all()
        assert not result.does_nothing.any()
    assert result.closure_share == result.static_share == 1.0
    assert not parts(result, "warning")


def test_the_working_range_decides():
    dynamics = make_dynamics(load("planar_2r"))
    wide = check_robot(dynamics)
    assert len(wide.q) == 1000
    assert parts(wide) == {("static", "")}
    assert 0.4 < wide.static_share < 0.5
    # where it is worst, it is not held
    (finding,) = (f for f in wide.findings if f.part == "static")
    pose = np.array([list(finding.pose.values())])
    at = Grid((), dict(finding.pose))
    assert check_robot(dynamics, at).static_share == 0.0
    assert np.array_equal(at.bind(dynamics.tree).q(np.zeros((1, 0))), pose)
    narrow = {"joint_1": (-0.3, 0.3), "joint_2": (-0.3, 0.3)}
    result = check_robot(dynamics, Samples(300, 0, narrow))
    assert np.abs(result.q).max() <= 0.3
    assert result.closure_share != wide.closure_share


def test_the_same_seed_gives_the_same():
    dynamics = make_dynamics(load("planar_2r"))
    one, same, other = (check_robot(dynamics, Samples(50, seed)) for seed in (3, 3, 4))
    assert one.to_json() == same.to_json() != other.to_json()
    assert np.array_equal(one.q, same.q)


def test_shares_that_are_asked_for():
    dynamics = make_dynamics(load("roboy_arm"))
    assert not check_robot(dynamics, Samples(200), least_closure=1.0).fit
    assert check_robot(dynamics, Samples(200), least_closure=0.0, least_static=0.0).fit
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(CardsError, match="least_closure"):
            check_robot(dynamics, least_closure=bad)


def test_closure_in_closed_form():
    """Cables from (+-1, h) to the end of a rod: closed iff the end is between their lines' sides.

    The moment of a pull from anchor a on the end p is ``a_z p_x - a_x p_z`` in sign; of the two
    cables these differ in sign iff ``|h tan q| < 1``.
    """
    height = 0.8
    dynamics = make_dynamics(pendulum(height), "numeric")
    grid = Grid((Axis("turn", -1.5, 1.5, 301),))
    result = check_robot(dynamics, grid, least_closure=0.0, least_static=0.0)
    closed = np.abs(height * np.tan(result.q[:, 0])) < 1.0
    assert np.array_equal(result.closure == 0, closed)
    assert result.closure_share == closed.mean()
    assert 0.3 < closed.mean() < 0.9
    # by hand: r = -dl/dq of l = |p - a|
    q = result.q[:, 0]
    p = 0.5 * np.stack([np.sin(q), np.cos(q)])
    for i, side in enumerate((-1.0, 1.0)):
        away = p - np.array([[side], [height]])
        rate = 0.5 * np.stack([np.cos(q), -np.sin(q)])
        arms = -(away * rate).sum(axis=0) / np.linalg.norm(away, axis=0)
        assert result.arm_least[i, 0] == pytest.approx(arms.min(), abs=1e-12)
        assert result.arm_most[i, 0] == pytest.approx(arms.max(), abs=1e-12)
    assert result.sign_changes.all()


def test_static_in_closed_form():
    """A weight of 10 N on two ropes of 1..5 N along its rail: 4 N at most, never held."""
    ropes = (rope("a", (-2, 0, 0), (0, 0, 0), limits=(1, 5)),
             rope("b", (2, 0, 0), (0, 0, 0), limits=(1, 5)))  # fmt: skip
    assert checked(slider(ropes, gravity=3.9)).fit
    heavy = checked(slider(ropes, gravity=4.1))
    assert heavy.closure_share == 1.0
    assert heavy.static_share == 0.0
    assert parts(heavy) == {("static", "")}


def test_one_muscle_is_too_few():
    result = checked(slider((rope("a", (-2, 0, 0), (0, 0, 0)),)))
    assert result.closure_share == 0.0
    assert parts(result) >= {("closure", "")}
    assert "at least 2 muscles are needed" in result.findings[0].text
    none = checked(slider(()))
    assert not none.fit
    assert none.rank.max() == 0


def test_a_muscle_that_does_nothing():
    robot = load("planar_2r")
    link = robot.links[-1].name
    ends = (ViaPoint(link, np.zeros(3)), ViaPoint(link, 0.1 * X))
    idle = Muscle("idle", ends, 0.0, 10.0)
    both = replace(robot, muscles=(*robot.muscles, idle))
    result = check_robot(make_dynamics(both), Samples(50), least_static=0.0)
    assert parts(result) == {("moment_arms", "idle")}
    assert list(result.does_nothing) == [False] * 4 + [True]
    assert result.to_json()["do_nothing"] == ["idle"]
    passive = Muscle("idle", ends, actuator=Ligament(stiffness=100.0, slack_length=0.1))
    both = replace(robot, muscles=(*robot.muscles, passive))
    result = check_robot(make_dynamics(both), Samples(50), least_static=0.0)
    assert result.fit
    assert ("moment_arms", "idle") in parts(result, "warning")


def test_passive_muscles_hold_nothing():
    """Of an antagonistic pair one is made a ligament: it cannot be commanded, so no closure."""
    one, other = rope("a", (-2, 0, 0), (0, 0, 0)), rope("b", (2, 0, 0), (0, 0, 0))
    assert checked(slider((one, other))).fit
    ligament = replace(other, actuator=Ligament(stiffness=100.0, slack_length=3.0))
    result = checked(slider((one, ligament)))
    assert list(result.commanded) == [True, False]
    assert result.closure_share == 0.0
    assert not result.fit
    # commanded muscle and ligament balance each other only where the ligament is slack enough
    assert result.to_json()["passive_muscles"] == ["b"]


def test_a_coordinate_that_no_muscle_moves():
    robot = load("planar_2r")
    only_first = tuple(m for m in robot.muscles if m.name in ("cable_1", "cable_3"))
    assert len(only_first) == 2
    result = check_robot(make_dynamics(replace(robot, muscles=only_first)), Samples(50))
    assert ("rank", "") in parts(result)
    (finding,) = (f for f in result.findings if f.part == "rank")
    assert "rank of L is 1 of 2 at 50 of 50 poses: no tension moves joint_2" in finding.text
    assert set(finding.pose) == {"joint_1", "joint_2"}


def test_a_hybrid_robot_is_judged_by_what_is_left_to_muscles():
    robot = platform_arm()
    dynamics = make_dynamics(robot, "numeric")
    result = check_robot(dynamics, Samples(60), least_closure=0.0, least_static=0.0)
    assert result.motors == ("shoulder", "elbow")
    assert list(result.by_muscles) == [True, True, True, False, False]
    assert (result.rank == 3).all()
    assert result.to_json()["rank"]["full"] == 3
    assert not [f for f in result.findings if f.part in ("rank", "motors")]
    # motors too weak to hold the arm
    weak = make_dynamics(platform_arm((1e-3, 1e-3)), "numeric")
    limp = check_robot(weak, Samples(60), least_closure=0.0, least_static=0.0)
    assert limp.static_share < result.static_share
    assert limp.closure_share == result.closure_share


def test_a_robot_of_motors_alone():
    robot = slider((), motor=True)
    result = checked(robot)
    assert result.closure is None
    assert result.closure_share is None
    assert result.static is None
    assert result.fit


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ((50.0, 10.0), True),
        ((-1.0, 10.0), True),
        ((math.nan, 10.0), True),
        ((0.0, 0.0), True),
        ((0.0, math.inf), False),
    ],
)
def test_limits_of_tensions(limits, wrong):
    ropes = (rope("a", (-2, 0, 0), (0, 0, 0), limits=limits), rope("b", (2, 0, 0), (0, 0, 0)))
    result = checked(slider(ropes))
    assert (("muscle_limits", "a") in parts(result)) == wrong
    assert (result.static is None) == wrong
    assert wrong or ("muscle_limits", "a") in parts(result, "warning")
    assert result.closure_share == 1.0


def test_a_structure_that_nothing_holds_is_refused():
    """Momentum of a free tensegrity cannot be changed by its cables: another analysis is meant."""
    with pytest.raises(DescriptionError, match="nothing connects rod0, rod1, rod2 to the world"):
        check_robot(make_dynamics(load("prism_3")))


def test_limits_of_joints():
    ropes = (rope("a", (-2, 0, 0), (0, 0, 0)), rope("b", (2, 0, 0), (0, 0, 0)))
    missing = checked(slider(ropes, -math.inf, math.inf))
    assert missing.fit
    assert ("joint_limits", "x") in parts(missing, "warning")
    assert np.abs(missing.q).max() <= 1.0
    assert parts(checked(slider(ropes, 0.1, 0.5))) == {("joint_limits", "x")}
    assert parts(checked(slider(ropes, 0.5, -0.5))) == {("joint_limits", "x")}


def test_inertias():
    ropes = (rope("a", (-2, 0, 0), (0, 0, 0)), rope("b", (2, 0, 0), (0, 0, 0)))

    def with_inertia(inertia):
        robot = slider(ropes)
        return checked(replace(robot, links=(Link("body", inertia),)), samples=20)

    assert not with_inertia(Inertia(1.0, np.zeros(3), np.eye(3))).findings
    flat = with_inertia(Inertia(1.0, np.zeros(3), np.diag([1.0, 0.1, 0.1])))
    assert parts(flat) == {("inertia", "body")}
    assert "exceeds the sum" in flat.findings[0].text
    huge = with_inertia(Inertia(1.0, np.zeros(3), 100.0 * np.eye(3)))
    assert huge.fit
    assert ("inertia", "body") in parts(huge, "warning")
    far = with_inertia(Inertia(1.0, 50.0 * X, np.eye(3)))
    assert ("inertia", "body") in parts(far, "warning")
    massless = with_inertia(Inertia())
    assert ("inertia", "") in parts(massless)


def test_a_muscle_without_length():
    ropes = (rope("a", (0, 0, 0), (0, 0, 0)), rope("b", (2, 0, 0), (0, 0, 0)))
    grid = Grid((Axis("x", -0.5, 0.5, 3),))
    result = check_robot(make_dynamics(slider(ropes), "numeric"), grid)
    assert ("paths", "a") in parts(result)


def test_progress_and_json():
    calls = []
    dynamics = make_dynamics(load("planar_2r"))
    result = check_robot(dynamics, Samples(450), progress=lambda *n: calls.append(n))
    assert calls == [(200, 450), (400, 450), (450, 450)]
    text = json.dumps(result.to_json(), allow_nan=False)
    back = json.loads(text)
    assert back["poses"] == 450
    assert back["rank"]["full"] == 2
    arms = back["moment_arms"]["cable_1"]["joint_1"]
    assert arms["least"] == result.arm_least[0, 0]
    # the smallest singular value is that of L by definition
    worst = int(np.argmin(result.singular_value))
    jacobian = dynamics.update(result.q[worst], np.zeros(2)).muscle_jacobian
    assert np.linalg.svd(jacobian)[1][-1] == pytest.approx(back["rank"]["least_singular_value"])
