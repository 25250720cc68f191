"""Descriptions name files in their model or package, and in the model path, and nowhere else."""

import contextlib
import dataclasses
import os

import pytest

from cards_core.analysis.muscle_fit.folder import _copy_referenced
from cards_core.errors import DescriptionError
from cards_core.formats import load, read_sdf
from cards_core.formats.cardsflow.importer import import_cardsflow
from cards_core.formats.caspr.files import find_models
from cards_core.formats.imports.model import write_imported
from cards_core.formats.locate import rods_file
from cards_core.formats.mesh_copies import with_meshes
from cards_core.formats.urdf.importer import import_urdf
from cards_core.formats.xml_lines import parse_xml
from cards_core.named_files import confinement, import_confinement
from cards_core.paths.wrapping.mesh import mesh_path
from cards_core.tensegrity.assembly import assemble

STL = "solid s\n" + "".join(
    f"facet normal 0 0 1\nouter loop\nvertex {a} 0 0\nvertex 0 {a} 0\nvertex 0 0 {a}\nendloop\n"
    "endfacet\n"
    for a in (1, 2)
) + "endsolid s\n"  # fmt: skip

INERTIAL = (
    "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
)


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """No folder of packages but those of the test."""
    for name in ("CARDS_MODEL_PATH", "GZ_SIM_RESOURCE_PATH", "ROS_PACKAGE_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)


@pytest.fixture
def place(tmp_path):
    """``robots/arm`` is the model; the stranger's file is beside ``robots``."""
    folder = tmp_path / "robots" / "arm"
    folder.mkdir(parents=True)
    (folder / "in.stl").write_text(STL)
    secret = tmp_path / "private"
    secret.mkdir()
    (secret / "out.stl").write_text(STL)
    return folder


def sdf(uri, version="1.11"):
    return (
        f'<sdf version="{version}">\n<model name="arm">\n<link name="a">{INERTIAL}\n'
        f'<visual name="v"><geometry><mesh>\n<uri>{uri}</uri>\n</mesh></geometry></visual>\n'
        "</link>\n</model>\n</sdf>\n"
    )


def read(folder, uri):
    """Read a model in a file with this mesh; return the path of the mesh."""
    (folder / "model.sdf").write_text(sdf(uri))
    return load(folder / "model.sdf").links[0].visuals[0].geometry.uri


def urdf(folder, uri, **options):
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    file = folder / "arm.urdf"
    file.write_text(
        f'<robot name="arm">\n<link name="a"><inertial><mass value="1"/>{inertia}</inertial>\n'
        f'<visual><geometry>\n<mesh filename="{uri}"/></geometry></visual></link></robot>\n'
    )
    model = import_urdf(file, **options)
    return [v.geometry.uri for link in model.robot.links for v in link.visuals]


OUTSIDE = ("../../private/out.stl", "{private}/out.stl", "file://{private}/out.stl", "link.stl")


def outside(folder, uri):
    private = folder.parents[1] / "private"
    if uri == "link.stl":
        (folder / uri).symlink_to(private / "out.stl")
    return uri.format(private=private)


@pytest.mark.parametrize("uri", [*OUTSIDE, "model://../../private/out.stl"])
def test_sdf_names_nothing_outside(place, uri):
    named = outside(place, uri)
    with pytest.raises(DescriptionError) as caught:
        read(place, named)
    message = str(caught.value)
    assert f"{place / 'model.sdf'}:5" in message
    assert named[:40] in message
    assert str(place.parents[1] / "private" / "out.stl") in message
    assert f"a file in '{place}', or in a folder of CARDS_MODEL_PATH" in message


@pytest.mark.parametrize("uri", ["in.stl", "./x/../in.stl", "model://arm/in.stl", "{here}/in.stl"])
def test_sdf_names_what_is_in_its_folder(place, uri):
    (place / "x").mkdir()
    assert read(place, uri.format(here=place)) == str(place / "in.stl")


def test_a_mark_above_opens_the_folder_of_the_package(place):
    (place.parent / "meshes").mkdir()
    (place.parent / "meshes" / "a.stl").write_text(STL)
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, "../meshes/a.stl")
    (place.parent / "package.xml").touch()
    assert read(place, "../meshes/a.stl") == str(place.parent / "meshes" / "a.stl")
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, "../../private/out.stl")


