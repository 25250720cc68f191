"""The bank of actuators: both backends, stiffness against the step, energy, and bad input."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from actuator_samples import BRAID, HILL, MIXED, TRIANGLE, actuator_robot, mixed_lengths
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cards_core.description.actuators import (
    Cable,
    Hill,
    Ligament,
    Motor,
    Pneumatic,
    SeriesElastic,
    Spring,
    Valve,
    check_parameters,
)
from cards_core.errors import CardsError, DescriptionError, ShapeError
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import EXCITATION, FORCE, LENGTH, NO_COMMAND, PRESSURE

COUNT = len(MIXED)
MASSES = np.where(np.arange(COUNT) % 2, np.inf, 2.0)
DT = 1e-3


@pytest.fixture(scope="module")
def compiled():
    return ActuatorBank(actuator_robot(*MIXED), DT, effective_mass=MASSES)


@pytest.fixture(scope="module")
def numeric():
    return ActuatorBank(actuator_robot(*MIXED), DT, "numeric", effective_mass=MASSES)


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


def test_loading_from_the_cache_needs_no_casadi(compiled):
    script = textwrap.dedent("""
        import sys
        sys.modules["casadi"] = None
        import numpy as np
        from actuator_samples import MIXED, actuator_robot, mixed_lengths
        from cards_core.muscles.actuators import ActuatorBank
        masses = np.where(np.arange(len(MIXED)) % 2, np.inf, 2.0)
        bank = ActuatorBank(actuator_robot(*MIXED), 1e-3, effective_mass=masses)
        bank.reset(mixed_lengths())
        zero = np.zeros(len(MIXED))
        print(bank.step(mixed_lengths(), zero, zero, zero).sum())
    """)
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=__file__.rpartition("/")[0],
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


# Bodies --------------------------------------------------------------------------------------


def pull_mass(actuator, mass, dt, duration, command, *, known=True, weight=0.0, start=0.3, v=0.0):
    """Let a muscle pull a mass on a rail; return lengths, speeds, tensions and the bank."""
    masses = np.array([mass]) if known else None
    robot = actuator_robot(actuator, tension_min=weight)
    bank = ActuatorBank(robot, dt, "numeric", effective_mass=masses)
    bank.reset(np.array([start]))
    kind, value = np.array([command[0]]), np.array([command[1]])
    length, history = start, []
    for _ in range(round(duration / dt)):
        tension = bank.step(np.array([length]), np.array([v]), kind, value)[0]
        v += dt * (weight - tension) / mass
        length += dt * v
        history.append((length, v, tension))
    return np.array(history).T, bank


@pytest.mark.parametrize(
    ("actuator", "mass", "command", "weight"),
    [
        (Cable(stiffness=1e7, rest_length=0.2999), 0.05, (NO_COMMAND, 0.0), 20.0),
        (Cable(stiffness=1e5, damping=5e3, rest_length=0.2995), 0.2, (NO_COMMAND, 0.0), 20.0),
        (Ligament(stiffness=1e6, slack_length=0.2995), 0.05, (NO_COMMAND, 0.0), 20.0),
        (Hill(**HILL, tendon_strain=0.003), 0.2, (EXCITATION, 0.3), 300.0),
        (Hill(**HILL, tendon="rigid"), 0.2, (EXCITATION, 0.3), 300.0),
        (
            SeriesElastic(spring=Spring(law="polynomial", stiffness=2e6)),
            0.2,
            (FORCE, 100.0),
            100.0,
        ),
        (Pneumatic(**BRAID, tendon_length=0.05, friction=0.2), 0.2, (PRESSURE, 1e5), 150.0),
    ],
    ids=["cable", "damped", "ligament", "tendon", "rigid", "series_elastic", "pneumatic"],
)
def test_light_bodies_on_stiff_muscles_come_to_rest_at_1_khz(actuator, mass, command, weight):
    (length, speed, tension), _ = pull_mass(actuator, mass, 1e-3, 1.5, command, weight=weight)
    assert np.all(np.abs(speed[-200:]) < 4e-3)
    assert tension[-1] == pytest.approx(weight, rel=0.02)
    assert np.max(np.abs(length - 0.3)) < 0.1


def test_without_the_mass_the_stiff_cable_is_unstable():
    """The implicit force is what keeps it: the same without explodes or chatters."""
    cable = Cable(stiffness=1e7, rest_length=0.2999)
    run = {"weight": 20.0, "start": 0.3}
    (_, speed, _), _ = pull_mass(cable, 0.05, 1e-3, 0.5, (NO_COMMAND, 0.0), known=False, **run)
    assert np.max(np.abs(speed)) > 1.0


def test_stiff_tendon_at_1_khz_against_a_fine_step():
    hill = Hill(**HILL, tendon_strain=0.01)
    runs = {
        dt: pull_mass(hill, 2.0, dt, 0.12, (EXCITATION, 0.5), weight=200.0)[0]
        for dt in (1e-3, 5e-5)
    }
    coarse, fine = runs[1e-3], runs[5e-5]
    at = np.arange(1, 121) * 20 - 1
    assert np.max(np.abs(fine[0] - 0.3)) > 5e-3  # it moves
    assert np.max(np.abs(coarse[0] - fine[0][at])) < 1.5e-3


@pytest.mark.parametrize("known", [True, False])
def test_energy_of_a_mass_on_a_passive_cable_does_not_grow(known):
    """Explicit and soft: bounded. Implicit and stiff: falls."""
    mass = 0.5
    stiffness = 2e5 if known else 2e3
    cable = Cable(stiffness=stiffness, rest_length=0.3)
    (length, speed, _), _ = pull_mass(
        cable, mass, 1e-3, 3.0, (NO_COMMAND, 0.0), known=known, weight=0.0, v=0.5
    )
    kinetic = 0.5 * mass * speed**2
    stretch = np.maximum(length - 0.3, 0.0)
    softened = stiffness / (1.0 + stiffness * 1e-6 / mass) if known else stiffness
    total = kinetic + 0.5 * softened * stretch**2
    start = 0.5 * mass * 0.5**2
    assert np.max(total) < start * (1.0 + 1e-9 if known else 1.05)
    assert speed[-1] < 0.0  # it came back
    assert speed[-1] > -0.5 * (1.0 + 1e-9 if known else 1.02)


PASSIVE = (
    Cable(stiffness=5e3, rest_length=0.295),
    Cable(stiffness=5e3, damping=40.0, rest_length=0.295),
    Ligament(stiffness=2000.0, slack_length=0.29, damping=2.0),
    Hill(**HILL, damping=0.1, min_activation=0.0),
    Hill(**HILL, damping=0.1, min_activation=0.0, curves="thelen_2003"),
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
    middle = np.tile([0.3, 0.3, 0.3, 0.33, 0.33, 0.33, 0.285], copies)

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
    springs = [0, 6]  # they keep everything
    assert np.all(np.abs(lost[:, springs]) < 1e-3 * most[:, springs])
    assert np.all(lost[:, [1, 3, 4, 5]] > 0.02 * most[:, [1, 3, 4, 5]])


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actuator", "words"),
    [
        (Cable(stiffness=-1.0), "'stiffness' is -1, expected above 0"),
        (Cable(damping=3.0), "'damping' needs a 'stiffness'"),
        (Cable(winch_speed=3.0), "'winch_speed' needs a 'stiffness'"),
        (Hill(**{**HILL, "max_isometric_force": float("nan")}), "'max_isometric_force' is nan"),
        (Hill(**HILL, curves="millard"), "'curves' is 'millard', expected one of: de_groote_2016"),
        (Hill(**HILL, pennation_angle=2.0), "'pennation_angle' is 2, expected 0 .. 1.4"),
        (Ligament(stiffness=1.0, slack_length=0.0), "'slack_length' is 0, expected above 0"),
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
        (SeriesElastic(spring=TRIANGLE, motor=Motor(gear_efficiency=1.2)), "motor: 'gear_eff"),
    ],
)
def test_wrong_parameters_are_named(actuator, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are compared
        check_parameters(actuator)
    assert words in str(caught.value)
    with pytest.raises(DescriptionError, match="muscle 'm0'"):
        ActuatorBank(actuator_robot(actuator), 1e-3, "numeric")


def test_wrong_arguments_of_the_bank_are_refused():
    robot = actuator_robot(Cable(stiffness=1.0))
    for dt in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(CardsError, match="expected a time > 0"):
            ActuatorBank(robot, dt)
    for masses in (np.zeros(1), np.ones(2), np.array([np.nan])):
        with pytest.raises(ShapeError, match="one mass > 0 for each of the 1 muscles"):
            ActuatorBank(robot, 1e-3, "numeric", effective_mass=masses)


def test_a_robot_without_muscles_has_an_ideal_bank():
    bank = ActuatorBank(actuator_robot(), 1e-3)
    assert bank.ideal
    bank.reset(np.zeros(0))
    assert bank.energy().shape == (0,)
