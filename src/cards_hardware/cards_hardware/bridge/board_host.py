"""The real robot as a host: states of its boards, commands to them, a gate and a log.

Boards tell the time: a state has the time at which it was measured, and nothing here advances it.
Nothing is repeated either: a simulator asks the gate in every step what all muscles are told; here
a command is sent once, when it comes. If it were repeated, the watchdogs of the boards, which work
muscle by muscle, would not see that a controller is silent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.errors import CardsError, ParameterError
from cards_core.loop.host import GAINS, Host
from cards_core.muscles.actuators.thermal import MotorTemperatures
from cards_core.muscles.command import CommandPart, CommandRefusedError
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import NANOSECONDS, seconds
from cards_core.typing import Array
from cards_hardware.boards.layout import Layout
from cards_hardware.bridge.hardware import Hardware, HardwareStatus
from cards_hardware.bridge.states import HardwareState
from cards_hardware.errors import HardwareError
from cards_hardware.percentiles import RingStatistics

LOG_NAME = "hardware.npz"
"""File in the folder of a run."""

QUANTITIES = ("current", "winding_temperature", "housing_temperature")
"""What is known of every muscle beside length, rate and tension: [A], [degC]; that of the winding
is the board's estimate."""

LEAST_ADVANCE = 100_000
"""Smallest difference of two stamps, [ns]; a sample that is not newer by that much has none."""


