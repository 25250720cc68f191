"""Distributed loads and strains at rest of the rods of robots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rod_documents import YAML, read
from rod_robots import plane_robot, pose, ring_robot

from cards_core.errors import DescriptionError, RodError
from cards_core.rods.dynamics.robot_dynamics import RodDynamics, single_rod
from cards_core.rods.loads import DistributedLoad, Loading
from cards_core.rods.robots.initial_guess import hermite_guess
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import SolverSettings, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape
from cards_core.rods.tracking.commands import reach_findings

EXACT = SolverSettings(steps=12, tolerance=1e-12, max_iterations=40)
MOVED = pose((0.01, -0.02, 0.42), (0.05, -0.03, 0.1))


def loaded(robot, force=(0.0, 0.0, 0.0), moment=(0.0, 0.0, 0.0)):
    """The robot with these loads on every rod, the more the later it comes."""
    limbs = tuple(
        replace(limb, force=(i + 1) * np.array(force), moment=(i + 1) * np.array(moment))
        for i, limb in enumerate(robot.limbs)
    )
    return replace(robot, limbs=limbs)


def with_rods(robot, change):
    """The robot with other rods."""
    return replace(robot, limbs=tuple(replace(limb, rod=change(limb.rod)) for limb in robot.limbs))


def test_weight_is_a_load():
    """Rods without density under a load that is their weight are the rods with density."""
    robot = read_rod_robot("stewart_gough")
    heavy = RodRobotSolver(robot, EXACT).igm(MOVED)
    light = with_rods(
        robot, lambda rod: replace(rod, material=replace(rod.material, density=0.0, poisson=None))
    )
    light = replace(
        light,
        limbs=tuple(
            replace(limb, force=old.rod.weight(robot.gravity))
            for limb, old in zip(light.limbs, robot.limbs, strict=True)
        ),
    )
    found = RodRobotSolver(light, EXACT).igm(MOVED)
    np.testing.assert_allclose(found.q, heavy.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.stiffness, heavy.stiffness, rtol=0, atol=1e-6)


def test_base_and_plate_carry_all_loads():
    """Sum of the forces, and of the moments about the origin, of the whole robot is zero."""
    robot = loaded(ring_robot(6), force=(0.02, -0.05, 0.03), moment=(1e-3, 2e-3, -1e-3))
    wrench = np.array([0.3, -0.2, 0.1, 0.01, 0.02, -0.01])
    x = pose((0.01, 0.02, 0.5), (0.05, 0.02, -0.04))
    solution = RodRobotSolver(robot, EXACT).igm(x, wrench=wrench)
    assert solution.converged
    total = np.zeros(6)
    weight = robot.plate.mass * robot.gravity
    for force, moment, at in (
        (weight, np.zeros(3), x[:3, 3]),
        (wrench[:3], wrench[3:], x[:3, 3]),
    ):
        total += np.concatenate([force, moment + np.cross(at, force)])
    for limb, start, base, length in zip(
        robot.limbs, rod_starts(robot, solution.q), solution.base_wrenches, solution.q, strict=True
    ):
        spread = Loading(
            tuple(robot.gravity), (DistributedLoad(tuple(limb.force), tuple(limb.moment)),)
        )
        curve = shape(limb.rod, length, start, base, spread, points=2001)
        per_length = limb.rod.weight(robot.gravity) + limb.force
        middle = 0.5 * (curve.p[1:] + curve.p[:-1])
        arm = np.cross(middle, per_length).sum(axis=0) * length / 2000
        total += np.concatenate([length * per_length, length * limb.moment + arm])
        total -= np.concatenate([base[:3], base[3:] + np.cross(start[:3, 3], base[:3])])
    np.testing.assert_allclose(total, 0.0, atol=2e-7)


def test_loads_keep_their_direction_on_a_turned_base():
    """As gravity does: the robot with its base, target and loads turned is the same robot."""
    robot = loaded(ring_robot(6), force=(0.05, -0.1, 0.08), moment=(1e-3, 0.0, 2e-3))
    straight = RodRobotSolver(robot, EXACT).igm(pose((0.02, 0.0, 0.5), (0.0, 0.05, 0.0)))
    turn = pose((0.3, -0.1, 0.2), (0.5, -0.7, 0.4))
    turned = RodRobotSolver(
        robot.turned_loads(turn[:3, :3]), EXACT, base=turn, gravity=turn[:3, :3] @ robot.gravity
    ).igm(turn @ straight.pose)
    np.testing.assert_allclose(turned.q, straight.q, rtol=0, atol=1e-11)
    # the guess from which it starts too
    guess = hermite_guess(robot, straight.pose)
    there = hermite_guess(
        robot.turned_loads(turn[:3, :3]),
        turn @ straight.pose,
        base=turn,
        gravity=turn[:3, :3] @ robot.gravity,
    )
    forces = there.base_wrenches[:, :3] @ turn[:3, :3]
    np.testing.assert_allclose(forces, guess.base_wrenches[:, :3], atol=1e-12)


def test_a_stretched_rod_is_a_longer_one():
    """v0 = (0, 0, k): the same shapes as k times the length, stiffness times k, density over k."""
    k = 1.05
    robot = read_rod_robot("stewart_6efr")
    stretched = with_rods(robot, lambda rod: replace(rod, strain=(0.0, 0.0, k)))

    def longer(rod):
        old = rod.material
        material = Material(k * old.young, shear=k * old.shear_modulus, density=old.density / k)
        return replace(rod, material=material)

    target = pose((0.03, -0.02, 1.1), (0.05, 0.03, 0.08))
    one, other = (
        RodRobotSolver(loaded(each, force=force), EXACT)
        for each, force in (
            (stretched, (0.01 * k, 0.0, 0.0)),
            (with_rods(robot, longer), (0.01, 0.0, 0.0)),
        )
    )
    found, want = (
        solver.igm(target, start=solver.igm(robot.home_pose)) for solver in (one, other)
    )
    assert found.converged
    assert want.converged
    np.testing.assert_allclose(k * found.q, want.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_wrenches, want.base_wrenches, rtol=0, atol=1e-8)


def test_reach_counts_the_length_of_the_free_rod():
    robot = ring_robot(6)
    limbs = tuple(
        replace(limb, base=replace(limb.base, lower=0.1, upper=0.5)) for limb in robot.limbs
    )
    robot = replace(robot, limbs=limbs)
    high = pose((0.0, 0.0, 0.52))
    assert len(reach_findings(robot, high)) == 6
    assert not reach_findings(
        with_rods(robot, lambda rod: replace(rod, strain=(0.0, 0.0, 1.1))), high
    )


def test_loads_in_the_dynamics():
    """A loaded rod stays at rest; pulled aside and let go, it keeps its energy, load included."""
    rod = Rod(Section.circle(1e-3), Material(200e9, shear=80e9, density=8000.0))
    robot = loaded(single_rod(rod, 0.5), force=(0.1, 0.0, 0.05))
    dynamics = RodDynamics(robot, 2e-3, alpha=-0.5, steps=24, segments=4, tolerance=1e-10)
    start = dynamics.rest()
    np.testing.assert_allclose(start.base_wrenches[0, :3], [0.05, 0.0, 0.025], atol=1e-9)
    np.testing.assert_allclose(dynamics.step().pose, start.pose, atol=1e-8)
    at_rest = dynamics.energy()
    # the load's potential is that of its middle: -f L times the mean of x
    assert at_rest["load"] < 0.0
    dynamics.rest(wrench=np.array([0.02, 0.0, 0.0, 0.0, 0.0, 0.0]))
    dynamics.restart()
    dynamics.step(wrench=np.zeros(6))
    first, parts = dynamics.energy()["total"], []
    for _ in range(100):
        dynamics.step()
        parts.append(dynamics.energy())
    swing = max(e["kinetic"] for e in parts)
    assert max(e["load"] for e in parts) - min(e["load"] for e in parts) > 0.2 * swing
    assert max(abs(e["total"] - first) for e in parts) < 1e-4 * swing


def test_keys_of_the_file(tmp_path):
    text = YAML.replace("  - {name: b}", "  - {name: b, v0: [0, 0.01, 1.02]}").replace(
        "rods:", "  load: {force: [0, 0.2, 0]}\nrods:"
    )
    robot = read(tmp_path, text)
    assert robot.limb("a").rod.strain == (0.0, 0.0, 1.0)
    assert robot.limb("b").rod.strain == (0.0, 0.01, 1.02)
    for limb in robot.limbs:
        np.testing.assert_array_equal(limb.force, [0.0, 0.2, 0.0])
        np.testing.assert_array_equal(limb.moment, 0.0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("v0: [0, 0, 0]", "strain along d3 is 0 m/m"),
        ("v0: [0, 1]", "has 2 values"),
        ("v0: [0, 0, .nan]", "v0"),
        ("load: [0, 0, 1]", "load"),
        ("load: {forces: [0, 0, 1]}", "forces"),
        ("load: {force: [0, 1]}", "world axes"),
        ("load: {moment: [0, 0, .inf]}", "moment"),
        ("distributed_load: {force: [0, 0, 1]}", "'load'"),
        ("strain: [0, 0, 1]", "'v0'"),
    ],
)
def test_bad_keys_are_named(tmp_path, line, words):
    text = YAML.replace("rods:", f"  {line}\nrods:")
    with pytest.raises(DescriptionError, match=words.replace("[", r"\[")) as caught:
        read(tmp_path, text)
    assert "rods.yaml" in str(caught.value)


def test_a_strain_in_place_of_a_derivative_is_warned_of(tmp_path):
    robot = read(tmp_path, YAML.replace("rods:", "  v0: [0, 0, 0.02]\nrods:"))
    assert any("v0" in note and "0 0 1" in note for note in robot.notes)


def test_loads_across_the_plane_are_refused():
    flat = loaded(plane_robot(), force=(0.1, 0.0, 0.0), moment=(0.0, 0.0, 0.01))
    RodRobotSolver(flat)
    for bad in ({"force": (0.0, 0.0, 0.1)}, {"moment": (0.01, 0.0, 0.0)}):
        with pytest.raises(RodError, match="out of the plane"):
            RodRobotSolver(loaded(plane_robot(), **bad))
