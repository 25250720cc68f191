"""Ctrl-C before, in and after the main of an executable."""

import os
import subprocess
import sys

import pytest

PRESS = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"


def run(tmp_path, text, *, interrupted=0, before=""):
    (tmp_path / "toy.py").write_text(text)
    code = (
        f"import sys\n{before}\nfrom cards_core.executable import executable\n"
        f"sys.exit(executable('toy', interrupted={interrupted})())"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip


@pytest.mark.parametrize("interrupted", [0, 130])
@pytest.mark.parametrize(
    "text",
    [
        # modules make errors of their own of it, and destructors drop it
        f"try:\n    {PRESS}\nexcept BaseException:\n    raise ImportError\n",
        f"class A:\n    def __del__(self):\n        {PRESS}\nA()\nraise ImportError\n",
        f"def main(args):\n    {PRESS}\n    print('goes on')\n",
    ],
    ids=["import", "destructor", "main"],
)
def test_it_ends_quietly(tmp_path, text, interrupted):
    done = run(tmp_path, text, interrupted=interrupted)
    assert (done.returncode, done.stdout, done.stderr) == (interrupted, "", "")


def test_the_same_ctrl_c_again_does_not_change_the_exit_code(tmp_path):
    text = f"import atexit\natexit.register(lambda: exec('{PRESS}'))\ndef main(args): return 1\n"
    done = run(tmp_path, text)
    assert (done.returncode, done.stderr) == (1, "")


def test_main_has_the_handler_of_python(tmp_path):
    text = (
        "import signal, sys\ndef main(args):\n"
        "    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, args)\n"
        "    return 3\n"
    )
    done = run(tmp_path, text)
    assert (done.returncode, done.stdout) == (3, "True None\n"), done.stderr


def test_ignored_interrupts_stay_ignored(tmp_path):
    text = f"{PRESS}\ndef main(args): return 4\n"
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    assert run(tmp_path, text, before=ignore).returncode == 4


def test_errors_are_seen(tmp_path):
    done = run(tmp_path, "import nothing_of_this_name\n")
    assert done.returncode == 1
    assert "No module named 'nothing_of_this_name'" in done.stderr


def test_it_imports_next_to_nothing():
    """Until its handler is there Ctrl-C shows a traceback."""
    code = f"import sys; sys.path[:] = {sys.path}; import cards_core.executable"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", "-c", code],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "cards_core.executable" in imported
    assert not imported & {"typing", "contextlib", "threading", "numpy", "pathlib", "importlib"}
