"""``./cards analyse`` of robots of rods: slices, force sensing, single poses."""

import itertools
import json
import shutil

import numpy as np
import pytest

from cards_bringup import cli
from cards_core.formats.locate import find_model


def run(capsys, monkeypatch, *words):
    """Run a command as the shell would; return exit code, standard output and error."""
    monkeypatch.setattr("sys.argv", ["cards", *words])
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def analyse(capsys, monkeypatch):
    return lambda *words: run(capsys, monkeypatch, "analyse", *words)


def test_a_slice_with_its_files(analyse, tmp_path):
    words = ("workspace", "planar_3efr", "--grid", "x=-0.2:0.2:5,y=-0.2:0.2:5", "--fix", "rz=0.1")
    code, out, _ = analyse(*words, "--plot", "--json", "--quiet", "--out", str(tmp_path / "s"))
    assert code == 0
    summary = json.loads(out)
    assert summary["points"] == 25
    assert summary["fixed"] == {"rz": 0.1}
    assert summary["statuses"]["OK"] > 5
    names = sorted(str(f.relative_to(tmp_path / "s")) for f in (tmp_path / "s").rglob("*.*"))
    expected = ["plots/slice.png", "plots/slice.svg", "result.csv", "result.npz", "summary.json"]
    assert names == expected
    code, out, _ = analyse("workspace", "planar_3efr", "--grid", "x=0:0.1:3", "--plot", "--quiet",
                           "--out", str(tmp_path / "line"))  # fmt: skip
    assert code == 0
    assert "reachable and stable" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("workspace", "stewart_gough"), "no points"),
        (("workspace", "stewart_gough", "--grid", "q=0:1:3"), "plate coordinate"),
        (("workspace", "stewart_gough", "--grid", "x=0:1"), "first:last:number"),
        (
            ("workspace", "stewart_gough", "--grid", "x=0:1:3", "--samples", "9"),
            "--samples is for",
        ),
        (("workspace", "stewart_gough", "--grid", "x=0:1:3", "--wrench", "1,2"), "6"),
        (("workspace", "planar_xy", "--grid", "x=0:1:3", "--near", "0.5"), "robots of rods alone"),
        (
            ("workspace", "stewart_gough", "--grid", "x=0:1:3", "--near", "7"),
            "argument --near: '7' (expected: a finite number >= 0 and < 1)",
        ),
        (("ik", "stewart_gough", "--q", "1"), "robots with muscles"),
        (("fk", "stewart_gough", "--joints", "1,2"), "expected: 6"),
        (("fk", "stewart_gough", "--q", "1,2"), "expected: 6"),
        (("fk", "planar_2r", "--q", "1,2"), "robots of rods alone"),
        (("stiffness", "stewart_gough", "--q", "1", "--joints", "1"), "one of them"),
        (("fk", "stewart_gough", "--q", "1", "--joints", "1"), "one of them"),
        (("stiffness", "stewart_gough", "--q", "1", "--pose", "x=0"), "one of them"),
        (("force-sensing", "planar_2r"), "has no rods"),
        (("force-sensing", "stewart_gough"), "nothing was measured"),
        (("force-sensing", "stewart_gough", "--shapes", "not/there.csv"), "not/there.csv"),
        (("force-sensing", "stewart_gough", "--simulate", "--trials", "0"), ">= 1"),
    ],
)
def test_what_cannot_be_meant_is_said(analyse, words, text):
    code, _, err = analyse(*words)
    assert code == 2
    assert text in err
    assert "Traceback" not in err


def test_inverse_and_direct_model_agree(analyse):
    # lengths of the reference solution: yaw of 10 degrees at (0.02, 0.02, 0.4) m
    pose = f"x=0.02,y=0.02,z=0.4,rz={float(np.radians(10.0))!r}"
    code, out, _ = analyse("ik", "stewart_gough", "--pose", pose, "--json")
    assert code == 0
    q = list(json.loads(out)["q"].values())
    lengths = [0.400631836, 0.410389864, 0.407213129, 0.403382077, 0.404877230, 0.414280825]
    np.testing.assert_allclose(q, lengths, atol=1e-8)
    joints = ",".join(map(repr, q))
    code, out, _ = analyse("fk", "stewart_gough", "--joints", joints, "--json")
    np.testing.assert_allclose(json.loads(out)["position"], [0.02, 0.02, 0.4], atol=1e-6)
    for kind in ("fk", "stiffness"):  # the name that other robots have for coordinates
        assert analyse(kind, "stewart_gough", f"--q={joints}", "--json")[0] == 0
    code, out, _ = analyse("stiffness", "stewart_gough", "--pose", pose)
    assert code == 0
    assert "eigenvalues of K" in out


