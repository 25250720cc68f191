"""The session of a robot whose plate the simulator moves: its state replaces the commanded one."""

from __future__ import annotations

import dataclasses
from typing import Any

from cards_core.rods.dynamics.plate_dynamics import PlateStep
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import SEVERITY, Finding, RodStatus
from cards_core.rods.tracking.tracker import TrackingResult
from cards_rods.session import RodSession


class WorldSession(RodSession):
    """As `RodSession`; `show` replaces the reported state, not the commanded one.

    Attributes:
        reference: The equilibrium that the commands have led to so far.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._shown: TrackingResult | None = None
        self._step: PlateStep | None = None
        super().__init__(*args, **kwargs)

    @property
    def result(self) -> TrackingResult:
        """Result of the tracker, with the state of the world in place of its own."""
        if self._step is None:
            return self._reference
        if self._shown is None:
            self._shown = _with(self._reference, self._step)
        return self._shown

    @result.setter
    def result(self, result: TrackingResult) -> None:
        self._reference = result
        self._shown = None

    @property
    def reference(self) -> Solution:
        """The equilibrium that the commands have reached."""
        solution = self._reference.solution
        assert solution is not None
        return solution

    @property
    def state(self) -> Solution:
        """The reported state."""
        return self.reference if self._step is None else self._step.solution

    def show(self, step: PlateStep | None) -> None:
        """Report this state from now on; None: the reference again."""
        self._step = step
        self._shown = None


def _with(result: TrackingResult, step: PlateStep) -> TrackingResult:
    """Return a result with the state of the world in place of its own."""
    told: dict[str, Any] = {}
    if step.status is not RodStatus.OK:
        finding = Finding(step.status, step.message)
        if SEVERITY.index(step.status) <= SEVERITY.index(result.status):
            told = {"status": step.status, "message": step.message}
        others = [item for item in result.findings if item.status is not RodStatus.YIELD]
        told["findings"] = (finding, *others)
    return dataclasses.replace(
        result,
        solution=step.solution,
        min_eigenvalue=step.solution.min_eigenvalue,
        eigenvector=step.solution.eigenvector,
        **told,
    )
