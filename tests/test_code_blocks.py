"""Code blocks of README.md and docs/*.md do what they say.

The blocks of a page run in their order, in a folder of their own. Python blocks of a page share
their names. Lines of shell blocks with ``./cards`` run in this process, shortened by `SHORTER`;
those of `PARSED_ONLY` are parsed, so that their options exist. A file name in backticks on a line
before a block makes it a file; a ``diff`` block below one edits it. HTML comments before a block:

    <!-- not run: REASON -->     the block is left out
    <!-- setup                   Python that runs before the block and that readers do not see
    robot = cards.load(...)
    -->
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from cards_bringup.cli import COMMANDS, main, make_parser, resolved
from cards_core.formats.locate import find_model, has_rods, known_models
from cards_core.shared_files import checkout

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(checkout() is None, reason="needs the checkout"),
]

TOP = checkout() or Path()
PAGES = [
    "README.md",
    "examples/README.md",
    *(f"docs/{f.name}" for f in (TOP / "docs").glob("*.md")),
]
OWN_TEST = {"docs/tutorial_own_robot.md": "test_tutorial_own_robot.py"}

BLOCK = re.compile(
    r"(?:^`(?P<file>[\w./-]+)`\n\n)?"
    r"^(?P<indent> *)```(?P<language>[a-z]+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"<!-- not run: (?P<reason>[^\n]+) -->\n*\Z")
SETUP = re.compile(r"<!-- setup\n(?P<code>(?:(?!-->).)*)-->\n*\Z", re.DOTALL)

OTHER_PROGRAMS = {
    "apt": "changes the machine",
    "cat": "looks at the machine",
    "cd": "a folder of another place",
    "colcon": "builds the workspace: .ci/run does",
    "docker": "needs Docker",
    "echo": "writes a rule of the machine",
    "export": "a variable of the shell",
    "git": "needs the network",
    "for": "a loop around ros2",
    "gz": "needs Gazebo",
    "make": "builds the firmware: its tests do",
    "openocd": "needs a board",
    "pip": "needs the network",
    "plotjuggler": "another program",
    "pre-commit": "not in .venv",
    "printf": "writes a file of the reader",
    "python": "trains for long",
    "ros2": "needs an installed ROS 2",
    "ruff": ".ci/run does",
    "mypy": ".ci/run does",
    "sed": "writes a file of the reader",
    "source": "needs an installed ROS 2",
    "sudo": "changes the machine",
}
"""Programs whose lines are left out, and why."""

PARSED_ONLY = [
    (r"--hil|--firmware|--boards", "the firmware in an emulator: test_hil.py"),
    (r"^\./cards demo \w+( --headless| --no-ros)*$", "test_every_robot.py does"),
    (r"gazebo", "needs Gazebo"),
    (r"/dev/|monitor|calibrate", "needs a robot"),
    (r"path/to|CASPR|BMArm|MyRobot|tcp://|other_run|RUN|SuperBall", "a file of the reader"),
    (r"field.png|gait/", "a file of the reader"),
    (r"^\./cards (bench|learn|reproduce)\b", "takes long; has tests of its own"),
    (r"^\./cards (show|edit|docs|test|setup|doctor)\b", "a server, or changes the machine"),
    (r"--cluster|--workers", "processes"),
]
"""Lines that are parsed and not run: pattern and reason."""

SHORTER = [
    (r"(=[-\d.]+:[-\d.]+):\d+", r"\1:3"),  # points of a grid
    (r"--(samples|trials|starts)[= ]\d+", r"--\1 20"),
    (r"--rays[= ](\S*):\d+", r"--rays \1:3"),
]
"""What is replaced in a line so that it takes less time."""

DEMO = ["--headless", "--no-ros"]
"""Added to demos: nobody watches."""

FAST = ["--mode", "as_fast_as_possible"]
"""Added to demos of robots that have a mode."""

SHORT = ["--duration", "0.05"]
"""Added too, except in `TUTORIALS`."""

TUTORIALS = {
    "docs/tutorial_own_controller.md": 0.05,
    "docs/tutorial_cad.md": 1e-3,
    "docs/tutorial_caspr.md": 1e-3,
}
"""Pages whose runs are complete, and their largest error, [rad] or [m]."""


DRAWN = {"README.md", *TUTORIALS}
"""Pages whose figures are drawn; on the others the files of figures are empty ones, which takes a
third of the time. What figures show has tests of its own."""

ROD_ROBOTS = {name for name in known_models() if has_rods(find_model(name))}

SHORTER_PYTHON = [
    (r"(simulate\(.*duration=)[\d.]+", r"\g<1>0.05"),
    (r"(\.time < )[\d.]+", r"\g<1>0.02"),
]
"""The same for blocks of Python."""


RAN: set[str] = set()
"""Lines that an earlier page of this process ran."""


@dataclass(frozen=True)
class Block:
    """A block of a page, and what is said of it before."""

    line: int
    language: str
    file: str | None
    text: str
    reason: str | None
    setup: str | None


def blocks(page: str) -> list[Block]:
    text = (TOP / page).read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        before = text[: match.start()]
        mark, setup = MARK.search(before), SETUP.search(before)
        indent = len(match["indent"])
        lines = [line[indent:] for line in match["text"].splitlines(keepends=True)]
        found.append(
            Block(
                before.count("\n") + 1,
                match["language"],
                match["file"],
                "".join(lines),
                mark["reason"] if mark else None,
                setup["code"] if setup else None,
            )
        )
    return found


def shell_lines(text: str) -> list[list[str]]:
    """Words of each command; lines that end with a backslash go on."""
    out = []
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s&&\s|\s\|\s.*", line):
            words = shlex.split(part, comments=True)
            if words:
                out.append(words)
    return out


def run_shell(text: str, where: str, demo: list[str]) -> None:
    for words in shell_lines(text):
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words.pop(0)  # variables
        program = os.path.basename(words[0])
        if program != "cards":
            known = program in OTHER_PROGRAMS or words[0].startswith((".venv", ".ci"))
            assert known, f"{where}: {words}"
            continue
        run_cards(words[1:], where, demo)


def run_cards(arguments: list[str], where: str, demo: list[str]) -> None:
    arguments = resolved(arguments)
    line = " ".join(["./cards", *arguments])
    if arguments[:1] == ["COMMAND"] or "--help" in arguments:
        return
    assert arguments[0] in COMMANDS, f"{where}: {line}"
    if any(re.search(pattern, line) for pattern, _ in PARSED_ONLY):
        parse(arguments, f"{where}: {line}")
        return
    for pattern, instead in SHORTER:
        line = re.sub(pattern, instead, line)
    if line in RAN:
        return
    if not re.search(r" (-o|--out) ", line):  # with them it makes what later blocks read
        RAN.add(line)
    arguments = shlex.split(line)[1:]
    if arguments[0] == "check":
        arguments = with_options(arguments, ["--samples", "20"])
    if arguments[0] == "demo":
        if "--out" in arguments:  # a page may show the same folder twice
            shutil.rmtree(arguments[arguments.index("--out") + 1], ignore_errors=True)
        rods = len(arguments) > 1 and arguments[1] in ROD_ROBOTS
        arguments = with_options(arguments, demo if rods else demo + FAST)
    # a check may answer no
    assert main(arguments) in ((0, 1) if arguments[0] == "check" else (0,)), f"{where}: {line}"


def with_options(arguments: list[str], options: list[str]) -> list[str]:
    """Options replaced or added; those that follow without ``--`` are their values."""
    out = list(arguments)
    for i, option in enumerate(options):
        if not option.startswith("--"):
            continue
        value = [one for one in options[i + 1 : i + 2] if not one.startswith("--")]
        if option in out:
            place = out.index(option)
            out[place : place + 1 + len(value)] = []
        out += [option, *value]
    return out


def parse(arguments: list[str], where: str) -> None:
    if COMMANDS[arguments[0]][0] is None:
        return  # setup, which has no parser
    try:
        parsed = make_parser(arguments[0], arguments[1:]).parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{where}: not understood")
    assert isinstance(parsed, argparse.Namespace)


def apply(file: Path, change: str) -> None:
    lines = change.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
    text = file.read_text()
    assert text.count(before) == 1, f"{file.name}: {before}"
    file.write_text(text.replace(before, after))


@pytest.fixture
def figures(monkeypatch):
    """Return what replaces figures by empty ones when they are saved."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    save = Figure.savefig

    def empty(self, *arguments, **options):
        del self
        save(Figure(figsize=(0.2, 0.2)), *arguments, **options)

    return lambda: monkeypatch.setattr(Figure, "savefig", empty)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that looks like the checkout, where results may go."""
    for name in ("models", "config", "worlds", "examples"):
        (tmp_path / name).mkdir()
        for file in (TOP / name).iterdir():
            (tmp_path / name / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and page not in OWN_TEST])
def test_blocks_run(page, folder, figures):
    if page not in DRAWN:
        figures()
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        where = f"{page}:{block.line}"
        if block.reason is not None:
            continue
        if block.setup is not None:
            exec(compile(block.setup, f"{where} setup", "exec"), names)
        if block.language == "diff":
            assert block.file, f"{where}: an edit of what?"
            apply(folder / block.file, block.text)
        elif block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
        elif block.language == "python":
            code = block.text
            for pattern, instead in SHORTER_PYTHON:
                code = re.sub(pattern, instead, code)
            exec(compile(code, where, "exec"), names)
        elif block.language in ("bash", "sh"):
            run_shell(block.text, where, DEMO if page in TUTORIALS else DEMO + SHORT)
    if page in TUTORIALS:
        summaries = [json.loads(file.read_text()) for file in folder.glob("runs/*/summary.json")]
        for summary in (one for one in summaries if "verdict" in one):
            assert summary["verdict"] == "ok"
            assert summary["warnings"] == []
            errors = [summary[f"joint_error_max_{unit}"] for unit in ("rad", "m")]
            known = [error for error in errors if error is not None]
            assert known
            assert max(known) < TUTORIALS[page]
        assert summaries


def test_every_block_says_its_language():
    for page in PAGES:
        for block in blocks(page):
            assert block.language in ("bash", "python", "xml", "yaml", "toml", "diff", "text"), (
                page
            )
