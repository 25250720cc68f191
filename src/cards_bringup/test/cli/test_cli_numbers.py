"""Every option of every command: what is no number is refused, also in options yet to come."""

import argparse
import itertools
import sys
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_bringup.cli.analyse import KINDS
from cards_bringup.importers import IMPORTERS, import_parser
from cards_bringup.option_types import COUNT, SEED, Number, WholeNumber
from cards_bringup.vectors import vector
from cards_core.errors import ShapeError

BAD = ("nan", "inf", "-inf", "1e400", "", "one")

COMMANDS = [
    *([name] for name, (module, _) in cli.COMMANDS.items() if module and name != "analyse"),
    *(["analyse", kind] for kind in KINDS),
]

POINTS = ("q", "qd", "qdd")

WITH_NUMBERS = {
    **{("eval", name): ("planar_2r", f"--{name}=0.1,{{}}") for name in POINTS},
    **{
        ("analyse", kind, name): ("planar_2r", "--q=0,0", f"--{name}=0.1,{{}}")
        for kind in ("ik", "id", "fd", "interaction")
        for name in POINTS
    },
    **{
        ("analyse", kind, "tensions"): ("planar_2r", "--tensions={}")
        for kind in ("fd", "interaction", "stiffness")
    },
    **{
        ("analyse", kind, "wrench"): ("planar_2r", "--wrench=tip=0,0,{}")
        for kind in ("id", "interaction")
    },
    **{
        ("analyse", kind, name): ("stewart_gough", f"--{name}=0.4,0.4,0.4,0.4,0.4,{{}}")
        for kind, name in itertools.product(("fk", "stiffness"), ("q", "joints"))
    },
    **{
        ("analyse", kind, "pose"): ("stewart_gough", "--pose=x={}") for kind in ("ik", "stiffness")
    },
    **{
        ("analyse", kind, "wrench"): ("stewart_gough", "--wrench=0,0,{},0,0,0")
        for kind in ("ik", "fk", "stiffness")
    },
    ("analyse", "stiffness", "muscle_stiffness"): ("planar_2r", "--muscle-stiffness={}"),
    ("analyse", "stiffness", "axial_stiffness"): ("planar_2r", "--axial-stiffness={}"),
    ("analyse", "fk", "lengths"): ("planar_2r", "--lengths=1,1,1,{}"),
    ("analyse", "fk", "rates"): ("planar_2r", "--lengths=1,1,1,1", "--rates=1,1,1,{}"),
    ("analyse", "fk", "initial"): ("planar_2r", "--lengths=1,1,1,1", "--initial=0,{}"),
    ("analyse", "offsets", "first"): ("planar_2r", "--input=readings.csv", "--first=0,{}"),
    ("analyse", "force-sensing", "q"): ("stewart_gough", "--simulate", "--q=1,1,1,1,1,{}"),
    ("analyse", "force-sensing", "wrench"): (
        "stewart_gough", "--simulate", "--wrench=0,0,{},0,0,0"
    ),
    ("analyse", "workspace", "wrench"): (
        "stewart_gough", "--grid=x=0:0.1:2", "--wrench=0,0,{},0,0,0"
    ),
    **{
        ("analyse", kind, name): ("planar_2r", *more, f"--{name}={value}")
        for kind, more in (
            ("workspace", ("--condition=static", "--samples=2")),
            ("cable-function", ()),
        )
        for name, value in (
            ("grid", "joint_1={}:1:3"),
            ("range", "joint_1=-1:{}"),
            ("fix", "joint_1={}"),
        )
    },
    **{
        ("check", name): ("planar_2r", f"--{name}={value}")
        for name, value in (
            ("grid", "joint_1={}:1:3"),
            ("range", "joint_1=-1:{}"),
            ("fix", "joint_1={}"),
        )
    },
    ("analyse", "workspace", "rays"): ("planar_2r", "--condition=static", "--rays=joint_1=0:{}"),
    ("analyse", "workspace", "option"): (
        "planar_2r", "--condition=static", "--samples=2", "--option=tolerance={}"
    ),
    ("analyse", "cable-function", "option"): (
        "planar_2r", "--condition=static", "--samples=2", "--option=static.tolerance={}"
    ),
    ("demo", "controller_model"): (
        "planar_2r", "--no-ros", "--headless", "--controller-model=mass_factor={}"
    ),
    ("video", "size"): ("run", "--size={}x96"),
    ("calibrate", "q"): ("planar_2r", "--port=/dev/null", "--yes", "--q=0,{}"),
}  # fmt: skip
"""Options that are texts with numbers in them, with a command line that has a place for one."""

TEXTS = {
    "accept", "among", "at_home", "boards", "condition", "controller", "dask", "emit", "frame",
    "host",
    "group", "initial_guess", "input", "layout", "method", "metric", "model", "namespace", "ntrt",
    "output", "package", "params_file", "passive", "plan", "points", "port", "quantities",
    "reference", "robot", "scheduler", "settings", "steps", "trajectory", "trajectory_file",
    "terrain", "unit", "world", "cable_set", "compare",
}  # fmt: skip
"""Options that are texts without numbers."""


