"""A bridge whose interpreter is held by a thread that does not give it away; a program.

Run as ``python hogged_bridge.py SETTINGS``, a JSON object: robot, boards (layout file), ports,
seconds, hold and period [s] of the thread, kind (``sleep``: a C call that keeps the interpreter's
lock; ``sum``: one that computes, too) and commanded. It arms, answers every state with a command
if it shall, and prints what it saw as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time

import numpy as np

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_hardware.boards.layout import read_layout
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.protocol.enums import Severity
from cards_hardware.real_time import HOST_PRIORITY, make_real_time

LIBC = ctypes.PyDLL(None)  # calls keep the interpreter's lock


class Hog(threading.Thread):
    """Holds the interpreter for so long in every period; notes when, monotonic [s]."""

    def __init__(self, hold, period, kind):
        super().__init__(daemon=True)
        self.hold, self.period, self.kind = hold, period, kind
        self.times = []
        self.end = threading.Event()
        self.numbers = 100_000

    def run(self):
        while not self.end.is_set():
            begin = time.monotonic()
            if self.kind == "sleep":
                LIBC.usleep(round(self.hold * 1e6))
            else:
                sum(range(self.numbers))
            done = time.monotonic()
            self.times.append((begin, done))
            if self.kind == "sum":  # as many as take so long on this machine
                self.numbers = int(self.numbers * min(10.0, self.hold / (done - begin)))
            self.end.wait(max(1e-3, begin + self.period - time.monotonic()))


def run(settings):
    robot = load(settings["robot"])
    layout = read_layout(settings["boards"], robot, port=settings["ports"])
    events, woken = [], threading.Event()
    hardware = Hardware(robot, layout, on_event=events.append, on_state=woken.set)
    for tries in reversed(range(5)):  # a busy machine may answer late
        try:
            hardware.open()
            break
        except CardsError:
            if not tries:
                raise
    make_real_time(os.getpid(), HOST_PRIORITY)
    hardware.arm()
    hog = Hog(settings["hold"], settings["period"], settings["kind"])
    end, longest, sent, last = time.monotonic() + settings["seconds"], 0.0, 0, None
    states, refused = 0, ""
    hog.start()
    wanted = np.full(len(robot.muscles), 30.0)
    while time.monotonic() < end and not refused:
        woken.wait(0.02)
        woken.clear()
        if hardware.take() is None:
            continue
        states += 1
        if not settings["commanded"]:
            continue
        try:
            hardware.command("force", wanted)
        except CardsError as error:
            refused = str(error)
        now = time.monotonic()
        if last is not None:
            longest = max(longest, now - last)
        last, sent = now, sent + 1
    hog.end.set()
    status = hardware.status()
    found = {
        "hogs": hog.times,
        "states": states,
        "commands": sent,
        "longest": longest,
        "refused": refused,
        "armed": status.armed,
        "events": [event.text for event in events if event.severity >= Severity.WARN],
        "scheduled": status.scheduled,
        "counts": vars(status.commands),
        "boards": [
            {
                "state": board.state.name if board.state else "",
                "beats": board.line.beats,
                "gap": board.line.beat_gap,
                "jitter": str(board.line.beat_jitter),
                "reply": board.line.reply,
                "replies": str(board.line.replies),
                "lost": board.lost_frames,
                "unread": board.line.unread,
            }
            for board in status.boards
        ],
    }
    hog.join()
    hardware.close()
    return found


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
