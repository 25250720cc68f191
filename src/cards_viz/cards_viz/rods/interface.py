"""The interface between the page of a rod robot and its host: snapshots, commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cards_core.rods.status import RodStatus
from cards_core.typing import Array

CURVATURE, STRESS, STRAIN = 3, 4, 5
"""Columns of `RodSnapshot.lines` beside the three of the position."""


@dataclass(frozen=True, eq=False)
class RodSnapshot:
    """State of a rod robot at one instant. The arrays must not be changed afterwards.

    With n limbs and k points along each rod:

    Attributes:
        time: [s].
        q: Joint coordinates, shape (n,), [m] or [rad].
        pose: Plate to world, shape (4, 4), [m].
        lines: Points of the rods, shape (n, k, 6): x, y, z in the world [m], curvature [1/m],
            bending stress [Pa], largest strain.
        values: Numbers by name, as the node's topic ``~/state`` has them.
        status: Of the last step.
        message: What there is to say, in plain words; empty if nothing.
        limb: Limb that the message is about, or None.
        limbs: All limbs that have what `limb` has.
        missing: Length that this limb lacks, [m], or None.
        held: Whether the robot stands still although its target lies elsewhere.
        eigenvector: Direction of collapse, shape (6,): translation, rotation (world); None if
            unknown.
        warnings: Further sentences.
        refused: The last command that was refused, and why; empty if none was.
        mode: ``dgm`` if joints are commanded, ``igm`` if the plate is.
        states: Names of the saved states.
        playing: Whether the demo motion runs.
        alive: Whether the solver is heard from.
    """

    time: float
    q: Array
    pose: Array
    lines: Array
    values: Mapping[str, float] = field(default_factory=dict)
    status: RodStatus = RodStatus.OK
    message: str = ""
    limb: str | None = None
    limbs: tuple[str, ...] = ()
    missing: float | None = None
    held: bool = False
    eigenvector: Array | None = None
    warnings: tuple[str, ...] = ()
    refused: str = ""
    mode: str = "dgm"
    states: tuple[str, ...] = ()
    playing: bool = False
    alive: bool = True

    @property
    def finite(self) -> bool:
        """Whether there is something to draw."""
        return all(bool(np.isfinite(a).all()) for a in (self.q, self.pose, self.lines))

    @property
    def eigenvalue(self) -> float:
        """Smallest eigenvalue of the plate's stiffness; NaN if unknown."""
        return float(self.values.get("min_eigenvalue", np.nan))

    @property
    def margin(self) -> float:
        """Smallest eigenvalue by that at the start: 1 there, 0 at collapse; NaN if unknown."""
        start = float(self.values.get("start_eigenvalue", np.nan))
        return self.eigenvalue / start if start > 0.0 else float("nan")


class RodCommands(Protocol):
    """Commands that the page can give.

    They are called from the page's threads and must return at once. Sliders call them as often as
    they move: an implementation keeps the newest and forgets the others. A command that is refused
    raises a `cards_core.errors.CardsError`; the page shows its text.
    """

    def joints(self, q: Array) -> None:
        """Go to joint coordinates, shape (n,), [m] or [rad] (direct model)."""
        ...

    def pose(self, pose: Array) -> None:
        """Bring the plate to a pose in the world, shape (4, 4) (inverse model)."""
        ...

    def wrench(self, wrench: Array, frame: str) -> None:
        """Load the plate with force and moment about its origin, shape (6,), [N] and [N m].

        The axes are those of ``frame``: ``world``, or ``plate``, whose load turns with it.
        """
        ...

    def home(self) -> None:
        """Return to the start."""
        ...

    def hold(self) -> None:
        """Stay here: the target becomes the present state."""
        ...

    def restore(self) -> None:
        """Return to the shape before the rods snapped to another one."""
        ...

    def accept(self) -> None:
        """Go on with the shape that the rods have snapped to."""
        ...

    def play(self, on: bool) -> None:
        """Start or end the demo motion."""
        ...

    def save(self, name: str) -> None:
        """Keep the present state under a name."""
        ...

    def load(self, name: str) -> None:
        """Return to a saved state."""
        ...

    def delete(self, name: str) -> None:
        """Forget a saved state."""
        ...
