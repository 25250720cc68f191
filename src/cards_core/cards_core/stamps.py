"""Time stamps as integer nanoseconds, the one form of time that survives a message exactly.

A `builtin_interfaces/Time` holds whole seconds and nanoseconds, so a float time that went through
a message is not the float that was sent. Everything that must repeat to the last digit therefore
keeps time as an integer and turns it into seconds with `seconds`, with and without ROS.
"""

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

LONGEST_RUN = 1e9
"""Longest duration of a run [s]: seconds in messages are integers of 32 bits."""


def nanoseconds(time: float) -> int:
    """Return a time in [s] as the nearest whole number of nanoseconds."""
    return round(time * NANOSECONDS)


def end_of(duration: float) -> int:
    """Return the stamp at which a run of a duration [s] ends; 0, which is without an end, for 0.

    Any other duration, however short, has an end: the first nanosecond at the earliest.
    """
    return max(1, nanoseconds(duration)) if duration > 0.0 else 0


def seconds(stamp: int) -> float:
    """Return a stamp in [ns] as seconds; every part of CARDS uses this one rounding."""
    return stamp / 1e9


def quantised(time: float) -> float:
    """Return ``time`` [s] as it arrives at the other end of a topic."""
    return seconds(nanoseconds(time))


ROUNDING = 1e-6
"""Share of a period by which a state may be early for what is due with it."""


def is_due(time: float, due: float, period: float) -> bool:
    """Tell whether something that is done once a period is due at the time of a state, all [s].

    Args:
        time: Time of the state, [s].
        due: When it is due, [s].
        period: [s].
    """
    return time + ROUNDING * period >= due


def next_due(time: float, due: float, period: float) -> float:
    """Return when it is due again, done now although it was due a little earlier, all [s].

    One period after it was due, not after now: states come when they come, and what waits for the
    next one each time would be done too seldom (every 10 ms instead of 8 with states each 2 ms
    that are stamped to a few microseconds). Where a period or more was left out, nothing is made
    up for: one period after now.

    Args:
        time: Time of the state, [s].
        due: When it was due, [s].
        period: [s].
    """
    following = due + period
    if time < following <= time + period * (1.0 + ROUNDING):
        return following
    return time + period
