"""Damaged MJCF files: an error of ours with file and line, and nothing written."""

import os
import re

import mjcf_samples
import numpy as np
import pytest
from damaged_files import mutate, mutate_tree, time_limit

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.imports.model import write_imported
from cards_sim.mjcf.importer import import_mjcf

COUNT = int(os.environ.get("CARDS_FUZZ", "120"))
"""Damaged files."""


def damaged(text, seed):
    rng = np.random.default_rng(seed)
    return (mutate_tree if rng.random() < 0.5 else mutate)(rng, text)


def refusal(path, out):
    """Import a file into a folder; return the error, None if it was imported."""
    try:
        write_imported(import_mjcf(path), out, force=True)
    except CardsError as error:
        return error
    return None


def test_damaged_files_are_refused_with_their_place(tmp_path):
    path = mjcf_samples.write_arm(tmp_path)
    out = tmp_path / "out"
    refused = 0
    for seed in range(COUNT):
        path.write_bytes(damaged(mjcf_samples.ARM, seed))
        with time_limit(f"seed {seed}"):
            error = refusal(path, out)
        if error is not None:
            refused += 1
            assert isinstance(error, DescriptionError), (seed, str(error))
            assert error.source, (seed, str(error))
            assert error.line is not None or "/out/" in error.source, (seed, str(error))
        for folder in out.iterdir() if out.exists() else ():
            assert (folder / "model.sdf").is_file(), seed
            assert not folder.name.startswith("."), seed
    assert COUNT // 3 < refused < COUNT


@pytest.mark.filterwarnings("ignore:Inertia matrix")  # of an axis that is none
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("<robot name='a'/>", 1, "not an MJCF (a URDF) (expected: ./cards import urdf"),
        ("<arm/>", 1, "not an MJCF (the root element is <arm>) (expected: MJCF, whose root is"),
        ("<mujoco>\n<include file='none.xml'/></mujoco>", 2, "none.xml"),
        ("<mujoco>\n<include file='model.xml'/></mujoco>", 2, "included twice"),
        ("<mujoco>\n<include/></mujoco>", 2, "has no 'file'"),
        (
            "<mujoco>\n<worldbody>\n<body><joint type='hing'/></body></worldbody></mujoco>",
            3,
            "hing",
        ),
        ("<mujoco>\n<worldbody>\n<body>\n<joint/></body></worldbody></mujoco>", 3, "mass"),
        ("<mujoco>\n<worldbody/>\n</mujoco>", 1, "no joint moves"),
        (
            "<mujoco>\n<worldbody>\n<body pos='1 inf 1'/></worldbody></mujoco>",
            3,
            "pos '1 inf 1' is not finite",
        ),
        (
            "<mujoco>\n<worldbody>\n<body><geom size='1'/>\n<joint name='j' axis='1 1e308 0'/>"
            "</body></worldbody></mujoco>",
            4,
            "joint 'j': axis '1 1e308 0' is too large",
        ),
        (
            "<mujoco>\n<worldbody>\n<body><geom size='1'/>\n<joint name='j' axis='0 inf 0'/>"
            "</body></worldbody></mujoco>",
            4,
            "axis '0 inf 0' is not finite",
        ),
        ("<mujoco>\n<tendon>\n<spatial><site site='q'/></spatial></tendon></mujoco>", 3, "two"),
        ("<mujoco>\n<worldbody>\n<replicate count='1000000'/></worldbody></mujoco>", 3, "at most"),
        (
            "<mujoco>\n<worldbody>\n<replicate count='999'>\n<replicate count='999'/>"
            "</replicate></worldbody></mujoco>",
            4,
            "copies",
        ),
        ("<mujoco>\n<asset>\n<hfield nrow='99999' ncol='99999'/></asset></mujoco>", 3, "at most"),
        (
            "<mujoco>\n<worldbody>\n<geom size='1' mass='nan'/></worldbody></mujoco>",
            3,
            "mass 'nan'",
        ),
        ("<mujoco>\n<option gravity='0 0 -inf'/></mujoco>", 2, "gravity '0 0 -inf'"),
        ("<mujoco>\n<worldbody>\n<body>", 3, "malformed XML"),
        ("<!DOCTYPE m [<!ENTITY a 'b'>]>\n<mujoco/>", 1, "entity"),
    ],
)
def test_mistakes_are_said_with_file_and_line(text, line, words, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=re.escape(words)) as caught:
        import_mjcf(path)
    assert caught.value.source == str(path)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"0.02 0.01 0.9"', '"1e307 0 0"', "site 'roof': pos '1e307 0 0' is too large"),
        ('ref="15"', 'ref="inf"', "joint 'pitch': ref 'inf' is not finite"),
        ('range="0.5 1.5"', 'range="0.5 1e308"', "muscle 'biceps': range '0.5 1e308' is too"),
    ],
)
def test_numbers_that_are_too_large(old, new, words, tmp_path):
    path = mjcf_samples.write_arm(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DescriptionError, match=re.escape(words)) as caught:
        import_mjcf(path)
    assert caught.value.line == text.count("\n", 0, text.index(old)) + 1


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('"0.05 0.06 0.07"', '"1e12 1 1"', '"base"', "link 'base': the robot that"),
        ('plane" size="0 0', 'plane" size="6e15 0', '"floor"', "of visual 'floor' of link"),
    ],
)
def test_numbers_that_sdf_cannot_state(old, new, place, words, tmp_path):
    """They are found when the robot has been made; file and line are those of the MJCF."""
    path = mjcf_samples.write_arm(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DescriptionError, match=re.escape(words)) as caught:
        write_imported(import_mjcf(path), tmp_path / "out")
    assert caught.value.source == str(path)
    assert caught.value.line == text.count("\n", 0, text.index(place)) + 1


