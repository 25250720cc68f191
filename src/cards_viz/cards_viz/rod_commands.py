"""What the page of a rod robot can ask for."""

from __future__ import annotations

from typing import Protocol

from cards_core.typing import Array


class RodViewCommands(Protocol):
    """Commands of the page.

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
