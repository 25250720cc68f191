"""A simulation: commands, refusals, saved states, demo motion and log, without ROS."""

import json
import math

import numpy as np
import pytest

from cards_core.errors import CardsError, UnknownNameError
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_rods.messages import report_text, state_names, state_values, status_text
from cards_rods.rod_simulation import LOG_NAME, RodSimulation
from cards_rods.run_folder import load_log, write_results

ROBOT = read_rod_robot("stewart_gough")
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def go(simulation, steps=400):
    """Step until the command is reached or held."""
    for _ in range(steps):
        simulation.step(0.005 * simulation.steps)
        if not simulation.moving:
            return simulation.result
    raise AssertionError(f"still moving after {steps} steps: {simulation.result}")


@pytest.fixture(scope="module")
def shared():
    return RodSimulation(ROBOT)


@pytest.fixture
def simulation(shared):
    shared.home()
    shared.refused = ""
    return shared


def test_it_starts_in_a_stable_state_that_is_its_own_target(simulation):
    assert simulation.result.good
    assert not simulation.moving
    assert simulation.result.min_eigenvalue > 0.0
    np.testing.assert_array_equal(simulation.target_pose, simulation.result.solution.pose)
    assert simulation.mode in ("dgm", "igm")


def test_joints_by_name_keep_the_others_and_limbs_are_names_too(simulation):
    before = simulation.target_q.copy()
    assert simulation.command_joints(["limb_3_length"], [before[2] + 0.004])
    assert simulation.command_joints(["limb_1"], [before[0] + 0.002])
    go(simulation)
    expected = before + np.array([0.002, 0.0, 0.004, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(simulation.result.solution.q, expected, atol=1e-12)
    assert simulation.mode == "dgm"
    assert simulation.refused == ""


def test_a_pose_is_reached_to_the_last_digit(simulation):
    place = simulation.result.solution.pose[:3, 3] + [0.01, -0.005, 0.002]
    half = 0.05
    turn = (math.cos(half), math.sin(half), 0.0, 0.0)
    assert simulation.command_pose(place, turn)
    assert simulation.moving
    go(simulation)
    np.testing.assert_allclose(simulation.result.solution.pose[:3, 3], place, atol=1e-9)
    assert simulation.errors() == pytest.approx((0.0, 0.0), abs=1e-8)
    # the first joint command after it starts from where the robot is, not from an old target
    q = simulation.result.solution.q.copy()
    assert simulation.command_joints(["limb_2"], [q[1]])
    go(simulation)
    np.testing.assert_allclose(simulation.result.solution.q, q, atol=1e-9)


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
def test_joint_commands_that_make_no_sense_change_nothing(simulation, names, values, text):
    before, count = simulation.target_q.copy(), simulation.refusals
    assert not simulation.command_joints(names, values)
    assert text in simulation.refused
    assert simulation.refused.startswith("dgm: ")
    assert simulation.refusals == count + 1
    np.testing.assert_array_equal(simulation.target_q, before)
    assert not simulation.moving
    assert simulation.result.good


@pytest.mark.parametrize(
    ("place", "turn", "text"),
    [
        ((0.0, 0.0, math.inf), UPRIGHT, "NaN or infinity"),
        ((0.0, 0.0, 0.4), (0.0, 0.0, 0.0, 0.0), "norm 0"),
        ((0.0, 0.0, 0.4), (2.0, 0.0, 0.0, 0.0), "norm 2"),
    ],
)
def test_poses_that_are_none_are_refused(simulation, place, turn, text):
    assert not simulation.command_pose(place, turn)
    assert text in simulation.refused
    assert not simulation.moving


def test_a_pose_out_of_reach_ends_at_the_last_good_state_with_the_limb_and_the_length(simulation):
    place = simulation.result.solution.pose[:3, 3] + [0.0, 0.0, 0.8]
    assert simulation.command_pose(place, UPRIGHT)
    assert simulation.result.status is RodStatus.UNREACHABLE  # said before it moves
    result = go(simulation, 2000)
    assert result.held
    assert result.status is RodStatus.UNREACHABLE
    said = json.loads(status_text(simulation))
    assert said["status"] == "UNREACHABLE"
    assert said["limb"] in {limb.name for limb in ROBOT.limbs}
    assert said["missing"] > 0.1
    assert np.isfinite(state_values(simulation, None, 200.0, 0)[:-12]).all()
    assert np.all(result.solution.q <= ROBOT.q_upper + 1e-9)


def test_too_great_a_load_is_not_followed_into_collapse(simulation):
    assert simulation.set_wrench([0.0, 0.0, -400.0, 0.0, 0.0, 0.0])
    result = go(simulation, 2000)
    assert result.held
    assert result.min_eigenvalue > 0.0
    said = json.loads(status_text(simulation))
    assert said["held"]
    assert said["message"]
    report = json.loads(report_text(simulation))
    assert report["min_eigenvalue"] > 0.0
    assert not report["arrived"]
    # what acts is what could be borne, and balances the rods
    acting = result.solution.wrench
    assert -400.0 < acting[2] < 0.0
    weight = ROBOT.plate.mass * ROBOT.gravity
    np.testing.assert_allclose(
        acting[:3] + weight, result.solution.tip_wrenches[:, :3].sum(axis=0), atol=1e-3
    )


def test_a_load_that_turns_with_the_plate(simulation):
    pose = simulation.result.solution.pose
    half = 0.1
    simulation.command_pose(pose[:3, 3], (math.cos(half), 0.0, math.sin(half), 0.0))
    go(simulation)
    assert simulation.set_wrench([0.0, 0.0, 0.5, 0.0, 0.0, 0.0], "plate")
    go(simulation)
    turned = simulation.result.solution.pose[:3, 2]
    np.testing.assert_allclose(simulation.world_wrench[:3], 0.5 * turned, atol=1e-12)
    np.testing.assert_allclose(simulation.result.solution.wrench[:3], 0.5 * turned, atol=1e-9)
    assert not simulation.set_wrench([0.0, 0.0, 0.5, 0.0, 0.0, 0.0], "moon")
    assert "moon" in simulation.refused
    assert simulation.wrench_frame == "plate"


def test_states_come_back_as_they_were(simulation):
    simulation.set_wrench([0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    place = simulation.result.solution.pose[:3, 3] + [0.008, 0.0, 0.0]
    simulation.command_pose(place, UPRIGHT)
    go(simulation)
    saved = json.loads(json.dumps(simulation.save("there")))
    pose, q = simulation.result.solution.pose.copy(), simulation.result.solution.q.copy()
    simulation.home()
    assert not simulation.wrench.any()
    assert np.abs(simulation.result.solution.pose - pose).max() > 0.005
    for text in ("there", json.dumps(saved)):
        simulation.home()
        simulation.load(text)
        np.testing.assert_allclose(simulation.result.solution.pose, pose, atol=1e-7)
        np.testing.assert_allclose(simulation.result.solution.q, q, atol=1e-7)
        np.testing.assert_array_equal(simulation.wrench, [0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
        assert not simulation.moving
    here = simulation.result.solution
    with pytest.raises(UnknownNameError, match="there"):
        simulation.load("nowhere")
    for text in ("{", '{"format": 3}', json.dumps({**saved, "joints": {"a": 1.0}})):
        with pytest.raises(CardsError):
            simulation.load(text)
    assert simulation.result.solution is here
    assert "there" in json.loads(status_text(simulation))["states"]


def test_all_names_of_the_state_are_different_and_have_a_number(simulation):
    names = state_names(ROBOT)
    values = state_values(simulation, None, 200.0, 3)
    assert len(set(names)) == len(names) == len(values)
    of = dict(zip(names, values, strict=True))
    assert of["plate/z"] == simulation.result.solution.pose[2, 3]
    assert of["q/limb_2_length"] == simulation.result.solution.q[1]
    assert of["K/23"] == simulation.result.solution.stiffness[2, 3]
    assert of["base/limb_2/mx"] == simulation.result.solution.base_wrenches[1, 3]
    assert of["tip/limb_6/fz"] == simulation.result.solution.tip_wrenches[5, 2]
    assert of["skipped"] == 3.0
    assert math.isnan(of["curvature/limb_1"])
    shapes = simulation.tracker.solver.shapes(simulation.result.solution, 21)
    of = dict(zip(names, state_values(simulation, shapes, 200.0, 0), strict=True))
    assert of["curvature/limb_3"] == shapes.curvature[2].max()
    assert of["stress/limb_3"] == pytest.approx(1e-3 * 200e9 * of["curvature/limb_3"], rel=0.1)


def test_a_run_of_the_motion_leaves_a_folder_with_everything(tmp_path):
    simulation = RodSimulation(ROBOT, log_path=tmp_path / LOG_NAME, motion_duration=4.0)
    start = simulation.result.solution.pose.copy()
    simulation.play(True)
    for k in range(401):
        simulation.step(0.01 * k)
    simulation.close()
    np.testing.assert_allclose(simulation.result.solution.pose, start, atol=1e-8)
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


def test_stopping_the_motion_stays_there_and_a_command_ends_it(simulation):
    simulation.play(True)
    for k in range(40):
        simulation.step(1.0 + 0.05 * k)
    assert simulation.playing
    simulation.play(False)
    assert not simulation.playing
    pose = simulation.result.solution.pose.copy()
    simulation.step(10.0)
    np.testing.assert_array_equal(simulation.result.solution.pose, pose)
    simulation.play(True)
    simulation.step(11.0)
    simulation.command_joints([], ROBOT.home_q)
    assert not simulation.playing


def test_a_robot_without_an_equilibrium_to_start_from_is_an_error():
    class Lost:
        def start(self):
            from cards_core.rods.tracking.tracker import TrackingResult

            return TrackingResult(None, RodStatus.NOT_CONVERGED, "no equilibrium found", held=True)

    with pytest.raises(CardsError, match="stewart_gough has no state to start from: no equil"):
        RodSimulation(ROBOT, Lost())


def test_a_solve_that_runs_out_of_time_says_so_and_leads_to_the_same_place(simulation):
    place = simulation.result.solution.pose[:3, 3] + [0.03, -0.02, 0.01]
    assert simulation.command_pose(place, (1.0, 0.0, 0.0, 0.0))
    late = simulation.solve(0.0)
    assert late.status is RodStatus.MOVING
    assert "not there yet after 0 s: " in late.message
    assert f"{100.0 * late.remaining.fraction:.1f} % of the way is left" in late.message
    for _ in range(200):  # in pieces, however many a busy machine makes of it
        if not simulation.moving:
            break
        simulation.solve(0.0)
    in_pieces = simulation.solution.record[:-13].copy()
    assert simulation.result.message == ""
    simulation.home()
    assert simulation.command_pose(place, (1.0, 0.0, 0.0, 0.0))
    assert simulation.solve(1e6).message == ""
    np.testing.assert_array_equal(simulation.solution.record[:-13], in_pieces)


def test_the_condition_is_logged_at_most_every_ten_milliseconds(tmp_path):
    simulation = RodSimulation(ROBOT, log_path=tmp_path / LOG_NAME, motion_duration=4.0)
    simulation.play(True)
    true = []
    for step in range(65):
        simulation.step(2e-3 * step)
        true.append(simulation.solution.condition)
    simulation.step(1e-3)  # time was put back
    true.append(simulation.solution.condition)
    simulation.close()
    logged = load_log(tmp_path)["condition"]
    assert len(set(true)) > 60
    np.testing.assert_array_equal(logged[:65], np.repeat(true[:65:5], 5))
    assert logged[65] == true[65]
