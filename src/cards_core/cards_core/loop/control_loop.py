"""A controller, its reference and its log: what happens between a state and its command.

The node puts topics around `ControlLoop`; a runner without ROS calls it directly. Both
therefore do the same arithmetic, and a closed loop gives the same trajectory to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cards_core.control.interface import Controller
from cards_core.loop.run_log import RunLog
from cards_core.loop.task_tally import TaskTally
from cards_core.loop.task_units import units_of
from cards_core.muscles.command import Command
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.trajectories import Reference, tolerance_of, with_approach
from cards_core.trajectories.tolerance import HOLDING, UNKNOWN

COLUMNS: Mapping[CommandKind, str] = {
    "force": "tensions",
    "length": "rest_lengths",
    "pressure": "pressures",
    "excitation": "excitations",
    "effort": "efforts",
}
"""Column of the log for each kind of command."""

_NOTHING = np.empty(0)


class ControlLoop:
    """Steps a controller along a reference that begins with the first step.

    Args:
        controller: The controller.
        reference: What to track; None holds the place of the first step.
        approach_speed: If the robot is elsewhere when the reference begins, it first moves to its
            start with at most this speed, [unit of the reference / s]; 0: it jumps there.
        log_path: ``.npz`` to write with one row per step; none if None. `start` begins its
            next part.
        robot: The robot as it was described, without model errors; that of the controller's
            model if None.

    Attributes:
        controller, reference, approach_speed, robot: As given.
        steps: Done since the last start.
        log: The log, if any.
        tally: What was recorded since the log, or its part, began, with or without a log.
        tolerance: Of what is tracked.

    Raises:
        ParameterError: The reference has the wrong size.
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        controller: Controller,
        reference: Reference | None = None,
        *,
        approach_speed: float = 0.0,
        log_path: str | Path | None = None,
        robot: Robot | None = None,
    ) -> None:
        self.controller = controller
        self._needs = controller.needs
        self.robot = robot or controller.model.robot
        self.reference = reference
        self.approach_speed = approach_speed
        controller.set_reference(reference)  # refuses wrong sizes now, not in the first step
        units, error_units = units_of(controller)
        self._own_tolerance = HOLDING if reference is None else tolerance_of(reference, units)
        self.tolerance = self._own_tolerance
        self._end = math.nan
        self.tally = TaskTally(error_units)
        self.log: RunLog | None = None
        parts = {part.kind: part for part in controller.command}
        # a robot without motors has no part for them, and its log an empty column
        self._logged = [parts.get(kind) for kind in controller.commands]
        if log_path is not None:
            self.open_log(log_path)
        self.steps = 0
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
        self._begin = False
        self.tolerance = UNKNOWN
        self._end = _end(reference, start)

    def step(self, state: RobotState) -> Command:
        """Return the command for a state.

        Args:
            state: Of the robot. Hosts state times as messages carry them, in whole nanoseconds.

        Raises:
            CardsError: The state lacks what the controller needs.
        """
        # where the reference begins must be known; the answer to nonsense is the relaxed command
        if self._begin and np.isfinite(state.q).all():
            if self._needs:
                state.require(self._needs, f"controller {self.controller.kind}")
            self._begin_reference(state)
            self._begin = False
        self.steps += 1
        return self.controller.step(state)

    def _begin_reference(self, state: RobotState) -> None:
        controller, reference = self.controller, self.reference
        controller.set_reference(None)
        if reference is not None and self.approach_speed > 0.0:
            controller.step(state)
            place = controller.output.actual.copy()
            if np.isfinite(place).all() and place.size == controller.output.error.size:
                reference = with_approach(reference, place, self.approach_speed)
        controller.reset()
        controller.set_reference(reference, start=state.time)
        self.tolerance, self._end = self._own_tolerance, _end(reference, state.time)

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
            *(_NOTHING if part is None else part.values for part in self._logged),
            float(out.status),
            out.residual,
            loop_us,
            float(missed_deadlines),
            self.tolerance.length,
            self.tolerance.angle,
            left,
        )

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
            },
            {"reference_names": np.array(controller.reference_names, dtype=np.str_)},
        )

    def close(self) -> None:
        """Write the log, which ends. Raises `OSError` if it cannot be written."""
        if self.log is not None:
            log, self.log = self.log, None
            log.close()


def _end(reference: Reference | None, start: float) -> float:
    """Return when a reference that begins at ``start`` [s] is over; NaN if it never is."""
    if reference is None or not math.isfinite(reference.duration):
        return math.nan
    return start + reference.duration
