"""Contacts of single surfaces without a closed form."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from geodesic_cases import (
    OPENSIM,
    lengths_and_arms,
    oracle_robot,
    path_robot,
    paths_robot,
    pose_matrix,
    twist_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cards_core.errors import DescriptionError
from cards_core.paths.wrapping.chains import from_guess, is_minimum, path_length
from cards_core.paths.wrapping.closed_forms import sphere_contact
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.paths.wrapping.path_newton import Placed, solve_path, start_towards
from cards_core.paths.wrapping.shooting import shoot
from cards_core.paths.wrapping.surfaces import EllipsoidSurface, TorusSurface
from cards_core.robot.elements import Cylinder, Ellipsoid, Muscle, Sphere, Torus, Wrap
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

P, Q = (-0.3, 0.05, 0.02), (0.25, 0.03, -0.04)
UP = np.array([0.0, 0.2, 0.0])


def ellipsoid(*radii):
    return Ellipsoid(np.array(radii))


SINGLE = {
    "ellipsoid": (P, [(ellipsoid(0.12, 0.08, 0.1), Pose(), {})], Q),
    "long": (P, [(ellipsoid(0.05, 0.05, 0.15), Pose(), {})], Q),
    "flat": ((-0.3, 0.05, 0.06), [(ellipsoid(0.1, 0.1, 0.04), Pose(), {})], Q),
    "side": (P, [(ellipsoid(0.12, 0.08, 0.1), Pose(), {"side": UP})], Q),
    "other side": (P, [(ellipsoid(0.06, 0.058, 0.061), Pose(), {"side": -UP})], Q),
    "on the body": (P, [(ellipsoid(0.12, 0.08, 0.1), Pose(), {"link": "body"})], Q),
    "rim": ((-0.3, 0.1, 0.01), [(Torus(0.07, 0.05), Pose(), {"side": UP})], (0.25, 0.18, 0.0)),
    "ring": (
        (0.02, 0.01, -0.3),
        [(Torus(0.15, 0.05), Pose(), {"inside": True})],
        (0.17, 0.05, 0.2),
    ),
}


def solved(robot, poses=None, backend="numeric"):
    poses = pose_matrix() if poses is None else poses
    paths = GeodesicPaths(robot, backend)
    rows = paths.solve(poses).copy()
    return rows, lengths_and_arms(robot, rows, poses)[0][0], paths


@pytest.mark.parametrize(
    ("radii", "length"),
    [
        ((0.1, 0.1, 0.1), 0.566453324),
        ((0.12, 0.08, 0.1), 0.559622709),
        ((0.1, 0.1, 0.2), 0.567266100),
    ],
)
def test_ellipsoid_reference_lengths(radii, length):
    assert solved(path_robot(P, [(ellipsoid(*radii), Pose(), {})], Q))[1] == pytest.approx(
        length, abs=1e-9
    )


@pytest.mark.parametrize(
    ("p", "q", "length"),
    [
        ((0.0, 0.0, -0.3), (0.3, 0.0, 0.2), 0.603153470),
        ((0.02, 0.01, -0.3), (0.3, 0.05, 0.2), 0.600346862),
    ],
)
def test_ring_reference_lengths(p, q, length):
    robot = path_robot(p, [(Torus(0.15, 0.05), Pose(), {"inside": True})], q)
    assert solved(robot)[1] == pytest.approx(length, abs=1e-9)


def test_local_solution_that_a_hint_names():
    """A torus has several geodesics; Newton's method finds the one next to its start."""
    surface = TorusSurface(0.15, 0.05)
    p, q = np.array(P), np.array(Q)
    start = start_towards(surface, surface.project(np.array([-0.02, 0.1, 0.0])), 0.05, p)
    (found,), converged = solve_path(p, q, [Placed(surface, np.eye(3), np.zeros(3))], [start])
    length = math.dist(p, found.start) + found.length + math.dist(found.end, q)
    assert converged
    assert length == pytest.approx(0.567741182, abs=1e-9)  # OpenSim 4.6, hint (0, 0.1, 0)


