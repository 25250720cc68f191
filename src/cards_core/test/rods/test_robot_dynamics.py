"""The rod robot with the mass of its rods: statics, modes, balance of forces, moving joints."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from cards_core.errors import RodError, ShapeError
from cards_core.formats.locate import known_models
from cards_core.rods.dynamics.modes import natural_frequencies
from cards_core.rods.dynamics.robot_dynamics import RobotDynamics, RodDynamics, single_rod
from cards_core.rods.loads import Loading
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import Base, BaseKind, Limb, Plate, RodRobot, Tip, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape
from cards_core.spatial import hat, rpy_matrix


def resting(name, dt, **options):
    """Robot, its solution by the static solver with fine steps, and its dynamics at rest."""
    robot = read_rod_robot(name)
    solver = RodRobotSolver(robot, replace(robot.settings, steps=8, tolerance=1e-9))
    solution = solver.igm(robot.home_pose)
    dynamics = RobotDynamics(robot, dt, **options)
    instant = dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    return robot, solver, solution, dynamics, instant


@pytest.mark.parametrize(
    "name", ["stewart_6efr", "stewart_6pfs", "stewart_gough_6rfs", "spatial_3pfr"]
)
def test_at_rest_it_is_the_static_solver(name):
    _, _, solution, dynamics, instant = resting(name, 2e-3, steps=24)
    np.testing.assert_allclose(instant.pose, solution.pose, atol=1e-7)
    np.testing.assert_allclose(instant.base_wrenches, solution.base_wrenches, atol=1e-5)
    stiffness = dynamics.dynamic_stiffness(0.0)
    np.testing.assert_allclose(stiffness, solution.stiffness, atol=1e-5 * np.abs(stiffness).max())
    for _ in range(3):
        moved = dynamics.step()
    np.testing.assert_allclose(moved.pose, instant.pose, atol=1e-9)


def tip_stiffness(rod, length, square):
    """A clamped straight rod along z that vibrates: wrench per motion of its tip, (6, 6)."""
    out = np.zeros((6, 6))
    gj, ea, shear = rod.stiffness_bt[2], rod.stiffness_se[2], rod.stiffness_se[0]
    for k, stiffness, inertia in (
        (2, ea, rod.mass_per_length),
        (5, gj, rod.inertia_per_length[2]),
    ):
        wave = np.sqrt(square * inertia / stiffness)
        out[k, k] = stiffness * wave / np.tan(wave * length) if square else stiffness / length
    rate = np.zeros((4, 4))  # of Timoshenko's beam: deflection, slope, moment, force
    rate[0, 1], rate[0, 3] = 1.0, 1.0 / shear
    rate[1, 2] = 1.0 / rod.stiffness_bt[0]
    rate[2, 1], rate[2, 3] = -rod.inertia_per_length[0] * square, -1.0
    rate[3, 0] = -rod.mass_per_length * square
    through = scipy.linalg.expm(rate * length)
    moment, force = through[2:, 2:] @ np.linalg.inv(through[:2, 2:])
    for move, turn, sign in ((0, 4, 1.0), (1, 3, -1.0)):  # slope of y along z: -rotation about x
        out[move, move], out[move, turn] = force[0], sign * force[1]
        out[turn, move], out[turn, turn] = sign * moment[0], moment[1]
    return out


@pytest.mark.parametrize("frequency", [0.0, 3.0, 40.0])
def test_dynamic_stiffness_of_upright_rods_by_beam_theory(frequency):
    rod = Rod(Section.circle(1e-3), Material(200e9, shear=80e9, density=8000.0))
    places, lengths = [(0.1, 0.02), (-0.05, 0.12), (-0.08, -0.1)], [0.5, 0.5, 0.4]
    mass, com = 0.3, np.array([0.02, -0.01, 0.03])
    inertia = np.array([[2e-3, 1e-4, 0.0], [1e-4, 3e-3, 2e-4], [0.0, 2e-4, 4e-3]])
    limbs, square = [], (2.0 * np.pi * frequency) ** 2
    cross = hat(com)
    expected = -square * np.block(
        [[mass * np.eye(3), -mass * cross], [mass * cross, inertia - mass * cross @ cross]]
    )
    for (x, y), length in zip(places, lengths, strict=True):
        base, joint = np.eye(4), np.eye(4)
        base[:3, 3], joint[:3, 3] = (x, y, 0.5 - length), (x, y, 0.0)
        limbs.append(
            Limb(
                f"limb_{x}",
                rod,
                length,
                Base(BaseKind.FIXED, base, np.eye(4), 0.0, 0.0),
                Tip(TipKind.FIXED, joint, np.eye(4)),
            )
        )
        carried = np.eye(6)
        carried[:3, 3:] = -hat(np.array([x, y, 0.0]))
        expected += carried.T @ tip_stiffness(rod, length, square) @ carried
    pose = np.eye(4)
    pose[2, 3] = 0.5
    plate = Plate("plate", mass, com, inertia, pose)
    robot = RodRobot("upright", tuple(limbs), plate, np.zeros(3))
    dynamics = RobotDynamics(robot, 1e-3, steps=24, segments=4)
    dynamics.rest()
    found = dynamics.dynamic_stiffness(square)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    block = np.ix_([0, 1, 5], [0, 1, 5])  # without the axial stiffness, which is much larger
    np.testing.assert_allclose(found[block], expected[block], rtol=1e-6)


def test_stiffness_is_symmetric_with_every_joint():
    """Free directions do no work: with universal joints as well, whose moments lie askew."""
    for kind in (TipKind.FIXED, TipKind.REVOLUTE, TipKind.SPHERICAL, TipKind.UNIVERSAL):
        robot = read_rod_robot("stewart_6efr")
        limbs = tuple(replace(limb, tip=replace(limb.tip, kind=kind)) for limb in robot.limbs)
        robot = replace(robot, limbs=limbs)
        pose = robot.home_pose
        pose[:3, 3] += [0.02, 0.03, 0.01]
        solution = RodRobotSolver(robot).igm(pose)
        dynamics = RobotDynamics(robot, 2e-3, steps=24)
        dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
        stiffness = dynamics.dynamic_stiffness(0.0)
        np.testing.assert_allclose(stiffness, stiffness.T, atol=1e-6 * np.abs(stiffness).max())


def test_universal_joints_rest_where_the_static_solver_says():
    """Both have a cross between rod and plate, far from its straight position too."""
    robot = read_rod_robot("stewart_6efr")
    limbs = tuple(
        replace(limb, tip=replace(limb.tip, kind=TipKind.UNIVERSAL)) for limb in robot.limbs
    )
    robot = replace(robot, limbs=limbs)
    pose = robot.home_pose
    pose[:3, :3] = rpy_matrix(0.15, -0.1, 0.2)
    pose[:3, 3] += [0.04, 0.03, 0.01]
    solver = RodRobotSolver(robot, replace(robot.settings, steps=8, tolerance=1e-9))
    solution = solver.igm(pose)
    assert solution.converged
    dynamics = RobotDynamics(robot, 2e-3, steps=24)
    instant = dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    np.testing.assert_allclose(instant.pose, solution.pose, atol=1e-7)
    np.testing.assert_allclose(instant.base_wrenches, solution.base_wrenches, atol=1e-5)
    stiffness = dynamics.dynamic_stiffness(0.0)
    np.testing.assert_allclose(stiffness, solution.stiffness, atol=1e-5 * np.abs(stiffness).max())
    moved = dynamics.step()
    np.testing.assert_allclose(moved.pose, instant.pose, atol=1e-9)


def test_it_swings_at_its_natural_frequency():
    _, _, _, dynamics, start = resting("stewart_6efr", 4e-3)
    expected = natural_frequencies(dynamics)
    np.testing.assert_allclose(expected[0], expected[1], rtol=1e-9)
    sways = []
    for _ in range(550):
        push = 0.3 * np.sin(np.pi * dynamics.time / 0.4) ** 2 * (dynamics.time < 0.4)
        instant = dynamics.step(wrench=np.array([push, 0.0, 0.0, 0.0, 0.0, 0.0]))
        sways.append(instant.pose[0, 3] - start.pose[0, 3])
    values = np.array(sways[110:])
    k = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    zeros = (k + values[k] / (values[k] - values[k + 1])) * dynamics.dt
    # the other sway mode (5.9 Hz) moves the zeros a little
    assert 0.5 / np.mean(np.diff(zeros)) == pytest.approx(expected[0], rel=0.01)


def test_momentum_changes_by_the_forces():
    robot, _, _, dynamics, _ = resting("stewart_6pfs", 2e-3, tolerance=2e-10)
    rods = sum(limb.rod.mass_per_length * limb.length for limb in robot.limbs)
    weight = (rods + robot.plate.mass) * robot.gravity
    old = before = dynamics.momentum()
    rate = np.zeros(6)
    for k in range(30):
        force = np.array([1.0, 0.5, -0.5]) * np.sin(0.1 * (k + 1)) ** 2
        instant = dynamics.step(wrench=np.concatenate([force, np.zeros(3)]))
        formula, momentum = dynamics._formula_now, dynamics.momentum()
        rate = formula.c0 * momentum + formula.c1 * before + formula.c2 * old + formula.d1 * rate
        old, before = before, momentum
        expected = weight + force - instant.base_wrenches[:, :3].sum(axis=0)
        np.testing.assert_allclose(rate[:3], expected, atol=1e-5 * np.linalg.norm(weight))


@pytest.mark.parametrize("name", ["stewart_6efr", "stewart_6pfr", "planar_3rfr"])
def test_moved_joints_end_in_the_static_solution(name):
    """Rods fed out, slid or turned; with damping the robot settles where the solver says."""
    robot, solver, solution, _, _ = resting(name, 0.02)
    limbs = tuple(
        replace(limb, rod=Rod(limb.rod.section, limb.rod.material, damping=0.1))
        for limb in robot.limbs
    )
    dynamics = RobotDynamics(replace(robot, limbs=limbs), 0.02, steps=12)
    dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    change = 0.02 * np.cos(np.arange(robot.n_limbs) * 2.0)
    for k in range(250):
        instant = dynamics.step(solution.q + change * min(1.0, (k + 1) / 40.0))
    target = solution
    for share in np.linspace(0.1, 1.0, 10):
        target = solver.dgm(solution.q + share * change, start=target)
    assert np.linalg.norm(target.pose - solution.pose) > 3e-3
    np.testing.assert_allclose(instant.pose, target.pose, atol=2e-5)


def test_failure_changes_nothing():
    _, _, _, dynamics, start = resting("stewart_6efr", 2e-3)
    dynamics.step()
    with pytest.raises(RodError, match="no solution at t"):
        dynamics.step(np.full(6, 0.1))
    instant = dynamics.step()
    np.testing.assert_allclose(instant.pose, start.pose, atol=1e-7)
    with pytest.raises(RodError, match="right after rest"):
        dynamics.dynamic_stiffness(0.0)
    with pytest.raises(RodError, match="robot is 'stewart_6efr'; expected a RodRobot"):
        RobotDynamics("stewart_6efr", 2e-3)


@pytest.mark.parametrize("dt", [5e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1e-4])
@pytest.mark.parametrize("name", known_models(rods=True))
def test_every_shipped_robot_rests_at_any_step(name, dt):
    robot = read_rod_robot(name)
    home = RodRobotSolver(robot).igm(robot.home_pose)
    dynamics = RobotDynamics(robot, dt)
    start = dynamics.rest(home.q, pose=home.pose, base_wrenches=home.base_wrenches)
    for _ in range(30):
        instant = dynamics.step()
    np.testing.assert_allclose(instant.pose, start.pose, atol=1e-10)


STEEL = Material(200e9, shear=80e9, density=8000.0)
ROD = Rod(Section.circle(1e-3), STEEL)
LENGTH = 0.5
EI, RA = ROD.stiffness_bt[0], ROD.mass_per_length


def beam_frequencies(count, tip_mass=0.0, clamped=False, compression=0.0):
    """Timoshenko's cantilever by the matrix exponential of (w, psi, moment, force), [Hz].

    The force is the one across the axis of the straight beam, so that a dead compressive load at
    the tip leaves its end condition as it is.
    """
    shear, inertia = ROD.stiffness_se[0], ROD.inertia_per_length[0]

    def closing(frequency):
        square = (2.0 * np.pi * frequency) ** 2
        rate = np.array(
            [
                [0.0, 1.0, 0.0, 1.0 / shear],
                [0.0, 0.0, 1.0 / EI, 0.0],
                [0.0, -inertia * square, 0.0, -1.0],
                [-RA * square, 0.0, 0.0, 0.0],
            ]
        )
        rate[2] -= compression * rate[0]
        through = scipy.linalg.expm(rate * LENGTH)
        if clamped:
            return np.linalg.det(through[:2, 2:])
        through[3] -= tip_mass * square * through[0]
        return np.linalg.det(through[2:, 2:])

    grid = np.geomspace(0.5, 250.0, 400)
    values = [closing(f) for f in grid]
    roots = [
        scipy.optimize.brentq(closing, a, b, xtol=1e-13, rtol=1e-14)
        for a, b, x, y in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True)
        if x * y < 0.0
    ]
    return np.array(roots[:count])


def upward_zeros(times, values):
    k = np.flatnonzero((values[:-1] < 0.0) & (values[1:] >= 0.0))
    return k, times[k] - values[k] * (times[k + 1] - times[k]) / (values[k + 1] - values[k])


def ringing(times, values):
    """Mean frequency between upward zeros."""
    return 1.0 / np.mean(np.diff(upward_zeros(times, values)[1]))


def decay(times, values):
    """Rate at which the peaks between upward zeros fall, [1/s]."""
    k, zeros = upward_zeros(times, values)
    peaks = [values[first:last].max() for first, last in itertools.pairwise(k)]
    return -np.mean(np.diff(np.log(peaks))) / np.mean(np.diff(zeros))


def free_vibration(dynamics, duration, force=2e-3):
    """Bend the rod by a sideways force, let it go, return times, tip positions and energies."""
    wrench = np.array([force, 0.0, 0.0, 0.0, 0.0, 0.0])
    dynamics.rest(wrench=wrench)
    dynamics.restart()
    instants = [dynamics.step(wrench=np.zeros(6))]
    energies = [dynamics.energy()["total"]]
    for _ in range(round(duration / dynamics.dt) - 1):
        instants.append(dynamics.step())
        energies.append(dynamics.energy()["total"])
    return (
        np.array([i.time for i in instants]),
        np.array([i.pose[0, 3] for i in instants]),
        np.array(energies),
    )


def pulse(t):
    """Smooth push, 20 ms long."""
    return np.sin(np.pi * t / 0.02) ** 4 * (t < 0.02)


def test_natural_frequencies_are_those_of_the_beam():
    expected = beam_frequencies(3)
    assert expected[0] == pytest.approx(5.595, abs=1e-3)
    dynamics = RodDynamics(single_rod(ROD, LENGTH), 1e-3, steps=32, segments=4)
    dynamics.rest()
    np.testing.assert_allclose(natural_frequencies(dynamics, expected), expected, rtol=1e-9)


@pytest.mark.parametrize("share", [-1.0, 0.5, 0.9])
def test_load_along_the_axis_changes_the_frequencies(share):
    """Pulled, or pushed with a share of Euler's load, at which the lowest one becomes zero."""
    load = share * np.pi**2 * EI / (4.0 * LENGTH**2)
    dynamics = RodDynamics(single_rod(ROD, LENGTH), 1e-3, steps=32, segments=4)
    dynamics.rest(wrench=np.array([0.0, 0.0, -load, 0.0, 0.0, 0.0]))
    expected = beam_frequencies(2, compression=load)
    assert (expected[0] < 5.59) == (load > 0.0)
    found = natural_frequencies(dynamics, expected)
    # the theory takes the length under load for the free one; they differ by load/EA, which
    # counts for more the nearer buckling is
    rtol = 5.0 * abs(load) / ROD.stiffness_se[2] / (1.0 - max(share, 0.0))
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_order_eight_along_the_rod():
    exact = beam_frequencies(3)[2]
    errors = []
    for steps in (4, 8):
        dynamics = RodDynamics(single_rod(ROD, LENGTH), 1e-3, steps=steps, segments=4)
        dynamics.rest()
        errors.append(abs(natural_frequencies(dynamics, [exact])[0] - exact))
    assert 7.5 < np.log2(errors[0] / errors[1]) < 8.5


