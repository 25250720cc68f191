"""The tensegrity models that come with CARDS: published numbers, and the files as built."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.tensegrity import build, write_structure

NAMES = (
    "prism_3",
    "tetrahedral_6",
    "tetrahedral_12",
    "octahedral_12",
    "tetraspine",
    "tetraspine_hardware",
    "ribbed_12",
    "superball",
)


def structure_of(name):
    return build(Path(find_model(name)).parent / "structure.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_what_its_structure_gives(name, tmp_path):
    folder = Path(find_model(name)).parent
    write_structure(build(folder / "structure.yaml"), tmp_path)
    for file in ("model.sdf", "model.config"):
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), file


@pytest.mark.parametrize("name", NAMES)
def test_the_sdf_says_what_the_structure_says(name):
    structure, robot = structure_of(name), load(name)
    assert [link.name for link in robot.links] == [body.name for body in structure.bodies]
    assert [muscle.name for muscle in robot.muscles] == [c.name for c in structure.cables]
    assert {joint.kind for joint in robot.joints} == {"free"}
    for link, body in zip(robot.links, structure.bodies, strict=True):
        assert link.inertia.mass == pytest.approx(body.mass, rel=1e-11)
        np.testing.assert_allclose(link.inertia.tensor, body.inertia.tensor, atol=1e-11)
        np.testing.assert_allclose(robot.home[f"{link.name}_free"][:3], body.position, atol=1e-11)
        assert len(link.collisions) == len(body.solids)
        assert len(link.visuals) >= len(body.solids)
    for muscle, cable in zip(robot.muscles, structure.cables, strict=True):
        ends = [
            structure.body(point.link).position + point.position for point in muscle.via_points
        ]
        assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(cable.length, abs=1e-11)
        assert muscle.actuator.rest_length == pytest.approx(cable.rest_length, abs=1e-11)
        assert muscle.actuator.stiffness == cable.stiffness
        assert muscle.tension_max == pytest.approx(cable.tension_max)


# Published numbers: lengths in cm, masses in kg ------------------------------------------------

VERTEBRA = 4 * math.pi * 0.25 * math.sqrt(300) * 0.014
HALF, TIP, TOP = 19.0, 10.969655115, 32.90897  # of a tetrahedron as built
SPINES = {
    # segments, mass of each, cables per joint with distance of nodes
    "tetrahedral_6": (6, VERTEBRA, [11.5] * 4 + [math.hypot(20, 8.5)] * 4),
    "tetrahedral_12": (12, VERTEBRA, [11.5] * 4 + [math.hypot(20, 8.5)] * 4),
    "octahedral_12": (
        12,
        math.pi * 0.25 * 60 * 0.014,
        [math.hypot(10, 12.5 - math.sqrt(200))] * 4
        + [math.hypot(10 + math.sqrt(50), 12.5 - math.sqrt(50))] * 4,
    ),
    "tetraspine": (
        12,
        math.pi * 0.635**2 * (5 * 38.1 + 32.99557) * 0.00311,
        [28.575] * 3 + [math.hypot(19.05, 16.497785)] * 2 + [16.497785],
    ),
    "tetraspine_hardware": (
        3,
        None,
        [23.0] * 3 + [math.hypot(HALF, TIP, 2)] * 2 + [math.hypot(TOP - TIP, 2)],
    ),
}


@pytest.mark.parametrize("name", SPINES)
def test_masses_and_distances_of_spines(name):
    count, mass, distances = SPINES[name]
    structure = structure_of(name)
    assert len(structure.bodies) == count
    if mass is not None:
        for body in structure.bodies:
            assert body.mass == pytest.approx(mass, abs=1e-6)
    per_joint = len(distances)
    assert len(structure.cables) == per_joint * (count - 1)
    for cable in structure.cables:
        joint, which = divmod(cable.index, per_joint)
        assert 100 * cable.node_distance == pytest.approx(distances[which], abs=1e-6)
        # index order: joint by joint
        assert (cable.first.body, cable.second.body) == (f"v{joint}", f"v{joint + 1}")


def test_tetrahedral_complex():
    structure = structure_of("tetrahedral_6")
    assert structure.mass == pytest.approx(4.571, abs=5e-4)
    assert structure.mass == pytest.approx(24 * math.pi * 0.25 * math.sqrt(300) * 0.014, abs=1e-9)
    lengths = [100 * cable.length for cable in structure.cables[:8]]
    np.testing.assert_allclose(lengths, [10.699092] * 4 + [21.081081] * 4, atol=1e-6)
    assert all(cable.rest_length == cable.length for cable in structure.cables)
    ends = [place[1] for place in structure.nodes.values()]  # the spine lies along y
    assert max(ends) - min(ends) == pytest.approx(0.775, abs=1e-9)
    motor = structure.cables[0].actuator
    assert (motor.type, motor.radius, motor.friction, motor.inertia) == ("motor", 0.01, 1e-3, 1e-4)
    assert (motor.tension_max, motor.speed_max, motor.backdrivable) == (70.0, 0.12, False)
    assert structure_of("tetrahedral_12").mass == pytest.approx(9.142, abs=5e-4)
    assert len(structure_of("tetrahedral_12").cables) == 88


def test_octahedral_complex():
    structure = structure_of("octahedral_12")
    assert structure.mass == pytest.approx(7.916813, abs=1e-6)
    assert structure.mass == pytest.approx(7.917, abs=5e-4)
    active = [cable for cable in structure.cables if "active" in cable.tags]
    passive = [cable for cable in structure.cables if "passive" in cable.tags]
    assert (len(active), len(passive)) == (44, 44)
    assert all(cable.actuator is None for cable in passive)
    for cable in passive:
        assert cable.length - cable.rest_length == pytest.approx(7.0 / 2000.0, abs=1e-12)


def test_tetraspine_as_built():
    structure = structure_of("tetraspine_hardware")
    masses = [body.mass for body in structure.bodies]
    np.testing.assert_allclose(masses, [0.713, 0.913, 0.723], atol=1e-3)
    tip, top = math.hypot(HALF, TIP, 25.0), math.hypot(TOP - TIP, 25.0)
    slope = math.hypot(HALF, TOP)
    rods = 0.0201 / 38.0 * (38.0 + 2 * slope + 2 * tip + top)
    loads = [3 * 0.140 + 0.040 + 0.140, 3 * 0.180 + 0.120 + 0.140, 3 * 0.100 + 0.120 + 0.190]
    np.testing.assert_allclose(masses, rods + np.array(loads), atol=1e-9)
    for cable in structure.cables:
        force = 20.0 if "top" in cable.name else 7.0
        assert cable.pretension == pytest.approx(force)
        # the cables begin on spheres: the way between nodes is two radii longer
        assert cable.length == pytest.approx(cable.node_distance - 2 * 0.003175, abs=1e-9)
        assert cable.rest_length == pytest.approx(cable.length - force / 229.16, abs=1e-12)


def test_ribbed_spine():
    structure = structure_of("ribbed_12")
    assert len(structure.bodies) == 12
    assert structure.bodies[0].mass == pytest.approx(0.370, abs=5e-4)
    assert structure.mass == pytest.approx(4.44, abs=5e-3)
    active = [cable for cable in structure.cables if "active" in cable.tags]
    passive = [cable for cable in structure.cables if "passive" in cable.tags]
    assert (len(active), len(passive)) == (77, 44)
    assert {cable.stiffness for cable in passive} == {500.0}
    assert structure.cables[7].name == "v0-v1.intercostal_left_down"
    # left and right are mirror images
    sides = [c.node_distance for c in structure.cables[:11]]
    for left, right in ((1, 2), (3, 4), (5, 6), (7, 8), (9, 10)):
        assert sides[left] == pytest.approx(sides[right], abs=1e-12)


def test_superball():
    structure = structure_of("superball")
    assert (len(structure.bodies), len(structure.cables)) == (6, 24)
    for body in structure.bodies:
        assert body.mass == pytest.approx(3.497871, abs=1e-6)
    for cable in structure.cables:
        assert cable.length == pytest.approx(1.0799813, abs=1e-7)
        assert cable.rest_length == pytest.approx(0.6799813, abs=1e-7)


def test_prism_is_in_equilibrium_with_itself():
    structure = structure_of("prism_3")
    for body in structure.bodies:
        (rod,) = body.solids
        force, moment = np.zeros(3), np.zeros(3)
        for cable in structure.cables:
            ends = (cable.first, cable.second)
            places = [structure.body(end.body).position + end.position for end in ends]
            pull = cable.pretension * (places[1] - places[0]) / cable.length
            for end, sign in zip(ends, (1.0, -1.0), strict=True):
                if end.body == body.name:
                    force += sign * pull
                    moment += np.cross(end.position, sign * pull)
        np.testing.assert_allclose(force, 0.0, atol=1e-9)
        np.testing.assert_allclose(moment, 0.0, atol=1e-9)
        assert rod.geometry.length == pytest.approx(
            math.hypot(0.3, 2 * 0.12 * math.sin(math.radians(75)))
        )


@pytest.mark.parametrize(
    ("name", "tag", "edges"),
    [
        ("octahedral_12", "active", 26),
        ("tetraspine", "cable", 57),
        ("ribbed_12", "active", 77),
        ("tetrahedral_12", "cable", 100),
    ],
)
def test_couplings_of_a_pattern_generator(name, tag, edges):
    """Two cables are coupled if they share a body; what repeats along the spine is one coupling.

    For m cables per joint, couplings are told apart by the rows of both cables and by their places
    in the row, in either order, [Mirletz2016] section 6.3: m(3m + 1)/2 of them.
    """
    cables = [cable for cable in structure_of(name).cables if tag in cable.tags]
    m = len(cables) // 11
    found = set()
    for (i, a), (j, b) in itertools.permutations(enumerate(cables), 2):
        if {a.first.body, a.second.body} & {b.first.body, b.second.body}:
            found.add((math.trunc((i - j) / m), *sorted((i % m, j % m))))
    assert len(found) == edges == m * (3 * m + 1) // 2
