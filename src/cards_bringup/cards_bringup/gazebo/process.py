"""The process of Gazebo: started, watched, and stopped so that nothing stays behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from cards_core.errors import CardsError

STOP_SIGNALS = ((signal.SIGINT, 4.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))
"""Signals in the order they are tried, and how long [s] each is given."""


def network(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set Gazebo's network apart, for all processes of one run.

    Two runs at once must not meet, and nothing of them is of interest outside this machine. What
    ``environ`` has counts.
    """
    own = {"GZ_PARTITION": f"cards-{os.getpid()}", "GZ_IP": "127.0.0.1"}
    return {name: environ.get(name, value) for name, value in own.items()}


def run_until_end(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program to its end, or until Ctrl-C or SIGTERM, and return its exit code.

    The program has a session of its own: the Ctrl-C of a terminal reaches us alone, and what it
    starts (Gazebo has a process for its window) ends with it. After a Ctrl-C the code is 0.

    Raises:
        CardsError: The program cannot be started.
    """
    with _terminate_as_interrupt():
        try:
            process = subprocess.Popen(
                list(command),
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # one system call, no locks: safe after fork
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )
        except OSError as error:
            raise CardsError(f"cannot start {command[0]}: {error}") from error
        try:
            code = process.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            _stop(process)
    if code < 0:
        name = signal.Signals(-code).name
        print(f"{command[0]} ended by signal {name}", file=sys.stderr)
        return 128 - code
    return code


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the process and all of its group."""
    for number, patience in STOP_SIGNALS:
        if process.poll() is not None:
            break
        # a second Ctrl-C is impatience: go on with the next signal
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            os.killpg(process.pid, number)
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it left behind


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
