"""A host and a controller in one process, without ROS: a plain loop.

In lockstep the trajectory equals that of the nodes over topics to the last bit.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.host import SteppedHost
from cards_core.loop.pacing import Pacer
from cards_core.muscles.command import CommandRefusedError
from cards_core.stamps import end_of

REPORT_PERIOD = 0.1
"""How often progress is reported, [s] of wall time."""


def run_closed_loop(
    host: SteppedHost,
    control: ControlLoop | None,
    duration: float,
    *,
    pacer: Pacer | None = None,
    on_time: Callable[[float], None] | None = None,
) -> float:
    """Step a host and its controller until a time; return the wall time it took, [s].

    Args:
        host: The robot.
        control: Answers every state; without one the muscles are told nothing.
        duration: Time of the host at which the run ends, [s]; 0: never.
        pacer: Makes time pass as fast as the clock; as fast as possible without one.
        on_time: Called with the time of the host [s] a few times a second.

    Raises:
        CardsError: The physics diverged, or the controller needs what the host does not know.
        OSError: A log cannot be written.
    """
    clock = time.perf_counter
    begin = shown = clock()
    end = end_of(duration)
    if pacer is not None:
        pacer.start(begin)
    while end == 0 or host.stamp < end:
        start = clock()
        if control is not None:
            command = control.step(host.state)
            # the gate counts refusals, and its watchdog lets go of muscles that are told nothing
            with contextlib.suppress(CommandRefusedError):
                host.submit(command)
            control.record(1e6 * (clock() - start), 0 if pacer is None else pacer.overruns)
        host.step()
        if pacer is not None:
            now = clock()
            pacer.done(now)
            host.behind = pacer.behind
            if (rest := pacer.remaining(now)) > 0.0:
                time.sleep(rest)
        if on_time is not None and start - shown > REPORT_PERIOD:
            shown = start
            on_time(host.state.time)
    return clock() - begin