class SampleClock:
    """Stamps samples in ROS time, which is the system's time where nothing is simulated.

    The difference of the two clocks is read by `adjust` and then kept: a system clock that is set
    while the robot moves must not move the robot.

    Args:
        ros: Returns ROS time, [ns].
        monotonic: Returns the monotonic time, [ns].
    """

    def __init__(
        self,
        ros: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._ros = ros
        self._monotonic = monotonic
        self._last = -LEAST_ADVANCE
        self.offset = 0
        self.adjust()

    def _difference(self) -> int:
        before = self._monotonic()
        ros = self._ros()
        return ros - (before + self._monotonic()) // 2

    def adjust(self) -> None:
        """Read the difference of the clocks again; not while the robot moves."""
        self.offset = self._difference()
        self._last = -LEAST_ADVANCE

    @property
    def error(self) -> float:
        """By how much ROS time was set forward since `adjust`, [s]."""
        return seconds(self._difference() - self.offset)

    def stamp(self, sampled: float) -> int | None:
        """Return the stamp of a sample, [ns], or None if it is not newer than the one before.

        Args:
            sampled: Its time on the monotonic clock, [s].
        """
        stamp = round(sampled * NANOSECONDS) + self.offset
        if stamp - self._last < LEAST_ADVANCE:
            return None
        self._last = stamp
        return stamp

    @property
    def now(self) -> float:
        """The monotonic time, [s]."""
        return self._monotonic() / NANOSECONDS

    def age(self, sampled: float) -> float:
        """Return how old a sample is now, [s]."""
        return self.now - sampled


class BoardHost(Host):
    """A robot whose muscles are driven by boards.

    It is a host without a step of its own: `read` takes over what the boards measured, and a
    command goes to them within `submit`.

    Args:
        robot: The robot.
        layout: Its boards. Of their tension limits and those of the robot the closer ones count;
            the impedance laws are theirs.
        hardware: The boards.
        command_timeout: Age at which a muscle's command counts as given up, [s]. It is reported;
            what acts are the watchdogs of the boards.
        clock: Stamps samples.
        log_path: ``.npz`` to write with one row per state; none if None.

    Attributes:
        hardware: As given.
        clock: Stamps samples.
        active: Whether commands pass.
        status: The boards as last looked at by `refresh`.
        states, skipped: States read so far, and samples of which none was made.
        commands: Commands sent so far.
        ages: Ages of the states when they were published, [s].
        durations: Of checking and sending a command, [s].

    Raises:
        OSError: The log cannot be written there.
    """

    log_columns = ("board_state", "active", "age")

    def __init__(
        self,
        robot: Robot,
        layout: Layout,
        hardware: Hardware,
        *,
        command_timeout: float,
        clock: SampleClock | None = None,
        log_path: Path | None = None,
    ) -> None:
        names = [muscle.name for muscle in robot.muscles]
        super().__init__(
            layout.limited(robot),
            [f"{name}/{quantity}" for name in names for quantity in QUANTITIES],
            command_timeout=command_timeout,
            log_path=log_path,
        )
        self.hardware = hardware
        self.clock = clock or SampleClock()
        self.active = False
        self.states = self.skipped = self.commands = 0
        self.ages, self.durations = RingStatistics(), RingStatistics()
        self._layout = layout
        self._names = names
        self._index = {name: i for i, name in enumerate(names)}
        self._stamp = 0
        self._state: RobotState | None = None
        self._sample: HardwareState | None = None
        self._age = float("nan")
        self._actuators = np.full((len(names), len(QUANTITIES)), np.nan)
        self._temperatures = MotorTemperatures(names, self.actuator_names)
        self.refresh()

    # States -----------------------------------------------------------------------------------

    def read(self, sample: HardwareState) -> bool:
        """Take over what the boards measured.

        Args:
            sample: As `Hardware.take` returned it.

        Returns:
            Whether it makes a state: no board is missing, q is known, and it is newer than the
            state before. If not, the present state stays.
        """
        stamp = self.clock.stamp(sample.time)
        if not sample.complete or stamp is None:
            self.skipped += 1
            return False
        self.states += 1
        self._actuators[:, 0] = sample.currents
        self._stamp, self._sample = stamp, sample
        self._state = RobotState(
            seconds(stamp),
            sample.q,
            sample.qd,
            muscle_lengths=sample.lengths,
            muscle_rates=sample.rates,
            tensions=sample.tensions,
            efforts=np.empty(0),
            actuators=self._actuators.flatten(),
            temperatures=self._temperatures.among(self._actuators.ravel()),
        )
        return True

    @property
    def stamp(self) -> int:
        """When the present state was measured, in ROS time [ns]; 0 before the first."""
        return self._stamp

    @property
    def _present(self) -> RobotState:
        if self._state is None:
            raise CardsError("no state is known yet: the boards have not sent a complete one")
        return self._state

    def refresh(self) -> HardwareStatus:
        """Look at the boards and at what they send slowly; return their status."""
        self.status = self.hardware.status()
        for layout, board in zip(self._layout.boards, self.status.boards, strict=True):
            measured = (board.core_temperatures, board.temperatures)
            for column, temperatures in enumerate(measured, start=1):
                if temperatures:
                    self._actuators[layout.muscle_rows, column] = temperatures
        return self.status

    def record(self) -> None:
        """Note how old the present state was when it was published, and log it."""
        assert self._sample is not None
        self._age = self.clock.age(self._sample.time)
        self.ages.add(self._age)
        if self.log is not None:
            self.gate.values(self.now)  # the log says whether commands are missing
        super().record()

    def log_values(self) -> tuple[float, ...]:
        """Return the state of the boards, whether commands pass, and the age of the state, [s]."""
        assert self._sample is not None
        return float(self._sample.state), float(self.active), self._age

    # Commands ---------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Time at which commands arrive, monotonic [s]: it goes on when states do not come."""
        return self.clock.now

    @property
    def stale(self) -> bool:
        """Whether muscles that were told something hear nothing any more."""
        self.gate.values(self.now)
        return self.gate.stale

    def _accept(self, part: CommandPart, now: float) -> None:
        """Check a part of a command and send it to the boards, once."""
        begin = time.perf_counter()
        if part.kind == "excitation":
            raise CommandRefusedError(
                "excitation command refused: muscle boards take force, length, pressure and "
                "impedance"
            )
        super()._accept(part, now)
        told = self.gate.values(now)
        if list(part.names) != self._names:
            addressed = np.zeros(len(self._names), dtype=bool)
            addressed[[self._index[name] for name in part.names]] = True
            told[~addressed] = np.nan
        try:
            if part.kind == "impedance":
                self._send_set_points(told)
            else:
                self.hardware.command(part.kind, told)
        except HardwareError as error:
            raise CommandRefusedError(str(error)) from error
        self.commands += 1
        self.durations.add(time.perf_counter() - begin)

    def _send_set_points(self, tensions: Array) -> None:
        """Send T0, with l0 and v0 of the gate; the boards compute the law."""
        law = self.gate.impedance
        lengths, rates = law.rest_length.copy(), law.rest_rate.copy()
        lengths[np.isnan(lengths)] = 0.0  # without stiffness none is needed
        nobody = np.isnan(tensions)
        lengths[nobody] = rates[nobody] = np.nan
        self.hardware.impedance(lengths, rates, tensions)

    def change(self, parameters: Mapping[str, Any]) -> None:
        """Take over gains of the impedance law on all boards, or on none.

        Raises:
            ParameterError: A number does not fit, or a board does not take it.
        """
        law = self.gate.impedance
        gains = {
            gain: parameters[name]
            for name, gain in GAINS.items()
            if name in parameters and not np.array_equal(parameters[name], getattr(law, gain))
        }
        before = {gain: getattr(law, gain).copy() for gain in gains}
        super().change(parameters)
        try:
            if gains:
                self.hardware.change_impedance({gain: getattr(law, gain).copy() for gain in gains})
        except CardsError as error:
            law.change(before)
            raise ParameterError(f"impedance law: {error}") from error

    def estop(self) -> None:
        """Put all boards at their safe tensions at once, and refuse commands; never waits."""
        self.hardware.estop()
        super().estop()

    def reset(self) -> None:
        """Forget all commands and release the emergency stop of the gate.

        Time and log go on: nobody can put a real robot back to its start. What boards have
        latched `Hardware.clear` releases.
        """
        self.gate.reset()
