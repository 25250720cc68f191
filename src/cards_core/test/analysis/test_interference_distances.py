"""Distances against minimisation, closed forms of points, and the library coal."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, lsq_linear
from scipy.spatial import ConvexHull

from cards_core.analysis.interference import Body, bodies_of, body_distances, piece_distances
from cards_core.errors import DescriptionError, ShapeError
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Link,
    Mesh,
    Plane,
    Sphere,
)
from cards_core.robot.model import Robot
from random_robots import random_pose, random_rotation

TETRAHEDRON = np.array([[0.0, 0, 0], [0.3, 0, 0], [0, 0.25, 0.02], [0.05, 0.04, 0.4]])
TETRAHEDRON_HULL = ConvexHull(TETRAHEDRON)


def write_stl(path, vertices):
    """A text STL whose hull is that of the vertices."""
    lines = ["solid s"]
    for corners in vertices[ConvexHull(vertices).simplices]:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {x!r} {y!r} {z!r}" for x, y, z in corners.tolist()]
        lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid s"]))


def body_of(geometry, pose, source=None) -> Body:
    link = Link("link", collisions=(Collision("shape", geometry, pose),))
    (body,) = bodies_of(Robot("r", (link,), (), source=source), "collisions", "hull")
    return body


# Pieces ---------------------------------------------------------------------------------------


def minimised(a, b):
    """Distance of two pieces: a bounded least-squares problem, solved by its active sets."""
    matrix = np.stack([a[1] - a[0], b[0] - b[1]], axis=1)
    found = lsq_linear(matrix, b[0] - a[0], (0.0, 1.0), method="bvls", tol=1e-14)
    return math.sqrt(2.0 * found.cost)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
def test_pieces_against_bounded_least_squares(spread):
    """Also pieces that are nearly parallel: the second is the first, moved a little."""
    rng = np.random.default_rng(1)
    a = rng.uniform(-1, 1, (400, 2, 3))
    b = a[:, ::-1] + rng.uniform(-1, 1, (400, 1, 3)) + spread * rng.uniform(-1, 1, (400, 2, 3))
    expected = [minimised(x, y) for x, y in zip(a, b, strict=True)]
    # distances are a metre; the square has the rounding of a sum of a few squares
    np.testing.assert_allclose(piece_distances(a, b), expected, rtol=0, atol=1e-9)


def test_pieces_that_are_parallel_cross_or_are_points():
    x = np.eye(3)
    o = np.zeros(3)
    cases = [
        ((o, x[0]), (x[1], x[0] + x[1]), 1.0),  # parallel, side by side
        ((o, x[0]), (2 * x[0], 3 * x[0]), 1.0),  # on one line
        ((o, x[0]), (0.5 * x[0], 3 * x[0]), 0.0),  # on one line, overlapping
        ((o, x[0]), (3 * x[0] + x[1], 2 * x[0] + x[1]), math.sqrt(2.0)),  # parallel, apart
        ((o, x[0]), (0.5 * x[0] - x[1], 0.5 * x[0] + x[1]), 0.0),  # crossing
        ((o, x[0]), (0.5 * x[0] - x[1] + x[2], 0.5 * x[0] + x[1] + x[2]), 1.0),  # skew
        ((o, o), (x[1], x[1]), 1.0),  # two points
        ((o, o), (x[1] - x[0], x[1] + x[0]), 1.0),  # a point and a piece
        ((o, x[0]), (0.5 * x[0] + x[2], 0.5 * x[0] + x[2]), 1.0),
        ((o, x[0]), (o, x[0]), 0.0),
    ]
    first, second, expected = zip(*cases, strict=True)
    np.testing.assert_allclose(piece_distances(first, second), expected, atol=1e-15)
    np.testing.assert_allclose(piece_distances(second, first), expected, atol=1e-15)


def test_pieces_symmetry_and_rigid_motion():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (2, 300, 2, 3))
    distances = piece_distances(a, b)
    pose = random_pose(rng)
    moved = piece_distances(pose.apply(a), pose.apply(b[:, ::-1]))
    np.testing.assert_allclose(piece_distances(b, a), distances, atol=1e-14)
    np.testing.assert_allclose(moved, distances, atol=1e-13)


def test_pieces_need_partners():
    with pytest.raises(ShapeError, match="2 pieces and 1 partners"):
        piece_distances(np.zeros((2, 2, 3)), np.zeros((1, 2, 3)))


# Bodies ---------------------------------------------------------------------------------------


def to_ellipsoid(x, radii):
    """Distance of a point from an ellipsoid: the root of the Lagrange multiplier's equation."""

    def beyond(t):
        return np.sum((radii * x / (radii**2 + t)) ** 2) - 1.0

    if beyond(0.0) <= 0.0:
        return 0.0
    t = brentq(beyond, 0.0, np.linalg.norm(x) * radii.max(), xtol=1e-15)
    return float(np.linalg.norm(x - radii**2 * x / (radii**2 + t)))


