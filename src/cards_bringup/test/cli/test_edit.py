"""``./cards edit``: what it opens, how it ends, and that nothing is lost."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from cards_bringup.cli import main
from cards_core.editing import operations as edits
from cards_core.formats import load
from cards_core.formats.locate import find_model

pytestmark = pytest.mark.serial


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(find_model("planar_2r").read_bytes())
    return file


def move(block):
    """Move a point of the first muscle."""
    return edits.place_point(block, "cable_1", 1, "link_1", np.array([0.123, 0.0, 0.8]))


@pytest.fixture
def visit(monkeypatch):
    """Give what somebody does on the page before Ctrl-C."""
    from cards_viz.editor.page import EditorPage

    def set_actions(actions):
        def wait(page, running=None):
            actions(page)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("Ctrl-C did not end it")

        monkeypatch.setattr(EditorPage, "wait", wait)

    return set_actions


def test_nothing_changed_nothing_is_left(file, visit, capsys):
    before = file.read_bytes()
    visit(lambda page: None)
    assert main(["edit", str(file), "--port", "0"]) == 0
    assert re.search(r"http://127.0.0.1:\d+/\?token=", capsys.readouterr().out)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["model.sdf"]


def test_a_urdf_is_imported_once_and_gets_muscles(tmp_path, visit, capsys):
    example = Path(__file__).resolve().parents[4] / "examples" / "urdf_arm" / "arm.urdf"
    urdf = tmp_path / "arm.urdf"
    urdf.write_bytes(example.read_bytes())
    written = tmp_path / "urdf_arm" / "model.sdf"
    visit(lambda page: None)
    assert main(["edit", str(urdf), "--port", "0"]) == 0
    assert "imported to" in capsys.readouterr().out
    before = written.read_bytes()
    assert load(written).tree.nv == 2
    assert main(["edit", str(urdf), "--port", "0"]) == 0
    assert "imported to" not in capsys.readouterr().out
    assert written.read_bytes() == before
    assert urdf.read_bytes() == example.read_bytes()


def test_a_urdf_is_not_taken_for_what_was_imported_before(tmp_path, visit, capsys):
    example = Path(__file__).resolve().parents[4] / "examples" / "urdf_arm" / "arm.urdf"
    urdf, other = tmp_path / "arm.urdf", tmp_path / "second.urdf"
    urdf.write_bytes(example.read_bytes())
    visit(lambda page: None)
    assert main(["edit", str(urdf), "--port", "0"]) == 0
    before = (tmp_path / "urdf_arm" / "model.sdf").read_bytes()
    other.write_bytes(example.read_bytes())
    assert main(["edit", str(other), "--port", "0"]) == 0  # of the same content
    other.write_bytes(example.read_bytes() + b"<!-- another -->")
    capsys.readouterr()
    assert main(["edit", str(other), "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'urdf_arm'} was imported from another file, arm.urdf (expected: " in said
    assert f"./cards import urdf {other} -o {tmp_path} --name NAME; or ./cards edit " in said
    urdf.write_bytes(example.read_bytes() + b"<!-- changed -->")
    assert main(["edit", str(urdf), "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert "was imported from arm.urdf before that was changed" in said
    assert f"./cards import urdf {urdf} -o {tmp_path} --force, which keeps a changed" in said
    assert (tmp_path / "urdf_arm" / "model.sdf").read_bytes() == before
    # what it says is so
    with (tmp_path / "urdf_arm" / "model.sdf").open("ab") as file:
        file.write(b"<!-- mine -->")
    assert main(["import", "urdf", str(other), "-o", str(tmp_path), "--force"]) == 2
    said = capsys.readouterr().err
    assert f"is not replaced by {other} (expected: --name, another folder, or delete" in said
    assert main(["import", "urdf", str(other), "-o", str(tmp_path), "--name", "my second"]) == 0
    assert load(tmp_path / "my_second").name == "my_second"
    assert main(["import", "urdf", str(urdf), "-o", str(tmp_path), "--force"]) == 0
    kept = tmp_path / "urdf_arm" / "model.sdf.~1~"
    assert kept.read_bytes() == before + b"<!-- mine -->"
    assert main(["edit", str(urdf), "--port", "0"]) == 0
    # a report of old does not say what the file was
    report = tmp_path / "urdf_arm" / "import_report.json"
    data = json.loads(report.read_text())
    del data["source_file"]
    report.write_text(json.dumps(data))
    capsys.readouterr()
    assert main(["edit", str(urdf), "--port", "0"]) == 2
    assert "by a version that has not kept its content" in capsys.readouterr().err


def test_saved_changes_are_in_the_file(file, visit, capsys):
    def actions(page):
        page.session.change("move", move)
        page.save()

    visit(actions)
    assert main(["edit", str(file.parent), "--port", "0"]) == 0
    assert "unsaved" not in capsys.readouterr().out
    assert load(file).muscle("cable_1").path[1].position[0] == 0.123
    assert file.with_name("model.sdf.~1~").is_file()


def test_unsaved_changes_are_kept_until_somebody_decides(file, visit, capsys):
    before = file.read_bytes()

    def actions(page):
        page.session.change("move", move)
        page.session.new_muscle()

    visit(actions)
    assert main(["edit", str(file), "--port", "0"]) == 130
    said = capsys.readouterr().out
    assert f"{file}.unsaved" in said
    assert "--recover" in said
    assert "not finished: muscle muscle_1" in said
    assert file.read_bytes() == before
    assert main(["edit", str(file), "--port", "0"]) == 2
    assert "--recover to go on with them, or --discard" in capsys.readouterr().err
    visit(lambda page: page.save())
    file.write_bytes(file.read_bytes() + b"<!-- theirs -->")
    assert main(["edit", str(file), "--port", "0", "--recover"]) == 0
    assert "another program has changed it; Save keeps that" in capsys.readouterr().out
    assert file.with_name("model.sdf.~1~").read_bytes().endswith(b"<!-- theirs -->")
    assert load(file).muscle("cable_1").path[1].position[0] == 0.123
    assert not file.with_name("model.sdf.unsaved").exists()


def test_discarded_changes_are_gone(file, visit, capsys):
    before = file.read_bytes()
    visit(lambda page: page.session.change("move", move))
    assert main(["edit", str(file), "--port", "0"]) == 130
    visit(lambda page: None)
    assert main(["edit", str(file), "--port", "0", "--discard"]) == 0
    assert "deleted" in capsys.readouterr().out
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["model.sdf"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["roboy_ram"], "did you mean 'roboy_arm'"),
        (["stewart_gough"], "robot of rods"),
        (["planar_2r", "-o", "no/where.sdf"], "no is no folder"),
        (["planar_2r", "-o", "."], "is a folder"),
        (["planar_2r", "--recover"], "nothing to recover"),
        (["planar_2r", "--discard"], "nothing to discard"),
        (["planar_2r", "--recover", "--discard"], "not allowed with"),
        (["planar_2r", "--port", "70000"], "70000"),
        (["broken.sdf"], "broken.sdf:1"),
        (["broken.urdf"], "broken.urdf:1"),
        (["none.urdf"], "no such file"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.sdf").write_text("<sdf version='1.11'><model name='a'/></sdf>")
    (tmp_path / "broken.urdf").write_text("<robot name='a'/>")
    assert main(["edit", *words]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert "Traceback" not in found


def test_a_process_ends_at_a_signal_and_answers_until_then(file):
    process = subprocess.Popen(
        [sys.executable, "-m", "cards_bringup", "edit", str(file), "--port", "0"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        url = line.split()[0]
        with urllib.request.urlopen(url, timeout=30.0) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)  # impatience changes nothing
        assert process.wait(30.0) == 0
    finally:
        process.kill()
        process.stdout.close()