def test_the_folder_of_a_package_is_at_most_four_above(tmp_path):
    model = tmp_path / "5" / "4" / "3" / "2" / "1" / "arm"
    model.mkdir(parents=True)
    (tmp_path / "5" / "package.xml").touch()
    assert confinement(model).top == model
    (tmp_path / "5" / "4" / "package.xml").touch()
    assert confinement(model).top == tmp_path / "5" / "4"


def test_the_home_folder_is_no_package(place, monkeypatch):
    monkeypatch.setenv("HOME", str(place.parent))
    (place.parent / "package.xml").touch()
    (place.parent / ".git").mkdir()
    assert confinement(place).top == import_confinement(place).top == place


@pytest.mark.parametrize("name", ["CARDS_MODEL_PATH", "GZ_SIM_RESOURCE_PATH"])
def test_the_model_path_opens_its_folders(place, monkeypatch, name):
    private = place.parents[1] / "private"
    monkeypatch.setenv(name, str(private))
    assert read(place, "../../private/out.stl") == str(private / "out.stl")


def test_models_beside_each_other_by_name(place):
    hand = place.parent / "hand"
    hand.mkdir()
    (hand / "b.stl").write_text(STL)
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, "model://hand/b.stl")  # any folder of that name
    (hand / "model.config").touch()
    assert read(place, "model://hand/b.stl") == str(hand / "b.stl")
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, "model://hand/../../private/out.stl")


def test_includes_are_confined(place):
    other = place.parents[1] / "private" / "model.sdf"
    other.write_text(sdf("out.stl").replace("<uri>", "<uri> "))
    include = (
        '<sdf version="1.11"><model name="w"><include>\n<uri>{}</uri></include></model></sdf>'
    )
    (place / "model.sdf").write_text(include.format("../../private/model.sdf"))
    with pytest.raises(DescriptionError, match=r"model\.sdf:2.*outside of the model"):
        load(place / "model.sdf")
    # what an included model names is judged from where that model is
    inner = place / "inner"
    inner.mkdir()
    (inner / "model.sdf").write_text(sdf("../../../private/out.stl"))
    (place / "model.sdf").write_text(include.format("inner/model.sdf"))
    with pytest.raises(DescriptionError, match=r"inner.*outside of the model"):
        load(place / "model.sdf")


def test_files_of_the_model_folder_are_confined(place):
    secret = place.parents[1] / "private" / "model.sdf"
    secret.write_text(sdf("out.stl"))
    (place / "model.config").write_text(
        '<model><name>arm</name>\n<sdf version="1.11">../../private/model.sdf</sdf></model>'
    )
    with pytest.raises(DescriptionError, match=r"model\.config:2.*outside of the model"):
        load(place)


def test_models_whose_files_are_links(place, monkeypatch):
    """What ``colcon build --symlink-install`` leaves of a package with models."""
    hand = place.parents[1] / "private" / "hand"
    (hand / "meshes").mkdir(parents=True)
    (hand / "meshes" / "a.stl").write_text(STL)
    (hand / "model.sdf").write_text(sdf("meshes/a.stl"))
    (hand / "model.config").write_text('<model><sdf version="1.11">model.sdf</sdf></model>')
    linked = place.parents[1] / "share" / "hand"
    (linked / "meshes").mkdir(parents=True)
    for name in ("model.sdf", "model.config", "meshes/a.stl"):
        (linked / name).symlink_to(hand / name)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(linked.parent))
    (place / "model.sdf").write_text(
        '<sdf version="1.11"><model name="w"><include><uri>model://hand</uri></include></model>'
        "</sdf>"
    )
    found = load(place / "model.sdf").links[0].visuals[0].geometry.uri
    assert found == str(hand / "meshes" / "a.stl")
    assert load(linked).links[0].visuals[0].geometry.uri == found


def test_text_of_a_program_names_what_it_wants(place):
    file = str(place.parents[1] / "private" / "out.stl")
    assert read_sdf(sdf(file)).links[0].visuals[0].geometry.uri == file
    with pytest.raises(DescriptionError, match="outside of the model"):
        read_sdf(sdf(file), base=place)


