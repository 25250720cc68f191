"""A host and a controller in one process, without ROS: a plain loop.

In lockstep the trajectory equals that of the nodes over topics to the last bit.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence

from cards_core.errors import CardsError
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.host import Host, SteppedHost
from cards_core.loop.model_agreement import ACCEPT, differences
from cards_core.loop.model_identity import identity_of
from cards_core.loop.pacing import Pacer
from cards_core.muscles.command import CommandRefusedError
from cards_core.stamps import end_of

MODEL_REMEDY = f"give both the same parameter model, or set {ACCEPT} of both"
"""What to do about different models where both come from parameters."""

REPORT_PERIOD = 0.1
"""How often progress is reported, [s] of wall time."""


def check_models(control: ControlLoop, host: Host, remedy: str = MODEL_REMEDY) -> None:
    """Compare the models of controller and simulator, as the nodes do over the topic ``model``.

    Args:
        control: The controller.
        host: The simulator.
        remedy: What would make them agree, for the message.

    Raises:
        CardsError: They differ; the message says in what.
    """
    if control.robot is host.robot:
        return
    found = differences(identity_of(control.robot), identity_of(host.robot))
    if found:
        raise CardsError(
            f"controller (here) and simulator (there) have different models: {'; '.join(found)}; "
            f"{remedy}"
        )


def strides(host: SteppedHost, every: int, duration: float) -> Callable[[], None]:
    """Return what advances a host by some steps, and by fewer before the end of a run.

    Args:
        host: The robot.
        every: How many steps, >= 1.
        duration: Time of the host at which the run ends, [s]; 0: never.
    """
    end, dt = end_of(duration), host.dt

    def step() -> None:
        left = math.ceil((end - host.stamp) / (1e9 * dt) - 1e-6) if end else every
        host.steps(min(every, max(left, 1)))

    return step


def run_closed_loops(
    pairs: Sequence[tuple[Host, ControlLoop | None]],
    step: Callable[[], None],
    duration: float,
    *,
    period: float | None = None,
    pacer: Pacer | None = None,
    deadlines: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> float:
    """Step hosts that share their time, and their controllers, until a time.

    Args:
        pairs: At least one host, each with what answers its states, if anything.
        step: Advances all hosts, by one step or up to the next state that controllers see, and
            logs it.
        duration: Time of the hosts at which the run ends, [s]; 0: never.
        period: From one state that controllers see to the next, [s]; they find out if None.
        pacer: Makes time pass as fast as the clock, where ``step`` is one step; as fast as
            possible without one.
        deadlines: Whether steps that the pacer finds late are missed deadlines of the
            controllers; without them time only is slower.
        on_time: Called with the time of the hosts [s] a few times a second.

    Returns:
        The wall time it took, [s].

    Raises:
        CardsError: The physics diverged, a controller needs what its host does not know, or its
            gains are not stable with the step of the host.
        OSError: A log cannot be written.
    """
    for _, control in pairs:
        if control is not None and period is not None:
            control.controller.set_period(period)
    clock = time.perf_counter
    begin = shown = clock()
    end = end_of(duration)
    if pacer is not None:
        pacer.start(begin)
    first = pairs[0][0]
    while end == 0 or first.stamp < end:
        start = begun = clock()
        for host, control in pairs:
            if control is None:
                continue
            command = control.step(host.state)
            # the gate counts refusals, and its watchdog lets go of muscles that are told nothing
            with contextlib.suppress(CommandRefusedError):
                host.submit(command)
            now = clock()
            late = 0 if pacer is None or not deadlines else pacer.overruns
            control.record(1e6 * (now - begun), late)
            begun = now
        step()
        if pacer is not None:
            now = clock()
            pacer.done(now)
            for host, _ in pairs:
                host.behind = pacer.behind
            if (rest := pacer.remaining(now)) > 0.0:
                time.sleep(rest)
        if on_time is not None and start - shown > REPORT_PERIOD:
            shown = start
            on_time(first.state.time)
    return clock() - begin
