"""Activation dynamics that several curves of Hill muscles have in common [Thelen2003]."""

from __future__ import annotations

from cards_core.muscles.actuators.arithmetic import Arithmetic, Real


class ThelenActivation:
    """One time constant up and one down, that of Thelen's and Millard's muscles in OpenSim."""

    def activation_rate(
        self, m: Arithmetic, excitation: Real, activation: Real, rise: Real, fall: Real
    ) -> Real:
        """Return 1/tau, [1/s]: one time constant up, one down.

        Args:
            m: Functions of real arguments.
            excitation: 0..1, shape (n,).
            activation: 0..1, shape (n,).
            rise: Time constant of activation, [s].
            fall: Time constant of deactivation, [s].
        """
        pace = 0.5 + 1.5 * activation
        return m.where(excitation > activation, 1.0 / (rise * pace), pace / fall)
