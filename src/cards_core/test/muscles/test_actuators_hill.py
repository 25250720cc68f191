"""Hill muscles against published curves, OpenSim's and MuJoCo's numbers, and an ODE solver."""

import numpy as np
import pytest
from actuator_samples import HILL, actuator_robot
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.hill import CURVES, DeGroote2016, curves_of
from cards_core.muscles.command import EXCITATION, FORCE
from cards_core.robot.actuators import Hill

# length [m], activation, tendon force [N], fibre length [m]: OpenSim 4.6, isometric, F0 1000 N,
# l_opt 0.1 m, l_slack 0.2 m
THELEN = [
    (0.28, 1.0, 847.499, 0.072713),
    (0.30, 0.05, 49.946, 0.097796),
    (0.30, 0.5, 496.470, 0.094353),
    (0.30, 1.0, 986.105, 0.092065),
    (0.31, 1.0, 1000.342, 0.101998),
    (0.33, 0.5, 483.072, 0.124416),
    (0.33, 1.0, 932.005, 0.122318),
]
DE_GROOTE = [
    (0.28, 1.0, 723.833, 0.071631),
    (0.30, 0.05, 66.219, 0.098436),
    (0.30, 0.5, 494.209, 0.093193),
    (0.30, 1.0, 950.765, 0.090429),
    (0.31, 1.0, 1018.549, 0.100116),
    (0.33, 0.5, 448.152, 0.123569),
    (0.33, 1.0, 848.788, 0.120937),
]
ISOMETRIC = [("thelen_2003", *row) for row in THELEN]
ISOMETRIC += [("de_groote_2016", *row) for row in DE_GROOTE]


def test_isometric_equilibria_are_those_of_opensim():
    curves, lengths, activations, forces, fibers = zip(*ISOMETRIC, strict=True)
    lengths, activations = np.array(lengths), np.array(activations)
    robot = actuator_robot(*(Hill(**HILL, curves=name) for name in curves))
    bank = ActuatorBank(robot, 5e-3, "numeric")
    bank.reset(lengths)
    still, kinds = np.zeros(len(lengths)), np.full(len(lengths), EXCITATION)
    for _ in range(400):
        tension = bank.step(lengths, still, kinds, activations)
    assert tension == pytest.approx(np.array(forces), abs=6e-4)
    assert bank.state_values[::2] == pytest.approx(activations, abs=1e-12)
    assert bank.state_values[1::2] == pytest.approx(np.array(fibers), abs=6e-7)


# the printed constants of the paper; values by SymPy 1.14, physics.biomechanics
PRINTED = DeGroote2016(
    tendon=(0.2, 0.995, 0.25),
    active=(
        (0.814, 1.06, 0.162, 0.0633),
        (0.433, 0.717, -0.0299, 0.2),
        (0.1, 1.0, 0.354, 0.0),
    ),
    passive=(4.0, 0.6, 1.0),
    velocity=(-0.318, -8.149, -0.374, 0.886),
)


@pytest.mark.parametrize(
    ("curve", "points"),
    [
        (
            lambda x: PRINTED.active(NUMPY, x)[0],
            {
                0.5: 0.052912,
                0.6: 0.296930,
                0.8: 0.823978,
                1: 0.994140,
                1.2: 0.800711,
                1.4: 0.387534,
            },
        ),
        (
            lambda x: PRINTED.passive(NUMPY, x)[0],
            {1.0: 0.0, 1.2: 0.052122, 1.4: 0.249858, 1.6: 1.0},
        ),
        (
            lambda x: PRINTED.velocity(NUMPY, x, 1.0)[0],
            {-1: 0.012082, -0.5: 0.243834, 0: 1.002321, 0.5: 1.585, 1: 1.788910},
        ),
        (
            lambda x: PRINTED.tendon(NUMPY, x, 0.08, 33.93669377311689)[0],
            {1.01: 0.082742, 1.02: 0.217189, 1.049: 1.0},
        ),
    ],
    ids=["active", "passive", "velocity", "tendon"],
)
def test_printed_de_groote_curves_are_those_of_sympy(curve, points):
    x = np.array(list(points), dtype=float)
    assert curve(x) == pytest.approx(np.array(list(points.values())), abs=6e-7)


