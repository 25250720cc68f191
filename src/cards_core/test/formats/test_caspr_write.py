"""Writing an import: all files or none; the report; repairs that keep the motion."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from caspr_samples import bodies, cable, cables, link, minimal

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import caspr, load
from cards_core.formats.caspr import import_caspr, write_import
from cards_core.formats.caspr.muscles import REMARKS
from cards_core.formats.imports.inertias import repair_for_motion, turning_axes
from cards_core.formats.imports.units import CODE
from cards_core.robot import inertia_problem
from cards_core.robot.elements import Inertia
from cards_core.spatial import axis_rotation


@pytest.fixture
def model(tmp_path):
    return import_caspr(minimal(tmp_path / "in"))


def test_files(model, tmp_path):
    folder = write_import(model, tmp_path / "deep" / "out")
    assert folder == tmp_path / "deep" / "out" / "robot"
    assert sorted(item.name for item in folder.iterdir()) == [
        "import_report.json",
        "import_report.md",
        "model.config",
        "model.sdf",
        "trajectories.yaml",
    ]
    assert [item.name for item in folder.parent.iterdir()] == ["robot"]  # nothing left behind
    assert load(folder).name == "robot"
    assert "<name>robot</name>" in (folder / "model.config").read_text()
    assert json.loads((folder / "import_report.json").read_text())["name"] == "robot"


def test_never_overwrites_without_force(model, tmp_path):
    folder = write_import(model, tmp_path)
    (folder / "note.txt").write_text("mine")
    with pytest.raises(CardsError, match="--force"):
        write_import(model, tmp_path)
    assert (folder / "note.txt").read_text() == "mine"
    write_import(model, tmp_path, force=True)
    assert (folder / "note.txt").read_text() == "mine"


def test_force_replaces_imports_only(model, tmp_path):
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot" / "thesis.tex").write_text("three years")
    with pytest.raises(CardsError, match="not made by an import"):
        write_import(model, tmp_path, force=True)
    assert (tmp_path / "robot" / "thesis.tex").is_file()


@pytest.mark.parametrize(
    "step", ["write_model", "trajectory_files", "read_sdf", "load_references"]
)
def test_nothing_is_left_half_written(model, tmp_path, monkeypatch, step):
    """Whatever fails on the way, an earlier import stays as it was."""
    folder = write_import(model, tmp_path / "out")
    before = {item.name: item.read_bytes() for item in folder.iterdir()}

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"cards_core.formats.caspr.writer.{step}", fail)
    with pytest.raises(CardsError, match="No space left"):
        write_import(model, tmp_path / "out", force=True)
    with pytest.raises(CardsError):
        write_import(model, tmp_path / "new")
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["robot"]
    assert not (tmp_path / "new").exists()  # it was made for nothing


def test_the_old_import_comes_back_if_the_new_one_cannot_be_put_in_place(
    model, tmp_path, monkeypatch
):
    import os

    folder = write_import(model, tmp_path / "out")
    real = os.rename

    def rename(a, b):
        if str(a).endswith("/robot") and b == folder and "replaced" not in str(a):
            raise OSError(1, "Operation not permitted")
        real(a, b)

    monkeypatch.setattr("cards_core.formats.imports.folder.os.rename", rename)
    with pytest.raises(CardsError, match="not permitted"):
        write_import(model, tmp_path / "out", force=True)
    assert (folder / "model.sdf").is_file()
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["robot"]


def test_target_that_cannot_be_made(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CardsError, match="file is no folder"):
        write_import(model, tmp_path / "file")


def test_inertia_that_cannot_be_repaired(tmp_path):
    text = bodies(link(1, "R_Y", mass=0))
    model = import_caspr(minimal(tmp_path / "in", bodies=text))
    with pytest.raises(DescriptionError, match="positive mass"):
        write_import(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unlimited_tension_cannot_be_written(tmp_path):
    text = cables({"m": [cable("c", [(0, "1 0 1"), (1, "0 0 1")], limits=(0, np.inf))]})
    model = import_caspr(minimal(tmp_path / "in", cables=text))
    assert model.robot.muscles[0].tension_max == np.inf
    with pytest.raises(DescriptionError, match="unlimited tension"):
        write_import(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Report ----------------------------------------------------------------------------------------


def test_report_states_what_it_found(tmp_path):
    text = bodies(link(1, "R_Y", inertia="0 0.2 0 0 0 0", com="0 0 0.5", q="9"))
    model = import_caspr(minimal(tmp_path, bodies=text))
    report = model.report
    assert {item.code for item in report.warnings} == {"home-outside-limits", "inertia-repaired"}
    assert report.findings.counts() == {"home-outside-limits": 1, "inertia-repaired": 1}
    data = json.loads(report.to_json())
    assert data["counts"]["warnings"] == 2
    assert data["inertia"]["repairs"][0]["link"] == "link_1"
    assert data["inertia"]["repairs"][0]["before"][1][1] == 0.2
    assert data["coordinates"] == [{"caspr": "link 1.t", "name": "link_1_joint", "index": 0}]
    for words in ("home-outside-limits", "robot_bodies.xml:6", "link_1_joint", "Warnings"):
        assert words in report.to_markdown()
    assert "2 warnings" in report.summary()


def test_equal_findings_are_counted(tmp_path):
    rope = "<cable_error>0.05</cable_error>"
    points = [(0, "1 0 1"), (1, "0 0 1")]
    text = cables({"m": [cable(str(k), points, properties=rope) for k in range(5)]})
    model = import_caspr(minimal(tmp_path, cables=text))
    (finding,) = [item for item in model.report.warnings if item.code == "unknown-element"]
    assert finding.count == 5
    assert "5 times" in str(finding)
    assert json.loads(model.report.to_json())["counts"]["warnings_by_code"]["unknown-element"] == 5


def test_every_code_is_documented():
    package = Path(caspr.__file__).parent
    page = Path(__file__).resolve().parents[4] / "docs" / "caspr.md"
    code = re.compile(r'^ +"([a-z]+(?:-[a-z]+)+)",$|(?:warn|note)\(\s*"([a-z-]+)"', re.MULTILINE)
    codes = {
        a or b for path in package.glob("*.py") for a, b in code.findall(path.read_text("utf-8"))
    }
    codes |= {*REMARKS, CODE}  # those depend on the kind of the cable; this is of all importers
    assert len(codes) > 25
    table = page.read_text("utf-8").split("| code | meaning |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table)) == codes


# Repair ----------------------------------------------------------------------------------------


def test_planar_repair_keeps_the_moment_that_matters(tmp_path):
    """Moments 0.01 about the joint axis and 0.1 across: impossible, but only 0.01 moves."""
    text = bodies(link(1, "R_X", inertia="0.01 0.01 0.5 0 0 0", com="0 0 0.2"))
    model = import_caspr(minimal(tmp_path, bodies=text))
    assert model.sdf_robot is not None
    repaired = model.sdf_robot.link("link_1").inertia
    assert inertia_problem(repaired) is None
    assert repaired.tensor[0, 0] == pytest.approx(0.01, rel=1e-12)
    assert model.report.inertia.mass_matrix_change < 1e-12
    dynamics = [make_dynamics(robot, "numeric") for robot in (model.robot, model.sdf_robot)]
    q, qd = np.array([0.3]), np.array([0.7])
    a, b = (d.update(q, qd) for d in dynamics)
    assert b.mass_matrix == pytest.approx(a.mass_matrix, rel=1e-12)
    assert b.gravity == pytest.approx(a.gravity, rel=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_repair_for_any_axis(seed):
    """Valid afterwards; u' I u kept whenever the axis is the only one and its moment positive."""
    rng = np.random.default_rng(seed)
    turn = axis_rotation(*_axis_angle(rng))
    moments = rng.uniform(0, 1, 3) * 10 ** rng.uniform(-3, 0, 3)
    inertia = Inertia(1.0, rng.normal(size=3), turn @ np.diag(moments) @ turn.T)
    u = rng.normal(size=3)
    u /= np.linalg.norm(u)
    one = repair_for_motion(inertia, u[None, :])
    assert inertia_problem(one) is None
    assert u @ one.tensor @ u == pytest.approx(u @ inertia.tensor @ u, rel=1e-9)
    assert (one.mass, one.com.tolist()) == (inertia.mass, inertia.com.tolist())
    for axes in (np.zeros((0, 3)), np.eye(3)):
        assert inertia_problem(repair_for_motion(inertia, axes)) is None


def _axis_angle(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis), rng.uniform(-3, 3)


def test_axes_that_links_turn_about(tmp_path):
    ball = {"q": "0 0 0", "q_min": "-1 -1 -1", "q_max": "1 1 1"}
    text = bodies(
        link(1, "P_XY", q="0 0", q_min="-1 -1", q_max="1 1"),
        link(2, "R_Y"),
        link(3, "R_Y"),
        link(4, "R_X"),
        link(5, "S_EULER_XYZ", parent=1, **ball),
    )
    model = import_caspr(minimal(tmp_path, bodies=text), feasibility=False)
    axes = turning_axes(model.robot.tree)
    assert [len(axes[f"link_{k}"]) for k in range(1, 6)] == [0, 1, 1, 3, 3]
    assert len(axes["base"]) == 0
    assert np.abs(axes["link_3"]) == pytest.approx(np.array([[0, 1, 0]]))