def test_limits_far_away_are_none(tmp_path):
    """Nothing is sampled out there, and the robot says so."""
    path = mjcf_samples.write_arm(tmp_path)
    path.write_text(path.read_text().replace('range="-0.2 0.3"', 'range="-0.2 1e307"', 1))
    made = import_mjcf(path)
    axis = made.robot.joint("lift").axes[0]
    assert (axis.lower, axis.upper) == (-0.2, np.inf)
    write_imported(made, tmp_path / "out")


def test_nan_as_a_name_and_ranges_without_an_end_are_read(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(
        "<mujoco><worldbody><body><geom size='1'/><joint name='nan'/></body></worldbody>"
        "<actuator><motor joint='nan' forcerange='-inf inf'/></actuator></mujoco>"
    )
    joints = import_mjcf(path).robot.joints
    assert "nan" in [joint.name for joint in joints]


def test_a_mistake_in_an_included_file_names_that_file(tmp_path):
    (tmp_path / "part.xml").write_text(
        "<mujoco>\n<worldbody>\n<body>\n<geom type='bax'/></body></worldbody></mujoco>"
    )
    (tmp_path / "model.xml").write_text("<mujoco>\n<include file='part.xml'/>\n</mujoco>")
    with pytest.raises(DescriptionError, match=r"part\.xml:4.*bax"):
        import_mjcf(tmp_path / "model.xml")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DescriptionError, match="no such file"):
        import_mjcf(tmp_path / "none.xml")
    with pytest.raises(DescriptionError, match="is a folder"):
        import_mjcf(tmp_path)


def test_comments_that_xml_forbids_and_mujoco_reads(tmp_path):
    (tmp_path / "part.xml").write_text(
        "<mujoco>\n<!-- a -- b\n<body -->\n<worldbody><body name='b'><joint/><geom size='1'/>"
        "</body></worldbody></mujoco>"
    )
    path = tmp_path / "model.xml"
    text = (
        "<mujoco><!-- see -- there --->\n<!---- x ---->\n<include file='part.xml'/>\n{}</mujoco>"
    )
    path.write_text(text.format(""))
    robot = import_mjcf(path).robot
    assert [(link.name, link.line) for link in robot.links] == [("b", None)]
    # what is malformed otherwise keeps its place, and what is obsolete is blanked where it is
    path.write_text(text.format("<option apirate='1'/><body"))
    with pytest.raises(DescriptionError, match=r"model\.xml:4.*malformed"):
        import_mjcf(path)
    path.write_text(text.format("<option apirate='1'/>"))
    (said,) = [f for f in import_mjcf(path).findings if f.code == "obsolete"]
    assert said.line == 4
