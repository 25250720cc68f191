"""Cables, ligaments, series elastic units and pneumatic muscles against their equations."""

import itertools
import math

import numpy as np
import pytest
from actuator_samples import BRAID, TRIANGLE, actuator_robot
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from cards_core.errors import ParameterError
from cards_core.muscles.actuators import ActuatorBank, springs, thermal
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.command import FORCE, LENGTH, NO_COMMAND, PRESSURE
from cards_core.robot.actuators import (
    Cable,
    Ligament,
    Motor,
    Pneumatic,
    SeriesElastic,
    Spring,
    Thermal,
    Valve,
)


def make(*actuators, dt=1e-3, length=0.3, **limits):
    bank = ActuatorBank(actuator_robot(*actuators, **limits), dt, "numeric")
    bank.reset(np.full(len(actuators), length))
    return bank


def states(bank):
    return dict(zip(bank.state_names, bank.state_values, strict=True))


def hold(bank, length, kind, value, steps, rate=0.0):  # noqa: PLR0917
    """Step at constant lengths; return the last tensions."""
    count = len(bank._tensions)
    given = [np.broadcast_to(item, count).copy() for item in (length, rate, kind, value)]
    for _ in range(steps):
        tension = bank.step(*given)
    return tension.copy()


# Cable ---------------------------------------------------------------------------------------


def test_ideal_cables_pass_their_commands_on():
    bank = ActuatorBank(actuator_robot(Cable(), Cable()), 1e-3)
    assert bank.ideal
    assert bank.state_names == ()
    values = np.array([3.0, 7.0])
    assert bank.step(np.ones(2), np.zeros(2), np.zeros(2, int), values) is values


def test_elastic_cable_pulls_by_hookes_law_and_damping_while_taut():
    bank = make(Cable(stiffness=1e4, damping=20.0, rest_length=0.29), length=0.3)
    step = lambda l, v: float(hold(bank, l, NO_COMMAND, 0.0, 1, v)[0])  # noqa: E731, E741
    assert step(0.30, 0.0) == pytest.approx(100.0)
    assert step(0.30, 0.5) == pytest.approx(110.0)
    assert step(0.30, -0.5) == pytest.approx(90.0)
    assert step(0.30, -9.0) == 0.0  # it does not push
    assert step(0.28, 1.0) == 0.0
    assert step(0.2901, 1.0) == pytest.approx(2.0)  # damping grows from zero with the elastic part
    assert states(bank)["m0/rest_length"] == 0.29
    assert bank.energy()[0] == pytest.approx(0.5 * 1e4 * 1e-4**2)


def test_winch_follows_tension_and_length_at_its_speed():
    cable = Cable(stiffness=1e4, winch_speed=0.5)
    bank = make(cable, Cable(stiffness=1e4, damping=30.0), length=0.3, tension_min=10.0)
    assert hold(bank, 0.3, NO_COMMAND, 0.0, 1) == pytest.approx([10.0, 10.0])
    # 90 N more are 9 mm, 18 steps of 0.5 mm
    assert hold(bank, 0.3, FORCE, 100.0, 1) == pytest.approx([15.0, 100.0])
    assert hold(bank, 0.3, FORCE, 100.0, 16)[0] == pytest.approx(95.0)
    assert hold(bank, 0.3, FORCE, 100.0, 1)[0] == pytest.approx(100.0)
    # in motion too, though the damper of the second helps
    assert hold(bank, 0.3002, FORCE, 100.0, 1, 0.2) == pytest.approx([100.0, 100.0])
    assert hold(bank, 0.3002, FORCE, 100.0, 1, -0.2) == pytest.approx([100.0, 100.0])
    assert hold(bank, 0.3, FORCE, 1.0, 50) == pytest.approx([10.0, 10.0])  # limits of the muscle
    assert hold(bank, 0.3, FORCE, 1e5, 1000) == pytest.approx([2000.0, 2000.0])
    hold(bank, 0.3, LENGTH, 0.295, 1000)
    assert hold(bank, 0.3, LENGTH, 0.296, 1)[0] == pytest.approx(45.0)
    assert hold(bank, 0.3, LENGTH, 0.296, 1) == pytest.approx([40.0, 40.0])


