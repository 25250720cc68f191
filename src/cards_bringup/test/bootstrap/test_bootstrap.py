"""./cards before there is an environment: a bare Python, messages, exit codes."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_bringup.start import wants_help

pytestmark = pytest.mark.serial

TOP = Path(__file__).resolve().parents[4]
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable
ROS_VARIABLES = ("ROS_DISTRO", "ROS_VERSION", "AMENT_PREFIX_PATH", "PYTHONPATH", "LD_LIBRARY_PATH")


def bare_environment(**more):
    drop = (*ROS_VARIABLES, "_ROS_WHEELS_BOOTSTRAP_COMPLETE", "CARDS_VENV")
    kept = {key: value for key, value in os.environ.items() if key not in drop}
    return {**kept, **more}


def run_cards(*arguments, program=TOP / "cards", cwd=None, **variables):
    """Run ./cards with a Python that sees no installed package."""
    return subprocess.run(
        [BASE_PYTHON, "-S", str(program), *arguments],
        env=bare_environment(**variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path):
    """Copy what ./cards needs to a folder with a blank in its name."""
    top = tmp_path / "my robots" / "cards"
    for package in ("cards_core", "cards_ros", "cards_bringup"):
        shutil.copytree(
            TOP / "src" / package / package,
            top / "src" / package / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(TOP / "cards", top / "cards")
    (top / "requirements").mkdir()
    for name in ("runtime", "ros", "test"):
        (top / "requirements" / f"{name}.txt").write_text("# nothing\n")
    return top


def test_program_can_be_parsed_by_a_python_that_is_too_old():
    ast.parse((TOP / "cards").read_text(), feature_version=(3, 4))


def test_old_python_gets_one_line_and_exit_code_2(tmp_path):
    # the program as it is, run by a Python that believes it is 3.8 and finds no other
    script = (
        "import sys, runpy\n"
        "sys.version_info = (3, 8, 10, 'final', 0)\n"
        f"sys.argv = ['cards', 'demo']\n"
        f"runpy.run_path({str(TOP / 'cards')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [BASE_PYTHON, "-S", "-c", script],
        env=bare_environment(PATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Python 3.8 is too old" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_needs_no_environment(checkout):
    done = run_cards("--help", program=checkout / "cards", cwd="/")
    assert done.returncode == 0, done.stderr
    for name in cli.COMMANDS:
        assert re.search(rf"\n    {name}\s", done.stdout)  # a long name has its line
    assert "examples:" in done.stdout
    assert not (checkout / ".venv").exists()


def test_no_arguments_show_the_help(checkout):
    done = run_cards(program=checkout / "cards")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ./cards")


@pytest.mark.parametrize("command", ["models", "doctor", "test", "import", "setup", "bench"])
def test_help_of_a_command_needs_no_environment(checkout, command):
    done = run_cards(command, "--help", program=checkout / "cards")
    assert done.returncode == 0, done.stderr
    assert f"./cards {command}" in done.stdout
    assert "examples:" in done.stdout
    assert not (checkout / ".venv").exists()


def test_works_through_a_symbolic_link(checkout, tmp_path):
    link = tmp_path / "bin cards"
    link.symlink_to(checkout / "cards")
    done = run_cards("--version", program=link, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cards ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], True),
        (["demo", "-h"], True),
        (["--version"], True),
        (["demo"], False),
        (["test", "--", "--help"], False),
    ],
)
def test_wants_help(arguments, expected):
    assert wants_help(arguments) is expected


def test_mistyped_command_is_refused_before_anything_is_installed(checkout):
    done = run_cards("dmeo", program=checkout / "cards")
    assert done.returncode == 2
    assert done.stderr.startswith("cards: error: no command 'dmeo'; did you mean 'demo'?")
    assert not (checkout / ".venv").exists()


def test_tests_that_there_are_not_are_refused_before_anything_is_installed(checkout):
    done = run_cards("test", "-x", "src/nosuch", program=checkout / "cards")
    assert done.returncode == 2
    assert done.stderr.startswith("cards: error: no tests 'src/nosuch' (expected: a file")
    assert not (checkout / ".venv").exists()


def test_place_that_cannot_be_written(checkout):
    done = run_cards("models", program=checkout / "cards", CARDS_VENV="/proc/cards/venv")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "CARDS_VENV" in done.stderr


def test_python_without_venv(checkout):
    script = (
        "import sys, runpy\n"
        "sys.modules['ensurepip'] = None\n"
        "sys.argv = ['cards', 'models']\n"
        f"runpy.run_path({str(checkout / 'cards')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [BASE_PYTHON, "-S", "-c", script],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "apt install python3" in done.stderr
    assert not (checkout / ".venv").exists()


def test_doctor_installs_nothing(checkout):
    (checkout / "config").mkdir()  # makes it a checkout
    done = run_cards("doctor", program=checkout / "cards")
    assert done.returncode == 1
    assert "FAIL  environment" in done.stdout
    assert not (checkout / ".venv").exists()
