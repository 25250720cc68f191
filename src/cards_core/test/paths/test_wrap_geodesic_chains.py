"""Several surfaces in a row."""

import math

import numpy as np
import pytest
from geodesic_cases import lengths_and_arms, path_robot, paths_robot, pose_matrix, twist_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cards_core.paths.wrapping.closed_forms import cylinder_contact, sphere_contact
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Cylinder, Ellipsoid, Sphere, Torus
from cards_core.spatial import Pose

P, Q = np.array([-0.4, 0.02, 0.02]), np.array([0.4, 0.03, -0.04])
ROLL = Pose.from_xyz_rpy([0.12, 0.02, 0.0], [0.3, 0.1, 0.0])


def at(x, y=0.0, z=0.0):
    return Pose(translation=np.array([x, y, z]))


def ellipsoid(*radii):
    return Ellipsoid(np.array(radii))


def side(x, y, z=0.0):
    return {"side": np.array([x, y, z])}


CHAINS = {
    "two spheres": (P, [(Sphere(0.08), at(-0.12), {}), (Sphere(0.07), at(0.12, 0.02), {})], Q),
    "sphere, cylinder": (
        P,
        [(Sphere(0.08), at(-0.12), {}), (Cylinder(0.07, math.inf), ROLL, {})],
        Q,
    ),
    "three": (
        P,
        [
            (Sphere(0.06), at(-0.2), {}),
            (Cylinder(0.05, math.inf), ROLL, {}),
            (ellipsoid(0.05, 0.04, 0.06), at(0.25), {"link": "body"}),
        ],
        Q,
    ),
    "zigzag": (
        P,
        [
            (Sphere(0.06), at(-0.12), side(-0.12, 0.1)),
            (Cylinder(0.05, math.inf), at(0.12), side(0.12, -0.1)),
        ],
        Q,
    ),
    "ring between": (
        (0.0, 0.0, -0.4),
        [
            (Sphere(0.05), at(0.02, 0.0, -0.2), {}),
            (Torus(0.12, 0.03), at(0.0), {"inside": True}),
            (ellipsoid(0.05, 0.06, 0.04), at(0.2, 0.05, 0.2), {}),
        ],
        (0.45, 0.0, 0.3),
    ),
}


def solved(robot, poses=None, backend="numeric"):
    poses = pose_matrix() if poses is None else poses
    paths = GeodesicPaths(robot, backend)
    rows = paths.solve(poses).copy()
    assert paths.failures == 0
    return rows, lengths_and_arms(robot, rows, poses)[0][0]


def closed_contact(shape, pose, options, p, q):
    back = pose.inverse()
    p, q = back.apply(p), back.apply(q)
    wanted = options.get("side")
    wanted = None if wanted is None else back.apply(wanted)
    if isinstance(shape, Sphere):
        found = sphere_contact(p, q, shape.radius, wanted)
    else:
        found = cylinder_contact(p, q, shape.radius, shape.length, wanted)
    return pose.apply(found.start), pose.apply(found.end), found


def alternating(p, wraps, q):
    """Length by coordinate descent: every contact in turn by its closed form.

    None where it goes round in circles, because a side rule switches back and forth.
    """
    contacts = [None] * len(wraps)
    for _ in range(600):
        old = list(contacts)
        for i, (shape, pose, options) in enumerate(wraps):
            before = next((c[1] for c in reversed(contacts[:i]) if c is not None), p)
            after = next((c[0] for c in contacts[i + 1 :] if c is not None), q)
            start, end, found = closed_contact(shape, pose, options, before, after)
            contacts[i] = (start, end, found.length) if found.wrapped else None
    for before, after in zip(old, contacts, strict=True):
        if (before is None) != (after is None):
            return None
        if before is not None and math.dist(before[0], after[0]) > 1e-9:
            return None
    points, length = [p], 0.0
    for contact in contacts:
        if contact is not None:
            points += contact[:2]
            length += contact[2]
    points.append(q)
    gaps = np.linalg.norm(np.diff(np.array(points), axis=0), axis=1)
    return length + gaps[::2].sum()


