"""The pattern generator as a controller: set-points, feedback, goals, starting, stopping, loss."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.cpg.morphology import places
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.control.cpg.parameters import PatternParameters, read_parameters, write_parameters
from cards_core.errors import CardsError, DescriptionError, ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.muscles.impedance import SLACK
from cards_core.robot.state import RobotState
from cards_core.shared_files import shared_folder

ROBOT = load("tetrahedral_6")  # five joints of eight cables
MODEL = ControlModel(ROBOT, "numeric")
NAMES = [muscle.name for muscle in ROBOT.muscles]
TREE = ROBOT.tree
HOME = MODEL.dynamics.update(TREE.home, np.zeros(TREE.nv)).muscle_lengths.copy()


def pattern(seed=0, *, closed=True, goal=False, **changes):
    rng = np.random.default_rng(seed)
    couplings = np.column_stack((rng.uniform(0, 1, 100), rng.uniform(-np.pi, np.pi, 100)))
    assert len(places(8)) == 100
    made = PatternParameters(
        Feedback(20.0, 0.04, 5.0, 0.02, 3.0) if closed else OpenLoop(1.2, 0.2, 0.4, 0.1),
        0.5,
        couplings,
        per_joint=8,
        feedback=Network.random(2, 4, 3, rng) if closed else None,
        goal=Network.random(4, 8, 8, rng) if goal else None,
        goal_tension=9.0 if goal else 0.0,
        tension=2.0,
    )
    return dataclasses.replace(made, **changes)


def controller(given=None, **parameters):
    return make_controller("cpg", MODEL, pattern=given, **parameters)


def state(time, *, q=None, lengths=HOME, tensions=None):
    """Return a state; without q, of a robot whose pose is not known."""
    q = np.full(TREE.nq, np.nan) if q is None else q
    tensions = np.zeros(len(NAMES)) if tensions is None else tensions
    return RobotState(time, q, np.full(TREE.nv, np.nan), muscle_lengths=lengths, tensions=tensions)


def run(item, duration, start=0.0, step=0.001, **given):
    for k in range(1 + round(duration / step)):
        command = item.step(state(start + step * k, **given))
    return command[0]


def test_a_reset_begins_as_a_new_controller_does():
    """The phases too: after a second of the rhythm they are elsewhere."""
    used = controller(pattern(closed=False))
    run(used, 1.0)
    used.reset()
    again, new = run(used, 0.2), run(controller(pattern(closed=False)), 0.2)
    np.testing.assert_array_equal(again.rest_rates, new.rest_rates)
    assert np.abs(new.rest_rates).max() > 0.0


def test_rates_are_those_of_the_printed_equations():
    """v0 = s r cos(theta), with theta and r integrated by SciPy, at a refresh after 0.6 s."""
    given = pattern(closed=False)
    item = controller(given, ramp_time=0.2, command=1.5)
    part = run(item, 0.6)
    edges = given.couple(ROBOT.muscles)
    n, a = len(NAMES), given.oscillators.convergence

    def derivatives(_, y):
        theta, r, rate = y.reshape(3, n)
        change = np.full(n, 2.0 * np.pi * (1.2 + 0.4 * 1.5))
        i, j = edges.targets, edges.sources
        np.add.at(change, i, r[j] * edges.weights * np.sin(theta[j] - theta[i] - edges.phases))
        return np.concatenate((change, rate, a * (0.25 * a * (0.35 - r) - rate)))

    found = solve_ivp(derivatives, (0.0, 0.6), np.zeros(3 * n), rtol=1e-11, atol=1e-12).y[:, -1]
    expected = 0.5 * found[n : 2 * n] * np.cos(found[:n])
    np.testing.assert_allclose(part.rest_rates, expected, atol=1e-8)
    np.testing.assert_array_equal(part.rest_lengths, HOME)
    np.testing.assert_array_equal(part.values, 2.0)
    assert part.names == tuple(NAMES)
    assert item.output.status is ControlStatus.OK


def test_rates_are_held_between_refreshes():
    item = controller(pattern(), refresh_rate=50.0)
    rates = []
    for k in range(100):
        (part,) = item.step(state(0.001 * k))
        rates.append(part.rest_rates.copy())
    changes = [k for k in range(1, 100) if not np.array_equal(rates[k], rates[k - 1])]
    assert changes == [20, 40, 60, 80]
    assert not rates[0].any()


def test_feedback_is_the_network_of_lengths_and_tensions():
    given = pattern()
    item = controller(given, ramp_time=0.0)
    rng = np.random.default_rng(1)
    lengths = HOME * rng.uniform(0.8, 1.2, HOME.size)
    tensions = rng.uniform(0.0, 70.0, HOME.size)
    run(item, 0.05, lengths=lengths, tensions=tensions)
    inputs = np.stack(((lengths - HOME) / HOME, (tensions - 35.0) / 70.0), axis=1)
    expected = 2.0 * given.feedback(inputs) - 1.0
    signals = {signal.name: signal for signal in item.signals}
    np.testing.assert_allclose(signals["feedback"].read().reshape(-1, 3), expected, atol=1e-14)
    assert signals["feedback"].names[:3] == tuple(
        f"{NAMES[0]}.{x}" for x in ("omega", "r", "theta")
    )
    without = controller(given, ramp_time=0.0, feedback=False)
    run(without, 0.05, lengths=lengths, tensions=tensions)
    assert np.ptp(signals["phase"].read() - without.oscillators.state[:, 0]) > 1e-3
    assert np.ptp(without.oscillators.state[:, 1]) < 1e-12


def test_a_goal_along_the_heading_is_an_angle():
    given = dataclasses.replace(
        pattern(goal=True), goal=Network.random(2, 3, 8, np.random.default_rng(5))
    )
    links = [link.name for link in ROBOT.links]
    first = None
    for turn in (0.0, 2.0):  # the world turns, and the robot and its goal with it
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        q = _turned(TREE.home, turn)
        poses = dict(zip(links, MODEL.dynamics.link_poses(q), strict=True))

        def centre(name, poses=poses):
            com = ROBOT.link(name).inertia.com
            return (poses[name][:3, :3] @ com + poses[name][:3, 3])[:2]

        goal = rotation @ np.array([3.0, -2.0])
        heading, to_goal = centre("v0") - centre("v1"), goal - centre("v5")
        angle = np.angle(complex(*to_goal) / complex(*heading))
        item = controller(given, goal=goal)
        values = run(item, 0.02, q=q).values.reshape(5, 8)
        expected = 9.0 * 2.0 * given.goal([np.cos(angle), np.sin(angle)])
        np.testing.assert_allclose(values, np.tile(expected, (5, 1)), rtol=1e-12)
        first = values if first is None else first
        np.testing.assert_allclose(values, first, rtol=1e-12)


def _turned(q, angle):
    """Turn free bodies about the world's z axis: x y z, quaternion x y z w each."""
    rotation = Rotation.from_rotvec([0.0, 0.0, angle])
    out = q.reshape(-1, 7).copy()
    out[:, :3] = rotation.apply(out[:, :3])
    out[:, 3:] = (rotation * Rotation.from_quat(out[:, 3:])).as_quat()
    return out.ravel()


