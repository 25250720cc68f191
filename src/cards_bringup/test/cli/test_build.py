"""``./cards build``: report, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path

from cards_bringup import cli
from cards_core.formats import load
from cards_core.formats.locate import find_model

PRISM = Path(find_model("prism_3")).parent / "structure.yaml"


def test_reports_and_writes_a_model(tmp_path, capsys):
    folder = tmp_path / "models" / "mine"
    assert cli.main(["build", str(PRISM), "-o", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("prism_3: 3 bodies, 0.14293 kg, 9 cables, 18 degrees of freedom\n")
    assert "bottom0-top0" in out
    assert out.endswith(f"wrote {folder / 'model.sdf'}\n")
    assert len(load(folder).muscles) == 9


def test_replaces_a_model_only_if_told(tmp_path, capsys):
    line = ["build", str(PRISM), "-o", str(tmp_path)]
    assert cli.main(line) == 0
    (tmp_path / "model.sdf").write_text("mine")
    assert cli.main(line) == 2
    assert "exists already (expected: another name, or --force)" in capsys.readouterr().err
    assert (tmp_path / "model.sdf").read_text() == "mine"
    assert cli.main([*line, "--force"]) == 0
    assert (tmp_path / "model.sdf").read_text().startswith("<?xml")


def test_json_has_everything_and_nothing_is_written_without_a_folder(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["build", str(PRISM), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] is None
    assert list(tmp_path.iterdir()) == []
    assert sum(body["mass"] for body in found["bodies"]) == found["mass"]
    assert [cable["index"] for cable in found["cables"]] == list(range(9))
    assert found["cables"][0]["actuator"]["type"] == "winch"


def test_units_of_files_that_do_not_say_them_and_mistakes(tmp_path, capsys):
    file = tmp_path / "bar.yaml"
    file.write_text("nodes: {a: [0, 0, 0], b: [0, 10, 0]}\npair_groups: {rod: [[a, b]]}\n")
    heights = {}
    for unit in ("cm", "dm"):
        assert cli.main(["build", str(file), "--unit", unit, "--json"]) == 0
        nodes = json.loads(capsys.readouterr().out)["nodes"]
        heights[unit] = nodes["b"][2] - nodes["a"][2]
    assert abs(heights["cm"] - 0.1) < 1e-12
    assert abs(heights["dm"] - 1.0) < 1e-12
    file.write_text("nodes: {a: [0, 0, 0], a: [0, 10, 0]}\n")
    folder = tmp_path / "new"
    assert cli.main(["build", str(file), "-o", str(folder)]) == 2
    assert "bar.yaml:1: key 'a' appears twice" in capsys.readouterr().err
    assert not folder.exists()
