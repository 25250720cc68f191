"""The command gate between controllers and a host's muscles: limits, watchdog, emergency stop.

Every host (embedded simulator, Gazebo, hardware) applies what `TensionCommand.tensions` returns
and nothing else, so what is refused, and what happens when a controller dies, is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from cards_core.description.model import Robot
from cards_core.errors import CardsError, UnknownNameError
from cards_core.typing import Array


class CommandRefusedError(CardsError):
    """A command that was refused as a whole; nothing of it was applied."""


class TensionCommand:
    """Accepts tension commands by muscle name and says what tension every muscle has now.

    A muscle that was never commanded has its ``tension_min``. A command holds for ``timeout``;
    then, with ``age`` the time since the muscle's last valid command,

        f = f_min + (f_command - f_min) max(0, 1 - (age - timeout) / decay_time)

    a straight line that arrives at the minimum after ``decay_time``. The watchdog works muscle
    by muscle: if two senders command different muscles and one of them dies, its muscles relax.

    Args:
        robot: Gives names and tension limits.
        timeout: [s]; infinite switches the watchdog off.
        decay_time: [s]; 0 drops to the minimum at once.

    Attributes:
        accepted, refused: Number of commands since construction.
        last_refusal: Reason of the latest refusal since the last `reset`, if any.
        last_refusal_time: Its time, [s].

    Raises:
        CardsError: ``timeout`` or ``decay_time`` is not a sensible number.
    """

    def __init__(self, robot: Robot, *, timeout: float, decay_time: float = 0.0) -> None:
        if not timeout > 0.0:
            raise CardsError(f"command timeout is {timeout} s, expected a time > 0")
        if not (decay_time >= 0.0 and math.isfinite(decay_time)):
            raise CardsError(f"decay time is {decay_time} s, expected a finite time >= 0")
        self.timeout = float(timeout)
        self.decay_time = float(decay_time)
        self._names = [muscle.name for muscle in robot.muscles]
        self._index = {name: i for i, name in enumerate(self._names)}
        self.minimum: Array = np.array([m.tension_min for m in robot.muscles], dtype=float)
        self.maximum: Array = np.array([m.tension_max for m in robot.muscles], dtype=float)
        # finite, so that an infinite command fails the comparison even without a limit
        self._ceiling: Array = np.minimum(self.maximum, np.finfo(float).max)
        self._inside = np.empty((2, len(self._names)), dtype=bool)
        self._above, self._below = self._inside
        self.accepted = 0
        self.refused = 0
        self.last_refusal: str | None = None
        self.last_refusal_time: float | None = None
        self._commanded = self.minimum.copy()
        self._times: Array = np.empty(len(self._names))
        self.reset()

    def reset(self) -> None:
        """Forget all commands and release the emergency stop; the counters go on."""
        self._stopped = False
        self._commanded[:] = self.minimum
        self._times[:] = -math.inf
        self._oldest = -math.inf
        self._now = -math.inf
        self.last_refusal = None
        self.last_refusal_time = None

    def estop(self) -> None:
        """Put all tensions to the minimum at once and refuse commands until `reset`."""
        self._stopped = True
        self._commanded[:] = self.minimum
        self._times[:] = -math.inf
        self._oldest = -math.inf

    @property
    def stopped(self) -> bool:
        """Whether the emergency stop is active."""
        return self._stopped

    @property
    def stale(self) -> bool:
        """Whether, at the time of the last call of `tensions`, commands were missing.

        True before the first command, and when a muscle that has been commanded since the last
        `reset` has had no valid command for ``timeout``.
        """
        return math.isinf(self._oldest) or self._now - self._oldest > self.timeout

    @property
    def stale_muscles(self) -> tuple[str, ...]:
        """Names of the muscles whose commands stopped coming, as of the last `tensions` call."""
        late = np.isfinite(self._times) & (self._now - self._times > self.timeout)
        return tuple(name for name, flag in zip(self._names, late, strict=True) if flag)

    def submit(
        self, names: Sequence[str], values: npt.ArrayLike | Sequence[float], time: float
    ) -> None:
        """Take over a command for some or all muscles.

        Args:
            names: Muscle names, in any order.
            values: Tension of each, [N].
            time: Time of arrival in the host's time, [s].

        Raises:
            CommandRefusedError: Emergency stop active; no names; an unknown name or one given
                twice; another number of values than of names; a value that is not finite or
                outside the muscle's limits. Nothing is applied then.
        """
        if self._stopped:
            self._refuse("emergency stop is active: reset before commanding", time)
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            self._refuse(f"values are not numbers: {values!r:.80}", time)
        names = names if type(names) is list else list(names)
        if names == self._names and array.shape == self._commanded.shape:
            np.greater_equal(array, self.minimum, self._above)  # False for NaN
            np.less_equal(array, self._ceiling, self._below)
            if np.count_nonzero(self._inside) == self._inside.size and time - time == 0.0:
                self._commanded[:] = array
                self._times[:] = time
                self._oldest = time
                self.accepted += 1
                return
        self._submit_checked(names, array, time)

    def _submit_checked(self, names: list[str], values: Array, time: float) -> None:
        """Take over a partial or reordered command, or find out why it has to be refused."""
        if not math.isfinite(time):
            self._refuse(f"time of the command is {time}", time)
        if not names:
            self._refuse("no muscle is named", time)
        if values.shape != (len(names),):
            count = values.size if values.ndim == 1 else f"an array of shape {values.shape} of"
            self._refuse(f"{count} values for {len(names)} names", time)
        rows = []
        for name, value in zip(names, values.tolist(), strict=True):
            row = self._index.get(name)
            if row is None:
                self._refuse(str(UnknownNameError("muscle", str(name), self._names)), time)
            low, high = self.minimum[row], self.maximum[row]
            if not low <= value <= high or not math.isfinite(value):
                self._refuse(
                    f"tension of muscle '{name}' is {value:g} N, expected {low:g} .. {high:g} N",
                    time,
                )
            rows.append(row)
        if len(set(rows)) < len(rows):
            twice = next(name for name in names if names.count(name) > 1)
            self._refuse(f"muscle '{twice}' is named more than once", time)
        self._commanded[rows] = values
        self._times[rows] = time
        self._oldest = float(np.min(self._times[np.isfinite(self._times)]))
        self.accepted += 1

    def _refuse(self, reason: str, time: float) -> NoReturn:
        self.refused += 1
        self.last_refusal = reason
        self.last_refusal_time = time
        raise CommandRefusedError(f"tension command refused: {reason}")

    def tensions(self, time: float) -> Array:
        """Return the tension of every muscle at a time, shape (m,), [N]; a new array.

        Args:
            time: In the host's time, [s].
        """
        self._now = time
        if time - self._oldest <= self.timeout:
            return self._commanded.copy()
        late = time - self._times - self.timeout
        if self.decay_time > 0.0:
            share = np.clip(1.0 - late / self.decay_time, 0.0, 1.0)
        else:
            share = (late <= 0.0).astype(float)
        out: Array = self.minimum + share * (self._commanded - self.minimum)
        return out
