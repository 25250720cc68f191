"""What physics demands of every robot that is shipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rod_robots import Start, pose

from cards_core.formats.locate import known_models
from cards_core.rods.loads import Loading
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import BaseKind, SolverSettings, rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape

EXACT = SolverSettings(steps=12, tolerance=3e-13, max_iterations=40)
NAMES = sorted(known_models(rods=True))


def away(robot, amount=1.0):
    """A pose near home in all directions that the robot can be commanded in."""
    size = amount * 0.03 * robot.lengths.mean()
    step = [size * k for k in ((1.0, -0.7, 0.0) if robot.planar else (1.0, -0.7, 0.4))]
    turn = (0.0, 0.0, 0.05) if robot.planar else (0.04, -0.03, 0.05)
    wanted = {"x": 0, "y": 1, "z": 2}
    move = np.zeros(3)
    spin = np.zeros(3)
    for name in robot.controlled:
        if name in wanted:
            move[wanted[name]] = step[wanted[name]]
        else:
            spin["xyz".index(name[1])] = amount * turn["xyz".index(name[1])]
    home = robot.home_pose
    T = pose(home[:3, 3] + move, spin)
    T[:3, :3] = T[:3, :3] @ home[:3, :3]
    return T


def load(robot, amount=0.05):
    """A force within the robot's directions, a twentieth of what its rods can hold."""
    limb = robot.limbs[0]
    scale = amount * limb.rod.bending_stiffness / limb.length**2
    W = scale * np.array([1.0, 0.6, -0.5, 0.0, 0.0, 0.0])
    if robot.planar:
        W[2] = 0.0
    return W


@pytest.fixture(scope="module", params=NAMES)
def case(request):
    robot = read_rod_robot(request.param)
    solver = RodRobotSolver(robot, EXACT)
    home = solver.igm(robot.home_pose, wrench=load(robot))
    assert home.converged, home
    state = solver.igm(away(robot), wrench=load(robot), start=home)
    assert state.converged, state
    return robot, solver, state


def equal_q(found, want, atol=1e-10):
    assert found.converged, found
    np.testing.assert_allclose(found.q, want, rtol=0, atol=atol)


def test_stiffness_is_symmetric(case):
    _, _, state = case
    K = state.stiffness
    assert np.abs(K - K.T).max() < 1e-9 * np.abs(K).max()
    # and its eigenvalues are those of NumPy
    slots = np.flatnonzero(np.diag(K))
    values, vectors = np.linalg.eigh(0.5 * (K + K.T)[np.ix_(slots, slots)])
    np.testing.assert_allclose(state.eigenvalues, values, rtol=1e-9)
    assert abs(vectors[:, 0] @ state.eigenvector[slots]) == pytest.approx(1.0, abs=1e-9)


def test_signs_of_the_limbs_are_those_of_their_determinants(case):
    robot, solver, state = case
    A = solver.linearise(state, wrench=load(robot)).A
    np.testing.assert_array_equal(state.linear.limb_signs, np.sign(np.linalg.det(A)))


def test_direct_inverts_inverse(case):
    robot, solver, state = case
    start = solver.igm(away(robot, 0.9), wrench=load(robot), start=state)
    again = solver.dgm(state.q, wrench=load(robot), start=start)
    assert again.converged
    assert again.iterations > 0
    np.testing.assert_allclose(again.pose, state.pose, rtol=0, atol=1e-10)


def derivative(function, h):
    """Of a function of one number at 0: central differences, extrapolated once."""
    coarse = (function(h) - function(-h)) / (2 * h)
    fine = (function(h / 2) - function(-h / 2)) / h
    return (4 * fine - coarse) / 3


def test_stiffness_and_jacobian_are_derivatives(case):
    robot, solver, state = case
    slots, h = solver.slots, 2e-5 * robot.lengths.mean()
    for k in slots:

        def wrench(way, k=k):
            step = way * (np.arange(6) == k)
            near = solver.limbs(state.q, moved(state.pose, step), start=state)
            assert near.converged
            return near.plate_wrench + weight_moment(robot, near.pose)

        found = -derivative(wrench, h)[slots]
        scale = np.abs(state.stiffness).max()
        np.testing.assert_allclose(
            found / scale, state.stiffness[slots, k] / scale, rtol=0, atol=1e-6
        )
    for i in np.flatnonzero(robot.actuated):

        def twist(way, i=i):
            q = state.q + way * (np.arange(robot.n_limbs) == i)
            near = solver.dgm(q, wrench=load(robot), start=state)
            assert near.converged
            return difference(near.pose, state.pose)

        found = derivative(twist, h)
        scale = np.abs(state.jacobian).max()
        np.testing.assert_allclose(found / scale, state.jacobian[:, i] / scale, rtol=0, atol=1e-6)


def moved(T, step):
    turn = pose((0, 0, 0), step[3:])
    out = T.copy()
    out[:3, :3] = turn[:3, :3] @ T[:3, :3]
    out[:3, 3] += step[:3]
    return out


def difference(T, reference):
    R = T[:3, :3] @ reference[:3, :3].T
    spin = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return np.concatenate([T[:3, 3] - reference[:3, 3], spin])


