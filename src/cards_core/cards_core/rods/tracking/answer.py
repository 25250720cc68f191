"""What the tracker says after each step: the last good state, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import RodStatus, is_good
from cards_core.typing import Array


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    Attributes:
        status: What kind of thing.
        message: A sentence for a person: what, where, how much, what would be right.
        limb: Index of the limb concerned, or None.
        missing: How much is missing, [m] for lengths and slides, [rad] for angles; 0 if the
            finding is not about an amount.
    """

    status: RodStatus
    message: str
    limb: int | None = None
    missing: float = 0.0


@dataclass(frozen=True)
class Remaining:
    """How far the state is from its target.

    Attributes:
        translation: Of the plate, [m]; 0 for joint commands.
        rotation: Of the plate, angle [rad]; 0 for joint commands.
        joints: Largest difference of a joint, [m] or [rad]; 0 for pose commands.
        fraction: Part of the present command that is still ahead, 0 (arrived) .. 1.
    """

    translation: float = 0.0
    rotation: float = 0.0
    joints: float = 0.0
    fraction: float = 0.0

    @property
    def arrived(self) -> bool:
        """Whether nothing remains."""
        return self.fraction <= 0.0


@dataclass(frozen=True)
class Answer:
    """State and status after one step of a :class:`~cards_core.rods.tracking.tracker.Tracker`.

    Attributes:
        solution: The last good equilibrium. It is always finite and, unless ``status`` is UNSTABLE
            at the start, stable. None if no start was found.
        status: The worst of ``findings``, else MOVING or OK.
        message: What a person should read; empty when there is nothing to say.
        held: The state does not follow the command any more; a new command frees it.
        remaining: Way to the target.
        min_eigenvalue: Smallest eigenvalue of the plate's stiffness K, mixed units of K.
        reference_eigenvalue: The same at the start; the ratio of the two is the margin.
        eigenvector: Its direction, shape (6,), [translation, rotation] in world axes: the way in
            which the plate would collapse.
        substeps: Solves made by this step.
        findings: Everything found in this step, most serious first.
    """

    solution: Solution | None
    status: RodStatus
    message: str = ""
    held: bool = False
    remaining: Remaining = field(default_factory=Remaining)
    min_eigenvalue: float = float("nan")
    reference_eigenvalue: float = float("nan")
    eigenvector: Array = field(default_factory=lambda: np.zeros(6))
    substeps: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def good(self) -> bool:
        """Whether ``solution`` is a stable equilibrium on the way to, or at, the command."""
        return is_good(self.status)

    @property
    def arrived(self) -> bool:
        """Whether the command has been reached."""
        return self.remaining.arrived and not self.held

    @property
    def margin(self) -> float:
        """Smallest eigenvalue relative to the start: 1 at the start, 0 at collapse."""
        return self.min_eigenvalue / self.reference_eigenvalue

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of all findings."""
        return tuple(finding.message for finding in self.findings)
