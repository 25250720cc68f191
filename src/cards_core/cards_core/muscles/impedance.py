"""The impedance law of a muscle: a tension that depends on how long the muscle is.

    T = max(T_floor, T0 + K (l - l0) + B (l' - v0)),     then limits and largest rate of change

l and l' are the length and rate that the encoder of the muscle's motor reads: those of the path,
and behind a spring (`series_elastic`) what the winder has paid out, the path less the elongation.
l0, v0, T0 are the set-points, K, B, T_floor numbers of the muscle
(`cards_core.robot.actuators.ImpedanceControl`). It is the lowest level of control, the same in
every host and on the boards of real robots, once per step there. Special cases:

    tension control             K = B = 0
    muscle stiffness control    T_floor = T0 = T_bias: pulls harder than T_bias when too long
    cables of tensegrities      T_floor = 0

The law is that of a controller that measures, computes and then pulls: with dt^2 K w or dt B w
above about one, w being the inverse of the mass that the muscle feels, it shakes the robot, here
as on a board of the same rate. Hosts refuse gains that do so at home for sure, see
`cards_core.loop.host.Host.change`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.errors import ParameterError
from cards_core.parameters.declaration import parameters_of
from cards_core.robot.actuators import ImpedanceControl
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

GAINS = ("stiffness", "damping", "tension_floor")
"""Numbers of the law that may be changed while a host runs."""

MOST = {spec.name: spec.upper for spec in parameters_of(ImpedanceControl) if spec.name in GAINS}
"""Largest values of these. T_floor is at most the largest tension of its muscle, too."""

GAIN_RATE = 4000.0
"""Most that new K, B and T_floor change the law's tension, [N/s]: 4 N in a tick of a board."""

SLACK = 10.0
"""Rest length l0 that no muscle reaches, [m]: the law then gives T_floor."""


def impedance_tension(
    length: Array,
    rate: Array,
    *,
    rest_length: Array,
    rest_rate: Array,
    tension: Array,
    stiffness: Array,
    damping: Array,
    floor: Array,
) -> Array:
    """Return T of the law without limits, [N]; all arguments are of one shape.

    Args:
        length: l, [m].
        rate: l', [m/s].
        rest_length: l0, [m].
        rest_rate: v0, [m/s].
        tension: T0, [N].
        stiffness: K, [N/m].
        damping: B, [N s/m].
        floor: T_floor, [N].
    """
    out: Array = np.maximum(
        floor, tension + stiffness * (length - rest_length) + damping * (rate - rest_rate)
    )
    return out