def parsers_of(words):
    """Yield the parser of a command."""
    parser = cli.make_parser(words[0], words[1:])
    for word in words:
        (choices,) = (
            action.choices
            for action in parser._actions
            if isinstance(action, argparse._SubParsersAction)
        )
        parser = choices[word]
    return parser


def options_of(monkeypatch):
    """Return every option of every command that takes a value: (words, action)."""
    found = []
    for words in COMMANDS:
        monkeypatch.setattr(sys, "argv", ["cards", *words])
        found += [(tuple(words), action) for action in parsers_of(words)._actions]
    for form in IMPORTERS:
        found += [(("import",), action) for action in import_parser(form)._actions]
    return [
        (words, action)
        for words, action in found
        if action.option_strings and action.nargs != 0 and action.choices is None
    ]


def run(monkeypatch, words, *arguments):
    """Run a command line; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["cards", *words, *arguments])
    return cli.main([*words, *arguments])


def test_all_numbers_have_the_one_type(monkeypatch):
    """A new option with ``type=float`` fails here: its type is `Number`."""
    names = {(*words, action.dest): action for words, action in options_of(monkeypatch)}
    assert len(names) > 100
    plain = [name for name, action in names.items() if action.type in (float, int)]
    assert not plain, "declare them with type=Number(...) or WholeNumber(...)"
    # a text is one of numbers, of which the tests below know, or of none
    texts = [name for name, action in names.items() if action.type in (None, str)]
    unknown = [name for name in texts if name not in WITH_NUMBERS and name[-1] not in TEXTS]
    assert not unknown, "add them to WITH_NUMBERS, or to TEXTS if there are no numbers in them"
    assert set(WITH_NUMBERS) <= set(texts)


def test_options_of_one_number(monkeypatch, capsys):
    seen = 0
    for words, action in options_of(monkeypatch):
        if not isinstance(action.type, Number):
            continue
        option = action.option_strings[-1]
        for value in BAD:
            if getattr(action.type, "infinite", False) and value in ("inf", "1e400"):
                continue
            assert run(monkeypatch, words, f"{option}={value}") == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert f"argument {'/'.join(action.option_strings)}: " in err.splitlines()[-1]
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("name", WITH_NUMBERS, ids=" ".join)
def test_numbers_in_texts(name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for value in BAD:
        *arguments, last = WITH_NUMBERS[name]
        shown = last.format(value)
        if value == "" and ",{}" in last:  # blanks may separate: that is a number less
            continue
        assert run(monkeypatch, name[:-1], *arguments, shown) == 2, shown
        out, err = capsys.readouterr()
        assert out == ""
        (line,) = err.splitlines()[-1:]
        assert "error: " in line
        told = shown.partition("=")[0], last.partition("=")[2].partition("=")[0]
        assert told[0] in line or f"option '{told[1].rpartition('.')[2]}'" in line, line
    assert not list(tmp_path.iterdir())


def test_a_number_and_its_range():
    share = Number(at_least=0.0, below=1.0)
    assert share("0.5") == 0.5
    for text in (*BAD, "1", "-0.1"):
        with pytest.raises(argparse.ArgumentTypeError) as caught:
            share(text)
        assert str(caught.value) == f"'{text}' (expected: a finite number >= 0 and < 1)"
    assert Number(above=0.0, infinite=True)("inf") == float("inf")


def test_several_numbers():
    assert vector("0.3,-0.5", "q").tolist() == [0.3, -0.5]
    assert vector(" 1  2 ", "q").tolist() == [1.0, 2.0]
    assert vector(None, "q") is None
    for text, problem in (
        ("1,nan", "'nan' (expected: a finite number)"),
        ("1,a", "'a' (expected: a finite number)"),
        (" , ", "no numbers (expected: e.g. 0.3,-0.5)"),
    ):
        with pytest.raises(ShapeError) as caught:
            vector(text, "q")
        assert str(caught.value) == f"--q '{text}': {problem}"


def test_an_empty_text_is_not_taken_for_no_option(monkeypatch, capsys):
    seen = 0
    for words, action in options_of(monkeypatch):
        if action.type not in (None, str, Path):
            continue
        assert run(monkeypatch, words, f"{action.option_strings[-1]}=") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "argument " in err.splitlines()[-1], err
        seen += 1
    assert seen > 50


def test_whole_numbers():
    assert (COUNT("20"), SEED("0"), WholeNumber(at_most=65535)("65535")) == (20, 0, 65535)
    for kind, text, limits in (
        (COUNT, "0", ">= 1"),
        (COUNT, "1.5", ">= 1"),
        (COUNT, "1_000", ">= 1"),
        (COUNT, "٣", ">= 1"),
        (COUNT, "1" * 5000, ">= 1"),
        (WholeNumber(at_most=65535), "65536", ">= 0 and <= 65535"),
    ):
        with pytest.raises(argparse.ArgumentTypeError) as caught:
            kind(text)
        assert str(caught.value) == f"'{text}' (expected: a whole number {limits})"
    with pytest.raises(argparse.ArgumentTypeError):
        SEED("-1")