@pytest.mark.parametrize("mass", [0.0, 0.02])
def test_first_frequency_in_time(mass):
    rod = Rod(Section.circle(1e-3), STEEL, damping=5e-4)  # fast modes die first
    dynamics = RodDynamics(single_rod(rod, LENGTH, mass=mass), 1e-3)
    times, tip, _ = free_vibration(dynamics, 1.2)
    keep = times > 0.3
    frequency = ringing(times[keep], tip[keep])
    assert frequency == pytest.approx(beam_frequencies(1, tip_mass=mass)[0], rel=1e-3)


def test_clamped_rod_rings_at_its_frequency():
    dynamics = RodDynamics(single_rod(ROD, LENGTH), 5e-4, tip="clamped")
    start = dynamics.rest()
    forces = []
    for _ in range(1000):
        pose = start.pose.copy()
        pose[0, 3] += 1e-4 * pulse(dynamics.time + dynamics.dt)
        forces.append(dynamics.step(pose=pose).base_wrenches[0, 0])
    spectrum = np.abs(np.fft.rfft(np.array(forces[200:]) * np.hanning(800), 16000))
    frequencies = np.fft.rfftfreq(16000, 5e-4)
    peak = frequencies[np.argmax(spectrum * (frequencies < 60.0))]
    assert peak == pytest.approx(beam_frequencies(1, clamped=True)[0], rel=5e-3)