def weight_moment(robot, T):
    """Wrench of gravity on the plate: its moment turns with the plate."""
    force = robot.plate.mass * robot.gravity
    return np.concatenate([force, np.cross(T[:3, :3] @ robot.plate.com, force)])


def rods_of(robot, state):
    return [
        shape(limb.rod, length, start, wrench, Loading(robot.gravity), points=2)
        for limb, length, start, wrench in zip(
            robot.limbs, rod_lengths(robot, state.q), rod_starts(robot, state.q),
            state.base_wrenches, strict=True,
        )
    ]  # fmt: skip


def rod_energy(robot, state):
    """Strain energy and potential of the weight of all rods."""
    total = 0.0
    for limb, length, rod in zip(
        robot.limbs, rod_lengths(robot, state.q), rods_of(robot, state), strict=True
    ):
        total += rod.energy - length * limb.rod.weight(robot.gravity) @ rod.centroid
    return total


def test_energy_is_the_work_on_the_plate(case):
    robot, solver, state = case
    direction = np.zeros(6)
    direction[solver.slots] = np.array([1.0, -0.5, 0.3, 0.8, -0.6, 0.7])[: len(solver.slots)]

    def near(way):
        found = solver.limbs(state.q, moved(state.pose, way * direction), start=state)
        assert found.converged
        return found

    h, (nodes, weights) = 3e-5 * robot.lengths.mean(), np.polynomial.legendre.leggauss(8)
    gained = rod_energy(robot, near(h)) - rod_energy(robot, near(-h))
    work = -h * weights @ [near(h * node).plate_wrench @ direction for node in nodes]
    scale = 2 * h * np.abs(state.plate_wrench).max()
    assert gained == pytest.approx(work, abs=1e-6 * scale)


def test_everything_balances(case):
    """Base wrenches, weights and the load on the plate add up to nothing."""
    robot, _, state = case
    total = np.zeros(6)

    def add(force, at, moment=(0.0, 0.0, 0.0)):
        total[:3] += force
        total[3:] += np.cross(at, force) + moment

    add(load(robot)[:3], state.pose[:3, 3], load(robot)[3:])
    centre = state.pose[:3, 3] + state.pose[:3, :3] @ robot.plate.com
    add(robot.plate.mass * robot.gravity, centre)
    for limb, length, start, wrench, rod in zip(
        robot.limbs, rod_lengths(robot, state.q), rod_starts(robot, state.q),
        state.base_wrenches, rods_of(robot, state), strict=True,
    ):  # fmt: skip
        add(-wrench[:3], start[:3, 3], -wrench[3:])
        add(length * limb.rod.weight(robot.gravity), rod.centroid)
    used = slice(None) if not robot.planar else [0, 1, 5]
    scale = np.abs(state.base_wrenches).max()
    np.testing.assert_allclose(total[used] / scale, 0.0, rtol=0, atol=1e-10)


def test_moving_the_world_changes_nothing(case):
    robot, _, state = case
    motion = pose((0.3, -0.2, 0.0), (0.0, 0.0, 0.7))
    if not robot.planar:
        motion = pose((0.3, -0.2, 0.5), (0.4, 0.9, -0.7))
    R = motion[:3, :3]
    W = np.concatenate([R @ load(robot)[:3], R @ load(robot)[3:]])
    elsewhere = RodRobotSolver(robot, EXACT, base=motion, gravity=R @ robot.gravity)
    # controlled coordinates of a robot with few of them are along world axes: follow with all q
    found = elsewhere.dgm(state.q, wrench=W, start=carried(state, motion))
    assert found.converged
    np.testing.assert_allclose(found.pose, motion @ state.pose, rtol=0, atol=1e-10)
    if len(robot.controlled) == len(robot.coordinates):
        guess = elsewhere.dgm(state.q + 1e-4 * robot.actuated, wrench=W, start=found)
        equal_q(elsewhere.igm(motion @ state.pose, wrench=W, start=guess), state.q)


def carried(state, motion):
    """A state seen from another world."""
    n, m = state.base_wrenches[:, :3], state.base_wrenches[:, 3:]
    R = motion[:3, :3]
    return Start(state.q, motion @ state.pose, np.hstack([n @ R.T, m @ R.T]))


def test_order_of_limbs_does_not_matter(case):
    robot, _, state = case
    order = np.roll(np.arange(robot.n_limbs), 1)
    other = replace(robot, limbs=tuple(robot.limbs[i] for i in order))
    found = RodRobotSolver(other, EXACT).dgm(
        state.q[order], wrench=load(robot), start=ordered(state, order)
    )
    np.testing.assert_allclose(found.pose, state.pose, rtol=0, atol=1e-10)
    assert found.converged


def ordered(state, order):
    """A state near by, its limbs in another order."""
    return Start(state.q[order], state.pose, 1.001 * state.base_wrenches[order])