def test_uris_that_are_searched_upwards_are_confined(place):
    source = str(place / "model.sdf")
    assert mesh_path("package://private/out.stl", source) is None
    assert mesh_path("package://arm/../../private/out.stl", source) is None
    assert mesh_path("package://arm/in.stl", source) == place / "in.stl"
    assert mesh_path("package://[/in.stl", source) == place / "in.stl"  # no address, but a name


@pytest.mark.parametrize("uri", [*OUTSIDE[1:], "linked/out.stl", "deep/../private/out.stl"])
def test_an_import_copies_nothing_from_outside(place, uri):
    (place / "linked").symlink_to(place.parents[1] / "private")
    (place.parents[1] / "b").mkdir()
    (place / "deep").symlink_to(place.parents[1] / "b")
    named = outside(place, uri)
    with pytest.raises(DescriptionError) as caught:
        urdf(place, named)
    message = str(caught.value)
    assert f"{place / 'arm.urdf'}:4" in message
    assert "--package NAME=DIR" in message
    assert str(place.parents[1] / "private" / "out.stl") in message
    (place / "model.sdf").write_text(sdf(named, "1.6"))
    with pytest.raises(DescriptionError, match="outside of the package"):
        import_cardsflow(place)


@pytest.mark.parametrize("mark", ["package.xml", ".git"])
def test_an_import_takes_what_is_in_its_package_or_checkout(place, mark):
    meshes = place.parent / "meshes"
    meshes.mkdir()
    (meshes / "a.stl").write_text(STL)
    (place.parent / mark).touch()
    for uri in ("../meshes/a.stl", "package://robots/meshes/a.stl", "package://x/meshes/a.stl"):
        assert urdf(place, uri) == [str(meshes / "a.stl")]


def test_packages_by_name(place, monkeypatch):
    other = place.parents[1] / "private" / "deep" / "hand"
    (other / "meshes").mkdir(parents=True)
    mesh = other / "meshes" / "a.stl"
    mesh.write_text(STL)
    uri = "package://hand/meshes/a.stl"
    assert urdf(place, uri) == []  # not found, which is a warning
    assert urdf(place, uri, packages={"hand": other}) == [str(mesh)]
    # beside it, and marked as a package
    beside = place.parent / "hand"
    os.rename(other, beside)
    with pytest.raises(DescriptionError, match="outside of the package"):
        urdf(place, uri)
    (beside / "package.xml").touch()
    assert urdf(place, uri) == [str(beside / "meshes" / "a.stl")]
    # on the path of ROS
    os.rename(beside, other)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(other.parent))
    assert urdf(place, uri) == [str(mesh)]


def test_packages_whose_files_are_links(place, monkeypatch):
    """What ``colcon build --symlink-install`` leaves."""
    source = place.parents[1] / "private" / "hand"
    source.mkdir()
    (source / "package.xml").touch()
    (source / "a.stl").write_text(STL)
    share = place.parents[1] / "install" / "share" / "hand"
    share.mkdir(parents=True)
    for name in ("package.xml", "a.stl"):
        (share / name).symlink_to(source / name)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(share.parents[1]))
    assert urdf(place, "package://hand/a.stl") == [str(source / "a.stl")]


@pytest.mark.parametrize("name", ["{private}/part.yaml", "link.yaml", "../../private/part.txt"])
def test_structures_are_confined(place, name):
    private = place.parents[1] / "private"
    for part in ("part.yaml", "part.txt"):
        (private / part).write_text("nodes: {a: [0, 0, 0]}\n")
    (place / "link.yaml").symlink_to(private / "part.yaml")
    file = place / "structure.yaml"
    text = "substructures:\n  one:\n    path: "
    file.write_text(text + name.format(private=private))
    with pytest.raises(DescriptionError, match=r"structure\.yaml:3.*outside of the structure"):
        assemble(file)
    file.write_text(f"{text}../../private/part.yaml\n")
    assert [part.name for part in assemble(file).root.parts] == ["one"]