@pytest.mark.parametrize("case", OPENSIM, ids=range(len(OPENSIM)))
def test_random_paths_are_as_long_as_in_opensim(case):
    rows, length, paths = solved(oracle_robot(case))
    assert paths.failures == 0
    assert np.all(rows[:, 6] > 0.01)
    p, q, ((kind, size, _, _, hint), *others), expected = case
    if kind == "torus" and not others and math.hypot(*hint[:2]) > size[0]:
        # around a torus OpenSim's may be a saddle: then it is among all paths, and not ours
        surface, ends = TorusSurface(*size, closed=True), (np.array(p), np.array(q))
        here = Placed(surface, np.eye(3), np.zeros(3))
        found = [from_guess(here, guess, *ends)[0] for guess in shoot(surface, *ends)]
        theirs = min(found, key=lambda path: abs(path_length(*ends, path) - expected))
        assert path_length(*ends, theirs) == pytest.approx(expected, abs=1e-9)
        assert is_minimum(*ends, theirs) == (length > expected - 1e-9)
        if not is_minimum(*ends, theirs):
            return
    assert length == pytest.approx(expected, abs=1e-9)


def test_live_against_opensim():
    """Lengths as the installed OpenSim finds them, at new configurations."""
    osim = pytest.importorskip("opensim", reason="opensim (PyPI) is not installed")
    rng = np.random.default_rng(5)
    vec = lambda a: osim.Vec3(*(float(x) for x in a))  # noqa: E731
    compared = 0
    for _ in range(20):
        radii = rng.uniform(0.05, 0.15, 3)
        p = rng.normal(size=3)
        p *= 0.35 / np.linalg.norm(p)
        q = -p + rng.normal(size=3) * 0.08
        robot = path_robot(p, [(ellipsoid(*radii), Pose(), {})], q)
        rows, length, paths = solved(robot)
        if rows[0, 6] == 0.0:
            continue
        model = osim.Model()
        ground = model.getGround()
        body = osim.ContactEllipsoid(vec(radii), vec((0, 0, 0)), vec((0, 0, 0)), ground)
        body.setName("body")
        model.addContactGeometry(body)
        path = osim.Scholz2015GeometryPath()
        path.appendPathPoint(ground, vec(p))
        path.appendObstacle(body, vec(paths.arc_points(3)[0][1]))
        path.appendPathPoint(ground, vec(q))
        model.addComponent(path)
        state = model.initSystem()
        model.realizePosition(state)
        assert length == pytest.approx(path.getLength(state), abs=1e-8)
        compared += 1
    assert compared > 5


def test_ellipsoid_with_equal_radii_is_a_sphere():
    rng = np.random.default_rng(6)
    wrapped = 0
    for k in range(40):
        p, q = rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.2
        side = None if k % 2 else rng.normal(size=3)
        robot = path_robot(p, [(ellipsoid(0.1, 0.1, 0.1), Pose(), {"side": side})], q)
        row, expected = solved(robot)[0][0], sphere_contact(p, q, 0.1, side)
        assert (row[6] > 0.0) == expected.wrapped
        if expected.wrapped:
            wrapped += 1
            assert row[:3] == pytest.approx(expected.start, abs=1e-9)
            assert row[3:6] == pytest.approx(expected.end, abs=1e-9)
            assert row[6] == pytest.approx(expected.length, abs=1e-9)
            assert row[7] == pytest.approx(expected.angle, abs=1e-8)
    assert wrapped > 10


def test_reversal():
    for p, wraps, q in SINGLE.values():
        if wraps[0][2].get("link"):
            continue
        there, length, _ = solved(path_robot(p, wraps, q))
        back, other, _ = solved(path_robot(q, wraps, p))
        assert other == pytest.approx(length, abs=1e-10)
        assert back[0, :3] == pytest.approx(there[0, 3:6], abs=1e-8)
        assert back[0, 3:6] == pytest.approx(there[0, :3], abs=1e-8)
        assert back[0, 7] == pytest.approx(there[0, 7], abs=1e-8)


