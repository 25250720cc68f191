"""Statics of structures against closed forms, published equilibria and finite differences."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from cards_core.spatial import quaternion_log, quaternion_matrix, quaternion_product
from cards_core.tensegrity import build, to_robot
from cards_core.tensegrity.statics import (
    NoPrestressError,
    NotConvergedError,
    StaticsError,
    analyse_equilibrium,
    find_equilibrium,
    find_modes,
    force_density_shape,
    minimal_rest_lengths,
    prestress,
    rest_lengths,
    slack_cables,
)

HEAD = "format: tensegrity/1\n"
ROD = "  rod: {class: rod, radius: 0.004, density: 1500}\n"


def dynamics_of(path, text):
    path.write_text(HEAD + text)
    return make_dynamics(to_robot(build(path)))


def prism_text(n, twist, *, height=0.3, radius=0.12, pretension="pretension: 5", rods=1):
    """Structure file of a prism; rod i goes from bottom i to top i + 1, whichever is longer."""
    lines = ["nodes:"]
    for i in range(n):
        a, b = 2 * math.pi * i / n, 2 * math.pi * i / n + twist
        lines.append(f"  b{i}: [{radius * math.cos(a)!r}, {radius * math.sin(a)!r}, 0]")
        lines.append(f"  t{i}: [{radius * math.cos(b)!r}, {radius * math.sin(b)!r}, {height}]")
    lines += ["pair_groups:", "  rod:"]
    lines += [f"    - [b{i}, t{(i + rods) % n}, rod{i}]" for i in range(n)]
    lines += ["  horizontal:"]
    lines += [f"    - [{s}{i}, {s}{(i + 1) % n}]" for s in "bt" for i in range(n)]
    lines += ["  vertical:"] + [f"    - [b{i}, t{i}]" for i in range(n)]
    cable = f"{{class: cable, stiffness: 1000, {pretension}, anchor: node, tension_max: 60}}"
    lines += ["builders:", ROD.rstrip(), f"  horizontal|vertical: {cable}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_prisms_have_one_self_stress_and_one_mechanism(n, tmp_path):
    """Twist pi/2 - pi/n and force densities 1 : 2 sin(pi/n), [Connelly1995]."""
    twist, radius, height = math.pi / 2 - math.pi / n, 0.12, 0.3
    dynamics = dynamics_of(tmp_path / "prism.yaml", prism_text(n, twist))
    found = analyse_equilibrium(dynamics)
    # nodes and bars by Maxwell's rule: 3 (2n) - 6 - 4n = 2n - 6 = mechanisms - self-stresses
    assert found.self_stress.shape == (3 * n, 1)
    assert found.mechanisms.shape[1] == 2 * n - 5
    assert (found.rigid_motions.shape[1], found.idle_motions.shape[1]) == (6, n)
    density = found.self_stress[:, 0] / found.lengths
    np.testing.assert_allclose(density[: 2 * n], density[0], rtol=1e-9)
    np.testing.assert_allclose(density[2 * n :], density[0] * 2 * math.sin(math.pi / n), rtol=1e-9)
    # the mechanisms leave the lengths, as well as places rounded to 1e-12 m allow, and no rigid
    # motion is among them
    assert np.abs(found.matrix.T @ found.mechanisms).max() < 1e-10
    rigid = found.scale[:, None] ** 2 * found.rigid_motions
    assert np.abs(rigid.T @ found.mechanisms).max() < 1e-12
    taut = prestress(found, mean=7.0)
    assert taut.tensions.mean() == pytest.approx(7.0)
    vertical = math.hypot(2 * radius * math.sin(twist / 2), height)
    ratio = 2 * math.sin(math.pi / n) * vertical / (2 * radius * math.sin(math.pi / n))
    assert taut.tensions[-1] / taut.tensions[0] == pytest.approx(ratio, rel=1e-9)
    # the prestress makes the mechanisms stiff
    assert find_modes(dynamics, found.q, taut.tensions).verdict == "stable"
    if n == 3:  # the mechanism turns and lifts the upper triangle: three-fold symmetric
        rods = np.linalg.norm(found.mechanisms[:, 0].reshape(3, 6), axis=1)
        np.testing.assert_allclose(rods, rods[0], rtol=1e-9)


def test_prism_away_from_its_twist_has_no_self_stress(tmp_path):
    dynamics = dynamics_of(tmp_path / "prism.yaml", prism_text(3, math.radians(32)))
    found = analyse_equilibrium(dynamics)
    assert (found.self_stress.shape[1], found.mechanisms.shape[1]) == (0, 0)
    assert slack_cables(found) == found.cables
    with pytest.raises(StaticsError, match=r"no self-stress in this shape: the 9 columns"):
        prestress(found)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_prism_turns_to_its_twist(n, tmp_path):
    """Form finding from another twist, with rest lengths of the closed form."""
    twist = math.pi / 2 - math.pi / n
    exact = dynamics_of(tmp_path / "exact.yaml", prism_text(n, twist))
    analysis = analyse_equilibrium(exact)
    tensions = prestress(analysis, mean=20.0).tensions
    rest = rest_lengths(exact.robot, analysis.lengths, tensions)
    start = dynamics_of(tmp_path / "start.yaml", prism_text(n, twist + 0.25))
    found = find_equilibrium(start, rest)
    assert found.unbalanced < 1e-10 * found.tensions.max()
    # the start has longer rods, so it is another prism, but the twist is the same
    robot = start.robot
    poses = dict(zip((link.name for link in robot.links), start.link_poses(found.q), strict=True))
    ends = {}
    for muscle in robot.muscles:
        for name, point in zip(muscle.name.split("-"), muscle.via_points, strict=True):
            pose = poses[point.link]
            ends[name] = pose[:3, :3] @ point.position + pose[:3, 3]
    bottom = np.array([ends[f"b{i}"] for i in range(n)])
    top = np.array([ends[f"t{i}"] for i in range(n)])
    axis = top.mean(axis=0) - bottom.mean(axis=0)
    axis /= np.linalg.norm(axis)
    for i in range(n):
        a, b = bottom[i] - bottom.mean(axis=0), top[i] - top.mean(axis=0)
        angle = math.atan2(axis @ np.cross(a, b), a @ b)
        assert angle == pytest.approx(twist, abs=1e-8)


def prism_members(n):
    ring = [(i, (i + 1) % n) for i in range(n)]
    members = ring + [(n + i, n + j) for i, j in ring]
    members += [(i, n + i) for i in range(n)] + [(i, n + (i + 1) % n) for i in range(n)]
    return members, [0] * (2 * n) + [1] * n + [2] * n


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_force_densities_of_prisms(n):
    members, groups = prism_members(n)
    a = 2 * np.pi * np.arange(n) / n
    b = a + 1.9 - np.pi / n  # 19 degrees beyond the twist of equilibrium
    start = np.array(
        [(math.cos(x), math.sin(x), z) for x, z in [*product(a, [0]), *product(b, [2])]]
    )
    guess = np.array([(1.0, 1.0, -1.0)[k] for k in groups])
    found = force_density_shape(start, members, guess, groups)
    assert found.unbalanced < 1e-10
    ratio = 2 * math.sin(math.pi / n)
    assert found.densities[2 * n] / found.densities[0] == pytest.approx(ratio, abs=1e-8)
    assert found.densities[3 * n] / found.densities[0] == pytest.approx(-ratio, abs=1e-8)
    bottom, top = found.nodes[:n], found.nodes[n:]
    first, second = bottom[0] - bottom.mean(axis=0), top[0] - top.mean(axis=0)
    angle = math.atan2(np.cross(first, second)[2], first @ second)
    assert angle == pytest.approx(math.pi / 2 - math.pi / n, abs=1e-8)


def test_force_densities_that_do_not_exist():
    members, groups = prism_members(4)
    places = np.random.default_rng(3).normal(size=(8, 3))
    guess = np.array([(1.0, 3.0, -2.0)[k] for k in groups])
    with pytest.raises(NotConvergedError, match="no force densities with an equilibrium"):
        force_density_shape(places, members, guess, groups, max_iterations=50)
    with pytest.raises(ShapeError, match=r"two different nodes of 0 \.\. 7"):
        force_density_shape(places, [(0, 8)], np.ones(1))


# The ball of six rods --------------------------------------------------------------------------


def test_expanded_octahedron_has_equal_tensions(tmp_path):
    """Parallel rods half their length apart: all cables sqrt(3/8) of a rod, one self-stress."""
    half, near = 0.5, 0.25
    nodes, rods = [], []
    for axis, (s, t) in product(range(3), product((-1, 1), (-1, 1))):
        place = np.zeros(3)
        place[axis], place[(axis + 1) % 3] = s * half, t * near
        nodes.append(place)
    places = np.array(nodes)
    names = [f"n{i}" for i in range(12)]
    rods = [(i, j) for i in range(12) for j in range(i)
            if np.linalg.norm(places[i] - places[j]) == 1.0]  # fmt: skip
    side = math.sqrt(3 / 8)
    cables = [(i, j) for i in range(12) for j in range(i)
              if abs(np.linalg.norm(places[i] - places[j]) - side) < 1e-9]  # fmt: skip
    assert (len(rods), len(cables)) == (6, 24)
    text = "nodes:\n" + "".join(
        f"  {n}: {p.tolist()}\n" for n, p in zip(names, places, strict=True)
    )
    text += f"pair_groups:\n  rod: {[[names[i], names[j]] for i, j in rods]}\n"
    text += f"  cable: {[[names[i], names[j]] for i, j in cables]}\nbuilders:\n" + ROD
    text += "  cable: {class: cable, stiffness: 613, anchor: node, tension_max: 100}\n"
    dynamics = dynamics_of(tmp_path / "ball.yaml", text.replace("'", ""))
    found = analyse_equilibrium(dynamics)
    assert (found.self_stress.shape[1], found.mechanisms.shape[1]) == (1, 1)
    np.testing.assert_allclose(found.self_stress, 1 / math.sqrt(24), rtol=1e-9)
    modes = find_modes(dynamics, found.q, prestress(found, mean=50.0).tensions)
    assert modes.verdict == "stable"


def test_superball_settles_into_equal_tensions():
    dynamics = make_dynamics(load("superball"))
    assert analyse_equilibrium(dynamics).self_stress.shape[1] == 0  # as built
    found = find_equilibrium(dynamics)
    assert found.iterations < 20
    np.testing.assert_allclose(found.tensions, found.tensions[0], rtol=1e-9)
    # both ways to a rest length agree: k (l - L0) and l - f/k
    np.testing.assert_allclose(
        rest_lengths(dynamics.robot, found.lengths, found.tensions), 0.6799813, atol=1e-7
    )
    settled = analyse_equilibrium(dynamics, found.q)
    assert settled.self_stress.shape[1] == 1
    modes = find_modes(dynamics, found.q, found.tensions)
    assert (modes.verdict, modes.unstable) == ("stable", ())


# The joint of the tetrahedral complex ----------------------------------------------------------

JOINT = """
units: {length: cm}
up: y
substructures: {v: {path: VERTEBRA, repeat: 2, offset: [0, 0, -11.5]}}
bond_groups:
  v[*]/node_node:
    c0: [[front, front]]
    c1: [[right, right]]
    c2: [[back, back]]
    c3: [[left, left]]
    c4: [[right, front]]
    c5: [[right, left]]
    c6: [[back, front]]
    c7: [[back, left]]
