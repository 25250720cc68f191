"""Set-points of the muscles' impedance law over time: hold, crawl by sine waves, replay.

The law of the muscles, in the host or on the board (`cards_core.muscles.impedance`),

    T = max(T_floor, T0 + K (l - l0) + B (l' - v0))

gets T0, l0 and v0 from here; K, B and T_floor are the muscles' own. In the sine gait of
tensegrity spines [Mirletz2016]_

    v0 = a A sin(w t + 2 pi n i/s + phi),       T0 and l0 constant

i counts the joints of the spine, from its first segment, s its segments, n is ``body_waves``; a is
``inside_factor`` for inside muscles and one for the others, phi is ``top_phase`` for top muscles
and zero for the others. A spine turns to the side on which T0 is larger, and rears if T0 of the
muscles on its top is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from cards_core.control.interface import (
    ControlStatus,
    Setting,
    number,
    vector,
)
from cards_core.control.model import ControlModel
from cards_core.control.native_program import NotNativeError, own_methods
from cards_core.control.native_set_points import NativeGait
from cards_core.control.recorded_commands import RecordedCommands, read_commands
from cards_core.control.set_points import (
    SetPointController,
    group_members,
    home_lengths,
    rest_length_parameter,
    told_muscles,
)
from cards_core.errors import ParameterError
from cards_core.muscles.command import Command
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.elements import Muscle
from cards_core.robot.state import RobotState
from cards_core.stamps import is_due, next_due
from cards_core.typing import Array

GAITS = ("hold", "sine", "replay")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "muscles": ("*",),
    "inside": ("*inner*",),
    "left": ("*left*",),
    "right": ("*right*",),
    "top": ("*outer_top*",),
}
"""Groups of muscles, and the patterns of names that make them."""

_MEANINGS = {
    "muscles": "Commanded muscles: name patterns with * and ?.",
    "inside": "Inside muscles, likewise.",
    "left": "Muscles of the left side, likewise.",
    "right": "Muscles of the right side, likewise.",
    "top": "Muscles of the top, likewise.",
}

LIVE = (
    "tension",
    "rest_length",
    "amplitude",
    "frequency",
    "body_waves",
    "inside_factor",
    "top_phase",
    "turn",
    "rear",
)
"""Parameters that may be changed while it runs."""


@dataclass(frozen=True, eq=False)
class GaitParts:
    """Of what the gait of n muscles is made; see `ImpedanceController`.

    Attributes:
        wave: Whether v0 is a sine wave.
        factor: Of v0, shape (n,).
        phase: Likewise, [rad].
        amplitude: Of v0, [m/s].
        frequency: [Hz]
        recorded: Set-points to be replayed; None: none.
        repeat: Whether they start again at their end.
    """

    wave: bool
    factor: Array
    phase: Array
    amplitude: float
    frequency: float
    recorded: RecordedCommands | None
    repeat: bool


LATEST = 1e10
"""Largest time of a state, [s]: later a gait's angle would be lost in rounding, and at last be
none."""


class ImpedanceController(SetPointController):
    """Tell muscles the set-points of their impedance law; see the module.

    It reads nothing of the state but its time, follows no reference and leaves no error.

    Args:
        model: What the controller knows of the robot.
        gait: ``hold``, ``sine`` or ``replay``.
        tension: T0, [N], one number or one per muscle that is told something.
        rest_length: l0, [m], likewise; None: the lengths at home.
        amplitude: A, [m/s].
        frequency: w/2 pi, [Hz].
        body_waves: n, waves along the body.
        inside_factor: a of inside muscles.
        top_phase: phi of the muscles of the top, [rad].
        turn: Added to T0 of the left muscles, [N]; below zero, taken as positive, of the right.
        rear: Added to T0 of the muscles of the top, [N].
        refresh_rate: How often set-points change, [Hz].
        groups: Patterns of muscle names by group, see `GROUPS`, whose patterns the others have.
        commands: To be replayed.
        repeat: Whether the replay starts again at its end.

    Attributes:
        names: Of the commanded muscles.

    Raises:
        ParameterError: A value does not fit, or a pattern fits no muscle.
    """

    kind = "impedance"
    summary = "set-points of the muscles' impedance law: hold, sine gait, replay"
    _native: NativeGait | None

    def __init__(
        self,
        model: ControlModel,
        *,
        gait: str = "hold",
        tension: Setting = 0.0,
        rest_length: Setting | None = None,
        amplitude: float = 0.0,
        frequency: float = 0.4,
        body_waves: float = 0.5,
        inside_factor: float = -0.8,
        top_phase: float = 0.0,
        turn: float = 0.0,
        rear: float = 0.0,
        refresh_rate: float = 20.0,
        groups: Mapping[str, Sequence[str]] | None = None,
        commands: RecordedCommands | None = None,
        repeat: bool = False,
    ) -> None:
        patterns = {**GROUPS, **(groups or {})}
        super().__init__(model, patterns["muscles"], refresh_rate)
        self.needs_joints = False
        if gait not in GAITS:
            raise ParameterError(f"gait is '{gait}'; expected one of: {', '.join(GAITS)}")
        if (gait == "replay") != (commands is not None):
            raise ParameterError(
                "gait is 'replay' without a file of commands"
                if commands is None
                else f"gait is '{gait}' with a file of commands; expected 'replay'"
            )
        if commands is not None:
            self._check_recorded(commands)
        self._gait, self._recorded, self._repeat = gait, commands, repeat
        names = self.names
        # the others may be empty: not every robot has a left side
        self._inside = group_members(names, "inside", patterns, GROUPS)
        self._top = group_members(names, "top", patterns, GROUPS)
        self._left = group_members(names, "left", patterns, GROUPS)
        self._right = group_members(names, "right", patterns, GROUPS)
        self._position = _positions(self._muscles)
        self._factor, self._phase = np.ones(len(names)), np.zeros(len(names))
        self._set(
            {
                "tension": tension,
                "rest_length": self._home if rest_length is None else rest_length,
                "amplitude": amplitude,
                "frequency": frequency,
                "body_waves": body_waves,
                "inside_factor": inside_factor,
                "top_phase": top_phase,
                "turn": turn,
                "rear": rear,
            }
        )
        self._compile()
        self.reset()

    def _check_recorded(self, commands: RecordedCommands) -> None:
        """Refuse recorded T0 above the largest tension of its muscle, as hosts would."""
        told = commands.values.get("tension")
        if told is None or not (over := told > self._most).any():
            return
        row, column = np.argwhere(over)[0]
        raise ParameterError(
            f"T0 of '{self.names[column]}' is {told[row, column]:g} N at "
            f"{commands.times[row]:g} s of the file; expected at most the muscle's largest "
            f"tension, {self._most[column]:g} N"
        )

    def _compile(self) -> None:
        try:
            own_methods(self, ImpedanceController, ("_refresh",))
            native = NativeGait(
                len(self.names),
                wave=self._gait == "sine",
                recorded=self._recorded,
                repeat=self._repeat,
            )
        except NotNativeError as error:
            self._not_native(str(error))
            return
        self._place_set_points(native.told, native.keep)
        native.place_wave(self._factor, self._phase)
        self._native, self.native = native, "yes"

    @property
    def gait_parts(self) -> GaitParts:
        """Of what the gait is made."""
        return GaitParts(
            wave=self._gait == "sine",
            factor=self._factor.copy(),
            phase=self._phase.copy(),
            amplitude=self._amplitude,
            frequency=self._frequency,
            recorded=self._recorded,
            repeat=self._repeat,
        )

    @classmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters and return a controller; see `Controller.from_parameters`."""
        parameters.declare(
            Parameter(name, cast(Any, list(default)), _MEANINGS[name], kind=str)
            for name, default in GROUPS.items()
        )
        patterns = {name: parameters[name] for name in GROUPS}
        names = tuple(muscle.name for muscle in told_muscles(model.commanded, patterns["muscles"]))
        parameters.declare(_parameters(names, home_lengths(model, names)))
        value = parameters
        file = value["file"]
        return cls(
            model,
            gait=value["gait"],
            **{name: value[name] for name in LIVE},
            refresh_rate=value["refresh_rate"],
            groups=patterns,
            commands=read_commands(Path(file), names) if file else None,
            repeat=value["repeat"],
        )

    def change(self, values: Mapping[str, Any]) -> None:
        """Take over set-points and numbers of the gait; see `Controller.change`."""
        self._set({name: values[name] for name in LIVE})
        self._next = -math.inf

    def _set(self, values: Mapping[str, Any]) -> None:
        """Check all values, then take them over."""
        tension = vector(values["tension"], self.names, "tension")
        length = vector(values["rest_length"], self.names, "rest_length", strict=True)
        positive = ("amplitude", "frequency", "body_waves", "rear")
        plain = {name: number(values[name], name) for name in positive}
        signed = ("inside_factor", "top_phase", "turn")
        plain |= {name: number(values[name], name, minimum=-1e9) for name in signed}
        offset = plain["rear"] * self._top + max(plain["turn"], 0.0) * self._left
        offset += max(-plain["turn"], 0.0) * self._right
        self._check_tension(tension + offset)
        self._tension[:], self._rest_length[:] = tension + offset, length
        self._amplitude, self._frequency = plain["amplitude"], plain["frequency"]
        self._factor[:] = np.where(self._inside, plain["inside_factor"], 1.0)
        phase = 2.0 * np.pi * plain["body_waves"] * self._position
        self._phase[:] = phase + plain["top_phase"] * self._top

    def reset(self) -> None:
        """Restart the gait with the next step; see `Controller.reset`."""
        self._begun: float | None = None
        self._last = 0.0
        self._angle = 0.0
        self._next = -math.inf

    def step(self, state: RobotState) -> Command:
        """Return the set-points of the muscles' law at a time; see `Controller.step`."""
        out, t = self.output, state.time
        out.time = t
        if not abs(t) <= LATEST:
            out.status = ControlStatus.INVALID_STATE
            return self.relaxed
        out.status = ControlStatus.OK
        if self._begun is None:
            self._begun = self._last = t
        elif t < self._last:  # its clock was set back: the gait goes on from where it is
            self._last, self._next = t, -math.inf
        if is_due(t, self._next, self._period):
            self._next = next_due(t, self._next, self._period)
            # the angle, not the time, goes on where the frequency changes
            self._angle += 2.0 * np.pi * self._frequency * (t - self._last)
            self._last = t
            if self._native is None:
                self._refresh(t - self._begun)
            else:
                self._native.refresh(self._amplitude, self._angle, t - self._begun)
        return self.command

    def _refresh(self, time: float) -> None:
        """Write the set-points of a time since the gait began, [s]."""
        self._told_tension[:] = self._tension
        self._told_length[:] = self._rest_length
        self._told_rate[:] = 0.0
        if self._gait == "sine":
            wave = np.sin(self._angle + self._phase)
            self._told_rate[:] = self._factor * self._amplitude * wave
        elif self._recorded is not None:
            if self._repeat and self._recorded.duration > 0.0:
                time %= self._recorded.duration
            found = self._recorded.at(time)
            for name, told in (
                ("tension", self._told_tension),
                ("rest_length", self._told_length),
                ("rest_rate", self._told_rate),
            ):
                if name in found:
                    np.copyto(told, found[name], where=~np.isnan(found[name]))
        self.output.tensions[self._columns] = self._told_tension


