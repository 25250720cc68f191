"""``cards analyse ik|fk|id|fd|stiffness|interaction``: the kinds feed each other; mistakes."""

import csv
import json

import numpy as np
import pytest

STATE = ("--q=0.3,-0.5", "--qd=0.4,0.2", "--qdd=0.5,-0.3")
"""The state of CASPR's Example_2R_planar_XZ whose numbers are published."""


@pytest.fixture(scope="module")
def analyse(cards):
    """Run ``cards analyse ARGS --json``; returns what it prints."""

    def run(*arguments):
        result = cards("analyse", *arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


def columns(path):
    with open(path, newline="") as file:
        head, *rows = list(csv.reader(file))
    return {name: [row[i] for row in rows] for i, name in enumerate(head)}


def test_lengths_of_a_pose(analyse):
    found = analyse("ik", "planar_2r", *STATE)
    assert found["status"] == ["FEASIBLE"]
    expected = [0.75369104, 2.16708168, 1.0202365, 2.3073754]
    np.testing.assert_allclose(found["l"], [expected], atol=1e-7)
    assert found["names"]["l"] == ["cable_1", "cable_2", "cable_3", "cable_4"]


def test_published_tensions(analyse):
    found = analyse("id", "planar_2r", *STATE)
    expected = [10, 16.98003952, 37.54627344, 10]
    np.testing.assert_allclose(found["f"], [expected], atol=1e-3)
    assert found["method"] == "least_norm"


def test_kinds_feed_each_other(cards, analyse, tmp_path):
    """Trajectory -> lengths -> poses -> tensions -> accelerations -> stiffness -> joints."""
    motion = analyse(
        "ik", "planar_2r", "--trajectory", "there_and_back", "--step", "0.5", "--out",
        str(tmp_path / "ik"),
    )  # fmt: skip
    assert motion["time"][-1] == 8.0
    assert {file.name for file in (tmp_path / "ik").iterdir()} == {"ik.npz", "ik.csv", "ik.png"}
    for ending in ("csv", "npz"):
        poses = analyse("fk", "planar_2r", "--input", str(tmp_path / "ik" / f"ik.{ending}"))
        np.testing.assert_allclose(poses["q"], motion["q"], atol=1e-9)
        np.testing.assert_allclose(poses["qd"], motion["qd"], atol=1e-8)
        assert poses["time"] == motion["time"]
    tensions = analyse(
        "id", "planar_2r", "--input", str(tmp_path / "ik" / "ik.csv"), "--method", "barycentre",
        "--out", str(tmp_path / "id"),
    )  # fmt: skip
    assert set(tensions["status"]) == {"FEASIBLE"}
    table = columns(tmp_path / "id" / "id.csv")
    assert [float(x) for x in table["f/cable_2"]] == [row[1] for row in tensions["f"]]
    assert set(table["status"]) == {"FEASIBLE"}
    accelerations = analyse("fd", "planar_2r", "--input", str(tmp_path / "id" / "id.npz"))
    np.testing.assert_allclose(accelerations["qdd"], motion["qdd"], atol=1e-8)
    joints = analyse("interaction", "planar_2r", "--input", str(tmp_path / "id" / "id.npz"))
    np.testing.assert_allclose(joints["imbalance"], 0.0, atol=1e-9)
    stiff = analyse("stiffness", "planar_2r", "--input", str(tmp_path / "id" / "id.npz"))
    np.testing.assert_allclose(stiff["f"], tensions["f"])
    assert len(stiff["verdict"]) == len(motion["q"])


def test_an_operational_trajectory(analyse):
    """The hand follows the flower: checked through the lengths' rates."""
    found = analyse("ik", "roboy_arm", "--trajectory", "flower", "--step", "0.01")
    lengths, rates = np.array(found["l"]), np.array(found["ld"])
    numeric = (lengths[2:] - lengths[:-2]) / 0.02
    np.testing.assert_allclose(rates[1:-1], numeric, atol=2e-4)


def test_all_methods_side_by_side(cards, analyse):
    table = cards("analyse", "id", "ipanema_1", "--method", "all")
    assert table.returncode == 0, table.stderr
    assert "barycentre" in table.stdout
    found = analyse("id", "roboy_arm", "--method", "all")
    assert "analytic_centre" in found["not_possible"]["barycentre"]
    assert found["status"] == ["FEASIBLE"] * 10


def test_a_fall_keeps_its_energy(analyse, tmp_path):
    found = analyse(
        "fd", "planar_2r", "--q=0.3,-0.5", "--tensions", "20", "--duration", "0.2",
        "--max-step", "1e-4", "--out", str(tmp_path),
    )  # fmt: skip
    assert found["end"] == "FEASIBLE"
    assert found["energy_error"] < 1e-6
    assert len(found["time"]) == 21


def test_stiffness_and_joint_loads(analyse):
    found = analyse("stiffness", "planar_xy", "--tensions", "100", "--axial-stiffness", "1e5")
    assert found["verdict"] == ["stable"]
    matrix = np.array(found["K"]).reshape(3, 3)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6)
    heavy = analyse("interaction", "planar_2r", "--wrench", "tip=0,0,-5")
    plain = analyse("interaction", "planar_2r")
    base = heavy["names"]["force"].index("base_to_world.z")
    assert heavy["status"] == ["FEASIBLE"]
    # all cables begin at the base, so the ground holds up the weight at the tip and no more
    difference = heavy["force"][0][base] - plain["force"][0][base]
    assert difference == pytest.approx(5.0, abs=1e-9)