builders:
"""


def test_equilibrium_of_a_tetrahedral_joint(tmp_path):
    """Tensions and pose that NASA's toolkit settles in, whose axes are y up."""
    vertebra = Path(find_model("tetrahedral_6")).parent / "vertebra.yaml"
    forces = (20, 16, 22, 18, 10, 13, 9, 12)
    text = JOINT.replace("VERTEBRA", str(vertebra)) + "".join(
        f"  c{i}: {{class: cable, stiffness: 1000, damping: 10, pretension: {f}, anchor: node}}\n"
        for i, f in enumerate(forces)
    )
    dynamics = dynamics_of(tmp_path / "joint.yaml", text)
    found = find_equilibrium(dynamics)
    expected = [6.853627, 6.889897, 7.101849, 7.081508, 15.672946, 16.173823, 15.790137, 16.314323]
    np.testing.assert_allclose(found.tensions, expected, atol=1e-5)
    tree = dynamics.tree
    a, b = (found.q[7 * i : 7 * i + 7] for i in range(2))
    start = tree.home
    turn = quaternion_product(a[3:] * [1, -1, -1, -1], b[3:])
    rotation = quaternion_log(turn)
    # the centres of mass are the vertebrae's centres, by symmetry
    place = quaternion_matrix(a[3:]).T @ (b[:3] - a[:3])
    to_toolkit = lambda v: np.array([v[0], v[2], -v[1]])  # noqa: E731
    np.testing.assert_allclose(to_toolkit(place), [0.000578, 0.002219, -0.102933], atol=1e-6)
    np.testing.assert_allclose(to_toolkit(rotation), [0.02005, 0.00891, 0.00011], atol=1e-5)
    assert np.linalg.norm(start[7:10] - start[:3]) == pytest.approx(0.115)
    assert find_modes(dynamics, found.q, found.tensions).verdict == "stable"
    # wherever the search begins near by, it ends in the same tensions
    rng = np.random.default_rng(1)
    q = tree.integrate(start, 0.02 * rng.normal(size=tree.nv))
    np.testing.assert_allclose(find_equilibrium(dynamics, q=q).tensions, expected, atol=1e-5)