def test_second_order_in_time():
    """Pushed smoothly, seen after 60 ms: errors fall fourfold as dt is halved."""
    tips = []
    for count in (30, 60, 120, 480):
        dynamics = RodDynamics(single_rod(ROD, LENGTH), 0.06 / count, steps=16, segments=4)
        dynamics.rest()
        for _ in range(count):
            push = 0.5 * pulse(dynamics.time + dynamics.dt)
            instant = dynamics.step(wrench=np.array([push, 0.3 * push, 0, 0, 0, 0]))
        tips.append(instant.pose[:3, 3])
    errors = [np.linalg.norm(tip - tips[-1]) for tip in tips[:3]]
    assert errors[0] > 3.0 * errors[1]
    assert 3.6 < errors[1] / errors[2] < 4.8


def test_energy_is_kept_by_the_trapezoidal_rule_and_never_gained():
    lost = {}
    for alpha, dt in ((-0.5, 2e-3), (-0.2, 2e-3), (-0.2, 1e-3), (0.0, 2e-3)):
        exact = {"steps": 24, "segments": 4, "tolerance": 1e-10} if alpha == -0.5 else {}
        dynamics = RodDynamics(single_rod(ROD, LENGTH), dt, alpha=alpha, **exact)
        _, _, energy = free_vibration(dynamics, 0.4, force=0.02)
        assert energy.max() <= energy[0] * (1.0 + 1e-6)
        lost[alpha, dt] = 1.0 - energy[-1] / energy[0]
    assert abs(lost[-0.5, 2e-3]) < 1e-6
    assert 0.0 < lost[-0.2, 1e-3] < lost[-0.2, 2e-3] < lost[0.0, 2e-3] < 0.1