def test_casprs_passive_spring_only_pulls():
    bank = make(Cable(stiffness=500.0, rest_length=0.25))
    lengths = np.linspace(0.2, 0.4, 41)
    tension = [hold(bank, length, NO_COMMAND, 0.0, 1)[0] for length in lengths]
    assert tension == pytest.approx(np.maximum(0.0, 500.0 * (lengths - 0.25)))


# Ligament ------------------------------------------------------------------------------------


def test_ligament_is_that_of_opensim():
    bank = make(Ligament(stiffness=1000.0, slack_length=0.1), length=0.09)
    table = {0.09: 0, 0.1: 0, 0.101: 0.8333, 0.103: 7.5, 0.106: 30.0, 0.110: 70.0, 0.120: 170.0}
    for length, force in table.items():
        assert hold(bank, length, FORCE, 9.0, 1)[0] == pytest.approx(force, abs=5e-5)
    # damping 0.003 N per strain rate of 1/s, only while lengthening and taut
    assert hold(bank, 0.11, 0, 0, 1, 0.1)[0] == pytest.approx(70.003)
    assert hold(bank, 0.11, 0, 0, 1, -0.1)[0] == pytest.approx(70.0)
    assert hold(bank, 0.099, 0, 0, 1, 0.1)[0] == 0.0


def test_energy_of_cable_and_ligament_is_the_integral_of_the_tension():
    bank = make(
        Ligament(stiffness=1000.0, slack_length=0.28), Cable(stiffness=2e3, rest_length=0.27)
    )
    lengths = np.linspace(0.26, 0.33, 401)
    tension = np.array([hold(bank, length, NO_COMMAND, 0.0, 1) for length in lengths])
    work = np.sum(0.5 * (tension[1:] + tension[:-1]), axis=0) * (lengths[1] - lengths[0])
    assert bank.energy() == pytest.approx(work, rel=1e-4)


# Springs -------------------------------------------------------------------------------------

LAWS = [
    TRIANGLE,
    Spring(law="polynomial", stiffness=5e3),
    Spring(law="polynomial", stiffness=5e3, quadratic=1e5, cubic=2e6, travel=0.03),
    Spring(law="polynomial", stiffness=5e4, quadratic=-5e5, travel=0.02),
    Spring(law="exponential", force_scale=15.0, growth=350.0),
]


@pytest.mark.parametrize("spring", LAWS, ids=lambda s: f"{s.law}-{s.stiffness}")
def test_springs_tension_is_the_derivative_of_their_energy(spring):
    p = _numbers(spring)
    d = np.linspace(0.0, 0.035, 200)
    h = 1e-7
    gain = springs.energy(spring.law, p, d + h) - springs.energy(spring.law, p, d)
    stretch = springs.elongation(NUMPY, spring.law, p, d + h)[0]
    stretch -= springs.elongation(NUMPY, spring.law, p, d)[0]
    tension, slope = springs.tension(NUMPY, spring.law, p, d + 0.5 * h)
    assert tension == pytest.approx(gain / stretch, rel=1e-5, abs=1e-3)
    assert np.all(slope > 0.0)
    # both ways round
    elongation = springs.elongation(NUMPY, spring.law, p, d)[0]
    again = springs.coordinate_of_elongation(NUMPY, spring.law, p, elongation)
    assert again == pytest.approx(d, abs=1e-10)
    tension, _ = springs.tension(NUMPY, spring.law, p, d)
    again = springs.coordinate_of_tension(NUMPY, spring.law, p, tension)
    assert springs.tension(NUMPY, spring.law, p, again)[0] == pytest.approx(tension, abs=1e-6)


def _numbers(spring):
    from types import SimpleNamespace

    return SimpleNamespace(**springs.parameters(spring))


def test_myomuscle_triangle_has_the_geometrys_length_and_force():
    p = _numbers(TRIANGLE)
    d = np.linspace(0.0, 0.02, 50)

    def inner_length(d):
        return np.hypot(0.012, 0.039 - d) + np.hypot(0.008, 0.018 + 0.039 - d)

    elongation = springs.elongation(NUMPY, "triangle", p, d)[0]
    assert elongation == pytest.approx(inner_length(0.0) - inner_length(d), abs=1e-15)
    angles = np.arctan2(0.012, 0.039 - d), np.arctan2(0.008, 0.057 - d)
    expected = 30680.0 * d / (np.cos(angles[0]) + np.cos(angles[1]))
    assert springs.tension(NUMPY, "triangle", p, d)[0] == pytest.approx(expected)