class ImpedanceLaw:
    """The law of all muscles of a robot, with their set-points.

    Args:
        muscles: Of the robot.

    Attributes:
        stiffness, damping, tension_floor: K, B and T_floor, shape (m,). New ones come in by
            `GAIN_RATE` where a muscle is under the law, as on a board.
        rest_length, rest_rate: Set-points l0 [m] and v0 [m/s], shape (m,); NaN and zero as long as
            none was given. T0 comes with each call.
        active: Which muscles are under the law now, shape (m,).
        share: How far each is still under it, 1 to 0, shape (m,): less when its commands stopped.
        any_active: Whether any is.
    """

    def __init__(self, muscles: tuple[Muscle, ...]) -> None:
        self._names = [muscle.name for muscle in muscles]
        laws = [muscle.control for muscle in muscles]
        self._minimum: Array = np.array([muscle.tension_min for muscle in muscles], dtype=float)
        self._maximum: Array = np.array([muscle.tension_max for muscle in muscles], dtype=float)
        self.stiffness: Array = np.array([law.stiffness for law in laws], dtype=float)
        self.damping: Array = np.array([law.damping for law in laws], dtype=float)
        self.tension_floor: Array = np.array(
            [
                muscle.tension_min if law.tension_floor is None else law.tension_floor
                for muscle, law in zip(muscles, laws, strict=True)
            ],
            dtype=float,
        )
        self._rate: Array = np.array([law.tension_rate or np.inf for law in laws], dtype=float)
        self._limited = bool(np.isfinite(self._rate).any())
        count = len(muscles)
        self.rest_length: Array = np.empty(count)
        self.rest_rate: Array = np.empty(count)
        self.active = np.zeros(count, dtype=np.bool_)
        self.share: Array = np.ones(count)
        self.any_active = False
        self._last: Array = np.empty(count)
        self._gains = [array.copy() for array in self._wanted]
        self._approaching = False
        self.reset()

    @property
    def plain(self) -> bool:
        """Whether the law is no more than its equation now: all shares one, gains settled."""
        return not (self._limited or self._approaching or np.count_nonzero(self.share != 1.0) > 0)

    @property
    def arrays(self) -> dict[str, Array]:
        """What the equation reads, by the names of ``steps.c`` of `cards_sim`."""
        stiffness, damping, floor = self._gains
        return {
            "stiffness": stiffness,
            "damping": damping,
            "floor": floor,
            "rest_length": self.rest_length,
            "rest_rate": self.rest_rate,
            "least": self._minimum,
            "most": self._maximum,
        }

    @property
    def gains(self) -> dict[str, Array]:
        """K, B and T_floor that are wanted, by their names in `GAINS`."""
        return dict(zip(GAINS, self._wanted, strict=True))

    @property
    def _wanted(self) -> tuple[Array, Array, Array]:
        return self.stiffness, self.damping, self.tension_floor

    def reset(self) -> None:
        """Forget the set-points and the last tensions; K, B and T_floor stay."""
        self.rest_length[:] = np.nan
        self.rest_rate[:] = 0.0
        self.active[:] = False
        self.share[:] = 1.0
        self.any_active = False
        self._last[:] = np.nan
        self._settle()

    def _settle(self) -> None:
        """Take over the gains at once."""
        for now, wanted in zip(self._gains, self._wanted, strict=True):
            now[:] = wanted
        self._approaching = False

    def _approach(self, over: Array, faster: Array, step: float) -> None:
        """Let the gains come closer to those that are wanted.

        By the same share of the way for K, B and T_floor of a muscle, so far that the law gives a
        tension that differs by no more than a step: max(a, b) never changes by more than a or b.

        Args:
            over: l - l0, shape (m,), [m].
            faster: l' - v0, shape (m,), [m/s].
            step: [N].
        """
        changes = [wanted - now for now, wanted in zip(self._gains, self._wanted, strict=True)]
        stiffness, damping, floor = changes
        jump = np.maximum(np.abs(floor), np.abs(stiffness * over + damping * faster))
        at_once = ~self.active | ~(jump > step)
        share = np.where(at_once, 1.0, step / np.where(at_once, 1.0, jump))
        for now, wanted, change in zip(self._gains, self._wanted, changes, strict=True):
            now[:] = np.where(at_once, wanted, now + share * change)
        self._approaching = not at_once.all()

    def change(self, values: Mapping[str, Array]) -> None:
        """Take over gains of all muscles, all or nothing.

        Args:
            values: Of some of `GAINS`, shape (m,) each.

        Raises:
            ParameterError: No such gain, wrong size, or a number that is negative or not finite.
        """
        self.check(values)
        for name, given in values.items():
            getattr(self, name)[:] = given
        for now, wanted in zip(self._gains, self._wanted, strict=True):
            np.copyto(now, wanted, where=~self.active)
        self._approaching = True

    def check(self, values: Mapping[str, Array]) -> None:
        """Raise `ParameterError` for gains that `change` would not take."""
        for name, given in values.items():
            if name not in GAINS:
                raise ParameterError(
                    f"'{name}' is not a gain of the impedance law; expected {', '.join(GAINS)}"
                )
            wanted = f"one number for each of {', '.join(self._names)}"
            try:
                array = np.asarray(given, dtype=float)
            except (TypeError, ValueError):
                text = f"{name} of the impedance law is {given!r:.60}; expected {wanted}"
                raise ParameterError(text) from None
            if array.shape != self.stiffness.shape:
                raise ParameterError(
                    f"{name} of the impedance law has shape {array.shape}, expected "
                    f"{self.stiffness.shape}: {wanted}"
                )
            most = np.full(array.shape, MOST[name])
            if name == "tension_floor":
                most = np.minimum(most, self._maximum)
            good = (array >= 0.0) & (array <= most)
            if not good.all():
                bad = int(np.argmin(good))
                raise ParameterError(
                    f"{name} of muscle '{self._names[bad]}' is {array[bad]:g}; expected a finite "
                    f"number >= 0 and <= {most[bad]:g}"
                )

    def tensions(self, values: Array, length: Array, rate: Array, dt: float) -> Array:
        """Return what muscles are told, with tensions [N] in place of T0 where the law is active.

        Args:
            values: What every muscle is told, shape (m,); T0 where the law is active.
            length: Measured at the motor, shape (m,), [m].
            rate: Measured, shape (m,), [m/s].
            dt: Since the last call, [s].
        """
        rest_length = np.where(np.isnan(self.rest_length), length, self.rest_length)
        if self._approaching:
            self._approach(length - rest_length, rate - self.rest_rate, GAIN_RATE * dt)
        stiffness, damping, floor = self._gains
        raw = impedance_tension(
            length,
            rate,
            rest_length=rest_length,
            rest_rate=self.rest_rate,
            tension=values,
            stiffness=stiffness,
            damping=damping,
            floor=floor,
        )
        law = raw
        if np.any(self.share != 1.0):
            law = self._minimum + self.share * (raw - self._minimum)
        if self._limited:
            step = self._rate * dt
            fresh = np.isnan(self._last)
            low = np.where(fresh, -np.inf, self._last - step)
            high = np.where(fresh, np.inf, self._last + step)
            law = np.minimum(np.maximum(law, low), high)
        law = np.minimum(np.maximum(law, self._minimum), self._maximum)
        out = np.where(self.active, law, values)
        if self._limited:
            self._last[:] = np.where(self.active, law, np.nan)
        return out