@pytest.mark.parametrize("dt", [5e-3, 2e-3, 1e-3, 5e-4])
@pytest.mark.parametrize("load", [1.0, 2.0, 3.0, 4.0, 5.0])
def test_sudden_loads_of_any_size(load, dt):
    """The load is F L^2/EI: segments follow the bending, and the answer is that of many."""
    force, damping = load * EI / LENGTH**2, 0.0
    push = np.array([force, 0, 0, 0, 0, 0])
    robot = single_rod(replace(ROD, damping=damping), LENGTH)
    dynamics = RodDynamics(robot, dt)
    many = RodDynamics(robot, dt, segments=dynamics.segments * dynamics.steps, steps=1)
    for both in (dynamics, many):
        both.rest()
    while dynamics.time < 0.15:
        tip = dynamics.step(wrench=push).pose[:3, 3]
        np.testing.assert_allclose(tip, many.step(wrench=push).pose[:3, 3], atol=1e-5 * LENGTH)
        assert dynamics.energy()["total"] - push[:3] @ (tip - [0, 0, LENGTH]) <= 0.0


def test_prescribed_segments_are_kept_and_named_where_they_fail():
    push = np.array([3.0 * EI / LENGTH**2, 0, 0, 0, 0, 0])
    dynamics = RodDynamics(single_rod(ROD, LENGTH), 1e-3, segments=3)
    dynamics.rest()
    with pytest.raises(RodError, match="expected more segments, a smaller step, or a slower"):
        [dynamics.step(wrench=push) for _ in range(150)]
    assert dynamics.segments == 3