# Motor ---------------------------------------------------------------------------------------

STRONG = Motor(max_current=50.0)  # the voltage limits, 24 V / 0.797 ohm = 30.1 A


def test_unloaded_motor_turns_at_its_no_load_speed():
    bank = make(SeriesElastic(spring=TRIANGLE))
    tension = hold(bank, 0.3, LENGTH, 10.0, 300)  # pays out, slack
    assert tension[0] == 0.0
    speed = 24.0 / (0.0142 * 53.0)
    assert speed == pytest.approx(31.9, abs=0.05)  # rad/s of the spool
    assert states(bank)["m0/winding_speed"] == pytest.approx(-0.0045 * speed, rel=1e-6)
    assert states(bank)["m0/winding_speed"] == pytest.approx(-0.1435, abs=1e-4)


def test_loaded_motor_follows_its_torque_speed_line_to_the_stall():
    soft = Spring(law="polynomial", stiffness=100.0)
    speeds = {}
    for load in (500.0, 1000.0, 2000.0, 3100.0):
        bank = make(SeriesElastic(spring=soft, motor=STRONG), tension_min=load, tension_max=1e4)
        hold(bank, 0.3, LENGTH, -1e3, 40)
        speeds[load] = states(bank)["m0/winding_speed"]
        gain = 0.0142 * 53.0 / 0.0045
        tension = hold(bank, 0.3, LENGTH, -1e3, 1)[0]
        expected = (24.0 - 0.797 * tension / (0.59 * gain)) / gain
        if load < 2500.0:
            assert speeds[load] == pytest.approx(expected, rel=0.02)
    # stall: 0.4276 Nm behind gear and spool lift 2.97 kN; above it smoothed friction only creeps
    stall = 24.0 / 0.797 * 0.0142 * 53.0 * 0.59 / 0.0045
    assert stall == pytest.approx(2970.0, rel=2e-3)
    assert 0.0 <= speeds[3100.0] < 2.0 * 50.0 * 0.0045 / 53.0
    assert speeds[3100.0] < 0.2 * speeds[2000.0]


def test_current_limit_bounds_the_tension():
    stiff = Spring(law="polynomial", stiffness=1e5)
    bank = make(SeriesElastic(spring=stiff, motor=Motor(max_current=2.0)), tension_max=1e4)
    tension = hold(bank, 0.3, LENGTH, -1e3, 800)[0]
    assert states(bank)["m0/current"] == pytest.approx(2.0)
    force = 2.0 * 0.0142 * 53.0 / 0.0045
    # between what the current lifts and what the gear's friction keeps when the rotor overshoots
    assert 0.59 * force < tension < force / 0.59


def test_a_driver_of_currents_has_no_loop_and_takes_slack_up_at_once():
    """A rotor without mass pulls as its current does, also after the path came 5 mm closer."""
    motor = Motor(rotor_inertia=1e-14, voltage=1e9, max_current=1e3, gear_efficiency=1.0)
    unit = SeriesElastic(
        spring=Spring(law="polynomial", stiffness=1e6), motor=motor, driver="current"
    )
    assert unit.accepted_commands == ("force", "impedance")
    bank = make(unit, tension_max=1e4)
    for length in (0.3, 0.295, 0.301):
        assert hold(bank, length, FORCE, 40.0, 1) == pytest.approx([40.0], rel=1e-3)
    assert hold(bank, 0.3, NO_COMMAND, 0.0, 50) == pytest.approx([0.0], abs=0.1)
    with pytest.raises(ParameterError, match="'position_gain' belongs to driver 'position'"):
        SeriesElastic(spring=TRIANGLE, driver="current", position_gain=1e4).check()


