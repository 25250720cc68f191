"""The state of a robot at one instant, as its host knows it: what a controller gets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.typing import Array


@dataclass(eq=False, slots=True)
class RobotState:
    """Time, joint coordinates and velocities, and whatever else a host measures or simulates.

    A quantity that the host does not know is None, never a guess. Vectors are in the order of the
    robot's description.

    Attributes:
        time: [s].
        q: Joint coordinates as laid out by `Tree`, shape (nq,), [rad] or [m].
        qd: Joint velocities, shape (nv,), [rad/s] or [m/s].
        muscle_lengths: Shape (m,), [m].
        muscle_rates: Their derivatives, shape (m,), [m/s].
        tensions: Shape (m,), [N]. Simulators give those of the step that led here.
        efforts: Of the joint motors, shape (k,), [Nm] or [N]; likewise.
        actuators: States of the actuator models, in the order of the host's ``actuator_names``.
        temperatures: Of the muscles' motors, shape (m,), [degC].
        contact_forces: On every link, in world axes, shape (n, 3), [N].
    """

    time: float
    q: Array
    qd: Array
    muscle_lengths: Array | None = None
    muscle_rates: Array | None = None
    tensions: Array | None = None
    efforts: Array | None = None
    actuators: Array | None = None
    temperatures: Array | None = None
    contact_forces: Array | None = None

    def copy(self) -> RobotState:
        """Return a state with arrays of its own."""
        # written out: this is done in every control step
        lengths, rates, tensions = self.muscle_lengths, self.muscle_rates, self.tensions
        efforts, actuators = self.efforts, self.actuators
        temperatures, contacts = self.temperatures, self.contact_forces
        return RobotState(
            self.time,
            self.q.copy(),
            self.qd.copy(),
            None if lengths is None else lengths.copy(),
            None if rates is None else rates.copy(),
            None if tensions is None else tensions.copy(),
            None if efforts is None else efforts.copy(),
            None if actuators is None else actuators.copy(),
            None if temperatures is None else temperatures.copy(),
            None if contacts is None else contacts.copy(),
        )

    def measured(self, name: str) -> Array:
        """Return a quantity that must be present.

        Args:
            name: Attribute of this class.

        Raises:
            CardsError: The host does not know it.
        """
        value: Array | None = getattr(self, name)
        if value is None:
            raise CardsError(f"{name} of the robot is not known to this host")
        return value

    def require(self, names: Iterable[str], who: str) -> None:
        """Check that quantities are present.

        Args:
            names: Attributes of this class.
            who: Needs them, for the message.

        Raises:
            UnknownNameError: No quantity has this name.
            CardsError: A quantity is absent; the message names it.
        """
        for name in names:
            check_choice(name, "quantity of a robot's state", QUANTITIES)
            if getattr(self, name) is None:
                known = [other for other in QUANTITIES if getattr(self, other) is not None]
                raise CardsError(
                    f"{who} needs {name}, which this host does not provide (it provides "
                    f"{', '.join(known)})"
                )


QUANTITIES: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(RobotState))
"""What a state may hold."""
