"""What controllers share that tell muscles the set-points of their impedance law by themselves.

They follow no reference and leave no error: `cards_core.control.impedance` and
`cards_core.control.cpg.controller`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from cards_core.control.interface import Controller, ControlOutput, check_reference, number
from cards_core.control.model import ControlModel
from cards_core.control.native_set_points import SetPoints, place_set_points
from cards_core.errors import ParameterError
from cards_core.muscles.command import Command, CommandPart
from cards_core.muscles.impedance import SLACK
from cards_core.parameters.declaration import Parameter
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.trajectories.base import Reference
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class SetPointParts:
    """Of what the set-points of a controller are made, whatever leads them.

    Attributes:
        muscles: That are told something, n of them.
        period: Between two changes, [s].
        tension: T0, shape (n,), [N].
        rest_length: l0, likewise, [m].
        home: Lengths at home, likewise, [m].
    """

    muscles: tuple[Muscle, ...]
    period: float
    tension: Array
    rest_length: Array
    home: Array


class SetPointController(Controller):
    """Tells some muscles T0, l0 and v0, a number of times per second.

    Args:
        model: What the controller knows of the robot.
        muscles: Patterns of names of the commanded muscles.
        refresh_rate: How often set-points change, [Hz].

    Attributes:
        names: Of these muscles.
        native: See `Controller`; of the refreshes. Between them a step is a look at the time,
            which takes less than a call.

    Raises:
        ParameterError: A pattern fits no muscle, or the rate is not positive.
    """

    space = "joint"
    commands = ("impedance",)

    def __init__(self, model: ControlModel, muscles: Sequence[str], refresh_rate: float) -> None:
        super().__init__(model)
        self._muscles = told = told_muscles(model.commanded, muscles)
        self.names = names = tuple(muscle.name for muscle in told)
        self.reference_names = self.error_names = ()
        m = len(names)
        self._home = home_lengths(model, names)
        self._most: Array = np.array([muscle.tension_max for muscle in told])
        self._period = 1.0 / number(refresh_rate, "refresh_rate", strict=True)
        everything = [muscle.name for muscle in model.commanded.muscles]
        self._columns = np.array([everything.index(name) for name in names], dtype=np.intp)
        self.output = ControlOutput.empty(len(everything), 0, 0, 0)
        self._told_tension: Array = np.zeros(m)
        self._told_length: Array = self._home.copy()
        self._told_rate: Array = np.zeros(m)
        self._tension: Array = np.zeros(m)
        self._rest_length: Array = self._home.copy()
        told_now = (self._told_tension, self._told_length, self._told_rate)
        self.command: Command = (CommandPart("impedance", names, *told_now),)
        still = CommandPart("impedance", names, np.zeros(m), np.full(m, SLACK), np.zeros(m))
        self.relaxed: Command = (still,)

    @property
    def set_point_parts(self) -> SetPointParts:
        """What the set-points are now, apart from what a gait or pattern makes of them."""
        own = (self._tension.copy(), self._rest_length.copy(), self._home.copy())
        return SetPointParts(self._muscles, self._period, *own)

    def place(self, q: Array, qd: Array) -> Array:
        """Return no coordinates: references have none; see `Controller.place`."""
        return np.zeros(0)

    def set_reference(self, reference: Reference | None, start: float = 0.0) -> None:
        """Refuse a reference; see `Controller.set_reference`."""
        if reference is not None:
            check_reference(reference, self.reference_names, 0)

    def _place_set_points(self, setup: SetPoints, keep: list[Any]) -> None:
        """Let a compiled refresh point at the set-points of command and output."""
        place_set_points(
            setup,
            keep,
            self._columns,
            parameters=(self._tension, self._rest_length),
            told=(self._told_tension, self._told_length, self._told_rate),
            tensions=self.output.tensions,
        )

    def _check_tension(self, tension: Array) -> None:
        """Refuse T0 above the largest tension of its muscle."""
        over = tension > self._most
        if over.any():
            bad = int(np.argmax(over))
            raise ParameterError(
                f"T0 of '{self.names[bad]}' is {tension[bad]:g} N; expected at most the muscle's "
                f"largest tension, {self._most[bad]:g} N"
            )


def rest_length_parameter(names: tuple[str, ...], home: Array) -> Parameter:
    """Return the live parameter of l0, which is by default the lengths at home, shape (n,)."""
    return Parameter(
        "rest_length",
        home.tolist(),
        "l0.",
        "m",
        above=0.0,
        length=len(names),
        names=names,
        live=True,
        default_text="lengths at home",
    )


def told_muscles(robot: Robot, patterns: Sequence[str]) -> tuple[Muscle, ...]:
    """Return the commanded muscles; refuse patterns without any."""
    muscles = [m for m in robot.muscles if "impedance" in m.actuator.accepted_commands]
    names = [muscle.name for muscle in muscles]
    chosen = group_members(names, "muscles", {"muscles": patterns}, {})
    return tuple(muscle for muscle, told in zip(muscles, chosen, strict=True) if told)


def group_members(
    names: Sequence[str],
    group: str,
    patterns: Mapping[str, Sequence[str]],
    defaults: Mapping[str, Sequence[str]],
) -> Array:
    """Return one for the muscles of a group, else zero; refuse a pattern that fits none.

    Args:
        names: Names of the m muscles.
        group: Name of the group, key of ``patterns``.
        patterns: Shell patterns of muscle names by group.
        defaults: Default patterns by group, which may match no muscle.

    Returns:
        Shape (m,).

    Raises:
        ParameterError: A pattern that is no default matches no muscle.
    """
    given = tuple(patterns[group])
    out = np.zeros(len(names))
    for pattern in given:
        found = np.array([fnmatchcase(name, pattern) for name in names], dtype=bool)
        if not found.any() and given != tuple(defaults.get(group, ())):
            raise ParameterError(
                f"{group}: no muscle is called '{pattern}'; expected patterns of some of: "
                f"{', '.join(names)}"
            )
        out[found] = 1.0
    return out


def home_lengths(model: ControlModel, names: Sequence[str]) -> Array:
    """Return the lengths of muscles at home, shape (m,), [m]."""
    tree = model.dynamics.tree
    lengths = model.dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths
    found = dict(zip((m.name for m in model.dynamics.robot.muscles), lengths, strict=True))
    return np.array([found[name] for name in names], dtype=float)
