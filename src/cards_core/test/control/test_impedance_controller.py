"""Set-points of the impedance law over time: sine gait, turning, replay, mistakes."""

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.impedance import ImpedanceController
from cards_core.control.recorded_commands import read_commands
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
