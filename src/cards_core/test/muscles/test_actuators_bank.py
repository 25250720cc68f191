"""The bank of actuators: both backends, their slopes, energy, and bad input."""

import subprocess
import sys
import textwrap
from pathlib import Path

import actuator_samples
import numpy as np
import pytest
from actuator_samples import BRAID, HILL, MIXED, TRIANGLE, actuator_robot, mixed_lengths
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cards_core.errors import CardsError, DescriptionError, ParameterError
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import EXCITATION, FORCE, LENGTH, NO_COMMAND, PRESSURE
from cards_core.robot.actuators import (
    Cable,
    Hill,
    Ligament,
    Motor,
    Pneumatic,
    SeriesElastic,
    Spring,
    Valve,
)

COUNT = len(MIXED)
DT = 1e-3


@pytest.fixture(scope="module")
def compiled():
    return ActuatorBank(actuator_robot(*MIXED), DT)


@pytest.fixture(scope="module")
def numeric():
    return ActuatorBank(actuator_robot(*MIXED), DT, "numeric")


def test_states_are_named_and_published_in_the_order_of_the_muscles(compiled):
    assert compiled.state_names[:2] == ("m0/activation", "m0/fiber_length")
    assert "m4/rest_length" in compiled.state_names
    assert "m6/current" in compiled.state_names
    assert "m7/winding_temperature" in compiled.state_names
    assert "m6/winding_temperature" not in compiled.state_names
    assert "m8/pressure" in compiled.state_names
    owners = [int(name.split("/")[0][1:]) for name in compiled.state_names]
    assert owners == sorted(owners)
    assert compiled.state_values.shape == (len(compiled.state_names),)


@pytest.mark.parametrize("seed", [1, 2])
def test_backends_agree_over_random_trajectories(compiled, numeric, seed):
    rng = np.random.default_rng(seed)
    base = mixed_lengths()
    compiled.reset(base)
    numeric.reset(base)
    assert compiled.state_values == pytest.approx(numeric.state_values, abs=1e-15)
    w, phase = rng.uniform(2, 40, (2, COUNT)), rng.uniform(0, 6, (2, COUNT))
    kinds = np.full(COUNT, FORCE)
    values = np.full(COUNT, 50.0)
    for step in range(300):
        t = step * DT
        if step % 50 == 0:
            kinds = rng.integers(-1, 4, COUNT)
            span = {-1: 0.0, FORCE: 400.0, LENGTH: 0.3, PRESSURE: 4e5, EXCITATION: 1.0}
            values = np.array([span[k] * rng.uniform(0.2, 1.0) for k in kinds.tolist()])
            values[kinds == LENGTH] = rng.uniform(0.285, 0.3, np.sum(kinds == LENGTH))
        lengths = base + 0.008 * np.sum(np.sin(w * t + phase), axis=0)
        rates = 0.008 * np.sum(w * np.cos(w * t + phase), axis=0)
        native = compiled.step(lengths, rates, kinds, values)
        reference = numeric.step(lengths, rates, kinds, values)
        # relative: a spring commanded to be short carries many thousand newtons
        assert native == pytest.approx(reference, rel=1e-10, abs=1e-10)
        assert compiled.state_values == pytest.approx(numeric.state_values, rel=1e-9, abs=1e-10)
    assert compiled.energy() == pytest.approx(numeric.energy(), rel=1e-9, abs=1e-9)


def test_slopes_are_those_of_the_tension_at_the_end_of_a_step(compiled, numeric):
    """dT/dl + (1/dt) dT/dl' against differences, where no kink lies between them."""
    rng = np.random.default_rng(3)
    lengths = mixed_lengths()
    for bank in (compiled, numeric):
        bank.reset(lengths)
    h, checked = 1e-7, 0
    for _ in range(60):
        lengths = lengths + 1e-3 * rng.normal(size=COUNT)
        rates, kinds = 0.1 * rng.normal(size=COUNT), rng.integers(-1, 4, COUNT)
        told = (kinds, rng.uniform(0.0, 50.0, COUNT))
        tensions, slopes = (x.copy() for x in numeric.linearise(lengths, rates, *told))
        sides = [
            numeric.linearise(lengths + s * h, rates + s * h / DT, *told)[0].copy()
            for s in (1.0, -1.0)
        ]
        right, left = (sides[0] - tensions) / h, (tensions - sides[1]) / h
        smooth = np.abs(right - left) < 1e-3 * (1.0 + np.abs(right))
        checked += int(np.sum(smooth & (np.abs(slopes) > 1.0)))
        found = 0.5 * (right + left)
        np.testing.assert_allclose(slopes[smooth], found[smooth], rtol=2e-3, atol=1e-2)
        native = compiled.linearise(lengths, rates, *told)
        np.testing.assert_allclose(native[0], tensions, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(native[1], slopes, rtol=1e-7, atol=1e-6)
        for bank in (compiled, numeric):
            bank.linearise(lengths, rates, *told)
            bank.accept(lengths)
        assert compiled.state == pytest.approx(numeric.state, rel=1e-9, abs=1e-10)
    assert checked > 10 * COUNT


def test_loading_from_the_cache_needs_no_casadi(compiled):
    script = textwrap.dedent("""
        import sys
        sys.modules["casadi"] = None
        import numpy as np
        from actuator_samples import MIXED, actuator_robot, mixed_lengths
        from cards_core.muscles.actuators import ActuatorBank
        bank = ActuatorBank(actuator_robot(*MIXED), 1e-3)
        bank.reset(mixed_lengths())
        zero = np.zeros(len(MIXED))
        print(bank.step(mixed_lengths(), zero, zero, zero).sum())
    """)
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(actuator_samples.__file__).parent,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) >= 0.0


