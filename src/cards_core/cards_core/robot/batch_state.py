"""The states of many robots of one kind at one instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class BatchRobotState:
    """What `RobotState` tells of one robot, for n of them; the first axis is the instance.

    Attributes:
        time: [s], shape (n,).
        q: Joint coordinates as laid out by `Tree`, shape (n, nq), [rad] or [m].
        qd: Joint velocities, shape (n, nv), [rad/s] or [m/s].
        muscle_lengths: Shape (n, m), [m].
        muscle_rates: Their derivatives, shape (n, m), [m/s].
        tensions: Of the step that led here, shape (n, m), [N].
        diverged: Instances that stand still because their numbers became too large or not
            finite: they keep their last good state until they are reset; shape (n,), bool.
        measured_q: q with the noise of joint sensors, shape (n, nq).
        measured_lengths: Lengths with the noise of their sensors, shape (n, m).
    """

    time: Array
    q: Array
    qd: Array
    muscle_lengths: Array
    muscle_rates: Array
    tensions: Array
    diverged: npt.NDArray[np.bool_]
    measured_q: Array
    measured_lengths: Array

    def copy(self) -> BatchRobotState:
        """Return a state with arrays of its own."""
        return BatchRobotState(**{name: array.copy() for name, array in vars(self).items()})