def test_mirror_image(case):
    """Reflected in the plane XZ: lengths and slides stay, angles change sign."""
    robot, _, state = case
    S = np.diag([1.0, -1.0, 1.0, 1.0])

    def mirrored(limb):
        base = replace(
            limb.base, joint_pose=S @ limb.base.joint_pose @ S, attach=S @ limb.base.attach @ S
        )
        tip = replace(
            limb.tip, joint_pose=S @ limb.tip.joint_pose @ S, attach=S @ limb.tip.attach @ S
        )
        return replace(limb, base=base, tip=tip)

    s = S[:3, :3]
    plate = replace(robot.plate, com=s @ robot.plate.com)
    other = replace(
        robot, limbs=tuple(map(mirrored, robot.limbs)), plate=plate, gravity=s @ robot.gravity
    )
    turns = np.array([limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs])
    q = np.where(turns, -1.0, 1.0) * state.q

    wrenches = np.hstack([state.base_wrenches[:, :3] @ s, -state.base_wrenches[:, 3:] @ s])
    start = Start(q, S @ state.pose @ S, 1.001 * wrenches)
    W = np.concatenate([s @ load(robot)[:3], -s @ load(robot)[3:]])
    solver = RodRobotSolver(other, EXACT)
    found = solver.dgm(q, wrench=W, start=start)
    assert found.converged
    np.testing.assert_allclose(found.pose, S @ state.pose @ S, rtol=0, atol=1e-10)


def test_scaling_without_weight(case):
    """Lengths times a, EI and GJ times b, EA and GA times b/a^2: the same shape, larger."""
    robot, _, state = case
    a, b = 2.0, 3.0
    light = replace(robot, gravity=np.zeros(3))
    W = load(robot)
    small = RodRobotSolver(light, EXACT).igm(away(light), wrench=W, start=state)
    assert small.converged

    def grown(T):
        out = T.copy()
        out[:3, 3] *= a
        return out

    def grown_limb(limb):
        section, material = limb.rod.section, limb.rod.material
        assert section.round
        assert limb.rod.is_circular
        rod = Rod(
            Section.circle(a * section.radius),
            Material(
                material.young * b / a**4,
                shear=material.shear_modulus * b / a**4,
                density=material.density,
            ),
        )
        base = replace(
            limb.base, joint_pose=grown(limb.base.joint_pose), attach=grown(limb.base.attach)
        )
        tip = replace(
            limb.tip, joint_pose=grown(limb.tip.joint_pose), attach=grown(limb.tip.attach)
        )
        return replace(limb, rod=rod, length=a * limb.length, base=base, tip=tip)

    plate = replace(robot.plate, com=a * robot.plate.com)
    large = replace(light, limbs=tuple(map(grown_limb, robot.limbs)), plate=plate)
    units = np.array([b / a**2] * 3 + [b / a] * 3)

    turns = np.array([limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs])
    q = np.where(turns, 1.0, a) * small.q
    start = Start(q, grown(small.pose), 1.001 * small.base_wrenches * units)
    found = RodRobotSolver(large, EXACT).igm(grown(small.pose), wrench=W * units, start=start)
    equal_q(found, start.q)
    np.testing.assert_allclose(
        found.base_wrenches / units, small.base_wrenches, rtol=0,
        atol=1e-9 * np.abs(small.base_wrenches).max(),
    )  # fmt: skip


def test_rods_cut_into_pieces_are_the_same_rods(case):
    robot, _, state = case
    cut = RodRobotSolver(robot, replace(EXACT, segments=3))
    found = cut.dgm(state.q, wrench=load(robot), start=ordered(state, np.arange(robot.n_limbs)))
    assert found.converged
    assert found.segments == 3
    np.testing.assert_allclose(found.pose, state.pose, rtol=0, atol=1e-10)
    scale = np.abs(state.base_wrenches).max()
    np.testing.assert_allclose(
        found.base_wrenches / scale, state.base_wrenches / scale, rtol=0, atol=1e-9
    )
    size = np.abs(state.stiffness).max()
    np.testing.assert_allclose(found.stiffness / size, state.stiffness / size, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.linear.limb_signs, state.linear.limb_signs)
    if len(robot.controlled) == len(robot.coordinates):
        near = cut.igm(away(robot, 0.9), wrench=load(robot), start=found)
        equal_q(cut.igm(state.pose, wrench=load(robot), start=near), state.q)


def test_shapes_end_where_they_should(case):
    robot, solver, state = case
    table = solver.shapes(state, 21)
    starts = rod_starts(robot, state.q)
    np.testing.assert_allclose(table.positions[:, 0], starts[:, :3, 3], rtol=0, atol=1e-12)
    for i, (limb, length) in enumerate(zip(robot.limbs, rod_lengths(robot, state.q), strict=True)):
        rod = shape(
            limb.rod, length, starts[i], state.base_wrenches[i], Loading(robot.gravity), points=21
        )
        np.testing.assert_allclose(table.positions[i], rod.p, rtol=0, atol=1e-10)
        np.testing.assert_allclose(table.curvature[i], rod.curvature, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(table.stress[i], rod.stress, rtol=1e-7)
        np.testing.assert_allclose(table.strain[i], rod.strain, rtol=1e-7)
        np.testing.assert_allclose(state.tip_wrenches[i][:3], rod.n[-1], rtol=1e-7, atol=1e-9)
