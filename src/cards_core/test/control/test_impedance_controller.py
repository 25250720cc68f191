"""Set-points of the impedance law over time: sine gait, turning, replay, mistakes."""

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.impedance import ImpedanceController
from cards_core.control.recorded_commands import RecordedCommands, read_commands
from cards_core.errors import CardsError, ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.state import RobotState

ROBOT = load("tetraspine_hardware")  # three segments: two joints of six cables
MODEL = ControlModel(ROBOT, "numeric")
NAMES = [muscle.name for muscle in ROBOT.muscles]


def controller(**given):
    return make_controller("impedance", MODEL, **given)


def told(item, time):
    """Return T0, l0, v0 by muscle at a time."""
    q = np.full(ROBOT.tree.nq, np.nan)  # it needs no pose
    (part,) = item.step(RobotState(time, q, np.full(ROBOT.tree.nv, np.nan)))
    assert part.kind == "impedance"
    columns = zip(part.values, part.rest_lengths, part.rest_rates, strict=True)
    return {name: tuple(map(float, row)) for name, row in zip(part.names, columns, strict=True)}


def test_it_holds_lengths_at_home_with_the_tension():
    found = told(controller(tension=12.0), 3.0)
    assert list(found) == NAMES
    tension, length, rate = found["v0-v1.outer_left"]
    assert (tension, rate) == (12.0, 0.0)
    # a straight cable between points that are 23 cm apart, on the surfaces of their rods
    assert length == pytest.approx(0.23, abs=0.01)


