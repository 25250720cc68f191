"""Commands by name, and the gate they pass in a host: limits, watchdog, emergency stop.

A controller says what it asks for as a `Command`: tensions of muscles, efforts of joint motors.
Every host (embedded simulator, Gazebo, hardware) applies what `MuscleCommand.values` returns
and nothing else, so what is refused, and what happens when a controller dies, is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice, check_kind, shown
from cards_core.errors import CardsError, UnknownNameError
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.robot.actuators import CommandKind, Pneumatic
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.typing import Array


class CommandRefusedError(CardsError):
    """A command that was refused as a whole; nothing of it was applied."""


class GateCondition(IntEnum):
    """Whether muscles and motors do what they are told; a number in the logs of hosts."""

    OBEYING = 0
    """They do, or nobody has told them anything yet."""
    WATCHDOG = 1
    """One that has been commanded has had no valid command for too long: it is let go."""
    STOPPED = 2
    """An emergency stop is active."""


KINDS: tuple[CommandKind, ...] = (
    "force",
    "length",
    "pressure",
    "excitation",
    "effort",
    "impedance",
)
"""Kinds of commands; the position in this tuple is the code in `MuscleCommand.kinds`."""

NO_COMMAND = -1
"""Code of a muscle or motor that was never told anything."""

FORCE, LENGTH, PRESSURE, EXCITATION, EFFORT, IMPEDANCE = range(6)

_NOTHING: Array = np.empty(0)

_LARGEST = float(np.finfo(float).max)

_QUANTITY = {
    "force": ("tension", "N"),
    "length": ("rest length", "m"),
    "pressure": ("pressure", "Pa"),
    "excitation": ("excitation", ""),
    "effort": ("effort", "Nm or N"),
    "impedance": ("impedance", "N"),
}


_SET_POINTS = ("tension", "rest length", "rest rate")
"""Set-points of the impedance law, as messages call them."""


@dataclass(eq=False, slots=True)
class CommandPart:
    """Values of one kind, for muscles or for joint motors.

    Attributes:
        kind: What the values are; says on which topic they travel.
        names: Of muscles; of joint coordinates if the kind is ``effort``.
        values: One for each name; [N], [m], [Pa], 0..1, or for ``effort`` [Nm] or [N]; for
            ``impedance`` T0, [N].
        rest_lengths, rest_rates: For ``impedance`` l0 [m] and v0 [m/s], one for each name. Empty,
            or NaN for one muscle: what was set before. So it is for its ``values``.
    """

    kind: CommandKind
    names: Sequence[str]
    values: Array
    rest_lengths: Array = field(default_factory=lambda: _NOTHING)
    rest_rates: Array = field(default_factory=lambda: _NOTHING)


Command: TypeAlias = tuple[CommandPart, ...]
"""What a controller asks of a host at one instant; each kind at most once."""


def command_of(
    names: Sequence[str], values: npt.ArrayLike, kind: CommandKind = "force"
) -> Command:
    """Return a command of one kind.

    Args:
        names: Of muscles, or of motors if the kind is ``effort``.
        values: One for each name.
        kind: What the values are.
    """
    # the gate of the host checks values, and says what is wrong with them
    return (CommandPart(kind, names, cast(Array, values)),)


def check_command(command: object, what: str) -> None:
    """Refuse what is no command.

    Args:
        command: What is to be one: a tuple or list of parts.
        what: What it is; the message begins with it.

    Raises:
        CardsError: It is none, or has two parts of one kind.
    """
    if type(command) is tuple and len(command) == 1 and type(command[0]) is CommandPart:
        return  # as nearly all are; this is done in every control step
    if type(command) is not tuple:
        check_kind(command, (tuple, list), what, _COMMAND)
    for part in cast(Command, command):
        if type(part) is not CommandPart:
            check_kind(part, CommandPart, f"a part of {what}", "a CommandPart")
    kinds = [part.kind for part in cast(Command, command)]
    if len(kinds) > 1 and len(set(kinds)) < len(kinds):
        twice = next(kind for kind in kinds if kinds.count(kind) > 1)
        raise CardsError(f"{what} has two parts of the kind '{twice}' (expected: each kind once)")


_COMMAND = "a tuple of CommandPart, as command_of(names, values) returns"


class _Group:
    """The muscles, or the motors, of a robot: where they are among all, and how they are named.

    Attributes:
        noun: ``muscle`` or ``motor``.
        names, index: Names, and the row of each.
        rows: Where they are among all.
        whole: There are no others.
        commanded: Whether any of them takes commands.
    """

    def __init__(
        self, noun: str, names: Sequence[str], first: int, total: int, *, commanded: bool
    ) -> None:
        self.noun = noun
        self.names = list(names)
        self.index = {name: first + i for i, name in enumerate(names)}
        self.rows = slice(first, first + len(self.names))
        self.shape = (len(self.names),)
        self.whole = len(self.names) == total
        self.commanded = commanded
        self.inside = np.empty((2, len(self.names)), dtype=bool)
        self.above, self.below = self.inside


class MuscleCommand:
    """Accepts commands by name and says what every muscle and every joint motor is told now.

    A muscle that was never commanded does what its type does without a command: an ideal cable
    has ``tension_min``, an elastic one keeps its rest length, a motor its position, a pneumatic
    muscle is vented, a biological one relaxes. A command holds for ``timeout``; then, with ``age``
    the time since the muscle's last valid command, tensions, pressures and excitations go down to
    their lower limit,

        f = f_min + (f_command - f_min) max(0, 1 - (age - timeout) / decay_time)

    a straight line that arrives after ``decay_time``, and a muscle that was told a length gets
    ``tension_min`` instead: a length held without anybody watching can pull without bound. Muscles
    under the impedance law let go along the same line as those that were told a tension. The
    watchdog works muscle by muscle: if two senders command different muscles and one of them dies,
    its muscles relax. The last command of a muscle counts, of whichever kind it is.

    Joints with a motor take commands of the kind ``effort``, by the names of their coordinates
    (`Motors.names`), within ``-effort .. effort`` of the joint. A motor that was never told
    anything gives no effort, one whose commands stop goes to zero along the same line, and so it
    does at an emergency stop. Muscles come first in all arrays, then the motors.

    Args:
        robot: Gives names, limits and what kinds of commands each muscle takes.
        timeout: [s]; infinite switches the watchdog off.
        decay_time: [s]; 0 drops to the minimum at once.

    Attributes:
        minimum, maximum: Limits of the tensions, shape (m,), [N].
        motors: Names of the k motors.
        impedance: The law of the muscles, with the set-points that hold as of the last call of
            `values`; whoever knows lengths and rates computes the tensions from it.
        kinds: Code of the kind of command of every muscle and motor (index in `KINDS`, or
            `NO_COMMAND`), shape (m + k,), as of the last call of `values`.
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
        self._accepts = [muscle.actuator.accepted_commands for muscle in robot.muscles]
        motors = motors_of(robot.tree) if any(j.motor for j in robot.joints) else None
        self.motors: tuple[str, ...] = () if motors is None else motors.names
        m = len(robot.muscles)
        count = m + len(self.motors)
        names, active = [muscle.name for muscle in robot.muscles], any(self._accepts)
        self._muscles = _Group("muscle", names, 0, count, commanded=active)
        self._motors = _Group("motor", self.motors, m, count, commanded=bool(self.motors))
        self.minimum: Array = np.array([m.tension_min for m in robot.muscles], dtype=float)
        self.maximum: Array = np.array([m.tension_max for m in robot.muscles], dtype=float)
        # limits per kind, shape (6, m + k); finite, so that an infinite command fails the
        # comparison even without a limit; empty (lower > upper) where a kind is not taken
        self._lower = np.full((len(KINDS), count), np.inf)
        self._upper = np.full((len(KINDS), count), -np.inf)
        for i, muscle in enumerate(robot.muscles):
            for kind in self._accepts[i]:
                low, high = command_limits(muscle, kind)
                self._lower[KINDS.index(kind), i] = low
                self._upper[KINDS.index(kind), i] = min(high, _LARGEST)
        if motors is not None:
            self._upper[EFFORT, m:] = np.minimum(motors.efforts, _LARGEST)
            self._lower[EFFORT, m:] = -self._upper[EFFORT, m:]
        self._bounds = {
            (kind, group.noun): (
                code,
                self._lower[code, group.rows],
                self._upper[code, group.rows],
            )
            for code, kind in enumerate(KINDS)
            for group in (self._muscles, self._motors)
        }
        # where a watchdog leads to: the lower limit, but no effort of a motor
        self._floor = self._lower.copy()
        self._floor[EFFORT, m:] = 0.0
        self._relaxed = np.concatenate([self.minimum, np.zeros(len(self.motors))])
        self.impedance = ImpedanceLaw(robot.muscles)
        self._under_law = False  # whether a muscle was ever told to be
        self._all_under_law = all("impedance" in kinds for kinds in self._accepts)
        self.accepted = 0
        self.refused = 0
        self.last_refusal: str | None = None
        self.last_refusal_time: float | None = None
        self.kinds: npt.NDArray[np.intp] = np.full(count, NO_COMMAND, dtype=np.intp)
        self._told_kinds = self.kinds.copy()
        self._told = self._relaxed.copy()
        self._times: Array = np.empty(count)
        self.reset()

    def reset(self) -> None:
        """Forget all commands and release the emergency stop; the counters go on."""
        self._stopped = False
        self.impedance.reset()
        self._under_law = False
        self._told_kinds[:] = NO_COMMAND
        self._told[:] = self._relaxed
        self._times[:] = -math.inf
        self._oldest = -math.inf
        self._now = -math.inf
        self.lapses = 0
        self.first_lapse = math.nan
        self.last_refusal = None
        self.last_refusal_time = None

    def estop(self) -> None:
        """Put all that was commanded to the minimum at once and refuse commands until `reset`.

        Muscles get their minimum tension, motors no effort.
        """
        self._stopped = True
        told = np.isfinite(self._times)
        self._told_kinds[told] = FORCE
        self._told_kinds[self._motors.rows][told[self._motors.rows]] = EFFORT
        self._told[told] = self._relaxed[told]
        self._times[:] = -math.inf
        self._oldest = -math.inf

    @property
    def stopped(self) -> bool:
        """Whether the emergency stop is active."""
        return self._stopped

    @property
    def stale(self) -> bool:
        """Whether, at the time of the last call of `values`, commands were missing.

        True before the first command, and when a muscle or motor that has been commanded since
        the last `reset` has had no valid command for ``timeout``.
        """
        return math.isinf(self._oldest) or self._now - self._oldest > self.timeout

    def unanswered(self, time: float) -> tuple[str, ...]:
        """Return who was told nothing at a time: some of ``muscles`` and ``motors``.

        A state is answered when each of them that takes commands has had one: they come as
        messages of their own.

        Args:
            time: Of arrival, as given to `submit`, [s].
        """
        return tuple(
            f"{group.noun}s"
            for group in (self._muscles, self._motors)
            if group.commanded and not np.any(self._times[group.rows] == time)
        )

    @property
    def addressees(self) -> tuple[str, ...]:
        """Who takes commands at all: some of ``muscles`` and ``motors``."""
        return tuple(f"{g.noun}s" for g in (self._muscles, self._motors) if g.commanded)

    @property
    def at_rest(self) -> str:
        """What an emergency stop and the watchdog lead to, in words."""
        return "tensions at their minimum" + (", motors without effort" if self.motors else "")

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
        return self._late(self._muscles)

    @property
    def stale_motors(self) -> tuple[str, ...]:
        """Names of the motors likewise."""
        return self._late(self._motors)

    def _late(self, group: _Group) -> tuple[str, ...]:
        times = self._times[group.rows]
        late = np.isfinite(times) & (self._now - times > self.timeout)
        return tuple(name for name, flag in zip(group.names, late, strict=True) if flag)

    def submit(
        self,
        names: Sequence[str],
        values: npt.ArrayLike | Sequence[float],
        time: float,
        *,
        kind: CommandKind = "force",
        rest_lengths: Array = _NOTHING,
        rest_rates: Array = _NOTHING,
    ) -> None:
        """Take over a command for some or all muscles, or for some or all motors.

        Args:
            names: Muscle names, or for the kind ``effort`` names of motors, in any order.
            values: For each, tension [N], rest length [m], pressure [Pa], excitation 0..1, or
                effort [Nm] or [N]; T0 [N] of the kind ``impedance``.
            time: Time of arrival in the host's time, [s].
            kind: What the values are.
            rest_lengths: Of the kind ``impedance``, see `CommandPart`.
            rest_rates: Likewise.

        Raises:
            CommandRefusedError: Emergency stop active; no names; an unknown name or one given
                twice; a muscle that does not take this kind of command; another number of values
                than of names; a value that is not finite or outside the limits of the muscle or
                motor. Nothing is applied then.
            UnknownNameError: No such kind of command.
        """
        if kind not in _QUANTITY:
            raise UnknownNameError("command kind", kind, KINDS)
        if self._stopped:
            self._refuse(kind, "emergency stop is active: reset before commanding", time)
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            self._refuse(kind, f"values are not numbers: {shown(values)}", time)
        if type(names) is not list:
            if isinstance(names, str) or not isinstance(names, Iterable):
                self._refuse(kind, f"names are {shown(names)}, expected a list of names", time)
            names = list(names)
        if kind == "impedance":
            if not self._took_whole_law(names, array, rest_lengths, rest_rates, time):
                self._submit_impedance(names, array, rest_lengths, rest_rates, time)
            return
        group = self._motors if kind == "effort" else self._muscles
        if names == group.names and array.shape == group.shape and (names or group.whole):
            rows = group.rows
            code, lower, upper = self._bounds[kind, group.noun]
            np.greater_equal(array, lower, group.above)  # False for NaN
            np.less_equal(array, upper, group.below)
            if np.count_nonzero(group.inside) == group.inside.size and time - time == 0.0:
                self._told[rows] = array
                self._told_kinds[rows] = code
                self._took(rows, time, whole=group.whole)
                return
        self._submit_checked(group, names, array, time, kind)

    def _took(self, rows: slice | list[int], time: float, *, whole: bool = False) -> None:
        """Note that a command for these rows was accepted; ``whole``: for all there are."""
        self._times[rows] = time
        times = self._times
        self._oldest = time if whole else float(np.min(times[np.isfinite(times)]))
        self.accepted += 1

    def _submit_checked(
        self, group: _Group, names: list[str], values: Array, time: float, kind: CommandKind
    ) -> None:
        """Take over a partial or reordered command, or find out why it has to be refused."""
        code = KINDS.index(kind)
        quantity, unit = _QUANTITY[kind]
        rows = self._rows(group, names, kind, time)
        if values.shape != (len(names),):
            count = values.size if values.ndim == 1 else f"an array of shape {values.shape} of"
            self._refuse(kind, f"{count} values for {len(names)} names", time)
        for row, name, value in zip(rows, names, values.tolist(), strict=True):
            low, high = self._lower[code, row], self._upper[code, row]
            if not low <= value <= high:
                bottom, top = (
                    x if abs(x) < _LARGEST else math.copysign(math.inf, x) for x in (low, high)
                )
                self._refuse(
                    kind,
                    f"{quantity} of {group.noun} '{name}' is {value:g} {unit}".rstrip()
                    + f", expected {bottom:g} .. {top:g} {unit}".rstrip(),
                    time,
                )
        self._told[rows] = values
        self._told_kinds[rows] = code
        self._took(rows, time)

    def _rows(self, group: _Group, names: list[str], kind: CommandKind, time: float) -> list[int]:
        """Return the rows of names that may all be told this, or refuse the command."""
        if not math.isfinite(time):
            self._refuse(kind, f"time of the command is {time}", time)
        if not names:
            self._refuse(kind, f"no {group.noun} is named", time)
        rows = []
        for name in names:
            row = group.index.get(name)
            if row is None:
                self._refuse(kind, str(UnknownNameError(group.noun, str(name), group.names)), time)
            if kind != "effort" and kind not in self._accepts[row]:
                known = ", ".join(self._accepts[row]) or "none: it is passive"
                self._refuse(
                    kind, f"muscle '{name}' takes no {kind} command (it takes {known})", time
                )
            rows.append(row)
        if len(set(rows)) < len(rows):
            twice = next(name for name in names if names.count(name) > 1)
            self._refuse(kind, f"{group.noun} '{twice}' is named more than once", time)
        return rows

    def _took_whole_law(
        self, names: list[str], tensions: Array, lengths: Array, rates: Array, time: float
    ) -> bool:
        """Take over set-points if all muscles have all of them, within their bounds.

        As controllers do it in every step; the rest is left to `_submit_impedance`.
        """
        group, law = self._muscles, self.impedance
        if not self._all_under_law or names != group.names or not group.names:
            return False
        for array in (tensions, lengths, rates):
            if type(array) is not np.ndarray or array.shape != group.shape:
                return False
            if array.dtype != float or not math.isfinite(array.dot(array)):
                return False
        np.less_equal(tensions, self.maximum, group.below)
        good = bool(group.below.all()) and tensions.min() >= 0.0 and lengths.min() >= 0.0
        if not good or not math.isfinite(time):
            return False
        self._told[group.rows] = tensions
        law.rest_length[:], law.rest_rate[:] = lengths, rates
        self._told_kinds[group.rows] = IMPEDANCE
        self._under_law = True
        self._took(group.rows, time, whole=group.whole)
        return True

    def _submit_impedance(
        self, names: list[str], tensions: Array, lengths: Array, rates: Array, time: float
    ) -> None:
        """Take over set-points of the impedance law."""
        kind: CommandKind = "impedance"
        rows = self._rows(self._muscles, names, kind, time)
        law = self.impedance
        under = self._told_kinds[rows] == IMPEDANCE
        before = (
            np.where(under, self._told[rows], law.tension_floor[rows]),
            np.where(under, law.rest_length[rows], np.nan),
            np.where(under, law.rest_rate[rows], 0.0),
        )
        merged = []
        for what, given, last in zip(_SET_POINTS, (tensions, lengths, rates), before, strict=True):
            array = np.asarray(given, dtype=float)
            if array.size and array.shape != (len(names),):
                self._refuse(kind, f"{array.size} {what}s for {len(names)} names", time)
            merged.append(np.where(np.isnan(array), last, array) if array.size else last)
        # a muscle without stiffness needs no length
        needed = law.stiffness[rows] > 0.0
        bounds = (
            (np.zeros(len(rows)), self.maximum[rows]),
            (np.zeros(len(rows)), np.full(len(rows), math.inf)),
            (np.full(len(rows), -math.inf), np.full(len(rows), math.inf)),
        )
        for what, unit, array, (low, high) in zip(
            _SET_POINTS, ("N", "m", "m/s"), merged, bounds, strict=True
        ):
            good = np.isfinite(array) & (array >= low) & (array <= high)
            if what == "rest length":
                good |= np.isnan(array) & ~needed
            if not good.all():
                bad = int(np.argmin(good))
                expected = "a finite number"
                if what == "rest length" and math.isnan(array[bad]):
                    expected = "one in the first command, because the muscle has a stiffness"
                elif math.isfinite(low[bad]):
                    expected = f"{low[bad]:g} .. {high[bad]:g} {unit}"
                self._refuse(
                    kind,
                    f"{what} of muscle '{names[bad]}' is {array[bad]:g} {unit}, "
                    f"expected {expected}",
                    time,
                )
        self._told[rows], law.rest_length[rows], law.rest_rate[rows] = merged
        self._told_kinds[rows] = IMPEDANCE
        self._under_law = True
        self._took(rows, time, whole=len(rows) == len(self._told))

    def _refuse(self, kind: CommandKind, reason: str, time: float) -> NoReturn:
        self.refused += 1
        self.last_refusal = reason
        self.last_refusal_time = time
        raise CommandRefusedError(f"{_QUANTITY[kind][0]} command refused: {reason}")

    def steady(self, time: float, dt: float) -> int:
        """Return for how many steps from a time on `values` stays the same, without commands.

        Args:
            time: Of the first step, [s].
            dt: Between steps, [s].

        Returns:
            0 where commands decay already.
        """
        left = self._oldest + self.timeout - time
        if not math.isfinite(left):
            return 0
        # a step less: times are rounded to nanoseconds
        return max(0, math.floor(left / dt))

    def values(self, time: float) -> Array:
        """Return what every muscle and motor is told at a time, shape (m + k,); a new array.

        What the numbers are says `kinds`, which this updates: tensions [N], rest lengths [m],
        pressures [Pa], excitations, or efforts [Nm] or [N].

        Args:
            time: In the host's time, [s].
        """
        self._now = time
        self.kinds[:] = self._told_kinds
        law = self.impedance
        if self._under_law:
            np.equal(self.kinds[: law.active.size], IMPEDANCE, out=law.active)
            law.any_active = bool(law.active.any())
            law.share[:] = 1.0
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
        floor = self._floor[self.kinds, np.arange(len(share))]
        passive = ~np.isfinite(floor)
        floor[passive] = self._told[passive]
        out: Array = floor + share * (self._told - floor)
        out[lost] = self._relaxed[lost]
        if law.any_active:
            muscles = slice(0, law.active.size)
            law.share[:] = np.where(law.active, share[muscles], 1.0)
            out[muscles][law.active] = self._told[muscles][law.active]
        return out


def command_limits(muscle: Muscle, kind: CommandKind) -> tuple[float, float]:
    """Return the minimum and maximum value that a muscle can be told.

    Args:
        muscle: The muscle.
        kind: What the value is: [N], [m], [Pa] or 0..1.

    Raises:
        UnknownNameError: A muscle takes no such command.
    """
    check_choice(kind, f"command of muscle '{muscle.name}'", _LIMITS)
    return _LIMITS[kind](muscle)


def _pressure_limits(muscle: Muscle) -> tuple[float, float]:
    if not isinstance(muscle.actuator, Pneumatic):
        raise UnknownNameError(
            f"pressure limit of muscle '{muscle.name}'", muscle.kind, (Pneumatic.kind,)
        )
    return 0.0, muscle.actuator.max_pressure


_LIMITS: Mapping[str, Callable[[Muscle], tuple[float, float]]] = {
    "force": lambda muscle: (muscle.tension_min, muscle.tension_max),
    "length": lambda _: (0.0, math.inf),
    "pressure": _pressure_limits,
    "excitation": lambda _: (0.0, 1.0),
    "impedance": lambda muscle: (0.0, muscle.tension_max),
}