def to_hull(x, hull):
    """Distance of a point from a hull: the least of those from its faces and edges."""
    if np.all(hull.equations[:, :3] @ x + hull.equations[:, 3] <= 0.0):
        return 0.0
    best = math.inf
    for corners in hull.points[hull.simplices]:
        u, v = corners[1] - corners[0], corners[2] - corners[0]
        s, t = np.linalg.lstsq(np.stack([u, v], axis=1), x - corners[0], rcond=None)[0]
        if s >= 0 and t >= 0 and s + t <= 1:
            best = min(best, float(np.linalg.norm(x - corners[0] - s * u - t * v)))
        for i in range(3):
            e = corners[(i + 1) % 3] - corners[i]
            share = np.clip((x - corners[i]) @ e / (e @ e), 0.0, 1.0)
            best = min(best, float(np.linalg.norm(x - corners[i] - share * e)))
    return best


def point_distance(geometry, x):
    match geometry:
        case Sphere(radius):
            return float(np.linalg.norm(x)) - radius
        case Capsule(radius, length):
            axis = np.clip(x[2], -0.5 * length, 0.5 * length)
            return math.hypot(x[0], x[1], x[2] - axis) - radius
        case Cylinder(radius, length):
            out = max(math.hypot(x[0], x[1]) - radius, 0.0), max(abs(x[2]) - 0.5 * length, 0.0)
            return math.hypot(*out)
        case Box():
            return float(np.linalg.norm(np.maximum(np.abs(x) - 0.5 * geometry.size, 0.0)))
        case Ellipsoid():
            return to_ellipsoid(x, geometry.radii)
        case Plane():
            return float(geometry.normal @ x)
    return to_hull(x, TETRAHEDRON_HULL)


def searched(geometry, a, b):
    """Distance of a piece: that of its points is convex along it, so thirds can be thrown away."""
    low, high = 0.0, 1.0
    for _ in range(70):
        s, t = low + (high - low) / 3, high - (high - low) / 3
        left = point_distance(geometry, a + s * (b - a))
        if left <= point_distance(geometry, a + t * (b - a)):
            high = t
        else:
            low = s
    return point_distance(geometry, a + 0.5 * (low + high) * (b - a))


def geometries(rng):
    normal = rng.normal(size=3)
    return [
        Sphere(0.2),
        Capsule(0.1, 0.5),
        Cylinder(0.2, 0.5),
        Cylinder(0.4, 0.02),
        Box(np.array([0.5, 0.2, 0.03])),
        Ellipsoid(np.array([0.4, 0.2, 0.1])),
        Ellipsoid(np.array([0.5, 0.5, 0.02])),
        Plane(normal / np.linalg.norm(normal)),
        Mesh("tetrahedron.stl"),
    ]


@pytest.mark.parametrize("index", range(9))
def test_bodies_against_search_along_the_piece(index, tmp_path):
    rng = np.random.default_rng(3)
    geometry = geometries(rng)[index]
    write_stl(tmp_path / "tetrahedron.stl", TETRAHEDRON)
    pose = random_pose(rng)
    body = body_of(geometry, pose, str(tmp_path / "model.sdf"))
    # far, near and through: the ends are spread over several sizes of the body
    local = rng.normal(size=(150, 2, 3)) * rng.choice([0.2, 0.5, 2.0], (150, 1, 1))
    expected = np.array([searched(geometry, a, b) for a, b in local])
    # the search ends with 3e-12 m of the piece left; GJK where rounding ends it
    np.testing.assert_allclose(
        body_distances(pose.apply(local), body), expected, rtol=0, atol=1e-9
    )
    assert np.sum(expected <= 1e-12) > 10 or index in (3, 4)  # both cases are there


@pytest.mark.parametrize("index", range(7))
def test_bodies_against_coal(index):
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(4)
    geometry = geometries(rng)[index]
    radius = 0.01
    match geometry:
        case Sphere():
            other = coal.Sphere(geometry.radius)
        case Capsule():
            other = coal.Capsule(geometry.radius, geometry.length)
        case Cylinder():
            other = coal.Cylinder(geometry.radius, geometry.length)
        case Box():
            other = coal.Box(*geometry.size)
        case Ellipsoid():
            other = coal.Ellipsoid(*geometry.radii)
    body = body_of(geometry, random_pose(rng))
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = 1e-8
    compared = 0
    for _ in range(200):
        rotation, centre = random_rotation(rng), rng.uniform(-1, 1, 3)
        length = rng.uniform(0.1, 1.0)
        ends = np.array([centre - 0.5 * length * rotation[:, 2],
                         centre + 0.5 * length * rotation[:, 2]])  # fmt: skip
        ours = body_distances(body.pose.apply(ends)[None], body)[0] - radius
        result.clear()
        theirs = coal.distance(
            coal.Capsule(radius, length),
            coal.Transform3s(rotation, centre),
            other,
            coal.Transform3s(),
            request,
            result,
        )
        if theirs > 1e-6 or ours > 1e-6:
            # coal's own accuracy for curved shapes, which it holds at this setting
            assert ours == pytest.approx(theirs, abs=1e-6)
            compared += 1
        else:
            assert ours <= 1e-6
    assert compared > 100


