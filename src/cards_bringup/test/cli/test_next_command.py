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
    assert "is a CAD file, no SDF" in capsys.readouterr().err
