"""Cables and ligaments: ideal cable, elastic cable with a winch, Blankevoort ligament."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.muscles.actuators.arithmetic import NUMPY, Arithmetic, Real, clip
from cards_core.muscles.actuators.model import (
    Inputs,
    Model,
    Parameters,
    limits,
)
from cards_core.muscles.command import FORCE, LENGTH
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

UNLIMITED = 1e7
"""Stands for no limit of the winch, as length per step [m]; paths are shorter."""


class IdealCable(Model):
    """Tension is what is commanded, within the muscle's limits; its minimum without a command."""

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        return limits(muscle)

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`."""
        return 0.0, 0.0

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        force = clip(m, given.value, p.tension_min, p.tension_max)
        return m.where(given.kind == FORCE, force, p.tension_min), []

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        return []

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        return np.zeros(len(lengths))


class ElasticCable(Model):
    """Tension-only spring with damping; a winch changes its rest length.

    Elastic tension E and tension T at length l, rate l' and rest length L0:

        E = max(0, k (l - L0)),   T = E + min(max(c l', -E), E)

    so T >= 0, and it grows from zero when the cable becomes taut while it lengthens, also with
    damping.

    Commands: the rest length, or the tension f, for which the winch makes ``T = f``; both at most
    at the speed of the winch. Without a command the rest length stays, and the cable is a passive
    spring that only pulls (CASPR's passive spring, which may push, does not exist for muscles).
    State: ``rest_length`` [m].
    """

    published: ClassVar[tuple[str, ...]] = ("rest_length",)

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        cable: Any = muscle.actuator
        return limits(muscle) | {
            "k": cable.stiffness,
            "c": cable.damping,
            "rest": np.nan if cable.rest_length is None else cable.rest_length,
            "reach": UNLIMITED if cable.winch_speed is None else cable.winch_speed * dt,
        }

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`."""
        return actuator.stiffness, actuator.damping

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        rest, k, length = x[0], p.k, given.length
        viscous = p.c * given.rate
        force = clip(m, given.value, p.tension_min, p.tension_max)
        wanted = m.maximum(force - viscous, 0.5 * force)  # the E that gives T = force
        elastic = clip(m, wanted, k * (length - rest - p.reach), k * (length - rest + p.reach))
        by_force = length - elastic / k
        by_length = clip(m, given.value, rest - p.reach, rest + p.reach)
        rest = m.where(given.kind == LENGTH, by_length, rest)
        rest = m.where(given.kind == FORCE, by_force, rest)
        elastic = m.maximum(k * (length - rest), 0.0)
        return elastic + clip(m, viscous, -elastic, elastic), [rest]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        wound = lengths - self.p.tension_min / self.p.k
        return [np.where(np.isnan(self.p.rest), wound, self.p.rest)]

    def stretch(
        self, m: Arithmetic, p: Parameters, x: Sequence[Real], length: Real
    ) -> tuple[Real, Real]:
        """See `Model`."""
        stretch = m.maximum(length - x[0], 0.0)
        return stretch, 0.5 * p.k * stretch * stretch

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        return np.asarray(self.stretch(NUMPY, self.p, x, lengths)[1])


class BlankevoortLigament(Model):
    """Nonlinear passive spring [Blankevoort1991]_.

    With strain ``e = l/l0 - 1``, toe strain e_t and stiffness k per strain:

        E = 0 (e <= 0),   k e^2 / (2 e_t) (e < e_t),   k (e - e_t/2) (above)
        T = E + min(c e', E) while lengthening, E while shortening

    Commands: none. States: none.
    """

    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """See `Model`."""
        item: Any = muscle.actuator
        return {
            "k": item.stiffness,
            "l0": item.slack_length,
            "toe": item.toe_strain,
            "c": item.damping / item.slack_length,
        }

    def steepness(self, actuator: Any) -> tuple[float, float]:
        """See `Model`."""
        length = actuator.slack_length
        return actuator.stiffness / length, actuator.damping / length

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        elastic = self.elastic(m, p, m.maximum(given.length / p.l0 - 1.0, 0.0))
        return elastic + clip(m, p.c * given.rate, 0.0, elastic), []

    @staticmethod
    def elastic(m: Arithmetic, p: Parameters, strain: Real) -> Real:
        """Return E of a strain >= 0.

        Args:
            m: Functions of real arguments.
            p: Parameters by name, shape (n,) each.
            strain: Strain [1], shape (n,).
        """
        curvature = 0.5 * p.k / p.toe
        return m.where(strain < p.toe, curvature * strain * strain, p.k * (strain - 0.5 * p.toe))

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        return []

    def stretch(
        self, m: Arithmetic, p: Parameters, x: Sequence[Real], length: Real
    ) -> tuple[Real, Real]:
        """See `Model`."""
        e = m.maximum(length / p.l0 - 1.0, 0.0)
        inside = m.minimum(e, p.toe)
        toe = p.k * inside * inside * inside / (6.0 * p.toe)
        above = m.maximum(e - p.toe, 0.0)
        return p.l0 * e, p.l0 * (toe + 0.5 * p.k * above * (above + p.toe))

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        return np.asarray(self.stretch(NUMPY, self.p, x, lengths)[1])