def test_bodies_rigid_motion_and_direction():
    rng = np.random.default_rng(5)
    geometry = Cylinder(0.2, 0.5)
    local = rng.normal(size=(300, 2, 3))
    first = body_distances(local, body_of(geometry, random_pose(rng).__class__()))
    pose = random_pose(rng)
    second = body_distances(pose.apply(local[:, ::-1]), body_of(geometry, pose))
    # the iteration stops within 1e-11 of the size
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-10)


def minimised_along(pieces, distance):
    """Smallest distance of pieces from a convex body: that of their points is convex."""
    a, b = (pieces[:, k].astype(np.longdouble) for k in (0, 1))
    low, high = np.zeros((len(a), 1), np.longdouble), np.ones((len(a), 1), np.longdouble)
    for _ in range(120):  # (2/3)^120 is nothing beside the rounding
        left, right = low + (high - low) / 3, high - (high - low) / 3
        nearer = (distance(a + left * (b - a)) < distance(a + right * (b - a)))[:, None]
        low, high = np.where(nearer, low, left), np.where(nearer, right, high)
    return np.min([distance(a + t * (b - a)) for t in (low, 0.0, 1.0)], axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_bodies_are_as_near_as_the_iteration_promises(seed):
    """Two bounds that agree within 1e-11 of the size; what is returned is the lower one."""
    radius, half = 0.2, 0.25

    def distance(points):
        away = np.hypot(points[:, 0], points[:, 1]) - radius
        return np.hypot(np.maximum(away, 0), np.maximum(np.abs(points[:, 2]) - half, 0))

    rng = np.random.default_rng(seed)
    pieces = rng.normal(size=(5000, 2, 3))
    body = body_of(Cylinder(radius, 2 * half), random_pose(rng).__class__())
    error = body_distances(pieces, body) - minimised_along(pieces, distance)
    # a dozen operations on coordinates below 5 m
    rounding = 12 * np.finfo(float).eps * np.abs(pieces).max()
    assert np.abs(pieces).max() < 5
    assert error.max() <= rounding
    assert error.min() >= -(1e-11 * body.radius + rounding)


def test_bodies_are_touched_at_zero():
    pose = random_pose(np.random.default_rng(6)).__class__()
    box = body_of(Box(np.array([0.2, 0.2, 0.2])), pose)
    pieces = np.array(
        [
            [[0.1, -1, 0], [0.1, 1, 0]],  # along a face
            [[0.1, 0, 0], [1.0, 0, 0]],  # ends on a face
            [[0.1, 0.1, 0.1], [1, 1, 1]],  # ends in a corner
            [[0.0, 0, 0], [0.01, 0, 0]],  # inside
            [[-1.0, 0, 0], [1, 0, 0]],  # through
            [[0.1 + 1e-7, -1, 0], [0.1 + 1e-7, 1, 0]],  # just beside
            [[0.0, 0, 0.5], [0.0, 0, 0.5]],  # a point
        ]
    )
    expected = [0, 0, 0, 0, 0, 1e-7, 0.4]
    np.testing.assert_allclose(body_distances(pieces, box), expected, rtol=0, atol=1e-11)


def test_hull_ignores_the_inside_of_a_mesh(tmp_path):
    rng = np.random.default_rng(7)
    inner = 0.2 * rng.dirichlet(np.ones(4), 50) @ TETRAHEDRON + 0.4 * TETRAHEDRON.mean(axis=0)
    write_stl(tmp_path / "a.stl", TETRAHEDRON)
    (tmp_path / "b.obj").write_text(
        "\n".join(f"v {x!r} {y!r} {z!r}" for x, y, z in [*TETRAHEDRON.tolist(), *inner.tolist()])
    )
    pose, source = random_pose(rng), str(tmp_path / "model.sdf")
    plain = body_of(Mesh("a.stl", np.array([1.0, 2.0, 0.5])), pose, source)
    filled = body_of(Mesh("b.obj", np.array([1.0, 2.0, 0.5])), pose, source)
    assert len(filled.vertices) == 4
    pieces = rng.normal(size=(200, 2, 3))
    np.testing.assert_allclose(
        body_distances(pieces, filled), body_distances(pieces, plain), rtol=0, atol=1e-10
    )


def test_meshes_that_cannot_be_read(tmp_path):
    source = str(tmp_path / "model.sdf")
    pose = random_pose(np.random.default_rng(8))
    for uri, problem in (("no.stl", "no file"), ("a.dae", "ending in"), ("flat.obj", "volume")):
        if uri == "a.dae":
            (tmp_path / uri).write_text("<COLLADA/>")
        if uri == "flat.obj":
            (tmp_path / uri).write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\n")
        with pytest.raises(DescriptionError, match=problem) as caught:
            body_of(Mesh(uri), pose, source)
        assert "meshes='skip'" in str(caught.value)
    link = Link("link", collisions=(Collision("shape", Mesh("no.stl"), pose),))
    assert bodies_of(Robot("r", (link,), ()), "collisions", "skip") == ()
