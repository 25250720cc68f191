"""Run folders that are read again, and two of them compared."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_viz.labels import joint_labels
from cards_viz.runs.comparison import ComparisonError, compare
from cards_viz.runs.comparison_report import HTML, JSON, figures, write
from cards_viz.runs.folder import write_run
from cards_viz.runs.log import ControllerLog, LoggedSignal, RunLogError, SimulatorLog
from cards_viz.runs.recorded import RecordedRun, row_at
from cards_viz.runs.replay import Replay
from cards_viz.runs.summary import RunInfo

INFO = RunInfo("mrc", "lockstep", 1.0)


def make(run_arrays, robot, *, name="run", more=0.0, released=None, states=(), steps=100):
    """A run with ``more`` newton in every muscle."""
    one, two = run_arrays(robot, steps=steps)
    one["tensions"] = one["tensions"] + more
    names = [muscle.name for muscle in robot.muscles]
    if states:
        one["actuators"] = np.tile(np.arange(len(states), dtype=float) + 50.0, (steps + 1, 1))
        one["actuator_names"] = np.array(states)
    controller = ControllerLog.from_arrays(two)
    if released is not None:
        values = np.full((steps, len(names)), released)
        signals = {"relaxation": LoggedSignal(values, tuple(names), "position")}
        controller = ControllerLog(**{**vars(controller), "signals": signals})
    return RecordedRun(name, robot, SimulatorLog.from_arrays(one), controller, INFO)


def test_a_run_folder_is_read_as_it_was_written(run_arrays, planar_2r, tmp_path):
    run = make(
        run_arrays,
        planar_2r,
        released=1e-3,
        states=("cable_2/housing_temperature", "cable_2/winding_temperature"),
    )
    write_run(tmp_path / "with", planar_2r, INFO, run.simulator, run.controller)
    again = RecordedRun.read(tmp_path / "with", planar_2r)
    assert again.name == "with"
    assert again.info.controller == "mrc"
    np.testing.assert_array_equal(again.signal("relaxation"), np.full((100, 4), 1e-3))
    assert again.signal("no_such") is None
    # the winding's temperature counts; the others have none
    np.testing.assert_array_equal(again.temperatures[0], [np.nan, 51.0, np.nan, np.nan])
    snapshot = Replay(again).at(0.05)
    np.testing.assert_array_equal(snapshot.released, np.full(4, 1e-3))
    np.testing.assert_array_equal(snapshot.q, run.simulator.q[50])
    np.testing.assert_array_equal(snapshot.actual, run.controller.actual[50])
    assert snapshot.names == planar_2r.tree.position_names


def test_a_run_of_several_robots_says_where_those_of_each_are(tmp_path):
    summary = {"robot": "two_arms", "robots": {"left_arm": {}, "right_arm": {}}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(RunLogError, match=r"has the runs of 2 robots.*/left_arm, .*/right_arm"):
        RecordedRun.read(tmp_path)


def test_folders_that_hold_no_run(run_arrays, planar_2r, arm, tmp_path):
    with pytest.raises(RunLogError, match="no such folder"):
        RecordedRun.read(tmp_path / "nowhere")
    with pytest.raises(RunLogError, match=r"has no summary\.json"):
        RecordedRun.read(tmp_path)
    run = make(run_arrays, arm)
    write_run(tmp_path / "run", arm, INFO, run.simulator, run.controller)
    with pytest.raises(CardsError, match=r"test_arm.*expected: another robot, with --robot"):
        RecordedRun.read(tmp_path / "run")
    with pytest.raises(RunLogError, match=r"run: simulator log: 'q' has 4 columns .expected: 2"):
        RecordedRun.read(tmp_path / "run", planar_2r)
    (tmp_path / "run" / "summary.json").write_text('{"robot": "stewart_gough"}')
    (tmp_path / "run" / "simulator.npz").unlink()
    with pytest.raises(RunLogError, match="the run folder of a robot with muscles"):
        RecordedRun.read(tmp_path / "run")


@pytest.mark.parametrize(
    ("log", "names"),
    [
        ("simulator", ("q", "qd", "muscle_lengths", "muscle_rates", "tensions")),
        ("controller", ("tensions", "desired", "actual")),
    ],
)
def test_logs_that_do_not_fit_the_robot_are_refused_as_they_are_read(
    log, names, run_arrays, planar_2r, tmp_path
):
    """Every array whose columns the robot knows, with one less and with one more."""
    run = make(run_arrays, planar_2r)
    write_run(tmp_path, planar_2r, INFO, run.simulator, run.controller)
    with np.load(tmp_path / f"{log}.npz") as archive:
        arrays = dict(archive)
    for name in names:
        for values in (arrays[name][:, :-1], np.repeat(arrays[name], 2, axis=1)):
            np.savez(tmp_path / f"{log}.npz", **{**arrays, name: values})
            message = rf"{log} log: .*'{name}' has .*(columns|shape).*expected"
            with pytest.raises(RunLogError, match=message):
                RecordedRun.read(tmp_path, planar_2r)
    np.savez(tmp_path / f"{log}.npz", **arrays)
    RecordedRun.read(tmp_path, planar_2r)


def test_rows_of_times():
    times = np.array([0.0, 0.1, 0.2])
    assert [int(row_at(times, t)) for t in (-1.0, 0.0, 0.0999, 0.1, 5.0)] == [0, 0, 0, 1, 2]


def test_differences_of_a_known_change(run_arrays, planar_2r):
    a = make(run_arrays, planar_2r, name="a", released=1e-3)
    b = make(run_arrays, planar_2r, name="b", more=5.0)
    comparison = compare(a, b)
    rows = {(row.quantity, row.entry): row for row in comparison.differences()}
    for entry in ("", "cable_3"):
        tension = rows["tension", entry]
        assert tension.mean == pytest.approx(5.0)
        assert tension.rms == pytest.approx(5.0)
        assert tension.largest == pytest.approx(5.0)
        assert tension.mean_b - tension.mean_a == pytest.approx(5.0)
    assert rows["norm of joint errors", ""].largest == 0.0
    # what one run does not have is no difference of zero
    released = rows["released length", ""]
    assert released.mean_a == pytest.approx(1.0)
    assert np.isnan(released.mean_b)
    assert np.isnan(released.mean)
    assert comparison.notes == ("b has no released length",)
    assert ("temperature", "") not in rows
    json.dumps(comparison.to_json(), allow_nan=False)


def test_errors_of_sliding_and_turning_joints_are_compared_apart(run_arrays):
    robot = load("planar_xy")
    a, b = (make(run_arrays, robot, name=name) for name in "ab")
    units = joint_labels(robot.tree).error_units
    assert set(units) == {"rad", "m"}
    b.controller.error[:, units.index("m")] += 0.002
    found = {quantity.name: quantity for quantity in compare(a, b).quantities}
    assert found["norm of joint errors"].unit == found["joint error"].unit == "mrad"
    assert found["norm of sliding joint errors"].unit == found["sliding joint error"].unit == "mm"
    rows = {(row.quantity, row.entry): row for row in compare(a, b).differences()}
    assert rows["joint error", ""].largest == 0.0
    assert rows["sliding joint error", ""].largest == pytest.approx(2.0)


@pytest.mark.parametrize("columns", [[], [0], [0, 0, 1]])
def test_errors_that_are_not_those_of_the_joints_are_not_compared(columns, run_arrays, planar_2r):
    a, b = (make(run_arrays, planar_2r, name=name) for name in "ab")
    other = replace(b.controller, error=b.controller.error[:, columns])
    pair = a, replace(b, controller=other)
    for one, two in (pair, pair[::-1]):
        comparison = compare(one, two)
        assert "b has no joint error" in comparison.notes
        rows = {(row.quantity, row.entry): row for row in comparison.differences()}
        assert np.isnan(rows["joint error", ""].mean)
        assert np.isnan(rows["norm of joint errors", ""].mean)


def test_runs_of_other_steps_and_lengths_are_compared_at_equal_times(run_arrays, planar_2r):
    a = make(run_arrays, planar_2r, name="a", steps=100)
    b = make(run_arrays, planar_2r, name="b", steps=50)
    time = np.linspace(0.0, 0.05, 6)
    slope = np.tile(1000.0 * time[:, None], (1, 4))
    fields = {**vars(b.simulator), "time": time, "tensions": slope, "q": b.simulator.q[:6]}
    for name in ("qd", "muscle_lengths", "muscle_rates"):
        fields[name] = fields[name][:6]
    for name in ("gate", "refused", "behind", "accepted", "actuators", "efforts"):
        fields.pop(name)
    b = RecordedRun("b", planar_2r, SimulatorLog.from_arrays(fields), b.controller, INFO)
    comparison = compare(a, b)
    assert comparison.end == 0.05
    rows = {(row.quantity, row.entry): row for row in comparison.differences()}
    inside = a.simulator.tensions[:51, 1]
    wanted = 1000.0 * a.simulator.time[:51] - inside
    row = rows["tension", "cable_2"]
    assert row.rms == pytest.approx(np.sqrt(np.mean(wanted**2)))
    assert row.largest == pytest.approx(np.abs(wanted).max())
    assert row.at == pytest.approx(a.simulator.time[np.abs(wanted).argmax()])


def test_figures_and_files(run_arrays, planar_2r, tmp_path):
    states = ("cable_1/winding_temperature", "cable_4/winding_temperature")
    a = make(run_arrays, planar_2r, name="a & b", released=1e-3, states=states)
    b = make(run_arrays, planar_2r, name="b", more=5.0, states=states)
    comparison = compare(a, b)
    drawn = figures(comparison)
    assert set(drawn) == {"overview", "tension", "released_length", "temperature", "joint_error"}
    axes = drawn["tension"].axes
    assert [axis.get_title(loc="left") for axis in axes] == list(a.muscle_names)
    assert all(len(axis.get_lines()) == 2 for axis in axes)
    assert len({axis.get_ylim() for axis in axes}) == 1
    files = write(comparison, tmp_path)
    assert {file.name for file in files} == {*(f"{n}.png" for n in drawn), HTML, JSON}
    page = (tmp_path / HTML).read_text()
    assert "a &amp; b" in page
    assert page.count("data:image/png;base64") == len(drawn)
    table = json.loads((tmp_path / JSON).read_text())["differences"]
    assert {row["quantity"] for row in table} >= {"tension", "temperature", "joint error"}


def test_runs_that_cannot_be_compared(run_arrays, planar_2r, arm):
    a, b = make(run_arrays, planar_2r, name="a"), make(run_arrays, arm, name="b")
    text = r"a is a run of planar_2r, b one of test_arm: .* muscles \(4 and 11\) .*of one robot"
    with pytest.raises(ComparisonError, match=text):
        compare(a, b)
    late = vars(a.simulator) | {"time": a.simulator.time + 7.0}
    c = RecordedRun("c", planar_2r, SimulatorLog(**late), a.controller, INFO)
    with pytest.raises(ComparisonError, match="expected: a common time"):
        compare(a, c)


def test_signals_that_do_not_fit(run_arrays, planar_2r):
    _, arrays = run_arrays(planar_2r, steps=10)
    arrays |= {"signal_names": np.array(["relaxation"]), "signal_fields": np.array(["position"])}
    arrays["signal_relaxation"] = np.zeros((10, 4))
    arrays["signal_relaxation_entries"] = np.array(["a", "b"])
    with pytest.raises(RunLogError, match=r"'signal_relaxation' has shape \(10, 4\)"):
        ControllerLog.from_arrays(arrays)
    arrays["signal_fields"] = np.array(["colour"])
    with pytest.raises(RunLogError, match="the field of signal 'relaxation' is 'colour'"):
        ControllerLog.from_arrays(arrays)


def test_a_damaged_summary_is_told(run_arrays, planar_2r, tmp_path):
    np.savez(tmp_path / "simulator.npz", **run_arrays(planar_2r, steps=10)[0])
    for change, message in (
        ('"axes": true', "axes: Expected `array`, got `bool`"),
        ('"axes": [1]', r"axes\[0\]: Expected `str`"),
        ('"stopped": 3', "stopped: Expected `bool`, got `int`"),
        ('"wall_time_s": 1' + "0" * 400, "a whole number of 401 digits"),
        ('"duration_s": NaN', "duration_s is nan"),
        ('"a": ' + "[" * 9999 + "]" * 9999, "nested too deeply"),
        ('"controller": "\\ud800"', "surrogates not allowed"),
    ):
        text = '{"robot": "planar_2r", "controller": "mrc", "mode": "lockstep", "wall_time_s": 1, '
        (tmp_path / "summary.json").write_text(text + change + "}")
        with pytest.raises(RunLogError, match=message):
            RecordedRun.read(tmp_path, planar_2r)