def test_de_groote_curves_against_a_live_sympy():
    sympy = pytest.importorskip("sympy", minversion="1.13", reason="needs sympy >= 1.13")
    biomechanics = pytest.importorskip("sympy.physics.biomechanics")
    symbol = sympy.Symbol("x")
    for name, start, own in (
        ("FiberForceLengthActiveDeGroote2016", 0.3, lambda x: PRINTED.active(NUMPY, x)[0]),
        ("FiberForceLengthPassiveDeGroote2016", 1.0, lambda x: PRINTED.passive(NUMPY, x)[0]),
        ("FiberForceVelocityDeGroote2016", -1.0, lambda x: PRINTED.velocity(NUMPY, x, 1.0)[0]),
    ):
        theirs = sympy.lambdify(symbol, getattr(biomechanics, name).with_defaults(symbol), "numpy")
        x = np.linspace(start, start + 0.7, 30)
        assert own(x) == pytest.approx(theirs(x), abs=1e-12)


def test_thelen_velocity_curve_solves_thelens_equation():
    # v = (0.25 + 0.75 a)(F - a fL)/b with a fL = 1 here
    curve = CURVES["thelen_2003"]
    for activation in (0.05, 0.4, 1.0):
        v = np.linspace(-0.25 - 0.7 * activation, 1.2, 60)
        force = curve.velocity(NUMPY, v, activation)[0]
        b = np.where(force <= 1.0, 1.0 + force / 0.25, 10.0 * (1.4 - force) / 0.4)
        again = (0.25 + 0.75 * activation) * (force - 1.0) / b
        assert again == pytest.approx(v, abs=1e-12)