def test_bad_points_have_a_status(analyse, tmp_path):
    (tmp_path / "q.csv").write_text("joint_1,joint_2\n0.1,0.2\nnan,0\n3.2,0\n")
    found = analyse("ik", "planar_2r", "--input", str(tmp_path / "q.csv"))
    assert found["status"] == ["FEASIBLE", "NOT_FINITE", "OUTSIDE_LIMITS"]
    assert found["l"][1] == [None] * 4
    found = analyse("id", "planar_2r", "--input", str(tmp_path / "q.csv"))
    assert found["status"][1:] == ["NOT_FINITE", "OUTSIDE_LIMITS"]
    found = analyse("interaction", "planar_2r", "--input", str(tmp_path / "q.csv"))
    assert found["status"][1:] == ["NOT_FINITE", "OUTSIDE_LIMITS"]
    found = analyse("fk", "planar_2r", "--lengths=9,9,9,9")
    assert found["status"] == ["UNREACHABLE"]
    found = analyse("id", "planar_2r", "--qdd=1e4,0")
    assert found["status"] == ["INFEASIBLE"]


@pytest.mark.parametrize("kind", ["ik", "fk", "id", "fd", "stiffness", "interaction"])
def test_help_has_examples(cards, kind):
    result = cards("analyse", kind, "--help")
    assert result.returncode == 0
    assert f"./cards analyse {kind}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ik", "planar_2r", "--q=1"), "expected (2,)"),
        (("ik", "planar_2r", "--q=1,2", "--trajectory", "there_and_back"), "one of them"),
        (("ik", "planar_2r", "--trajectory", "there"), "there_and_back"),
        (("ik", "planar_2r", "--trajectory-file", "a.yaml"), "without --trajectory"),
        (("ik", "planar_2r", "--trajectory", "there_and_back", "--qd=0,1"), "--qd and --traj"),
        (("ik", "planar_2r", "--input", "nothing.csv"), "does not exist"),
        (("ik", "planar_2r", "--out", "/dev/null"), "/dev/null cannot be written"),
        (("ik", "planar_2r", "--outt", "x"), "./cards analyse ik: error: unrecognized"),
        (("fk", "planar_2r"), "--lengths or --input"),
        (("fk", "planar_2r", "--lengths=1,2"), "expected (4,)"),
        (("id", "planar_2r", "--method", "best"), "least_norm"),
        (("id", "planar_2r", "--wrench", "tip"), "--wrench hand"),
        (("id", "planar_2r", "--wrench", "hand=0,0,1"), "tip"),
        (("id", "planar_2r", "--passive", "cable_1"), "ideal cable"),
        (("id", "roboy_arm", "--method", "barycentre"), "analytic_centre"),
        (("fd", "planar_2r", "--tensions", "1,2"), "cable_1"),
        (("fd", "planar_2r", "--tensions", "-5"), "tension pulls"),
        (("fd", "planar_2r", "--duration", "-1"), "> 0"),
        (("stiffness", "planar_2r", "--axial-stiffness", "x"), "--axial-stiffness 'x'"),
        (("cable-function", "planar_2r", "--samples=2", "--out", "/dev/null"), "be written"),
        (("stiffness", "planar_2r", "--muscle-stiffness", "1", "--axial-stiffness", "1"), "one"),
    ],
)
def test_mistakes(cards, arguments, message):
    result = cards("analyse", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_values_that_begin_with_a_minus(analyse):
    apart = analyse("ik", "planar_2r", "--q", "-0.3,-0.5")
    assert apart["q"] == analyse("ik", "planar_2r", "--q=-0.3,-0.5")["q"] == [[-0.3, -0.5]]


def test_units_are_those_of_the_joints(cards):
    turning = cards("analyse", "id", "planar_2r").stdout
    assert "coordinates [rad]" in turning
    assert "needed joint force [Nm]" in turning
    mixed = cards("analyse", "ik", "ipanema_1").stdout
    assert "platform_x [m]" in mixed
    assert "platform_yaw [rad]" in mixed
    ball = cards("analyse", "ik", "spherical_2s", "--qd=0.1,0,0,0,0,0").stdout
    assert "rad or m" not in mixed + turning + ball


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "joint_1"),
        ("joint_1\n1\n", "no column for joint_2"),
        ("joint_1,joint_2\n1,x\n", ":2: joint_2 is 'x'"),
        ("joint_1,joint_2\n1\n", ":2: 1 values (expected: 2, as the first line"),
        ("joint_1,joint_2\n1,2\n\n1,2,3\n", ":4: 3 values (expected: 2, as the first line"),
        ("joint_1,joint_1,joint_2\n1,1,1\n", "twice"),
    ],
)
def test_mistakes_in_tables(cards, tmp_path, text, message):
    file = tmp_path / "table.csv"
    file.write_text(text)
    result = cards("analyse", "ik", "planar_2r", "--input", str(file))
    assert result.returncode == 2
    assert message in result.stderr
