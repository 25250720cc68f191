"""What is no robot at all, or no place for one: one line that says what would be right."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cards_bringup.importers import IMPORTERS, run_import
from cards_core.formats.imports.findings import MOST_CHARACTERS, NameTable, safe_name
from cards_core.names import LONGEST

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
MUJOCO = (
    '<mujoco model="arm"><worldbody><body name="b"><joint name="j"/><geom size="0.1" mass="1"/>'
    "</body></worldbody>{}</mujoco>"
)
BOMB = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 12)
)
FILES = {
    "arm.xml": MUJOCO.format(""),
    "arm.mjcf": MUJOCO.format(""),
    "arm": MUJOCO.format(""),
    "key.xml": MUJOCO.format('\n<keyframe>\n<key name="up" qpos="0 1"/></keyframe>'),
    "arm.urdf": (EXAMPLES / "urdf_arm" / "arm.urdf").read_text(encoding="utf-8"),
    "bomb.yaml": BOMB,
    "circle.yaml": "muscles: &a {m: *a}\n",
    "deep.yaml": "muscles: " + "[" * 1000,
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    shutil.copytree(EXAMPLES / "cardsflow_arm", tmp_path / "cardsflow")
    monkeypatch.chdir(tmp_path)
    return tmp_path


CASES = [
    ("mjcf arm.mjcf", "arm.mjcf: the ending '.mjcf': MuJoCo reads files that end on .xml"),
    ("mjcf arm", "arm: no ending: MuJoCo reads files that end on .xml (expected: the same file"),
    ("mjcf key.xml", "key.xml:3: key 'up': MuJoCo refuses it: keyframe 'up': invalid qpos size, "
     "expected 1, got 2"),
    ("mjcf arm.xml -o arm.urdf", "arm.urdf is no folder (expected: a folder, or a new name)"),
    ("urdf arm.urdf -o arm.xml/deep", "arm.xml is no folder"),
    ("urdf arm.urdf --muscles none.yaml", "none.yaml: no such file (expected: a YAML file in"),
    ("urdf arm.urdf --muscles folder", "folder: is a folder (expected: a YAML file in UTF-8)"),
    ("urdf arm.urdf --muscles pipe", "pipe: is not a regular file (expected: a YAML file in"),
    ("urdf arm.urdf --muscles bomb.yaml", "bomb.yaml:"),
    ("urdf arm.urdf --muscles circle.yaml", "circle.yaml:1: nested too deeply or too large"),
    ("urdf arm.urdf --muscles deep.yaml", "deep.yaml: nested too deeply"),
    ("cardsflow cardsflow -o arm.xml", "arm.xml is no folder"),
    ("cad folder", "folder: is a folder (expected: a file with one of .step"),
    ("cad arm", "arm:1: <mujoco>: not a CAD file (an MJCF) (expected: ./cards import mjcf arm -o"),
    ("cad arm.urdf", "arm.urdf:3: robot 'urdf_arm': not a CAD file (a URDF)"),
    ("cad none.step", "none.step: no such file"),
]  # fmt: skip
CASES += [(f"{name} /dev/null", "/dev/null: ") for name in IMPORTERS]
CASES += [(f"{name} none", "none: ") for name in IMPORTERS]
CASES += [(f"{name} pipe", "pipe: ") for name in IMPORTERS]


@pytest.mark.parametrize(("line", "message"), CASES)
def test_one_line_says_what_is_wrong_and_nothing_is_written(line, message, here, capsys):
    before = sorted(here.rglob("*"))
    name, *rest = line.split()
    assert run_import(name, rest) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert "Errno" not in err
    assert sorted(here.rglob("*")) == before


def test_long_names_are_cut_and_stay_unique():
    table = NameTable()
    names = [table.claim("n" * 300 + end) for end in ("a", "b", "c")]
    assert len(set(names)) == 3
    assert all(len(name) <= LONGEST for name in names)
    assert [old for old, _ in table.renamed] == ["n" * 300 + end for end in "abc"]
    assert safe_name("n" * 99 + "." * 10 + "x") == "n" * MOST_CHARACTERS


def test_a_model_with_long_names_is_imported(here, capsys):
    (here / "long.xml").write_text(
        MUJOCO.format("").replace('"arm"', f'"{"r" * 300}"').replace('"j"', f'"{"j" * 300}"')
    )
    assert run_import("mjcf", ["long.xml", "-o", "out", "-q"]) == 0
    assert [path.name for path in (here / "out").iterdir()] == ["r" * MOST_CHARACTERS]
