"""Exported controllers of set-points: the Python form's set-points, the muscles' law, files."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import shutil
import subprocess

import numpy as np
import pytest
from exported_controller import FLAGS, ExportedSetPoints, compiler

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.cpg.files import read_pattern
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.control.cpg.parameters import PatternParameters
from cards_core.control.recorded_commands import RecordedCommands
from cards_core.embedded import NotExportableError, export_controller, write_controller
from cards_core.embedded.folder import ARM, microcontroller_report
from cards_core.formats import load
from cards_core.muscles.impedance import SLACK, ImpedanceLaw
from cards_core.robot.state import RobotState
from cards_core.shared_files import find_file

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

ROBOT = load("tetrahedral_6")  # five joints of eight cables
MODEL = ControlModel(ROBOT)
TREE, COUNT = ROBOT.tree, len(ROBOT.muscles)
HOME = MODEL.dynamics.update(TREE.home, np.zeros(TREE.nv)).muscle_lengths.copy()
TOLERANCE = 1e-12
"""Relative to the largest; of oscillators per second, as what the last bits do adds up."""


def recorded():
    rng = np.random.default_rng(3)
    values = {
        "tension": rng.uniform(0.0, 20.0, (4, COUNT)),
        "rest_rate": rng.standard_normal((4, COUNT)),
    }
    values["tension"][:2, 1] = np.nan  # nothing is said of it at first
    return RecordedCommands(np.array([0.1, 0.4, 0.45, 2.0]), values)


def pattern(kind):
    rng = np.random.default_rng(0)
    couplings = np.column_stack((rng.uniform(0, 1, 100), rng.uniform(-np.pi, np.pi, 100)))
    return PatternParameters(
        Feedback(20.0, 0.04, 5.0, 0.02, 3.0) if kind == "feedback" else OpenLoop(1.2, 0.2, 0.4),
        0.5,
        couplings,
        per_joint=8,
        feedback=Network.random(2, 4, 3, rng) if kind == "feedback" else None,
        tension=2.0,
    )


SINE = {"gait": "sine", "amplitude": 0.5, "body_waves": 1.5, "tension": 20.0}

GAITS = {
    "hold": {"tension": np.linspace(1.0, 9.0, COUNT)},
    "sine": {**SINE, "refresh_rate": 200.0},
    "replay": {"gait": "replay", "commands": recorded(), "refresh_rate": 500.0},
    "again": {"gait": "replay", "commands": recorded(), "repeat": True, "refresh_rate": 500.0},
    "some": {**SINE, "groups": {"muscles": [ROBOT.muscles[3].name, ROBOT.muscles[7].name]}},
}

PATTERNS = {
    "none": {"tension": 3.0},
    "open_loop": {"pattern": pattern("open"), "command": 0.7},
    "feedback": {"pattern": pattern("feedback"), "ramp_time": 0.0},
    "deaf": {"pattern": pattern("feedback"), "feedback": False},
    "stopped": {"pattern": pattern("open"), "active": False},
}


def pair(kind, settings, folder, precision="double", extra=()):
    theirs = make_controller(kind, MODEL, **settings)
    theirs.step_in_python()
    return ExportedSetPoints(theirs, folder, precision, extra), theirs


def compare(ours, theirs, state, tolerance=TOLERANCE):
    """Step both; return the status of the Python form."""
    (told,) = theirs.step(state)
    measured = {}
    if state.muscle_lengths is not None:
        measured = {"lengths": state.muscle_lengths, "tensions": state.tensions}
    status = ours.step(state.time, **measured)
    assert (status == 0) == (theirs.output.status is ControlStatus.OK)
    wanted = (told.values, told.rest_lengths, told.rest_rates)
    for name, values in zip(("tensions", "lengths", "rates"), wanted, strict=True):
        atol = tolerance * np.abs(values).max(initial=0.0)
        np.testing.assert_allclose(ours.command[name], values, rtol=0.0, atol=atol)
    return theirs.output.status


def blank(time):
    return RobotState(time, np.full(TREE.nq, np.nan), np.full(TREE.nv, np.nan))


def measured(time, rng):
    lengths = HOME * rng.uniform(0.8, 1.2, COUNT)
    tensions = rng.uniform(0.0, 70.0, COUNT)
    q, qd = TREE.home, np.zeros(TREE.nv)
    return RobotState(time, q, qd, muscle_lengths=lengths, tensions=tensions)


@pytest.mark.parametrize("name", GAITS)
def test_gaits_are_those_of_python(name, tmp_path):
    """At times that come as they come, go back, stand still and are none."""
    ours, theirs = pair("impedance", GAITS[name], tmp_path)
    rng, time = np.random.default_rng(1), 5.0
    for k in range(400):
        time += float(rng.choice([0.0, 0.001, 0.005, 0.3]))
        if k % 100 == 50:
            time -= 3.0
        bad = k % 37 == 5
        at = [math.nan, math.inf, -math.inf][k % 3] if bad else time
        status = compare(ours, theirs, blank(at))
        assert (status is ControlStatus.INVALID_STATE) == bad
        if k == 250:
            ours.library.cards_reset()
            theirs.reset()
    assert (np.abs(ours.command["rates"]).max() > 0.0) == (name != "hold")


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_those_of_python(name, tmp_path):
    ours, theirs = pair("cpg", PATTERNS[name], tmp_path)
    rng, time = np.random.default_rng(1), 2.0
    for k in range(150):
        time += float(rng.choice([0.001, 0.01, 0.02]))
        compare(ours, theirs, measured(time, rng), TOLERANCE * max(1.0, time - 2.0))
        if k == 80:
            time -= 1.0
        if k == 100:
            ours.library.cards_reset()
            theirs.reset()
    moving = name not in ("none", "stopped")
    assert (np.abs(ours.command["rates"]).max() > 0.0) == moving


def test_the_shipped_pattern_is_that_of_python(tmp_path):
    given = read_pattern(find_file("tetrahedral_6", folder="config/patterns", suffix=".yaml"))
    ours, theirs = pair("cpg", {"pattern": given}, tmp_path)
    rng = np.random.default_rng(2)
    for k in range(300):
        compare(ours, theirs, measured(0.01 * k, rng), TOLERANCE * max(1.0, 0.01 * k))
    assert np.abs(ours.command["rates"]).max() > 0.01


def test_a_lost_sensor_lets_go_softly_and_takes_up_again(tmp_path):
    ours, theirs = pair("cpg", {"pattern": pattern("feedback")}, tmp_path)
    rng, seen = np.random.default_rng(4), []
    for k in range(500):
        state = measured(0.01 * k, rng)
        if 100 <= k < 300:
            state.muscle_lengths[5 + k % 3] = math.nan
        seen.append(compare(ours, theirs, state, TOLERANCE * max(1.0, 0.01 * k)))
        if k == 290:
            assert (ours.command["lengths"] == SLACK).all()
    assert set(seen[100:300]) == {ControlStatus.INVALID_STATE}
    assert seen[-1] is ControlStatus.OK
    assert ours.command["tensions"].max() > 0.0


def test_oscillators_that_cannot_be_integrated_fail_until_the_reset(tmp_path):
    stiff = dataclasses.replace(pattern("open"), oscillators=OpenLoop(1.0, 1.0, convergence=1e7))
    ours, theirs = pair("cpg", {"pattern": stiff}, tmp_path)
    for k in range(20):
        status = compare(ours, theirs, blank(0.1 * k))
    assert status is ControlStatus.INVALID_STATE
    assert ours.step(2.1) == 2
    assert (ours.command["lengths"] == SLACK).all()
    ours.library.cards_reset()
    assert ours.step(2.2) == 0


def test_a_long_gap_lets_the_rhythm_go_on_softly(tmp_path):
    ours, theirs = pair("cpg", PATTERNS["feedback"] | {"ramp_time": 1.0}, tmp_path)
    rng, time = np.random.default_rng(7), 0.0
    for k in range(600):
        time += 30.0 if k == 300 else 0.01
        status = compare(ours, theirs, measured(time, rng), TOLERANCE * max(1.0, 0.01 * k))
        assert status is ControlStatus.OK
        if k in (299, 300):
            rates = np.abs(ours.command["rates"]).max()
            assert (rates > 0.01) == (k == 299)
    assert np.abs(ours.command["rates"]).max() > 0.01


@pytest.mark.parametrize("name", GAITS)
def test_after_a_time_that_is_too_large_the_gait_goes_on(name, tmp_path):
    ours, theirs = pair("impedance", GAITS[name], tmp_path)
    for k, time in enumerate([0.0, 0.01, 1.7e308, 0.02, -1.7e308, 0.03, 0.2]):
        compare(ours, theirs, blank(time))
        values = [*ours.command["tensions"], *ours.command["lengths"], *ours.command["rates"]]
        assert np.isfinite(values).all(), k
    assert ours.command["status"] == ControlStatus.OK


def test_after_a_time_that_is_none_the_next_refresh_is_good(tmp_path):
    ours, theirs = pair("cpg", PATTERNS["open_loop"], tmp_path)
    for k, time in enumerate([0.0, 0.01, math.nan, 0.012, 0.02, 0.03, math.inf, 0.04]):
        status = compare(ours, theirs, blank(time))
        assert (status is ControlStatus.OK) == (k not in (2, 3, 6))


def test_single_precision_does_not_drift(tmp_path):
    (tmp_path / "one").mkdir()
    repeated = recorded()
    for name, settings in (
        ("sine", GAITS["sine"]),
        ("again", {**GAITS["again"], "commands": repeated}),
    ):
        ours, theirs = pair("impedance", settings, tmp_path / name, "single")
        for start in (0.0, 3e6):  # a month later, in steps of a day that are whole turns
            for k in range(200):
                compare(ours, theirs, blank(start + 0.0101 * k), 1e-4)


def test_the_law_is_that_of_the_hosts(tmp_path):
    ours, _ = pair("impedance", GAITS["hold"], tmp_path)
    ours.step(0.0)
    law = ImpedanceLaw(ROBOT.muscles)
    law.rest_length[:], law.rest_rate[:] = ours.command["lengths"], ours.command["rates"]
    law.active[:] = True
    rng = np.random.default_rng(5)
    for _ in range(50):
        lengths, rates = HOME * rng.uniform(0.7, 1.4, COUNT), rng.standard_normal(COUNT)
        wanted = law.tensions(ours.command["tensions"], lengths, rates, 1e-3)
        np.testing.assert_allclose(ours.pull(lengths, rates), wanted, rtol=1e-14)
    ours.library.cards_relax(ours.command.ctypes.data_as(ctypes.c_void_p))
    least = np.maximum(law.tension_floor, [muscle.tension_min for muscle in ROBOT.muscles])
    np.testing.assert_array_equal(ours.pull(HOME, np.zeros(COUNT)), least)


def test_single_precision_is_close(tmp_path):
    ours, theirs = pair("impedance", GAITS["sine"], tmp_path, "single")
    for k in range(2000):
        compare(ours, theirs, blank(0.005 * k), 1e-5)


def test_what_has_no_form_in_c_is_refused():
    with pytest.raises(NotExportableError, match="expected: --precision double"):
        export_controller(make_controller("cpg", MODEL), precision="single")
    goal = dataclasses.replace(
        pattern("open"), goal=Network.random(2, 4, 8, np.random.default_rng(0)), goal_tension=5.0
    )
    item = make_controller("cpg", MODEL, pattern=goal, goal=[1.0, 0.0])
    with pytest.raises(NotExportableError, match="with a goal has no form in C"):
        export_controller(item)


def test_sanitizers_find_nothing(tmp_path):
    checks = ("-fsanitize=undefined,bounds", "-fno-sanitize-recover=all")
    try:
        ours, theirs = pair("cpg", PATTERNS["feedback"], tmp_path, extra=checks)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no sanitizers")
    rng = np.random.default_rng(6)
    for k in range(100):
        compare(ours, theirs, measured(0.01 * k, rng))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(("kind", "cases"), [("impedance", GAITS), ("cpg", PATTERNS)])
def test_the_example_prints_what_the_controller_tells(kind, cases, tmp_path):
    name = "replay" if kind == "impedance" else "open_loop"
    controller = make_controller(kind, MODEL, **cases[name])
    folder = write_controller(export_controller(controller), tmp_path / "out")
    done = subprocess.run(
        ["make", "-s", "run", "RUN_SECONDS=1.0"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "steps that were not OK: 0" in done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split(",")[1] == f"tension.{ROBOT.muscles[0].name}"
    controller.step_in_python()
    controller.reset()
    for row in rows:
        time, *numbers = map(float, row.split(","))
        (told,) = controller.step(blank(time))
        wanted = np.concatenate((told.values, told.rest_lengths, told.rest_rates))
        np.testing.assert_allclose(numbers, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize(("kind", "cases"), [("impedance", GAITS), ("cpg", PATTERNS)])
def test_compilers_find_nothing_to_warn_of(name, kind, cases, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    for case in cases:
        export = export_controller(make_controller(kind, MODEL, **cases[case]))
        folder = write_controller(export, tmp_path / case)
        sources = ["-fsyntax-only", "controller.c", "main.c"]
        subprocess.run([name, *FLAGS[:-1], *sources], cwd=folder, check=True)
        subprocess.run([name, "-std=gnu11", "-Wall", "-Werror", *sources], cwd=folder, check=True)


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"no {ARM}")
def test_a_pattern_fits_into_an_stm32f405():
    report = microcontroller_report(export_controller(make_controller("cpg", MODEL)))
    assert report["fits"]
    assert report["ram"] < 32 << 10
