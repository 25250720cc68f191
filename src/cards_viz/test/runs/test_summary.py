"""Summaries against numbers worked out by hand."""

import hashlib
import json
import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.robot.actuators import Cable
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog
from cards_viz.runs.summary import KEYS, RunInfo, summarise, trajectory_sha256

Q = [[0.0, 1.0], [0.5, -0.25], [2.0, 3.0]]


def muscle(name, tension_max, actuator=None):
    return SimpleNamespace(name=name, tension_max=tension_max, actuator=actuator or Cable())


def simulator(**changes) -> SimulatorLog:
    arrays = {
        "time": [0.0, 0.5, 1.0],
        "q": Q,
        "qd": np.zeros((3, 2)),
        "muscle_lengths": np.ones((3, 2)),
        "muscle_rates": np.zeros((3, 2)),
        "tensions": [[0.0, 0.0], [12.0, 40.0], [90.0, 11.0]],
    }
    return SimulatorLog.from_arrays({**arrays, **changes})


def controller(**changes) -> ControllerLog:
    arrays = {
        "time": [0.0, 0.5, 1.0],
        "desired": np.zeros((3, 2)),
        "desired_dot": np.zeros((3, 2)),
        "actual": np.zeros((3, 2)),
        "error": [[0.003, -0.004], [0.0, 0.0], [0.001, 0.0]],
        "tensions": np.full((3, 2), 20.0),
        "status": [0, 1, 2],
        "residual": np.zeros(3),
        "loop_us": [100.0, 200.0, 300.0],
        "missed_deadlines": [0, 1, 4],
    }
    return ControllerLog.from_arrays({**arrays, **changes})


INFO = RunInfo("ctc_joint", "lockstep", 2.5)


def test_joint_space():
    summary = summarise("arm", simulator(), controller(), INFO, error_units=("rad", "rad"))
    assert tuple(summary)[: len(KEYS)] == KEYS
    assert summary["robot"] == "arm"
    assert summary["controller"] == "ctc_joint"
    assert summary["mode"] == "lockstep"
    assert summary["sim_time_s"] == 1.0
    assert summary["wall_time_s"] == 2.5
    assert summary["joint_error_max_rad"] == 0.004
    # (9 + 16 + 1) 1e-6 over 6 values
    assert summary["joint_error_rms_rad"] == pytest.approx(math.sqrt(26e-6 / 6), rel=1e-14)
    assert summary["op_error_rms_m"] is None
    assert summary["op_error_max_m"] is None
    # the zeros before the first step acted on nothing
    assert summary["tension_min_N"] == 11.0
    assert summary["tension_max_N"] == 90.0
    # INFEASIBLE counts, a task that gave way to a joint limit is told apart
    assert summary["qp_infeasible_steps"] == 1
    assert summary["joint_limit_steps"] == 1
    assert summary["control_rate_hz"] == 2.0
    assert summary["loop_p50_us"] == 200.0
    assert summary["loop_p99_us"] == pytest.approx(298.0)
    assert summary["missed_deadlines"] == 4
    # a third of its steps is more than a task may have
    assert summary["verdict"] == "failed"
    assert [text[:20] for text in summary["failures"]] == ["no tensions within t"]


def test_lengths_and_angles_are_told_apart():
    error = np.array([[0.003, 0.5], [0.004, -0.25], [0.0, 0.0]])
    log = controller(error=error)
    summary = summarise("arm", simulator(), log, INFO, error_units=("rad", "m"))
    assert summary["joint_error_max_rad"] == 0.004
    assert summary["joint_error_rms_rad"] == pytest.approx(math.sqrt(25e-6 / 3), rel=1e-14)
    assert summary["joint_error_max_m"] == 0.5
    assert summary["joint_error_rms_m"] == pytest.approx(math.sqrt(0.3125 / 3), rel=1e-14)
    lengths = summarise("arm", simulator(), log, INFO, error_units=("m", "m"))
    assert lengths["joint_error_max_rad"] is lengths["joint_error_rms_rad"] is None
    assert lengths["joint_error_max_m"] == 0.5
    # of unknown units none is told
    unknown = summarise("arm", simulator(), log, INFO)
    assert unknown["joint_error_max_rad"] is unknown["joint_error_max_m"] is None


def test_operational_space():
    info = RunInfo("ctc_operational", "realtime", 1.0, "operational", ("x", "z"))
    summary = summarise("arm", simulator(), controller(), info)
    assert summary["joint_error_max_rad"] is None
    assert summary["joint_error_rms_rad"] is None
    assert summary["op_error_max_m"] == pytest.approx(0.005, rel=1e-14)
    assert summary["op_error_rms_m"] == pytest.approx(math.sqrt(26e-6 / 3), rel=1e-14)


