import os

import numpy as np
import pytest
import trimesh

from cards_core.robot.elements import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere, Torus
from cards_viz.meshes import MeshWarning, mesh_path, surface_triangles, triangles


def body(geometry) -> trimesh.Trimesh:
    vertices, faces = triangles(geometry)
    return trimesh.Trimesh(vertices, faces)


@pytest.mark.parametrize(
    ("geometry", "half", "volume"),
    [
        (Box(np.array([0.2, 0.4, 0.6])), (0.1, 0.2, 0.3), 0.048),
        (Sphere(0.5), (0.5, 0.5, 0.5), 4 / 3 * np.pi * 0.125),
        (Cylinder(0.1, 0.8), (0.1, 0.1, 0.4), np.pi * 0.01 * 0.8),
        # the length of a capsule is that of its cylinder
        (Capsule(0.1, 0.8), (0.1, 0.1, 0.5), np.pi * 0.01 * (0.8 + 4 / 3 * 0.1)),
        (Ellipsoid(np.array([0.1, 0.2, 0.3])), (0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.006),
        (Torus(0.4, 0.1), (0.5, 0.5, 0.1), 2 * np.pi**2 * 0.4 * 0.01),
    ],
)
def test_primitives_have_the_right_size_and_are_closed(geometry, half, volume):
    mesh = body(geometry)
    np.testing.assert_allclose(mesh.bounds, [np.negative(half), half], atol=2e-3)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(volume, rel=0.03)


def test_plane_lies_below_its_origin_across_the_normal():
    mesh = body(Plane(np.array([1.0, 0.0, 0.0]), (2.0, 2.0)))
    np.testing.assert_allclose(mesh.bounds, [[-1e-3, -1, -1], [0, 1, 1]], atol=1e-9)


def test_mesh_file_is_scaled_and_found_beside_the_description(tmp_path):
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "meshes" / "a b.stl")
    source = str(tmp_path / "model.sdf")
    for uri in ("meshes/a b.stl", "file:meshes/a%20b.stl", "model://robot/meshes/a%20b.stl"):
        vertices, _ = triangles(Mesh(uri, np.array([2.0, 4.0, 6.0])), source)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [2.0, 4.0, 6.0])


def test_files_that_a_mesh_names(tmp_path):
    """Materials are not read, other files only regular ones in the folder of the mesh."""
    folder = tmp_path / "model"
    folder.mkdir()
    source, unit = str(folder / "model.sdf"), np.ones(3)
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    os.mkfifo(folder / "pipe.mtl")
    (folder / "a.obj").write_text("mtllib pipe.mtl\nusemtl x\n" + box.export(file_type="obj"))
    header = box.export(file_type="ply", encoding="ascii").decode()
    os.mkfifo(folder / "pipe.png")
    texture = "\ncomment TextureFile pipe.png\nelement"
    (folder / "a.ply").write_text(header.replace("\nelement", texture, 1))
    for name in ("a.obj", "a.ply"):
        vertices, _ = triangles(Mesh(name, unit), source)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 2.0, 3.0])
    parts = box.export(file_type="gltf")
    buffer = next(name for name in parts if name.endswith(".bin"))
    for name, data in parts.items():
        (folder / name).write_bytes(data)
    vertices, _ = triangles(Mesh("model.gltf", unit), source)
    np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 2.0, 3.0])
    text = (folder / "model.gltf").read_text()
    (folder / "model.gltf").write_text(text.replace(buffer, "../b.bin"))
    (tmp_path / "b.bin").write_bytes(parts[buffer])
    with pytest.warns(MeshWarning, match=r"names '\.\./b\.bin', which is no file in its folder"):
        assert triangles(Mesh("model.gltf", unit), source) is None
    (folder / "model.gltf").write_text(text)
    (folder / buffer).unlink()
    os.mkfifo(folder / buffer)
    with pytest.warns(MeshWarning, match="is no file in its folder"):
        assert triangles(Mesh("model.gltf", unit), source) is None


def test_mesh_as_wrap_surface(tmp_path):
    """Two cubes that touch at an edge: what muscles wrap over fills the notches, rounded."""
    boxes = [trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1))]
    boxes[1].apply_translation((1, 1, 0))
    trimesh.util.concatenate(boxes).export(tmp_path / "two.stl")
    geometry = Mesh("two.stl", np.array([1.0, 1.0, 2.0]))
    vertices, faces = surface_triangles(geometry, str(tmp_path / "model.sdf"))
    mesh = trimesh.Trimesh(vertices, faces)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(3.0 * 2.0, rel=0.1)
    np.testing.assert_allclose(mesh.centroid, [0.5, 0.5, 0.0], atol=0.02)
    # points in the notches are inside: below every face
    for point in ([0.35, 0.65, 0.0], [0.65, 0.35, 0.0]):
        below = np.einsum("ij,ij->i", mesh.face_normals, mesh.triangles_center - point)
        assert below.min() > 0.0


def test_other_wrap_surfaces_are_drawn_as_they_are():
    for geometry in (Sphere(0.5), Torus(0.4, 0.1)):
        for found, expected in zip(surface_triangles(geometry), triangles(geometry), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("content", [None, b"", b"solid nothing\nfacet"])
def test_a_mesh_that_cannot_be_wrapped_is_told_and_left_out(tmp_path, content):
    if content is not None:
        (tmp_path / "bad.stl").write_bytes(content)
    with pytest.warns(MeshWarning, match=r"bad\.stl"):
        assert surface_triangles(Mesh("bad.stl"), str(tmp_path / "model.sdf")) is None


def test_model_uri_from_a_folder_of_models(tmp_path):
    (tmp_path / "robot" / "meshes").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    file = tmp_path / "robot" / "meshes" / "a.stl"
    file.write_text("x")
    source = str(tmp_path / "other" / "model.sdf")
    assert mesh_path("model://robot/meshes/a.stl", source) is None  # any folder of that name
    (tmp_path / "robot" / "model.sdf").touch()
    assert mesh_path("model://robot/meshes/a.stl", source) == file


@pytest.mark.parametrize("content", [None, b"", b"solid nothing\nfacet"])
def test_a_mesh_that_cannot_be_drawn_is_told_and_left_out(tmp_path, content):
    if content is not None:
        (tmp_path / "bad.stl").write_bytes(content)
    with pytest.warns(MeshWarning, match=r"bad\.stl"):
        assert triangles(Mesh("bad.stl"), str(tmp_path / "model.sdf")) is None
