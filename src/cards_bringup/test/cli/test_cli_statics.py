"""``./cards analyse prestress`` and ``modes``: tables, JSON, files, refusals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cards_bringup.cli import main
from cards_core.formats.locate import find_model

PRISM = str(Path(find_model("prism_3")).parent / "structure.yaml")


@pytest.fixture
def cards(capsys, monkeypatch):
    """Run a command line; returns the exit code and what it printed."""

    def run(*words):
        # the parser of `analyse` looks at the program's arguments for the kind
        monkeypatch.setattr("sys.argv", ["cards", "analyse", *words])
        code = main(["analyse", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_prestress_of_a_structure_file_and_of_its_model(cards, tmp_path):
    code, out, err = cards("prestress", PRISM, "--mean", "10", "--out", str(tmp_path))
    assert (code, err) == (0, "")
    assert "states of self-stress: 1, infinitesimal mechanisms: 1" in out
    assert "6 rigid motions, 3 motions that move no cable" in out
    assert (tmp_path / "prestress.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((tmp_path / "prestress.json").read_text())
    code, out, _ = cards("prestress", "prism_3", "--mean", "10", "--json")
    printed = json.loads(out)
    assert code == 0
    np.testing.assert_allclose(printed["tensions"], stored["tensions"], rtol=1e-9)
    assert np.mean(printed["tensions"]) == pytest.approx(10.0)
    # force densities of a prism: verticals sqrt(3) times horizontals
    density = np.array(printed["tensions"]) / printed["lengths"]
    np.testing.assert_allclose(density[6:] / density[:3], math.sqrt(3), rtol=1e-9)
    rest = np.array(printed["lengths"]) - np.array(printed["tensions"]) / 1000.0
    np.testing.assert_allclose(printed["rest_lengths"], rest, atol=1e-12)


def test_a_shape_without_prestress_is_an_answer_and_settling_gives_one(cards):
    code, out, err = cards("prestress", "superball")
    assert (code, err) == (0, "")
    assert "no prestress: 'superball' has no self-stress in this shape" in out
    code, out, _ = cards("prestress", "superball", "--settle", "--json")
    found = json.loads(out)
    assert found["self_stress_states"] == 1
    assert found["settled"]["slack"] == []
    np.testing.assert_allclose(found["tensions"], 1.0, rtol=1e-6)


def test_modes(cards, tmp_path):
    code, out, err = cards("modes", PRISM, "--count", "4", "--out", str(tmp_path))
    assert (code, err) == (0, "")
    assert out.startswith("prism_3: stable, 9 modes\n")
    assert "... and 5 stiffer ones (--count)" in out
    assert (tmp_path / "modes.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((tmp_path / "modes.json").read_text())
    # the rest lengths of the file are a prestress of its shape: both ways are one
    mean = (6 * 7.833836628328904 + 3 * 20.0) / 9
    words = ("--prestress", "max_min", "--mean", str(mean), "--json")
    code, out, _ = cards("modes", "prism_3", *words)
    np.testing.assert_allclose(json.loads(out)["frequencies"], stored["frequencies"], rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prestress", "prism_3", "--min", "1"), "--min with max_min (expected: with least_norm)"),
        (("prestress", "prism_3", "--method", "least_norm", "--mean", "1"), "--mean with least"),
        (("modes", "prism_3", "--mean", "1"), "--mean without --prestress"),
        (("modes", "prism_3", "--gravity"), "falls: no cable is held by the world"),
        (("prestress", "planar_3rfr"), "planar_3rfr"),
        (("prestress", "nothing.yaml"), "nothing.yaml"),
    ],
)
def test_mistakes_have_a_line_of_explanation(cards, words, message):
    code, out, err = cards(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("modes", "tetrahedral_6"), "no cable is taut"),
        (("prestress", "tetrahedral_6", "--settle"), "no cable is taut"),
        (("modes", "superball", "--prestress", "max_min"), "no self-stress in this shape"),
    ],
)
def test_that_nothing_holds_it_is_an_answer(cards, words, message):
    code, out, err = cards(*words)
    assert (code, err) == (0, "")
    assert out.startswith(f"no {words[0]}: '{words[1]}'")
    assert message in out
    code, out, _ = cards(*words, "--json")
    assert code == 0
    assert message in json.loads(out)["problem"]


@pytest.mark.parametrize("kind", ["prestress", "modes"])
def test_help_has_examples(cards, kind):
    code, out, _ = cards(kind, "--help")
    assert code == 0
    assert f"./cards analyse {kind} structure.yaml" in out
