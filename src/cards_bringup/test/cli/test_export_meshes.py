"""``./cards export`` of a robot with meshes: whole, movable, and read back by CARDS."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest

from cards_bringup import cli
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.robot.elements import Mesh
from cards_core.robot.world import empty_world_with
from cards_sim.model import build_model

SDF = """<sdf version="1.11"><model name="arm">
<link name="base">
  <inertial><mass>2</mass><inertia><ixx>.02</ixx><iyy>.02</iyy><izz>.02</izz></inertia></inertial>
  <visual name="skin"><geometry><mesh><uri>a/part.stl</uri></mesh></geometry></visual>
  <visual name="logo"><geometry><mesh><uri>logo.dae</uri></mesh></geometry></visual>
</link>
<joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="fore"><pose relative_to="elbow">0 0 0 0 0 0</pose>
  <inertial><pose>0.1 0 0 0 0 0</pose><mass>1</mass>
    <inertia><ixx>.01</ixx><iyy>.02</iyy><izz>.02</izz></inertia></inertial>
  <visual name="skin"><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>
    <geometry><mesh><uri>b/part.stl</uri><scale>1 2 3</scale></mesh></geometry></visual>
  <collision name="hull"><pose>0 0 5 0 0 0</pose>
    <geometry><mesh><uri>b/part.stl</uri></mesh></geometry></collision>
</link>
<joint name="elbow" type="revolute"><pose relative_to="base">0 0 0.2 0 0 0</pose>
  <parent>base</parent><child>fore</child>
  <axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis></joint>
<plugin filename="gz-sim-python-system-loader-system" name="gz::sim::systems::PythonSystemLoader">
  <module_name>cards_muscle_plugin.system</module_name>
  <wrap_surface name="knob" link="base"><mesh uri="knob.stl"/></wrap_surface>
  <muscle name="m" type="cable"><tension min="1" max="9"/>
    <via_point link="base">0.3 0.3 0</via_point><via_point link="fore">0.1 0 0.1</via_point>
  </muscle>
</plugin>
</model></sdf>
"""


def stl(size):
    """Return a tetrahedron as binary STL."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
    data = bytes(80) + (4).to_bytes(4, "little")
    for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)):
        data += bytes(12) + corners[list(face)].tobytes() + bytes(2)
    return data