def test_a_study_and_its_files(analyse, tmp_path):
    common = ("force-sensing", "planar_3rfr", "--noise", "2e-4", "--json", "--quiet")
    wrench = ("--simulate", "--wrench", "0.02,-0.03,0,0,0,0.002")
    code, out, _ = analyse(*common, *wrench, "--trials", "20", "--out", str(tmp_path))
    assert code == 0
    study = json.loads(out)["study"]
    assert study["expected_error2"] == 3
    assert 1.0 < study["mean_error2"] < 6.0
    assert (tmp_path / "force_sensing.png").stat().st_size > 10_000
    code, out, _ = analyse(*common, "--shapes", str(tmp_path / "shapes.csv"))
    assert code == 0
    found = json.loads(out)
    first = np.array(study["errors"][0]) + study["truth"]
    np.testing.assert_allclose(found["wrench"], first, atol=1e-9)
    assert found["p_value"] > 1e-3
    table = (tmp_path / "shapes.csv").read_text().replace("limb_2", "limb_9", 1)
    (tmp_path / "bad.csv").write_text(table)
    code, _, err = analyse(*common, "--shapes", str(tmp_path / "bad.csv"))
    assert code == 2
    assert "limb_9" in err


def test_rods_beyond_yield_are_told_by_every_kind(analyse):
    # from x = 0.107 on there are several equilibria: which one is found rounding decides
    code, out, _ = analyse("ik", "stewart_gough", "--pose", "x=0.106")
    assert code == 0
    assert out.startswith("stewart_gough: YIELD\n")
    for limb in ("limb_3", "limb_6"):  # each of them, with the amount and the limit
        (line,) = [line for line in out.splitlines() if line.startswith(f"limb '{limb}'")]
        assert "(1005 MPa), its material yields at 0.5 % (1000 MPa)" in line
    code, out, _ = analyse("ik", "stewart_gough", "--pose", "x=0.106", "--json", "--quiet")
    content = json.loads(out)
    assert content["status"] == "YIELD"
    told = [(item["status"], item["limb"]) for item in content["findings"]]
    assert told == [("YIELD", "limb_3"), ("YIELD", "limb_6")]
    assert max(content["stress"]) == pytest.approx(1.005e9, rel=1e-3)
    code, out, _ = analyse("ik", "stewart_gough", "--pose", "y=0.12", "--json", "--quiet")
    joints = ",".join(map(repr, json.loads(out)["q"].values()))
    for words in (("fk", "stewart_gough", f"--q={joints}"),
                  ("stiffness", "stewart_gough", "--pose", "x=0.106")):  # fmt: skip
        code, out, _ = analyse(*words, "--json", "--quiet")
        assert code == 0
        assert json.loads(out)["status"] == "YIELD"
    code, out, _ = analyse("ik", "stewart_gough", "--pose", "x=0.02", "--json", "--quiet")
    assert json.loads(out)["status"] == "OK"
    assert json.loads(out)["findings"] == []


def test_force_sensing_tells_of_rods_beyond_yield(analyse, tmp_path):
    _, out, _ = analyse("ik", "stewart_gough", "--pose", "x=0.106", "--json", "--quiet")
    content = json.loads(out)
    rows = zip(content["limbs"], content["base_wrenches"], strict=True)
    lines = [",".join([name, *map(repr, values)]) for name, values in rows]
    file = tmp_path / "bases.csv"
    file.write_text("\n".join(["limb,fx,fy,fz,mx,my,mz", *lines]) + "\n")
    q = ",".join(map(repr, content["q"].values()))
    words = ("force-sensing", "stewart_gough", "--q", q, "--bases", str(file), "--method", "bases")
    code, out, _ = analyse(*words, "--json")
    assert code == 0
    assert [item["limb"] for item in json.loads(out)["findings"]] == ["limb_3", "limb_6"]
    code, out, _ = analyse(*words)
    assert out.count("YIELD: limb '") == 2


def test_the_same_question_gets_the_same_bytes_whatever_the_clock_says(analyse, monkeypatch):
    words = ("ik", "stewart_gough", "--pose", "x=0.12", "--json", "--quiet")
    code, expected, _ = analyse(*words)
    assert code == 0
    hours = itertools.count(0, 3600)
    for name in ("perf_counter", "monotonic", "process_time"):
        monkeypatch.setattr(f"time.{name}", lambda: float(next(hours)))
    assert analyse(*words)[1] == expected


@pytest.mark.parametrize("kind", ["ik", "fk", "stiffness"])
def test_a_start_on_another_branch_than_the_description_is_told(analyse, tmp_path, kind):
    folder = tmp_path / "spatial_3pfr"
    shutil.copytree(find_model("spatial_3pfr").parent, folder)
    text = (folder / "rods.yaml").read_text().replace("  pose: [0, 0, 1.1, 0, 0, 0]", "  #")
    assert "initial:" in text
    text = text.replace("initial:", "initial:\n  q: [0.05, -0.08, 0.02]")
    (folder / "rods.yaml").write_text(text)
    code, out, _ = analyse(kind, str(folder), "--json", "--quiet")
    assert code == 0
    content = json.loads(out)
    assert content["status"] == "AMBIGUOUS"
    way = 1e3 * np.linalg.norm(np.array(content["position"]) - [0.0, 0.0, 1.1])
    assert way > 100.0
    assert f"stands {way:.1f} mm" in content["message"]
    _, out, _ = analyse("workspace", str(folder), "--grid", "z=1.09:1.1:2", "--quiet")
    assert f"stands {way:.1f} mm" in out