def test_a_network_of_other_inputs_is_refused():
    with pytest.raises(ParameterError, match=r"3 inputs; expected 4 .* or 2"):
        dataclasses.replace(
            pattern(goal=True), goal=Network.random(3, 3, 8, np.random.default_rng(5))
        )


def test_goal_sets_the_tensions_of_every_joint_alike():
    given = pattern(goal=True)
    target = (3.0, -2.0)
    item = controller(given, goal=target)
    part = run(item, 0.02, q=TREE.home)
    poses = {
        link.name: (pose, link)
        for link, pose in zip(ROBOT.links, MODEL.dynamics.link_poses(TREE.home), strict=True)
    }

    def centre(name):
        pose, link = poses[name]
        return (pose[:3, :3] @ link.inertia.com + pose[:3, 3])[:2]

    to_goal = np.array(target) - centre("v5")
    heading = centre("v0") - centre("v1")
    inputs = np.concatenate([v / np.linalg.norm(v) for v in (to_goal, heading)])
    expected = 9.0 * 2.0 * given.goal(inputs)
    np.testing.assert_allclose(part.values.reshape(5, 8), np.tile(expected, (5, 1)), rtol=1e-12)
    assert part.values.min() >= 0.0
    assert part.values.max() <= 18.0
    # a pose that is not known is an answer too
    run(item, 0.05, start=1.0)
    assert item.output.status is ControlStatus.INVALID_STATE
    assert "coordinate" in item.reason