def test_series_elastic_unit_holds_rest_length_and_tension():
    units = [SeriesElastic(spring=spring) for spring in LAWS]
    bank = make(*units, tension_min=20.0)
    assert hold(bank, 0.3, NO_COMMAND, 0.0, 20) == pytest.approx(np.full(5, 20.0))
    lengths = hold(bank, 0.3, LENGTH, 0.295, 600)
    for i, spring in enumerate(LAWS):
        assert states(bank)[f"m{i}/rest_length"] == pytest.approx(0.295, abs=5e-6)
        d = springs.coordinate_of_elongation(NUMPY, spring.law, _numbers(spring), np.array(0.005))
        expected = springs.tension(NUMPY, spring.law, _numbers(spring), d)[0]
        assert lengths[i] == pytest.approx(expected, rel=5e-3)
    # no overshoot worth mentioning, and friction leaves no error
    history = [hold(bank, 0.3, FORCE, 300.0, 1) for _ in range(800)]
    assert history[-1] == pytest.approx(np.full(5, 300.0), rel=1e-3)
    assert np.max(history) < 1.05 * 300.0
    assert history[600] == pytest.approx(np.full(5, 300.0), rel=0.05)


def test_motor_gear_and_spring_never_return_more_than_the_path_puts_in():
    """Back-driven without voltage: all work of the path is stored or lost."""
    unit = SeriesElastic(
        spring=Spring(law="polynomial", stiffness=2e4),
        motor=Motor(voltage=1e-9, dry_friction=1e-3, viscous_friction=1e-6),
    )
    bank = make(unit, dt=2e-4, tension_min=400.0)
    rng = np.random.default_rng(3)
    times = np.arange(1500) * 2e-4
    motion = sum(
        a * np.sin(w * times + f)
        for a, w, f in zip(
            rng.uniform(0, 0.01, 4), rng.uniform(5, 60, 4), rng.uniform(0, 6, 4), strict=True
        )
    )
    motion += 0.3 - motion[0]
    work, mass = 0.0, 4.49e-7 * (53.0 / 0.0045) ** 2
    hold(bank, 0.3, LENGTH, 0.3, 1)
    speed = states(bank)["m0/winding_speed"]
    start = bank.energy()[0] + 0.5 * mass * speed**2
    before = 400.0
    for old, new in itertools.pairwise(motion):
        tension = hold(bank, new, LENGTH, 0.3, 1, (new - old) / 2e-4)[0]
        work += 0.5 * (tension + before) * (new - old)
        before = tension
        speed = states(bank)["m0/winding_speed"]
        energy = bank.energy()[0] + 0.5 * mass * speed**2 - start
        assert energy <= work + 1e-3
    assert work - energy > 0.01  # friction took a share


# Heat ----------------------------------------------------------------------------------------


def test_thermal_step_is_the_matrix_exponential():
    item = Thermal(winding_heat_capacity=7.0, winding_resistance=0.3)
    a = thermal.system_matrix(item)
    for dt in (1e-3, 1.0, 300.0):
        f, b = thermal.discretise(item, dt)
        block = expm(np.block([[a, np.array([[1 / 7.0], [0.0]])], [np.zeros((1, 3))]]) * dt)
        assert f == pytest.approx(block[:2, :2], rel=1e-10, abs=1e-14)
        assert b == pytest.approx(block[:2, 2], rel=1e-9, abs=1e-14)


def test_thermal_time_constants_steady_state_and_balance():
    item = Thermal()
    slow, fast = sorted(-1.0 / np.linalg.eigvals(thermal.system_matrix(item)))[::-1]
    assert fast == pytest.approx(2.0, rel=0.15)  # R1 C1, shortened by the housing
    assert slow == pytest.approx(790.0, rel=0.05)  # about R2 (C1 + C2)
    f, b = thermal.discretise(item, 10.0)
    c, heat, stored, lost = np.zeros(2), 5.0, 0.0, 0.0
    fine, fine_b = thermal.discretise(item, 0.05)
    for _ in range(20000):
        lost += 0.5 * c[1] / item.housing_resistance * 0.05
        c = fine @ c + fine_b * heat
        lost += 0.5 * c[1] / item.housing_resistance * 0.05
    stored = item.winding_heat_capacity * c[0] + item.housing_heat_capacity * c[1]
    assert stored + lost == pytest.approx(heat * 1000.0, rel=1e-5)
    for _ in range(2000):
        c = f @ c + b * heat
    assert c == pytest.approx([heat * (0.2 + 10.0), heat * 10.0])


