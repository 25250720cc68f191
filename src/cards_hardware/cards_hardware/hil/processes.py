"""Child processes that end with their parent and do not receive its Ctrl-C."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1

STOP_TIMEOUT = 5.0
"""Time [s] a process gets to end before it is killed."""

Stream = int | IO[bytes] | None


def spawn(
    command: Sequence[str],
    folder: Path | None,
    *,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
    environment: Mapping[str, str] | None = None,
    at_our_end: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own that ends when this thread's process ends.

    Args:
        command: Program and arguments.
        folder: Its working folder; None: this process's.
        stdin: File or descriptor; None: nothing to read.
        stdout: Likewise; None: thrown away.
        stderr: Likewise.
        environment: Its variables; None: this process's.
        at_our_end: Signal that it gets then.
    """

    # one system call, no locks: safe after fork
    def die_with_parent() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, at_our_end)

    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.DEVNULL if stdout is None else stdout,
        stderr=subprocess.DEVNULL if stderr is None else stderr,
        start_new_session=True,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
    )


def stop(process: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    """End a process and wait for it.

    Args:
        process: What `spawn` returned.
        kill: At once, without a chance to tidy up.
    """
    if process.poll() is None:
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
