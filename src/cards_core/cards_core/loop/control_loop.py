"""A controller, its reference and its log: what happens between a state and its command.

The node puts topics around `ControlLoop`; a runner without ROS calls it directly. Both
therefore do the same arithmetic, and a closed loop gives the same trajectory to the last bit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cards_core.checks import check_kind, real_array
from cards_core.control.interface import Controller
from cards_core.control.registry import check_controller
from cards_core.errors import CardsError, ParameterError, ShapeError
from cards_core.loop.run_log import RunLog
from cards_core.loop.task_tally import TaskTally, units_of
from cards_core.muscles.command import Command, CommandPart, check_command
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.trajectories import Reference, as_reference, tolerance_of, with_approach
from cards_core.trajectories.base import HOLDING_TOLERANCE, UNKNOWN_TOLERANCE, Tolerance
from cards_core.typing import Array

COLUMNS: Mapping[CommandKind, str] = {
    "force": "tensions",
    "length": "rest_lengths",
    "pressure": "pressures",
    "excitation": "excitations",
    "effort": "efforts",
    "impedance": "set_lengths",
}
"""Column of the log for each kind of command; of set-points of the impedance law l0."""

SIGNAL = "signal_"
"""What the names of the log's columns of `Controller.signals` begin with."""

_NOTHING = np.empty(0)