def test_start_and_stop_are_ramps():
    item = controller(pattern(), ramp_time=1.0)
    values = {spec.name: spec.default for spec in controller_parameters("cpg", ROBOT)}
    values |= {"tension": np.full(40, 2.0), "rest_length": HOME, "feedback": True}
    run(item, 0.5)
    half = np.abs(item.command[0].rest_rates) / np.abs(0.5 * item.oscillators.output)
    np.testing.assert_allclose(half, 0.5, atol=1e-9)
    item.change(values | {"active": False})
    part = run(item, 0.3, start=0.5)
    ratio = np.abs(part.rest_rates) / np.abs(0.5 * item.oscillators.output)
    np.testing.assert_allclose(ratio, 0.2, atol=1e-9)
    part = run(item, 1.0, start=0.8)
    assert not part.rest_rates.any()
    np.testing.assert_array_equal(part.rest_lengths, HOME)  # the shape is held
    np.testing.assert_array_equal(part.values, 2.0)
    assert item.output.status is ControlStatus.OK


def test_lost_measurement_lets_go_and_comes_back():
    item = controller(pattern(), ramp_time=0.2)
    run(item, 0.5)
    tensions = np.zeros(40)
    tensions[7] = np.nan
    part = run(item, 0.1, start=0.5, tensions=tensions)
    assert item.output.status is ControlStatus.INVALID_STATE
    assert NAMES[7] in item.reason
    np.testing.assert_allclose(part.values, 1.0, atol=1e-9)
    np.testing.assert_allclose(part.rest_lengths, 1.5 * HOME, rtol=1e-9)
    run(item, 0.2, start=0.6, tensions=tensions)
    part = item.step(state(0.801, tensions=tensions))[0]
    assert not part.values.any()
    assert (part.rest_lengths == SLACK).all()
    part = run(item, 0.5, start=0.81)
    assert item.output.status is ControlStatus.OK
    assert item.reason == ""
    np.testing.assert_array_equal(part.values, 2.0)
    assert np.isfinite(item.oscillators.state).all()
    item.step(state(np.nan))
    assert item.output.status is ControlStatus.INVALID_STATE


def test_oscillators_that_fail_let_go_until_they_begin_anew():
    given = pattern()
    wild = dataclasses.replace(given, couplings=given.couplings * (1e7, 1.0))
    item = controller(wild, ramp_time=0.1)
    run(item, 0.3)
    assert item.output.status is ControlStatus.INVALID_STATE
    assert "evaluations" in item.reason
    assert not item.step(state(1.2))[0].values.any()
    item.reset()
    assert item.step(state(0.0))[0].values.all()
    assert item.reason == ""


