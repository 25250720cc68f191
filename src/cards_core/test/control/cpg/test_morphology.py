"""Couplings from the structure: counts of the thesis, sharing, NASA's order."""

import numpy as np
import pytest

from cards_core.control.cpg.morphology import places, shared_body_couplings
from cards_core.errors import ParameterError, ShapeError
from cards_core.formats import load


@pytest.mark.parametrize(("m", "count"), [(2, 7), (3, 15), (4, 26), (6, 57), (7, 77), (8, 100)])
def test_number_of_places(m, count):
    assert len(places(m)) == count == len(set(places(m)))


def numbered(m):
    """Return pairs that tell their place: w = index, phi = -index."""
    index = np.arange(len(places(m)), dtype=float)
    return np.stack([index, -index], axis=1)


def spine(joints, m):
    return [(joint, joint + 1) for joint in range(joints) for _ in range(m)]


@pytest.mark.parametrize("truncate", [False, True])
def test_each_coupling_has_the_pair_of_its_place(truncate):
    m, joints = 4, 5
    found = shared_body_couplings(spine(joints, m), m, numbered(m), truncate=truncate)
    pairs = set(zip(found.targets.tolist(), found.sources.tolist(), strict=True))
    count = joints * m
    near = {
        (i, j) for i in range(count) for j in range(count) if i != j and abs(i // m - j // m) < 2
    }
    assert pairs == near
    for target, source, weight, phase in zip(
        found.targets, found.sources, found.weights, found.phases, strict=True
    ):
        row, j, k = places(m)[int(weight)]
        assert phase == -weight
        assert (j, k) == tuple(sorted((target % m, source % m)))
        if truncate:  # as integer division of C: -1, 0 or 1 whole joints apart
            assert row == int((target - source) / m) + 1
        else:
            assert row == target // m - source // m + 1
    # both ways of a coupling within a joint are the same
    weights = {
        (t, s): w for t, s, w in zip(found.targets, found.sources, found.weights, strict=True)
    }
    assert all(weights[0, j] == weights[j, 0] for j in range(1, m))


def test_the_two_ways_to_find_rows_differ_where_the_toolkit_truncates():
    m = 4
    plain = shared_body_couplings(spine(3, m), m, numbered(m))
    cut = shared_body_couplings(spine(3, m), m, numbered(m), truncate=True)
    differ = plain.weights != cut.weights
    apart = np.abs(plain.targets - plain.sources)
    across = plain.targets // m != plain.sources // m
    np.testing.assert_array_equal(differ, across & (apart < m))


@pytest.mark.parametrize(("name", "m"), [("tetrahedral_6", 8), ("tetraspine", 6)])
def test_shipped_spines(name, m):
    robot = load(name)
    found = shared_body_couplings([k.end_links for k in robot.muscles], m, numbered(m))
    joints = len(robot.muscles) // m
    # within each joint m(m - 1), to each neighbour m m
    assert found.targets.size == joints * m * (m - 1) + 2 * (joints - 1) * m * m


def test_mistakes():
    with pytest.raises(ParameterError, match="multiple of the cables at a joint"):
        shared_body_couplings(spine(2, 3), 4, numbered(4))
    with pytest.raises(ShapeError, match="expected 7 pairs"):
        shared_body_couplings(spine(2, 2), 2, numbered(3))
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    with pytest.raises(ParameterError, match="across 3 joints"):
        shared_body_couplings(ring, 1, numbered(1))