def test_rigid_motion_of_everything_changes_nothing():
    place = Pose.from_xyz_rpy([2.0, -30.0, 5.0], [0.3, -0.7, 1.9])
    for p, wraps, q in SINGLE.values():
        (shape, pose, options), rest = wraps[0], {}
        side = options.get("side")
        rest = dict(options) if side is None else dict(options, side=place.apply(side))
        if "link" in rest:
            continue
        length = solved(path_robot(p, wraps, q))[1]
        moved = path_robot(place.apply(p), [(shape, place @ pose, rest)], place.apply(q))
        assert solved(moved)[1] == pytest.approx(length, abs=1e-10)


# motions -------------------------------------------------------------------------------------


def motion(time):
    """Smooth motion of the link `body`: full turns about y would be too easy."""
    turn = np.array([0.2, 0.25, 0.35]) * np.sin(np.array([1.0, 1.3, 0.7]) * time + [0.3, 1.0, 2.0])
    shift = np.array([0.05, 0.09, 0.05]) * np.sin(np.array([0.8, 0.6, 1.1]) * time)
    return pose_matrix(turn, shift)


@pytest.fixture(scope="module")
def singles():
    robot = paths_robot(list(SINGLE.values()))
    return robot, GeodesicPaths(robot, "compiled")


def test_backends_agree(singles):
    robot, compiled = singles
    numeric = GeodesicPaths(robot, "numeric")
    compiled.reset()
    for time in np.arange(0.0, 12.0, 1.3):
        poses = motion(time)
        rows = numeric.solve(poses)
        assert compiled.solve(poses) == pytest.approx(rows, abs=1e-9)
        for a, b in zip(numeric.arc_points(4), compiled.arc_points(4), strict=True):
            assert b == pytest.approx(a, abs=1e-8)
    assert compiled.failures == numeric.failures == 0


def test_derivative_is_that_of_finite_differences_through_lift_off(singles):
    robot, paths = singles
    paths.reset()
    h, lifted = 1e-5, np.zeros(len(robot.muscles), dtype=int)
    worst = 0.0
    previous = None
    for time in np.arange(0.0, 30.0, 0.04):
        sample = {}
        for d in (-h, h, 0.0):
            poses = motion(time + d)
            rows = paths.solve(poses)
            sample[d] = lengths_and_arms(robot, rows, poses)
        rate = sample[0.0][1] @ twist_of(motion, time)
        difference = (sample[h][0] - sample[-h][0]) / (2 * h)
        error = np.abs(rate - difference)
        worst = max(worst, float(error.max()))
        touching = rows[:, 6] > 0.0
        if previous is not None:
            lifted += touching != previous
        previous = touching
    assert paths.failures == 0
    assert worst < 1e-6
    names = dict(zip(SINGLE, lifted, strict=True))
    # the motion must really pass lift-off
    passing = [name for name, count in names.items() if count > 1]
    assert set(passing) == set(SINGLE) - {"other side"}


def test_last_solution_is_for_speed_only(singles):
    robot, warm = singles
    cold = GeodesicPaths(robot, "compiled")
    warm.reset()
    for time in np.arange(0.0, 30.0, 0.05):
        poses = motion(time)
        cold.reset()
        assert warm.solve(poses) == pytest.approx(cold.solve(poses), abs=1e-8), time
    assert warm.failures == cold.failures == 0


