"""Muscles of frames and links that exporters named: the arm of the CAD tests, from other files."""

from __future__ import annotations

import numpy as np
import pytest
from marked_arm import muscle_lengths, sdf, urdf

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.cad.importer import import_cad
from cards_core.formats.imports.model import write_imported
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.urdf.importer import import_urdf

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def check_arm(robot):
    """Lengths are those of the table of points, moment arms their differences."""
    assert [muscle.name for muscle in robot.muscles] == list("123456")
    assert [link.name for link in robot.links] == ["base", "upper_arm", "lower_arm"]
    dynamics = make_dynamics(robot, "numeric")
    step = 1e-6
    for angles in ((0.0, 0.0), (0.4, -0.7), (-1.1, 1.0)):
        q = np.array(angles)
        state = dynamics.update(q, np.zeros(2))
        np.testing.assert_allclose(state.muscle_lengths, muscle_lengths(q), atol=1e-12)
        arms = [
            (muscle_lengths(q + step * e) - muscle_lengths(q - step * e)) / (2 * step)
            for e in np.eye(2)
        ]
        # M q'' .. = -L^T t: the Jacobian is that of the lengths
        np.testing.assert_allclose(state.muscle_jacobian.T, arms, atol=1e-9)
    assert [(frame.name, frame.link) for frame in robot.frames] == [("hand", "lower_arm")]
    np.testing.assert_allclose(robot.frame("hand").pose.translation, [0.25, 0.02, 0.0])
    assert robot.operational_frame == "hand"


def test_links_of_urdf(tmp_path):
    model = import_urdf(urdf())
    check_arm(model.robot)
    assert not [item for item in model.renamed if "muscle" in item[0]]
    assert "tension-assumed" in {item.code for item in model.warnings}
    folder = write_imported(model, tmp_path)
    check_arm(read_sdf(folder / "model.sdf"))


def test_mass_of_a_marker_is_left_out_and_said():
    model = import_urdf(urdf(mass="0.01"))
    check_arm(model.robot)
    said = [item for item in model.warnings if item.code == "marker-mass"]
    assert len(said) == 17
    assert "0.01 kg" in said[0].message


def test_frames_of_sdf(tmp_path):
    (tmp_path / "arm.sdf").write_text(sdf())
    model = import_cad(tmp_path / "arm.sdf")
    check_arm(model.robot)
    # SDF attaches a frame that says nothing else to the model; exporters mean the link
    (note,) = [item for item in model.findings if item.code == "marker-attached"]
    assert "'lower_arm'" in note.message
    assert note.line is not None


def two_links(*names, carrier="a", inside="", kind="fixed"):
    places = "".join(
        f'<link name="{name}">{inside}</link><joint name="at_{i}" type="{kind}">'
        f'<parent link="{carrier if i else "b"}"/><child link="{name}"/>'
        f'<origin xyz="0.1 0 {i}"/></joint>'
        for i, name in enumerate(names)
    )
    return (
        f'<robot name="r"><link name="a">{MASS}</link><link name="b">{MASS}</link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/>'
        f'<axis xyz="0 1 0"/></joint>{places}</robot>'
    )


def test_names_without_colons():
    model = import_urdf(two_links("muscle_arm_1", "muscle_arm_2", "muscle_part_3"))
    (muscle,) = model.robot.muscles
    assert muscle.name == "arm"
    assert [item.link for item in muscle.path] == ["b", "a"]
    # no muscle_part_1: an ordinary place
    assert [frame.name for frame in model.robot.frames] == ["muscle_part_3"]


def test_links_with_mass_are_no_points_unless_they_say_so():
    model = import_urdf(two_links("muscle_arm_1", "muscle_arm_2", inside=MASS))
    assert not model.robot.muscles
    assert len(model.robot.links) == 4


def test_a_dummy_link_of_an_exporter_is_a_frame():
    light = MASS.replace('"1"', '"1e-9"')
    model = import_urdf(two_links("hand", inside=light))
    assert [(frame.name, frame.link) for frame in model.robot.frames] == [("hand", "b")]
    assert "mass-negligible" in {item.code for item in model.findings}


def test_points_on_the_world():
    text = two_links("muscle:m:2", "muscle:m:1", carrier="world").replace(
        '<link name="a">', '<link name="world"/><link name="a">'
    )
    (muscle,) = import_urdf(text).robot.muscles
    assert [item.link for item in muscle.path] == ["world", "b"]


