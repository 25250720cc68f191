"""Damaged folders and files of others: a small ensemble of that of ``foreign.py``."""

import os
import subprocess
import sys
from pathlib import Path

CASES = int(os.environ.get("CARDS_FOREIGN_CASES", "700"))

HERE = Path(__file__).resolve().parent


def test_damaged_folders_and_files_are_told_in_one_line():
    done = subprocess.run(
        [sys.executable, str(HERE / "foreign.py"), f"--cases={CASES}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert f"{CASES} cases and 0 command lines: 0 findings" in done.stdout


def test_a_finding_is_told():
    program = (
        "import sys, foreign\n"
        "def broken(*_): raise KeyError('found')\n"
        "target = foreign.TARGETS['campaign']\n"
        "foreign.TARGETS['campaign'] = foreign.Target(target.make, broken)\n"
        "number = foreign.kinds().index('folder campaign')\n"
        "sys.argv[1:] = ['--only', str(number)]\n"
        "sys.exit(foreign.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 1, done.stderr
    assert "KeyError" in done.stdout