number = st.floats(allow_nan=False, allow_infinity=False)
usual = st.floats(-1.0, 2.0)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(st.one_of(number, usual), st.one_of(number, usual), st.integers(-1, 3), number),
        min_size=1,
        max_size=6,
    )
)
def test_tensions_are_finite_and_pull_whatever_comes(compiled, numeric, steps):
    base = mixed_lengths()
    for bank in (compiled, numeric):
        bank.reset(base)
        for length, rate, kind, value in steps:
            with np.errstate(all="raise", under="ignore"):
                tension = bank.step(
                    np.full(COUNT, length),
                    np.full(COUNT, rate),
                    np.full(COUNT, kind),
                    np.full(COUNT, value),
                )
            assert np.all(np.isfinite(tension))
            assert np.all(tension >= 0.0)
            assert np.all(np.isfinite(bank._state))
        assert np.all(np.isfinite(bank.energy()))


def test_muscles_recover_from_a_violent_jump(compiled):
    base = mixed_lengths()
    zero = np.zeros(COUNT)
    kinds, values = np.full(COUNT, FORCE), np.full(COUNT, 60.0)
    compiled.reset(base)
    for length in (5.0, 0.0, 0.29):
        jump = np.full(COUNT, length)
        jump[6:8] = min(length, 0.31)  # a motor dragged by meganewtons winds back for minutes
        for _ in range(20):
            compiled.step(jump, zero, kinds, values)
    for _ in range(6000):
        tension = compiled.step(base, zero, kinds, values).copy()
    expected = np.full(COUNT, 60.0)
    expected[10] = tension[10]  # the ligament has no command
    assert tension == pytest.approx(expected, rel=0.01)


def test_every_active_type_follows_a_tension_within_the_limits_of_the_muscle():
    # a relaxed muscle has some tension of its own, here less than the limit
    robot = actuator_robot(*MIXED, tension_min=45.0, tension_max=90.0)
    bank = ActuatorBank(robot, 5e-3, "numeric")
    base = mixed_lengths()
    bank.reset(base)
    active = np.arange(COUNT) != 10  # the ligament
    wound = active & (np.arange(COUNT) != 4)  # m4 has a rest length of its own at the start
    zero = np.zeros(COUNT)
    at_rest = bank.step(base, zero, np.full(COUNT, FORCE), np.full(COUNT, 45.0)).copy()
    assert at_rest[wound] == pytest.approx(np.full(COUNT - 2, 45.0), rel=0.01)
    for value, reached in ((60.0, 60.0), (1e6, 90.0), (-5.0, 45.0)):
        for _ in range(300):
            tension = bank.step(base, zero, np.full(COUNT, FORCE), np.full(COUNT, value))
        assert tension[active] == pytest.approx(np.full(COUNT - 1, reached), rel=0.01)


def test_reset_forgets_what_was(compiled):
    base = mixed_lengths()
    zero = np.zeros(COUNT)
    compiled.reset(base)
    first = compiled._state.copy()
    for _ in range(50):
        compiled.step(base + 0.01, zero, np.full(COUNT, FORCE), np.full(COUNT, 300.0))
    assert not np.allclose(compiled._state, first)
    compiled.reset(base)
    assert compiled._state == pytest.approx(first, abs=0.0)


# Energy --------------------------------------------------------------------------------------

PASSIVE = (
    Cable(stiffness=5e3, rest_length=0.295),
    Cable(stiffness=5e3, damping=40.0, rest_length=0.295),
    Ligament(stiffness=2000.0, slack_length=0.29, damping=2.0),
    Hill(**HILL, damping=0.1, min_activation=0.0),
    Hill(**HILL, damping=0.1, min_activation=0.0, curves="thelen_2003"),
    Hill(**HILL, damping=0.1, min_activation=0.0, curves="millard_2012"),
    Hill(**HILL, damping=0.1, min_activation=0.0, tendon="rigid"),
    Pneumatic(
        **{**BRAID, "rest_length": 0.28}, bladder_stiffness=800.0, friction=0.0, pressure_time=1e-3
    ),
)