@pytest.mark.parametrize("name", ["two spheres", "sphere, cylinder", "zigzag"])
def test_length_is_that_of_alternating_closed_forms(name):
    p, wraps, q = CHAINS[name]
    rng = np.random.default_rng(1)
    touched = 0
    for _ in range(12):
        there = q + rng.uniform(-0.08, 0.08, 3)
        expected = alternating(p, wraps, there)
        if expected is None:
            continue
        rows, length = solved(path_robot(p, wraps, there))
        touched += np.count_nonzero(rows[:, 6])
        assert length == pytest.approx(expected, abs=1e-9)
    assert touched > 4


def test_length_is_that_of_a_string_pulled_tight():
    """Shortest polyline outside of two spheres, its points at given x, by SLSQP."""
    p, wraps, q = CHAINS["two spheres"]
    count = 80
    stations = np.linspace(p[0], q[0], count + 2)
    first = np.linspace(p, q, count + 2)[1:-1, 1:] + np.array([0.08, 0.0])

    def points(x):
        inner = np.column_stack([stations[1:-1], x.reshape(-1, 2)])
        return np.vstack([p, inner, q])

    def length_of(x):
        delta = np.diff(points(x), axis=0)
        distance = np.linalg.norm(delta, axis=1)
        u = delta / distance[:, None]
        return distance.sum(), (u[:-1, 1:] - u[1:, 1:]).ravel()

    def clearance(x):
        return np.concatenate(
            [
                ((points(x)[1:-1] - pose.translation) ** 2).sum(axis=1) - shape.radius**2
                for shape, pose, _ in wraps
            ]
        )

    def slope(x):
        out = np.zeros((2 * count, 2 * count))
        for i, (_, pose, _) in enumerate(wraps):
            d = 2.0 * (points(x)[1:-1, 1:] - pose.translation[1:])
            for k in range(count):
                out[i * count + k, 2 * k : 2 * k + 2] = d[k]
        return out

    result = minimize(
        length_of,
        first.ravel(),
        jac=True,
        constraints=[{"type": "ineq", "fun": clearance, "jac": slope}],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-9},
    )
    length = solved(path_robot(p, wraps, q))[1]
    assert length > math.dist(p, q) + 0.01
    # chords of the stations' spacing cut the arcs
    assert result.fun <= length + 1e-6
    assert result.fun == pytest.approx(length, abs=2e-4)


def test_reversal():
    for p, wraps, q in CHAINS.values():
        if any("link" in options for _, _, options in wraps):
            continue
        there, length = solved(path_robot(p, wraps, q))
        back, other = solved(path_robot(q, wraps[::-1], p))
        assert other == pytest.approx(length, abs=1e-10)
        assert back[::-1, 3:6] == pytest.approx(there[:, :3], abs=1e-8)


def test_surfaces_that_are_not_touched_lie_on_the_path_in_order():
    far = [(Sphere(0.05), at(x, 1.0), {}) for x in (-0.2, 0.0, 0.2)]
    rows, length = solved(path_robot(P, far, Q))
    assert length == pytest.approx(math.dist(P, Q), abs=1e-14)
    shares = [(row[0] - P[0]) / (Q[0] - P[0]) for row in rows]
    assert shares == pytest.approx([0.25, 0.5, 0.75])
    one = [far[0], (Sphere(0.08), at(0.0), {}), far[2]]
    rows, length = solved(path_robot(P, one, Q))
    alone = sphere_contact(P, Q, 0.08)
    expected = math.dist(P, alone.start) + alone.length + math.dist(alone.end, Q)
    assert length == pytest.approx(expected, abs=1e-9)
    assert rows[1, :3] == pytest.approx(alone.start, abs=1e-8)
    assert rows[0, :3] == pytest.approx(0.5 * (P + alone.start), abs=1e-8)
    assert rows[2, :3] == pytest.approx(0.5 * (Q + alone.end), abs=1e-8)