@pytest.fixture
def robot(tmp_path):
    folder = tmp_path / "lab" / "arm"
    for name, size in (("a/part.stl", 0.1), ("b/part.stl", 0.2), ("knob.stl", 0.02)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(stl(size))
    (folder / "logo.dae").write_text("<COLLADA/>")
    (folder / "model.sdf").write_text(SDF)
    return folder


def shapes(robot):
    """Return what is seen and touched: (link, kind, content of the mesh, scale, pose)."""
    out = []
    for link in robot.links:
        for item in (*link.visuals, *link.collisions):
            assert isinstance(item.geometry, Mesh)
            with open(item.geometry.uri, "rb") as file:
                out.append((link.name, type(item).__name__, file.read(), item))
    return out


def check_same(before, after, *, without=(), rtol=1e-12):
    mine = [row for row in shapes(before) if row[2] not in without]
    theirs = shapes(after)
    assert [row[:3] for row in theirs] == [row[:3] for row in mine]
    for (*_, old), (*_, new) in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(new.geometry.scale, old.geometry.scale, rtol=rtol)
        np.testing.assert_allclose(new.pose.translation, old.pose.translation, atol=1e-12)
        np.testing.assert_allclose(new.pose.rotation, old.pose.rotation, atol=1e-12)
    ours, others = make_dynamics(before, "numeric"), make_dynamics(after, "numeric")
    for angle in (-0.7, 0.0, 1.3):
        a, b = (d.update(np.array([angle]), np.array([0.5])) for d in (ours, others))
        np.testing.assert_allclose(b.mass_matrix, a.mass_matrix, rtol=1e-9)
        np.testing.assert_allclose(b.gravity, a.gravity, rtol=1e-9, atol=1e-12)
    for link in before.links:
        np.testing.assert_allclose(after.link(link.name).inertia.com, link.inertia.com, atol=1e-12)


def export(kind, robot, file, capsys, *more):
    assert cli.main(["export", kind, str(robot), "-o", str(file), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def moved(file):
    """Move the folder of a file, and delete what it was made of."""
    target = file.parent.with_name("elsewhere")
    file.parent.rename(target)
    return target / file.name


def test_sdf_is_whole(robot, tmp_path, capsys):
    (tmp_path / "x").mkdir()
    before = load(robot)
    report = export("sdf", robot, tmp_path / "x" / "arm.sdf", capsys)
    names = ["arm.sdf", *(f"meshes/{n}" for n in ("b/part.stl", "knob.stl", "logo.dae"))]
    names.append("meshes/part.stl")
    assert report["files"] == [str(tmp_path / "x" / name) for name in names]
    assert report["notes"] == []
    again = load(moved(tmp_path / "x" / "arm.sdf"))
    check_same(before, again)
    assert again.wrap_surfaces[0].geometry.uri == str(tmp_path / "elsewhere/meshes/knob.stl")
    assert str(tmp_path) not in (tmp_path / "elsewhere" / "arm.sdf").read_text()
    # and once more from there: the same text, the same files
    assert cli.main(["export", "sdf", str(tmp_path / "elsewhere" / "arm.sdf"), "-o",
                     str(tmp_path / "elsewhere" / "b.sdf")]) == 0  # fmt: skip
    first, second = ((tmp_path / "elsewhere" / f"{n}.sdf").read_text() for n in ("arm", "b"))
    assert first == second
    found = [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]
    assert len(found) == 6


def test_urdf_is_whole(robot, tmp_path, capsys):
    (tmp_path / "x").mkdir()
    before = load(robot)
    report = export("urdf", robot, tmp_path / "x" / "arm.urdf", capsys)
    assert "1 muscle left out" in report["notes"][0]
    assert not any("knob" in file for file in report["files"])
    file = moved(tmp_path / "x" / "arm.urdf")
    assert str(tmp_path) not in file.read_text()
    line = ["import", "urdf", str(file), "--collisions", "all", "-o", str(tmp_path / "back")]
    assert cli.main(line) == 0
    check_same(before, load(tmp_path / "back" / "arm"))


def test_mjcf_is_whole_but_for_what_mujoco_cannot_read(robot, tmp_path, capsys):
    (tmp_path / "x").mkdir()
    before = load(robot)
    report = export("mjcf", robot, tmp_path / "x" / "arm.xml", capsys)
    assert report["notes"] == [
        "base: visual 'logo' left out: MuJoCo does not read 'logo.dae' (expected: a file in "
        ".stl, .obj, .msh)"
    ]
    assert [file.rpartition("x/")[2] for file in report["files"]] == [
        "arm.xml",
        "meshes/b/part.stl",
        "meshes/part.stl",
    ]
    file = moved(tmp_path / "x" / "arm.xml")
    assert str(tmp_path) not in file.read_text()
    assert cli.main(["import", "mjcf", str(file), "-o", str(tmp_path / "back")]) == 0
    after = load(tmp_path / "back" / "arm")
    ours, others = make_dynamics(before, "numeric"), make_dynamics(after, "numeric")
    for angle in (-0.7, 0.0, 1.3):
        a, b = (d.update(np.array([angle]), np.array([0.5])) for d in (ours, others))
        np.testing.assert_allclose(b.mass_matrix, a.mass_matrix, rtol=1e-9)
        np.testing.assert_allclose(b.muscle_lengths, a.muscle_lengths, rtol=1e-9)
    # MuJoCo moves meshes into frames of their own: vertices are where they were
    for link, size, scale in (("base", 0.1, (1, 1, 1)), ("fore", 0.2, (1, 2, 3))):
        (old,) = (v for v in before.link(link).visuals if "part" in v.geometry.uri)
        (new,) = after.link(link).visuals
        corners = size * np.array(scale) * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
        placed = [new.pose.apply(v) for v in vertices(new.geometry)]
        for corner in corners:
            apart = np.array(placed) - old.pose.apply(corner)
            assert np.min(np.linalg.norm(apart, axis=1)) < 1e-6


def vertices(mesh):
    from cards_core.paths.wrapping.mesh import mesh_vertices

    with open(mesh.uri, "rb") as file:
        return mesh_vertices(file.read(), mesh.uri) * mesh.scale


@pytest.mark.parametrize("kind", ["sdf", "urdf", "mjcf"])
def test_nothing_of_the_user_is_replaced(kind, robot, tmp_path, capsys):
    file = tmp_path / ("arm.xml" if kind == "mjcf" else f"arm.{kind}")
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "part.stl").write_text("mine")
    for more in ([], ["--force"]):
        report = export(kind, robot, file, capsys, *more)
        assert (tmp_path / "meshes" / "part.stl").read_text() == "mine"
        assert str(tmp_path / "meshes" / "a" / "part.stl") in report["files"]
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(["export", kind, str(robot), "-o", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["sdf", "urdf", "mjcf"])
def test_nothing_is_half_written(kind, robot, tmp_path, capsys, monkeypatch):
    import cards_core.files

    file = tmp_path / "x" / "arm.xml"
    assert cli.main(["export", kind, str(robot), "-o", str(file)]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert not file.parent.exists()
    file.parent.mkdir()
    real = cards_core.files.write_atomically

    def full(path, data):
        if str(path).endswith("arm.xml"):
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(cards_core.files, "write_atomically", full)
    assert cli.main(["export", kind, str(robot), "-o", str(file)]) == 2
    assert "No space left" in capsys.readouterr().err
    assert not list(file.parent.iterdir())


def test_a_link_to_a_file_has_the_meshes_beside_its_target(robot, tmp_path, capsys):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "arm.sdf").write_text("old")
    (tmp_path / "arm.sdf").symlink_to("real/arm.sdf")
    report = export("sdf", robot, tmp_path / "arm.sdf", capsys, "--force")
    assert str(tmp_path / "real" / "meshes" / "part.stl") in report["files"]
    check_same(load(robot), load(tmp_path / "real" / "arm.sdf"))
    assert (tmp_path / "arm.sdf").is_symlink()


def test_paths_of_this_machine_are_said_on_the_terminal(robot, capsys):
    assert cli.main(["export", "sdf", str(robot)]) == 0
    assert "-o FILE, which copies them beside it" in capsys.readouterr().err


def test_names_that_mujoco_does_not_read_are_refused(robot, tmp_path, capsys):
    assert cli.main(["export", "mjcf", str(robot), "-o", str(tmp_path / "arm.mjcf")]) == 2
    assert f"(expected: {tmp_path / 'arm.xml'})" in capsys.readouterr().err
    assert not (tmp_path / "arm.mjcf").exists()
    assert cli.main(["export", "sdf", str(robot), "--json"]) == 2
    assert "--json without -o" in capsys.readouterr().err


def ascii_stl(size):
    """Return the same tetrahedron as ASCII STL."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    lines = ["solid part"]
    for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)):
        rows = [f"vertex {x!r} {y!r} {z!r}" for x, y, z in corners[list(face)].tolist()]
        lines += ["facet normal 0 0 0", "outer loop", *rows, "endloop", "endfacet"]
    return "\n".join([*lines, "endsolid part", ""])


def test_mjcf_has_binary_copies_of_ascii_stl(robot, tmp_path, capsys):
    for name, size in (("a/part.stl", 0.1), ("b/part.stl", 0.2)):
        (robot / name).write_text(ascii_stl(size))
    out = tmp_path / "x & y"
    out.mkdir()
    report = export("mjcf", robot, out / "arm.xml", capsys)
    assert len(report["notes"]) == 1
    for name, size in (("part.stl", 0.1), ("b/part.stl", 0.2)):
        data = (out / "meshes" / name).read_bytes()
        assert len(data) == len(stl(size))
        for face in range(4):  # corners, in single precision
            part = slice(84 + 50 * face + 12, 84 + 50 * face + 48)
            assert data[part] == stl(size)[part]
    assert "solid" in (robot / "a/part.stl").read_text()
    # once more: the copies are those that are there
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.stl")}
    export("mjcf", robot, out / "arm.xml", capsys, "--force")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.stl")} == before
    assert mujoco.MjModel.from_xml_path(str(moved(out / "arm.xml"))).nmesh == 3


def test_mjcf_without_copies_says_that_ascii_stl_is_not_read(robot, capsys):
    (robot / "a/part.stl").write_text(ascii_stl(0.1))
    assert cli.main(["export", "mjcf", str(robot)]) == 0
    assert "MuJoCo does not read ASCII STL: part.stl (expected: -o FILE" in capsys.readouterr().err


def test_the_simulator_takes_collisions_in_ascii_stl(robot):
    models = []
    for content in (stl(0.2), ascii_stl(0.2).encode()):
        (robot / "b/part.stl").write_bytes(content)
        world = empty_world_with(load(robot))
        models.append(build_model(world, timestep=1e-3))
    np.testing.assert_array_equal(models[0].mesh_vert, models[1].mesh_vert)
    assert models[0].nmesh == 1


MANY = 200_001


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (
            bytes(80) + (2**31).to_bytes(4, "little"),
            "it is damaged: 84 bytes for 2147483648 faces",
        ),
        (stl(0.1) + b"x", "it is damaged: 285 bytes for 4 faces"),
        (b"solid a\nvertex 1 2\n", "line 2 is no vertex: 'vertex 1 2'"),
        (stl(0.1)[:80] + (1).to_bytes(4, "little") + stl(0.1)[84:134], "it has 3 vertices"),
        (
            bytes(80)
            + MANY.to_bytes(4, "little")
            + stl(0.1)[84:284] * (MANY // 4)
            + stl(0.1)[84:134],
            "it has 200001 faces, more than 200000",
        ),
    ],
)
def test_mjcf_leaves_damaged_meshes_out(robot, tmp_path, capsys, content, problem):
    (robot / "a/part.stl").write_bytes(content)
    (tmp_path / "x").mkdir()
    report = export("mjcf", robot, tmp_path / "x" / "arm.xml", capsys)
    assert report["notes"][1:] == [
        f"base: visual 'skin' left out: 'part.stl': {problem} (expected: a mesh that MuJoCo reads)"
    ]
    assert [file.rpartition("x/")[2] for file in report["files"]] == [
        "arm.xml", "meshes/part.stl"
    ]  # fmt: skip
    assert mujoco.MjModel.from_xml_path(report["output"]).nmesh == 2
