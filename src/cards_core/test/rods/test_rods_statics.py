"""Single rods in space: published cases, end conditions of all kinds, loads, energy, answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cards_core.errors import RodError
from cards_core.rods.ends import End, clamped, free, jointed
from cards_core.rods.loads import DistributedLoad, Loading, PointLoad, pieces
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.shooting import BAND, ShootingProblem, scales, transfer
from cards_core.rods.solution import RodSolution
from cards_core.rods.stability import conjugate_points_of, stability
from cards_core.rods.statics import solve_rod
from cards_core.rods.status import RodStatus
from cards_core.spatial import quaternion_matrix, rotation_exp, rotation_log
from cards_core.typing import Array

STEEL = Material(200e9, shear=80e9, density=8000.0)
ROD = Rod(Section.circle(1e-3), STEEL)
BENT = Rod(Section.rectangle(2e-3, 3e-3), STEEL, curvature=(0.6, -0.4, 0.8))
GROUND = clamped(np.eye(4))
JOINTS = {
    "fixed": "000000",
    "revolute": "000001",
    "prismatic": "001000",
    "spherical": "000111",
    "universal": "000110",
    "cylindrical": "001001",
    "planar": "110001",
}


def pose(p: tuple[float, float, float], turn: tuple[float, float, float]) -> Array:
    out = np.eye(4)
    out[:3, :3] = quaternion_matrix(rotation_exp(turn))
    out[:3, 3] = p
    return out


def test_bathe_bolourchi_bend() -> None:
    # a 45 degree arc of radius 100, unit square section, under a force out of its plane
    unit = Section(1.0, 1.0 / 12.0, 1.0 / 12.0, 1.0 / 6.0, (0.5, 0.5), 0.675)
    rod = Rod(unit, Material(1e7, poisson=0.0), curvature=(0.0, 0.01, 0.0))
    assert rod.unit_warnings(100.0)  # an exercise, no rod of a robot
    ours = {300.0: (22.24478, 58.77912, 40.19189), 600.0: (15.68480, 47.15044, 53.47486)}
    for force, expected in ours.items():
        solution = solve_rod(rod, 25 * math.pi, GROUND, free([0, force, 0, 0, 0, 0]))
        assert solution.status == RodStatus.OK
        x, z, y = solution.tip_pose[:3, 3]
        np.testing.assert_allclose((x, y, z), expected, rtol=1e-4)
        np.testing.assert_allclose((x, y, z), expected, atol=1.1e-5)  # its digits
    literature = (15.67, 46.99, 53.52)
    np.testing.assert_allclose((x, y, z), literature, rtol=1e-2)
    # with the torsion constant of a square, as the reference has it
    rod = Rod(Section.rectangle(1.0, 1.0), Material(1e7, poisson=0.0), curvature=(0, 0.01, 0))
    tip = solve_rod(rod, 25 * math.pi, GROUND, free([0, 600.0, 0, 0, 0, 0])).tip_pose[:3, 3]
    np.testing.assert_allclose(tip, (15.5573, 53.6086, 46.8910), atol=3e-3)


def test_boundary_value_problem_of_till() -> None:
    # his printed wrench (7 digits) solves our equations, and ours has his digits
    tip = pose((0, -0.05, 0.4), (0, 0, 0))
    printed = (-0.0933777, 3.4480327, -27.2794945, 1.7276242, -0.4529215, -0.0258032)
    weight = Loading(gravity=(9.81, 0, 0))
    solution = solve_rod(ROD, 0.5, GROUND, clamped(tip), loading=weight, guess=printed)
    assert solution.iterations <= 3
    np.testing.assert_allclose(solution.start_wrench, printed, atol=5e-7)
    # this branch does not hold: its last 2 mm are beyond a conjugate point
    assert solution.status == RodStatus.UNSTABLE
    assert stability(solution).index == 1
    (conjugate,) = conjugate_points_of(solution)
    (whole,) = pieces(ROD, 0.5, weight)
    signs = []
    for length in (0.999 * conjugate, 1.001 * conjugate, 0.5):
        _, matrix = transfer(whole.part(0.0, length), solution.nodes[0], 60)
        signs.append(np.sign(np.linalg.det(matrix[:6, 6:])))
    assert signs == [1.0, -1.0, -1.0]
    # of the dozens of others, the one found without his hint holds and has less energy
    other = solve_rod(ROD, 0.5, GROUND, clamped(tip), loading=weight)
    assert other.status == RodStatus.OK
    assert other.min_eigenvalue > 1e-3
    assert len(conjugate_points_of(other)) == 0
    assert other.energy < solution.energy


LOADS = Loading(
    gravity=(1.0, 2.0, -9.81),
    distributed=(DistributedLoad(force=(0.3, 0, 0.2), start=0.1, end=0.4),),
    points=(PointLoad(at=0.25, force=(-0.3, 0.4, 0.1)),),
)


def potential(solution: RodSolution) -> float:
    """Strain energy less the work of all dead loads of `LOADS` and of the ends, [J]."""
    whole = solution.shape(2001)
    energy: Any = whole.energy
    energy -= solution.length * solution.rod.weight(LOADS.gravity) @ whole.centroid
    for load in LOADS.distributed:
        inside = (whole.s >= load.start - 1e-12) & (whole.s <= (load.end or 0.0) + 1e-12)
        mean = np.trapezoid(whole.p[inside], whole.s[inside], axis=0)
        energy -= np.asarray(load.force) @ mean
    for point in LOADS.points:
        energy -= np.asarray(point.force) @ whole.p[np.argmin(np.abs(whole.s - point.at))]
    return float(energy)


@pytest.mark.parametrize("joint", JOINTS)
def test_joint_at_the_tip(joint: str) -> None:
    # held directions are held, free ones carry nothing, and the work that moving the joint takes
    # is the wrench that it carries
    length, mask = 0.5, np.array([mark == "1" for mark in JOINTS[joint]])
    frame = pose((0.12, -0.05, 0.44), (0.3, 0.5, -0.2))
    base = solve_rod(BENT, length, GROUND, jointed(frame, mask), loading=LOADS)
    assert base.converged, base.message
    assert base.residual < 1e-9
    assert base.discretisation < 1e-9
    turn, at = frame[:3, :3].T, base.tip_pose
    error = np.concatenate([turn @ (at[:3, 3] - frame[:3, 3]), rotation_log(turn @ at[:3, :3])])
    carried = np.concatenate([turn @ base.tip_wrench[:3], turn @ base.tip_wrench[3:]])
    if joint == "universal":  # a cross: one arm of the frame, one of the section
        arms = frame[:3, 0], at[:3, 1]
        error[5] = arms[0] @ arms[1]
        carried[3:5] = [arm @ base.tip_wrench[3:] for arm in arms]
    np.testing.assert_allclose(error[~mask], 0.0, atol=1e-9)
    np.testing.assert_allclose(carried[mask], 0.0, atol=1e-8)
    # everything together is in balance: what holds the ends carries the loads
    total = base.start_wrench[:3] - base.tip_wrench[:3]
    loads = length * BENT.weight(LOADS.gravity) + 0.3 * np.array([0.3, 0, 0.2])
    np.testing.assert_allclose(total, loads + LOADS.points[0].force, atol=1e-9)
    h = 1e-4
    for axis in range(3):
        step = np.zeros(3)
        step[axis] = h
        energies = []
        for sign in (1, -1):
            there = frame.copy()
            there[:3, 3] += sign * step
            moved = solve_rod(
                BENT, length, GROUND, jointed(there, mask), loading=LOADS, guess=base
            )
            assert moved.iterations <= 6
            energies.append(potential(moved))
        assert (energies[0] - energies[1]) / (2 * h) == pytest.approx(
            base.tip_wrench[axis], abs=2e-5
        )


@pytest.mark.parametrize(
    ("first", "second"), [("000111", "000000"), ("110001", "000000"), ("000110", "001001")]
)
def test_joints_at_both_ends_mirror(first: str, second: str) -> None:
    # turning the rod end for end: the same equilibrium, n and m of opposite sign
    length = 0.5
    bottom, top = pose((0, 0, 0), (0.2, -0.1, 0)), pose((0.1, 0.03, 0.45), (-0.3, 0.4, 0.1))
    flip = np.diag([1.0, -1.0, -1.0, 1.0])
    weight = Loading(gravity=(0, 3.0, -9.81))
    one = solve_rod(ROD, length, jointed(bottom, first), jointed(top, second), loading=weight)
    assert one.converged, one.message
    whole = one.shape(11)
    guess = replace(
        one,
        nodes=np.array(
            [
                np.concatenate([x[:3], (x[3:12].reshape(3, 3) @ flip[:3, :3]).ravel(), -x[12:]])
                for x in one.nodes[::-1]
            ]
        ),
    )
    two = solve_rod(
        ROD,
        length,
        jointed(top @ flip, second),
        jointed(bottom @ flip, first),
        loading=weight,
        guess=guess,
    )
    assert two.converged
    back = two.shape(11)
    np.testing.assert_allclose(back.p[::-1], whole.p, atol=1e-9)
    np.testing.assert_allclose(back.m[::-1], -whole.m, atol=1e-7)
    assert back.energy == pytest.approx(whole.energy, rel=1e-8)
    # the cuts are not the same: the mean over them differs a little
    assert two.min_eigenvalue == pytest.approx(one.min_eigenvalue, rel=0.1)


def test_jacobian_of_the_equations() -> None:
    rng = np.random.default_rng(5)
    frame = pose((0.1, 0.2, 0.3), (0.4, -0.3, 0.9))
    for mask in (*JOINTS.values(), "follower"):
        tip = jointed(frame, mask, rng.normal(size=6)) if mask != "follower" else None
        tip = tip or free(rng.normal(size=6), follower=True)
        start = jointed(frame, "000111", rng.normal(size=6))
        base = solve_rod(BENT, 0.5, GROUND, free(), loading=LOADS)
        steps = [2] * len(base.parts)
        problem = ShootingProblem(base.parts, steps, (start, tip), scales(BENT, 0.5))
        nodes = problem.moved(base.nodes, 0.2 * rng.normal(size=12 * len(base.nodes)))
        residual, band = problem.linearised(nodes)
        np.testing.assert_allclose(residual, problem.residual(nodes), atol=1e-12)
        size = len(residual)
        dense = np.zeros((size, size))
        for i in range(size):
            for j in range(max(0, i - BAND), min(size, i + BAND + 1)):
                dense[i, j] = band[BAND + i - j, j]
        # the variation is integrated, not the difference of two integrations: many steps
        problem = replace(problem, steps=[24] * len(base.parts))
        _, band = problem.linearised(nodes)
        for step in rng.normal(size=(3, size)):
            h = 1e-6
            ahead, behind = problem.moved(nodes, h * step), problem.moved(nodes, -h * step)
            slope = (problem.residual(ahead) - problem.residual(behind)) / (2 * h)
            for i in range(size):
                low, high = max(0, i - BAND), min(size, i + BAND + 1)
                columns = np.arange(low, high)
                assert band[BAND + i - columns, columns] @ step[low:high] == pytest.approx(
                    slope[i], rel=1e-6, abs=1e-6 * np.abs(slope).max()
                )


def test_follower_force() -> None:
    load = np.array([0.8, 0.0, -0.5, 0.0, 0.0, 0.1])
    solution = solve_rod(ROD, 0.5, GROUND, free(load, follower=True))
    assert solution.status == RodStatus.OK
    R = solution.tip_pose[:3, :3]
    np.testing.assert_allclose(R.T @ solution.tip_wrench[:3], load[:3], atol=1e-9)
    np.testing.assert_allclose(R.T @ solution.tip_wrench[3:], load[3:], atol=1e-9)
    assert math.isnan(solution.min_eigenvalue)
    with pytest.raises(RodError, match="potential"):
        stability(solution)


def test_slender_rod_under_compression() -> None:
    # clamped ends pushed together: the plane curve holds until it turns out of its plane
    half = clamped(pose((0, 0, 0.5), (0, 0, 0)))
    plane = solve_rod(ROD, 1.0, GROUND, half, bulge=(1, 0, 0))
    assert plane.status == RodStatus.OK, plane.message
    np.testing.assert_allclose(plane.shape(21).p[:, 1], 0.0, atol=1e-9)
    np.testing.assert_allclose(plane.shape(3).p[1, 2], 0.25, atol=1e-9)
    # it can turn around the line between the clamps without force
    assert abs(plane.min_eigenvalue) < 1e-6
    more = solve_rod(ROD, 1.0, GROUND, half, guess=plane, segments=24)
    np.testing.assert_allclose(
        more.shape(21).p[:, [0, 2]], plane.shape(21).p[:, [0, 2]], atol=1e-7
    )

    close = clamped(pose((0, 0, 0.3), (0, 0, 0)))
    found = solve_rod(ROD, 1.0, GROUND, close, bulge=(1, 0, 0))
    assert found.status == RodStatus.AMBIGUOUS
    assert np.abs(found.shape(21).p[:, 1]).max() > 0.05
    flat = solve_rod(ROD, 1.0, GROUND, close, bulge=(1, 0, 0), check_stability=False)
    assert stability(flat).index == 1
    assert found.energy < flat.energy


@pytest.mark.parametrize("seed", range(6))
def test_any_two_poses(seed: int) -> None:
    # whatever the poses of the ends: a stable equilibrium, found without a hint
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    tip = np.eye(4)
    tip[:3, :3] = quaternion_matrix(rng.normal(size=4))
    tip[:3, 3] = rng.uniform(0.3, 0.9) * direction / np.linalg.norm(direction)
    solution = solve_rod(ROD, 1.0, GROUND, clamped(tip), loading=Loading(gravity=(0, 0, -9.81)))
    assert solution.status in (RodStatus.OK, RodStatus.AMBIGUOUS), solution.message
    assert len(conjugate_points_of(solution)) == 0


def test_answers() -> None:
    straight = clamped(pose((0, 0, 0.45), (0, 0, 0)))
    arbitrary = solve_rod(ROD, 0.5, GROUND, straight)
    assert arbitrary.status == RodStatus.AMBIGUOUS
    assert "bulge" in arbitrary.message
    declared = solve_rod(ROD, 0.5, GROUND, straight, bulge=(0, -1, 0))
    assert declared.status == RodStatus.OK
    assert declared.shape(3).p[1][1] < -0.05

    away = solve_rod(ROD, 0.5, GROUND, clamped(pose((0, 0, 0.52), (0, 0, 0))))
    assert away.status == RodStatus.UNREACHABLE
    assert "15 mm" in away.message

    weak = Rod(Section.circle(1e-3), Material(200e9, shear=80e9, yield_strain=2e-3))
    moment = 5.0 * weak.bending_stiffness  # curvature 5 1/m: 1 GPa
    bent = solve_rod(weak, 0.3, GROUND, free([0, 0, 0, moment, 0, 0]))
    assert bent.status == RodStatus.YIELD
    assert bent.shape().bending_stress.max() == pytest.approx(1e9, rel=1e-9)
    assert bent.shape().yields
    twisted = solve_rod(weak, 0.3, GROUND, free([0, 0, 0, 0, 0, 0.1])).shape()
    twist = 0.1 / weak.stiffness_bt[2]
    np.testing.assert_allclose(twisted.stress, math.sqrt(3) * 80e9 * 1e-3 * twist, rtol=1e-9)
    assert solve_rod(ROD, 0.3, GROUND, free()).shape().yields is None


def test_a_rod_that_nothing_holds() -> None:
    pull, weight = free([0, 0, -2, 0, 0, 0]), Loading(gravity=(0, 0, -9.81))
    slider, tilted = jointed(np.eye(4), "001000"), pose((0, 0, 0), (0.5, 0, 0))
    for start, tip, loading in (
        (free(), pull, None),
        (free(), free(), weight),
        (slider, pull, None),
        (slider, jointed(np.eye(4), "111000"), weight),
        (jointed(tilted, "001000"), free([1, 0, 1, 0, 0, 0]), None),
    ):
        with pytest.raises(RodError, match="no equilibrium: nothing holds the rod along"):
            solve_rod(ROD, 0.5, start, tip, loading=loading)
    with pytest.raises(RodError, match=r"along \(0, 0, -1\), where its loads sum up to 2 N"):
        solve_rod(ROD, 0.5, free(), pull)
    # held by the other end, or in balance
    assert solve_rod(ROD, 0.5, slider, GROUND, loading=weight).converged
    assert solve_rod(ROD, 0.5, slider, free([0.1, 0, 0, 0, 0, 0])).converged
    assert solve_rod(ROD, 0.5, free([0, 0, -2, 0, 0, 0]), free([0, 0, 2, 0, 0, 0])).converged
    turned = solve_rod(ROD, 0.5, free(), free([0, 0, 0, 0.1, 0, 0]))
    assert turned.status == RodStatus.NOT_CONVERGED
    assert "nothing holds the rod: both ends are free" in turned.message


def test_bad_arguments() -> None:
    with pytest.raises(RodError, match="rod is of type str"):
        solve_rod("steel", 0.5, GROUND, free())
    with pytest.raises(RodError, match="length is 0 m"):
        solve_rod(ROD, 0.0, GROUND, free())
    with pytest.raises(RodError, match="finite"):
        clamped(np.full((4, 4), np.nan))
    with pytest.raises(RodError, match="no rotation"):
        clamped(2.0 * np.eye(4))
    with pytest.raises(RodError, match="mask '0011'"):
        jointed(np.eye(4), "0011")
    with pytest.raises(RodError, match="follower"):
        End(np.eye(4), np.zeros(6, dtype=bool), np.zeros(6), follower=True)
    with pytest.raises(RodError, match=r"point load at 0\.5 m"):
        solve_rod(ROD, 0.5, GROUND, free(), loading=Loading(points=(PointLoad(at=0.5),)))
    load = DistributedLoad(start=0.1, end=0.9)
    with pytest.raises(RodError, match=r"from 0\.1 to 0\.9 m"):
        solve_rod(ROD, 0.5, GROUND, free(), loading=Loading(distributed=(load,)))
    with pytest.raises(RodError, match="bulge"):
        solve_rod(ROD, 0.5, GROUND, free(), bulge=(0, 0, 0))