def test_material_damping_is_that_of_the_first_mode():
    """Kelvin-Voigt with time tau damps the mode w at the rate w^2 tau/2."""
    tau = 1e-3
    decays = []
    for time in (2.0 * tau, tau):  # the difference leaves out what the time steps damp
        rod = Rod(Section.circle(1e-3), STEEL, damping=time)
        dynamics = RodDynamics(single_rod(rod, LENGTH), 1e-3)
        times, tip, _ = free_vibration(dynamics, 1.2)
        keep = times > 0.3
        decays.append(decay(times[keep], tip[keep]))
    expected = (2.0 * np.pi * beam_frequencies(1)[0]) ** 2 * tau / 2.0
    assert decays[0] - decays[1] == pytest.approx(expected, rel=0.02)


def test_momentum_of_one_rod_changes_by_the_forces():
    """D(momentum) = weight + load + what the clamp exerts, at every instant, to rounding."""
    gravity = (0.3, -9.81, 2.0)
    robot = single_rod(ROD, LENGTH, mass=0.01, gravity=gravity)
    dynamics = RodDynamics(robot, 2e-3, tolerance=1e-11)
    dynamics.rest()
    weight = (RA * LENGTH + 0.01) * np.array(gravity)
    old = before = dynamics.momentum()
    rate = np.zeros(6)
    for _ in range(60):
        force = np.array([0.2, 0.1, 0.0]) * pulse(dynamics.time + dynamics.dt)
        instant = dynamics.step(wrench=np.concatenate([force, np.zeros(3)]))
        formula, momentum = dynamics._formula_now, dynamics.momentum()
        rate = formula.c0 * momentum + formula.c1 * before + formula.c2 * old + formula.d1 * rate
        old, before = before, momentum
        expected = weight + force - instant.base_wrenches[0, :3]
        np.testing.assert_allclose(rate[:3], expected, atol=1e-6 * np.linalg.norm(weight))


