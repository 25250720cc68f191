"""Ctrl-C at any moment, closed and full streams: one line at most, and the right exit code."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from cards_bringup import cli
from cards_bringup.bootstrap import process
from cards_bringup.bootstrap.environment import Environment

TOP = Path(__file__).resolve().parents[3]

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

CARDS = [sys.executable, "-m", "cards_bringup"]


def run(command, **settings):
    return subprocess.run(
        command,
        # the Python that ./cards finds is this one, and no script that looks for it
        env={
            **ENVIRONMENT,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            # Python takes no notice if a compiled module is cut short, and then nobody can load it
            "PYTHONDONTWRITEBYTECODE": "1" if settings.get("preexec_fn") is small_files else "",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        stdin=subprocess.DEVNULL,
        **settings,
    )


def shell(line, *arguments):
    """Run a line of shell, where "$@" are the arguments."""
    return run(["sh", "-c", line, "sh", *arguments])


def press_ctrl_c_early():
    """Between fork and exec: Ctrl-C waits for the program that is about to start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([*CARDS, "models"], ""),
        (
            [sys.executable, str(TOP / "cards"), "models"],
            "cards: interrupted; the next run takes it up again",
        ),
    ],
)
def test_ctrl_c_before_python_has_begun(command, said):
    result = run(command, preexec_fn=press_ctrl_c_early)
    assert result.returncode == 130
    assert result.stdout == ""
    assert result.stderr.strip() == said


@pytest.mark.parametrize("command", [[str(TOP / "cards")], [sys.executable, str(TOP / "cards")]])
def test_the_program_is_one_for_a_shell_and_for_python(command, tmp_path):
    result = run([*command, "--version"], cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("cards ")


@pytest.mark.parametrize(
    "module",
    ["cards_bringup.cli", "cards_bringup.cli.eval", "numpy.linalg", "cards_core.codegen.native"],
)
def test_ctrl_c_while_modules_are_imported(module):
    script = f"""
        import runpy, signal, sys

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    signal.raise_signal(signal.SIGINT)

        sys.meta_path.insert(0, Finder())
        sys.argv[0] = "cards_bringup"
        runpy.run_module("cards_bringup", run_name="__main__", alter_sys=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), "eval", "planar_2r"]
    result = run(command)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_while_trimesh_takes_any_error_for_a_missing_module():
    script = """
        import runpy, signal, sys

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "manifold3d":
                    sys.meta_path.remove(self)
                    signal.raise_signal(signal.SIGINT)

        sys.meta_path.insert(0, Finder())
        sys.argv[0] = "cards_bringup"
        runpy.run_module("cards_bringup", run_name="__main__", alter_sys=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), "show", "planar_2r", "--port", "0"]
    result = run(command)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def run_main(body):
    """Run ``__main__`` with a ``main`` of the test's own."""
    script = f"""
import signal, sys
import cards_bringup.cli

def main(_arguments):
{textwrap.indent(textwrap.dedent(body), "    ")}

cards_bringup.cli.main = main
from cards_bringup.__main__ import run
sys.exit(run())
"""
    return run([sys.executable, "-c", script])


def test_an_error_that_an_interrupt_turned_into_is_one():
    result = run_main("""
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("half of a module")
    """)
    assert (result.returncode, result.stderr) == (130, "")


def test_a_bug_keeps_its_traceback():
    result = run_main('raise ZeroDivisionError("a bug")')
    assert result.returncode == 1
    assert "ZeroDivisionError: a bug" in result.stderr


def test_an_interrupt_that_python_drops_comes_again():
    result = run_main("""
        import threading

        class Dropping:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        Dropping()
        threading.Event().wait(60)
        return 0
    """)
    assert (result.returncode, result.stderr) == (130, "")


@pytest.mark.parametrize(
    ("module", "called"), [("optional", False), ("trimesh", True), ("rclpy", True)]
)
def test_an_interrupt_that_a_library_drops_comes_after_it(module, called, tmp_path):
    (tmp_path / f"{module}.py").write_text(
        "import signal\n"
        "def load():\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except BaseException:\n"
        "        pass\n" + "load()\n" * (not called)
    )
    result = run_main(f"""
        import threading
        sys.path.insert(0, {str(tmp_path)!r})
        import {module}
        if {called}:
            {module}.load()
        threading.Event().wait(60)
        return 0
    """)
    assert (result.returncode, result.stderr) == (130, "")


