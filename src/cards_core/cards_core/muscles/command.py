"""The command gate between controllers and a host's muscles: limits, watchdog, emergency stop.

Every host (embedded simulator, Gazebo, hardware) applies what `MuscleCommand.values` returns
and nothing else, so what is refused, and what happens when a controller dies, is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from cards_core.description.actuators import CommandKind, Pneumatic
from cards_core.description.model import Muscle, Robot
from cards_core.errors import CardsError, UnknownNameError
from cards_core.typing import Array


class CommandRefusedError(CardsError):
    """A command that was refused as a whole; nothing of it was applied."""


class GateCondition(IntEnum):
    """Whether the muscles do what they are told; a number in the logs of hosts."""

    OBEYING = 0
    """They do, or nobody has told them anything yet."""
    WATCHDOG = 1
    """A muscle that has been commanded has had no valid command for too long: it is let go."""
    STOPPED = 2
    """An emergency stop is active."""


KINDS: tuple[CommandKind, ...] = ("force", "length", "pressure", "excitation")
"""Kinds of commands; the position in this tuple is the code in `MuscleCommand.kinds`."""

NO_COMMAND = -1
"""Code of a muscle that was never told anything."""

FORCE, LENGTH, PRESSURE, EXCITATION = range(4)

_QUANTITY = {
    "force": ("tension", "N"),
    "length": ("rest length", "m"),
    "pressure": ("pressure", "Pa"),
    "excitation": ("excitation", ""),
}


class MuscleCommand:
    """Accepts commands by muscle name and says what every muscle is told now.

    A muscle that was never commanded does what its type does without a command: an ideal cable
    has ``tension_min``, an elastic one keeps its rest length, a motor its position, a pneumatic
    muscle is vented, a biological one relaxes. A command holds for ``timeout``; then, with ``age``
    the time since the muscle's last valid command, tensions, pressures and excitations go down to
    their lower limit,

        f = f_min + (f_command - f_min) max(0, 1 - (age - timeout) / decay_time)

    a straight line that arrives after ``decay_time``, and a muscle that was told a length gets
    ``tension_min`` instead: a length held without anybody watching can pull without bound. The
    watchdog works muscle by muscle: if two senders command different muscles and one of them dies,
    its muscles relax. The last command of a muscle counts, of whichever kind it is.

    Args:
        robot: Gives names, limits and what kinds of commands each muscle takes.
        timeout: [s]; infinite switches the watchdog off.
        decay_time: [s]; 0 drops to the minimum at once.

    Attributes:
        minimum, maximum: Limits of the tensions, shape (m,), [N].
        kinds: Code of the kind of command of every muscle (index in `KINDS`, or `NO_COMMAND`),
            shape (m,), as of the last call of `values`.
        accepted, refused: Number of commands since construction.
        lapses: Calls of `values` since the last `reset` in which the watchdog acted.
        first_lapse: Time of the first of them, [s]; NaN without any.
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
        self._accepts = [muscle.actuator.accepted_commands for muscle in robot.muscles]
        self._index = {name: i for i, name in enumerate(self._names)}
        self.minimum: Array = np.array([m.tension_min for m in robot.muscles], dtype=float)
        self.maximum: Array = np.array([m.tension_max for m in robot.muscles], dtype=float)
        count = len(self._names)
        # limits per kind, shape (4, m); finite, so that an infinite command fails the comparison
        # even without a limit; empty (lower > upper) where a muscle does not take the kind
        self._lower = np.full((len(KINDS), count), np.inf)
        self._upper = np.full((len(KINDS), count), -np.inf)
        for i, muscle in enumerate(robot.muscles):
            for kind in self._accepts[i]:
                low, high = _limits(muscle, kind)
                self._lower[KINDS.index(kind), i] = low
                self._upper[KINDS.index(kind), i] = min(high, np.finfo(float).max)
        self._inside = np.empty((2, count), dtype=bool)
        self._above, self._below = self._inside
        self.accepted = 0
        self.refused = 0
        self.last_refusal: str | None = None
        self.last_refusal_time: float | None = None
        self.kinds: npt.NDArray[np.intp] = np.full(count, NO_COMMAND, dtype=np.intp)
        self._told_kinds = self.kinds.copy()
        self._told = self.minimum.copy()
        self._times: Array = np.empty(count)
        self.reset()

    def reset(self) -> None:
        """Forget all commands and release the emergency stop; the counters go on."""
        self._stopped = False
        self._told_kinds[:] = NO_COMMAND
        self._told[:] = self.minimum
        self._times[:] = -math.inf
        self._oldest = -math.inf
        self._now = -math.inf
        self.lapses = 0
        self.first_lapse = math.nan
        self.last_refusal = None
        self.last_refusal_time = None

    def estop(self) -> None:
        """Put all commanded muscles to the minimum at once and refuse commands until `reset`."""
        self._stopped = True
        told = np.isfinite(self._times)
        self._told_kinds[told] = FORCE
        self._told[told] = self.minimum[told]
        self._times[:] = -math.inf
        self._oldest = -math.inf

    @property
    def stopped(self) -> bool:
        """Whether the emergency stop is active."""
        return self._stopped

    @property
    def stale(self) -> bool:
        """Whether, at the time of the last call of `values`, commands were missing.

        True before the first command, and when a muscle that has been commanded since the last
        `reset` has had no valid command for ``timeout``.
        """
        return math.isinf(self._oldest) or self._now - self._oldest > self.timeout

    @property
    def condition(self) -> GateCondition:
        """What held at the time of the last call of `values`."""
        if self._stopped:
            return GateCondition.STOPPED
        # minus infinity: never told
        late = self._now - self._oldest > self.timeout and self._oldest > -math.inf
        return GateCondition.WATCHDOG if late else GateCondition.OBEYING

    @property
    def stale_muscles(self) -> tuple[str, ...]:
        """Names of the muscles whose commands stopped coming, as of the last `values` call."""
        late = np.isfinite(self._times) & (self._now - self._times > self.timeout)
        return tuple(name for name, flag in zip(self._names, late, strict=True) if flag)

    def submit(
        self,
        names: Sequence[str],
        values: npt.ArrayLike | Sequence[float],
        time: float,
        *,
        kind: CommandKind = "force",
    ) -> None:
        """Take over a command for some or all muscles.

        Args:
            names: Muscle names, in any order.
            values: For each, tension [N], rest length [m], pressure [Pa] or excitation 0..1.
            time: Time of arrival in the host's time, [s].
            kind: What the values are.

        Raises:
            CommandRefusedError: Emergency stop active; no names; an unknown name or one given
                twice; a muscle that does not take this kind of command; another number of values
                than of names; a value that is not finite or outside the muscle's limits. Nothing
                is applied then.
        """
        if self._stopped:
            self._refuse(kind, "emergency stop is active: reset before commanding", time)
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            self._refuse(kind, f"values are not numbers: {values!r:.80}", time)
        names = names if type(names) is list else list(names)
        if names == self._names and array.shape == self._told.shape:
            code = KINDS.index(kind)
            np.greater_equal(array, self._lower[code], self._above)  # False for NaN
            np.less_equal(array, self._upper[code], self._below)
            if np.count_nonzero(self._inside) == self._inside.size and time - time == 0.0:
                self._told[:] = array
                self._told_kinds[:] = code
                self._times[:] = time
                self._oldest = time
                self.accepted += 1
                return
        self._submit_checked(names, array, time, kind)

    def _submit_checked(
        self, names: list[str], values: Array, time: float, kind: CommandKind
    ) -> None:
        """Take over a partial or reordered command, or find out why it has to be refused."""
        code = KINDS.index(kind)
        quantity, unit = _QUANTITY[kind]
        if not math.isfinite(time):
            self._refuse(kind, f"time of the command is {time}", time)
        if not names:
            self._refuse(kind, "no muscle is named", time)
        if values.shape != (len(names),):
            count = values.size if values.ndim == 1 else f"an array of shape {values.shape} of"
            self._refuse(kind, f"{count} values for {len(names)} names", time)
        rows = []
        for name, value in zip(names, values.tolist(), strict=True):
            row = self._index.get(name)
            if row is None:
                self._refuse(kind, str(UnknownNameError("muscle", str(name), self._names)), time)
            if kind not in self._accepts[row]:
                known = ", ".join(self._accepts[row]) or "none: it is passive"
                self._refuse(
                    kind, f"muscle '{name}' takes no {kind} command (it takes {known})", time
                )
            low, high = self._lower[code, row], self._upper[code, row]
            if not low <= value <= high:
                top = math.inf if high == np.finfo(float).max else high
                self._refuse(
                    kind,
                    f"{quantity} of muscle '{name}' is {value:g} {unit}".rstrip()
                    + f", expected {low:g} .. {top:g} {unit}".rstrip(),
                    time,
                )
            rows.append(row)
        if len(set(rows)) < len(rows):
            twice = next(name for name in names if names.count(name) > 1)
            self._refuse(kind, f"muscle '{twice}' is named more than once", time)
        self._told[rows] = values
        self._told_kinds[rows] = code
        self._times[rows] = time
        self._oldest = float(np.min(self._times[np.isfinite(self._times)]))
        self.accepted += 1

    def _refuse(self, kind: CommandKind, reason: str, time: float) -> NoReturn:
        self.refused += 1
        self.last_refusal = reason
        self.last_refusal_time = time
        raise CommandRefusedError(f"{_QUANTITY[kind][0]} command refused: {reason}")

    def values(self, time: float) -> Array:
        """Return what every muscle is told at a time, shape (m,); a new array.

        What the numbers are says `kinds`, which this updates: tensions [N], rest lengths [m],
        pressures [Pa] or excitations.

        Args:
            time: In the host's time, [s].
        """
        self._now = time
        self.kinds[:] = self._told_kinds
        if time - self._oldest <= self.timeout:
            return self._told.copy()
        if self.condition is GateCondition.WATCHDOG:
            self.first_lapse = self.first_lapse if self.lapses else time
            self.lapses += 1
        late = time - self._times - self.timeout
        if self.decay_time > 0.0:
            share = np.clip(1.0 - late / self.decay_time, 0.0, 1.0)
        else:
            share = (late <= 0.0).astype(float)
        share[~np.isfinite(self._times)] = 1.0  # never told: what it has is where it stays
        lost = (late > 0.0) & np.isfinite(self._times) & (self.kinds == LENGTH)
        self.kinds[lost] = FORCE
        floor = self._lower[self.kinds, np.arange(len(share))]
        passive = ~np.isfinite(floor)
        floor[passive] = self._told[passive]
        out: Array = floor + share * (self._told - floor)
        out[lost] = self.minimum[lost]
        return out


def _limits(muscle: Muscle, kind: CommandKind) -> tuple[float, float]:
    """Return what a muscle can be told."""
    match kind:
        case "force":
            return muscle.tension_min, muscle.tension_max
        case "pressure" if isinstance(muscle.actuator, Pneumatic):
            return 0.0, muscle.actuator.max_pressure
        case "excitation":
            return 0.0, 1.0
    return 0.0, math.inf
