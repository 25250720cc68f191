"""What a view can ask for: one small protocol, fulfilled in process or through ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ViewCommands(Protocol):
    """Commands of a view.

    They are called from the view's threads and must return at once: an implementation that needs
    time (a service call, a lock that the simulation holds) queues the command. A command that is
    refused raises a `cards_core.errors.CardsError`; the view shows its text.
    """

    def pause(self, paused: bool) -> None:
        """Pause or continue the simulation."""
        ...

    def step(self) -> None:
        """Advance a paused simulation by one step."""
        ...

    def reset(self) -> None:
        """Return to the home position at time zero."""
        ...

    def estop(self, active: bool) -> None:
        """Engage the emergency stop (all tensions to their safe minimum) or release it."""
        ...

    def set_tension(self, name: str, tension: float) -> None:
        """Command one muscle, [N]; only while no controller runs."""
        ...

    def set_gains(self, kp: Sequence[float], kd: Sequence[float]) -> None:
        """Set the controller's gains, [1/s^2] and [1/s], one value or one for each coordinate."""
        ...

    def set_speed(self, factor: float) -> None:
        """Set simulated seconds per second of a simulation in realtime mode."""
        ...
