"""Calibration of zero points and offsets of a robot's sensors; the logic, without a user.

Three numbers per channel are not in any data sheet:

    load cell     T = scale (counts - zero)          zero: counts of a slack muscle
    length        l = sign scale counts + offset     offset: from the model's l(q) at a known pose
    joint sensor  q = scale (counts - zero)          zero: from the known pose

The boards do the arithmetic (CALIBRATE) with what they measure at that moment. The host records a
second before, to see whether the robot is at rest and how large the noise is, and a second after,
to verify the result. Zeroes of load cells are then refined by the mean of that second. Everything
happens while the boards are DISARMED: no call here can arm them. Until `Calibration.save` all is
in the boards' memory only, which refuse arming meanwhile, and `Calibration.restore` brings back
what was there. Should the host die, the boards drop it with the next session.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import CardsError
from cards_core.estimation import LengthCalibration, calibrate_lengths
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.calibration.recording import (
    CalibratedBoard,
    ChannelResult,
    Measurement,
    Recorder,
    RestStatistics,
    record,
)
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.enums import CalibrateAction, ParameterId

TENSION_NOISE = 2.0
"""Standard deviation of a sound load cell at most, [N]."""

LENGTH_MOTION = 0.5e-3
"""A length that changes or shakes by more is not standing still, [m]."""

JOINT_MOTION = 5e-3
"""The same of a joint, [rad] or [m]."""

ZERO_SHIFT = 50.0
"""Largest shift of a load cell's zero that is believed, [N]: more is a muscle that pulls."""

LENGTH_CHECK = 0.2e-3
"""Largest difference after the length offset was set, [m]: a few steps of an encoder."""

JOINT_CHECK = 2e-3
"""Largest difference after a joint's zero was set, [rad]."""

POSE_NOISE = 0.2e-3
"""Standard deviation of a mean length that is assumed at least, [m]: wires stretch."""

SECONDS = 1.0
"""How long sensors are recorded, [s]."""

SETTLING = 0.1
"""Between a change and looking at what came of it, [s]."""

_OF_ACTION = {
    CalibrateAction.TENSION_ZERO: ParameterId.LOAD_ZERO,
    CalibrateAction.LENGTH: ParameterId.LENGTH_OFFSET,
    CalibrateAction.JOINT_ZERO: ParameterId.JOINT_ZERO,
}