def test_another_file_begins_softly(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    write_parameters(pattern(1), first)
    write_parameters(pattern(2, closed=False), second)
    item = make_controller("cpg", MODEL)
    values = {spec.name: spec.default for spec in controller_parameters("cpg", ROBOT)}
    values |= {"tension": np.zeros(40), "rest_length": HOME}
    part = run(item, 0.1)
    assert not part.rest_rates.any()  # no pattern: muscles hold their lengths
    item.change(values | {"file": str(first), "feedback": True})
    run(item, 2.0, start=0.1)
    oscillators = item.oscillators
    assert oscillators.kind == "feedback"
    with pytest.raises(ParameterError, match="feedback is true"):
        item.change(values | {"file": str(second), "feedback": True})
    with pytest.raises(UnknownNameError, match=r"absent\.yaml"):
        item.change(values | {"file": str(tmp_path / "absent.yaml")})
    broken = tmp_path / "broken.yaml"
    broken.write_text("format: cpg/1\noscillators: {kind: feedbak}\n")
    with pytest.raises(DescriptionError, match=r"broken\.yaml"):
        item.change(values | {"file": str(broken)})
    assert item.oscillators is oscillators
    before = item.command[0].rest_rates.copy()
    assert np.abs(before).max() > 0.05
    item.change(values | {"file": str(second), "feedback": False})
    part = run(item, 0.011, start=2.11)
    assert item.oscillators.kind == "open_loop"
    assert np.abs(part.rest_rates).max() < 0.01


@pytest.mark.parametrize(
    ("given", "parameters", "message"),
    [
        (pattern(), {"goal": (1.0, 2.0)}, "without a network for goals"),
        (pattern(goal=True), {"goal": (1.0, 2.0, 3.0)}, "expected x and y"),
        (pattern(goal=True), {"goal": (1.0, np.nan)}, "expected x and y"),
        (pattern(closed=False), {"feedback": True}, "without a network of feedback"),
        (pattern(), {"command": 2.0}, "take none"),
        (pattern(), {"tension": 71.0}, "at most the muscle's largest tension, 70 N"),
        (pattern(), {"tension": np.nan}, "finite number"),
        (pattern(), {"rest_length": 0.0}, "rest_length"),
        (pattern(), {"refresh_rate": 0.0}, "refresh_rate"),
        (pattern(), {"ramp_time": -1.0}, "ramp_time"),
        (pattern(), {"muscles": ["absent*"]}, "no muscle is called 'absent\\*'"),
        (pattern(), {"muscles": ["*v0-v1*", "*v1-v2.outer_left"]}, "9 cables with 8 at every"),
        (pattern(), {"heading_links": ["v0", "v0"]}, "two different links"),
        (pattern(), {"heading_links": ["v0"]}, "two different links"),
    ],
)
def test_mistakes(given, parameters, message):
    with pytest.raises(ParameterError, match=message):
        controller(given, **parameters)


def test_links_that_there_are_not():
    with pytest.raises(UnknownNameError, match="v7"):
        controller(pattern(), reference_link="v7")


def test_pattern_of_another_structure():
    other = ControlModel(load("prism_3"), "numeric")
    with pytest.raises(CardsError, match="multiple of the cables at a joint"):
        make_controller("cpg", other, pattern=pattern())
    file = str(shared_folder() / "config/patterns/tetraspine.yaml")
    words = "file: pattern .*tetraspine.yaml does not fit these 9 muscles: .*of this structure"
    values = {spec.name: spec.default for spec in controller_parameters("cpg", other.robot)}
    with pytest.raises(ParameterError, match=words):
        make_controller("cpg", other).change(values | {"file": file})


def test_muscles_at_a_joint_have_tensions_of_their_own(tmp_path):
    joint = (1.0, 0.0, 2.0, 3.0, 0.0, 0.5, 4.0, 6.0)
    given = pattern(joint_tensions=joint)
    write_parameters(given, tmp_path / "p.yaml")
    again = read_parameters(tmp_path / "p.yaml")
    assert again.joint_tensions == joint
    item = controller(again)
    part = run(item, 0.02, q=TREE.home)
    np.testing.assert_allclose(
        part.values.reshape(5, 8), np.tile(2.0 + np.array(joint), (5, 1)), rtol=1e-12
    )
    # what the parameter says has priority
    part = run(controller(again, tension=7.0), 0.02, q=TREE.home)
    np.testing.assert_array_equal(part.values, 7.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2, 3]", "3 tensions of muscles at a joint; expected 8"),
        ("[1, 2, 3, 4, 5, 6, 7, -8]", ">= 0"),
        ("5", "joint_tensions"),
    ],
)
def test_tensions_of_a_joint_that_do_not_fit_are_refused(text, words, tmp_path):
    path = tmp_path / "p.yaml"
    write_parameters(pattern(), path)
    path.write_text(path.read_text() + f"joint_tensions: {text}\n")
    with pytest.raises(DescriptionError, match=words):
        read_parameters(path)


def test_tensions_of_a_joint_need_whole_joints():
    with pytest.raises(ParameterError, match="12 muscles; expected a multiple of the 8"):
        pattern(joint_tensions=(1.0,) * 8).tensions(12)


def test_parameters_of_a_generator_without_a_file():
    specs = {spec.name: spec for spec in controller_parameters("cpg", ROBOT)}
    fixed = {name: spec.default for name, spec in specs.items() if spec.length is None}
    assert fixed == {
        "muscles": ["*"],
        "file": "",
        "active": True,
        "feedback": False,
        "command": 0.0,
        "goal": [],
        "refresh_rate": 100.0,
        "ramp_time": 1.0,
        "reference_link": "",
        "heading_links": [],
    }
    assert specs["tension"].check(specs["tension"].default).tolist() == [0.0] * 40
    assert specs["rest_length"].default == pytest.approx(HOME.tolist())
    assert {name for name, spec in specs.items() if spec.live} == {
        *("file", "active", "feedback", "command", "goal", "tension", "rest_length")
    }
    assert {name: spec.unit for name, spec in specs.items() if spec.unit} == {
        "goal": "m",
        "tension": "N",
        "rest_length": "m",
        "refresh_rate": "Hz",
        "ramp_time": "s",
    }
    for name, least, most in (
        ("refresh_rate", 0.1, 1e4),
        ("ramp_time", 0.0, 60.0),
        ("tension", 0.0, 1e20),
        ("rest_length", 1e-300, 1e20),
    ):
        assert np.all(specs[name].check(least) == least)
        assert np.all(specs[name].check(most) == most)
        for bad in (0.0 if least == 1e-300 else np.nextafter(least, -1.0), 1.01 * most):
            with pytest.raises(ParameterError, match=name):
                specs[name].check(bad)


