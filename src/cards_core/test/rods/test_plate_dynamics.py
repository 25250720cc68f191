"""Dynamic plate on rods without mass: frequencies, energy, momentum, rods with mass beside it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import RodError, ShapeError
from cards_core.rods.dynamics.modes import natural_frequencies, reduced_inertia
from cards_core.rods.dynamics.plate_dynamics import PlateDynamics
from cards_core.rods.dynamics.robot_dynamics import RobotDynamics
from cards_core.rods.loads import Loading
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape
from cards_core.rods.status import RodStatus


def with_rods(robot, rod, **plate):
    limbs = tuple(replace(limb, rod=rod) for limb in robot.limbs)
    return replace(robot, limbs=limbs, plate=replace(robot.plate, **plate))


def at(x, y, z):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


@pytest.fixture(scope="module")
def reference():
    """The robot of section 4.1 of the reference: rods without mass, a plate of 92 g."""
    rod = Rod(Section.circle(1e-3), Material(207e9, poisson=0.305))
    inertia = np.diag([1.91e-4, 1.91e-4, 3.82e-4])
    robot = with_rods(read_rod_robot("stewart_gough_till"), rod, mass=0.0921, inertia=inertia)
    robot = replace(robot, gravity=np.array([0.0, 0.0, -9.81]))
    solver = RodRobotSolver(robot)
    return robot, solver, solver.igm(at(0.0, 0.0, 0.5))


def started(reference, **options):
    robot, solver, solution = reference
    dynamics = PlateDynamics(robot, solver, **options)
    dynamics.start(solution)
    return dynamics


def elastic_energy(dynamics, solution):
    """Of the rods, their weight included, by the single-rod code."""
    robot = dynamics.robot
    starts, lengths = rod_starts(robot, dynamics.q), rod_lengths(robot, dynamics.q)
    return sum(
        shape(limb.rod, length, start, wrench, Loading(gravity=(0.0, 0.0, 0.0))).energy
        for limb, length, start, wrench in zip(
            robot.limbs, lengths, starts, solution.base_wrenches, strict=True
        )
    )


def test_frequencies_of_the_reference(reference):
    dynamics = started(reference)
    # the table has three digits, and so have the plate's moments of inertia
    expected = [29.2, 29.2, 57.0, 312.0, 433.0, 433.0]
    np.testing.assert_allclose(dynamics.frequencies(), expected, rtol=3e-3)
    _, solver, solution = reference
    dynamics.start(solver.igm(at(-0.05, 0.0, 0.5), start=solution))
    assert dynamics.frequencies()[-1] == pytest.approx(1327.0, rel=3e-3)


@pytest.mark.parametrize(
    ("density", "expected"),
    [
        (8000.0, [4.08, 4.47, 6.12, 59.4, 154.0, 245.0]),
        (0.0, [3.478, 4.367, 6.004, 58.46, 154.5, 246.7]),
    ],
)
def test_frequencies_where_the_robot_is_nearly_unstable(density, expected):
    """The last row of the table: its rods have weight, though their inertia is left out.

    With weight a program of its own, by integration with SciPy and difference quotients, finds
    4.0818, 4.4731, 6.1224, 59.44, 153.6 and 245.5 Hz. Without weight the numbers differ.
    """
    rod = Rod(Section.circle(1e-3), Material(207e9, poisson=0.305, density=density))
    inertia = np.diag([1.91e-4, 1.91e-4, 3.82e-4])
    robot = with_rods(read_rod_robot("stewart_gough_till"), rod, mass=0.0921, inertia=inertia)
    robot = replace(robot, gravity=np.array([0.0, 0.0, -9.81]))
    solver = RodRobotSolver(robot)
    solution = solver.igm(at(0.0, 0.0, 0.5))
    for step in range(1, 41):
        solution = solver.igm(at(-0.005 * step, 0.0, 0.5), start=solution)
    dynamics = PlateDynamics(robot, solver)
    dynamics.start(solution)
    np.testing.assert_allclose(dynamics.frequencies(), expected, rtol=4e-3)
    if density:
        assert solution.min_eigenvalue == pytest.approx(0.28, abs=0.005)


def test_equilibrium_stays_where_it_is(reference):
    dynamics = started(reference)
    start = dynamics.pose.copy()
    for _ in range(50):
        pose, twist, solution, status, message, solves = dynamics.step(1e-3)
    np.testing.assert_allclose(pose, start, atol=1e-7)
    assert np.linalg.norm(twist) < 1e-4
    assert (status, message, solves, solution.converged) == (RodStatus.OK, "", 1, True)


def test_stable_at_one_kilohertz_where_explicit_steps_are_not(reference):
    """433 Hz at 1 kHz: w dt = 2.7; explicit steps need w dt < 2."""
    dynamics = started(reference)
    assert 2.0 * np.pi * dynamics.frequencies()[-1] * 1e-3 > 2.0
    _, _, solution = reference
    dynamics.start(solution, twist=np.array([0.05, 0.03, 0.1, 2.0, 1.0, 3.0]))

    def energy(solution):
        height = dynamics.pose[2, 3] * dynamics.robot.plate.mass * 9.81
        return dynamics.kinetic_energy() + elastic_energy(dynamics, solution) + height

    rest = energy(solution) - dynamics.kinetic_energy()
    energies = [energy(solution)]
    for _ in range(12):
        for _ in range(25):
            step = dynamics.step(1e-3)
        energies.append(energy(step.solution))
    gained = np.array(energies) - rest
    assert np.all(np.diff(gained) < 1e-3 * gained[0])
    assert gained[-1] < 0.1 * gained[0]


def test_midpoint_rule_keeps_energy_to_second_order():
    robot = read_rod_robot("stewart_6efr")
    rod = Rod(Section.circle(1e-3), Material(200e9, shear=80e9))
    robot = replace(with_rods(robot, rod), gravity=np.zeros(3))
    solver = RodRobotSolver(robot)
    start = solver.igm(robot.home_pose)
    changes = []
    for dt in (4e-3, 2e-3):
        dynamics = PlateDynamics(robot, solver, theta=0.5)
        dynamics.start(start, twist=np.array([0.03, 0.015, 0.03, 0.06, 0.09, 0.06]))
        kinetic = dynamics.kinetic_energy()
        first = kinetic + elastic_energy(dynamics, start)
        worst = 0.0
        for _ in range(round(0.16 / dt)):
            step = dynamics.step(dt)
            if round(dynamics.time / dt) % round(0.032 / dt) == 0:
                energy = dynamics.kinetic_energy() + elastic_energy(dynamics, step.solution)
                worst = max(worst, abs(energy - first))
        changes.append(worst / kinetic)
    assert changes[1] < 5e-3
    assert changes[0] > 3.0 * changes[1]


@pytest.mark.parametrize(("theta", "least", "most"), [(0.5, 3.3, 4.5), (1.0, 1.5, 2.5)])
def test_order_in_time_where_the_tolerance_does_not_hide_it(theta, least, most):
    robot = read_rod_robot("stewart_6efr")
    robot = with_rods(robot, replace(robot.limbs[0].rod, damping=0.0))
    solver = RodRobotSolver(robot, replace(robot.settings, tolerance=1e-11))
    home = solver.igm(robot.home_pose)
    ends = []
    for count in (100, 200, 400, 3200):
        dynamics = PlateDynamics(robot, solver, theta=theta)
        dynamics.start(home)
        for _ in range(count):
            step = dynamics.step(0.2 / count, wrench=np.array([0.2, 0.06, 0, 0, 0, 0.006]))
        ends.append(step.pose[:3, 3])
    errors = [np.abs(end - ends[-1]).max() for end in ends[:3]]
    for coarse, fine in itertools.pairwise(errors):
        assert least < coarse / fine < most


def test_free_plate_keeps_its_momentum():
    """Rods as soft as air: a tumbling plate with its centre of mass off its origin."""
    robot = read_rod_robot("stewart_6efr")
    soft = Rod(Section.circle(1e-3), Material(1e3, shear=400.0))
    robot = with_rods(robot, soft, com=np.array([0.02, -0.01, 0.03]), inertia=np.diag([1, 2, 2.5]))
    robot = replace(robot, gravity=np.zeros(3))
    solver = RodRobotSolver(robot)
    dynamics = PlateDynamics(robot, solver, theta=0.5)
    slack = solver.limbs(np.full(6, 1.25), robot.home_pose)
    dynamics.start(slack, twist=np.array([0.1, 0.0, 0.2, 0.5, 1.0, 0.2]))

    def momentum():
        mass, _ = dynamics._native.inertia(dynamics.pose, dynamics.twist)
        linear, angular = np.split(mass @ dynamics.twist, 2)
        return np.concatenate([linear, angular + np.cross(dynamics.pose[:3, 3], linear)])

    first, twist = momentum(), dynamics.twist.copy()
    for _ in range(50):
        step = dynamics.step(1e-3)
    assert step.status is not RodStatus.HELD
    assert np.linalg.norm(step.twist - twist) > 5e-3
    np.testing.assert_allclose(momentum(), first, atol=1e-5 * np.linalg.norm(first))


def test_same_motion_as_rods_with_vanishing_mass(reference):
    """Two codes that share no equation of motion: linearised steps and BDF-alpha shooting."""
    robot, _, solution = reference
    load = np.array([3.0, 1.0, 2.0, 0.05, 0.05, 0.05])
    plate = started(reference, theta=0.5)
    rods = RobotDynamics(robot, 2.5e-4, alpha=-0.4)
    rods.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    for k in range(160):
        wrench = load * np.sin(np.pi * min(1.0, (k + 1) / 60)) ** 2
        middle = load * np.sin(np.pi * min(1.0, (k + 0.5) / 60)) ** 2
        one, other = plate.step(2.5e-4, wrench=middle), rods.step(wrench=wrench)
    moved = np.linalg.norm(one.pose[:3, 3] - solution.pose[:3, 3])
    assert moved > 4e-4
    np.testing.assert_allclose(one.pose[:3, 3], other.pose[:3, 3], atol=0.03 * moved)


def test_inertia_of_the_rods_brings_the_frequency_down():
    robot = read_rod_robot("stewart_6efr")
    solver = RodRobotSolver(robot)
    solution = solver.igm(robot.home_pose)
    rods = RobotDynamics(robot, 2e-3)
    rods.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    exact = natural_frequencies(rods)
    light = PlateDynamics(robot, solver)
    light.start(solution)
    own, _ = light._native.inertia(np.eye(4), np.zeros(6))
    heavy = PlateDynamics(robot, solver, rod_inertia=reduced_inertia(rods) - own)
    heavy.start(solution)
    # the reduction lets the rods follow statically, which makes it an upper bound
    excess = heavy.frequencies()[:3] - exact[:3]
    assert np.all(excess > 0.0)
    assert np.all(excess < 0.15 * (light.frequencies()[:3] - exact[:3]))


def test_rods_that_cannot_follow_hold_the_plate(reference):
    dynamics = started(reference)
    before = dynamics.pose.copy()
    step = dynamics.step(1e-3, q=np.full(6, 0.05))
    assert step.status is RodStatus.HELD
    assert "held" in step.message
    assert np.all(np.isfinite(step.pose))
    np.testing.assert_allclose(step.pose, before, atol=0.1)
    np.testing.assert_array_equal(step.twist, np.zeros(6))


def test_bad_arguments_are_named(reference):
    robot, solver, solution = reference
    with pytest.raises(RodError, match="theta"):
        PlateDynamics(robot, solver, theta=0.4)
    with pytest.raises(RodError, match="drag"):
        PlateDynamics(robot, solver, drag=(-1.0, 0.0))
    light = replace(robot, plate=replace(robot.plate, mass=0.0))
    with pytest.raises(RodError, match="mass 0 kg"):
        PlateDynamics(light, solver)
    dynamics = PlateDynamics(robot, solver)
    with pytest.raises(RodError, match="before start"):
        dynamics.step(1e-3)
    dynamics.start(solution)
    with pytest.raises(RodError, match="time step"):
        dynamics.step(0.0)
    with pytest.raises(ShapeError, match="wrench"):
        dynamics.step(1e-3, wrench=np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0]))