# Prestress and rest lengths --------------------------------------------------------------------


def test_prestress_of_a_spine():
    dynamics = make_dynamics(load("tetrahedral_6"))
    analysis = analyse_equilibrium(dynamics)
    assert analysis.self_stress.shape[1] == 10
    best, least = prestress(analysis), prestress(analysis, "least_norm", tension_min=3.0)
    for found in (best, least):
        assert found.unbalanced < 1e-12 * found.tensions.max() * len(found.tensions)
    assert least.tensions.min() == pytest.approx(3.0)
    # neither is improved by a step along any self-stress that keeps it allowed
    rng = np.random.default_rng(2)
    for _ in range(200):
        step = analysis.self_stress @ rng.normal(size=10)
        other = best.tensions + 1e-3 * step
        assert other.min() <= best.tensions.min() * other.mean() / best.tensions.mean() + 1e-12
        other = least.tensions + 1e-3 * step
        if other.min() >= 3.0:
            assert other @ other >= least.tensions @ least.tensions - 1e-9
    shortest, tensions = minimal_rest_lengths(analysis, dynamics.robot, tension_min=2.0)
    assert tensions.min() >= 2.0 - 1e-9
    assert tensions.max() == pytest.approx(70.0)  # its actuators' limit
    assert analysis.unbalanced(tensions) < 1e-9
    np.testing.assert_allclose(
        rest_lengths(dynamics.robot, analysis.lengths, tensions), shortest, atol=1e-12
    )
    scaled = rest_lengths(dynamics.robot, analysis.lengths, 4.0 * best.tensions)
    assert shortest.sum() <= scaled.sum()
    with pytest.raises(StaticsError, match=r"within the limits.*limits 3 \.\. 3\.5"):
        prestress(analysis, "least_norm", tension_min=3.0, tension_max=3.5)