def test_holding_motor_warms_up_as_the_equations_say():
    item = Thermal(winding_heat_capacity=2.0, housing_heat_capacity=5.0, housing_resistance=3.0)
    bank = make(SeriesElastic(spring=TRIANGLE, thermal=item), dt=0.04, tension_min=400.0)
    hold(bank, 0.3, FORCE, 400.0, 750)
    current = states(bank)["m0/current"]
    assert current == pytest.approx(400.0 * 0.0045 / (53.0 * 0.0142), rel=1e-3)

    def slope(_, c):
        heat = current**2 * 0.797 * (1.0 + 0.0039 * (c[0] - 25.0))
        flow = (c[0] - c[1]) / 0.2
        return [(heat - flow) / 2.0, (flow - (c[1] - 25.0) / 3.0) / 5.0]

    exact = solve_ivp(slope, (0.0, 30.0), [25.0, 25.0], rtol=1e-9, atol=1e-9).y[:, -1]
    own = [states(bank)["m0/winding_temperature"], states(bank)["m0/housing_temperature"]]
    assert own == pytest.approx(exact, abs=0.05)
    assert own[0] > own[1] > 30.0


# Pneumatic muscle ----------------------------------------------------------------------------


def test_mckibben_force_is_that_of_opensim():
    table = {0.27: 768.1215, 0.25: 581.9103, 0.22: 329.4507, 0.20: 179.0493, 0.18: 42.9718}
    count = len(table)
    bank = make(*[Pneumatic(**BRAID, pressure_time=0.001)] * count)
    tension = hold(bank, np.array(list(table)), PRESSURE, 3e5, 60)
    assert tension == pytest.approx(list(table.values()), abs=6e-5)
    assert hold(bank, 0.1732, PRESSURE, 3e5, 60)[0] == 0.0  # -0.0315 N: it does not push


def test_mckibben_force_is_that_of_tondu_and_lopez_with_end_correction():
    k = 1.3
    bank = make(Pneumatic(**BRAID, pressure_time=0.001, end_correction=k, threshold_pressure=2e4))
    angle = math.acos(0.27 / 0.3)
    assert math.degrees(angle) == pytest.approx(25.842, abs=5e-4)
    r0 = 0.3 * math.sin(angle) / (2 * math.pi * 2.0)
    assert r0 == pytest.approx(10.406e-3, abs=5e-7)
    a, b = 3.0 / math.tan(angle) ** 2, 1.0 / math.sin(angle) ** 2
    for length in (0.21, 0.24, 0.27):
        e = 1.0 - length / 0.27
        expected = math.pi * r0**2 * (3e5 - 2e4) * (a * (1 - k * e) ** 2 - b)
        assert hold(bank, length, PRESSURE, 3e5, 60)[0] == pytest.approx(max(expected, 0.0))


def test_mckibben_bladder_tendon_friction_and_force_command():
    item = Pneumatic(
        **BRAID, pressure_time=0.001, tendon_length=0.05, bladder_stiffness=300.0, friction=0.05
    )
    bank = make(item, length=0.3, tension_min=5.0)
    plain = hold(bank, 0.30, PRESSURE, 3e5, 60)[0]  # braid 0.25
    assert plain == pytest.approx(581.9103 - 300.0 * 0.02, abs=1e-4)
    assert hold(bank, 0.30, PRESSURE, 3e5, 1, 1.0)[0] == pytest.approx(plain * 1.05)
    assert hold(bank, 0.30, PRESSURE, 3e5, 1, -1.0)[0] == pytest.approx(plain * 0.95)
    assert hold(bank, 0.30, FORCE, 200.0, 60)[0] == pytest.approx(200.0)
    assert hold(bank, 0.30, NO_COMMAND, 200.0, 60)[0] == 0.0
    assert states(bank)["m0/pressure"] == pytest.approx(0.0, abs=1e-6)
    assert hold(bank, 0.30, PRESSURE, 9e9, 60)[0] == pytest.approx(2 * plain + 6.0, rel=1e-6)


def test_mckibben_force_falls_with_contraction_and_grows_with_pressure():
    lengths = np.linspace(0.18, 0.27, 30)
    bank = make(*[Pneumatic(**BRAID, pressure_time=0.001, end_correction=1.2)] * 30)
    last = np.full(30, -1.0)
    for pressure in (1e5, 3e5, 6e5):
        tension = hold(bank, lengths, PRESSURE, pressure, 60)
        assert np.all(np.diff(tension) >= 0.0)
        assert np.all(tension >= last)
        last = tension
    # antagonists: their common pressure makes the joint stiff
    for low, high in ((1e5, 2e5), (2e5, 5e5)):
        slopes = [
            np.diff(hold(bank, lengths, PRESSURE, pressure, 60))[-1] for pressure in (low, high)
        ]
        assert slopes[1] > 1.5 * slopes[0]