def test_path_takes_a_surface_in_that_only_the_other_one_pushes_it_into():
    wraps = [(Sphere(0.1), at(-0.1, -0.06), {}), (Sphere(0.05), at(0.08, 0.09), side(0.08, 0.0))]
    rows, length = solved(path_robot((-0.4, 0.0, 0.0), wraps, (0.4, 0.0, 0.0)))
    assert rows[0, 6] > 0.0
    expected = alternating(np.array([-0.4, 0.0, 0.0]), wraps, np.array([0.4, 0.0, 0.0]))
    assert length == pytest.approx(expected, abs=1e-9)


# motions -------------------------------------------------------------------------------------


def motion(time):
    turn = np.array([0.2, 0.2, 0.3]) * np.sin(np.array([1.0, 1.3, 0.7]) * time + [0.3, 1.0, 2.0])
    shift = np.array([0.04, 0.08, 0.06]) * np.sin(np.array([0.8, 0.6, 1.1]) * time)
    return pose_matrix(turn, shift)


@pytest.fixture(scope="module")
def chains():
    robot = paths_robot(list(CHAINS.values()))
    return robot, GeodesicPaths(robot, "compiled")


def test_backends_agree(chains):
    robot, compiled = chains
    numeric = GeodesicPaths(robot, "numeric")
    compiled.reset()
    for time in np.arange(0.0, 12.0, 3.1):
        assert compiled.solve(motion(time)) == pytest.approx(numeric.solve(motion(time)), abs=1e-9)
    assert compiled.failures == numeric.failures == 0


def test_derivative_is_that_of_finite_differences_through_lift_off(chains):
    robot, paths = chains
    paths.reset()
    h, changes, previous = 1e-5, 0, None
    branches = 0
    for time in np.arange(0.0, 24.0, 0.03):
        sample = {}
        for d in (-h, h, 0.0):
            rows = paths.solve(motion(time + d))
            sample[d] = lengths_and_arms(robot, rows, motion(time + d))
        error = np.abs(
            sample[0.0][1] @ twist_of(motion, time) - (sample[h][0] - sample[-h][0]) / (2 * h)
        )
        touching = rows[:, 6] > 0.0
        changes += 0 if previous is None else np.count_nonzero(touching != previous)
        previous = touching
        branches += np.count_nonzero(error > 1e-6)
    assert paths.failures == 0
    assert changes > 10
    assert branches == 0


def test_last_solution_is_for_speed_only(chains):
    robot, warm = chains
    cold = GeodesicPaths(robot, "compiled")
    warm.reset()
    for time in np.arange(0.0, 24.0, 0.04):
        cold.reset()
        assert warm.solve(motion(time)) == pytest.approx(cold.solve(motion(time)), abs=1e-8), time
    assert warm.failures == cold.failures == 0


coordinate = st.sampled_from([0.0, 0.05, 0.1, -0.1, 0.2, 1e-9]) | st.floats(-0.5, 0.5)
point = st.tuples(coordinate, coordinate, coordinate)


@pytest.fixture(scope="module")
def anything():
    wraps = [
        (Sphere(0.1), at(0.1), {"link": "s"}),
        (ellipsoid(0.05, 0.1, 0.08), at(-0.1), {"link": "s", **side(0.0, 0.0, 1.0)}),
        (Cylinder(0.05, math.inf), ROLL, {}),
        (Torus(0.1, 0.04), at(0.0), {"inside": True}),
    ]
    robot = path_robot((0.0, 0.0, 0.0), wraps, (0.0, 0.0, 0.0), ("body", "s"))
    return GeodesicPaths(robot, "compiled")


@settings(max_examples=100, deadline=None)
@given(q=point, s=point)
def test_never_nan(anything, q, s):
    rows = anything.solve(np.concatenate([pose_matrix((0, 0, 0), q), pose_matrix((0, 0, 0), s)]))
    assert np.all(np.isfinite(rows))
    assert np.all(rows[:, 6] >= 0.0)
    assert np.abs(rows[:, :6]).max() < 20.0
