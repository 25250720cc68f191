"""Options of conditions on the command line: in every form that the docs give, and only once."""

import re
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_bringup.cli.analyse.point_options import assignments, option_values
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.errors import CardsError

DOCS = Path(__file__).resolve().parents[4] / "docs"

OPTIONS = [(name, item) for name, kind in CONDITIONS.items() for item in kind.options.parameters()]

FORMS = {
    "bool": [("true", True), ("false", False)],
    "integer": [("7", 7)],
    "double": [("5", 5.0), ("0.5", 0.5)],
    "string": [("tip", "tip")],
    "double[]": [("5", (5.0,)), ("5,0.5", (5.0, 0.5)), ("[5, 0.5]", (5.0, 0.5))],
    "string[]": [
        ("a:b", ("a:b",)),
        ("a:b,c:d", ("a:b", "c:d")),
        ('["a:b","c:d"]', ("a:b", "c:d")),
    ],
    "double[][]": [("[[5, 0.5], [1, 2]]", ((5.0, 0.5), (1.0, 2.0)))],
}
"""Texts of the documented forms of every type of option, with the value that each means."""


@pytest.mark.parametrize(("name", "item"), OPTIONS)
def test_every_option_takes_its_documented_forms(name, item):
    for text, value in [(c, c) for c in item.choices] or FORMS[item.type_name]:
        found = CONDITIONS[name].options.from_json(option_values([f"{item.name}={text}"]))
        assert getattr(found, item.name) == value, text


def test_the_tables_of_options_are_complete():
    documented = set()
    for file in ("conditions.md", "interference.md"):
        tables = re.findall(r"\| option \|.*\n((?:\|.*\n)+)", (DOCS / file).read_text())
        for row in "".join(tables).splitlines():
            documented |= set(re.findall(r"`(\w+)`", row.split("|")[1]))
    assert documented == {item.name for _, item in OPTIONS}


@pytest.mark.parametrize("lower", ["-5", "-5,-5", "[-5, -5]"])
def test_one_number_is_for_all_joints(monkeypatch, tmp_path, capsys, lower):
    line = [
        "analyse",
        "workspace",
        "planar_2r",
        "--condition",
        "wrench_feasible",
        "--samples",
        "3",
    ]
    line += ["--option", f"force_lower={lower}", "--option", "force_upper=5", "--json", "--quiet"]
    monkeypatch.setattr("sys.argv", ["cards", *line])
    monkeypatch.chdir(tmp_path)
    assert cli.main(line) == 0, capsys.readouterr().err
    assert '"points": 3' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "ik planar_3efr --pose x=0.05,x=0.06",
            "--pose x=0.06: 'x' is given twice, before as x=0.05",
        ),
        ("ik planar_3efr --pose x=0.05 --pose x=0.05", "--pose x=0.05: 'x' is given twice"),
        ("workspace planar_3efr --grid x=0:1:2,x=0:2:2", "--grid x=0:2:2: 'x' is given twice"),
        ("workspace planar_3efr --grid x=0:1:2 --fix x=1", "'x' is given twice, by --grid"),
        (
            "workspace planar_3efr --grid x=0:1:2 --fix rz=1,rz=2",
            "--fix rz=2: 'rz' is given twice",
        ),
        (
            "workspace ipanema_1 --condition static --grid x=0,platform_x=1",
            "'platform_x' is given twice",
        ),
        (
            "workspace ipanema_1 --condition static --grid x=0 --fix x=1",
            "'platform_x' is given twice, by --grid",
        ),
        (
            "workspace ipanema_1 --condition static --rays x=0:1 --fix x=1",
            "given twice, by --fix and --rays",
        ),
        (
            "workspace ipanema_1 --condition static --rays x=0:1,x=0:2",
            "'platform_x' is given twice",
        ),
        (
            "workspace ipanema_1 --condition static --samples 2 --range x=0:1,x=0:2",
            "'platform_x' is given twice, before as x=0:1",
        ),
        (
            "workspace ipanema_1 --condition static --samples 2 --option tolerance=1 "
            "--option tolerance=2",
            "--option tolerance=2: 'tolerance' is given twice",
        ),
        ("cable-function planar_2r --fix joint_1=1,joint_1=2", "'joint_1' is given twice"),
        ("cable-function planar_2r --group a=cable_1 --group a=cable_2", "is given twice"),
    ],
)
def test_what_is_given_twice_is_an_error(monkeypatch, capsys, line, words):
    arguments = ["analyse", *line.split()]
    monkeypatch.setattr("sys.argv", ["cards", *arguments])
    assert cli.main(arguments) == 2
    assert words in capsys.readouterr().err


def test_controller_models_given_twice(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    line = ["demo", "planar_2r", "--no-ros", "--headless", "--controller-model"]
    assert cli.main([*line, "mass_factor=1.1,mass_factor=1.2"]) == 2
    assert "'mass_factor' is given twice" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_assignments():
    found = assignments(["a=1, b = 2:3", "c=4"], "--x", "a=1", str.upper)
    assert found == [("A", "a", "1"), ("B", "b", "2:3"), ("C", "c", "4")]
    with pytest.raises(CardsError, match=r"--x A=2: 'A' is given twice, before as a=1"):
        assignments(["a=1,A=2"], "--x", "a=1", str.upper)
