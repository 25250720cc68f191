"""Experiments of muscle relaxation control: what runs leave, and how they are judged."""

import numpy as np
import pytest

from cards_bringup.reproduce import handle, relaxation_run
from cards_bringup.reproduce.experiment import FinishedRun, judge
from cards_bringup.reproduce.muscle_relaxation import HANDLE_SETUP
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.relaxation_run import COLUMNS, RECORD, RelaxationRun
from cards_core.errors import CardsError
from cards_core.formats import load

MUSCLES, JOINTS = 20, 10


def made(folder, setup, *, change=lambda columns: columns, latched=None):
    """A run that was never simulated: everything constant, then changed."""
    time = np.arange(0.0, setup["duration"], 0.02)
    shapes = dict.fromkeys(("tensions", "temperatures", "dl", "given"), (len(time), MUSCLES))
    shapes |= dict.fromkeys(("q", "error"), (len(time), JOINTS))
    columns = {name: np.zeros(shape) for name, shape in shapes.items()}
    columns |= {"time": time, "contact": np.full(len(time), 100.0)}
    columns["tensions"] += 100.0
    columns["temperatures"] += 25.0
    change(columns)
    folder.mkdir(parents=True)
    np.savez(folder / RECORD, **columns)
    return FinishedRun(folder.name, setup, folder, {"latched_at_s": latched})


def verdicts(one, runs):
    found = judge(one.claims, one.evaluate(runs).values)
    return {item.claim.value: item.verdict for item in found}


@pytest.mark.parametrize("key", ["002.A", "002.B", "002.C", "002.D"])
def test_runs_that_do_not_differ_reproduce_nothing(tmp_path, key):
    one = OWN[key]
    runs = {name: made(tmp_path / name, one.setup_of(name)) for name in one.runs}
    outcome = one.evaluate(runs)
    assert {claim.value for claim in one.claims} <= set(outcome.values)
    wrong = [name for name, verdict in verdicts(one, runs).items() if verdict == "not reproduced"]
    assert len(wrong) >= {"002.A": 2, "002.B": 2, "002.C": 3, "002.D": 1}[key]


def test_a_hot_arm_is_told_from_a_cool_one(tmp_path):
    one = OWN["002.B"]

    def hot(columns):
        columns["temperatures"] += 0.5 * columns["time"][:, None]
        columns["tensions"] += 50.0

    def cool(columns):
        columns["temperatures"] += 0.2 * columns["time"][:, None]

    def between(columns):
        columns["tensions"] += 20.0

    changes = {
        "without": hot,
        "with": cool,
        "dtheta_max_0.02": between,
        "dtheta_max_0.05": between,
    }
    runs = {
        name: made(
            tmp_path / name,
            one.setup_of(name),
            change=changes[name],
            latched=110.0 if name == "without" else None,
        )
        for name in one.runs
    }
    assert set(verdicts(one, runs).values()) == {"reproduced"}
    values = one.evaluate(runs).values
    assert values["crosses_soft"] == pytest.approx(70.02)
    assert values["crosses_hard"] == pytest.approx(110.0)
    assert values["hottest_with"] == pytest.approx(25.0 + 0.2 * 110.0, abs=0.02)


def test_a_run_leaves_a_row_each_period(tmp_path):
    one = OWN["002.C"]
    setup = one.setup_of("with_1_3") | {"duration": 0.3}
    shares = []
    numbers = relaxation_run.relaxation_run(setup, tmp_path, shares.append)
    run = RelaxationRun.load(FinishedRun("with_1_3", setup, tmp_path, numbers))
    np.testing.assert_allclose(run.time, np.arange(15) * 0.02, atol=1e-9)
    assert run.tensions.shape == run.dl.shape == run.temperatures.shape == (15, MUSCLES)
    assert run.q.shape == run.error.shape == (15, JOINTS)
    assert np.all(run.tensions[-1] >= 10.0)
    assert np.isnan(run.latched_at)
    assert shares[0] == pytest.approx(0.0, abs=0.01)
    # each hand carries its half of the box
    own = load("musashi_like")
    for side in ("left", "right"):
        mass = run.robot.link(f"{side}_hand").inertia.mass
        assert mass == pytest.approx(own.link(f"{side}_hand").inertia.mass + 2.5)


def test_a_record_that_is_broken_is_named(tmp_path):
    setup = OWN["002.A"].setup_of("with")
    run = FinishedRun("with", setup, tmp_path, {"latched_at_s": None})
    with pytest.raises(CardsError, match=RECORD):
        RelaxationRun.load(run)
    np.savez(tmp_path / RECORD, **{name: np.zeros(1) for name in COLUMNS[:-1]})
    with pytest.raises(CardsError, match="contact"):
        RelaxationRun.load(run)


@pytest.fixture(scope="module")
def strokes():
    return handle.handle_reference(load("musashi_like"), HANDLE_SETUP["reference"])


def test_strokes_are_smooth_and_rest_in_between(strokes):
    step = 1e-4
    for t in np.linspace(5.2, 17.7, 40):
        _, yd, ydd = strokes(t)
        before, after = strokes(t - step), strokes(t + step)
        np.testing.assert_allclose(yd, (after[0] - before[0]) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(ydd, (after[1] - before[1]) / (2 * step), atol=1e-4)
    for rest in (2.0, 11.0, 20.0):
        assert np.array_equal(strokes(rest)[1], np.zeros(JOINTS))
    assert np.abs(strokes(11.0)[0] - strokes(2.0)[0]).max() > 0.2
    assert strokes.duration == HANDLE_SETUP["duration"]


def test_both_hands_hold_the_handle(strokes):
    """It begins level with the arms at its largest angle: the joints bring both together."""
    robot = load("musashi_like")
    host = handle.handle_world(robot, strokes(11.0)[0], dt=1e-3)
    world = host.simulator.world

    def gaps():
        return [
            np.linalg.norm(
                world.pose(f"{robot.name}::{side}_hand").apply(
                    robot.frame(f"{side}_grip").pose.translation
                )
                - world.pose(f"handle::{side}_end").translation
            )
            for side in ("left", "right")
        ]

    assert min(gaps()) > 0.1
    turned = []
    for _ in range(400):
        host.simulator.step([60.0] * MUSCLES)
        turned.append(np.arccos(world.pose("handle::rod").rotation[2, 2]))
    assert max(gaps()) < 3e-3
    assert np.degrees(max(turned)) > 5.0


def test_a_handle_out_of_reach_is_refused():
    setup = HANDLE_SETUP["reference"] | {"angle": 1.8}
    with pytest.raises(CardsError, match="miss the handle by"):
        handle.handle_reference(load("musashi_like"), setup)
