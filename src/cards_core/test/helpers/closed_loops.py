"""A host and a controller that run until a time."""

from cards_core.loop.closed_loop import run_closed_loops


def run_closed_loop(host, control, duration, **options):
    """Step a host and what answers its states, if anything; return the wall time it took, [s]."""
    return run_closed_loops([(host, control)], host.step, duration, period=host.dt, **options)
