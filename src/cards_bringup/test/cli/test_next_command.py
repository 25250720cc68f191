"""What an error or a command proposes to type next can be typed, and works."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from cards_bringup.cli import main
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.locate import find_model

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
MJCF = """<mujoco model="an arm"><worldbody><body name="b"><joint name="j" axis="0 1 0"/>
<geom size="0.1"/></body></worldbody></mujoco>"""


def run(words):
    """Run ``./cards ...`` in this process."""
    front, *rest = shlex.split(words)
    assert front == "./cards"
    return main(rest)


def proposed(text):
    """Return the command of an error, and the folder that it is to make."""
    found = re.search(r"expected: (\./cards import .*), which makes (.*)\)", text)
    assert found, text
    return found[1], shlex.split(found[2])[0]


@pytest.mark.parametrize("name", ["arm.urdf", "my arm.xml"])
@pytest.mark.parametrize("command", ["export mjcf", "export urdf", "demo", "check"])
def test_other_formats_say_how_they_are_imported(tmp_path, monkeypatch, capsys, name, command):
    monkeypatch.chdir(tmp_path)
    if name.endswith("urdf"):
        shutil.copy(EXAMPLES / "urdf_arm" / "arm.urdf", name)
    else:
        Path(name).write_text(MJCF)
    assert main([*command.split(), name]) == 2
    line, folder = proposed(capsys.readouterr().err)
    if command != "export mjcf":
        return  # the same command
    assert run(line) == 0
    next_line = re.search(r"next: (.*)", capsys.readouterr().out)[1]
    assert next_line == f"./cards edit {folder}"
    assert load(folder).tree.nv
    assert main(["export", "mjcf", folder]) == 0
    assert "<mujoco" in capsys.readouterr().out


def test_an_import_with_muscles_says_how_it_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = EXAMPLES / "urdf_arm"
    line = ["import", "urdf", str(folder / "arm.urdf"), "--muscles", str(folder / "muscles.yaml")]
    assert main([*line, "-o", "my robots"]) == 0
    assert "next: ./cards demo 'my robots/urdf_arm'" in capsys.readouterr().out
    assert load("my robots/urdf_arm").muscles


def test_cad_files_say_what_comes_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my arm.step").write_text("ISO-10303-21;")
    with pytest.raises(
        CardsError, match=r"import cad 'my arm\.step' --propose 'my arm\.yaml', th"
    ):
        find_model("my arm.step")
    assert main(["demo", "my arm.step"]) == 2
    assert "is a CAD file, not an SDF" in capsys.readouterr().err


OSIM = '<OpenSimDocument Version="40000"><Model name="leg"/></OpenSimDocument>'
SDF = '<sdf version="1.11"><model name="arm"><link name="a"/></model></sdf>'
FILES = {
    "arm.urdf": ("urdf", '<robot name="arm"><link name="a"/></robot>', "a URDF"),
    "arm.xml": ("mjcf", MJCF, "an MJCF"),
    "leg.osim": ("opensim", OSIM, "an OpenSim model"),
    "arm.sdf": ("cardsflow", SDF, "an SDF"),
    "arm.step": ("cad", "ISO-10303-21;", "is a CAD file"),
}
READS = {"cad": ("arm.sdf",), "cardsflow": ("arm.sdf",)}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("importer", ["cad", "caspr", "cardsflow", "urdf", "mjcf", "opensim"])
def test_each_importer_names_the_right_one(tmp_path, monkeypatch, capsys, importer, file):
    monkeypatch.chdir(tmp_path)
    right, text, what = FILES[file]
    Path(file).write_text(text)
    if importer == right or file in READS.get(importer, ()):
        return
    assert main(["import", importer, file]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert f"./cards import {right} {file} " in said
    assert said.startswith(f"error: {file}")
    assert said.count("\n") == 1


@pytest.mark.parametrize("importer", ["cardsflow", "urdf", "mjcf", "opensim"])
@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_file_is_said_to_be_empty(tmp_path, capsys, importer, text):
    file = tmp_path / "x.xml"
    file.write_text(text)
    assert main(["import", importer, str(file)]) == 2
    assert f"error: {file}:1: is empty (expected: an XML document)" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["demo", "check", "edit"])
def test_what_is_no_model_is_said_to_be_none(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    assert main([command, "nothere.sdf"]) == 2
    said = capsys.readouterr().err
    assert "no model or file named 'nothere.sdf'" in said
    assert "wrap_elbow" in said
    assert main([command, "./mine"]) == 2
    assert "mine: the folder holds no model (expected: model.config or model.sdf)" in (
        capsys.readouterr().err
    )