def test_rotations_are_no_lengths():
    error = np.array([[0.003, 0.004, 1.0, 1.0]] * 3)
    log = controller(error=error)
    names = ("x", "y", "quaternion_w", "quaternion_x", "quaternion_y", "quaternion_z")
    info = RunInfo("c", "lockstep", 1.0, "operational", names)
    summary = summarise("arm", simulator(), log, info)
    assert summary["op_error_max_m"] == pytest.approx(0.005, rel=1e-14)


def test_hash_is_that_of_the_little_endian_bytes():
    expected = hashlib.sha256(
        struct.pack("<6d", *[value for row in Q for value in row])
    ).hexdigest()
    assert summarise("arm", simulator(), None, INFO)["trajectory_sha256"] == expected
    # neither memory order nor byte order of the array matters
    assert trajectory_sha256(np.asfortranarray(Q)) == expected
    assert trajectory_sha256(np.array(Q, dtype=">f8")) == expected
    changed = np.array(Q)
    changed[1, 1] = np.nextafter(changed[1, 1], 1.0)
    assert trajectory_sha256(changed) != expected


def test_without_a_controller_its_numbers_are_null():
    summary = summarise("arm", simulator(), None, RunInfo("none", "realtime", 1.0))
    for key in ("joint_error_max_rad", "qp_infeasible_steps", "control_rate_hz", "loop_p50_us"):
        assert summary[key] is None
    assert summary["tension_max_N"] == 90.0


def test_values_that_are_not_finite_are_null_and_told():
    error = np.array([[0.003, np.nan], [0.0, 0.0], [0.001, 0.0]])
    q = np.array(Q)
    q[2, 0] = np.inf
    units = ("rad", "rad")
    summary = summarise("arm", simulator(q=q), controller(error=error), INFO, error_units=units)
    assert summary["joint_error_max_rad"] is None
    assert summary["joint_error_rms_rad"] is None
    assert summary["tension_max_N"] == 90.0
    assert summary["failures"][:2] == [
        "simulator log: q: 1 of 6 values are not finite, first at t = 1 s",
        "controller log: error: 1 of 6 values are not finite, first at t = 0 s",
    ]
    json.dumps(summary, allow_nan=False)


def test_one_row():
    one = {name: values[:1] for name, values in vars(simulator()).items()}
    two = {name: values[:1] for name, values in controller().arrays().items()}
    summary = summarise("arm", SimulatorLog.from_arrays(one), ControllerLog.from_arrays(two), INFO)
    assert summary["control_rate_hz"] is None
    assert summary["tension_min_N"] is None
    assert summary["sim_time_s"] == 0.0


def test_metadata():
    info = RunInfo.from_mapping(
        {"controller": "ctc_operational", "mode": "lockstep", "wall_time_s": 3, "gains": [1.0]}
    )
    assert info.space == "operational"
    assert info.extra == {"gains": [1.0]}
    assert summarise("a", simulator(), None, info)["gains"] == [1.0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"mode": None}, "missing 'mode'"),
        ({"space": "cartesian"}, "space 'cartesian'.*joint or operational"),
        ({"wall_time_s": math.nan}, "wall_time_s is nan"),
        ({"wall_time_s": "long"}, "wall_time_s is 'long'"),
        ({"trajectory_sha256": "0"}, "trajectory_sha256 is computed"),
    ],
)
def test_metadata_that_make_no_sense(change, text):
    data = {"controller": "ctc_joint", "mode": "lockstep", "wall_time_s": 1.0, **change}
    data = {key: value for key, value in data.items() if value is not None}
    with pytest.raises(RunLogError, match=text):
        RunInfo.from_mapping(data)


def good(**changes) -> ControllerLog:
    known = {
        "status": [0, 0, 0],
        "tolerance_length": [np.nan] * 3,
        "tolerance_angle": [0.01] * 3,
        "remaining": [1.0, 0.5, 0.0],
    }
    return controller(**{**known, **changes})


def verdict(host=None, task=None, info=INFO, muscles=()):
    units = ("rad", "rad")
    summary = summarise(
        "arm",
        simulator(**host or {}),
        good(**task or {}),
        info,
        muscles=muscles,
        error_units=units,
    )
    return summary["verdict"], summary["failures"], summary["warnings"]


def test_a_good_run_has_nothing_to_say():
    # nothing comes too late where time waits for the answers
    for mode in ("lockstep", "paced"):
        assert verdict(info=RunInfo("c", mode, 1.0, duration_s=1.0)) == ("ok", [], [])


