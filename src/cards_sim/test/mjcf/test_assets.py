"""Files that an MJCF names lie in its package, else MuJoCo does not get to read them."""

import os

import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.xml_lines import parse_xml
from cards_sim.mjcf import files
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
        ('<mesh name="m" file="../../private/out.txt"/>', ""),
        ('<mesh name="m" file="{private}/out.obj"/>', ""),
        ('<mesh name="m" file="link.obj"/>', ""),
        ('<mesh name="m" file="linked/out.obj"/>', ""),
        ('<mesh name="m" file="out.txt"/>', 'meshdir="../../private"'),
        ('<mesh name="m" file="../../private/out.obj"/>', 'meshdir="linked/.."'),
        ('<mesh name="m" file="../../private/pipe.obj"/>', ""),
        ('<mesh name="m" file="../../private/folder.obj"/>', ""),
        ('<mesh name="m" file="out.obj"/>', 'assetdir="{private}"'),
        ('<hfield name="h" size="1 1 1 1" file="../../private/h.txt"/>', ""),
        ('<texture name="t" type="2d" file="../../private/t.txt"/>', ""),
        ('<texture name="t" type="cube" fileup="../../private/t.txt"/>', ""),
        ('<skin name="s" file="../../private/s.txt"/>', ""),
        ('<model name="x" file="../../private/x.txt"/>', ""),
    ],
)
def test_assets_outside_are_refused_with_their_line(place, asset, compiler):
    private = place.parents[1] / "private"
    (place / "linked").symlink_to(private)
    (private / "folder.obj").mkdir()
    os.mkfifo(private / "pipe.obj")
    file = model(place, asset.format(private=private), compiler=compiler.format(private=private))
    with pytest.raises(DescriptionError) as caught:
        read_source(file)
    assert f"{file}:4" in str(caught.value)
    assert "is outside of the model's package" in str(caught.value)
    assert f"a file in '{place}'" in str(caught.value)


def test_relative_names_of_its_own_kinds_are_followed(place):
    """As in an archive or a wheel, which has no mark of a package."""
    shared = place.parent / "shared"
    shared.mkdir()
    (shared / "a.obj").write_text(TETRAHEDRON)
    (shared / "floor.xml").write_text(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'
    )
    (shared / "hand.xml").write_text(
        '<mujoco><asset><mesh name="h" file="../shared/a.obj"/></asset><worldbody>'
        '<body name="hand"><geom type="mesh" mesh="h"/></body></worldbody></mujoco>'
    )
    assets = '<mesh name="m" file="a.obj"/><model name="x" file="../shared/hand.xml"/>'
    body = (
        '<include file="..\\shared\\floor.xml"/><worldbody><body name="b"><joint/>'
        '<geom type="mesh" mesh="m"/><attach model="x" body="hand" prefix="x"/></body></worldbody>'
    )
    links = import_mjcf(
        model(place, assets, compiler='meshdir="../shared"', body=body)
    ).robot.links
    assert {"surroundings", "b", "xhand"} <= {link.name for link in links}
    # what is not there is missing, and not outside
    with pytest.raises(DescriptionError, match=r"arm\.xml:.*[Nn]o such file"):
        import_mjcf(model(place, "", body='<include file="../shared/none.xml"/>'))