@pytest.mark.parametrize("name", ["ellipsoid", "flat", "rim", "ring"])
def test_no_jump_at_lift_off(name):
    """Bisect the lift-off of a path whose end moves away and compare both sides of it."""
    p, wraps, q = SINGLE[name]
    near = {"rim": (0.0, -0.08, 0.0)}.get(name, (0.0, 0.0, 0.0))
    away = {"ring": (-0.25, -0.05, 0.0)}.get(name, (0.0, 0.4, 0.0))
    robot = path_robot(p, wraps, q)
    paths = GeodesicPaths(robot, "numeric")

    def at(share):
        poses = pose_matrix(translation=np.array(near) + share * np.array(away))
        rows = paths.solve(poses)
        return rows[0, 6] > 0.0, *(x[0] for x in lengths_and_arms(robot, rows, poses))

    low, high = 0.0, 1.0
    assert at(low)[0]
    assert not at(high)[0]
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if at(middle)[0] else (low, middle)
    touching, clear = at(low), at(high)
    assert clear[1] == pytest.approx(touching[1], abs=1e-9)
    assert clear[2] == pytest.approx(touching[2], abs=1e-6)


def test_forces_of_a_contact_balance():
    """The four unit pulls on a muscle's links and on the surface sum to no force, no moment."""
    for p, wraps, q in SINGLE.values():
        row = solved(path_robot(p, wraps, q))[0][0]
        a, b = row[:3], row[3:6]
        into, out = (a - p) / math.dist(p, a), (q - b) / math.dist(b, q)
        force = into + (out - into) - out
        moment = np.cross(p, into) + np.cross(b, out) - np.cross(a, into) - np.cross(q, out)
        assert force == pytest.approx(np.zeros(3), abs=1e-15)
        assert moment == pytest.approx(np.zeros(3), abs=1e-15)


def test_path_without_contact_runs_through_a_point_of_the_line():
    p, q = np.array([-0.3, 0.5, 0.0]), np.array([0.3, 0.5, 0.1])
    rows, length, _ = solved(path_robot(p, [(ellipsoid(0.1, 0.2, 0.1), Pose(), {})], q))
    assert rows[0, :3] == pytest.approx(rows[0, 3:6])
    assert np.all(rows[0, 6:] == 0.0)
    assert length == pytest.approx(math.dist(p, q), abs=1e-15)
    share = (rows[0, :3] - p) / (q - p + 1e-300)
    assert 0.05 <= share[0] <= 0.95


# never NaN ------------------------------------------------------------------------------------

coordinate = st.sampled_from(
    [0.0, 0.04, 0.1, 0.08, 0.05, -0.1, -0.04, 0.11, 1e-9, 3.0]
) | st.floats(-0.4, 0.4)
point = st.tuples(coordinate, coordinate, coordinate)


@pytest.fixture(scope="module")
def anything():
    shapes = [
        (ellipsoid(0.1, 0.08, 0.04), {}),
        (ellipsoid(0.1, 0.08, 0.04), {"side": np.array([0.0, 0.0, 1.0])}),
        (Torus(0.1, 0.04), {}),
        (Torus(0.1, 0.04), {"side": UP}),
        (Torus(0.1, 0.04), {"inside": True}),
    ]
    paths = [
        ((0.0, 0.0, 0.0), [(shape, Pose(), {**o, "link": "s"})], (0.0, 0.0, 0.0))
        for shape, o in shapes
    ]
    return paths_robot(paths, ("body", "s"))


@settings(max_examples=150, deadline=None)
@given(q=point, s=point, turn=point)
def test_never_nan(anything, q, s, turn):
    paths = _COMPILED.setdefault("anything", GeodesicPaths(anything, "compiled"))
    # points at the world's origin and at q, surfaces anywhere: inside, on the surface, coincident
    poses = np.concatenate([pose_matrix((0, 0, 0), q), pose_matrix(turn, s)])
    rows = paths.solve(poses)
    assert np.all(np.isfinite(rows))
    assert np.all(rows[:, 6] >= 0.0)
    assert np.abs(rows[:, :6]).max() < 20.0


_COMPILED: dict[str, GeodesicPaths] = {}


