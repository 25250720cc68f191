"""Names and units for plots: coordinates that controllers track, and actuator states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cards_core.loop.task_tally import POSITIONS, joint_units, operational_units
from cards_core.robot.model import Tree


@dataclass(frozen=True)
class Labels:
    """Names and units of controlled coordinates and of the entries of their error.

    Units are ``rad``, ``m`` or empty (components of quaternions have none).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    error_names: tuple[str, ...]
    error_units: tuple[str, ...]


def joint_labels(tree: Tree) -> Labels:
    """Return the labels of a joint-space controller: coordinates q, error in the tangent space."""
    units, error_units = joint_units(tree)
    return Labels(tree.position_names, units, tree.velocity_names, error_units)


def operational_labels(names: Sequence[str]) -> Labels:
    """Return the labels of an operational controller with these reference names."""
    units, error_units = operational_units(names)
    positions = [name for name in names if name in POSITIONS]
    rotations = [f"rotation_{c}" for c in "xyz"][: error_units.count("rad")]
    return Labels(tuple(names), units, (*positions, *rotations), error_units)


def numbered(width: int, error_width: int) -> Labels:
    """Return numbered labels, for coordinates without names."""
    names = tuple(f"y{i + 1}" for i in range(width))
    error_names = tuple(f"e{i + 1}" for i in range(error_width))
    return Labels(names, ("",) * width, error_names, ("",) * error_width)


def natural_order(names: Sequence[str]) -> list[int]:
    """Return the indices that sort names as people do: ``motor9`` before ``motor10``."""
    parts = [
        [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in split]
        for split in (re.split(r"(\d+)", name) for name in names)
    ]
    return sorted(range(len(parts)), key=parts.__getitem__)


STATE_UNITS: Mapping[str, tuple[str, float]] = {
    "length": ("mm", 1e3),
    "speed": ("mm/s", 1e3),
    "pressure": ("kPa", 1e-3),
    "current": ("A", 1.0),
    "temperature": ("°C", 1.0),
}
"""By the last word of a state's name: unit to show, and its factor on the published value."""


TEMPERATURE_STATES = ("winding_temperature", "housing_temperature")
"""Actuator states that tell how hot a muscle's motor is, the one that counts first."""


def split_state(name: str) -> tuple[str, str]:
    """Return muscle and state of a name such as ``biceps/fiber_length``."""
    muscle, _, state = name.rpartition("/")
    return muscle, state


def state_title(state: str) -> str:
    """Return the title of a state, without its unit: ``fiber length``."""
    return state.replace("_", " ")


def state_unit(state: str) -> tuple[str, float]:
    """Return the unit a state is shown in, empty for none, and the factor to convert to it."""
    return STATE_UNITS.get(state.rsplit("_", 1)[-1], ("", 1.0))


def signal_unit(field: str, *, of_muscles: bool) -> tuple[str, float]:
    """Return the unit a signal of a controller is shown in, and the factor to convert to it.

    Args:
        field: Of a JointState, as of `cards_core.control.interface.Signal`.
        of_muscles: Whether its entries belong to muscles: lengths and tensions, no angles.
    """
    if of_muscles:
        return {"position": ("mm", 1e3), "velocity": ("mm/s", 1e3), "effort": ("N", 1.0)}[field]
    units = {"position": "rad or m", "velocity": "rad/s or m/s", "effort": "Nm or N"}
    return units[field], 1.0


def by_state(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return, for every state, the index in ``names`` of each muscle that has it."""
    found: dict[str, dict[str, int]] = {}
    for index, name in enumerate(names):
        muscle, state = split_state(name)
        found.setdefault(state, {})[muscle] = index
    return found
