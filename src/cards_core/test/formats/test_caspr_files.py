"""Finding models: folders, lists, wrong case."""

from __future__ import annotations

import pytest
from caspr_samples import SHARED, minimal, needs_caspr_models

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats.caspr import find_models, import_caspr
from cards_core.formats.caspr.files import existing_path, files_of


def row(name, folder, stem):
    parts = ("bodies", "cables", "trajectories", "operational_spaces")
    return ",".join([name, folder, *(f"{stem}_{part}.xml" for part in parts)])


def test_lists_and_folders(tmp_path):
    minimal(tmp_path / "models" / "MCDM" / "arm")
    minimal(tmp_path / "models" / "unlisted")
    lines = [row("My arm", "/MCDM/arm/", "robot"), "", row("Gone", "/MCDM/gone/", "gone")]
    (tmp_path / "models_list.csv").write_text("\n".join(lines) + "\n")
    found = find_models(tmp_path)
    assert [(item.name, item.line, item.files is not None) for item in found] == [
        ("My arm", 1, True),
        ("Gone", 3, False),
        ("robot", 0, True),
    ]
    assert found[1].problem == "no such folder"
    assert found[0].files.bodies == tmp_path / "models/MCDM/arm/robot_bodies.xml"
    assert import_caspr(found[0].files, feasibility=False).name == "robot"


def test_list_beside_the_folders(tmp_path):
    minimal(tmp_path / "arm")
    (tmp_path / "x_list.csv").write_text(row("Arm", "\\arm\\", "robot"))
    assert [item.files is not None for item in find_models(tmp_path)] == [True]


def test_wrong_case(tmp_path):
    minimal(tmp_path / "models" / "nist_robocrane")
    (tmp_path / "models_list.csv").write_text(row("NIST", "/NIST_RoboCrane/", "Robot"))
    (found,) = find_models(tmp_path)
    assert found.files is not None
    assert found.files.cables.name == "robot_cables.xml"
    model = import_caspr(tmp_path / "Models" / "NIST_ROBOCRANE", feasibility=False)
    assert model.name == "robot"


def test_ambiguous_case_is_not_guessed(tmp_path):
    (tmp_path / "Arm").mkdir()
    (tmp_path / "ARM").mkdir()
    if len(list(tmp_path.iterdir())) == 2:  # the file system tells them apart
        assert existing_path(tmp_path / "arm") is None
    assert existing_path(tmp_path / "Arm") == tmp_path / "Arm"


def test_files_missing_in_the_folder(tmp_path):
    folder = minimal(tmp_path / "models" / "arm")
    (folder / "robot_cables.xml").unlink()
    (tmp_path / "models_list.csv").write_text(row("Arm", "/arm/", "robot"))
    listed, lone = find_models(tmp_path)
    assert listed.files is None
    assert "robot_cables.xml" in listed.problem
    assert lone.files is None
    assert "robot_cables.xml" in lone.problem


def test_several_models_in_a_folder(tmp_path):
    minimal(tmp_path)
    for part in ("bodies", "cables"):
        text = (tmp_path / f"robot_{part}.xml").read_text()
        (tmp_path / f"other_{part}.xml").write_text(text)
    with pytest.raises(UnknownNameError, match="Known: other, robot"):
        import_caspr(tmp_path)
    assert import_caspr(tmp_path, name="other", feasibility=False).name == "other"
    assert files_of(tmp_path / "other_bodies.xml").name == "other"


@pytest.mark.parametrize("where", ["nothing", "file.txt", "", "a\0b", "x" * 5000])
def test_no_model_there(tmp_path, where):
    (tmp_path / "file.txt").write_text("hello")
    with pytest.raises(CardsError):
        import_caspr(str(tmp_path / where))


def test_no_root(tmp_path):
    with pytest.raises(CardsError, match="no such folder"):
        find_models(tmp_path / "x")


def test_bad_list(tmp_path):
    (tmp_path / "a_list.csv").write_text("one,two\n")
    with pytest.raises(DescriptionError, match=r"a_list.csv:1: 2 columns"):
        find_models(tmp_path)
    (tmp_path / "a_list.csv").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(DescriptionError, match=r"a_list\.csv"):
        find_models(tmp_path)


@needs_caspr_models
def test_caspr_s_lists():
    rows = find_models(SHARED)
    listed = sum(len(path.read_text().strip().splitlines()) for path in SHARED.glob("*_list.csv"))
    there = {item.files.bodies for item in rows if item.files}
    assert len(rows) == listed  # every folder is in a list
    assert there == set(SHARED.rglob("*_bodies.xml"))
    gone = [item for item in rows if not item.files]
    assert gone
    assert all(item.problem for item in gone)
    # listed as Myorob_shoulder, the folder is myorob_shoulder
    assert next(r for r in rows if r.name == "Myorob shoulder").files is not None
