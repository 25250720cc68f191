"""The process of Gazebo: started, supervised, and stopped without leaving processes behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from cards_bringup.gazebo import subreaper
from cards_core.errors import CardsError

STOP_TIME = subreaper.LONGEST + 2.0
"""Time [s] that who ends the process with Gazebo should leave it, from the first signal on.

Gazebo ends its window, then its server, and has seconds for each; usually all takes one.
"""

_ASK = (signal.SIGINT, signal.SIGTERM)


def network(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set Gazebo's network apart, for all processes of one run.

    Two runs at once must not meet, and nothing of them is of interest outside this machine. What
    ``environ`` has counts.
    """
    own = {"GZ_PARTITION": f"cards-{os.getpid()}", "GZ_IP": "127.0.0.1"}
    return {name: environ.get(name, value) for name, value in own.items()}


def run_until_end(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program and all that it starts to the end, or until Ctrl-C or SIGTERM.

    A `subreaper` in a session of its own runs it: the Ctrl-C of a terminal reaches us alone, and
    nothing is left of the program when this function returns, nor when we are killed. It ends
    as after Ctrl-C; every further Ctrl-C hastens the end.

    Returns:
        The program's exit code; 0 after a Ctrl-C or SIGTERM.

    Raises:
        CardsError: No process can be started.
    """
    watched = [sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), *command]
    asked: list[int] = []

    def pass_on(number: int, _frame: object) -> None:
        asked.append(number)
        process.send_signal(number)

    # the subreaper waits for its signals, and must not lose one that comes before it does
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASK)
    try:
        process = subprocess.Popen(
            watched, env=dict(environ), stdin=subprocess.DEVNULL, start_new_session=True
        )
        handlers = {number: signal.signal(number, pass_on) for number in _ASK}
    except OSError as error:
        raise CardsError(f"cannot start {command[0]}: {error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        code = process.wait()
        if code < 0:
            subreaper.kill_session(process.pid)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if asked:
        return 0
    if code < 0:
        name = signal.Signals(-code).name
        print(f"what watches {command[0]} ended by signal {name}", file=sys.stderr)
        return 128 - code
    return code
