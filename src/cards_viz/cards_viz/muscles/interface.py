"""The interface between the page of a robot with muscles and its host: snapshots, commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from cards_core.control.mrc.temperature_safety import TemperatureLimits
from cards_core.loop.task_tally import error_units
from cards_core.robot.actuators import CommandKind
from cards_core.typing import Array, Vector3

if TYPE_CHECKING:
    from cards_viz.muscles.pushing import Push


@dataclass(frozen=True)
class Switch:
    """A boolean parameter of the controller that may be changed while it runs.

    Attributes:
        name: Of the parameter.
        on: Its present value.
        description: What it does, a sentence.
    """

    name: str
    on: bool
    description: str = ""


@dataclass(frozen=True)
class BarLimits:
    """Where bars end and change their colour.

    Attributes:
        released: Largest released length, [m]; None: a round number above what was seen.
        soft, hard: Temperatures from which on a muscle gives way, and is let go, [degC].
    """

    released: float | None = None
    soft: float = TemperatureLimits().soft
    hard: float = TemperatureLimits().hard


@dataclass(frozen=True, eq=False)
class MuscleSnapshot:
    """State of a robot at one instant. The arrays must not be changed afterwards.

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
        idle: Name of a controller that is there but does not command: disabled, or silent.
        paused, stopped: Simulation paused; emergency stop active.
        real: Whether the robot is a real one, without pause, step, reset and speed.
        real_time_factor: Simulated by elapsed time.
        control_rate: Controller steps per second, [Hz].
        bodies: Poses of the bodies of the world that are known, by name, in the axes of the robot,
            shape (4, 4).
        message: Something to tell the user, e.g. the last diagnostics error.
        state: What becomes of the run, e.g. that it is finished; empty: it is running.
        released: What the controller has released of each muscle, shape (m,), [m], NaN where it
            commands none; None if it releases nothing.
        necessary: Tensions that the controller finds necessary, likewise, [N].
        switches: Boolean live parameters of the controller.
        limits: Of the bars.
        saved: Names of the saved states, in the order in which they were saved.
        not_saved: Why states cannot be saved; empty: they can.
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
    idle: str | None = None
    paused: bool = False
    stopped: bool = False
    real: bool = False
    real_time_factor: float | None = None
    control_rate: float | None = None
    bodies: Mapping[str, Array] = field(default_factory=dict)
    message: str = ""
    state: str = ""
    released: Array | None = None
    necessary: Array | None = None
    switches: Sequence[Switch] = ()
    limits: BarLimits = BarLimits()
    saved: Sequence[str] = ()
    not_saved: str = ""

    def errors(self) -> dict[str, Array]:
        """Return the tracking error's lengths, [m], and angles, [rad], by unit."""
        if self.error is None or not len(self.error):
            return {}
        units = np.array(error_units(self.units))
        if len(units) != len(self.error):
            return {}
        return {unit: self.error[units == unit] for unit in ("m", "rad") if unit in units}


class MuscleCommands(Protocol):
    """Commands that the page can give.

    They are called from the page's threads and must return at once: an implementation that needs
    time (a service call, a lock that the simulation holds) queues the command. A command that is
    refused raises a `cards_core.errors.CardsError`; the page shows its text.
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

    def set_command(self, name: str, kind: CommandKind, value: float) -> None:
        """Command one muscle by hand, [N], [m], [Pa] or 0..1; only while no controller runs.

        Args:
            name: Name of the muscle.
            kind: What is commanded: a kind that the muscle's actuator takes.
            value: Tension [N], length [m], pressure [Pa] or excitation 0..1.
        """
        ...

    def push(self, push: Push | None) -> None:
        """Pull at a link with a spring from now on, in place of the one before; None: let go."""
        ...

    def set_gains(self, kp: Sequence[float], kd: Sequence[float]) -> None:
        """Set the controller's gains, [1/s^2] and [1/s], one value or one for each coordinate."""
        ...

    def set_target(self, names: Sequence[str], target: Array) -> None:
        """Move smoothly to a target of the controlled coordinates, and stay there.

        Args:
            names: As `MuscleSnapshot.names`.
            target: Shape (d,), [rad] or [m].
        """
        ...

    def save_gains(self) -> None:
        """Write the present gains into the parameter file of the controller."""
        ...

    def set_switch(self, name: str, on: bool) -> None:
        """Set a boolean live parameter of the controller."""
        ...

    def save(self, name: str) -> None:
        """Save the present state of everything that is simulated under a name."""
        ...

    def load(self, name: str) -> None:
        """Begin again, at time zero, in a saved state."""
        ...

    def delete(self, name: str) -> None:
        """Forget a saved state."""
        ...

    def set_speed(self, factor: float) -> None:
        """Set simulated seconds per second of a simulation in realtime mode."""
        ...