SEESAW = """
nodes: {a: [0, 0, 0], b: [1, 0, 0], c: [0, 0, 1], d: [1, 0, 1], e: [0.5, 0, 1.5]}
pair_groups:
  rod: [[a, b], [c, d], [c, e]]
  cable: [[a, c], [b, d], [a, d], [b, c], [b, e]]
builders:
  rod: {class: rod, radius: 0.004, density: 1500}
  cable: {class: cable, stiffness: 100, anchor: node, tension_max: 20}
"""


def test_cables_that_cannot_be_taut_are_named(tmp_path):
    """Two bodies with cables on one side only pull together: nothing holds them apart."""
    dynamics = dynamics_of(tmp_path / "seesaw.yaml", SEESAW)
    found = analyse_equilibrium(dynamics)
    assert found.self_stress.shape[1] == 2
    assert slack_cables(found) == found.cables
    with pytest.raises(StaticsError, match=r"5 of 5 are slack in every one: a-c, b-d"):
        prestress(found)


def test_only_the_cable_outside_a_loop_is_slack(tmp_path):
    """A prism, and a body on one cable that hangs on it: this one can carry nothing."""
    text = prism_text(3, math.pi / 6).replace(
        "pair_groups:\n  rod:",
        "  x: [0.4, 0, 0.1]\n  y: [0.4, 0, 0.3]\npair_groups:\n  rod:\n    - [x, y]",
    )
    text = text.replace("  vertical:\n", "  vertical:\n    - [x, b0, lone]\n")
    found = analyse_equilibrium(dynamics_of(tmp_path / "lone.yaml", text))
    assert found.self_stress.shape[1] == 1
    assert slack_cables(found) == ("lone",)
    with pytest.raises(StaticsError, match=r"1 of 10 are slack in every one: lone"):
        prestress(found)


# Stiffness and modes ---------------------------------------------------------------------------


