"""Wrapping over the convex hull of a mesh."""

import itertools
import math

import numpy as np
import pytest
from geodesic_cases import lengths_and_arms, path_robot, paths_robot, pose_matrix, twist_of
from scipy.spatial import ConvexHull

from cards_core.errors import DescriptionError
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.paths.wrapping.mesh import mesh_path, mesh_vertices, smooth_hull
from cards_core.robot.elements import Ellipsoid, Mesh
from cards_core.spatial import Pose

RNG = np.random.default_rng(0)
SPHERE = RNG.normal(size=(400, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1)[:, None]
BODIES = {
    "pebble": SPHERE * [0.05, 0.04, 0.06],
    "bone": np.vstack([SPHERE * 0.025 + [0, 0, 0.1], SPHERE * 0.03 + [0.01, 0, -0.1]]),
    "box": np.array(list(itertools.product((-0.05, 0.05), (-0.04, 0.04), (-0.03, 0.03)))),
}
P, Q = (-0.12, 0.035, 0.01), (0.15, 0.03, -0.02)


def stl_text(vertices):
    lines = ["solid body"]
    for corners in ConvexHull(vertices).simplices:
        lines.append("facet normal 0 0 0\nouter loop")
        lines += ["vertex {!r} {!r} {!r}".format(*map(float, vertices[k])) for k in corners]
        lines.append("endloop\nendfacet")
    return "\n".join([*lines, "endsolid body"])


def stl_binary(vertices):
    facet = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    simplices = ConvexHull(vertices).simplices
    facets = np.zeros(len(simplices), facet)
    facets["corners"] = vertices[simplices]
    return (
        b"solid is also how text begins".ljust(80)
        + len(facets).to_bytes(4, "little")
        + facets.tobytes()
    )


def obj_text(vertices):
    lines = ["# body", "vn 0 0 1"] + ["v {!r} {!r} {!r}".format(*map(float, v)) for v in vertices]
    return "\n".join([*lines, "f 1 2 3"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("meshes")
    for name, vertices in BODIES.items():
        (path / f"{name}.stl").write_text(stl_text(vertices))
    return path


# files ----------------------------------------------------------------------------------------


def test_formats_give_the_same_vertices():
    box = BODIES["box"]
    expected = np.unique(box, axis=0)
    assert mesh_vertices(stl_text(box).encode(), "a/box.stl") == pytest.approx(expected)
    assert mesh_vertices(stl_binary(box), "BOX.STL") == pytest.approx(expected, abs=1e-8)
    assert mesh_vertices(obj_text(box).encode(), "box.obj") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "a.stl", "it is empty"),
        (b"vertex 1 2", "a.stl", "line 1 is no vertex"),
        (b"v 1 2 x", "a.obj", "line 1 is no vertex"),
        (b"v 1 2 nan\n" * 4, "a.obj", "not finite"),
        (b"\xff\xfe" * 60, "a.stl", "120 bytes for 4278189823 faces"),
        (b"ply", "a.ply", "files ending in '.ply'"),
    ],
)
def test_damaged_files(data, name, message):
    with pytest.raises(ValueError, match=message):
        mesh_vertices(data, name)


def test_flat_bodies_are_refused():
    with pytest.raises(ValueError, match="span no volume"):
        smooth_hull(np.array([[x, y, 0.0] for x in (0, 1) for y in (0, 1)], dtype=float))


def test_mesh_path(tmp_path):
    source = tmp_path / "robots" / "arm" / "model.sdf"
    mesh = tmp_path / "robots" / "arm" / "meshes" / "hand one.stl"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    for uri in (
        "meshes/hand one.stl",
        str(mesh),
        f"file://{mesh}",
        "model://arm/meshes/hand%20one.stl",
    ):
        assert mesh_path(uri, str(source)) == mesh
    assert mesh_path("meshes/foot.stl", str(source)) is None
    assert mesh_path("model://", str(source)) is None


def test_errors_name_the_surface(tmp_path):
    robot = path_robot(P, [(Mesh(str(tmp_path / "none.stl")), Pose(), {})], Q)
    with pytest.raises(DescriptionError, match=r"wrap surface 's0_0'.*no such file"):
        GeodesicPaths(robot, "numeric")
    (tmp_path / "bad.stl").write_text("vertex 1 2 3")
    robot = path_robot(P, [(Mesh(str(tmp_path / "bad.stl")), Pose(), {})], Q)
    for backend in ("numeric", "compiled"):
        with pytest.raises(DescriptionError, match=r"wrap surface 's0_0'.*1 vertices"):
            GeodesicPaths(robot, backend)


# bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "deviation"), [("pebble", 1.2e-3), ("bone", 2.5e-3), ("box", 4e-3)]
)
def test_body_is_convex_and_close_to_the_hull(name, deviation):
    vertices = BODIES[name]
    surface, hull = smooth_hull(vertices), ConvexHull(vertices)
    assert surface.deviation < deviation
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(150):
        y = rng.normal(size=3)
        x = surface.centre + surface.rotation @ (surface.radii * y / np.linalg.norm(y))
        for _ in range(3):
            x = surface.project(x)
        assert abs(surface.height(x)) < 1e-12
        t = np.cross(surface.normal(x), rng.normal(size=3))
        _, k_t, tau, k_b = surface.curvature(x, t / np.linalg.norm(t))
        assert min(k_t, k_b) > 0.0
        assert k_t * k_b - tau**2 > 0.0
        outside = (hull.equations[:, :3] @ x + hull.equations[:, 3]).max()
        worst = max(worst, abs(outside))
    assert worst < 1.5 * deviation


def test_pebble_is_nearly_the_ellipsoid_that_it_samples(folder):
    mesh = path_robot(P, [(Mesh(str(folder / "pebble.stl")), Pose(), {})], Q)
    smooth = path_robot(P, [(Ellipsoid(np.array([0.05, 0.04, 0.06])), Pose(), {})], Q)
    lengths = []
    for robot in (mesh, smooth):
        rows = GeodesicPaths(robot, "numeric").solve(pose_matrix())
        assert rows[0, 6] > 0.005
        lengths.append(lengths_and_arms(robot, rows, pose_matrix())[0][0])
    assert lengths[0] == pytest.approx(lengths[1], abs=1e-3)


def test_scale_and_pose(folder):
    uri = str(folder / "pebble.stl")
    plain = path_robot(P, [(Mesh(uri), Pose(), {})], Q)
    pose = Pose.from_xyz_rpy([1.0, 2.0, 3.0], [0.4, 0.5, 0.6])
    doubled = path_robot(
        pose.apply(2 * np.array(P)),
        [(Mesh(uri, np.full(3, 2.0)), pose, {})],
        pose.apply(2 * np.array(Q)),
    )
    lengths = []
    for robot in (plain, doubled):
        rows = GeodesicPaths(robot, "numeric").solve(pose_matrix())
        lengths.append(lengths_and_arms(robot, rows, pose_matrix())[0][0])
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=1e-9)


# motions --------------------------------------------------------------------------------------


def motion(time):
    turn = np.array([0.2, 0.2, 0.3]) * np.sin(np.array([1.0, 1.3, 0.7]) * time + [0.3, 1.0, 2.0])
    shift = np.array([0.02, 0.03, 0.03]) * np.sin(np.array([0.8, 0.6, 1.1]) * time)
    return pose_matrix(turn, shift)


@pytest.fixture(scope="module")
def meshes(folder):
    names = ["pebble", "bone", "box"]
    robot = paths_robot([(P, [(Mesh(str(folder / f"{n}.stl")), Pose(), {})], Q) for n in names])
    return robot, GeodesicPaths(robot, "compiled")


def test_backends_agree(meshes, folder):
    compiled = meshes[1]
    compiled.reset()
    robot = path_robot(P, [(Mesh(str(folder / "pebble.stl")), Pose(), {})], Q)
    numeric = GeodesicPaths(robot, "numeric")
    for time in (0.0, 2.0, 5.0):
        rows = compiled.solve(motion(time))[:1]
        assert rows == pytest.approx(numeric.solve(motion(time)), abs=1e-9)
    assert compiled.failures == numeric.failures == 0


def test_derivative_is_that_of_finite_differences_through_lift_off(meshes):
    robot, paths = meshes
    paths.reset()
    h, changes, previous = 1e-5, np.zeros(3, dtype=int), None
    for time in np.arange(0.0, 20.0, 0.05):
        sample = {}
        for d in (-h, h, 0.0):
            rows = paths.solve(motion(time + d))
            sample[d] = lengths_and_arms(robot, rows, motion(time + d))
        error = np.abs(
            sample[0.0][1] @ twist_of(motion, time) - (sample[h][0] - sample[-h][0]) / (2 * h)
        )
        assert error.max() < 1e-6, time
        touching = rows[:, 6] > 0.0
        changes += 0 if previous is None else touching != previous
        previous = touching
    assert paths.failures == 0
    assert np.all(changes[:2] > 1)


def test_no_nan_inside_on_and_far_from_the_body(meshes):
    _, paths = meshes
    rng = np.random.default_rng(4)
    for size in (0.0, 0.02, 0.05, 0.1, 10.0):
        for _ in range(20):
            rows = paths.solve(pose_matrix(rng.normal(size=3), size * rng.normal(size=3)))
            assert np.all(np.isfinite(rows))
            assert np.all(rows[:, 6] >= 0.0)
    assert math.isfinite(paths.failures)