@pytest.mark.parametrize("name", sorted(CURVES))
def test_slopes_of_the_curves_are_their_derivatives(name):
    curves = CURVES[name]
    stiffness = curves.tendon_stiffness(0.045)
    h = 1e-6
    functions = [
        (lambda x: curves.active(NUMPY, x), np.linspace(0.2, 1.9, 400)),
        (lambda x: curves.passive(NUMPY, x), np.linspace(0.21, 3.0, 400)),
        (lambda x: curves.tendon(NUMPY, x, 0.045, stiffness), np.linspace(1.0003, 1.3, 400)),
        (lambda x: curves.velocity(NUMPY, x, 0.7)[:2], np.linspace(-0.77, 2.0, 400)),
        (lambda x: curves.velocity(NUMPY, x, 0.7)[1:], np.linspace(-0.77, 2.0, 400)),
    ]
    for function, x in functions:
        middle = (function(x + h)[0] - function(x - h)[0]) / (2 * h)
        assert function(x)[1] == pytest.approx(middle, rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("name", sorted(CURVES))
def test_tendon_passive_and_velocity_curves_never_fall(name):
    curves = CURVES[name]
    x = np.linspace(0.0, 4.0, 4001)
    stiffness = curves.tendon_stiffness(curves.strain)
    for values in (
        curves.tendon(NUMPY, x, curves.strain, stiffness)[0],
        curves.passive(NUMPY, x)[0],
        curves.velocity(NUMPY, x - 2.0, 0.5)[0],
    ):
        assert np.all(np.diff(values) >= 0.0)
        assert np.all(values >= 0.0)
    nominal = np.array(1.0 + curves.strain)
    force, _ = curves.tendon(NUMPY, nominal, curves.strain, stiffness)
    assert force == pytest.approx(1.0, abs=1e-3)
    forces = np.linspace(0.0, 2.0, 50)
    lengths = curves.tendon_length(NUMPY, forces, curves.strain, stiffness)
    assert curves.tendon(NUMPY, lengths, curves.strain, stiffness)[0] == pytest.approx(forces)


def test_activation_rates_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><body><joint type="slide"
        name="j"/><geom size="1"/></body></worldbody><actuator><muscle joint="j"
        timeconst="0.01 0.04" lengthrange="0 1"/></actuator></mujoco>""")
    data = mujoco.MjData(model)
    curve = CURVES["thelen_2003"]
    for u, a in ((1.0, 0.0), (1.0, 0.5), (0.0, 1.0), (0.0, 0.5), (0.3, 0.31), (0.3, 0.2)):
        data.ctrl[0], data.act[0] = u, a
        mujoco.mj_forward(model, data)
        rate = curve.activation_rate(NUMPY, u, a, 0.01, 0.04) * (u - a)
        assert rate == pytest.approx(data.act_dot[0], rel=1e-12)


@pytest.mark.parametrize("curves", ["de_groote_2016", "thelen_2003"])
def test_activation_dynamics_against_an_ode_solver(curves):
    bank = ActuatorBank(
        actuator_robot(Hill(**HILL, curves=curves, tendon="rigid")), 5e-4, "numeric"
    )
    set_ = CURVES[curves]
    bank.reset(np.array([0.3]))

    def slope(t, a):
        u = 1.0 if t < 0.05 else 0.2
        rate = set_.activation_rate(NUMPY, u, a, set_.activation_time, set_.deactivation_time)
        return rate * (u - a)

    up = solve_ivp(slope, (0, 0.05 - 1e-12), [0.01], rtol=1e-10, atol=1e-12)
    down = solve_ivp(slope, (0.05, 0.15), up.y[:, -1], rtol=1e-10, atol=1e-12)
    given = np.array([EXCITATION])
    for step in range(300):
        u = 1.0 if step < 100 else 0.2
        bank.step(np.array([0.3]), np.zeros(1), given, np.array([u]))
        if step == 99:
            assert bank.state_values[0] == pytest.approx(up.y[0, -1], abs=2e-3)
            assert up.y[0, -1] > 0.8
    assert bank.state_values[0] == pytest.approx(down.y[0, -1], abs=2e-3)


def _reference_fiber(hill, length, activation, times):
    """Integrate the fibre length with an ODE solver; tensions at the times."""
    curves = CURVES[hill.curves]
    strain = curves.strain
    kt = curves.tendon_stiffness(strain)

    def velocity(t, lm):
        tendon = (length(t) - hill.optimal_fiber_length * lm) / hill.tendon_slack_length
        force = curves.tendon(NUMPY, np.array(tendon), strain, kt)[0]
        fl = curves.active(NUMPY, np.array(lm))[0]
        fp = curves.passive(NUMPY, np.array(lm))[0]

        def balance(v):
            fv = curves.velocity(NUMPY, np.array(v), activation)[0]
            return activation * fl * fv + fp + hill.damping * v - force

        return brentq(balance, -5e3, 5e3, xtol=1e-13)

    start = brentq(lambda lm: velocity(0.0, lm), 0.8, 1.3)
    solution = solve_ivp(
        lambda t, y: [hill.max_velocity * velocity(t, y[0])],
        (0.0, times[-1]),
        [start],
        method="LSODA",
        t_eval=times,
        rtol=1e-7,
        atol=1e-10,
    )
    tendon = (length(times) - hill.optimal_fiber_length * solution.y[0]) / hill.tendon_slack_length
    return hill.max_isometric_force * curves.tendon(NUMPY, tendon, strain, kt)[0]


def test_fiber_and_stiff_tendon_at_1_khz_follow_an_ode_solver():
    hills = [Hill(**HILL, curves=curves) for curves in sorted(CURVES)]
    count = len(hills)

    def length(t):
        return 0.305 + 0.008 * np.sin(40.0 * t)

    errors = []
    for dt in (1e-3, 2.5e-4):
        bank = ActuatorBank(actuator_robot(*hills), dt, "numeric")
        bank.reset(np.full(count, length(0.0)))
        given = (np.full(count, EXCITATION), np.full(count, 0.6))
        settle = ActuatorBank(actuator_robot(*hills), 5e-3, "numeric")
        settle.reset(np.full(count, length(0.0)))
        for _ in range(200):
            settle.step(np.full(count, length(0.0)), np.zeros(count), *given)
        bank._state[:] = settle._state
        times = np.arange(1, round(0.1 / dt) + 1) * dt
        own = np.array(
            [bank.step(np.full(count, length(t)), np.zeros(count), *given).copy() for t in times]
        )
        exact = [_reference_fiber(hill, length, 0.6, times) for hill in hills]
        errors.append(np.max(np.abs(own - np.array(exact).T), axis=0))
    assert np.all(errors[0] < 15.0)  # of 1000 N, at 1 ms, in a motion at 40 rad/s
    assert np.all(errors[1] < 0.35 * errors[0])  # first order


def test_rigid_tendon_is_the_limit_of_a_stiff_one():
    stiff = {**HILL, "tendon_slack_length": 0.05}
    robot = actuator_robot(
        Hill(**stiff, tendon="elastic", tendon_strain=1e-4), Hill(**stiff, tendon="auto")
    )
    bank = ActuatorBank(robot, 1e-3, "numeric")
    assert bank.state_names.count("m1/fiber_length") == 1
    lengths = np.full(2, 0.15)
    bank.reset(lengths)
    for step in range(400):
        t = 1e-3 * step
        lengths[:] = 0.15 + 0.02 * np.sin(5 * t)
        rates = np.full(2, 0.1 * np.cos(5 * t))
        tension = bank.step(lengths, rates, np.full(2, EXCITATION), np.full(2, 0.5))
        if step > 100:
            assert tension[0] == pytest.approx(tension[1], rel=0.01)


def test_auto_takes_the_tendon_rigid_below_the_fiber_length():
    assert Hill(**{**HILL, "tendon_slack_length": 0.099}).rigid_tendon
    assert not Hill(**HILL).rigid_tendon
    assert Hill(**HILL, tendon="rigid").rigid_tendon


def test_pennation_reduces_the_force_along_the_tendon_by_the_cosine():
    angle = 0.5
    rigid = {**HILL, "tendon": "rigid"}
    robot = actuator_robot(Hill(**rigid), Hill(**rigid, pennation_angle=angle))
    bank = ActuatorBank(robot, 1e-3, "numeric")
    lengths = np.array([0.3, 0.2 + 0.1 * np.cos(angle)])  # both at optimal fibre length
    bank.reset(lengths)
    for _ in range(300):
        tension = bank.step(lengths, np.zeros(2), np.full(2, EXCITATION), np.ones(2))
    assert tension[1] == pytest.approx(tension[0] * np.cos(angle), rel=1e-9)
    assert bank.state_values[[1, 3]] == pytest.approx([0.1, 0.1])


def test_a_muscle_shorter_than_its_tendon_is_slack_and_comes_back():
    for tendon in ("elastic", "rigid"):
        bank = ActuatorBank(actuator_robot(Hill(**HILL, tendon=tendon)), 1e-3, "numeric")
        given = (np.array([EXCITATION]), np.array([1.0]))
        bank.reset(np.array([0.3]))
        for _ in range(100):
            slack = bank.step(np.array([0.19]), np.zeros(1), *given)[0]
        assert slack == 0.0
        for _ in range(400):
            back = bank.step(np.array([0.31]), np.zeros(1), *given)[0]
        assert 900.0 < back < 1100.0


def test_force_command_is_inverted_within_the_limits():
    robot = actuator_robot(
        Hill(**HILL), Hill(**HILL, curves="thelen_2003", pennation_angle=0.3), tension_max=600.0
    )
    bank = ActuatorBank(robot, 2e-3, "numeric")
    lengths = np.array([0.302, 0.304])
    bank.reset(lengths)
    for force, reached in ((300.0, 300.0), (550.0, 550.0), (5000.0, 600.0)):
        for _ in range(500):
            tension = bank.step(lengths, np.zeros(2), np.full(2, FORCE), np.full(2, force))
        assert tension == pytest.approx([reached, reached], rel=1e-6)


def test_a_pennated_muscle_that_shortens_has_the_commanded_force():
    """The excitation counts on the speed of the fibre, that of the path times the cosine."""
    muscle = Hill(**HILL, curves="thelen_2003", pennation_angle=0.6, tendon="rigid")
    bank = ActuatorBank(actuator_robot(muscle), 1e-3, "numeric")
    length, rate = 0.2 + 0.1 * np.cos(0.6) + 0.01, -0.1
    bank.reset(np.array([length]))
    for _ in range(200):
        length += 1e-3 * rate
        tension = bank.step(
            np.array([length]), np.array([rate]), np.array([FORCE]), np.array([200.0])
        )
    assert tension[0] == pytest.approx(200.0, rel=0.01)


@pytest.mark.parametrize("curves", ["de_groote_2016", "thelen_2003"])
def test_a_constant_that_is_stated_keeps_the_set_of_curves(curves):
    """The passive force is F0 at its strain; everything else is as without the constant."""
    usual = CURVES[curves]
    stated = curves_of(Hill(**HILL, curves=curves, passive_strain=0.5))
    assert type(stated) is type(usual)
    assert stated.passive(NUMPY, np.array(1.5))[0] == pytest.approx(1.0, abs=0.02)
    for length in (0.7, 1.0, 1.3):
        at = np.array(length)
        assert stated.active(NUMPY, at)[0] == pytest.approx(usual.active(NUMPY, at)[0])