def test_who_insists_is_heard_at_once(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import signal, time\n"
        "for _ in range(2):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "print('goes on')\n"
    )
    result = run_main(f"sys.path.insert(0, {str(tmp_path)!r})\nimport slow")
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_an_interrupt_in_a_text_that_is_executed_ends_with_the_code(tmp_path):
    """Python ends ``-m`` by the signal itself where one has passed ``exec``, as of a dataclass."""
    (tmp_path / "sitecustomize.py").write_text(
        "import cards_bringup.cli\n"
        "def main(_arguments):\n"
        "    exec('import signal; signal.raise_signal(signal.SIGINT)')\n"
        "cards_bringup.cli.main = main\n"
    )
    line = 'export PYTHONPATH="$1:$PYTHONPATH"; shift; exec "$@"'
    result = shell(line, str(tmp_path), *CARDS, "models")
    assert (result.returncode, result.stderr) == (130, "")


def test_python_is_not_taken_down_with_what_threads_of_pages_use():
    result = run_main("""
        import atexit, os

        class Native:
            def __del__(self):
                os._exit(9)

        global kept
        kept = Native()
        atexit.register(print, "closed")
        return 3
    """)
    assert (result.returncode, result.stdout, result.stderr) == (3, "closed\n", "")


def test_libraries_say_nothing_after_ctrl_c():
    result = run_main("""
        import atexit
        print("begins")
        atexit.register(print, "(viser) Server stopped")
        signal.raise_signal(signal.SIGINT)
    """)
    assert (result.returncode, result.stdout, result.stderr) == (130, "begins\n", "")


def test_ctrl_c_after_the_end_changes_nothing():
    result = run_main("""
        import atexit
        atexit.register(signal.raise_signal, signal.SIGINT)
        return 3
    """)
    assert (result.returncode, result.stderr) == (3, "")


def test_a_program_that_is_to_ignore_ctrl_c_does():
    result = shell("trap '' INT; \"$@\"", *CARDS, "--version")
    assert result.returncode == 0
    script = textwrap.dedent("""
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from cards_bringup.bootstrap.process import CommandInterrupts
        CommandInterrupts().accept()
        signal.raise_signal(signal.SIGINT)
    """)
    assert run([sys.executable, "-c", script]).returncode == 0


def test_ctrl_c_waits_while_the_environment_s_python_starts(tmp_path, monkeypatch):
    seen = []

    def execve(*_arguments):
        seen.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        raise OSError("not here")

    monkeypatch.setattr(os, "execve", execve)
    with pytest.raises(OSError, match="not here"):
        Environment(TOP, "none").become("cards_bringup", [])
    assert seen == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


# Streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["models"], ["--help"], ["eval", "planar_2r", "--json"]])
@pytest.mark.parametrize(
    ("line", "reason"),
    [('"$@" >&-', "Bad file descriptor"), ('"$@" > /dev/full', "No space left on device")],
)
def test_output_that_goes_nowhere_is_an_error(arguments, line, reason):
    result = shell(line, *CARDS, *arguments)
    assert result.returncode == 2
    assert result.stderr == f"error: standard output: {reason}\n"


@pytest.mark.parametrize("line", ['"$@" 2>&-', '"$@" 2> /dev/full', '"$@" 2>&- <&-'])
def test_nobody_misses_messages_that_go_nowhere(line):
    good = shell(line, *CARDS, "--version")
    assert good.returncode == 0
    assert good.stdout.startswith("cards ")
    bad = shell(line, *CARDS, "eval", "no_such_robot")
    assert (bad.returncode, bad.stdout) == (2, "")


def test_an_error_goes_into_no_file_that_was_opened_instead(tmp_path):
    """A closed stream's number is that of the next file to be opened."""
    script = f"""
        from cards_bringup.bootstrap.process import open_streams
        open_streams()
        import sys
        file = open({str(tmp_path / "file")!r}, "w")
        print("a message", file=sys.stderr)
        assert file.fileno() > 2
    """
    result = shell('"$@" <&- >&- 2>&-', sys.executable, "-c", textwrap.dedent(script))
    assert result.returncode == 0
    assert (tmp_path / "file").read_text() == ""


def test_output_is_in_order_with_that_of_programs_it_starts():
    result = run_main("""
        import subprocess
        print("first", flush=True)
        subprocess.run(["echo", "second"])
        print("third")
        return 0
    """)
    assert result.stdout == "first\nsecond\nthird\n"


def test_streams_that_are_open_stay(capfd):
    process.open_streams()
    print("läuft", flush=True)
    assert capfd.readouterr().out == "läuft\n"


# Full disks ------------------------------------------------------------------------------------


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


