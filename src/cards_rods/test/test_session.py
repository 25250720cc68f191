"""A session: commands, refusals, saved states, demo motion and log, without ROS."""

import json
import math

import numpy as np
import pytest

from cards_core.errors import CardsError, UnknownNameError
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_rods.messages import report_text, state_names, state_values, status_text
from cards_rods.run_folder import load_log, write_results
from cards_rods.session import LOG_NAME, RodSession

pytestmark = pytest.mark.serial

ROBOT = read_rod_robot("stewart_gough")
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def go(session, steps=400):
    """Step until the command is reached or held."""
    for _ in range(steps):
        session.step(0.005 * session.steps)
        if not session.moving:
            return session.result
    raise AssertionError(f"still moving after {steps} steps: {session.result}")


@pytest.fixture(scope="module")
def shared():
    return RodSession(ROBOT)


@pytest.fixture
def session(shared):
    shared.home()
    shared.refused = ""
    return shared


def test_it_starts_in_a_stable_state_that_is_its_own_target(session):
    assert session.result.good
    assert not session.moving
    assert session.result.min_eigenvalue > 0.0
    np.testing.assert_array_equal(session.target_pose, session.result.solution.pose)
    assert session.mode in ("dgm", "igm")


def test_joints_by_name_keep_the_others_and_limbs_are_names_too(session):
    before = session.target_q.copy()
    assert session.command_joints(["limb_3_length"], [before[2] + 0.004])
    assert session.command_joints(["limb_1"], [before[0] + 0.002])
    go(session)
    expected = before + np.array([0.002, 0.0, 0.004, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(session.result.solution.q, expected, atol=1e-12)
    assert session.mode == "dgm"
    assert session.refused == ""


def test_a_pose_is_reached_to_the_last_digit(session):
    place = session.result.solution.pose[:3, 3] + [0.01, -0.005, 0.002]
    half = 0.05
    turn = (math.cos(half), math.sin(half), 0.0, 0.0)
    assert session.command_pose(place, turn)
    assert session.moving
    go(session)
    np.testing.assert_allclose(session.result.solution.pose[:3, 3], place, atol=1e-9)
    assert session.errors() == pytest.approx((0.0, 0.0), abs=1e-8)
    # the first joint command after it starts from where the robot is, not from an old target
    q = session.result.solution.q.copy()
    assert session.command_joints(["limb_2"], [q[1]])
    go(session)
    np.testing.assert_allclose(session.result.solution.q, q, atol=1e-9)


@pytest.mark.parametrize(
    ("names", "values", "text"),
    [
        (["limb_9"], [0.4], "limb_9"),
        (["limb_1", "limb_1_length"], [0.4, 0.4], "twice"),
        (["limb_1"], [0.4, 0.5], "2 positions for 1 joints"),
        ([], [0.4] * 5, "5 positions for 6 joints"),
        (["limb_1"], [5.0], "above its limit"),
        (["limb_1"], [-0.1], "does not exist"),
        (["limb_1"], [math.nan], "nan"),
    ],
)
def test_joint_commands_that_make_no_sense_change_nothing(session, names, values, text):
    before, count = session.target_q.copy(), session.refusals
    assert not session.command_joints(names, values)
    assert text in session.refused
    assert session.refused.startswith("dgm: ")
    assert session.refusals == count + 1
    np.testing.assert_array_equal(session.target_q, before)
    assert not session.moving
    assert session.result.good


@pytest.mark.parametrize(
    ("place", "turn", "text"),
    [
        ((0.0, 0.0, math.inf), UPRIGHT, "NaN or infinity"),
        ((0.0, 0.0, 0.4), (0.0, 0.0, 0.0, 0.0), "norm 0"),
        ((0.0, 0.0, 0.4), (2.0, 0.0, 0.0, 0.0), "norm 2"),
    ],
)
def test_poses_that_are_none_are_refused(session, place, turn, text):
    assert not session.command_pose(place, turn)
    assert text in session.refused
    assert not session.moving


def test_a_pose_out_of_reach_ends_at_the_last_good_state_with_the_limb_and_the_length(session):
    place = session.result.solution.pose[:3, 3] + [0.0, 0.0, 0.8]
    assert session.command_pose(place, UPRIGHT)
    assert session.result.status is RodStatus.UNREACHABLE  # said before it moves
    result = go(session, 2000)
    assert result.held
    assert result.status is RodStatus.UNREACHABLE
    said = json.loads(status_text(session))
    assert said["status"] == "UNREACHABLE"
    assert said["limb"] in {limb.name for limb in ROBOT.limbs}
    assert said["missing"] > 0.1
    assert np.isfinite(state_values(session, None, 200.0, 0)[:-12]).all()
    assert np.all(result.solution.q <= ROBOT.q_upper + 1e-9)


def test_too_great_a_load_is_not_followed_into_collapse(session):
    assert session.set_wrench([0.0, 0.0, -400.0, 0.0, 0.0, 0.0])
    result = go(session, 2000)
    assert result.held
    assert result.min_eigenvalue > 0.0
    said = json.loads(status_text(session))
    assert said["held"]
    assert said["message"]
    report = json.loads(report_text(session))
    assert report["min_eigenvalue"] > 0.0
    assert not report["arrived"]
    # what acts is what could be borne, and balances the rods
    acting = result.solution.wrench
    assert -400.0 < acting[2] < 0.0
    weight = ROBOT.plate.mass * ROBOT.gravity
    np.testing.assert_allclose(
        acting[:3] + weight, result.solution.tip_wrenches[:, :3].sum(axis=0), atol=1e-3
    )


def test_a_load_that_turns_with_the_plate(session):
    pose = session.result.solution.pose
    half = 0.1
    session.command_pose(pose[:3, 3], (math.cos(half), 0.0, math.sin(half), 0.0))
    go(session)
    assert session.set_wrench([0.0, 0.0, 0.5, 0.0, 0.0, 0.0], "plate")
    go(session)
    turned = session.result.solution.pose[:3, 2]
    np.testing.assert_allclose(session.world_wrench[:3], 0.5 * turned, atol=1e-12)
    np.testing.assert_allclose(session.result.solution.wrench[:3], 0.5 * turned, atol=1e-9)
    assert not session.set_wrench([0.0, 0.0, 0.5, 0.0, 0.0, 0.0], "moon")
    assert "moon" in session.refused
    assert session.wrench_frame == "plate"


def test_states_come_back_as_they_were(session):
    session.set_wrench([0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    place = session.result.solution.pose[:3, 3] + [0.008, 0.0, 0.0]
    session.command_pose(place, UPRIGHT)
    go(session)
    saved = json.loads(json.dumps(session.save("there")))
    pose, q = session.result.solution.pose.copy(), session.result.solution.q.copy()
    session.home()
    assert not session.wrench.any()
    assert np.abs(session.result.solution.pose - pose).max() > 0.005
    for text in ("there", json.dumps(saved)):
        session.home()
        session.load(text)
        np.testing.assert_allclose(session.result.solution.pose, pose, atol=1e-7)
        np.testing.assert_allclose(session.result.solution.q, q, atol=1e-7)
        np.testing.assert_array_equal(session.wrench, [0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
        assert not session.moving
    here = session.result.solution
    with pytest.raises(UnknownNameError, match="there"):
        session.load("nowhere")
    for text in ("{", '{"format": 3}', json.dumps({**saved, "joints": {"a": 1.0}})):
        with pytest.raises(CardsError):
            session.load(text)
    assert session.result.solution is here
    assert "there" in json.loads(status_text(session))["states"]


def test_all_names_of_the_state_are_different_and_have_a_number(session):
    names = state_names(ROBOT)
    values = state_values(session, None, 200.0, 3)
    assert len(set(names)) == len(names) == len(values)
    of = dict(zip(names, values, strict=True))
    assert of["plate/z"] == session.result.solution.pose[2, 3]
    assert of["q/limb_2_length"] == session.result.solution.q[1]
    assert of["K/23"] == session.result.solution.stiffness[2, 3]
    assert of["base/limb_2/mx"] == session.result.solution.base_wrenches[1, 3]
    assert of["tip/limb_6/fz"] == session.result.solution.tip_wrenches[5, 2]
    assert of["skipped"] == 3.0
    assert math.isnan(of["curvature/limb_1"])
    shapes = session.tracker.solver.shapes(session.result.solution, 21)
    of = dict(zip(names, state_values(session, shapes, 200.0, 0), strict=True))
    assert of["curvature/limb_3"] == shapes.curvature[2].max()
    assert of["stress/limb_3"] == pytest.approx(1e-3 * 200e9 * of["curvature/limb_3"], rel=0.1)


def test_a_run_of_the_motion_leaves_a_folder_with_everything(tmp_path):
    session = RodSession(ROBOT, log_path=tmp_path / LOG_NAME, motion_duration=4.0)
    start = session.result.solution.pose.copy()
    session.play(True)
    for k in range(401):
        session.step(0.01 * k)
    session.close()
    np.testing.assert_allclose(session.result.solution.pose, start, atol=1e-8)
    log = load_log(tmp_path)
    assert log["time"].shape == (401,)
    assert log["pose"].shape == (401, 16)
    assert list(log["joint_names"]) == list(ROBOT.joint_names)
    assert np.isfinite(log["q"]).all()
    summary = write_results(tmp_path, ROBOT, {"transport": "test"})
    assert summary == json.loads((tmp_path / "summary.json").read_text())
    assert summary["steps"] == 401
    assert summary["held_steps"] == 0
    assert summary["position_error_max_m"] < 1e-6
    assert summary["rotation_error_max_rad"] < 1e-6
    assert summary["residual_max"] <= 1e-6
    assert 0.2 < summary["margin_min"] <= 1.0
    assert set(summary["status"]) <= {"OK", "MOVING"}
    for name in ("plate", "joints", "stability", "step_time", "shapes"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_stopping_the_motion_stays_there_and_a_command_ends_it(session):
    session.play(True)
    for k in range(40):
        session.step(1.0 + 0.05 * k)
    assert session.playing
    session.play(False)
    assert not session.playing
    pose = session.result.solution.pose.copy()
    session.step(10.0)
    np.testing.assert_array_equal(session.result.solution.pose, pose)
    session.play(True)
    session.step(11.0)
    session.command_joints([], ROBOT.home_q)
    assert not session.playing


def test_a_robot_without_an_equilibrium_to_start_from_is_an_error():
    class Lost:
        def start(self):
            from cards_core.rods.tracking.tracker import TrackingResult

            return TrackingResult(None, RodStatus.NOT_CONVERGED, "no equilibrium found", held=True)

    with pytest.raises(CardsError, match="stewart_gough has no state to start from: no equil"):
        RodSession(ROBOT, Lost())


def test_a_solve_that_runs_out_of_time_says_so_and_leads_to_the_same_place(session):
    place = session.result.solution.pose[:3, 3] + [0.03, -0.02, 0.01]
    assert session.command_pose(place, (1.0, 0.0, 0.0, 0.0))
    late = session.solve(0.0)
    assert late.status is RodStatus.MOVING
    assert "not there yet after 0 s: " in late.message
    assert f"{100.0 * late.remaining.fraction:.1f} % of the way is left" in late.message
    for _ in range(200):  # in pieces, however many a busy machine makes of it
        if not session.moving:
            break
        session.solve(0.0)
    in_pieces = session.solution.record[:-13].copy()
    assert session.result.message == ""
    session.home()
    assert session.command_pose(place, (1.0, 0.0, 0.0, 0.0))
    assert session.solve(1e6).message == ""
    np.testing.assert_array_equal(session.solution.record[:-13], in_pieces)