def test_includes_and_attached_models_outside_are_refused(place):
    (place.parents[1] / "private" / "x.txt").write_text("<mujoco/>")
    file = model(place, "", body='<include file="../../private/x.txt"/>')
    with pytest.raises(DescriptionError, match=r"arm\.xml:6.*outside of the model's package"):
        read_source(file)
    # what an attached model names counts too
    (place / "part.xml").write_text(
        '<mujoco><asset>\n<mesh name="m" file="../../private/out.txt"/></asset></mujoco>'
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


@pytest.mark.parametrize(
    ("asset", "compiler"),
    [
        ('<mesh name="m" file="..\\..\\private\\out.txt"/>', ""),
        ('<mesh name="m" file="out.txt"/>', 'meshdir="..\\..\\private\\"'),
        ('<mesh name="m" file="out.txt"/>', 'assetdir="assets\\..\\..\\..\\private"'),
        ('<hfield name="h" size="1 1 1 1" file="..\\../private/h.txt"/>', ""),
        ('<texture name="t" type="cube" fileup="..\\..\\private\\t.txt"/>', ""),
        ('<model name="x" file="..\\..\\private\\x.txt"/>', ""),
        # MuJoCo takes x/.. out as text, the system follows the link x first
        ('<mesh name="m" file="deep/../../../private/out.obj"/>', ""),
        ('<mesh name="m" file="../../private/out.obj"/>', 'meshdir="deep/.."'),
        ('<mesh name="m" file="deep/../../private/out.obj"/>', 'meshdir="away"'),
    ],
)
def test_what_mujoco_opens_counts(place, asset, compiler):
    (place / "a" / "b" / "c").mkdir(parents=True)
    (place / "deep").symlink_to("a/b/c")
    (place / "away").symlink_to("a/b/c")
    # files of these names, for a reader that takes backslashes for letters
    (place / "..\\..\\private\\out.txt").write_text(TETRAHEDRON)
    (place / "..\\..\\private\\x.txt").write_text("<mujoco/>")
    file = model(place, asset, compiler=compiler)
    with pytest.raises(DescriptionError, match=r"is outside of the model's package") as caught:
        read_source(file)
    assert f"{file}:4" in str(caught.value)


def test_an_include_with_backslashes_is_the_file_that_mujoco_opens(place):
    (place.parents[1] / "private" / "x.txt").write_text("<mujocoinclude/>")
    (place / "..\\..\\private\\x.txt").write_text("<mujocoinclude/>")
    file = model(place, "", body='<include file="..\\..\\private\\x.txt"/>')
    with pytest.raises(DescriptionError, match=r"arm\.xml:6.*outside of the model's package"):
        read_source(file)
    (place / "assets" / "in.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    asset = '<mesh name="m" file="assets\\in.obj"/>'
    file = model(place, asset, body='<include file="assets\\in.xml"/>')
    assert "b" in [link.name for link in import_mjcf(file).robot.links]


@pytest.mark.parametrize(
    ("name", "compiler"),
    [("C:\\in.obj", ""), ("c:/../in.obj", ""), ("in.obj", 'meshdir="c:/.."')],
)
def test_drives_are_refused(place, name, compiler, monkeypatch):
    # MuJoCo would leave them to the system: relative to the working directory
    (place / "c:").mkdir()
    monkeypatch.chdir(place)
    file = model(place, f'<mesh name="m" file="{name}"/>', compiler=compiler)
    with pytest.raises(DescriptionError, match=r"arm\.xml:4.*drive or a scheme.*relative to"):
        read_source(file)


@pytest.mark.parametrize(
    "asset",
    [
        '<mesh name="m" file="pipe.xml"/>',
        '<texture name="t" type="2d" file="assets/../pipe.xml"/>',
        '<model name="x" file="pipe.xml"/>',
        '<include file="pipe.xml"/>',
    ],
)
def test_pipes_are_refused(place, asset):
    os.mkfifo(place / "pipe.xml")
    file = model(place, asset)
    with pytest.raises(
        DescriptionError, match=r"arm\.xml:4.*is a pipe or a device.*a regular file"
    ):
        read_source(file)


def test_attached_models_count_as_often_as_mujoco_reads_them(place, monkeypatch):
    read = []

    def counted(path):
        read.append(path.name)
        return parse_xml(path)

    monkeypatch.setattr(files, "parse_xml", counted)

    def chain(levels, each):
        for i in range(levels):
            parts = [f'<model name="m{k}" file="m{i + 1}.xml"/>' for k in range(each)]
            (place / f"m{i}.xml").write_text(f"<mujoco><asset>{''.join(parts)}</asset></mujoco>")
        (place / f"m{levels}.xml").write_text("<mujoco/>")
        read.clear()
        return place / "m0.xml"

    assert read_source(chain(6, 2))  # 127 files for MuJoCo
    assert sorted(read) == [f"m{i}.xml" for i in range(7)]
    with pytest.raises(DescriptionError, match=r"m\d\.xml:1.*more than 200 files"):
        read_source(chain(16, 2))
    assert len(read) == 17
    with pytest.raises(DescriptionError, match=r"m20\.xml:1.*at most 20 in a row"):
        read_source(chain(300, 1))


@pytest.mark.parametrize("absolute", [True, False])
def test_includes_of_included_files_are_looked_for_as_mujoco_does(place, absolute, monkeypatch):
    """Beside the model first, then beside the file that names them."""
    parts = place / "parts" / "deep"
    parts.mkdir(parents=True)
    (place / "parts" / "first.xml").write_text(
        '<mujoco><include file="deep/second.xml"/></mujoco>'
    )
    (parts / "second.xml").write_text('<mujoco><include file="../third.xml"/></mujoco>')
    body = (
        '<mujoco><worldbody><body name="{}"><joint/><geom size="1"/></body></worldbody></mujoco>'
    )
    (place / "parts" / "third.xml").write_text(body.format("beside"))
    file = model(place, "", body='<include file="parts/first.xml"/>')
    monkeypatch.chdir(place)
    path = file if absolute else file.relative_to(place)
    assert [link.name for link in import_mjcf(path).robot.links] == ["beside"]
    # one that the model's folder has goes first
    (place.parent / "third.xml").write_text(body.format("above"))
    assert [link.name for link in import_mjcf(path).robot.links] == ["above"]
    for name in ("{private}/out.xml", "../deep/link.xml"):
        private = place.parents[1] / "private"
        (private / "out.xml").write_text(body.format("out"))
        (parts / "second.xml").write_text(
            f'<mujoco><include file="{name.format(private=private)}"/></mujoco>'
        )
        (parts / "link.xml").unlink(missing_ok=True)
        (parts / "link.xml").symlink_to(private / "out.xml")
        with pytest.raises(DescriptionError, match=r"second\.xml:1.*outside of the model's pack"):
            read_source(path)