def test_stiffness_is_what_forces_do(tmp_path):
    """K against central differences of the joint forces of elastic cables, at an equilibrium."""
    dynamics = make_dynamics(load("superball"))
    tree, rest = dynamics.tree, np.array([m.actuator.rest_length for m in dynamics.robot.muscles])
    found = find_equilibrium(dynamics)
    modes = find_modes(dynamics, found.q, found.tensions)

    def force(q):
        state = dynamics.update(q, np.zeros(tree.nv))
        return state.muscle_jacobian.T @ (613.0 * np.maximum(state.muscle_lengths - rest, 0.0))

    step, differences = 1e-5, np.empty((tree.nv, tree.nv))
    for k, direction in enumerate(step * np.eye(tree.nv)):
        above, below = (force(tree.integrate(found.q, s * direction)) for s in (1, -1))
        differences[:, k] = (above - below) / (2 * step)
    size = np.abs(modes.stiffness.matrix).max()
    np.testing.assert_allclose(modes.stiffness.matrix, differences, atol=1e-6 * size)
    # shapes solve the eigenproblem and have no momentum
    mass, shapes = modes.mass_matrix, modes.shapes
    np.testing.assert_allclose(shapes.T @ mass @ shapes, np.eye(30), atol=1e-9)
    symmetric = 0.5 * (modes.stiffness.matrix + modes.stiffness.matrix.T)
    np.testing.assert_allclose(
        symmetric @ shapes, mass @ shapes * modes.eigenvalues, atol=1e-6 * size
    )
    rigid = analyse_equilibrium(dynamics, found.q).rigid_motions
    np.testing.assert_allclose(rigid.T @ mass @ shapes, 0.0, atol=1e-9)


def held_ball(mass, stiffness, rest, inertia=0.01):
    """A ball between two walls on two cables: T = k (1 - rest) in both."""
    link = Link("ball", Inertia(mass, np.zeros(3), inertia * np.eye(3)))
    muscles = tuple(
        Muscle(
            name,
            (ViaPoint(WORLD, np.array([s, 0.0, 0.0])), ViaPoint("ball", np.zeros(3))),
            0.0,
            1e3,
            Cable(stiffness=stiffness, rest_length=rest),
        )
        for name, s in (("left", -1.0), ("right", 1.0))
    )
    return make_dynamics(Robot("held", (link,), (Joint("free", "free", WORLD, "ball"),), muscles))


def test_ball_between_two_walls():
    """Along: 2k/m. Across: 2T/(l m), a string under tension."""
    mass, k, rest = 0.7, 400.0, 0.9
    dynamics = held_ball(mass, k, rest)
    analysis = analyse_equilibrium(dynamics)
    assert (analysis.rigid_motions.shape[1], analysis.idle_motions.shape[1]) == (0, 3)
    assert (analysis.self_stress.shape[1], analysis.mechanisms.shape[1]) == (1, 2)
    tension = k * (1.0 - rest)
    modes = find_modes(dynamics, analysis.q, np.full(2, tension))
    np.testing.assert_allclose(modes.eigenvalues[:2], 2 * tension / mass, rtol=1e-10)
    assert modes.frequencies[2] == pytest.approx(math.sqrt(2 * k / mass) / (2 * math.pi))
    assert modes.links[0][0] == "ball"
    # with its weight it sags: 2 k (l - rest) sag/l = m g, l = sqrt(1 + sag^2)
    sagged = find_equilibrium(dynamics, gravity=True)
    sag = -sagged.q[2]
    length = math.hypot(1.0, sag)
    assert 2 * k * (length - rest) * sag / length == pytest.approx(mass * 9.81, rel=1e-8)
    assert find_modes(dynamics, sagged.q, sagged.tensions, gravity=True).verdict == "stable"


def test_two_bodies_and_a_spring(tmp_path):
    """A bar between the ends of a frame: along it w^2 = (k1 + k2)/m with the reduced mass m."""
    text = (
        "nodes: {a: [0, 0, 0], b: [0, 0, 1], c: [0.1, 0, -0.3], d: [0.1, 0, 1.3], "
        "e: [0, 0, -0.3], f: [0, 0, 1.3], g: [-0.1, 0, -0.3], h: [-0.1, 0, 1.3]}\n"
        "pair_groups:\n  bar: [[a, b]]\n"
        "  frame: [[c, d], [c, e], [d, f], [g, h], [g, e], [h, f]]\n"
        "  cable: [[a, e, down], [b, f, up]]\nbuilders:\n"
        "  bar: {class: rod, radius: 0.01, mass: 2.0}\n"
        "  frame: {class: rod, radius: 0.01, mass: 0.25}\n"
        "  cable: {class: cable, stiffness: 300, anchor: node, pretension: 4}\n"
    )
    dynamics = dynamics_of(tmp_path / "pair.yaml", text)
    analysis = analyse_equilibrium(dynamics)
    assert analysis.self_stress.shape[1] == 1
    modes = find_modes(dynamics, analysis.q, np.full(2, 4.0))
    masses = [link.inertia.mass for link in dynamics.robot.links]
    reduced = masses[0] * masses[1] / sum(masses)
    expected = math.sqrt(600.0 / reduced) / (2 * math.pi)
    assert np.abs(modes.frequencies - expected).min() < 1e-9 * expected