def test_pressure_lag_has_its_time_constant():
    bank = make(Pneumatic(**BRAID, pressure_time=0.08))
    hold(bank, 0.25, PRESSURE, 1e5, 80)
    assert states(bank)["m0/pressure"] == pytest.approx(1e5 * (1.0 - math.exp(-1.0)))


def test_braids_virtual_work_and_closed_valve():
    """F dL + p dV = 0 for the ideal braid; isothermal air behind a closed valve: P V constant."""
    shut = Valve(conductance=1e-30, band=1e9, supply_pressure=9e5)
    bank = make(Pneumatic(**BRAID, valve=shut, friction=0.0), length=0.25, tension_min=300.0)
    turns = 4 * math.pi * 4.0

    def volume(length):
        return length * (0.09 - length**2) / turns

    p0 = states(bank)["m0/pressure"]
    lengths = np.linspace(0.25, 0.23, 41)
    work = pushed = 0.0
    before = None
    for length in lengths:
        tension = hold(bank, length, PRESSURE, 0.0, 1)[0]
        p = states(bank)["m0/pressure"]
        assert (p + 101325.0) * volume(length) == pytest.approx((p0 + 101325.0) * volume(0.25))
        if before is not None:
            work += 0.5 * (tension + before[0]) * (length - before[2])
            pushed += 0.5 * (p + before[1]) * (volume(length) - volume(before[2]))
        before = (tension, p, length)
    assert work == pytest.approx(-pushed, rel=1e-4)
    assert work < -1.0


def test_valve_fills_at_the_sonic_flow_and_arrives():
    valve = Valve(conductance=2e-9, supply_pressure=7e5)
    bank = make(Pneumatic(**BRAID, valve=valve), length=0.25)
    volume = 0.25 * (0.09 - 0.25**2) / (4 * math.pi * 4.0)
    hold(bank, 0.25, PRESSURE, 3e5, 10)
    # up to 0.3 of the supply the flow does not depend on the pressure inside
    rate = 2e-9 * 1e5 * (7e5 + 101325.0) / volume
    assert states(bank)["m0/pressure"] == pytest.approx(rate * 0.01, rel=1e-6)
    hold(bank, 0.25, PRESSURE, 3e5, 400)
    assert states(bank)["m0/pressure"] == pytest.approx(3e5, rel=1e-4)
    bank = make(Pneumatic(**BRAID, valve=valve), length=0.25, dt=4e-3, tension_min=500.0)
    assert states(bank)["m0/pressure"] > 2e5
    hold(bank, 0.25, PRESSURE, 0.0, 800)
    assert 0.0 <= states(bank)["m0/pressure"] < 3e3


def test_valve_against_an_ode_solver_with_moving_braid():
    valve = Valve(conductance=2e-9, supply_pressure=7e5, polytropic_exponent=1.2)
    dt = 5e-4
    bank = make(Pneumatic(**BRAID, valve=valve), length=0.25, dt=dt)

    def length(t):
        return 0.25 + 0.01 * math.sin(30 * t)

    def volume(length):
        return length * (0.09 - length**2) / (16 * math.pi)

    def slope(t, state):
        p = state[0]
        v = volume(length(t))
        growth = (volume(length(t + 1e-7)) - volume(length(t - 1e-7))) / 2e-7
        opening = max(-1.0, min(1.0, (2.5e5 + 101325.0 - p) / 2e4))
        up, down = (801325.0, p) if opening > 0 else (p, 101325.0)
        ratio = down / up
        phi = 1.0 if ratio < 0.3 else math.sqrt(max(0.0, 1 - ((ratio - 0.3) / 0.7) ** 2))
        return [1.2 / v * (opening * 2e-9 * 1e5 * up * phi - p * growth)]

    exact = solve_ivp(slope, (0, 0.2), [101325.0], max_step=1e-3, rtol=1e-8).y[0, -1]
    for step in range(1, 401):
        hold(bank, length(step * dt), PRESSURE, 2.5e5, 1)
    assert states(bank)["m0/pressure"] + 101325.0 == pytest.approx(exact, rel=5e-3)