class Calibration:
    """Calibrates the boards of one robot.

    Args:
        robot: Its description.
        layouts: Layouts of its boards.
        boards: Open, in the same order.
        recorders: Each gets the samples of its board.
        seconds: How long to record sensors, [s].
        wait: Waits; another one where time is not real.

    Attributes:
        dynamics: Dynamics of the robot.
        saved: Whether `save` has written zero points to the flash of all boards.
    """

    def __init__(
        self,
        robot: Robot,
        layouts: Sequence[BoardLayout],
        boards: Sequence[CalibratedBoard],
        recorders: Sequence[Recorder],
        *,
        seconds: float = SECONDS,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self.robot = robot
        self.dynamics: Dynamics = make_dynamics(robot)
        self.layouts = tuple(layouts)
        self.boards = tuple(boards)
        self.seconds = seconds
        self.saved = False
        self._recorders = tuple(recorders)
        self._wait = wait
        self._old: dict[tuple[int, ParameterId, int], int] = {}
        self._in_flash = False  # whether flash may have others than the old ones

    @property
    def changed(self) -> bool:
        """Whether a board may have other zero points than at the beginning or the last `save`."""
        return bool(self._old)

    def measure(self, seconds: float | None = None) -> Measurement:
        """Record all boards for a given time.

        Raises:
            HardwareError: A board is silent or not disarmed.
        """
        found = record(
            self._recorders,
            [layout.name for layout in self.layouts],
            self.seconds if seconds is None else seconds,
            self._wait,
        )
        return Measurement(
            tuple(found),
            tuple(RestStatistics.of(r.times, r.tensions) for r in found),
            tuple(RestStatistics.of(r.times, r.lengths) for r in found),
            tuple(RestStatistics.of(r.times, r.positions) for r in found),
        )

    def _measure_again(self) -> Measurement:
        """Record after a change; what was measured before it may still be on its way."""
        (self._wait or time.sleep)(SETTLING)
        return self.measure()

    # What speaks against a step ---------------------------------------------------------------

    def motion_problems(self, measurement: Measurement) -> list[str]:
        """Return what moves or is not measured."""
        out = []
        for layout, lengths, joints in zip(
            self.layouts, measurement.lengths, measurement.joints, strict=True
        ):
            moved = np.maximum(np.abs(lengths.drift), lengths.noise)
            for name, by in zip(layout.muscles, moved, strict=True):
                out += _moving(f"length of {name}", float(by), LENGTH_MOTION, 1e3, "mm")
            moved = np.maximum(np.abs(joints.drift), joints.noise)
            for name, by in zip(layout.joints, moved, strict=False):
                out += _moving(f"joint {name}", float(by), JOINT_MOTION, 1e3, "mrad")
        return out

    def tension_problems(self, measurement: Measurement) -> list[str]:
        """Return what speaks against taking the present tensions for zero."""
        out = self.motion_problems(measurement)
        for layout, tensions in zip(self.layouts, measurement.tensions, strict=True):
            for i, name in enumerate(layout.muscles):
                mean, noise = float(tensions.mean[i]), float(tensions.noise[i])
                if not np.isfinite(mean):
                    out.append(f"{name}: no valid tension (load cell, its cable, its drive)")
                elif noise > TENSION_NOISE:
                    out.append(
                        f"{name}: noise of {noise:.2f} N (expected: < {TENSION_NOISE:g} N; "
                        "shield, connector, something that shakes)"
                    )
                elif abs(mean) > ZERO_SHIFT:
                    out.append(
                        f"{name}: {mean:+.1f} N (expected: within {ZERO_SHIFT:g} N of zero; is "
                        "the muscle slack, and are LOAD_SCALE and LOAD_ZERO of this unit?)"
                    )
        return out

    # The steps --------------------------------------------------------------------------------

    def zero_tensions(self, measurement: Measurement) -> list[ChannelResult]:
        """Make the present tensions zero; muscles must be slack.

        Args:
            measurement: A fresh one, without `tension_problems`.

        Raises:
            HardwareError: A board refuses, or there are problems.
        """
        self._refuse(self.tension_problems(measurement))
        for board, layout in enumerate(self.layouts):
            channels = range(len(layout.muscles))
            self._calibrate(board, CalibrateAction.TENSION_ZERO, channels, [0] * len(channels))
        check = self._measure_again()
        for board, tensions in enumerate(check.tensions):
            # a board averages little or not at all: half a second of ours is better
            for channel, mean in enumerate(tensions.mean):
                scale = self.boards[board].get_parameter(ParameterId.LOAD_SCALE, channel)
                counts = round(float(mean) / (scale * ParameterId.LOAD_SCALE.scale))
                if counts:
                    old = self.boards[board].get_parameter(ParameterId.LOAD_ZERO, channel)
                    self.boards[board].set_parameter(ParameterId.LOAD_ZERO, channel, old + counts)
        check = self._measure_again()
        wanted = [np.zeros(len(layout.muscles)) for layout in self.layouts]
        names = [layout.muscles for layout in self.layouts]
        return self._results(
            ParameterId.LOAD_ZERO,
            names,
            measurement.tensions,
            check.tensions,
            wanted,
            tolerance=0.2,
        )

    def set_lengths(self, measurement: Measurement, q: Array) -> list[ChannelResult]:
        """Make the present lengths those of a pose.

        Args:
            measurement: A fresh one, without `motion_problems`.
            q: Where the robot is, shape (nq,).

        Raises:
            HardwareError: A board refuses, or something moves.
        """
        return self.set_lengths_to(measurement, self.lengths_at(q))

    def lengths_from_poses(
        self, measurements: Sequence[Measurement], first: Array
    ) -> LengthCalibration:
        """Estimate poses and offsets from lengths alone; the offsets are those of the boards now.

        Args:
            measurements: Of each pose, without `motion_problems`.
            first: Guess of the first pose, shape (nq,).

        Raises:
            HardwareError: A muscle has no board, or a value is not valid.
        """
        m = len(self.robot.muscles)
        readings = np.full((len(measurements), m), np.nan)
        noise = 0.0
        for row, measurement in enumerate(measurements):
            for layout, lengths in zip(self.layouts, measurement.lengths, strict=True):
                readings[row, layout.muscle_rows] = lengths.mean
                noise = max(noise, float(np.max(lengths.noise, initial=0.0)))
        if not np.isfinite(readings).all():
            missing = ~np.isfinite(readings).all(axis=0)
            names = [x.name for x, gone in zip(self.robot.muscles, missing, strict=True) if gone]
            raise HardwareError(
                f"no lengths of {', '.join(names)} (expected: of all muscles, on these boards)"
            )
        return calibrate_lengths(
            self.robot, readings, first=first, length_noise=max(noise, POSE_NOISE)
        )

    def set_lengths_to(self, measurement: Measurement, wanted: Array) -> list[ChannelResult]:
        """Make the present lengths these ones, shape (m,), [m]; as `set_lengths`."""
        self._refuse(self.motion_problems(measurement))
        for board, layout in enumerate(self.layouts):
            values = [round(float(wanted[row]) * 1e6) for row in layout.muscle_rows]
            self._calibrate(board, CalibrateAction.LENGTH, range(len(values)), values)
        check = self._measure_again()
        return self._results(
            ParameterId.LENGTH_OFFSET,
            [layout.muscles for layout in self.layouts],
            measurement.lengths,
            check.lengths,
            [wanted[layout.muscle_rows] for layout in self.layouts],
            tolerance=LENGTH_CHECK,
        )

    def zero_joints(self, measurement: Measurement, q: Array) -> list[ChannelResult]:
        """Make the present angles those of a pose; boards without joint sensors are left alone."""
        self._refuse(self.motion_problems(measurement))
        for board, layout in enumerate(self.layouts):
            if len(layout.position_rows):
                values = [round(float(q[row]) * 1e6) for row in layout.position_rows]
                self._calibrate(board, CalibrateAction.JOINT_ZERO, range(len(values)), values)
        check = self._measure_again()
        names = self.dynamics.tree.position_names
        return self._results(
            ParameterId.JOINT_ZERO,
            [[names[row] for row in layout.position_rows] for layout in self.layouts],
            measurement.joints,
            check.joints,
            [np.asarray(q)[layout.position_rows] for layout in self.layouts],
            tolerance=JOINT_CHECK,
        )

    def lengths_at(self, q: Array) -> Array:
        """Return the model's muscle lengths at q, shape (m,), [m]."""
        q = self.dynamics.tree.check_q(q)
        return self.dynamics.update(q, np.zeros(self.dynamics.tree.nv)).muscle_lengths.copy()

    # Keeping or not ---------------------------------------------------------------------------

    def save(self) -> None:
        """Write what was found to the flash of all boards, with one number for the calibration.

        `Hardware.arm` compares the numbers, so that boards with zero points of different
        calibrations are not armed.

        Whatever ends it early, Ctrl-C included, all boards are told their old zero points and save
        these. Should that be ended too, `restore` does it.

        Raises:
            HardwareError: A board did not save it; the message says if one did not save its old
                zero points either.
        """
        number = secrets.randbelow(ParameterId.CALIBRATION.maximum) + 1
        self.saved = False
        try:
            for board in range(len(self.boards)):
                self._note_old(board, ParameterId.CALIBRATION, 0)
                self.boards[board].set_parameter(ParameterId.CALIBRATION, 0, number)
            wanted = self.parameters()
            self._in_flash = True
            for each in self.boards:
                each.save_parameters()
            if self.parameters() != wanted:
                raise HardwareError("a board lost its zero points before they were saved")
            self.saved = True
            self._old.clear()  # the step after which nothing is put back any more
            self._in_flash = False
        except BaseException as error:
            if not self._old:
                self._in_flash = False
                raise
            self.saved = False
            left = self._put_back()
            if left or isinstance(error, CardsError):
                told = f"not saved: {str(error) or 'interrupted'}"
                left = left or "all boards have their old zero points"
                raise HardwareError(f"{told}; {left}") from error
            raise

    def restore(self) -> None:
        """Restore the zero points of the beginning, or of the last `save`.

        Raises:
            HardwareError: A board does not answer; the others have their old ones.
        """
        if left := self._put_back():
            raise HardwareError(left)

    def _put_back(self) -> str:
        """Tell all boards their old zero points; return what those have that did not take them."""
        failed = []
        for board, layout in enumerate(self.layouts):
            old = [(*key[1:], value) for key, value in self._old.items() if key[0] == board]
            for last in (False, True):
                try:
                    if last:
                        self.boards[board].open()  # one that restarted needs a new session
                    for one in old:
                        self.boards[board].set_parameter(*one)
                    if self._in_flash:
                        self.boards[board].save_parameters()
                    break
                except CardsError as error:
                    if last:
                        failed.append((layout.name, error))
        if not failed:
            self._old.clear()
            self._in_flash = False
            return ""
        names, reason = ", ".join(name for name, _ in failed), failed[-1][1]
        if not self._in_flash:
            return f"board {names} has new zero points, not saved: switch it off and on ({reason})"
        others = len(self.boards) > len(failed)
        return (
            f"what flash of board {names} has is not known, its old zero points or the new ones "
            f"({reason}){', the others have their old zero points' if others else ''}: calibrate "
            f"again{'; boards that differ are not armed' if len(self.boards) > 1 else ''}"
        )

    def _note_old(self, board: int, parameter: ParameterId, channel: int) -> None:
        """Keep the value of the beginning; a later one is not it."""
        key = (board, parameter, channel)
        if key not in self._old:
            self._old[key] = self.boards[board].get_parameter(parameter, channel)

    def parameters(self) -> dict[str, dict[str, list[int]]]:
        """Return the zero points that the boards have now: board, parameter, values."""
        out: dict[str, dict[str, list[int]]] = {}
        for layout, board in zip(self.layouts, self.boards, strict=True):
            counts: Mapping[ParameterId, int] = {
                ParameterId.LOAD_ZERO: len(layout.muscles),
                ParameterId.LENGTH_OFFSET: len(layout.muscles),
                ParameterId.JOINT_ZERO: len(layout.position_rows),
            }
            out[layout.name] = {
                parameter.name: [board.get_parameter(parameter, i) for i in range(count)]
                for parameter, count in counts.items()
            }
        return out

    def _calibrate(
        self, board: int, action: CalibrateAction, channels: Sequence[int], values: list[int]
    ) -> None:
        parameter = _OF_ACTION[action]
        for channel in channels:
            self._note_old(board, parameter, channel)
        self.boards[board].calibrate(action, channels, values)

    def _results(
        self,
        parameter: ParameterId,
        names: Sequence[Sequence[str]],
        before: Sequence[RestStatistics],
        after: Sequence[RestStatistics],
        wanted: Sequence[Array],
        *,
        tolerance: float,
    ) -> list[ChannelResult]:
        """Return what became of the named channels; sequences have an entry for each board."""
        out = []
        for board, layout in enumerate(self.layouts):
            for channel, name in enumerate(names[board]):
                left = float(after[board].mean[channel] - wanted[board][channel])
                problem = ""
                if not abs(left) <= tolerance:  # also NaN
                    problem = f"is {left:+.4g} from what it should be (expected: +-{tolerance:g})"
                out.append(
                    ChannelResult(
                        name=name,
                        board=layout.name,
                        channel=channel,
                        before=float(before[board].mean[channel]),
                        noise=float(after[board].noise[channel]),
                        after=float(after[board].mean[channel]),
                        wanted=float(wanted[board][channel]),
                        parameter=parameter.name,
                        old=self._old.get((board, parameter, channel), 0),
                        new=self.boards[board].get_parameter(parameter, channel),
                        problem=problem,
                    )
                )
        return out

    @staticmethod
    def _refuse(problems: list[str]) -> None:
        if problems:
            raise HardwareError(f"not calibrated: {'; '.join(problems)}")


def _moving(what: str, by: float, limit: float, factor: float, unit: str) -> list[str]:
    if not np.isfinite(by):
        return [f"{what}: no valid value (sensor, its cable, its drive)"]
    if by > limit:
        return [
            f"{what} moves by {by * factor:.2f} {unit} (expected: < {limit * factor:g} {unit}; "
            "let it come to rest)"
        ]
    return []