def test_spin_changes_by_the_moments():
    """The same about the world's origin, which p x V obeys to second order; large rotations."""
    inertia = np.diag([2e-4, 3e-4, 1e-4])
    soft = Rod(Section.circle(0.7e-3), STEEL, curvature=(1.0, 3.0, 2.0))
    worst = []
    for dt in (2e-3, 5e-4):
        robot = single_rod(soft, LENGTH, mass=0.02, inertia=inertia)
        dynamics = RodDynamics(robot, dt, steps=24, segments=6, tolerance=1e-10)
        start = dynamics.rest()
        old = before = dynamics.momentum()
        rate, errors = np.zeros(6), []
        for _ in range(round(0.1 / dt)):
            load = np.array([1.5, 1.0, 0.5, 0.25, -0.15, 0.2]) * pulse(dynamics.time + dt)
            instant = dynamics.step(wrench=load)
            formula, momentum = dynamics._formula_now, dynamics.momentum()
            rate = (
                formula.c0 * momentum + formula.c1 * before + formula.c2 * old + formula.d1 * rate
            )
            old, before = before, momentum
            moment = load[3:] + np.cross(instant.pose[:3, 3], load[:3])
            errors.append(np.linalg.norm(rate[3:] - moment + instant.base_wrenches[0, 3:]))
        turned = np.linalg.norm(instant.pose[:3, :3] - start.pose[:3, :3])
        assert turned > 0.8
        worst.append(max(errors))
    assert worst[1] < 1e-4
    assert worst[0] > 8.0 * worst[1]  # 16 in the limit


