"""Cables and ligaments: ideal cable, elastic cable with a winch, Blankevoort ligament."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cards_core.description.model import Muscle
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real, clip
from cards_core.muscles.actuators.model import (
    Inputs,
    Model,
    Parameters,
    implicit_terms,
    limits,
)
from cards_core.muscles.command import FORCE, LENGTH
from cards_core.typing import Array

UNLIMITED = 1e7
"""Stands for no limit of the winch, as length per step [m]; paths are shorter."""


class IdealCable(Model):
    """Tension is what is commanded, within the muscle's limits; its minimum without a command."""

    def parameters(self, muscle: Muscle, dt: float, mass: float) -> dict[str, float]:
        """See `Model`."""
        return limits(muscle)

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
    damping. For stiff cables see `implicit_terms`.

    Commands: the rest length, or the tension f, for which the winch makes ``T = f``; both at most
    at the speed of the winch. Without a command the rest length stays, and the cable is a passive
    spring that only pulls (CASPR's passive spring, which may push, does not exist for muscles).
    State: ``rest_length`` [m].
    """

    published: ClassVar[tuple[str, ...]] = ("rest_length",)

    def parameters(self, muscle: Muscle, dt: float, mass: float) -> dict[str, float]:
        """See `Model`."""
        cable: Any = muscle.actuator
        implicit = implicit_terms(cable.stiffness, cable.damping, dt, mass)
        softening = 1.0 + cable.stiffness * implicit["compliance"]
        return limits(muscle) | {
            "k": cable.stiffness,
            "c": cable.damping,
            "rest": np.nan if cable.rest_length is None else cable.rest_length,
            "reach": UNLIMITED if cable.winch_speed is None else cable.winch_speed * dt,
            "ahead": implicit["ahead"],
            "divisor": softening + cable.damping * implicit["mobility"],
        }

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        rest = x[0]
        seen = given.length + p.ahead * given.rate
        viscous = p.c * given.rate / p.divisor
        k = p.k / p.divisor
        force = clip(m, given.value, p.tension_min, p.tension_max)
        wanted = m.maximum(force - viscous, 0.5 * force)  # the E that gives T = force
        elastic = clip(m, wanted, k * (seen - rest - p.reach), k * (seen - rest + p.reach))
        by_force = seen - elastic / k
        by_length = clip(m, given.value, rest - p.reach, rest + p.reach)
        rest = m.where(given.kind == LENGTH, by_length, rest)
        rest = m.where(given.kind == FORCE, by_force, rest)
        elastic = m.maximum(k * (seen - rest), 0.0)
        return elastic + clip(m, viscous, -elastic, elastic), [rest]

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        k = self.p.k / self.p.divisor
        wound = lengths - self.p.tension_min / k
        return [np.where(np.isnan(self.p.rest), wound, self.p.rest)]

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        energy: Array = 0.5 * self.p.k / self.p.divisor * np.maximum(lengths - x[0], 0.0) ** 2
        return energy


class BlankevoortLigament(Model):
    """Nonlinear passive spring [Blankevoort1991]_.

    With strain ``e = l/l0 - 1``, toe strain e_t and stiffness k per strain:

        E = 0 (e <= 0),   k e^2 / (2 e_t) (e < e_t),   k (e - e_t/2) (above)
        T = E + min(c e', E) while lengthening, E while shortening

    For stiff ligaments see `implicit_terms`. Commands: none. States: none.
    """

    def parameters(self, muscle: Muscle, dt: float, mass: float) -> dict[str, float]:
        """See `Model`."""
        item: Any = muscle.actuator
        k, c = item.stiffness / item.slack_length, item.damping / item.slack_length
        implicit = implicit_terms(k, c, dt, mass)
        return {
            "k": item.stiffness,
            "l0": item.slack_length,
            "toe": item.toe_strain,
            "c": c / (1.0 + c * implicit["mobility"] + k * implicit["compliance"]),
            "ahead": implicit["ahead"],
            "q": implicit["compliance"] / item.slack_length,
        }

    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """See `Model`."""
        seen = given.length + p.ahead * given.rate
        elastic = self.elastic(m, p, m.maximum(seen / p.l0 - 1.0, 0.0))
        return elastic + clip(m, p.c * given.rate, 0.0, elastic), []

    @staticmethod
    def elastic(m: Arithmetic, p: Parameters, strain: Real) -> Real:
        """Return E of a strain >= 0, behind the implicit compliance (``q`` = 0 without)."""
        curvature = 0.5 * p.k / p.toe
        # own strain u: u + q E(u) = strain
        in_toe = 2.0 * strain / (1.0 + m.sqrt(1.0 + 4.0 * p.q * curvature * strain))
        beyond = (strain + 0.5 * p.q * p.k * p.toe) / (1.0 + p.q * p.k)
        return m.where(in_toe < p.toe, curvature * in_toe * in_toe, p.k * (beyond - 0.5 * p.toe))

    def rest(self, lengths: Array) -> list[Array]:
        """See `Model`."""
        return []

    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """See `Model`."""
        p = self.p
        e = np.maximum(lengths / p.l0 - 1.0, 0.0)
        toe = p.k * np.minimum(e, p.toe) ** 3 / (6.0 * p.toe)
        above = np.maximum(e - p.toe, 0.0)
        energy: Array = p.l0 * (toe + 0.5 * p.k * above * (above + p.toe))
        return energy
