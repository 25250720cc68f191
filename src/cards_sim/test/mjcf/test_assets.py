"""Files that an MJCF names lie in its package, else MuJoCo does not get to read them."""

import pytest

from cards_core.errors import DescriptionError
from cards_sim.mjcf.files import read_source
from cards_sim.mjcf.importer import import_mjcf

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

BODY = (
    '<worldbody><body name="b"><joint name="j" type="hinge"/>'
    '<geom type="mesh" mesh="m" mass="1"/></body></worldbody>'
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """``robots/arm`` is the model; the stranger's file is beside ``robots``."""
    monkeypatch.delenv("GZ_SIM_RESOURCE_PATH", raising=False)
    folder = tmp_path / "robots" / "arm"
    (folder / "assets").mkdir(parents=True)
    (tmp_path / "private").mkdir()
    for file in (
        folder / "in.obj",
        folder / "assets" / "in.obj",
        tmp_path / "private" / "out.obj",
    ):
        file.write_text(TETRAHEDRON)
    (folder / "link.obj").symlink_to(tmp_path / "private" / "out.obj")
    return folder


def model(folder, assets, *, compiler="", body=""):
    file = folder / "arm.xml"
    file.write_text(
        f'<mujoco model="arm">\n<compiler {compiler}/>\n<asset>\n{assets}\n</asset>\n{body}'
        "</mujoco>\n"
    )
    return file


@pytest.mark.parametrize(
    ("asset", "compiler"),
    [
        ('<mesh name="m" file="../../private/out.obj"/>', ""),
        ('<mesh name="m" file="{private}/out.obj"/>', ""),
        ('<mesh name="m" file="link.obj"/>', ""),
        ('<mesh name="m" file="out.obj"/>', 'meshdir="../../private"'),
        ('<mesh name="m" file="out.obj"/>', 'assetdir="{private}"'),
        ('<hfield name="h" size="1 1 1 1" file="../../private/h.png"/>', ""),
        ('<texture name="t" type="2d" file="../../private/t.png"/>', ""),
        ('<texture name="t" type="cube" fileup="../../private/t.png"/>', ""),
        ('<skin name="s" file="../../private/s.skn"/>', ""),
        ('<model name="x" file="../../private/x.xml"/>', ""),
    ],
)
def test_assets_outside_are_refused_with_their_line(place, asset, compiler):
    private = place.parents[1] / "private"
    file = model(place, asset.format(private=private), compiler=compiler.format(private=private))
    with pytest.raises(DescriptionError) as caught:
        read_source(file)
    assert f"{file}:4" in str(caught.value)
    assert "is outside of the model's package" in str(caught.value)
    assert f"a file in '{place}'" in str(caught.value)


def test_includes_and_attached_models_outside_are_refused(place):
    (place.parents[1] / "private" / "x.xml").write_text("<mujoco/>")
    file = model(place, "", body='<include file="../../private/x.xml"/>')
    with pytest.raises(DescriptionError, match=r"arm\.xml:6.*outside of the model's package"):
        read_source(file)
    # what an attached model names counts too
    (place / "part.xml").write_text(
        '<mujoco><asset>\n<mesh name="m" file="../../private/out.obj"/></asset></mujoco>'
    )
    with pytest.raises(DescriptionError, match=r"part\.xml:2.*outside of the model's package"):
        read_source(model(place, '<model name="x" file="part.xml"/>'))
    with pytest.raises(DescriptionError, match=r"arm\.xml:4.*contains itself"):
        read_source(model(place, '<model name="x" file="arm.xml"/>'))


@pytest.mark.parametrize(
    ("name", "compiler"),
    [
        ("in.obj", ""),
        ("in.obj", 'meshdir="assets"'),
        ("C:\\robots\\in.obj", 'strippath="true"'),
        ("/anywhere/in.obj", 'strippath="true"'),
    ],
)
def test_assets_of_the_model_are_read(place, name, compiler):
    asset = f'<mesh name="m" file="{name}"/>'
    robot = import_mjcf(model(place, asset, compiler=compiler, body=BODY)).robot
    assert [v.geometry.uri for v in robot.links[0].visuals] == ["meshes/m.obj"]


def test_assets_of_the_checkout_are_read(place):
    (place.parent / ".git").mkdir()
    (place.parent / "meshes").mkdir()
    (place.parent / "meshes" / "a.obj").write_text(TETRAHEDRON)
    asset = '<mesh name="m" file="a.obj"/>'
    assert import_mjcf(model(place, asset, compiler='meshdir="../meshes"', body=BODY)).robot