def test_sine_gait_is_that_of_the_thesis():
    """v0 = a A sin(w t + 2 pi n i/s + phi), sampled at the refresh rate."""
    item = controller(
        gait="sine",
        amplitude=0.5,
        frequency=0.4,
        body_waves=2.0,
        inside_factor=-0.8,
        top_phase=0.5 * np.pi,
        tension=35.0,
    )
    start = 7.3
    for step in range(400):
        found = told(item, start + 0.001 * step)
        held = 0.05 * (step // 50)
        for joint, group in enumerate(("v0-v1", "v1-v2")):
            angle = 2.0 * np.pi * (0.4 * held + 2.0 * joint / 3.0)
            for side in ("left", "right"):
                outside = found[f"{group}.outer_{side}"][2]
                assert outside == pytest.approx(0.5 * np.sin(angle), abs=1e-9)
                inside = found[f"{group}.inner_{side}"][2]
                assert inside == pytest.approx(-0.8 * outside, abs=1e-9)
            top = found[f"{group}.outer_top"][2]
            assert top == pytest.approx(0.5 * np.cos(angle), abs=1e-9)
    item.reset()
    assert told(item, 100.0)["v0-v1.outer_left"][2] == 0.0


def test_turning_and_rearing_are_offsets_of_the_tension():
    item = controller(tension=35.0)
    values = {spec.name: spec.default for spec in controller_parameters("impedance", ROBOT)}
    values |= {"tension": np.full(12, 35.0), "rest_length": np.full(12, 0.2)}
    item.change(values | {"turn": 5.0, "rear": 3.0})
    found = {name: row[0] for name, row in told(item, 0.0).items()}
    for name, tension in found.items():
        extra = 5.0 * ("left" in name) + 3.0 * ("outer_top" in name)
        assert tension == 35.0 + extra, name
    item.change(values | {"turn": -4.0})
    found = {name: row[0] for name, row in told(item, 0.01).items()}
    assert {name for name, tension in found.items() if tension == 39.0} == {
        name for name in NAMES if "right" in name
    }
    with pytest.raises(ParameterError, match="largest tension"):
        item.change(values | {"rear": 1e4})
    assert found == {name: row[0] for name, row in told(item, 0.02).items()}


def test_frequency_changes_without_a_jump():
    item = controller(gait="sine", amplitude=1.0, frequency=1.0, refresh_rate=1000.0)
    values = {spec.name: spec.default for spec in controller_parameters("impedance", ROBOT)}
    values |= {"tension": np.zeros(12), "rest_length": np.full(12, 0.2), "amplitude": 1.0}
    rates = []
    for step in range(2000):
        if step == 1000:
            item.change(values | {"frequency": 2.5})
        rates.append(told(item, 0.001 * step)["v0-v1.outer_left"][2])
    assert np.abs(np.diff(rates)).max() < 2.0 * np.pi * 2.5 * 1.01e-3


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_recorded_commands_are_replayed(ending, tmp_path):
    file = tmp_path / f"a.{ending}"
    if ending == "csv":
        file.write_text(
            "time,tension.v0-v1.inner_top,rest_rate.v1-v2.outer_left\n0,10,\n0.5,,0.02\n1,20,-0.01\n"
        )
    else:
        tension, rate = np.full((3, 12), np.nan), np.full((3, 12), np.nan)
        tension[:, NAMES.index("v0-v1.inner_top")] = (10.0, np.nan, 20.0)
        rate[:, NAMES.index("v1-v2.outer_left")] = (np.nan, 0.02, -0.01)
        np.savez(file, time=[0.0, 0.5, 1.0], tension=tension, rest_rate=rate)
    commands = read_commands(file, NAMES)
    for repeat, last in ((False, (20.0, -0.01)), (True, (10.0, 0.0))):
        item = controller(
            gait="replay", commands=commands, repeat=repeat, tension=1.0, refresh_rate=100.0
        )
        for time, expected in (
            (0.0, (10.0, 0.0)),
            (0.49, (10.0, 0.0)),
            (0.51, (10.0, 0.02)),
            (1.02, last),
        ):
            found = told(item, 5.0 + time)
            row = found["v0-v1.inner_top"][0], found["v1-v2.outer_left"][2]
            assert row == pytest.approx(expected), time
            assert found["v0-v1.outer_left"][0] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,tension.v0-v1.inner_top\n0,1\n", "no column 'time'"),
        ("time,tenson.v0-v1.inner_top\n0,1\n", "tenson"),
        ("time,tension.v0-v1.iner_top\n0,1\n", "iner_top"),
        ("time,tension.v0-v1.inner_top\n0,x\n", r"a\.csv:2"),
        (
            "time,rest_length.v0-v1.inner_top\n0,1\n2,-1\n",
            "'v0-v1.inner_top' is negative, -1, at 2 s",
        ),
        (
            "time,rest_rate.v0-v1.inner_top\n0,inf\n",
            "is infinite, inf, at 0 s .expected: a number",
        ),
        ("time,tension.v0-v1.inner_top\n1,3\n0,3\n", "row 2 has the time 0 s"),
        ("time,tension.v0-v1.inner_top\n0,1\n0,2\n", "increasing"),
        ("time,tension.v0-v1.inner_top\n0,-1\n", "negative"),
        ("time\n0\n", "no set-points"),
        ("time,tension.v0-v1.inner_top\n", "at least one time"),
    ],
)
def test_mistakes_in_recorded_commands(text, words, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(CardsError, match=words):
        read_commands(tmp_path / "a.csv", NAMES)


def test_mistakes_in_parameters(tmp_path):
    for given, words in (
        ({"gait": "walk"}, "hold, sine, replay"),
        ({"gait": "replay"}, "without a file"),
        ({"tension": [1.0, 2.0]}, "expected one number or 12"),
        ({"tension": np.nan}, "finite"),
        ({"rest_length": 0.0}, "rest_length"),
        ({"tension": 1e5}, "largest tension"),
        ({"groups": {"left": ["*port*"]}}, "no muscle is called"),
        ({"groups": {"muscles": ["*port*"]}}, "no muscle is called"),
    ):
        with pytest.raises(ParameterError, match=words):
            controller(**given)
    with pytest.raises(UnknownNameError):
        controller(stiffness=300.0)  # of the muscles, not of the controller
    values = ParameterSet({"gait": "replay", "file": str(tmp_path / "none.csv")})
    with pytest.raises(CardsError, match="does not exist"):
        ImpedanceController.from_parameters(MODEL, values)


def test_a_recorded_tension_that_no_host_would_take_is_refused(tmp_path):
    name, most = ROBOT.muscles[2].name, ROBOT.muscles[2].tension_max
    file = tmp_path / "run.csv"
    file.write_text(f"time,tension.{name}\n0,1\n0.25,{most + 1}\n")
    names = [muscle.name for muscle in ROBOT.muscles]
    words = f"T0 of '{name}' is {most + 1:g} N at 0.25 s of the file"
    with pytest.raises(ParameterError, match=words):
        ImpedanceController(MODEL, gait="replay", commands=read_commands(file, names))


def test_some_muscles_are_left_alone_and_parameters_are_per_muscle():
    values = ParameterSet({"muscles": ["v0-v1.*"], "tension": [float(i) for i in range(6)]})
    item = ImpedanceController.from_parameters(MODEL, values)
    assert item.names == tuple(NAMES[:6])
    assert [row[0] for row in told(item, 0.0).values()] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert item.output.status is ControlStatus.OK
    state = RobotState(np.nan, np.zeros(ROBOT.tree.nq), np.zeros(ROBOT.tree.nv))
    (part,) = item.step(state)
    assert item.output.status is ControlStatus.INVALID_STATE
    assert not part.values.any()


def test_parameters_without_values_hold_lengths():
    specs = {spec.name: spec for spec in controller_parameters("impedance", ROBOT)}
    fixed = {name: spec.default for name, spec in specs.items() if spec.length is None}
    assert fixed == {
        "muscles": ["*"],
        "inside": ["*inner*"],
        "left": ["*left*"],
        "right": ["*right*"],
        "top": ["*outer_top*"],
        "gait": "hold",
        "amplitude": 0.0,
        "frequency": 0.4,
        "body_waves": 0.5,
        "inside_factor": -0.8,
        "top_phase": 0.0,
        "turn": 0.0,
        "rear": 0.0,
        "refresh_rate": 20.0,
        "file": "",
        "repeat": False,
    }
    assert specs["tension"].check(specs["tension"].default).tolist() == [0.0] * 12
    assert specs["rest_length"].default == pytest.approx(controller().set_point_parts.home)
    assert {name for name, spec in specs.items() if spec.live} == {
        *("tension", "rest_length", "amplitude", "frequency", "body_waves"),
        *("inside_factor", "top_phase", "turn", "rear"),
    }
    for name, least, most in (
        ("tension", 0.0, 1e20),
        ("rest_length", 1e-300, 1e20),
        ("amplitude", 0.0, 1e20),
        ("frequency", 0.0, 1e20),
        ("body_waves", 0.0, 1e20),
        ("rear", 0.0, 1e20),
        ("turn", -1e20, 1e20),
        ("inside_factor", -1e20, 1e20),
        ("refresh_rate", 0.1, 1e4),
    ):
        assert np.all(specs[name].check(least) == least)
        assert np.all(specs[name].check(most) == most)
        below = 0.0 if least == 1e-300 else least - max(1e-9, 1e-3 * abs(least))
        for bad in (below, 1.001 * most, np.nan):
            with pytest.raises(ParameterError, match=name):
                specs[name].check(bad)


def test_arguments_have_the_defaults_of_the_parameters():
    item = ImpedanceController.from_parameters(MODEL, ParameterSet({}))
    for made in (item, controller()):
        parts = made.gait_parts
        assert (parts.wave, parts.recorded, parts.repeat) == (False, None, False)
        assert (parts.amplitude, parts.frequency) == (0.0, 0.4)
        inner = np.array(["inner" in name for name in NAMES])
        assert parts.factor.tolist() == np.where(inner, -0.8, 1.0).tolist()
        # half a wave along a body of three segments: 60 degrees from joint to joint
        second = np.array([name.startswith("v1-v2") for name in NAMES])
        assert parts.phase == pytest.approx(np.where(second, np.pi / 3.0, 0.0))
        assert made.set_point_parts.period == 0.05
        assert not made.needs_joints
        assert not made.set_point_parts.tension.any()


def test_numbers_of_the_gait_are_checked():
    for given, words in (
        ({"amplitude": -1e-9}, "amplitude"),
        ({"frequency": -1e-9}, "frequency"),
        ({"body_waves": -1e-9}, "body_waves"),
        ({"rear": -1e-9}, "rear"),
        ({"turn": np.inf}, "turn"),
        ({"turn": -1.1e9}, "turn is .* >= -1e"),
        ({"inside_factor": np.nan}, "inside_factor"),
        ({"commands": read_nothing()}, "gait is 'hold' with a file of commands"),
    ):
        with pytest.raises(ParameterError, match=words):
            controller(**given)
    assert controller(inside_factor=-1e9, top_phase=-2.0).gait_parts.factor.min() == -1e9


def read_nothing():
    return RecordedCommands(np.zeros(1), {"rest_rate": np.zeros((1, 12))})


@pytest.mark.parametrize("python", [False, True])
def test_a_clock_that_is_set_back_does_not_turn_the_gait_back(python):
    item = controller(gait="sine", amplitude=1.0, frequency=0.25, refresh_rate=100.0)
    if python:
        item.step_in_python()
    for step in range(101):
        rate = told(item, 7.0 + 0.01 * step)["v0-v1.outer_left"][2]
    assert rate == pytest.approx(1.0)  # a quarter of a turn
    assert told(item, 3.0)["v0-v1.outer_left"][2] == pytest.approx(1.0)
    assert told(item, 4.0)["v0-v1.outer_left"][2] == pytest.approx(0.0, abs=1e-9)
    item.reset()
    assert told(item, 50.0)["v0-v1.outer_left"][2] == 0.0


def test_times_that_are_none():
    item = controller(tension=5.0)
    for time, good in ((1e10, True), (-1e10, True), (np.nextafter(1e10, 2e10), False)):
        found = told(item, time)
        expected = ControlStatus.OK if good else ControlStatus.INVALID_STATE
        assert item.output.status is expected
        assert item.output.time == time
        assert found["v0-v1.outer_left"][0] == (5.0 if good else 0.0)
    told(item, -2e10)
    assert item.output.status is ControlStatus.INVALID_STATE


def test_set_points_are_held_from_refresh_to_refresh_and_changes_come_at_once():
    item = controller(gait="sine", amplitude=1.0, frequency=1.0, refresh_rate=10.0)
    rates = [told(item, 0.01 * k)["v0-v1.outer_left"][2] for k in range(21)]
    assert rates[:10] == [rates[0]] * 10
    assert rates[10:20] == [rates[10]] * 10
    assert len(set(rates)) == 3
    values = {spec.name: spec.default for spec in controller_parameters("impedance", ROBOT)}
    item.change(values | {"tension": np.full(12, 3.0), "amplitude": 0.0})
    found = told(item, 0.21)["v0-v1.outer_left"]
    assert (found[0], found[2]) == (3.0, 0.0)


# Recorded commands ------------------------------------------------------------------------------


def npz_of(tmp_path, **arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    return tmp_path / "a.npz"


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"tension": np.zeros((1, 2))}, "holds no 'time'"),
        ({"time": np.zeros((1, 1)), "tension": np.zeros((1, 2))}, "holds no 'time' of shape"),
        ({"time": np.zeros(1)}, "holds no set-points .*tension or rest_length or rest_rate"),
        ({"time": np.zeros(1), "tension": np.zeros((2, 2))}, r"shape \(2, 2\) .expected: \(1, 2"),
        ({"time": np.array([0.0, np.nan]), "tension": np.zeros((2, 2))}, "row 2 has the time nan"),
        ({"time": np.array([np.inf]), "tension": np.zeros((1, 2))}, "row 1 has the time inf"),
        ({"time": np.zeros(1), "tension": np.array([[0.0, -1e-9]])}, "of 'b' is negative"),
        ({"time": np.zeros(1), "rest_rate": np.array([[-np.inf, 0.0]])}, "of 'a' is infinite"),
    ],
)
def test_mistakes_in_recorded_arrays(arrays, words, tmp_path):
    with pytest.raises(CardsError, match=words):
        read_commands(npz_of(tmp_path, **arrays), ("a", "b"))


