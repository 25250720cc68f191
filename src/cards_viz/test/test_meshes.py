import os

import numpy as np
import pytest
import trimesh

from cards_core.formats.imports.meshes import DRAWN, SUFFIXES
from cards_core.robot.elements import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere, Torus
from cards_viz.meshes import mesh_path, surface_triangles, triangles


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


def test_files_that_a_mesh_names(tmp_path, caplog):
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
    assert triangles(Mesh("model.gltf", unit), source) is None
    assert "names '../b.bin', which is no file in its folder" in caplog.text
    (folder / "model.gltf").write_text(text)
    (folder / buffer).unlink()
    os.mkfifo(folder / buffer)
    assert triangles(Mesh("model.gltf", unit), source) is None
    assert f"names '{buffer}', which is no file in its folder" in caplog.text


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
def test_a_mesh_that_cannot_be_wrapped_is_told_and_left_out(tmp_path, caplog, content):
    if content is not None:
        (tmp_path / "bad.stl").write_bytes(content)
    for _ in range(2):
        assert surface_triangles(Mesh("bad.stl"), str(tmp_path / "model.sdf")) is None
    (record,) = caplog.records
    assert record.getMessage().startswith("warning: ")
    assert "bad.stl" in record.getMessage()


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
def test_a_mesh_that_cannot_be_drawn_is_told_and_left_out(tmp_path, caplog, content):
    if content is not None:
        (tmp_path / "bad.stl").write_bytes(content)
    for _ in range(2):  # said once
        assert triangles(Mesh("bad.stl"), str(tmp_path / "model.sdf")) is None
    (record,) = caplog.records
    assert record.getMessage().startswith("warning: ")
    assert "bad.stl" in record.getMessage()


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2020-01-01T00:00:00</created><modified>2020-01-01T00:00:00</modified>
  {unit}<up_axis>Y_UP</up_axis></asset>
<library_images><image id="i"><init_from>../secret.png</init_from></image></library_images>
<library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array>
    <technique_common><accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
    <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common>
  </source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><translate>0 0 5</translate>
  <instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


@pytest.mark.parametrize(
    ("unit", "metres"),
    [("", 1.0), ('<unit name="meter" meter="1"/>', 1.0), ("<unit meter='0.01' name='cm'/>", 0.01)],
)
def test_collada_is_in_the_unit_that_it_states(tmp_path, unit, metres):
    """Its nodes are placed, and z stays z whatever is up: as in Gazebo and RViz."""
    (tmp_path / "a.dae").write_text(COLLADA.format(unit=unit))
    vertices, faces = triangles(Mesh("a.dae"), str(tmp_path / "model.sdf"))
    np.testing.assert_allclose(vertices, metres * np.array([[0, 0, 5], [1, 0, 5], [0, 2, 5]]))
    assert faces.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("unit", ["<unit meter='0'/>", "<unit meter='nan'/>", "<unit meter='x'/>"])
def test_collada_in_no_unit(tmp_path, caplog, unit):
    (tmp_path / "a.dae").write_text(COLLADA.format(unit=unit))
    assert triangles(Mesh("a.dae"), str(tmp_path / "model.sdf")) is None
    assert "not drawn" in caplog.text


def test_formats_that_importers_say_are_drawn_are(tmp_path, caplog):
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    for suffix in SUFFIXES:
        source, name = str(tmp_path / "model.sdf"), f"box{suffix}"
        if suffix not in DRAWN:
            (tmp_path / name).write_bytes(b"x")
            assert triangles(Mesh(name), source) is None
            continue
        found = box.export(file_type=suffix[1:])
        for part, data in found.items() if isinstance(found, dict) else [(name, found)]:
            path = tmp_path / (name if part.endswith(".gltf") else part)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        vertices, _ = triangles(Mesh(name), source)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 2.0, 3.0])
