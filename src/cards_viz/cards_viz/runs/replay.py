"""Recorded runs as snapshots for the page."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from cards_core.typing import Array
from cards_viz.colors import nice_ceiling
from cards_viz.labels import joint_labels
from cards_viz.muscles.interface import BarLimits, MuscleSnapshot
from cards_viz.runs.recorded import RecordedRun, labels_of, row_at


class Replay:
    """Snapshots of a recorded run.

    Args:
        run: The run.
    """

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        self._released = run.signal("relaxation")
        self._necessary = run.signal("necessary_tension")
        labels = labels_of(run.robot.tree, run.controller, run.info)
        joint = joint_labels(run.robot.tree)
        self._names: tuple[str, ...] = ()
        self._units: tuple[str, ...] = ()
        self._positions = 3 if labels.names[:3] == ("x", "y", "z") else 0
        if run.controller is not None:
            if self._positions:
                self._names, self._units = labels.names[:3], labels.units[:3]
            elif labels.names == joint.names:
                self._names, self._units = labels.names, labels.units

    @cached_property
    def times(self) -> Array:
        """Times of the snapshots, shape (T,), [s]."""
        return self.run.time

    def at(self, time: float, *, paused: bool = False) -> MuscleSnapshot:
        """Return the newest snapshot at a time [s]; the first or last outside of the run.

        Args:
            time: Simulation time, [s].
            paused: Whether the player stands still.
        """
        simulator, controller = self.run.simulator, self.run.controller
        row = int(row_at(simulator.time, time))
        base = MuscleSnapshot(
            float(simulator.time[row]),
            simulator.q[row],
            simulator.tensions[row],
            states=self.run.states(row),
            controller=None if self.run.info.controller == "none" else self.run.info.controller,
            paused=paused,
        )
        if controller is None:
            return base
        step = int(row_at(controller.time, time))
        d = len(self._names)
        position = controller.desired[step, : self._positions] if self._positions else None
        desired = actual = error = None
        if d:
            desired, actual = controller.desired[step, :d], controller.actual[step, :d]
            error = controller.error[step, : self._positions or None]
        return replace(
            base,
            names=self._names,
            units=self._units,
            desired=desired,
            actual=actual,
            error=error,
            desired_position=position,
            released=None if self._released is None else self._released[step],
            necessary=None if self._necessary is None else self._necessary[step],
            limits=self._limits,
        )

    @cached_property
    def _limits(self) -> BarLimits:
        """Ends of the bars: of released lengths a round number above the largest of the run."""
        values = self._released
        if values is None or not np.isfinite(values).any():
            return BarLimits()
        greatest = float(np.nanmax(values))
        return BarLimits(released=nice_ceiling(greatest)) if greatest > 0.0 else BarLimits()
