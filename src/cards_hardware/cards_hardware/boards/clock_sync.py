"""Synchronisation of a board's clock with the host's.

A board counts microseconds in 32 bits, which wrap after 71.6 minutes, with a crystal of its own.
Host and board exchange four times as in NTP: the host sends at t1, the board receives at t2 and
answers at t3 (its clock), the host receives at t4. With delays d1 there and d2 back,

    offset  = ((t2 - t1) + (t3 - t4)) / 2,   error (d1 - d2) / 2,
    delay   = (t4 - t1) - (t3 - t2) = d1 + d2

and every exchange proves that the offset (host minus board) lies between t1 - t2 and t4 - t3. Of
the newest exchanges the largest lower and the least upper bound count, each from whichever
exchange was fastest in that direction; the offset is in their middle. The error that remains is
half the difference of the two *least* delays, whatever jitter either direction has (compare
Mills, RFC 5905, clock filter, which takes both bounds from one exchange).

Bounds of different age need the drift: the slope of a straight line through all exchanges kept,
each weighted by how far its delay is above the least one, with a prior of 100 ppm that keeps the
slope small until the exchanges span enough time to tell it.
"""

from __future__ import annotations

from collections import deque

import numpy as np

WRAP = 1 << 32
"""Microseconds after which a board's clock starts again."""

_EXCHANGES = 256  # that count for the drift
_NEWEST = 64  # of them, that count for the offset
_FLOOR = 20.0  # [us] error that an exchange has even with the least delay
_DRIFT = 100e-6  # [s/s] standard deviation of crystals, a priori
_JUMP = 3000.0  # [us] beyond what the delay explains: the clock was set again


def wrap_difference(later: int, earlier: int) -> int:
    """Return later - earlier of a wrapping clock, in -2^31 .. 2^31 - 1 [us]."""
    return (later - earlier + (WRAP >> 1)) % WRAP - (WRAP >> 1)


class ClockSync:
    """Maps a board's time to the host's.

    Attributes:
        ready: Whether an exchange has been seen; without one `to_host` cannot be asked.
        exchanges: That were taken in since the last reset.
        error: Bound of the mapping's error as seen from the best exchange, [s].
        drift: Drift of the board's clock, positive if it is slow, [s/s].
        rtt: Shortest delay of both ways together among the exchanges that count, [s].
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, float]] = deque(maxlen=_EXCHANGES)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the board has restarted."""
        self._samples.clear()
        self.ready = False
        self.exchanges = 0
        self.error = float("inf")
        self.drift = 0.0
        self.rtt = float("nan")
        self._line = (0, 0.0, 0.0)  # device time [us], host - device there [us], slope

    def unwrap(self, t_us: int, host_us: int) -> int:
        """Return a board's time without wrap, for something that happened around a host time."""
        device, offset, slope = self._line
        elapsed = host_us - offset - device
        expected = device + round(elapsed - slope * elapsed)
        return expected + wrap_difference(t_us, expected % WRAP)

    def add(self, t1: int, t2: int, t3: int, t4: int) -> bool:
        """Take in an exchange.

        Args:
            t1: When the host sent, [us], not wrapped.
            t2: When the board received, its clock, [us], wrapped.
            t3: When the board answered, [us].
            t4: When the host received, [us], not wrapped.

        Returns:
            False if it contradicts the earlier ones by more than its delay explains: the board's
            clock was set again. It is not taken in then.
        """
        served = wrap_difference(t3, t2)
        delay = float(t4 - t1 - served)
        if delay < 0.0 or served < 0:
            return True  # not an exchange that happened; no statement about the clock
        middle = (t1 + t4) // 2
        if not self.ready:
            self._line = (t2, float(middle - t2), 0.0)
        start = self.unwrap(t2, middle)
        half = start + served // 2
        offset = 0.5 * (t1 + t4) - (start + 0.5 * served)
        allowed = 0.5 * delay + self.error * 1e6 + _JUMP
        if self.ready and abs(offset - self._offset(half)) > allowed:
            return False
        self._samples.append((delay, half, offset))
        self.exchanges += 1
        self._fit()
        return True

    def _offset(self, device: int) -> float:
        at, offset, slope = self._line
        return offset + slope * (device - at)

    def _fit(self) -> None:
        rows = np.array(self._samples)
        last = self._samples[-1][1]
        delay, time, offset = rows[:, 0], rows[:, 1] - last, rows[:, 2]
        least = float(delay.min())
        bound = 0.5 * (delay - least) + _FLOOR
        weight = bound**-2.0
        total = weight.sum()
        centred = time - weight @ time / total
        slope = float(weight @ (centred * offset) / (weight @ (centred * centred) + _DRIFT**-2.0))
        new = slice(-_NEWEST, None)
        level = offset[new] - slope * time[new]
        low = float(np.max(level - 0.5 * delay[new]))
        high = float(np.min(level + 0.5 * delay[new]))
        self._line = (last, 0.5 * (low + high), slope)
        self.drift = slope
        self.rtt = least * 1e-6
        self.error = (0.5 * abs(high - low) + _FLOOR) * 1e-6
        self.ready = True

    def to_host(self, t_us: int, host_us: int) -> float:
        """Return the host's time of something that a board stamped.

        Args:
            t_us: The board's stamp.
            host_us: Roughly when, within half an hour: the time of arrival. [us]

        Returns:
            Host time, [s].
        """
        device = self.unwrap(t_us, host_us)
        return (device + self._offset(device)) * 1e-6
