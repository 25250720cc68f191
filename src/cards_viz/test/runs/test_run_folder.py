import json

import numpy as np
import pytest
from matplotlib.image import imread

from cards_viz.runs import folder as run_folder
from cards_viz.runs.folder import write_run, write_run_folder
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog
from cards_viz.runs.summary import KEYS

INFO = {"controller": "ctc_joint", "mode": "realtime", "wall_time_s": 1.0}


@pytest.fixture
def logs(tmp_path, planar_2r, run_arrays):
    folder = tmp_path / "logs"
    folder.mkdir()
    simulator, controller = run_arrays(planar_2r, steps=100)
    np.savez(folder / "simulator.npz", **simulator)
    np.savez(folder / "controller.npz", **controller)
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


JOINT_FILES = [
    "controller.npz",
    "loop_time.png",
    "muscle_lengths.png",
    "recording.mcap",
    "simulator.npz",
    "summary.json",
    "tensions.png",
    "tracking.png",
]


def test_new_folder(tmp_path, planar_2r, logs):
    target = tmp_path / "runs" / "planar_2r_ctc_joint_1"
    summary = write_run_folder(target, planar_2r, INFO, logs=logs)
    assert names(target) == JOINT_FILES
    assert json.loads((target / "summary.json").read_text()) == summary
    assert tuple(summary)[: len(KEYS)] == KEYS
    assert (target / "simulator.npz").read_bytes() == (logs / "simulator.npz").read_bytes()
    assert names(tmp_path / "runs") == ["planar_2r_ctc_joint_1"]
    for name in ("tracking", "tensions", "muscle_lengths", "loop_time"):
        image = imread(target / f"{name}.png")[..., :3]
        assert image.shape[0] > 300
        assert image.shape[1] > 600
        # something is drawn in colour
        assert np.mean(np.ptp(image, axis=2) > 0.2) > 0.002


def test_into_the_folder_of_the_logs(planar_2r, logs):
    before = (logs / "simulator.npz").read_bytes()
    (logs / "path.png").write_text("of an earlier run")
    (logs / "notes.txt").write_text("mine")
    write_run_folder(logs, planar_2r, INFO)
    assert names(logs) == sorted([*JOINT_FILES, "notes.txt"])
    assert (logs / "simulator.npz").read_bytes() == before


def test_operational_run_has_a_path(tmp_path, arm, run_arrays):
    simulator, controller = run_arrays(arm, steps=60, space="operational")
    target = tmp_path / "run"
    summary = write_run(
        target,
        arm,
        {**INFO, "controller": "ctc_operational", "axes": ("x", "y", "z"), "gain": np.float64(2)},
        SimulatorLog.from_arrays(simulator),
        ControllerLog.from_arrays(controller),
        robot_description="<sdf/>",
    )
    assert "path.png" in names(target)
    assert summary["op_error_max_m"] == pytest.approx(
        np.linalg.norm(controller["error"], axis=1).max()
    )
    assert summary["gain"] == 2.0
    loaded = SimulatorLog.load(target / "simulator.npz")
    np.testing.assert_array_equal(loaded.q, simulator["q"])


def test_actuator_states_have_a_page(tmp_path, planar_2r, logs):
    arrays = dict(np.load(logs / "simulator.npz"))
    states = np.linspace(0.0, 1.0, 101)[:, None] * [1.0, 2.0, 80.0]
    labels = np.array(["cable_1/activation", "cable_2/activation", "cable_2/winding_temperature"])
    np.savez(logs / "simulator.npz", **arrays, actuators=states, actuator_names=labels)
    target = tmp_path / "run"
    write_run_folder(target, planar_2r, INFO, logs=logs)
    assert names(target) == sorted([*JOINT_FILES, "actuator_states.png"])
    # a later run without such actuators does not keep the page
    np.savez(logs / "simulator.npz", **arrays, actuators=states[:, :0], actuator_names=labels[:0])
    write_run_folder(target, planar_2r, INFO, logs=logs)
    assert names(target) == JOINT_FILES


def test_without_a_controller(tmp_path, planar_2r, logs):
    (logs / "controller.npz").unlink()
    summary = write_run_folder(
        tmp_path / "run", planar_2r, {**INFO, "controller": "none"}, logs=logs
    )
    assert summary["qp_infeasible_steps"] is None
    assert names(tmp_path / "run") == [
        "muscle_lengths.png",
        "recording.mcap",
        "simulator.npz",
        "summary.json",
        "tensions.png",
    ]


def test_values_that_are_not_finite(tmp_path, arm, run_arrays):
    simulator, controller = run_arrays(arm, steps=50, space="operational")
    simulator["tensions"][30:, 2] = np.nan
    simulator["q"][40:] = np.nan
    simulator["muscle_lengths"][40:] = np.inf
    controller["error"][40:] = np.nan
    controller["actual"][40:] = np.nan
    controller["loop_us"][:] = np.nan
    controller["residual"][40:] = np.nan
    summary = write_run(
        tmp_path / "run",
        arm,
        {**INFO, "controller": "ctc_operational"},
        SimulatorLog.from_arrays(simulator),
        ControllerLog.from_arrays(controller),
    )
    assert "path.png" in names(tmp_path / "run")
    assert summary["tension_max_N"] is None
    assert summary["op_error_max_m"] is None
    assert summary["loop_p50_us"] is None
    assert len([text for text in summary["failures"] if "not finite" in text]) == 8
    assert "tensions: 21 of 561 values are not finite, first at t = 0.03 s" in str(
        summary["failures"]
    )
    assert "NaN" not in (tmp_path / "run" / "summary.json").read_text()


@pytest.mark.parametrize("fails", ["write_mcap", "_publish", "save"])
def test_nothing_is_left_after_a_failure(tmp_path, planar_2r, logs, monkeypatch, fails):
    def broken(*_args, **_kwargs):
        raise OSError("disk full")

    owner = run_folder.recording if fails == "write_mcap" else run_folder
    monkeypatch.setattr(owner, fails, broken)
    with pytest.raises(OSError, match="disk full"):
        write_run_folder(tmp_path / "runs" / "run", planar_2r, INFO, logs=logs)
    assert names(tmp_path / "runs") == []


def test_bad_logs_leave_nothing(tmp_path, planar_2r, arm, logs):
    target = tmp_path / "runs" / "run"
    with pytest.raises(RunLogError, match=r"'q' has 2 columns.*4 for robot 'test_arm'"):
        write_run_folder(target, arm, INFO, logs=logs)
    with pytest.raises(RunLogError, match="missing 'mode'"):
        write_run_folder(target, planar_2r, {"controller": "c", "wall_time_s": 1}, logs=logs)
    info = {**INFO, "space": "operational", "axes": "xyz"}
    with pytest.raises(RunLogError, match="axes names 3 coordinates, the controller log has 2"):
        write_run_folder(target, planar_2r, info, logs=logs)
    (logs / "controller.npz").write_bytes(b"PK")
    with pytest.raises(RunLogError, match=r"controller\.npz: cannot be read"):
        write_run_folder(target, planar_2r, INFO, logs=logs)
    (logs / "simulator.npz").unlink()
    with pytest.raises(RunLogError, match=r"simulator\.npz: no such file"):
        write_run_folder(target, planar_2r, INFO, logs=logs)
    assert not target.parent.exists()


def test_a_file_in_the_way(tmp_path, planar_2r, logs):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunLogError, match="is not a folder"):
        write_run_folder(tmp_path / "run", planar_2r, INFO, logs=logs)
    assert names(tmp_path) == ["logs", "run"]