def test_an_import_follows_relative_names_of_its_kinds(place, monkeypatch):
    private = place.parents[1] / "private"
    name, out = "../../private/out.stl", private / "out.stl"
    assert urdf(place, name) == [str(out)]
    (place / "model.sdf").write_text(sdf(name, "1.6"))
    assert import_cardsflow(place).robot.links[0].visuals[0].geometry.uri == str(out)
    allowed = import_confinement(place, (".stl",))
    assert allowed.follows(place, "../../private/OUT.STL")  # it does not exist
    assert not import_confinement(place).follows(place, name)
    assert not confinement(place).follows(place, name)
    (private / "folder.stl").mkdir()
    (private / "link.stl").symlink_to("out.stl")
    (private / "circle.stl").symlink_to("circle.stl")
    os.mkfifo(private / "pipe.stl")
    for other in (
        str(out), "../../private/out.txt", "../../private/out", "../../private/folder.stl",
        "../../private/link.stl", "../../private/circle.stl", "../../private/pipe.stl",
        "../../private/a\0.stl", f"../{'a' * 5000}.stl", "",
    ):  # fmt: skip
        assert not allowed.follows(place, other), other
    monkeypatch.setattr("cards_core.named_files.LARGEST_FOLLOWED", len(STL) - 1)
    assert not allowed.follows(place, name)
    with pytest.raises(DescriptionError, match="outside of the package"):
        urdf(place, name)


def test_a_folder_that_is_reached_by_a_link_is_followed_from(place, tmp_path):
    (tmp_path / "home").symlink_to(place.parent)
    assert import_confinement(place, (".stl",)).follows(
        tmp_path / "home" / "arm", "../../private/out.stl"
    )


def test_circles_of_links_and_what_is_no_path(place):
    (place / "a.stl").symlink_to("b.stl")
    (place / "b.stl").symlink_to("a.stl")
    with pytest.raises(DescriptionError, match="was not found"):
        read(place, "a.stl")
    allowed = confinement(place)
    assert not allowed.holds(place / "a.stl")
    assert not allowed.holds(place / "a\0b")


@pytest.fixture
def secret(place):
    file = place.parents[1] / "private" / "secret.txt"
    file.write_text("secret")
    return file


def with_wrap(uri, version="1.11"):
    text = sdf("in.stl", version)
    return text.replace(
        "</model>",
        '<plugin filename="cards" name="cards"><module_name>cards_muscle_plugin.system'
        f'</module_name>\n<wrap_surface name="w" link="a"><mesh uri="{uri}"/></wrap_surface>'
        "</plugin></model>",
    )


def including(name):
    return (
        f'<sdf version="1.6"><model name="m"><include><uri>{name}</uri></include>\n'
        f'<link name="b">{INERTIAL}</link></model></sdf>'
    )


@pytest.mark.parametrize("form", ["package://{}", "package:///{}", "file://{}", "{}"])
@pytest.mark.parametrize("of", ["wrap", "include", "wrap of include"])
@pytest.mark.parametrize("ending", ["txt", "stl"])
def test_an_import_copies_nothing_that_wraps_and_included_files_name(
    place, secret, form, of, ending
):
    uri = form.format(secret if ending == "txt" else secret.with_name("out.stl"))
    text = sdf(uri) if of == "include" else with_wrap(uri)
    if of == "wrap":
        (place / "model.sdf").write_text(text)
    else:
        (place / "other.sdf").write_text(text)
        (place / "model.sdf").write_text(including("other.sdf"))
    with pytest.raises(DescriptionError, match=r"no mesh file that was found|outside of the") as e:
        import_cardsflow(place)
    assert (place / ("model.sdf" if of == "wrap" else "other.sdf")).name in str(e.value)


def test_an_import_copies_what_wraps_and_included_files_name_in_the_package(place, tmp_path):
    hand = place.parent / "hand"
    (hand / "meshes").mkdir(parents=True)
    (hand / "meshes" / "h.stl").write_text(STL)
    (hand / "wrap.stl").write_text(STL + "\n")  # of other content: equal ones have one copy
    (hand / "package.xml").touch()
    (hand / "model.sdf").write_text(with_wrap("package://hand/wrap.stl"))
    text = (hand / "model.sdf").read_text().replace("in.stl", "meshes/h.stl")
    (hand / "model.sdf").write_text(text)
    (place / "model.sdf").write_text(including("model://hand"))
    model = import_cardsflow(place)
    assert model.meshes == {hand / "wrap.stl", hand / "meshes" / "h.stl"}
    folder = write_imported(model, tmp_path / "out")
    assert sorted(f.name for f in (folder / "meshes").iterdir()) == ["h.stl", "wrap.stl"]