def test_a_pattern_says_what_its_parameters_are(tmp_path):
    write_parameters(pattern(tension=3.0), tmp_path / "p.yaml")
    given = {"file": str(tmp_path / "p.yaml")}
    specs = {spec.name: spec.default for spec in controller_parameters("cpg", ROBOT, given)}
    assert specs["feedback"] is True
    assert specs["tension"] == [3.0] * 40


def test_without_a_pattern_lengths_are_held():
    item = controller(tension=4.0, rest_length=0.3)
    part = run(item, 0.5)
    assert not part.rest_rates.any()
    assert part.values.tolist() == [4.0] * 40
    assert part.rest_lengths.tolist() == [0.3] * 40
    assert item.output.tensions.tolist() == [4.0] * 40
    parts = item.pattern_parts
    assert (parts.pattern, parts.active, parts.feedback, parts.goal) == (None, True, False, False)
    assert parts.ramp == 1.0


def test_without_a_ramp_the_first_refresh_has_all_of_the_amplitude():
    item = controller(pattern(closed=False), ramp_time=0.0)
    part = run(item, 0.3)
    assert part.rest_rates == pytest.approx(0.5 * item.oscillators.output)
    assert np.abs(part.rest_rates).max() > 0.01


@pytest.mark.parametrize(("gap", "whole"), [(0.99, True), (1.02, False)])
def test_after_a_long_gap_the_rhythm_goes_on_from_where_it_was(gap, whole):
    """What lies in between is not made up for, and it begins softly."""
    item = controller(pattern(closed=False), ramp_time=0.2)
    run(item, 0.5)
    phase = item.oscillators.state[:, 0].copy()
    other = controller(pattern(closed=False), ramp_time=0.2)
    run(other, 0.5)
    last = 0.5
    part = item.step(state(last + gap))[0]
    other.oscillators.advance(gap if whole else 0.01)
    assert item.oscillators.state[:, 0] == pytest.approx(other.oscillators.state[:, 0], abs=1e-6)
    assert (item.oscillators.state[:, 0] > phase).any()
    share = 1.0 if whole else 0.05
    assert part.rest_rates == pytest.approx(share * 0.5 * item.oscillators.output, abs=1e-9)


def test_time_that_goes_back_advances_nothing():
    item = controller(pattern(closed=False), ramp_time=0.2)
    run(item, 0.5)
    before = item.oscillators.state.copy()
    item.step(state(0.2))
    np.testing.assert_array_equal(item.oscillators.state, before)
    item.step(state(0.205))  # a period later it goes on
    np.testing.assert_array_equal(item.oscillators.state, before)
    item.step(state(0.21))
    assert np.abs(item.oscillators.state - before).max() > 0.0


def test_signals_are_what_it_is_doing():
    item = controller(pattern())
    lengths = 1.05 * HOME
    run(item, 0.3, lengths=lengths)
    signals = {signal.name: signal for signal in item.signals}
    fields = {name: signal.field for name, signal in signals.items()}
    assert fields == {
        "phase": "position",
        "amplitude": "position",
        "rate_set_point": "velocity",
        "feedback": "effort",
    }
    assert np.array_equal(signals["phase"].read(), item.oscillators.state[:, 0])
    assert np.array_equal(signals["amplitude"].read(), item.oscillators.state[:, 1])
    assert np.array_equal(signals["rate_set_point"].read(), item.command[0].rest_rates)
    assert list(signals["feedback"].names[:4]) == [
        *(f"{NAMES[0]}.{term}" for term in ("omega", "r", "theta")),
        f"{NAMES[1]}.omega",
    ]
    inputs = np.column_stack((np.full(40, 0.05), np.full(40, -0.5)))
    expected = 2.0 * pattern().feedback(inputs) - 1.0
    assert signals["feedback"].read() == pytest.approx(expected.ravel())
    item.reset()
    assert not signals["feedback"].read().any()


def test_numbers_that_do_not_fit_change_nothing():
    item = controller(pattern(closed=False), tension=1.0)
    values = {spec.name: spec.default for spec in controller_parameters("cpg", ROBOT)}
    values |= {"tension": np.full(40, 5.0), "rest_length": HOME}
    for change, words in (
        ({"command": np.inf}, "command"),
        ({"goal": np.array([1.0])}, "expected x and y"),
        ({"tension": np.full(40, np.nextafter(70.0, 71.0))}, "largest tension, 70 N"),
    ):
        with pytest.raises(ParameterError, match=words):
            item.change(values | change)
        assert item.set_point_parts.tension.tolist() == [1.0] * 40
    item.change(values | {"command": -2.0, "tension": np.full(40, 70.0)})
    assert item.set_point_parts.tension.tolist() == [70.0] * 40
