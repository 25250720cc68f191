"""A process above Gazebo that ends all its processes in order, even if its parent is killed.

With a window, ``gz sim`` of Harmonic and Ionic forks server and window into process groups of
their own. A signal to its group does not reach them, and until it has set its handlers up, its own
end does not end them. This process is their "child subreaper": what loses its parent becomes a
child of it, so that everything Gazebo started stays among its descendants, under whatever title
and in whatever group or session.

It runs as a script in a Python of its own, and uses the standard library only:
``python -I -S subreaper.py PARENT_ID COMMAND...``. Its exit code is that of the command.

| reason | what is done |
|---|---|
| SIGINT, SIGTERM, or the parent has ended | `STAGES`, beginning with a SIGINT to the command |
| the command has ended, what it started has not | a SIGINT to what is left, later `STAGES` |
| a further SIGINT, not at the same moment | the next stage at once |
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GZ_PATIENCE = 5.0
"""Time [s] that ``gz sim`` gives its window, and then its server, before it kills them."""

STAGES = (
    (signal.SIGINT, 2 * GZ_PATIENCE + 1.0),
    (signal.SIGTERM, 2.0),
    (signal.SIGKILL, 2.0),
)
"""Signals in the order they are tried, and how long [s] each is given."""

LONGEST = sum(patience for _, patience in STAGES) + GZ_PATIENCE
"""Time [s] after which nothing is left of Gazebo, counted from the first signal."""

SAME_WISH = 0.5
"""Time [s] in which a second SIGINT is ignored: terminal and launch system both send one."""

KILL_PERIOD = 0.1
"""Time [s] between kills of what is left: who forks meanwhile is found the next time."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_AWAITED = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}


@dataclass(frozen=True)
class Process:
    """A line of the process table that is no zombie."""

    number: int
    parent: int
    session: int


def processes() -> Iterator[Process]:
    """Yield all processes of this machine that have not ended."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # the name of the program, in brackets, may be anything
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
                if state not in (b"Z", b"X"):
                    yield Process(int(name), int(parent), int(session))


def descendants(ancestor: int) -> list[int]:
    """Return the processes below another one, parents before their children."""
    children: dict[int, list[int]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process.number)
    found = list(children.get(ancestor, []))
    for number in found:  # grows meanwhile
        found += children.get(number, [])
    return found


def kill_session(session: int) -> None:
    """Kill all processes of a session."""
    for process in list(processes()):
        if process.session == session:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.number, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


class Subreaper:
    """A command and all its descendants.

    Args:
        command: Program and arguments.

    Raises:
        OSError: The program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._code: int | None = None
        self._stage = -1  # of STAGES; -1: nobody wants it to end
        self._since, self._until = 0.0, float("inf")
        # no other threads here
        self._command = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_as_usual,  # noqa: PLW1509
        )

    def run(self) -> int:
        """Wait for the end of everything; return the exit code of the command."""
        while self._reap():
            if self._stage < 0 and self._code is not None:
                self._interrupt_the_rest()
            left = self._until - time.monotonic()
            if left <= 0.0 and not self._next_stage():
                break
            # the time is limited: this call does not accept infinity
            info = signal.sigtimedwait(_AWAITED, min(max(left, 0.0), 1.0))
            if info is None or info.si_signo == signal.SIGCHLD:
                continue
            # SIGTERM does not hasten the end: the kernel sends it when the parent ends
            again = info.si_signo == signal.SIGINT and time.monotonic() - self._since > SAME_WISH
            if self._stage < 0 or again:
                self._next_stage()
        return self._code if self._code is not None else 128 + signal.SIGKILL

    def _reap(self) -> bool:
        """Reap children that have ended; return whether any are left."""
        while True:
            try:
                number, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if number == 0:
                return True
            if number == self._command.pid:
                self._code = os.waitstatus_to_exitcode(status)
                if self._stage == 0:
                    self._interrupt_the_rest()

    def _interrupt_the_rest(self) -> None:
        """Interrupt the children that the command has left."""
        self._stage = 0
        self._since = time.monotonic()
        self._until = self._since + GZ_PATIENCE
        _signal(descendants(os.getpid()), signal.SIGINT)

    def _next_stage(self) -> bool:
        """Begin the next stage; return False after the last one."""
        if self._stage + 1 == len(STAGES):
            return False
        self._stage += 1
        number, patience = STAGES[self._stage]
        self._since = time.monotonic()
        self._until = self._since + patience
        if self._stage == 0 and self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._command.pid, number)  # it ends its children in its order
        elif number != signal.SIGKILL:
            _signal(descendants(os.getpid()), number)
        else:
            while self._reap() and time.monotonic() < self._until:
                _signal(descendants(os.getpid()), number)
                signal.sigtimedwait({signal.SIGCHLD}, KILL_PERIOD)
        return True


def _signal(numbers: Sequence[int], number: signal.Signals) -> None:
    for process in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _as_usual() -> None:
    """Restore the default signals for the command, and end it when this process ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: Sequence[str]) -> int:
    """Run a command and end all that it started.

    Args:
        arguments: Id of our parent, with which all ends, and the command.
    """
    parent, *command = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    adopt_orphans()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 1  # it has ended before the kernel could have told us
    try:
        code = Subreaper(command).run()
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    if code < 0:
        name = signal.Signals(-code).name
        print(f"{command[0]} ended by signal {name}", file=sys.stderr)
        return 128 - code
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
