"""How muscles held at lengths are taken over, and let go, without a jump of a tension.

The muscles' law, T = max(T_floor, T0 + K (l - l0) + B l'), is led by l0:

    taken over    l0 = wanted + lead;  the lead begins where T is as before, and shrinks to zero
    let go        l0 grows by STEP/K per period, unless the muscle is slack already

The lead of all muscles shrinks in the same proportion: tensions between two sets that balance the
robot balance it too. Were each muscle to go as fast as it may, those with the shorter way would
arrive first, and the robot would move meanwhile.

Letting go takes (T_max - T0)/STEP periods where the robot does not move, 3.4 s for 540 N. A robot
that hangs in its muscles is lowered, they lengthen by STEP/K per period: a limb that sinks until
it lies on something does not hit it, and never swings in muscles that are much too long.
"""

from __future__ import annotations

import numpy as np

from cards_core.muscles.impedance import SLACK, ImpedanceLaw
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

STEP = 1.25
"""Most that a tension changes per period by the change of l0, [N]. What motion adds where hands
come off a desk is as much as three times that."""


class HandOver:
    """Leads l0 of all muscles from and to tensions; see the module.

    Args:
        muscles: That are led.
        bias: T0 of each, shape (m,), [N].

    Attributes:
        lead: What is added to the lengths that are wanted, shape (m,), [m].
    """

    def __init__(self, muscles: tuple[Muscle, ...], bias: Array) -> None:
        law = ImpedanceLaw(muscles)
        self._stiffness, self._damping = law.stiffness, law.damping
        self._floor = law.tension_floor
        self._bias = bias
        self.lead: Array = np.zeros(bias.size)

    def lengths_for(self, tensions: Array, lengths: Array, rates: Array) -> Array:
        """Return the l0 with which the law gives tensions, shape (m,), [m].

        Args:
            tensions: T, shape (m,), [N]; where they are NaN or less, those of the floor.
            lengths: l, shape (m,), [m]; where they are NaN, `SLACK` is returned.
            rates: l', shape (m,), [m/s].
        """
        wanted = np.fmax(tensions, self._floor)
        found = lengths - (wanted - self._bias - self._damping * rates) / self._stiffness
        return np.where(np.isfinite(found), found, SLACK)

    def kept(self, rest_lengths: Array, lengths: Array, rates: Array) -> Array:
        """Return l0 with the same tensions as given ones, of slack muscles the least such l0.

        Args:
            rest_lengths: l0, shape (m,), [m].
            lengths: l, shape (m,), [m].
            rates: l', shape (m,), [m/s].
        """
        nothing = np.zeros_like(lengths)
        return np.minimum(rest_lengths, self.lengths_for(nothing, lengths, rates))

    def take_over(self, wanted: Array) -> None:
        """Add the lead to wanted lengths, shape (m,), in place; then shrink it by a step."""
        if not self.lead.any():
            return
        wanted += self.lead
        steps = float(np.max(np.abs(self.lead) * self._stiffness)) / STEP
        self.lead *= 1.0 - 1.0 / max(steps, 1.0)

    def let_go(self, rest_lengths: Array, tensions: Array) -> None:
        """Add one step of letting go to l0, shape (m,), in place; no more than `SLACK`.

        Args:
            rest_lengths: l0, [m].
            tensions: T as measured, shape (m,), [N]; where it is NaN, l0 grows.
        """
        tense = ~(tensions <= self._floor + STEP)
        rest_lengths += np.where(tense, STEP / self._stiffness, 0.0)
        np.minimum(rest_lengths, SLACK, out=rest_lengths)