class ControlLoop:
    """Steps a controller along a reference that begins with the first step.

    Args:
        controller: The controller.
        reference: What to track; None holds the place of the first step.
        approach_speed: If the robot is elsewhere when the reference begins, it first moves to its
            start with at most this speed, [unit of the reference / s]; 0: it jumps there.
        repeat: Restart the reference whenever it is over, with a motion from its end to its
            start as above.
        log_path: ``.npz`` to write with one row per step; none if None. `start` begins its
            next part.
        robot: The robot as it was described, without model errors; that of the controller's
            model if None.

    Attributes:
        controller, reference, approach_speed, repeat, robot: As given.
        steps: Done since the last start.
        log: The log, if any.
        tally: What was recorded since the log, or its part, began, with or without a log.
        tolerance: Of what is tracked.

    Raises:
        ParameterError: The reference has the wrong size.
        CardsError: The controller lacks something, or the reference is none.
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        controller: Controller,
        reference: Reference | None = None,
        *,
        approach_speed: float = 0.0,
        repeat: bool = False,
        log_path: str | Path | None = None,
        robot: Robot | None = None,
    ) -> None:
        check_controller(controller)
        reference = None if reference is None else as_reference(reference)
        self.controller = controller
        tree = controller.model.dynamics.tree
        self._shapes = (tree.nq,), (tree.nv,)
        self._name = f"controller '{controller.kind}'"
        self._needs = controller.needs
        self.robot = robot or controller.model.robot
        self.reference = reference
        self.approach_speed = approach_speed
        self.repeat = repeat
        controller.set_reference(reference)  # refuses wrong sizes now, not in the first step
        units, error_units = units_of(controller)
        own = HOLDING_TOLERANCE if reference is None else tolerance_of(reference, units)
        spare = controller.allowance
        self._own_tolerance = Tolerance(own.length + spare, own.angle + spare)
        self.tolerance = self._own_tolerance
        self._end = math.nan
        self._again = False
        self.tally = TaskTally(error_units)
        self.log: RunLog | None = None
        parts = {part.kind: part for part in controller.command}
        # a robot without motors has no part for them, and its log an empty column
        self._logged = [parts.get(kind) for kind in controller.commands]
        self._before = math.nan  # time of the first state, [s]
        self._tells_tensions = "force" in controller.commands
        self._answer: Command = controller.command
        self._told: dict[str, dict[str, float]] = {}
        if log_path is not None:
            self.open_log(log_path)
        self.start()

    def start(self, *, keep_log: bool = False) -> None:
        """Begin the reference with the next step.

        Args:
            keep_log: Go on with the log instead of beginning its next part; its times must
                increase.
        """
        self._begin = True
        self.steps = 0
        if keep_log:
            return
        self.tally.reset()
        if self.log is not None:
            self.log.next_part()

    def follow(self, reference: Reference, start: float) -> None:
        """Track another reference that begins at a time [s]. Raises `ParameterError`."""
        self.controller.set_reference(reference, start=start)
        self._begin = self._again = False
        self.tolerance = UNKNOWN_TOLERANCE
        self._end = _end(reference, start)

    def step(self, state: RobotState) -> Command:
        """Return the command for a state.

        Args:
            state: Of the robot. Hosts state times as messages carry them, in whole nanoseconds.

        Raises:
            CardsError: It is no state of this robot, or lacks what the controller needs; or what
                the controller returned is no command.
        """
        try:
            fits = (state.q.shape, state.qd.shape) == self._shapes
        except AttributeError:
            fits = False
        if not fits:
            self._refuse_state(state)
        # where the reference begins must be known; the answer to nonsense is the relaxed command
        known = not self.controller.needs_joints or np.isfinite(state.q).all()
        if self._begin and math.isfinite(state.time) and known:
            if self._needs:
                state.require(self._needs, f"controller {self.controller.kind}")
            self._begin = not self._begin_reference(state)
        elif self._again and state.time >= self._end:
            self._repeat_reference(state.time)
        if self.steps < 2 and self.controller.period is None:
            if self.steps and 0.0 < state.time - self._before < math.inf:
                # for changes to come; states that are looked at by hand may be far apart
                with contextlib.suppress(ParameterError):
                    self.controller.set_period(state.time - self._before)
            self._before = state.time
        self.steps += 1
        self._answer = command = self.controller.step(state)
        check_command(command, f"the answer of {self._name}")
        return command

    def _refuse_state(self, state: object) -> None:
        """Say why something is no state of this robot."""
        check_kind(state, RobotState, "the state", "a RobotState, e.g. sim.state")
        for name, shape in zip(("q", "qd"), self._shapes, strict=True):
            given = getattr(state, name)
            check_kind(given, np.ndarray, f"{name} of the state", f"an array of shape {shape}")
            if given.shape != shape:
                raise ShapeError(
                    f"{name} of the state has shape {given.shape} (expected: {shape}, that of "
                    f"{self.robot.name})"
                )

    def _begin_reference(self, state: RobotState) -> bool:
        """Begin the reference; return False if the controller does not know the place yet."""
        controller = self.controller
        reference = self.planned(state)
        controller.reset()
        controller.set_reference(reference, start=state.time)
        self.tolerance, self._end = self._own_tolerance, _end(reference, state.time)
        self._again = self.repeat and self._end > state.time  # False without an end
        return controller.needs_joints or not controller.reason

    def _repeat_reference(self, now: float) -> None:
        """Restart the reference at its end; what the controller has learned it keeps."""
        reference = self.reference
        assert reference is not None  # else it would have no end
        if self.approach_speed > 0.0:
            end = reference(reference.duration)[0]
            reference = with_approach(reference, end, self.approach_speed)
        self.controller.set_reference(reference, start=now)
        self._end = _end(reference, now)

    def planned(self, state: RobotState) -> Reference | None:
        """Return what is tracked if the reference begins in a state: an approach, then itself."""
        self.controller.set_reference(None)
        reference = self.reference
        if reference is not None and self.approach_speed > 0.0:
            place = self._place(state)
            if np.isfinite(place).all() and place.size == self.controller.output.error.size:
                reference = with_approach(reference, place, self.approach_speed)
        return reference

    def _place(self, state: RobotState) -> Array:
        """Return the y of a state, not finite if the controller does not know it."""
        controller = self.controller
        if not controller.needs_joints and state.muscle_lengths is not None:
            controller.step(state)  # it is for the controller to find out
            return controller.output.actual.copy()
        if not np.isfinite(state.q).all():
            return np.full(controller.output.error.size, np.nan)
        return controller.place(state.q, state.qd)

    def end_from(self, state: RobotState) -> float:
        """Return how long a robot takes from a state to the end of the reference, [s].

        Args:
            state: Its time does not matter.

        Returns:
            The duration of the reference and of the approach before it; NaN without a reference.
        """
        self._begin_reference(replace(state, time=0.0))
        self._begin = True
        return self._end

    def record(self, loop_us: float, missed_deadlines: int) -> None:
        """Log the last step with its duration [us] and the deadlines missed so far.

        Raises:
            OSError: The log cannot be written.
        """
        out = self.controller.output
        left = self._end - out.time
        self.tally.add(out.time, out.status, out.error, self.tolerance, left)
        if self.log is None:
            return
        self.log.append(
            out.time,
            out.desired,
            out.desired_dot,
            out.actual,
            out.error,
            *([] if self._tells_tensions else [out.tensions]),
            *(_NOTHING if part is None else self._submitted(part) for part in self._logged),
            float(out.status),
            out.residual,
            loop_us,
            float(missed_deadlines),
            self.tolerance.length,
            self.tolerance.angle,
            left,
            *(signal.read() for signal in self.controller.signals),
        )

    def _submitted(self, column: CommandPart) -> Array:
        """Return the values of a column of the log: what the last answer says.

        A muscle that it does not name keeps what it was told before, at first its part of
        ``controller.command``; values that are not numbers are NaN.

        Args:
            column: The part of ``controller.command`` that names the entries of the column.
        """
        if self._answer is self.controller.command:
            return _logged_values(column)
        told = self._told.get(column.kind)
        if told is None:
            told = dict(zip(column.names, _logged_values(column).tolist(), strict=True))
            self._told[column.kind] = told
        for part in self._answer:
            if part is column:
                return _logged_values(part)
            if part.kind == column.kind:
                try:
                    values = real_array(_logged_values(part), "command")
                    told.update(zip(part.names, values.tolist(), strict=True))
                except (CardsError, TypeError, ValueError):
                    told.update(dict.fromkeys(column.names, math.nan))
        return np.array([told[name] for name in column.names], dtype=float)

    def open_log(self, path: str | Path) -> None:
        """Record the steps to come. Raises `OSError` if the log cannot be written there."""
        controller, out = self.controller, self.controller.output
        size, velocities = out.desired.size, out.error.size
        self.log = RunLog(
            path,
            {
                "time": None,
                "desired": size,
                "desired_dot": velocities,
                "actual": size,
                "error": velocities,
                # what those expect that command something else
                **({} if self._tells_tensions else {COLUMNS["force"]: out.tensions.size}),
                **{
                    COLUMNS[kind]: 0 if part is None else len(part.names)
                    for kind, part in zip(controller.commands, self._logged, strict=True)
                },
                "status": None,
                "residual": None,
                "loop_us": None,
                "missed_deadlines": None,
                "tolerance_length": None,
                "tolerance_angle": None,
                "remaining": None,
                **{SIGNAL + signal.name: len(signal.names) for signal in controller.signals},
            },
            {
                "reference_names": np.array(controller.reference_names, dtype=np.str_),
                "signal_names": np.array([s.name for s in controller.signals], dtype=np.str_),
                "signal_fields": np.array([s.field for s in controller.signals], dtype=np.str_),
                **{
                    f"{SIGNAL}{signal.name}_entries": np.array(signal.names, dtype=np.str_)
                    for signal in controller.signals
                },
            },
        )

    def close(self) -> None:
        """Write the log, which ends. Raises `OSError` if it cannot be written."""
        if self.log is not None:
            log, self.log = self.log, None
            log.close()


def _logged_values(part: CommandPart) -> Array:
    """Return what the log has of a part, one number for each name: values, or l0 of the law."""
    if part.kind != "impedance":
        return part.values
    return part.rest_lengths if part.rest_lengths.size else np.full(len(part.names), math.nan)


def _end(reference: Reference | None, start: float) -> float:
    """Return when a reference that begins at ``start`` [s] is over; NaN if it never is."""
    if reference is None or not math.isfinite(reference.duration):
        return math.nan
    return start + reference.duration
