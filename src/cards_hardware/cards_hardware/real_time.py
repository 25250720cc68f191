"""Real-time priority of a process, as far as the system permits it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PRIORITY = 10
"""Priority of the emulated plant and boards for the real-time scheduler (1 to 99): real drives and
boards wait for nobody."""

HOST_PRIORITY = 5
"""Priority of bridge and controllers, as on a computer that does nothing but drive a robot."""

LINE_PRIORITY = 8
"""Priority of the thread that keeps the lines to boards: above all that computes."""

MAX_PRIORITY = 99
"""Highest priority of the real-time scheduler."""

NICE = -10
"""Where the real-time scheduler may not be used."""


def make_real_time(process: int, priority: int = PRIORITY) -> str:
    """Give all threads of a process real-time priority, or a high one, or leave it as it is.

    Needs a permission (root, or limits on ``rtprio`` and ``nice``). Threads that are there
    already are included, those that come inherit it. Threads with a higher one keep it.

    Args:
        process: Its id.
        priority: For the real-time scheduler.

    Returns:
        What it has now: ``fifo``, ``nice`` or ``normal``.
    """
    try:
        tasks = [int(path.name) for path in Path(f"/proc/{process}/task").iterdir()]
    except OSError:
        tasks = [process]
    with contextlib.suppress(OSError, AttributeError):
        for task in tasks:
            if os.sched_getparam(task).sched_priority <= priority:  # 0 if it is not real-time
                os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(priority))
        return "fifo"
    with contextlib.suppress(OSError):
        for task in tasks:
            os.setpriority(os.PRIO_PROCESS, task, NICE)
        return "nice"
    return "normal"
