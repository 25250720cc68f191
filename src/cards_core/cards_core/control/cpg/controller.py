"""Central pattern generators: muscles whose impedance law follows coupled oscillators.

The law of the muscles, in the host or on the board (`cards_core.muscles.impedance`),

    T = max(T_floor, T0 + K (l - l0) + B (l' - v0))

gets v0 from an oscillator for each muscle [Mirletz2016]_ (eqs. 6.1-6.8), l0 is constant:

    v0 = s r cos(theta)                       s: `PatternParameters.rate_scale`
    F  = 2 y((l - l_h)/l_h, (T - T_max/2)/T_max) - 1
    T0 = g (2 y_k(d_x, d_y, h_x, h_y))        with a goal, for the muscle k of every joint
    T0 = g (2 y_k(h . d, h x d))              for a network of two inputs: cosine and sine of the
                                              angle from the heading to the goal

y are networks (`cards_core.control.cpg.network`), l_h the length at home; d points from the centre
of mass of ``reference_link`` to the goal, h from that of ``heading_links[1]`` to that of
``heading_links[0]``, both of length one in the horizontal plane. F shapes the oscillators (see
`cards_core.control.cpg.oscillators`); it and the oscillators advance once per refresh, v0 is held
between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from cards_core.checks import check_choice
from cards_core.control.cpg.files import pattern_file, read_pattern
from cards_core.control.cpg.native_refresh import NativeRefresh
from cards_core.control.cpg.oscillators import (
    Couplings,
    Feedback,
    OpenLoop,
    OscillatorError,
    Oscillators,
)
from cards_core.control.cpg.parameters import PatternParameters
from cards_core.control.interface import (
    ControlStatus,
    Setting,
    Signal,
    number,
    vector,
)
from cards_core.control.model import ControlModel
from cards_core.control.native_program import NotNativeError, own_methods
from cards_core.control.set_points import (
    SetPointController,
    home_lengths,
    rest_length_parameter,
    told_muscles,
)
from cards_core.errors import ParameterError
from cards_core.muscles.command import Command
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.elements import Muscle
from cards_core.robot.state import RobotState
from cards_core.spatial import placed
from cards_core.stamps import is_due, next_due
from cards_core.typing import Array

LIVE = ("file", "active", "feedback", "command", "goal", "tension", "rest_length")
"""Parameters that may be changed while it runs."""

LONGEST_GAP = 1.0
"""Longest time without states that oscillators are integrated over, [s]: seconds of a fast pattern
take longer than its period."""

FEEDBACK_TERMS = ("omega", "r", "theta")
"""F of a muscle, in this order."""


_COMPILED = "_refresh", "_feedback", "_towards_goal", "_set_points"
"""Methods that the compiled refresh repeats."""


@dataclass(frozen=True, eq=False)
class PatternParts:
    """Of what a pattern is made; see `PatternGenerator`.

    Attributes:
        pattern: As it was read; None: no oscillation.
        oscillators: One for each muscle.
        active: Whether they lead v0.
        feedback: Whether lengths and tensions shape them.
        goal: Whether a goal gives T0.
        ramp: Time of starting and stopping, [s].
    """

    pattern: PatternParameters | None
    oscillators: Oscillators
    active: bool
    feedback: bool
    goal: bool
    ramp: float


class PatternGenerator(SetPointController):
    """Let muscles follow coupled oscillators; see the module.

    It follows no reference and leaves no error. Start, stop and the way to `relaxed` take
    ``ramp_time``: the amplitude of v0 grows and shrinks linearly. A length or tension that is not
    finite, or oscillators that cannot be integrated, lead to `relaxed`, with the reason in
    `reason`; the former starts again when the measurement is back, the latter with `reset` or
    another file.

    Args:
        model: What the controller knows of the robot.
        pattern: What the generator is made of; None: no oscillation, muscles hold l0.
        active: Whether it oscillates.
        feedback: Whether the network's F shapes the oscillators; None: if there is a network.
        command: Descending command d of oscillators without feedback.
        goal: x and y in the world, [m]; empty: none.
        tension: T0, [N], one number or one per muscle; None: that of the pattern. A goal replaces
            it.
        rest_length: l0, [m], likewise; None: the lengths at home.
        refresh_rate: How often oscillators advance, [Hz].
        ramp_time: [s].
        muscles: Patterns of names of the muscles, in the order of the robot.
        reference_link: From where the goal is seen; empty: the last link that muscles pull.
        heading_links: From the second to the first is ahead; empty: the first two.

    Attributes:
        names: Of the commanded muscles.
        oscillators: One for each of them.

    Raises:
        ParameterError: A value does not fit, or a pattern fits no muscle.
        UnknownNameError: No such link.
    """

    kind = "cpg"
    summary = "central pattern generator: coupled oscillators lead the muscles' impedance law"
    needs = ("muscle_lengths", "tensions")
    _native: NativeRefresh | None

    def __init__(
        self,
        model: ControlModel,
        *,
        pattern: PatternParameters | None = None,
        active: bool = True,
        feedback: bool | None = None,
        command: float = 0.0,
        goal: Sequence[float] | Array = (),
        tension: Setting | None = None,
        rest_length: Setting | None = None,
        refresh_rate: float = 100.0,
        ramp_time: float = 1.0,
        muscles: Sequence[str] = ("*",),
        reference_link: str = "",
        heading_links: Sequence[str] = (),
    ) -> None:
        super().__init__(model, muscles, refresh_rate)
        names = self.names
        everything = [muscle.name for muscle in model.robot.muscles]
        self._measured = np.array([everything.index(name) for name in names], dtype=np.intp)
        self._ramp = number(ramp_time, "ramp_time")
        self._set_links(reference_link, heading_links)
        self._terms = np.zeros((len(names), 3))
        self.oscillators: Oscillators
        self._pattern: PatternParameters | None
        self._file = ""
        self._take(
            pattern,
            {
                "active": active,
                "feedback": _has_network(pattern) if feedback is None else feedback,
                "command": command,
                "goal": goal,
                "tension": _tensions(pattern, len(names)) if tension is None else tension,
                "rest_length": self._home if rest_length is None else rest_length,
            },
        )
        terms = tuple(f"{name}.{term}" for name in names for term in FEEDBACK_TERMS)
        self.signals = (
            Signal("phase", "position", names, lambda: self.oscillators.state[:, 0]),
            Signal("amplitude", "position", names, lambda: self.oscillators.state[:, 1]),
            Signal("rate_set_point", "velocity", names, lambda: self._told_rate),
            Signal("feedback", "effort", terms, self._terms.ravel),
        )
        self.reset()

    @property
    def pattern_parts(self) -> PatternParts:
        """Of what the pattern is made."""
        return PatternParts(
            pattern=self._pattern,
            oscillators=self.oscillators,
            active=self._active,
            feedback=self._with_feedback,
            goal=bool(self._goal.size),
            ramp=self._ramp,
        )

    @classmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters and return a controller; see `Controller.from_parameters`."""
        parameters.declare(_first_parameters())
        patterns = parameters["muscles"]
        muscles = told_muscles(model.commanded, patterns)
        names = tuple(muscle.name for muscle in muscles)
        pattern = _read(parameters["file"], muscles)
        parameters.declare(_more_parameters(pattern, names, home_lengths(model, names)))
        value = parameters
        made = cls(
            model,
            pattern=pattern,
            **{name: value[name] for name in LIVE if name != "file"},
            refresh_rate=value["refresh_rate"],
            ramp_time=value["ramp_time"],
            muscles=patterns,
            reference_link=value["reference_link"],
            heading_links=value["heading_links"],
        )
        made._file = value["file"]
        return made

    def change(self, values: Mapping[str, Any]) -> None:
        """Take over another pattern and numbers; see `Controller.change`.

        Raises:
            UnknownNameError: There is no such file.
            DescriptionError: It cannot be read.
            ParameterError: It does not fit this robot, or a number does not fit. Nothing is
                changed then.
        """
        other = values["file"] != self._file
        pattern = _read(values["file"], self._muscles) if other else self._pattern
        self._take(pattern, {name: values[name] for name in LIVE if name != "file"})
        self._file = values["file"]

    def _take(self, pattern: PatternParameters | None, values: Mapping[str, Any]) -> None:
        """Check everything, then take it over."""
        tension = vector(values["tension"], self.names, "tension")
        length = vector(values["rest_length"], self.names, "rest_length", strict=True)
        command = number(values["command"], "command", minimum=-math.inf)
        goal = np.asarray(values["goal"], dtype=float)
        if goal.shape not in ((0,), (2,)) or not np.isfinite(goal).all():
            raise ParameterError(f"goal is {goal.tolist()}; expected x and y, [m], or nothing")
        if goal.size and (pattern is None or pattern.goal is None):
            raise ParameterError(
                "goal is given for a pattern without a network for goals; expected no goal, or a "
                "file with 'goal'"
            )
        if values["feedback"] and not _has_network(pattern):
            raise ParameterError(
                "feedback is true for a pattern without a network of feedback; expected false, or "
                "a file with 'feedback'"
            )
        if command and pattern is not None and isinstance(pattern.oscillators, Feedback):
            raise ParameterError(
                f"command is {command:g} for oscillators with feedback, which take none; "
                "expected 0"
            )
        self._check_tension(tension)
        if not hasattr(self, "oscillators") or pattern is not self._pattern:
            self.oscillators = _oscillators(pattern, self._muscles)
            self._pattern = pattern
            self._broken = ""
            self._share = 0.0  # the new pattern begins softly
        self._active, self._with_feedback = bool(values["active"]), bool(values["feedback"])
        self._tension, self._rest_length, self._goal = tension, length, goal
        self.needs_joints = bool(goal.size)
        self.oscillators.command(command)
        if self.compiles:
            self._compile()

    def _compile(self) -> None:
        """Let refreshes be one call, with the present pattern, goal and parameters."""
        pattern, goal = self._pattern, self._goal
        try:
            own_methods(self, PatternGenerator, _COMPILED)
            native = NativeRefresh(self.oscillators, self._home, self._most, self._terms)
            if pattern is not None and self._with_feedback:
                native.place_feedback(pattern.feedback)
            if pattern is not None and pattern.goal is not None and goal.size:
                native.place_goal(
                    pattern.goal,
                    self.model.dynamics,
                    goal=goal,
                    tension=pattern.goal_tension,
                    links=self._links,
                    centres=self._centres,
                )
        except NotNativeError as error:
            self._not_native(str(error))
            return
        self._place_set_points(native.told, native.keep)
        self._native, self.native = native, "yes"

    def _set_links(self, reference_link: str, heading_links: Sequence[str]) -> None:
        links = self.model.commanded.links
        names = [link.name for link in links]
        pulled = list(dict.fromkeys(name for muscle in self._muscles for name in muscle.end_links))
        pulled = [name for name in pulled if name in names]
        chosen = [*(heading_links or pulled[:2]), reference_link or pulled[-1]]
        for name in chosen:
            check_choice(name, "link", names)
        if len(chosen) != 3 or chosen[0] == chosen[1]:
            raise ParameterError(
                f"heading_links is {chosen[:-1]}; expected two different links, the first ahead"
            )
        self._links = [names.index(name) for name in chosen]
        self._centres = np.array([links[i].inertia.com for i in self._links])

    def reset(self) -> None:
        """Restart the pattern with the next step; see `Controller.reset`."""
        self.oscillators.reset()
        self._last: float | None = None
        self._due = -math.inf
        self._share, self._hold = 0.0, 1.0
        self._broken = self.reason = ""
        self._terms[:] = 0.0

    def step(self, state: RobotState) -> Command:
        """Return the set-points of the muscles' law for a state; see `Controller.step`."""
        out, t = self.output, state.time
        out.time = t
        if not math.isfinite(t):
            out.status, self.reason = ControlStatus.INVALID_STATE, "the time is not finite"
            return self.relaxed
        if self._last is None or t < self._last:
            self._last = t
            self._due = t + self._period
            self._set_points(self._tension)
        elif is_due(t, self._due, self._period):
            self._due = next_due(t, self._due, self._period)
            if t - self._last > LONGEST_GAP:
                self._last = t - self._period
                self._share = 0.0  # the rhythm goes on from where it was, and begins softly
            self._refresh(state, t - self._last)
            self._last = t
        out.status = ControlStatus.INVALID_STATE if self.reason else ControlStatus.OK
        return self.relaxed if self._hold == 0.0 else self.command

    def _refresh(self, state: RobotState, elapsed: float) -> None:
        """Advance the oscillators by a time and set the set-points."""
        change = elapsed / self._ramp if self._ramp > 0.0 else 1.0
        self.reason = self._broken
        if self._native is not None and not self._broken and self._settled(state, elapsed, change):
            return
        tension = self._tension
        if not self.reason:
            try:
                feedback = self._feedback(state)
                if self._goal.size:
                    tension = self._towards_goal(state.q)
                self.oscillators.advance(elapsed, feedback)
                self._terms[:] = 0.0 if feedback is None else feedback
            except _MeasurementError as error:
                self.reason = str(error)
            except OscillatorError as error:
                self.reason = self._broken = str(error)
        lost, moving = bool(self.reason), self._active and not self.reason
        self._hold = float(np.clip(self._hold + (-change if lost else change), 0.0, 1.0))
        self._share = float(np.clip(self._share + (change if moving else -change), 0.0, 1.0))
        self._set_points(tension)

    def _settled(self, state: RobotState, elapsed: float, change: float) -> bool:
        """Do the refresh by compiled code; return whether it is settled."""
        native = self._native
        assert native is not None
        pattern = self._pattern
        if pattern is not None and pattern.feedback is not None and self._with_feedback:
            native.lengths[:] = state.measured("muscle_lengths")[self._measured]
            native.tensions[:] = state.measured("tensions")[self._measured]
        found = native.refresh(
            state.q,
            elapsed,
            change,
            active=self._active,
            hold=self._hold,
            share=self._share,
            rate_scale=0.0 if pattern is None else pattern.rate_scale,
        )
        if found is None:
            return False
        self._hold, self._share = found
        return True

    def _set_points(self, tension: Array) -> None:
        hold = self._hold
        self._told_tension[:] = hold * tension
        # muscles that are let go become longer until they are slack
        self._told_length[:] = self._rest_length * (2.0 - hold)
        scale = 0.0 if self._pattern is None else self._pattern.rate_scale
        self._told_rate[:] = (self._share * scale) * self.oscillators.output
        self.output.tensions[self._columns] = self._told_tension

    def _feedback(self, state: RobotState) -> Array | None:
        """Return F of all muscles, shape (m, 3), None without a network."""
        if self._pattern is None or self._pattern.feedback is None or not self._with_feedback:
            return None
        lengths = state.measured("muscle_lengths")[self._measured]
        tensions = state.measured("tensions")[self._measured]
        for what, values in (("length", lengths), ("tension", tensions)):
            if not math.isfinite(float(values.sum())):
                bad = int(np.argmin(np.isfinite(values)))
                raise _MeasurementError(f"the {what} of '{self.names[bad]}' is {values[bad]}")
        inputs = np.empty((len(lengths), 2))
        inputs[:, 0] = lengths / self._home - 1.0
        inputs[:, 1] = tensions / self._most - 0.5
        out: Array = 2.0 * self._pattern.feedback(inputs) - 1.0
        return out

    def _towards_goal(self, q: Array) -> Array:
        """Return T0 of all muscles, shape (m,), [N]."""
        pattern = cast(PatternParameters, self._pattern)
        network = pattern.goal
        if network is None or not math.isfinite(float(q.sum())):
            raise _MeasurementError("a coordinate of the robot is not finite")
        poses = self.model.dynamics.link_poses(q)[self._links]
        ahead, behind, seen = placed(poses, self._centres)[:, :2]
        goal, heading = _direction(self._goal - seen), _direction(ahead - behind)
        if pattern.goal_frame == "heading":
            cross = heading[0] * goal[1] - heading[1] * goal[0]
            inputs = np.array([heading @ goal, cross])
        else:
            inputs = np.concatenate((goal, heading))
        joint = pattern.goal_tension * 2.0 * network(inputs)
        out: Array = np.minimum(np.tile(joint, len(self.names) // joint.size), self._most)
        return out


class _MeasurementError(Exception):
    """A measurement is not finite."""


def _direction(vector: Array) -> Array:
    """Return a vector of length one, or zero if the vector is."""
    length = math.hypot(vector[0], vector[1])
    out: Array = vector / length if length > 0.0 else vector
    return out


def _has_network(pattern: PatternParameters | None) -> bool:
    return pattern is not None and pattern.feedback is not None


def _tensions(pattern: PatternParameters | None, muscles: int) -> Array:
    return np.zeros(muscles) if pattern is None else pattern.tensions(muscles)


def _read(file: str, muscles: Sequence[Muscle]) -> PatternParameters | None:
    """Return the pattern of the parameter ``file``.

    Args:
        file: Its value; empty: no pattern.
        muscles: That oscillate.

    Raises:
        UnknownNameError: There is no such file.
        DescriptionError: It cannot be read.
        ParameterError: Its couplings do not fit the muscles.
    """
    if not file:
        return None
    place = pattern_file(file)
    pattern = read_pattern(place)
    try:
        pattern.couple(muscles)
    except ParameterError as error:
        raise ParameterError(
            f"file: pattern {place} does not fit these {len(muscles)} muscles: {error} (expected: "
            "a pattern of this structure)"
        ) from None
    return pattern


def _oscillators(pattern: PatternParameters | None, muscles: Sequence[Muscle]) -> Oscillators:
    if pattern is None:
        return Oscillators(len(muscles), OpenLoop(0.0, 0.0), Couplings.none())
    return Oscillators(len(muscles), pattern.oscillators, pattern.couple(muscles))


def _first_parameters() -> list[Parameter]:
    return [
        Parameter(
            "muscles",
            cast(Any, ["*"]),
            "Commanded muscles: name patterns with * and ?.",
            kind=str,
        ),
        Parameter(
            "file",
            "",
            "The pattern: a name in config/patterns, a YAML file, or a learned set of NASA's "
            "toolkit (JSON); empty: muscles hold their lengths.",
            live=True,
        ),
    ]


def _more_parameters(
    pattern: PatternParameters | None, names: tuple[str, ...], home: Array
) -> list[Parameter]:
    m = len(names)
    return [
        Parameter("active", True, "Whether the muscles oscillate.", live=True),
        Parameter(
            "feedback",
            _has_network(pattern),
            "Whether lengths and tensions shape the oscillators.",
            live=True,
            default_text="true if the file has a network",
        ),
        Parameter("command", 0.0, "Descending command of the open loop.", live=True),
        Parameter(
            "goal", [], "Where to go, x and y in the world; empty: nowhere.", "m", live=True
        ),
        Parameter(
            "tension",
            _tensions(pattern, m).tolist(),
            "T0 without a goal.",
            "N",
            lower=0.0,
            length=m,
            names=names,
            live=True,
            default_text="of the file",
        ),
        rest_length_parameter(names, home),
        Parameter(
            "refresh_rate", 100.0, "How often oscillators advance.", "Hz", lower=0.1, upper=1e4
        ),
        Parameter("ramp_time", 1.0, "Of starting and stopping.", "s", lower=0.0, upper=60.0),
        Parameter(
            "reference_link",
            "",
            "Link from which the goal direction is taken; empty: the last link.",
        ),
        Parameter(
            "heading_links",
            cast(Any, []),
            "Two links, the first ahead of the second; empty: the first two.",
            kind=str,
        ),
    ]
