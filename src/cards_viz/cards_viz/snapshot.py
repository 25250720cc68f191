"""What a view shows of a running robot, handed over without making the control loop wait."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a robot at one instant. The arrays must not be written to afterwards.

    Attributes:
        time: Simulation time, [s].
        q: Joint coordinates, shape (nq,).
        tensions: Shape (m,), [N].
        states: Actuator states by name, e.g. ``biceps/activation``; in SI units, temperatures in
            degC.
        names: Names of the controlled coordinates, length d; empty without a controller.
        desired, actual: Controlled coordinates, shape (d,).
        units: Unit of each controlled coordinate, ``rad`` or ``m``, length d.
        error: Tracking error, shape (e,).
        desired_position: Desired origin of the operational frame, shape (3,), [m].
        controller: Name of the controller that commands the muscles, None if none does.
        paused, stopped: Simulation paused; emergency stop active.
        real: Whether the robot is a real one, without pause, step, reset and speed.
        real_time_factor: Simulated by elapsed time.
        control_rate: Controller steps per second, [Hz].
        message: Something to tell the user, e.g. the last diagnostics error.
    """

    time: float
    q: Array
    tensions: Array
    states: Mapping[str, float] = field(default_factory=dict)
    names: Sequence[str] = ()
    desired: Array | None = None
    actual: Array | None = None
    units: Sequence[str] = ()
    error: Array | None = None
    desired_position: Vector3 | None = None
    controller: str | None = None
    paused: bool = False
    stopped: bool = False
    real: bool = False
    real_time_factor: float | None = None
    control_rate: float | None = None
    message: str = ""


ShownT = TypeVar("ShownT")


class SnapshotBox(Generic[ShownT]):
    """Latest-value hand-over between threads: `put` never waits for a reader that draws."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: ShownT | None = None
        self._count = 0

    def put(self, snapshot: ShownT) -> None:
        """Replace the snapshot (a reference is stored, nothing copied)."""
        with self._lock:
            self._value = snapshot
            self._count += 1

    def get(self) -> tuple[int, ShownT | None]:
        """Return how many snapshots there have been, and the last one."""
        with self._lock:
            return self._count, self._value