def test_surfaces_of_the_yaml(tmp_path):
    (tmp_path / "surfaces.yaml").write_text(
        "wrap_surfaces: {elbow: {link: a, cylinder: {radius: 0.02}, pose: [0, 0, 0, 1.57, 0, 0]}}"
    )
    text = two_links("muscle:m:3", "muscle:m:1", "wrap:elbow:m:2")
    (muscle,) = import_urdf(text, muscles=tmp_path / "surfaces.yaml").robot.muscles
    assert [type(item).__name__ for item in muscle.path] == ["ViaPoint", "Wrap", "ViaPoint"]


def test_frames_get_names_that_are_free():
    model = import_urdf(two_links("frame:b", "frame:c"))
    assert [frame.name for frame in model.robot.frames] == ["b_2", "c"]
    assert ("b", "b_2") in model.renamed
    assert model.robot.operational_frame is None


def test_misspelt_links_are_named():
    model = import_urdf(two_links("Muscle:a:1", "muscle:a:2").replace("muscle:a:2", "muscel:a:2")
                        .replace("Muscle:a:1", "Frame:a"))  # fmt: skip
    assert [frame.name for frame in model.robot.frames][:1] == ["a_2"]
    (found,) = [item for item in model.warnings if item.code == "marker-misspelt"]
    assert found.subject == "link 'muscel:a:2'"
    assert "did you mean 'muscle:a:2'?" in found.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            two_links("muscle:a:1", kind="continuous"),
            "link 'muscle:a:1': is named as a marker and mov",
        ),
        (two_links("muscle:a:1", "muscle:a:2", carrier="muscle:a:1"), "carries another link"),
        (two_links("muscle:a:1"), "its path is muscle:a:1 .expected: at least two points"),
        (two_links("muscle:a:x"), "link 'muscle:a:x': the name begins like a marker's"),
        (
            two_links("muscle:a:1@c", "muscle:a:2"),
            "frame 'muscle:a:1@c': no link 'c' .expected: one",
        ),
        (two_links("wrap:s:a:1"), "no wrap surface 's' that a path could use"),
    ],
)
def test_wrong_names_are_said(text, words):
    with pytest.raises(DescriptionError, match=words):
        import_urdf(text)


def line_of(text, word):
    """Return the line of a text, from 1, with ``name="WORD"``."""
    return 1 + next(i for i, row in enumerate(text.splitlines()) if f'name="{word}"' in row)


def by_lines(*names):
    return two_links(*names).replace("<link", "\n<link")


@pytest.mark.parametrize(
    ("names", "place", "words"),
    [
        (("muscle:a:1", "muscle:a:3"), "muscle:a:3", "the numbers 1, 3, and there is no"),
        (
            ("muscle:a:5", "muscle:a:1", "muscle:a:2"),
            "muscle:a:5",
            "no 'muscle:a:3', 'muscle:a:4'",
        ),
        (("muscle:a:2", "muscle:a:3"), "muscle:a:2", "there is no 'muscle:a:1'"),
        (("muscle:a:1", "Muscle:a:1", "muscle:a:2"), "Muscle:a:1", "at the same place of it"),
        (("muscle:a:1", "muscle:a", "muscle:a:2"), "muscle:a", "some have none"),
        (("muscle:a:1",), "muscle:a:1", "at least two points"),
    ],
)
def test_errors_of_points_have_a_line(tmp_path, names, place, words):
    file = tmp_path / "u.urdf"
    file.write_text(by_lines(*names))
    with pytest.raises(DescriptionError, match=words) as caught:
        import_urdf(file)
    assert str(caught.value).startswith(f"{file}:{line_of(file.read_text(), place)}: muscle 'a': ")


def test_a_muscle_of_the_yaml_that_is_marked_too_is_named_with_both_lines(tmp_path):
    file, yaml = tmp_path / "arm.urdf", tmp_path / "muscles.yaml"
    file.write_text(by_lines("muscle:ext:1", "muscle:ext:2"))
    yaml.write_text(
        "muscles:\n  flex: {tension: {min: 1, max: 9}, path: [{link: a, point: [1, 0, 0]}, "
        "{link: b, point: [0, 0, 1]}]}\n"
        "  ext: {tension: {min: 1, max: 9}, path: [{link: a, point: [1, 0, 0]}, "
        "{link: b, point: [0, 0, 1]}]}\n"
    )
    with pytest.raises(DescriptionError) as caught:
        import_urdf(file, muscles=yaml)
    number = line_of(file.read_text(), "muscle:ext:1")
    assert str(caught.value).startswith(
        f"{yaml}:3: muscle 'ext': it is stated here, and 'muscle:ext:1' (line {number} of {file}) "
        "marks a point of it, too"
    )
