"""``./cards bench tensegrity``: a crawling spine with and without contact cables, beside NTRT."""

from __future__ import annotations

import dataclasses
import math
import os
import resource
import subprocess
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from cards_bringup.benchmarks.loop import make_loop
from cards_core.checks import shown
from cards_core.errors import CardsError
from cards_core.formats import load

ROBOT = "tetrahedral_6"

CASES = {
    "flat": ("flat:friction=0.5", False),
    "contact": ("flat:friction=0.5", True),
    "hills": ("hills:friction=0.5,resolution=0.04,extent=4", True),
    "fine_hills": ("hills:friction=0.5", True),
    "blocks": ("blocks:friction=0.5", True),
}
"""Terrain, and whether cables touch what is in their way. The toolkit's hills have a point each
4 cm, our default four times as many triangles, which contacts are sought in. There are 500 blocks,
5 mm above the ground."""

PUBLISHED = {"flat_x_realtime": 8.6, "hills_x_realtime": 0.5}
"""NTRT on the author's machine (an i7) [Mirletz2016]_: 60 s in 7 s, and half of real time."""

BUILT = {"flat_x_realtime": 8.0, "contact_x_realtime": 1.9, "hills_x_realtime": 0.96}
"""NTRT of 2020 with Bullet 2.82, built with -O2, under its learned pattern generators, on one core
of a virtual machine: medians of 0.11 to 0.14, 0.45 to 0.59, 0.92 to 1.16 s per simulated second.
Under the sine gait alone it is faster: give a ``program`` to compare like with like."""

NTRT_CASES = ("flat", "contact", "hills")
"""Those that NTRT has too."""

STEP = 0.001
"""Of the simulations, [s]."""

STEPS = 10
"""From one state that the controller sees to the next."""

ROUNDS = 5
"""Slices of each case, taken in turn: what else the machine does hits all of them."""


def bench_tensegrity(
    say: Callable[[str], None], *, seconds: float = 2.0, program: str | None = None
) -> dict[str, Any]:
    """Measure simulated seconds per second of processor time, in one process on one core.

    The tetrahedral complex of six vertebrae crawls by its sine gait with a step of 1 ms; its
    controller sees the states that its parameter file lets the simulator publish, every 10 ms,
    and its time counts too.

    Args:
        say: Takes what is being measured.
        seconds: Simulated time of a slice, [s].
        program: A program of NTRT to be measured beside, called as ``PROGRAM CASE SECONDS`` with
            CASE ``flat``, ``contact`` or ``hills``: it simulates the same structure, gait and step
            for so long and writes the simulated time that it reached, [s], as its last line.

    Returns:
        ``flat_x_realtime`` without contact cables, ``contact_x_realtime``, ``hills_x_realtime``,
        ``fine_hills_x_realtime`` and ``blocks_x_realtime`` with them: medians; ``ntrt`` with the
        same of NTRT: published, built as a reference, and measured in this run where there is a
        program, with the ratios.

    Raises:
        CardsError: The program fails, or writes something else.
    """
    loops = {case: _loop(*CASES[case]) for case in CASES}
    ours: dict[str, list[float]] = {case: [] for case in CASES}
    theirs: dict[str, list[float]] = {case: [] for case in NTRT_CASES}
    for turn in range(ROUNDS + 1):
        for case, advance in loops.items():
            say(f"{case}, {turn + 1} of {ROUNDS + 1}")
            rate = seconds / advance(seconds)
            if turn:  # the first has the fall to the ground in it
                ours[case].append(rate)
                if case in theirs and program is not None:
                    theirs[case].append(seconds / _time_program(program, case, seconds))
    result: dict[str, Any] = {"robot": ROBOT, "step_s": STEP}
    result |= {f"{case}_x_realtime": median(values) for case, values in ours.items()}
    ntrt: dict[str, Any] = {"published": PUBLISHED, "built": BUILT}
    if program is not None:
        ntrt["measured"] = {f"{c}_x_realtime": median(v) for c, v in theirs.items()}
        # each slice beside its neighbour in time
        ntrt["ratio"] = {
            case: median([a / b for a, b in zip(ours[case], times, strict=True)])
            for case, times in theirs.items()
        }
    return {**result, "ntrt": ntrt}


def _loop(terrain: str, contact: bool) -> Callable[[float], float]:
    """Return what advances a closed loop by a time and returns the processor time, [s]."""
    robot = load(ROBOT)
    muscles = tuple(dataclasses.replace(m, contact=contact) for m in robot.muscles)
    robot = dataclasses.replace(robot, muscles=muscles)
    _, host, control = make_loop(ROBOT, robot, terrain=terrain)

    def advance(seconds: float) -> float:
        end = host.now + seconds
        start = time.process_time()
        while host.now < end:
            host.submit(control.step(host.state))
            host.steps(STEPS)
        return time.process_time() - start

    return advance


def _time_program(program: str, case: str, seconds: float) -> float:
    """Return the processor time of the program and all that it starts, [s].

    Raises:
        CardsError: It cannot be started, fails, or did not simulate what it was asked for.
    """
    called = f"'{program} {case} {seconds:g}'"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [program, case, f"{seconds:g}"],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CardsError(
            f"{called} failed: {error} (expected: a program that simulates the case and ends with "
            "exit code 0)"
        ) from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = done.stdout.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    try:
        reached = float(last)
    except ValueError:
        reached = math.nan
    if not abs(reached - seconds) <= STEP:
        raise CardsError(
            f"{called} wrote {shown(last)} as its last line (expected: the simulated time that it "
            f"reached, {seconds:g} s within a step)"
        )
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