WRITERS = {
    "ik": ["analyse", "ik", "planar_2r", "--trajectory", "there_and_back", "--step", "0.1"],
    "cable-function": ["analyse", "cable-function", "planar_2r", "--samples", "20"],
    "rod workspace": ["analyse", "workspace", "stewart_gough", "--grid", "x=0:0.01:2"],
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_nothing_behind(name, tmp_path):
    command = [*CARDS, *WRITERS[name], "--out"]
    assert run([*command, "there"], cwd=tmp_path).returncode == 0  # and compiles what it needs
    before = {file: file.read_bytes() for file in (tmp_path / "there").iterdir()}
    for out in ("there", "new/folder"):
        result = run([*command, out], cwd=tmp_path, preexec_fn=small_files)
        assert result.returncode == 2
        assert result.stderr == (
            f"error: {out} cannot be written: File too large (expected: a folder with space and "
            "permission)\n"
        )
    assert [item.name for item in tmp_path.iterdir()] == ["there"]
    assert {file: file.read_bytes() for file in (tmp_path / "there").iterdir()} == before


def test_an_export_to_a_full_disk(tmp_path):
    (tmp_path / "old.tex").write_text("old")
    for name in ("old.tex", "new.tex"):
        command = [*CARDS, "export", "latex", "planar_2r", "--quiet", "--force", "-o", name]
        result = run(command, cwd=tmp_path, preexec_fn=small_files)
        assert result.returncode == 2
        assert result.stderr.startswith(f"error: cannot write '{name}': File too large")
    assert [item.name for item in tmp_path.iterdir()] == ["old.tex"]
    assert (tmp_path / "old.tex").read_text() == "old"


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "planar_2r", "--no-ros", "--headless", "--duration", "0.1"],
        ["demo", "planar_2r", "--no-ros", "--headless", "--controller-model", "mass=2"],
        ["demo", "planar_2r", "--no-ros", "--headless", "--reference", "no_such"],
        ["analyse", "workspace", "planar_2r", "--condition", "static", "--grid", "joint_1=0:1:3",
         "--plot", "--metric", "no_such"],
        ["analyse", "workspace", "planar_2r", "--condition", "wrench_feasible", "--samples", "9",
         "--option", "method=no_such"],
    ],
)  # fmt: skip
def test_what_fails_leaves_no_empty_folder(arguments, tmp_path):
    full = "--duration" in arguments
    settings = {"preexec_fn": small_files} if full else {}
    result = run([*CARDS, *arguments, "--out", "a/b"], cwd=tmp_path, **settings)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.stderr
    folders = [item for item in tmp_path.rglob("*") if item.is_dir()]
    assert all(any(folder.iterdir()) for folder in folders)


# Sizes -----------------------------------------------------------------------------------------


@pytest.fixture
def analyse(monkeypatch, capsys, tmp_path):
    """Run ``./cards analyse ARGS`` here, in an empty folder; return code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["cards", "analyse", *arguments])
        code = cli.main(["analyse", *arguments])
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fd", "planar_2r", "--duration", "1e9"], "1e+12 steps of 0.001 s"),
        (["fd", "planar_2r", "--duration", "1e9", "--step", "1e8"], "1e+12 steps of 0.001 s"),
        (["fd", "planar_2r", "--duration", "1", "--step", "1e-12"], "1e+12 points 1e-12 s apart"),
        (["ik", "planar_2r", "--trajectory", "there_and_back", "--step", "1e-12"], "8e+12 points"),
        (["cable-function", "planar_2r", "--samples", "1000000000000"], "1e+12 poses take"),
        (["workspace", "planar_2r", "--condition", "static", "--samples", "1000000000000000"],
         "1e+15 points or rays take"),
        (["workspace", "stewart_gough", "--grid", "x=0:1:9999999,y=0:1:9999999"],
         "1e+14 poses take"),
        (["fk", "planar_2r", "--lengths=1,1,1,1", "--starts", "10000000"], "<= 1e+06"),
        (["force-sensing", "stewart_gough", "--simulate", "--trials", "1000000000000"],
         "1e+12 trials take"),
        (["force-sensing", "stewart_gough", "--simulate", "--points", "1000000000000"],
         "1e+12 points per rod take"),
    ],
)  # fmt: skip
def test_what_would_never_end_or_fit_is_refused(arguments, told, analyse, tmp_path):
    code, out, err = analyse(*arguments, "--quiet")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert told in err
    assert "(expected: " in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["ik", "id", "fd", "fk", "stiffness", "interaction"])
def test_a_table_without_rows_is_refused(kind, analyse, tmp_path):
    head = "l/cable_1,l/cable_2,l/cable_3,l/cable_4" if kind == "fk" else "q/joint_1,q/joint_2"
    (tmp_path / "a.csv").write_text(f"{head}\n")
    np.savez(tmp_path / "a.npz", q=np.zeros((0, 2)), l=np.zeros((0, 4)), time=np.zeros(0))
    for name in ("a.csv", "a.npz"):
        code, out, err = analyse(kind, "planar_2r", "--input", name)
        assert (code, out) == (2, "")
        assert err == f"error: {name} has no rows (expected: one for each point)\n"


def test_a_device_is_no_robot():
    result = run([*CARDS, "import", "caspr", "/dev/null"])
    assert result.returncode == 2
    assert result.stderr.startswith("error: /dev/null: not a bodies file")