def test_late_answers_are_told_and_in_real_time_a_failure():
    late = ["missed deadlines: 4 of 7 states got no answer, or a late one"]
    for mode, extra, found in (
        ("as_fast_as_possible", {}, ("ok", [], late)),
        ("realtime", {}, ("failed", late, [])),
        ("realtime", {"hil": {}}, ("ok", [], late)),  # boards have watchdogs of their own
    ):
        info = RunInfo("c", mode, 1.0, duration_s=1.0, extra=extra)
        assert verdict(info=info) == found


def test_lost_time_is_told_and_in_real_time_a_failure():
    slow = {"behind": [0, 0.1, 0.2]}
    text = ["slower than real time: 1 s took 1.2 s"]
    assert verdict(slow, info=RunInfo("c", "paced", 1.0)) == ("ok", [], text)
    on_time = {"missed_deadlines": [0, 0, 0]}
    assert verdict(slow, on_time, RunInfo("c", "realtime", 1.0)) == ("failed", text, [])


@pytest.mark.parametrize(
    ("host", "task", "info", "text"),
    [
        (
            {"gate": [0, 1, 0]},
            {},
            {},
            "the watchdog let the muscles go for 0.5 s, first at t = 0.5",
        ),
        ({"gate": [0, 0, 2]}, {}, {}, "emergency stop at t = 1.000 s"),
        ({"q": [[0, 0], [0, np.nan], [0, 0]]}, {}, {}, "simulator log: q: 1 of 6 values"),
        ({}, {"status": [0, 4, 0]}, {}, "1 of 3 states, or answers, were not finite"),
        ({}, {"error": np.full((3, 2), 0.3)}, {}, "RMS error 424 mrad, tolerance 10 mrad"),
        ({}, {"error": [[0, 0], [0, 0], [0.012, 0]]}, {}, "error at the end 12 mrad"),
        ({}, {}, {"duration_s": 8.0}, "it ended after 1 s of 8 s"),
        ({}, {}, {"failures": ("'simulator' ended with signal SIGKILL",)}, "'simulator' ended"),
    ],
)
def test_reasons_to_fail(host, task, info, text):
    name, failures, _ = verdict(host, task, RunInfo("c", "lockstep", 1.0, **info))
    assert name == "failed"
    assert len(failures) == 1
    assert text in failures[0]


def test_reasons_to_warn():
    host = {"refused": [0, 0, 3], "behind": [0, 0.1, 0.2], "tensions": np.full((3, 2), 100.0)}
    task = {"remaining": [3.0, 2.5, 2.0]}
    muscles = [muscle("a", 100.0), muscle("b", 200.0)]
    name, failures, warnings = verdict(host, task, muscles=muscles)
    assert (name, failures) == ("ok", [])
    assert warnings == [
        "3 commands were refused by the host",
        "slower than real time: 1 s took 1.2 s",
        "at the maximum tension: a for 100% of the time",
        "the reference was not finished, 2 s were left",
    ]


def test_slack_cables_are_named():
    """An elastic cable may hang, and so may muscles of other kinds."""
    tensions = np.full((3, 4), 50.0)
    tensions[1:, :3] = [[0.0, 0.0, 0.0], [4e-3, 0.0, 0.0]]
    host = {name: np.ones((3, 4)) for name in ("muscle_lengths", "muscle_rates")}
    muscles = [
        muscle("taut", 100.0, Cable()),
        muscle("elastic", 100.0, Cable(stiffness=100.0)),
        SimpleNamespace(name="other kind", tension_max=100.0, actuator=None),
        muscle("other", 1e30, Cable()),
    ]
    *_, warnings = verdict({**host, "tensions": tensions}, muscles=muscles)
    assert warnings == ["slack: taut for 100% of the time"]
    tensions[2, 0] = 6e-3  # more than 1e-4 of the largest
    *_, warnings = verdict({**host, "tensions": tensions}, muscles=muscles)
    assert warnings == ["slack: taut for 50% of the time"]


def test_a_controller_that_fell_silent_is_told():
    one = {name: values[:1] for name, values in good().arrays().items()}
    log = ControllerLog.from_arrays(one)
    summary = summarise("arm", simulator(), log, INFO)
    assert "the controller's log ends at t = 0.000 s" in summary["warnings"][-1]


def test_stopped_by_the_user():
    stopped = RunInfo("c", "lockstep", 1.0, duration_s=60.0, stopped=True)
    assert verdict(info=stopped)[0] == "stopped"
    assert verdict({"gate": [0, 1, 0]}, info=stopped)[0] == "failed"