def test_an_unstable_equilibrium_is_named_and_left(tmp_path):
    """A bar between two supports, its lower end on the upper one: it turns over."""
    # supports at z = +-0.2; ends of the bar at +-0.5: its lower end hangs on the upper support
    link = Link("bar", Inertia(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.01])))
    muscles = tuple(
        Muscle(
            name,
            (
                ViaPoint(WORLD, np.array([0, 0, 0.2 * s])),
                ViaPoint("bar", np.array([0, 0, -0.5 * s])),
            ),
            0.0,
            1e3,
            Cable(stiffness=100.0, rest_length=0.5),
        )
        for name, s in (("up", 1.0), ("down", -1.0))
    )
    dynamics = make_dynamics(
        Robot("bar", (link,), (Joint("free", "free", WORLD, "bar"),), muscles)
    )
    modes = find_modes(dynamics, dynamics.tree.home, np.full(2, 20.0))
    assert modes.verdict == "unstable"
    assert modes.unstable == (0, 1)
    assert np.isnan(modes.frequencies[:2]).all()
    # turned by p about x: energy k (sqrt(0.29 + 0.2 cos p) - 0.5)^2, so -E'' = 2 T a b/l
    expected = 2 * 20.0 * 0.2 * 0.5 / 0.7
    np.testing.assert_allclose(modes.eigenvalues[:2], -expected / 0.1, rtol=1e-9)
    # the search leaves the saddle and ends where the cables carry no more
    with pytest.raises(NoPrestressError, match="no cable is taut"):
        find_equilibrium(dynamics)


# Mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_told_with_what_would_be_right(tmp_path):
    prism = make_dynamics(load("prism_3"))
    analysis = analyse_equilibrium(prism)
    with pytest.raises(UnknownNameError, match="max_min, least_norm"):
        prestress(analysis, "maxmin")
    for call, words in (
        (lambda: prestress(analysis, mean=-1.0), "mean tension -1 N"),
        (lambda: prestress(analysis, "least_norm", tension_min=0.0), "tension_min > 0"),
        (lambda: prestress(analysis, "least_norm", tension_min=[1.0, 2.0]), "one, or 9"),
        (lambda: prestress(analysis, "least_norm", mean=1.0), "with max_min only"),
        (lambda: rest_lengths(prism.robot, analysis.lengths, np.full(9, 250.0)), "below k l ="),
        (lambda: find_equilibrium(prism, np.full(9, -1.0)), "9 numbers > 0 m"),
        (lambda: find_equilibrium(prism, np.full(9, 1.0)), "leave the structure loose"),
        # its cables pull all vertebrae together until they are slack
        (lambda: find_equilibrium(make_dynamics(load("tetraspine"))), "no cable is taut"),
        (lambda: find_equilibrium(prism, gravity=True), "falls: no cable is held by the world"),
        (lambda: find_equilibrium(prism, np.full(9, 0.1), max_iterations=1), "in 1 iterations"),
        (lambda: find_modes(prism, analysis.q, np.full(9, 5.0)), "not in equilibrium"),
        (lambda: find_modes(prism, analysis.q, np.full(9, np.nan)), "numbers >= 0 N"),
        (lambda: analyse_equilibrium(prism, tolerance=2.0), "> 0 and < 1"),
        (lambda: analyse_equilibrium(prism, np.full(21, np.nan)), "finite"),
        (lambda: find_equilibrium(make_dynamics(load("planar_2r"))), "no stiffness"),
    ):
        with pytest.raises(CardsError, match=words):
            call()
    point = held_ball(0.7, 400.0, 0.9, inertia=0.0)
    with pytest.raises(StaticsError, match="mass matrix is singular"):
        find_modes(point, point.tree.home, np.full(2, 40.0))
    bare = tmp_path / "bare.yaml"
    text = "nodes: {a: [0, 0, 0], b: [0, 0, 1]}\npair_groups: {rod: [[a, b]]}\nbuilders:\n" + ROD
    with pytest.raises(StaticsError, match="has no cables"):
        analyse_equilibrium(dynamics_of(bare, text))