def test_recorded_set_points_hold_from_their_time_on(tmp_path):
    nan = np.nan
    file = npz_of(
        tmp_path,
        time=np.array([-1.0, 0.5, 2.0]),
        tension=np.array([[0.0, nan], [nan, 4.0], [3.0, nan]]),
        rest_rate=np.array([[-5.0, nan], [nan, nan], [nan, nan]]),
    )
    found = read_commands(file, ("a", "b"))
    assert found.duration == 2.0
    assert found.at(np.nextafter(-1.0, -2.0)) == {}
    for time, tension in (
        (-1.0, [0.0, nan]),
        (np.nextafter(0.5, 0.0), [0.0, nan]),
        (0.5, [0.0, 4.0]),
        (2.0, [3.0, 4.0]),
        (1e9, [3.0, 4.0]),
    ):
        np.testing.assert_array_equal(found.at(time)["tension"], tension)
        np.testing.assert_array_equal(found.at(time)["rest_rate"], [-5.0, nan])
        assert set(found.at(time)) == {"tension", "rest_rate"}


def test_recorded_commands_come_from_files_of_two_kinds(tmp_path):
    with pytest.raises(CardsError, match=r"in a file ending in '\.txt' .expected: \.csv, \.npz"):
        read_commands(tmp_path / "a.txt", NAMES)
    (tmp_path / "A.CSV").write_text("rest_length.b,time\n0.25,0\n,1\n")
    found = read_commands(tmp_path / "A.CSV", ("a", "b"))
    np.testing.assert_array_equal(found.values["rest_length"], [[np.nan, 0.25]] * 2)
    assert found.times.tolist() == [0.0, 1.0]
    with pytest.raises(CardsError, match=r"a\.csv does not exist .expected: a file of commands"):
        read_commands(tmp_path / "a.csv", NAMES)
