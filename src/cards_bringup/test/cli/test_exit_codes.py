"""One table of exit codes for all commands: in code, docs, help, and in what runs."""

import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cards_bringup import cli
from cards_bringup.cli import test as test_command
from cards_bringup.cli.analyse import KINDS
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.exit_codes import MEANING, UNANSWERED, ExitCode, of_answers, of_process
from cards_core.formats import load
from cards_core.rods.analysis.workspace_slice import SliceStatus
from cards_core.rods.status import RodStatus

TOP = Path(__file__).resolve().parents[4]

POSES = "joint_1,joint_2\n0.3,-0.5\n"
LOST = "q/joint_1,q/joint_2,l/cable_1,l/cable_2,l/cable_3,l/cable_4\nnan,0,nan,1,1,1\n"
SOME = LOST + "0.3,-0.5,0.75369104,2.16708168,1.0202365,2.3073754\n"
NAN = ("--input", "LOST")

CASES = {
    "ik": [
        (("planar_2r",), 0),
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--input", "SOME"), 0),
        (("planar_2r", "--input", "nowhere.csv"), 2),
        (("stewart_gough", "--pose", "x=0.02"), 0),
        (("stewart_gough", "--pose", "x=9"), 0),  # UNREACHABLE
    ],
    "fk": [
        (("planar_2r", "--lengths=0.75,2.17,1.02,2.31", "--tolerance", "0.1"), 0),
        (("planar_2r", "--lengths=9,9,9,9"), 0),  # UNREACHABLE
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--input", "SOME"), 0),
        (("planar_2r",), 2),
        (("stewart_gough", "--joints=0.41,0.41,0.4,0.4,0.41,0.42"), 0),
        (("stewart_gough", "--joints=9,9,9,9,9,9"), 0),  # LIMIT
    ],
    "id": [
        (("planar_2r",), 0),
        (("planar_2r", "--qdd=1e9,1e9"), 0),  # INFEASIBLE
        (("planar_2r", "--qdd=1e9,1e9", "--method", "all"), 0),
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--method", "no_such"), 2),
        (("planar_2r", "--wrench", "=1,2,3"), 2),
    ],
    "fd": [
        (("planar_2r", "--tensions", "20"), 0),
        (("planar_2r", "--tensions", "20", "--duration", "0.02"), 0),
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--tensions", "1,2,3"), 2),
    ],
    "stiffness": [
        (("planar_2r",), 0),
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--tensions", "-1"), 2),
        (("stewart_gough", "--pose", "x=0.02"), 0),
        (("stewart_gough", "--pose", "x=9"), 0),  # UNREACHABLE
    ],
    "interaction": [
        (("planar_2r",), 0),
        (("planar_2r", *NAN), 1),
        (("planar_2r", "--wrench", "tip=1"), 2),
    ],
    "workspace": [
        (("--list-conditions",), 0),
        (("planar_xy", "--condition", "wrench_closure", "--grid", "x=50:60:3"), 0),  # INFEASIBLE
        (("planar_2r", "--condition", "static", "--points", "LOST"), 1),
        (("planar_2r", "--condition", "static", "--points", "SOME"), 0),
        (("planar_2r", "--condition", "no_such", "--samples", "1"), 2),
        (("planar_3efr", "--grid", "x=0:0.01:2"), 0),
        (("planar_3efr", "--grid", "x=8:9:2"), 0),  # UNREACHABLE
    ],
    "prestress": [
        (("prism_3",), 0),
        (("superball",), 0),  # no self-stress
        (("prism_3", "--tolerance", "2"), 2),
    ],
    "modes": [
        (("prism_3",), 0),
        (("tetrahedral_6",), 0),  # no cable is taut
        (("planar_2r",), 2),
    ],
    "cable-function": [
        (("planar_2r", "--samples", "5"), 0),
        (("planar_2r", "--points", "LOST"), 1),
        (("planar_2r", "--condition", "no_such"), 2),
    ],
    "offsets": [
        (("planar_2r", "--input", "READINGS"), 0),
        (("planar_2r", "--input", "SOME"), 2),
    ],
    "force-sensing": [
        (("planar_3rfr", "--simulate", "--trials", "1"), 0),
        (("planar_3rfr",), 2),
    ],
}


@cache
def readings():
    """Return lengths of the cables of planar_2r in ten poses, as a table."""
    robot = load("planar_2r")
    dynamics, rng = make_dynamics(robot, "numeric"), np.random.default_rng(1)
    rows = [",".join(muscle.name for muscle in robot.muscles)]
    for q in [robot.tree.home, *(robot.tree.random(rng) for _ in range(9))]:
        lengths = dynamics.update(q, np.zeros(2)).muscle_lengths
        rows.append(",".join(map(repr, lengths.tolist())))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("line", "code"), [((k, *words), code) for k, cases in CASES.items() for words, code in cases]
)
def test_every_analysis(monkeypatch, capsys, tmp_path, line, code):
    monkeypatch.chdir(tmp_path)
    texts = {"LOST": LOST, "SOME": SOME, "READINGS": readings()}
    for name, text in texts.items():
        Path(f"{name}.csv").write_text(text)
    line = [f"{word}.csv" if word in texts else word for word in line]
    quiet = [] if line[0] == "offsets" else ["--quiet"]  # it takes no time
    line = ["analyse", *line, *quiet]
    monkeypatch.setattr("sys.argv", ["cards", *line])
    assert cli.main(line) == code, capsys.readouterr()
    assert bool(capsys.readouterr().err) is (code == 2)


def test_every_analysis_has_cases():
    assert set(CASES) == set(KINDS)
    for kind, cases in CASES.items():
        assert {0, 2} <= {code for _, code in cases}, kind


def test_documented_answers_are_answers():
    """Those that the docs of the analyses call answers, and no others."""
    points = {status.name for status in PointStatus}
    assert points & UNANSWERED == {
        "NOT_FINITE",
        "NO_MUSCLES",
        "UNPHYSICAL_INERTIA",
        "NOT_CONVERGED",
        "PATH_NOT_FOUND",
    }
    rods = {status.name for status in RodStatus}
    assert rods & UNANSWERED == {"NOT_FINITE", "NOT_CONVERGED", "INVALID"}
    assert {status.name for status in SliceStatus} & UNANSWERED == {"NOT_FOUND"}
    assert points | rods | {status.name for status in SliceStatus} >= UNANSWERED


def test_one_answer_is_enough():
    assert of_answers([]) == ExitCode.DONE
    assert of_answers(["NOT_CONVERGED", "NOT_FINITE"]) == ExitCode.FAILED
    assert of_answers(["NOT_CONVERGED", "INFEASIBLE"]) == ExitCode.DONE


def test_the_documented_table_is_that_of_the_code():
    text = (TOP / "docs" / "bringup.md").read_text()
    for code, meaning in MEANING.items():
        assert f"| {int(code)} | {meaning} |" in text
    assert set(MEANING) == set(ExitCode)


def test_the_help_shows_the_table(capsys):
    assert cli.main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for code, meaning in MEANING.items():
        assert f"{int(code)} {meaning}" in shown


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0], 0),
        ([1, 0], 1),
        ([0, 1], 1),
        ([2], 2),  # errors while tests were collected
        ([3], 2),  # an error within pytest
        ([4], 2),  # a wrong option
        ([5], 2),  # no tests
        ([ExitCode.INTERRUPTED], 130),
        ([-signal.SIGKILL], 137),
    ],
)
def test_exit_codes_of_pytest(codes, expected):
    assert test_command.exit_code(codes) == expected
    assert of_process(-signal.SIGTERM) == 143
