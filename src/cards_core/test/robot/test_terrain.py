"""Terrains: text, files, heights, and where a robot stands on them."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from PIL import Image

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.sdf.terrain import terrain_sdf
from cards_core.formats.sdf.world import load_world, read_world
from cards_core.robot.height_field import read_heights, surface_height
from cards_core.robot.terrain import (
    TERRAINS,
    height_function,
    read_terrain,
    terrain_model,
    terrain_text,
)
from cards_core.robot.terrain_place import level_under, on_terrain

POINTS = np.random.default_rng(0).uniform(-0.9, 0.9, (2, 400))


@pytest.mark.parametrize(
    "text",
    [
        "flat",
        "slope:angle=-7.5,friction=0.5",
        "hills:amplitude=0.05,cell=0.1,extent=2.0",
        "blocks:count=7,seed=3",
        "stairs:direction=90.0,level=-0.1",
        "craters:count=2,rim=0.0",
        "heightmap:file=/a/b.png,scale=0.2",
        "mesh:file=/a/b.stl",
    ],
)
def test_text_and_terrain_are_the_same(text):
    terrain = read_terrain(text)
    assert read_terrain(terrain_text(terrain)) == terrain
    assert set(terrain_text(terrain).partition(":")[2].split(",")) == set(
        text.partition(":")[2].split(",")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dunes", "no terrain named 'dunes'"),
        ("hils", "hills"),
        ("hills:height=1", "no parameter of terrain hills named 'height'"),
        ("hills:amplitude", "name=value"),
        ("hills:cell=0", "cell"),
        ("hills:cell=nan", "finite"),
        ("hills:cell=1" + "0" * 400, "finite"),
        ("blocks:count=1" + "0" * 400, "'count' is 1000"),
        ("hills:cell=0.1,cell=0.2", "twice"),
        ("hills:amplitude=2 cm", "a number"),
        ("blocks:count=1.5", "a whole number"),
        ("slope:angle=90", "-80"),
        ("heightmap", "has no 'file'"),
    ],
)
def test_mistakes_are_named(text, words):
    with pytest.raises(CardsError, match=words):
        read_terrain(text)


def test_hills_are_those_of_nasas_toolkit():
    height = height_function(read_terrain("hills:extent=2,resolution=0.002"))
    x, y = POINTS
    expected = 0.02 * np.sin(x / 0.04) * np.cos(y / 0.04)
    assert np.abs(height(x, y) - expected).max() < 1e-3 * 0.02
    assert np.isnan(height(1.01, 0.0))
    # its own grid has one point per cell; there the heights are exact
    coarse = height_function(read_terrain("hills:extent=4,resolution=0.04"))
    i, j = np.meshgrid(np.arange(-20, 20), np.arange(-20, 20))
    assert np.allclose(coarse(0.04 * i, 0.04 * j), 0.02 * np.sin(i) * np.cos(j), atol=1e-12)


def test_slope_stairs_and_blocks_against_their_definitions():
    x, y = POINTS
    slope = height_function(read_terrain("slope:angle=7.5,direction=90"))
    assert np.allclose(slope(x, y), np.tan(np.radians(7.5)) * y, atol=1e-12)
    stairs = height_function(read_terrain("stairs:start=0,tread=0.05,rise=0.01,count=4"))
    assert stairs([-0.01, 0.01, 0.06, 0.11, 0.199, 0.201], np.zeros(6)) == pytest.approx(
        [0.0, 0.01, 0.02, 0.03, 0.04, 0.0]
    )
    same = [height_function(read_terrain(f"blocks:seed={s}"))(x, y) for s in (1, 1, 2)]
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])
    assert set(np.round(same[0], 12)) == {0.0, 0.005}
    # 500 squares of 5 cm thrown on 2 m x 2 m cover this share, in the mean
    grid = np.stack(np.meshgrid(*[np.linspace(-0.9, 0.9, 200)] * 2)).reshape(2, -1)
    covered = np.mean(height_function(read_terrain("blocks"))(*grid) > 0.0)
    assert covered == pytest.approx(1.0 - np.exp(-500 * 0.05**2 / 4.0), abs=0.04)


@pytest.mark.parametrize("text", ["blocks", "stairs:start=-0.3,direction=30,width=0.7"])
def test_one_point_has_the_height_that_it_has_among_many(text):
    height = height_function(read_terrain(text))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 40)] * 2)).reshape(2, -1)
    together = height(*grid)
    assert len(np.unique(together)) > 1
    assert np.array_equal([height(x, y) for x, y in grid.T], together)
    assert height(np.zeros(0), np.zeros(0)).shape == (0,)
    assert np.isnan(height(np.nan, 0.4))


def test_crater_alone_has_its_depth():
    terrain = read_terrain("craters:count=1,radius=0.3,depth=0.05,rim=0.01,extent=2")
    field = terrain.field()
    assert field.heights.min() == pytest.approx(-0.05, abs=2e-4)
    assert field.heights.max() == pytest.approx(0.01, abs=2e-4)


def test_files_of_heights_and_meshes(tmp_path):
    x, y = np.linspace(-1.0, 1.0, 41), np.linspace(-0.5, 0.5, 21)
    heights = 0.1 * x[None, :] + 0.02 * y[:, None] + 0.12
    np.savez(tmp_path / "a.npz", height=heights)
    np.savetxt(tmp_path / "a.csv", heights, delimiter=",")
    pixels = np.round(heights[::-1] / 0.25 * 255.0).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    a, b = np.meshgrid(x, y)
    corners = np.stack([a, b, heights], axis=-1).reshape(-1, 3)
    cells = np.arange(20)[:, None] * 41 + np.arange(40)
    faces = np.concatenate(
        [
            np.stack([cells, cells + 1, cells + 42], -1),
            np.stack([cells, cells + 42, cells + 41], -1),
        ]
    ).reshape(-1, 3)
    trimesh.Trimesh(corners, faces, process=False).export(tmp_path / "a.stl")
    trimesh.Trimesh(corners * 100.0, faces, process=False).export(tmp_path / "a.obj")
    u, v = POINTS[0], 0.5 * POINTS[1]
    for text, error in (
        (f"heightmap:file={tmp_path}/a.npz,extent=2", 1e-12),
        (f"heightmap:file={tmp_path}/a.csv,extent=2", 1e-12),
        (f"heightmap:file={tmp_path}/a.png,extent=2,scale=0.25", 0.25 / 255),
        (f"mesh:file={tmp_path}/a.stl,resolution=0.013", 1e-7),
        (f"mesh:file={tmp_path}/a.obj,scale=0.01,resolution=0.013", 1e-7),
    ):
        found = height_function(read_terrain(text))(u, v)
        assert np.abs(found - (0.1 * u + 0.02 * v + 0.12)).max() <= error, text


def test_files_that_cannot_be_used(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    (tmp_path / "bad.png").write_text("no image")
    (tmp_path / "nan.csv").write_text("1,2\nnan,3\n")
    (tmp_path / "bad.stl").write_text("no mesh")
    (tmp_path / "a.txt").write_text("1")
    for text, words in (
        (f"heightmap:file={tmp_path}/none.png", "does not exist"),
        (f"heightmap:file={tmp_path}/bad.csv", r"bad\.csv:2"),
        (f"heightmap:file={tmp_path}/bad.png", "cannot be read"),
        (f"heightmap:file={tmp_path}/nan.csv", "not finite"),
        (f"heightmap:file={tmp_path}/a.txt", "ending in '.txt'"),
        (f"mesh:file={tmp_path}/none.stl", "does not exist"),
        (f"mesh:file={tmp_path}/bad.stl", "mesh"),
        (f"mesh:file={tmp_path}/a.txt", "ending in '.txt'"),
    ):
        with pytest.raises(CardsError, match=words):
            terrain_model(read_terrain(text))


def test_ground_beyond_all_measure_is_refused(tmp_path):
    """Heights of 1e308 m ran into infinities, with a warning of NumPy's or none."""
    (tmp_path / "far.csv").write_text("0,1e308\n-1e308,0\n")
    (tmp_path / "one.csv").write_text("0,1\n1,0\n")
    for text, height in (
        (f"heightmap:file={tmp_path}/far.csv", r"1e\+308"),
        (f"heightmap:file={tmp_path}/far.csv,scale=10", "inf"),
        (f"heightmap:file={tmp_path}/one.csv,scale=1e6", r"1e\+06"),
        ("hills:amplitude=1e19", r"e\+1[89]"),
        ("stairs:rise=1e19", r"1e\+19"),
        ("blocks:height=1e19", r"1e\+19"),
    ):
        with pytest.raises(CardsError, match=rf"terrain '.*{height} m \(expected: at most 100000"):
            terrain_model(read_terrain(text))
        with pytest.raises(CardsError, match="expected: at most"):
            height_function(read_terrain(text))


