"""A session must begin its reference with the first state and log every step."""

import numpy as np
import pytest

from cards_core.control import make_controller
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.trajectories import PointToPoint
from cards_ros.stamps import seconds
from controllers.session import ControlSession

STEP = 1_000_000  # [ns]
START = np.array([-0.5, 0.5])


@pytest.fixture(scope="module")
def dynamics():
    return make_dynamics(load("planar_2r"), "numeric")


def make_session(dynamics, reference, **options):
    return ControlSession(make_controller("ctc_joint", dynamics), reference, **options)


def test_the_reference_begins_with_the_first_step_and_anew_after_start(dynamics):
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    session = make_session(dynamics, reference)
    for offset in (7 * STEP, 40 * STEP):
        for k in (0, 1, 500):
            out = session.step(offset + k * STEP, START, np.zeros(2))
            wanted = reference(seconds(offset + k * STEP) - seconds(offset))
            assert out.desired.tobytes() == wanted[0].tobytes()
            assert out.desired_dot.tobytes() == wanted[1].tobytes()
        session.start()
        assert session.steps == 0


def test_without_a_reference_the_first_place_is_held(dynamics):
    session = make_session(dynamics, None)
    session.step(0, START, np.zeros(2))
    assert np.array_equal(session.step(STEP, START + 0.1, np.zeros(2)).desired, START)
    session.start()
    assert np.array_equal(session.step(2 * STEP, START + 0.1, np.zeros(2)).desired, START + 0.1)


def test_the_way_to_the_start_of_the_reference(dynamics):
    reference = PointToPoint(START, [0.5, -0.5], 2.0)
    there = START + np.array([0.3, -0.4])  # 0.5 away
    session = make_session(dynamics, reference, approach_speed=0.25)
    length = 15 / 8 * 0.5 / 0.25
    assert np.allclose(session.step(0, there, np.zeros(2)).desired, there, atol=1e-12)
    previous, fastest = there, 0.0
    for k in range(1, round(length * 100)):
        out = session.step(10 * k * STEP, there, np.zeros(2))
        fastest = max(fastest, float(np.linalg.norm(out.desired_dot)))
        assert np.linalg.norm(out.desired - previous) < 0.01
        previous = out.desired.copy()
    assert 0.24 < fastest < 0.25 + 1e-9
    end = round(length * 1e9)
    assert np.allclose(session.step(end, there, np.zeros(2)).desired, START, atol=1e-9)
    later = session.step(end + 10**9, there, np.zeros(2)).desired
    assert np.allclose(later, reference(1.0)[0], atol=1e-9)


def test_follow_replaces_the_reference_at_a_stamp(dynamics):
    session = make_session(dynamics, None)
    session.step(0, START, np.zeros(2))
    motion = PointToPoint(START, [0.5, -0.5], 2.0)
    session.follow(motion, 3 * STEP)
    out = session.step(903 * STEP, START, np.zeros(2))
    assert np.allclose(out.desired, motion(0.9)[0], atol=1e-12)


def test_every_step_is_logged(dynamics, tmp_path):
    path = tmp_path / "controller.npz"
    session = make_session(dynamics, PointToPoint(START, [0.5, -0.5], 2.0), log_path=path)
    rows = []
    for k in range(10):
        out = session.step(k * STEP, START, np.zeros(2))
        rows.append((out.desired.copy(), out.tensions.copy()))
        session.record(100.0 + k, k // 2)
    session.close()
    with np.load(path) as log:
        assert np.array_equal(log["time"], [seconds(k * STEP) for k in range(10)])
        assert np.array_equal(log["desired"], [row[0] for row in rows])
        assert np.array_equal(log["tensions"], [row[1] for row in rows])
        assert np.array_equal(log["error"], log["desired"] - log["actual"])
        assert log["loop_us"].tolist() == [100.0 + k for k in range(10)]
        assert log["missed_deadlines"].tolist() == [k // 2 for k in range(10)]
        assert set(log["status"]) == {0.0}
        assert log["reference_names"].tolist() == ["joint_1", "joint_2"]


def test_what_a_verdict_needs_is_logged(dynamics, tmp_path):
    reference = PointToPoint(START, START + np.array([3.0, 4.0]), 2.0)
    there = START + np.array([0.3, -0.4])  # 0.5 away
    session = make_session(
        dynamics, reference, approach_speed=0.25, log_path=tmp_path / "controller.npz"
    )
    whole = 15 / 8 * 0.5 / 0.25 + 2.0
    assert session.end_from(there, np.zeros(2)) == pytest.approx(whole)
    for k in (7, 8):
        session.step(k * STEP, there, np.zeros(2))
        session.record(1.0, 0)
    assert session.tally.facts().remaining == pytest.approx(whole - 1e-3)
    session.start(keep_log=True)
    assert session.tally.facts().steps == 2
    session.start()
    assert session.tally.facts().steps == 0
    session.close()
    with np.load(tmp_path / "controller.before_reset_1.npz") as log:
        # 5 % of the path, the approach is not counted
        assert log["tolerance_angle"] == pytest.approx([0.25, 0.25])
        assert log["remaining"] == pytest.approx([whole, whole - 1e-3])
    with np.load(tmp_path / "controller.npz") as log:
        assert log["time"].size == 0


def test_a_reference_over_a_topic_is_not_judged_and_a_held_place_is(dynamics):
    session = make_session(dynamics, None)
    assert np.isnan(session.end_from(START, np.zeros(2)))
    session.step(0, START, np.zeros(2))
    session.record(1.0, 0)
    assert session.tolerance.angle == 0.02
    assert len(session.tally.facts().tracking) == 1
    session.tally.reset()
    session.follow(PointToPoint(START, START + 1.0, 1.0), 0)
    session.step(STEP, START, np.zeros(2))
    session.record(1.0, 0)
    assert session.tally.facts().tracking == ()
