"""Results of checks of this machine, and programs that are run for such checks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["OK", "WARN", "FAIL"]
"""WARN: something optional is missing. FAIL: CARDS does not work without it."""


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        part: What was looked at.
        status: How it is.
        text: What was seen.
        fix: What to do about it; empty if nothing is to be done.
    """

    part: str
    status: Status
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Answer:
    """Output of a probe: `ok` if it ended well, `text` without surrounding blanks."""

    ok: bool
    text: str


def run_python(
    script: str, *, timeout: float = 30.0, env: Mapping[str, str] | None = None
) -> Answer:
    """Run a script in a Python process; on failure the text is the last line of the error.

    Args:
        script: Python code.
        timeout: Longest time that it may take, [s].
        env: Environment of the process; None: that of this one.
    """
    return run([sys.executable, "-P", "-c", script], timeout=timeout, env=env)


def shadowing(folder: Path) -> list[str]:
    """Return the files on LD_LIBRARY_PATH that are loaded instead of libraries of the same names.

    Args:
        folder: Of a package, with its libraries.
    """
    places = map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    names = sorted(item.name for item in folder.glob("lib*.so*"))
    others = (place for place in places if place.resolve() != folder.resolve())
    return [str(place / name) for place in others for name in names if (place / name).exists()]


def run(
    command: list[str], *, timeout: float = 30.0, env: Mapping[str, str] | None = None
) -> Answer:
    """Run a program; on failure the text is the last line it said.

    Args:
        command: Program and its arguments.
        timeout: Longest time that it may take, [s].
        env: Environment of the process; None: that of this one.
    """
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=None if env is None else dict(env),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(False, f"no answer within {timeout:.0f} s")
    except OSError as error:
        return Answer(False, str(error))
    if done.returncode == 0:
        return Answer(True, done.stdout.strip())
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode < 0:
        said = [f"ended by signal {-done.returncode}"]
    return Answer(False, said[-1] if said else f"exit code {done.returncode}")