def test_the_ground_is_below_the_robot():
    robot = load("tetraspine_hardware")  # 1 mm above zero
    assert level_under(read_terrain("flat"), robot) == 0.0
    assert level_under(read_terrain("hills:level=0.3"), robot) == 0.3
    steep = level_under(read_terrain("slope:angle=20"), robot)
    assert steep < -0.02
    world = on_terrain(read_terrain("blocks:count=1000,height=0.01"), robot, load_world("empty"))
    assert [model.name for model in world.models] == ["terrain"]
    assert world.models[0].robot.links[0].collisions[0].pose.translation[2] == pytest.approx(
        -0.009, abs=1e-6
    )


@pytest.mark.parametrize("kind", [kind for kind in TERRAINS if kind not in ("heightmap", "mesh")])
def test_sdf_has_the_same_heights(kind, tmp_path):
    """The file is read back; meshes of it by trimesh."""
    terrain = replace(read_terrain(kind), friction=0.4)
    text = terrain_sdf(terrain_model(terrain, 0.25), tmp_path)
    world = read_world(f'<sdf version="1.11"><world name="w">{text}</world></sdf>')
    (link,) = world.models[0].robot.links
    assert {item.friction for item in link.collisions} == {0.4}
    x, y = POINTS
    expected = height_function(terrain)(x, y) + 0.25
    shapes = [(item.geometry, item.pose) for item in link.collisions]
    if hasattr(terrain, "resolution"):
        ((shape, pose),) = shapes
        mesh = trimesh.load(shape.uri, force="mesh", process=False)
        field = terrain.field()
        rows, columns = field.heights.shape
        vertices = np.asarray(mesh.vertices)
        assert len(vertices) == rows * columns
        assert np.allclose(surface_height(field, *vertices[:, :2].T), vertices[:, 2], atol=1e-9)
        assert (mesh.face_normals[:, 2] > 0.0).all()
        assert pose.translation[2] == 0.25
    else:
        again = replace(terrain)
        object.__setattr__(again, "shapes", lambda: shapes)
        assert np.allclose(height_function(again)(x, y), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Image size:PIL.Image.DecompressionBombWarning")
def test_an_image_of_a_few_kilobytes_that_takes_gigabytes_is_refused(tmp_path):
    path = tmp_path / "white.png"
    Image.new("1", (12_000, 12_000), 1).save(path)
    assert path.stat().st_size < 100_000
    with pytest.raises(CardsError, match=r"12000 x 12000 heights .expected: at most 20000000"):
        read_heights(path)
