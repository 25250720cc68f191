"""Names and units of the inner states of actuators, published as ``muscle/state``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

UNITS: Mapping[str, tuple[str, float]] = {
    "length": ("mm", 1e3),
    "speed": ("mm/s", 1e3),
    "pressure": ("kPa", 1e-3),
    "current": ("A", 1.0),
    "temperature": ("°C", 1.0),
}
"""By the last word of a state's name: unit to show, and its factor on the published value."""


def split(name: str) -> tuple[str, str]:
    """Return muscle and state of a name such as ``biceps/fiber_length``."""
    muscle, _, state = name.rpartition("/")
    return muscle, state


def title(state: str) -> str:
    """Return what to call a state, without its unit: ``fiber length``."""
    return state.replace("_", " ")


def unit(state: str) -> tuple[str, float]:
    """Return the unit to show a state in, empty for none, and the factor to get there."""
    return UNITS.get(state.rsplit("_", 1)[-1], ("", 1.0))


def by_state(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return, for every state, the index in ``names`` of each muscle that has it."""
    found: dict[str, dict[str, int]] = {}
    for index, name in enumerate(names):
        muscle, state = split(name)
        found.setdefault(state, {})[muscle] = index
    return found