def test_wraps_of_a_urdf_are_confined(place, secret):
    plugin = with_wrap(f"package://{secret}").partition("<plugin")[2].partition("</model>")[0]
    file = place / "arm.urdf"
    file.write_text(f'<robot name="arm"><link name="a"/><gazebo><plugin{plugin}</gazebo></robot>')
    with pytest.raises(DescriptionError, match="no mesh file that was found"):
        import_urdf(file)


def test_a_mesh_that_no_import_has_found_is_not_copied(place, secret, tmp_path):
    model = import_cardsflow(with_found(place, "in.stl"))
    assert model.meshes == {place / "in.stl"}
    for file in (secret, secret.with_name("out.stl")):
        other = with_meshes(model.robot, lambda uri, file=file: str(file))
        with pytest.raises(DescriptionError, match="is not copied"):
            write_imported(dataclasses.replace(model, robot=other), tmp_path / "out")
        assert not (tmp_path / "out" / model.name).exists()


def with_found(place, uri):
    (place / "model.sdf").write_text(sdf(uri, "1.6"))
    return place


def test_what_is_checked_is_what_is_read(place):
    """Percent signs of a plain path mean nothing; those of file:// are read once."""
    source = str(place / "model.sdf")
    (place.parent / "secret.stl").write_text(STL)
    odd = place / "..%2fsecret.stl"
    odd.write_text(STL)
    found = read(place, "..%2fsecret.stl")
    assert found == str(odd)
    assert mesh_path(found, source) == odd
    assert mesh_path("..%2fsecret.stl", source) == odd
    assert mesh_path("../secret.stl", source) is None
    assert mesh_path("../arm/in.stl", source).samefile(place / "in.stl")
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, f"file://{place}/..%2fsecret.stl")
    twice = place / "a%20b.stl"
    twice.write_text(STL)
    assert read(place, f"file://{place}/a%2520b.stl") == str(twice)
    assert urdf(place, f"file://{place}/a%2520b.stl") == [str(twice)]
    with pytest.raises(DescriptionError, match="outside of the package"):
        urdf(place, f"file://{place}/..%2fsecret.stl")
    with pytest.raises(DescriptionError, match="is not a path"):
        read(place, f"file://{place}/a%00b.stl")


@pytest.fixture
def home(place, monkeypatch):
    """The home folder is around ``robots``, and marked as a package."""
    folder = place.parents[1]
    monkeypatch.setenv("HOME", str(folder))
    for mark in ("package.xml", "model.config"):
        (folder / mark).touch()
    return folder


@pytest.mark.parametrize("name", ["..", ".", "{home}", "link"])
def test_no_name_opens_the_home_folder(place, home, name):
    if name == "link":
        for base in (place, place.parent):
            (base / "link").symlink_to(home)
    for folder in (place, place.parent):
        for scheme in ("model", "package"):
            uri = f"{scheme}://{name.format(home=home.name)}/private/out.stl"
            assert mesh_path(uri, str(folder / "arm.urdf")) is None
            with contextlib.suppress(DescriptionError):  # or it is not found
                assert urdf(folder, uri) == []
        with pytest.raises(DescriptionError, match=r"outside of the model|was not found"):
            read(folder, f"model://{name.format(home=home.name)}/private/out.stl")


def test_no_name_opens_the_folder_of_temporary_files(place, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(place.parents[1]))
    (place.parents[1] / "package.xml").touch()
    allowed = import_confinement(place)
    assert not allowed.holds(place.parents[1] / "private" / "out.stl", place.parents[1])