def test_passive_elements_never_give_back_more_than_they_got():
    """Over random motions the path's work covers the change of the stored energy, always."""
    rng = np.random.default_rng(0)
    copies = 5
    count = copies * len(PASSIVE)
    dt = 5e-4
    bank = ActuatorBank(actuator_robot(*PASSIVE * copies), dt, "numeric")
    w, phase = rng.uniform(5, 60, (3, count)), rng.uniform(0, 6, (3, count))
    size = rng.uniform(0.002, 0.012, (3, count))
    middle = np.tile([0.3, 0.3, 0.3, 0.33, 0.33, 0.33, 0.33, 0.285], copies)

    def path(t):
        lengths = middle + np.sum(size * np.sin(w * t + phase), axis=0)
        return lengths, np.sum(size * w * np.cos(w * t + phase), axis=0)

    lengths, _ = path(0.0)
    bank.reset(lengths)
    none, zero = np.full(count, NO_COMMAND), np.zeros(count)
    for _ in range(200):
        before = bank.step(lengths, zero, none, zero).copy()
    start = bank.energy()
    work, most, gain = np.zeros((3, count))
    for step in range(1, 801):
        new, rates = path(step * dt)
        tension = bank.step(new, rates, none, zero)
        work += 0.5 * (tension + before) * (new - lengths)
        before[:], lengths = tension, new
        stored = bank.energy() - start
        most = np.maximum(most, np.abs(stored))
        gain = np.maximum(gain, stored - work)
    assert np.all(most > 1e-3)
    assert np.all(gain < 1e-3 * most + 1e-6), gain / most
    lost = (work - (bank.energy() - start)).reshape(copies, -1)
    most = most.reshape(copies, -1)
    springs = [0, 7]  # they keep everything
    assert np.all(np.abs(lost[:, springs]) < 1e-3 * most[:, springs])
    assert np.all(lost[:, [1, 3, 4, 5]] > 0.02 * most[:, [1, 3, 4, 5]])


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actuator", "words"),
    [
        (Cable(stiffness=-1.0), "'stiffness' is -1.0 (expected: finite, > 0)"),
        (Cable(damping=3.0), "'damping' needs a 'stiffness'"),
        (Cable(winch_speed=3.0), "'winch_speed' needs a 'stiffness'"),
        (Hill(**{**HILL, "max_isometric_force": float("nan")}), "'max_isometric_force' is nan"),
        (Hill(**HILL, curves="millard"), "'curves' is 'millard' (expected: de"),
        (
            Hill(**HILL, pennation_angle=2.0),
            "'pennation_angle' is 2.0 (expected: finite, 0 .. 1.4)",
        ),
        (
            Ligament(stiffness=1.0, slack_length=0.0),
            "'slack_length' is 0.0 (expected: finite, > 0)",
        ),
        (Pneumatic(**{**BRAID, "rest_length": 0.1}), "'rest_length' 0.1 m must lie between"),
        (Pneumatic(**BRAID, threshold_pressure=7e5), "'threshold_pressure'"),
        (Pneumatic(**BRAID, valve=Valve(supply_pressure=1e5)), "'supply_pressure' 100000 Pa"),
        (SeriesElastic(spring=Spring(law="polynomial")), "needs 'stiffness'"),
        (SeriesElastic(spring=Spring(law="exponential", stiffness=1.0)), "needs 'force_scale'"),
        (
            SeriesElastic(spring=Spring(law="polynomial", stiffness=1.0, c1=0.1)),
            "'c1' does not belong to law 'polynomial'",
        ),
        (
            SeriesElastic(spring=Spring(law="polynomial", stiffness=1.0, quadratic=-9.0)),
            "'quadratic' -9 makes the tension fall",
        ),
        (
            SeriesElastic(spring=Spring(law="triangle", stiffness=1.0, travel=0.05)),
            "'travel' 0.05 m must be shorter than 'c4'",
        ),
        (
            SeriesElastic(spring=TRIANGLE, motor=Motor(gear_efficiency=1.2)),
            "motor: parameter 'gear",
        ),
    ],
)
def test_wrong_parameters_are_named(actuator, words):
    with pytest.raises(ParameterError) as caught:
        actuator.check()
    assert words in str(caught.value)
    with pytest.raises(DescriptionError, match="muscle 'm0'"):
        ActuatorBank(actuator_robot(actuator), 1e-3, "numeric")


def test_wrong_arguments_of_the_bank_are_refused():
    robot = actuator_robot(Cable(stiffness=1.0))
    for dt in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(CardsError, match="expected a time > 0"):
            ActuatorBank(robot, dt)


def test_a_robot_without_muscles_has_an_ideal_bank():
    bank = ActuatorBank(actuator_robot(), 1e-3)
    assert bank.ideal
    bank.reset(np.zeros(0))
    assert bank.energy().shape == (0,)