@pytest.mark.parametrize(
    "surface", [EllipsoidSurface([0.1, 0.08, 0.04]), TorusSurface(0.1, 0.04, closed=True)]
)
def test_path_ends_on_the_surface(surface):
    shape = (
        ellipsoid(0.1, 0.08, 0.04) if isinstance(surface, EllipsoidSurface) else Torus(0.1, 0.04)
    )
    rng = np.random.default_rng(9)
    for _ in range(10):
        p = surface.project(np.array([0.1, 0.05, 0.03]) * rng.normal(size=3))
        n = surface.normal(p)
        q = p + 0.2 * n
        rows, length, _ = solved(path_robot(p, [(shape, Pose(), {})], q))
        assert np.all(np.isfinite(rows))
        assert length == pytest.approx(0.2, abs=1e-6)


# construction ---------------------------------------------------------------------------------


def test_rows_are_those_of_the_wraps_without_closed_form():
    closed = (P, [(Sphere(0.05), Pose(), {})], Q)
    two = (P, [(Sphere(0.05), Pose(), {}), (Cylinder(0.05, math.inf), Pose(), {})], Q)
    robot = paths_robot([closed, SINGLE["ellipsoid"], closed, two])
    paths = GeodesicPaths(robot, "numeric")
    assert paths.contact_rows.tolist() == [1, 3, 4]
    assert paths.solve(pose_matrix()).shape == (3, 8)
    none = GeodesicPaths(paths_robot([closed]))
    assert none.solve(pose_matrix()).shape == (0, 8)
    assert none.arc_points(3) == []


@pytest.mark.parametrize("shape", [ellipsoid(0.1, 0.1, 0.2), Sphere(0.1), Cylinder(0.1, 1.0)])
def test_refuses_inside_where_there_is_no_inside(shape):
    wraps = [(shape, Pose(), {"inside": True}), (Sphere(0.1), Pose(), {})]
    with pytest.raises(DescriptionError, match=r"muscle 'm0'.*cannot run inside of 's0_0'"):
        GeodesicPaths(path_robot(P, wraps, Q), "numeric")


def test_same_wrap_object_twice_is_a_chain():
    robot = path_robot(P, [(Sphere(0.05), Pose(), {})], Q)
    first, wrap, last = robot.muscles[0].path
    muscle = Muscle("m", (first, wrap, Wrap(wrap.surface), last))
    double = Robot("r", robot.links, (), (muscle,), wrap_surfaces=robot.wrap_surfaces)
    once = sphere_contact(np.array(P), np.array(Q), 0.05)
    _, length, paths = solved(double)
    assert len(paths.contact_rows) == 2
    expected = math.dist(P, once.start) + once.length + math.dist(once.end, Q)
    assert length == pytest.approx(expected, abs=1e-8)


def test_without_compiler_the_reference_answers(monkeypatch, tmp_path):
    from cards_core.codegen import native
    from cards_core.paths.wrapping import geodesic_paths

    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    for module in (native, geodesic_paths):
        monkeypatch.setattr(module, "find_compiler", lambda: None)
    robot = path_robot(*SINGLE["ellipsoid"])
    with pytest.warns(RuntimeWarning, match="no C compiler found"):
        paths = GeodesicPaths(robot)
    assert paths.solve(pose_matrix()) == pytest.approx(solved(robot)[0])


def test_native_code_needs_no_casadi_and_no_scipy(tmp_path):
    code = (
        "import sys; sys.path[:0] = sys.argv[1].split(':')\n"
        "from test_wrap_geodesic_paths import SINGLE, GeodesicPaths, path_robot, pose_matrix\n"
        "for name in ('casadi', 'scipy', 'hypothesis'): sys.modules.pop(name, None)\n"
        "before = set(sys.modules)\n"
        "robot = path_robot(*SINGLE['ellipsoid'])\n"
        "print(GeodesicPaths(robot).solve(pose_matrix())[0, 6])\n"
        "print([m for m in ('casadi', 'scipy') if m in set(sys.modules) - before])\n"
    )
    folders = ":".join([os.path.dirname(__file__), *sys.path])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, folders],
            env={**os.environ, "CARDS_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        for _ in range(2)
    ]
    assert outputs[0][0] == outputs[1][0]
    assert [output[1] for output in outputs] == ["[]", "[]"]  # C written by hand needs neither
