"""The impedance law of muscles: closed form, gate, simulator, files."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import CardsError, DescriptionError, ParameterError
from cards_core.formats import load, read_sdf, to_sdf
from cards_core.muscles.command import (
    EFFORT,
    FORCE,
    IMPEDANCE,
    CommandRefusedError,
    MuscleCommand,
)
from cards_core.muscles.impedance import ImpedanceLaw, impedance_tension
from cards_core.robot.actuators import ImpedanceControl

LOW, HIGH = 10.0, 400.0


def robot_with(control, name="planar_2r"):
    """A robot whose muscles have this law and limits of 10 and 400 N."""
    robot = load(name)
    muscles = tuple(
        replace(m, control=control, tension_min=LOW, tension_max=HIGH) for m in robot.muscles
    )
    return replace(robot, muscles=muscles)


def scalar_law(row):
    """One muscle, written down once more."""
    length, rate, l0, v0, t0, k, b, floor = row
    tension = t0 + k * (length - l0) + b * (rate - v0)
    return tension if tension > floor else floor


def test_random_numbers_as_the_law_of_one_muscle():
    rng = np.random.default_rng(0)
    n = 2000
    length, l0 = rng.uniform(0.1, 0.5, (2, n))
    rate, v0 = rng.uniform(-0.5, 0.5, (2, n))
    t0, floor = rng.uniform(0.0, 100.0, (2, n))
    k, b = rng.uniform(0.0, 1e5, n), rng.uniform(0.0, 500.0, n)
    found = impedance_tension(
        length,
        rate,
        rest_length=l0,
        rest_rate=v0,
        tension=t0,
        stiffness=k,
        damping=b,
        floor=floor,
    )
    expected = [scalar_law(row) for row in zip(length, rate, l0, v0, t0, k, b, floor, strict=True)]
    assert found.tolist() == expected
    assert 0.3 < np.mean(found == floor) < 0.7


def told(gate, time):
    """Return what the gate says to muscles, with the law applied at given lengths."""
    values = gate.values(time)
    return values, gate.kinds.copy()


class Rig:
    """A gate with muscles of a length and a rate."""

    def __init__(self, control, *, timeout=0.1, decay_time=0.5):
        self.robot = robot_with(control)
        self.gate = MuscleCommand(self.robot, timeout=timeout, decay_time=decay_time)
        self.names = [m.name for m in self.robot.muscles]
        self.length = np.full(len(self.names), 0.3)
        self.rate = np.zeros(len(self.names))

    def submit(self, tension, length=(), rate=(), time=0.0, names=None):
        self.gate.submit(
            names or self.names,
            np.asarray(tension, float),
            time,
            kind="impedance",
            rest_lengths=np.asarray(length, float),
            rest_rates=np.asarray(rate, float),
        )

    def tension(self, time=0.0, dt=1e-3):
        values = self.gate.values(time)
        return self.gate.impedance.tensions(values, self.length, self.rate, dt)


def test_muscle_stiffness_control_of_the_literature():
    """T = T_bias + max(0, K (l - l_target)) is T0 = T_floor = T_bias."""
    rig = Rig(ImpedanceControl(stiffness=6e4, tension_floor=20.0))
    m = len(rig.names)
    rig.submit(np.full(m, 20.0), np.full(m, 0.299))
    assert rig.tension() == pytest.approx(np.full(m, 20.0 + 60.0))
    rig.submit(np.full(m, 20.0), np.full(m, 0.301))
    assert rig.tension() == pytest.approx(np.full(m, 20.0))


def test_without_stiffness_and_damping_it_is_tension_control_to_the_last_bit():
    rig = Rig(ImpedanceControl())
    rng = np.random.default_rng(1)
    rig.length = rng.uniform(0.1, 0.9, len(rig.names))
    rig.rate = rng.normal(size=len(rig.names))
    for _ in range(100):
        tension = rng.uniform(LOW, HIGH, len(rig.names))
        rig.submit(tension)  # a muscle without stiffness needs no length
        assert rig.tension().tobytes() == tension.tobytes()


def test_the_same_set_points_are_kept_where_nothing_is_said():
    rig = Rig(ImpedanceControl(stiffness=1e4, damping=100.0, tension_floor=0.0))
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.full(m, 0.29), np.full(m, 0.2))
    first = rig.tension()
    assert first == pytest.approx(np.full(m, 50.0 + 100.0 - 20.0))
    rig.submit([])
    rig.submit(np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan))
    assert rig.tension().tolist() == first.tolist()
    some = np.full(m, np.nan)
    some[1] = 0.295
    rig.submit([], some)
    assert rig.tension()[1] == pytest.approx(80.0)
    assert rig.tension()[0] == first[0]


def test_the_limits_of_the_muscle_hold():
    rig = Rig(ImpedanceControl(stiffness=1e6, tension_floor=0.0))
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.linspace(0.28, 0.32, m))
    found = rig.tension()
    assert found.min() == LOW
    assert found.max() == HIGH


def test_the_tension_changes_at_most_at_its_rate():
    rig = Rig(ImpedanceControl(stiffness=1e6, tension_rate=2000.0))
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.full(m, 0.3))
    before = rig.tension()
    rig.submit([], np.full(m, 0.2))
    for _ in range(10):
        after = rig.tension()
        assert np.abs(after - before).max() <= 2.0 + 1e-12
        before = after
    assert before == pytest.approx(np.full(m, 70.0))


def test_a_held_length_relaxes_without_a_sender():
    rig = Rig(ImpedanceControl(stiffness=1e4, tension_floor=0.0), timeout=0.1, decay_time=0.5)
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.full(m, 0.29), time=0.0)
    assert rig.tension(0.1) == pytest.approx(np.full(m, 150.0))
    last = rig.tension(0.1)
    for time in np.arange(0.101, 0.7, 0.001):
        now = rig.tension(time)
        assert np.all(now <= last + 1e-9)
        assert np.all(last - now < 1.0)
        last = now
    assert last == pytest.approx(np.full(m, LOW))
    # a spring that pulls harder, because somebody pulls at it, lets go likewise
    rig.length = np.full(m, 0.4)
    assert rig.tension(0.8) == pytest.approx(np.full(m, LOW))
    rig.submit([], time=0.9)
    assert rig.tension(0.9) == pytest.approx(np.full(m, HIGH))


def test_emergency_stop_and_reset_end_the_law():
    rig = Rig(ImpedanceControl(stiffness=1e4))
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.full(m, 0.29))
    rig.gate.estop()
    values, kinds = told(rig.gate, 0.0)
    assert values[:m].tolist() == [LOW] * m
    assert set(kinds[:m].tolist()) == {FORCE}
    assert not rig.gate.impedance.any_active
    rig.gate.reset()
    assert not rig.gate.impedance.any_active
    with pytest.raises(CommandRefusedError, match="expected one in the first command"):
        rig.submit(np.full(m, 50.0))


def test_a_tension_command_ends_the_law_of_its_muscles():
    rig = Rig(ImpedanceControl(stiffness=1e4))
    m = len(rig.names)
    rig.submit(np.full(m, 50.0), np.full(m, 0.29))
    rig.gate.submit([rig.names[0]], [33.0], 0.0)
    found = rig.tension()
    assert found[0] == 33.0
    assert found[1:] == pytest.approx(np.full(m - 1, 150.0))
    assert rig.gate.values(0.0)[0] == 33.0
    assert rig.gate.kinds[0] == FORCE
    assert rig.gate.kinds[1] == IMPEDANCE != EFFORT


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tension": [50.0]}, "1 tensions for"),
        ({"tension": [], "length": [0.3, 0.3]}, "2 rest lengths for"),
        ({"tension": [401.0, 50.0, 50.0, 50.0]}, r"tension of muscle '\w+' is 401 N, expected 0"),
        ({"tension": [-1.0, 50.0, 50.0, 50.0]}, "is -1 N"),
        ({"tension": [np.inf] * 4}, "is inf N"),
        (
            {"tension": [50.0] * 4, "length": [0.3, -0.1, 0.3, 0.3]},
            "rest length of muscle .* -0.1",
        ),
        ({"tension": [50.0] * 4, "length": [0.3, np.inf, 0.3, 0.3]}, "rest length .* inf"),
        (
            {"tension": [50.0] * 4, "length": [0.3] * 4, "rate": [np.inf, 0, 0, 0]},
            "rest rate .* finite number",
        ),
        ({"tension": [50.0] * 4}, "expected one in the first command"),
    ],
)
def test_bad_set_points_are_refused_as_a_whole(given, message):
    rig = Rig(ImpedanceControl(stiffness=1e4))
    assert len(rig.names) == 4
    with pytest.raises(CommandRefusedError, match=message):
        rig.submit(**given)
    assert rig.gate.refused == 1
    assert rig.gate.values(0.0)[: len(rig.names)].tolist() == [LOW] * 4
    assert np.isnan(rig.gate.impedance.rest_length).all()


def test_names_are_checked():
    rig = Rig(ImpedanceControl())
    with pytest.raises(CommandRefusedError, match="zz"):
        rig.submit([50.0], names=["zz"])
    with pytest.raises(CommandRefusedError, match="more than once"):
        rig.submit([50.0, 50.0], names=[rig.names[0]] * 2)
    elbow = load("wrap_elbow")
    gate = MuscleCommand(elbow, timeout=1.0)
    with pytest.raises(CommandRefusedError, match="takes no impedance command"):
        gate.submit(["capsule"], [5.0], 0.0, kind="impedance")


def test_gains_change_while_it_runs_all_or_nothing():
    rig = Rig(ImpedanceControl(stiffness=1e4))
    m = len(rig.names)
    rig.gate.impedance.change({"stiffness": np.full(m, 2e4), "tension_floor": np.full(m, 5.0)})
    rig.submit(np.full(m, 50.0), np.full(m, 0.29))
    assert rig.tension() == pytest.approx(np.full(m, 250.0))  # nothing was under the law before
    for bad, message in (
        ({"stiffness": np.full(m, 3e4), "damping": np.full(m, -1.0)}, "damping of muscle"),
        ({"stiffness": np.full(m - 1, 3e4)}, "shape"),
        ({"stiffness": np.full(m, np.nan)}, "stiffness of muscle"),
        ({"mass": np.full(m, 1.0)}, "mass"),
    ):
        with pytest.raises(ParameterError, match=message):
            rig.gate.impedance.change(bad)
    assert rig.tension() == pytest.approx(np.full(m, 250.0))


def test_new_gains_come_in_by_what_a_board_would_allow():
    """4 N in a millisecond, by the same share for K, B and T_floor, as the firmware has it."""
    rig = Rig(ImpedanceControl(stiffness=1e4, damping=50.0, tension_floor=20.0))
    m = len(rig.names)
    rig.rate[:] = 0.1
    rig.submit(np.full(m, 50.0), np.linspace(0.28, 0.31, m))
    law, rows = rig.gate.impedance, [rig.tension()]
    wanted = {"stiffness": 3e4, "damping": 200.0, "tension_floor": 90.0}
    law.change({name: np.full(m, value) for name, value in wanted.items()})
    while not rows[1:] or np.abs(rows[-1] - rows[-2]).max() > 0.0:
        rows.append(rig.tension())
    changes = np.abs(np.diff(rows, axis=0))
    assert changes.max() == pytest.approx(4.0)
    pull = 50.0 + 3e4 * (0.3 - law.rest_length) + 200.0 * 0.1
    expected = np.clip(pull, 90.0, HIGH)
    np.testing.assert_array_equal(rows[-1], expected)
    # a step of 2 ms lets in twice as much
    law.change({"stiffness": np.full(m, 1e4)})
    assert np.abs(rig.tension(dt=2e-3) - rows[-1]).max() == pytest.approx(8.0)


def test_the_law_is_written_and_read_with_the_muscle():
    law = ImpedanceControl(stiffness=6e4, damping=200.0, tension_floor=12.5, tension_rate=3000.0)
    text = to_sdf(robot_with(law))
    assert '<control stiffness="60000"' in text
    again = read_sdf(text)
    assert all(muscle.control == law for muscle in again.muscles)
    assert "<control" not in to_sdf(robot_with(ImpedanceControl()))
    with pytest.raises(DescriptionError, match=r"stiffness is -5 N/m"):
        read_sdf(text.replace('stiffness="60000"', 'stiffness="-5"'))
    with pytest.raises(DescriptionError, match="gain"):
        read_sdf(text.replace('stiffness="60000"', 'gain="5"'))


def test_a_muscle_that_takes_no_tension_has_no_law():
    text = to_sdf(load("wrap_elbow"))
    start = text.index('type="ligament"')
    place = text.index("<via_point", start)
    with pytest.raises(DescriptionError, match="takes no tension"):
        read_sdf(text[:place] + '<control stiffness="5"/>' + text[place:])


def test_laws_are_those_of_the_muscles():
    robot = robot_with(ImpedanceControl(stiffness=5.0))
    law = ImpedanceLaw(robot.muscles)
    assert law.tension_floor.tolist() == [LOW] * len(robot.muscles)
    assert law.stiffness.tolist() == [5.0] * len(robot.muscles)
    assert not law.any_active


def test_unknown_kinds_of_commands_stay_errors():
    gate = MuscleCommand(load("planar_2r"), timeout=1.0)
    with pytest.raises(CardsError, match="stiffness"):
        gate.submit(["x"], [1.0], 0.0, kind="stiffness")


def test_laws_are_plain_until_something_changes():
    """Native steps compute plain laws by themselves; what approaches or fades is left to NumPy."""
    law = ImpedanceLaw(load("planar_2r").muscles)
    assert law.plain
    law.share[0] = 0.5
    assert not law.plain
    law.reset()
    assert law.plain
    law.change({"stiffness": law.stiffness + 100.0})
    assert not law.plain
    lengths = np.full(4, 0.3)
    law.tensions(np.full(len(lengths), 10.0), lengths, 0.0 * lengths, 1e-3)
    assert law.plain  # nobody is under the law: they are taken over at once
    law.active[:] = True
    law.rest_length[:] = 0.2
    law.change({"stiffness": law.stiffness + 1000.0})
    law.tensions(np.full(len(lengths), 10.0), lengths, 0.0 * lengths, 1e-3)
    assert not law.plain  # 100 N at 4 N a step
    for _ in range(25):
        law.tensions(np.full(len(lengths), 10.0), lengths, 0.0 * lengths, 1e-3)
    assert law.plain
    law.active[:] = True
    law.change({"stiffness": law.stiffness + 1000.0, "damping": law.damping + 5.0})
    law.reset()
    assert law.plain
    for name in ("stiffness", "damping"):
        np.testing.assert_array_equal(law.arrays[name], getattr(law, name))
    np.testing.assert_array_equal(law.arrays["floor"], law.tension_floor)