def test_rest_is_the_static_solution():
    robot = single_rod(ROD, LENGTH, mass=0.05, gravity=(0.0, -9.81, 0.0))
    dynamics = RodDynamics(robot, 1e-3, steps=12)
    instant = dynamics.rest(wrench=np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.01]))
    static = shape(
        ROD, LENGTH, np.eye(4), instant.base_wrenches[0], Loading(gravity=(0.0, -9.81, 0.0))
    )
    np.testing.assert_allclose(instant.pose[:3, 3], static.p[-1], atol=1e-9)
    np.testing.assert_allclose(static.n[-1], [0.4, -0.05 * 9.81, 0.0], atol=1e-7)
    for _ in range(5):
        moved = dynamics.step()
    np.testing.assert_allclose(moved.pose, instant.pose, atol=1e-9)


def test_damped_rod_comes_to_rest_in_the_static_solution():
    robot = single_rod(Rod(Section.circle(1e-3), STEEL, damping=0.02), LENGTH)
    load = np.array([0.4, 0.1, 0.0, 0.0, 0.0, 0.01])
    dynamics = RodDynamics(robot, 1e-2)
    target = dynamics.rest(wrench=load)
    dynamics.rest(wrench=np.zeros(6))
    for _ in range(200):
        instant = dynamics.step(wrench=load)
    np.testing.assert_allclose(instant.pose, target.pose, atol=1e-6)


def test_rod_fed_out_in_a_circle_feels_the_centrifugal_force():
    """A curved rod that slides out of its guide at the speed a turns about its centre.

    Its sections have the acceleration a^2/r towards the centre: with the arc from 0 to L, the
    guide carries ``-rA a^2 (R(L) - R(0))`` of it, tangents R.
    """
    radius, speed = 0.4, 1.0
    bent = Rod(Section.circle(4e-3), STEEL, curvature=(0.0, 1.0 / radius, 0.0), damping=0.02)
    mass = bent.mass_per_length
    dynamics = RodDynamics(single_rod(bent, 0.2, feed=True), 5e-3)
    dynamics.rest()
    lengths = [0.2]
    for k in range(80):
        lengths.append(lengths[-1] + dynamics.dt * speed * min(1.0, (k + 1) / 20) ** 2)
        instant = dynamics.step(q=np.array(lengths[-1:]))
    angle = instant.q[0] / radius
    pull = mass * speed**2 * np.array([np.sin(angle), 0.0, np.cos(angle) - 1.0])
    tangent = instant.pose[:3, 2]
    np.testing.assert_allclose(instant.twist[:3], speed * tangent, atol=2e-3)
    np.testing.assert_allclose(instant.base_wrenches[0, :3], -pull, atol=5e-3 * mass * speed**2)


def test_bad_arguments_are_named():
    rod = single_rod(ROD, LENGTH)
    with pytest.raises(RodError, match="time step"):
        RodDynamics(rod, 0.0)
    with pytest.raises(RodError, match="alpha"):
        RodDynamics(rod, 1e-3, alpha=0.3)
    with pytest.raises(RodError, match="'free' or 'clamped'"):
        RodDynamics(rod, 1e-3, tip="loose")
    dynamics = RodDynamics(rod, 1e-3)
    dynamics.rest()
    with pytest.raises(ShapeError, match="wrench"):
        dynamics.step(wrench=np.array([np.nan] * 6))
    with pytest.raises(RodError, match="frame"):
        dynamics.step(wrench=np.zeros(6), frame="tool")
