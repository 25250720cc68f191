"""What a cold start may spend, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import SEVERITY, RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.path import pose_difference


@dataclass(frozen=True)
class Budget:
    """Bounds of the work of a cold start. No clock enters: see `cards_core.rods.tracking.work`.

    Attributes:
        work: Newton iterations after which nothing new is begun. Robots of six rods make some
            15 000 in a second, so the default is 6 or 7 seconds; most searches need a hundredth.
        solves: Greatest number of solves of one homotopy.
        iterations: Linearisations of one descent.
        ways: Ways of the roadmap, each some 20 solves, made when a pose needs them.
    """

    work: int = 100_000
    solves: int = 200
    iterations: int = 60
    ways: int = 1200

    def __post_init__(self) -> None:
        for name in ("work", "solves", "iterations", "ways"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise RodError(
                    f"budget: {name} is {value!r} (expected: a whole number, 1 or more)"
                )


@dataclass(frozen=True, eq=False)
class ColdStart:
    """Result of `cold_start`.

    Attributes:
        solution: The equilibrium; None if none was found inside the limits.
        status: OK; AMBIGUOUS, SINGULAR, UNSTABLE (a solution is given, with reserve); UNREACHABLE,
            NOT_CONVERGED, LIMIT, NOT_FINITE, INVALID (None).
        message: In words; empty if OK.
        how: The attempt that succeeded.
        attempts: Names of all attempts made.
        time_s: Time taken, [s].
        work: Newton iterations made.
        findings: All that is to be said.
        best: Equilibrium that is not acceptable (outside limits), if only such were found.
        alternatives: Other stable equilibria, for buckled rods without a declared bulge.
        singular_value: Smallest one of the scaled Jacobian at the solution; 0 where the model has
            a singular point, as with straight parallel rods without load.
        exhausted: Whether the search ended because its budget was spent.
        start_value: The same at the first guess; NaN if Newton's method succeeded from it.
    """

    solution: Solution | None
    status: RodStatus
    message: str = ""
    how: str = ""
    attempts: tuple[str, ...] = ()
    time_s: float = 0.0
    work: int = 0
    findings: tuple[Finding, ...] = ()
    best: Solution | None = None
    alternatives: tuple[Solution, ...] = ()
    singular_value: float = float("nan")
    start_value: float = float("nan")
    exhausted: bool = False

    def with_findings(self, more: Iterable[Finding]) -> ColdStart:
        """Return the same with findings that are not among its own; the most serious leads."""
        own = {item.message for item in self.findings}
        added = tuple(item for item in more if item.message not in own)
        if not added or self.solution is None:
            return self
        findings = sorted((*self.findings, *added), key=lambda f: SEVERITY.index(f.status))
        if SEVERITY.index(findings[0].status) >= SEVERITY.index(self.status):
            return replace(self, findings=tuple(findings))
        lead = findings[0]
        return replace(self, findings=tuple(findings), status=lead.status, message=lead.message)


def same(a: Solution, b: Solution) -> bool:
    """Tell whether two solutions are one equilibrium: q, pose and base moments agree."""
    step = pose_difference(a.pose, b.pose)
    scale = 1e-3 * (1.0 + np.abs(a.base_wrenches).max())
    return bool(
        np.abs(step).max() < 1e-4
        and np.abs(a.q - b.q).max() < 1e-4
        and np.abs(a.base_wrenches - b.base_wrenches).max() < scale
    )