def test_a_user_without_a_home_folder(place, monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", none)
    assert read(place, "in.stl") == str(place / "in.stl")
    with pytest.raises(DescriptionError, match="outside of the model"):
        read(place, "../../private/out.stl")


def test_files_that_no_text_names_are_confined(place):
    """A link where the file of a model, of its rods or of its muscles is looked for."""
    private = place.parents[1] / "private"
    (private / "outside.sdf").write_text(sdf("out.stl"))
    (place / "hand").mkdir()
    (place / "hand" / "model.sdf").symlink_to(private / "outside.sdf")
    for uri in ("hand", "model://hand"):
        (place / "model.sdf").write_text(including(uri).replace("1.6", "1.11"))
        with pytest.raises(DescriptionError, match=r"model\.sdf:1.*outside of the model"):
            load(place / "model.sdf")
    (place / "hand" / "model.sdf").unlink()
    (place / "hand" / "model.sdf").write_text(sdf("../in.stl").replace("../in.stl", "h.stl"))
    (place / "hand" / "h.stl").write_text(STL)
    assert len(load(place / "model.sdf").links) == 2

    (private / "rods").write_text("rods: {}\n")
    (place / "rods.yaml").symlink_to(private / "rods")
    with pytest.raises(DescriptionError, match="outside of the model"):
        rods_file(place / "model.sdf", [])
    (place / "rods.yaml").unlink()
    (place / "rods.yaml").touch()
    assert rods_file(place / "model.sdf", []) == place / "rods.yaml"

    with_found(place, "in.stl")
    (private / "muscles").write_text("<cardsflow/>")
    (place / "cardsflow.xml").symlink_to(private / "muscles")
    with pytest.raises(DescriptionError, match="outside of the package"):
        import_cardsflow(place)
    import_cardsflow(place, muscles=private / "muscles")  # what the user names


def test_a_fit_copies_nothing_through_links(place, secret, tmp_path, caplog):
    hand = place / "hand"
    hand.mkdir()
    (hand / "h.stl").write_text(STL)
    (hand / "notes.txt").symlink_to(secret)
    (hand / "all").symlink_to(secret.parent)
    (place / "link.stl").symlink_to(secret)
    root = parse_xml("<a><uri>hand</uri><uri>link.stl</uri><uri>in.stl</uri></a>")
    _copy_referenced(root, place, tmp_path / "out", confinement(place))
    out = tmp_path / "out"
    copied = sorted(str(f.relative_to(out)) for f in out.rglob("*") if f.is_file())
    assert copied == ["hand/h.stl", "in.stl"]
    for name in ("notes.txt", "all", "link.stl"):
        assert f"{name} is a link to outside of the model: not copied" in caplog.text


def test_a_path_of_a_part_that_is_too_long(place):
    file = place / "structure.yaml"
    file.write_text(f"substructures:\n  one:\n    path: {'a' * 300}\n")
    with pytest.raises(DescriptionError, match=r"structure\.yaml:3.*is no file"):
        assemble(file)


@pytest.mark.parametrize("row", ["linked,b_bodies.xml,b_cables.xml", ".,c.xml,{secret}"])
def test_lists_of_models_are_confined(place, secret, row):
    (place / "linked").symlink_to(secret.parent)
    for name in ("b_bodies.xml", "b_cables.xml"):
        (secret.parent / name).write_text("<a/>")
    (place / "c.xml").write_text("<a/>")
    row = row.format(secret=secret)
    (place / "my_list.csv").write_text(f"one,.,c.xml,c.xml\ntwo,{row},,\n")
    with pytest.raises(DescriptionError, match=r"my_list\.csv:2.*outside of the folder"):
        find_models(place)
    (place / "my_list.csv").write_text(
        "one,.,c.xml,c.xml\ntwo,../../private,b_bodies.xml,b_cables.xml\n"
    )
    assert [item.problem for item in find_models(place)] == ["", ""]


def test_a_place_is_said_once(place):
    private = place.parents[1] / "private" / "out.stl"
    with pytest.raises(DescriptionError) as caught:
        read(place, str(private))
    assert f": '{private}' is outside of the model (expected" in str(caught.value)
    with pytest.raises(
        DescriptionError, match=rf"'\.\./\.\./private/out.stl' is '{private}', out"
    ):
        read(place, "../../private/out.stl")