def _parameters(names: tuple[str, ...], home: Array) -> list[Parameter]:
    m = len(names)
    return [
        Parameter("gait", "hold", "Set-points over time.", choices=GAITS),
        Parameter("tension", [0.0] * m, "T0.", "N", lower=0.0, length=m, names=names, live=True),
        rest_length_parameter(names, home),
        Parameter("amplitude", 0.0, "A of v0 in the sine gait.", "m/s", lower=0.0, live=True),
        Parameter("frequency", 0.4, "Of the sine gait.", "Hz", lower=0.0, live=True),
        Parameter("body_waves", 0.5, "Waves along the body.", lower=0.0, live=True),
        Parameter("inside_factor", -0.8, "Factor of v0 of inside muscles.", live=True),
        Parameter("top_phase", 0.0, "Phase of the muscles of the top.", "rad", live=True),
        Parameter(
            "turn",
            0.0,
            "Added to T0 of the left muscles, to turn left; of the right ones if negative.",
            "N",
            live=True,
        ),
        Parameter(
            "rear", 0.0, "Added to T0 of the muscles of the top.", "N", lower=0.0, live=True
        ),
        Parameter(
            "refresh_rate",
            20.0,
            "How often set-points change.",
            "Hz",
            lower=0.1,
            upper=1e4,
        ),
        Parameter("file", "", "CSV or NPZ of set-points to replay; empty: none."),
        Parameter("repeat", False, "Restart the replay at its end."),
    ]


def _positions(muscles: Sequence[Muscle]) -> Array:
    """Return i/s of every muscle: which joint it spans, over the number of segments."""
    joints: dict[tuple[str, str], int] = {}
    index = [joints.setdefault(muscle.end_links, len(joints)) for muscle in muscles]
    return np.array(index, dtype=float) / (len(joints) + 1)
