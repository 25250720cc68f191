"""Laws of the spring of a series elastic unit.

Each law is a curve with a parameter d, the *coordinate* of the spring: tension T(d) and elongation
delta(d), as seen by the cable. For ``polynomial`` and ``exponential`` the coordinate is the
elongation itself; for ``triangle`` it is the compression of the coil spring, which the cable
presses over two rollers [MyoMuscle unit of the Myorobotics project]:

    delta(d) = L(0) - L(d),   L(d) = sqrt(c1^2 + (c4 - d)^2) + sqrt(c2^2 + (c3 + c4 - d)^2)
    T(d) = k d / (cos a1 + cos a2),   tan a1 = c1/(c4 - d),   tan a2 = c2/(c3 + c4 - d)

which follows from virtual work, T = dE/d delta with E = k d^2/2. Beyond the end of the travel
both curves go on along their tangents, so that every law is defined, increasing and finite for
every d >= 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from cards_core.checks import check_choice
from cards_core.muscles.actuators.arithmetic import NUMPY, Arithmetic, Real, increasing_root
from cards_core.muscles.actuators.model import Parameters
from cards_core.robot.actuators import SeriesElastic, Spring
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

ENDLESS = 1e6
"""Travel of a spring that has no end, [m]."""

ITERATIONS = 4
"""Newton iterations for the coordinate; the curves are nearly straight at that scale."""


class _Law(ABC):
    """A curve with a coordinate d >= 0 within its travel; here the coordinate is the elongation.

    Attributes:
        straight: Whether the coordinate is the elongation.
    """

    straight = True

    @abstractmethod
    def parameters(self, spring: Spring) -> dict[str, float]:
        """Return the numbers of the curve."""

    @abstractmethod
    def tension(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        """Return T and T'."""

    def elongation(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        """Return delta and delta'."""
        del m, p
        return d, 1.0 + 0.0 * d

    def first_guess(self, m: Arithmetic, p: Parameters, force: Real, high: Real) -> Real:
        """Return a coordinate up to ``high`` whose tension is near a force."""
        del m, p, force
        return high

    @abstractmethod
    def energy(self, p: Parameters, d: Any) -> Any:
        """Return the integral of T d delta from 0 to d, [J]; NumPy only."""


class _Polynomial(_Law):
    def parameters(self, spring: Spring) -> dict[str, float]:
        return {
            "k1": spring.stiffness or 0.0,
            "k2": spring.quadratic or 0.0,
            "k3": spring.cubic or 0.0,
            "end": spring.travel or ENDLESS,
        }

    def tension(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        del m
        return d * (p.k1 + d * (p.k2 + d * p.k3)), p.k1 + d * (2.0 * p.k2 + 3.0 * d * p.k3)

    def energy(self, p: Parameters, d: Any) -> Any:
        return d**2 * (p.k1 / 2.0 + d * (p.k2 / 3.0 + d * p.k3 / 4.0))


class _Exponential(_Law):
    def parameters(self, spring: Spring) -> dict[str, float]:
        a, b = float(spring.force_scale or 0.0), float(spring.growth or 0.0)
        return {"a": a, "b": b, "end": spring.travel or 10.0 / b}

    def tension(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        growing = p.a * m.exp(p.b * d)
        return growing - p.a, p.b * growing

    def first_guess(self, m: Arithmetic, p: Parameters, force: Real, high: Real) -> Real:
        return m.minimum(high, m.log(1.0 + force / p.a) / p.b)

    def energy(self, p: Parameters, d: Any) -> Any:
        return p.a * (np.expm1(p.b * d) / p.b - d)


class _Triangle(_Law):
    straight = False

    def parameters(self, spring: Spring) -> dict[str, float]:
        return {
            "k1": spring.stiffness or 0.0,
            "c1": spring.c1 or 0.012,
            "c2": spring.c2 or 0.008,
            "c3": 0.018 if spring.c3 is None else spring.c3,
            "c4": spring.c4 or 0.039,
            "end": spring.travel or 0.02,
        }

    def tension(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        _, cosines = self.elongation(m, p, d)
        first, second = p.c4 - d, p.c3 + p.c4 - d
        side1 = m.sqrt(p.c1 * p.c1 + first * first)
        side2 = m.sqrt(p.c2 * p.c2 + second * second)
        fall = p.c1 * p.c1 / (side1 * side1 * side1) + p.c2 * p.c2 / (side2 * side2 * side2)
        return p.k1 * d / cosines, p.k1 / cosines + p.k1 * d * fall / (cosines * cosines)

    def elongation(self, m: Arithmetic, p: Parameters, d: Real) -> tuple[Real, Real]:
        first, second = p.c4 - d, p.c3 + p.c4 - d
        side1 = m.sqrt(p.c1 * p.c1 + first * first)
        side2 = m.sqrt(p.c2 * p.c2 + second * second)
        whole1 = m.sqrt(p.c1 * p.c1 + p.c4 * p.c4)
        whole2 = m.sqrt(p.c2 * p.c2 + (p.c3 + p.c4) * (p.c3 + p.c4))
        return whole1 + whole2 - side1 - side2, first / side1 + second / side2

    def energy(self, p: Parameters, d: Any) -> Any:
        return 0.5 * p.k1 * d**2


LAWS: Mapping[str, _Law] = {
    "polynomial": _Polynomial(),
    "exponential": _Exponential(),
    "triangle": _Triangle(),
}
"""Curves by the name of the law, see `Spring`."""


def parameters(spring: Spring) -> dict[str, float]:
    """Return the numbers of a law.

    Raises:
        UnknownNameError: No such law.
    """
    check_choice(spring.law, "law of a spring", LAWS)
    law = LAWS[spring.law]
    values = law.parameters(spring)
    p = SimpleNamespace(**values)
    samples = np.linspace(0.0, min(values["end"], 1.0), 401)
    slope_of_tension = law.tension(NUMPY, p, samples)[1]
    values["softest"] = float(np.min(slope_of_tension)) * (1.0 - 1e-9)
    values["shallowest"] = float(np.min(law.elongation(NUMPY, p, samples)[1]))
    return values


def tension(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """Return T(d) and dT/dd for any coordinate d >= 0.

    Args:
        m: Evaluator.
        law: Name of the law, key of `LAWS`.
        p: Parameters of the springs.
        d: Coordinate, [m].

    Returns:
        [N] and [N/m].
    """
    inside = m.minimum(d, p.end)
    value, slope = LAWS[law].tension(m, p, inside)
    return value + slope * (d - inside), slope


def elongation(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """Return delta(d) and d delta/dd for any coordinate d >= 0.

    Args:
        m: Evaluator.
        law: Name of the law, key of `LAWS`.
        p: Parameters of the springs.
        d: Coordinate, [m].

    Returns:
        [m] and [1].
    """
    inside = m.minimum(d, p.end)
    value, slope = LAWS[law].elongation(m, p, inside)
    return value + slope * (d - inside), slope


def coordinate_of_elongation(m: Arithmetic, law: str, p: Parameters, delta: Real) -> Real:
    """Solve delta(d) = delta for d; 0 for a slack spring (delta < 0).

    Args:
        m: Evaluator.
        law: Name of the law, key of `LAWS`.
        p: Parameters of the springs.
        delta: Elongation, [m].

    Returns:
        d >= 0, [m].
    """
    delta = m.maximum(delta, 0.0)
    if LAWS[law].straight:
        return delta
    high = delta / p.shallowest

    def residual(d: Real) -> tuple[Real, Real, Real]:
        own, own_slope = elongation(m, law, p, d)
        return own - delta, own_slope, 0.0

    return increasing_root(m, residual, high, (0.0 * high, high), ITERATIONS)


def coordinate_of_tension(m: Arithmetic, law: str, p: Parameters, force: Real) -> Real:
    """Solve T(d) = force >= 0 for d.

    Args:
        m: Evaluator.
        law: Name of the law, key of `LAWS`.
        p: Parameters of the springs.
        force: Tension, [N].

    Returns:
        d >= 0, [m].
    """
    high = force / p.softest

    def residual(d: Real) -> tuple[Real, Real, Real]:
        value, slope = tension(m, law, p, d)
        return value - force, slope, 0.0

    start = LAWS[law].first_guess(m, p, force, high)
    return increasing_root(m, residual, start, (0.0 * high, high), ITERATIONS)


class Elongations:
    """Elongation of the springs of series elastic units over the tension; zero for other muscles.

    Args:
        muscles: Of a robot.

    Attributes:
        rows: Muscles with such a spring.
    """

    def __init__(self, muscles: Sequence[Muscle]) -> None:
        found: dict[str, list[tuple[int, dict[str, float]]]] = {}
        for row, muscle in enumerate(muscles):
            if isinstance(muscle.actuator, SeriesElastic):
                spring = muscle.actuator.spring
                found.setdefault(spring.law, []).append((row, parameters(spring)))
        self.rows: list[int] = sorted(row for group in found.values() for row, _ in group)
        self._groups = []
        for law, group in found.items():
            names = group[0][1]
            p = SimpleNamespace(**{n: np.array([values[n] for _, values in group]) for n in names})
            self._groups.append((law, np.array([row for row, _ in group]), p))

    def __call__(self, tensions: Array) -> Array:
        """Return delta(T) of tensions, shape (m,), [N]; shape (m,), [m]."""
        out: Array = np.zeros(len(tensions))
        for law, rows, p in self._groups:
            d = coordinate_of_tension(NUMPY, law, p, np.maximum(tensions[rows], 0.0))
            out[rows] = elongation(NUMPY, law, p, d)[0]
        return out


def nominal_stiffness(spring: Spring) -> float:
    """Return dT/d delta at 10 mm or the end of the travel, whichever is first, [N/m]."""
    p = SimpleNamespace(**parameters(spring))
    d = np.array(min(p.end, 0.01))
    return float(tension(NUMPY, spring.law, p, d)[1] / elongation(NUMPY, spring.law, p, d)[1])


def energy(law: str, p: Parameters, d: Any) -> Any:
    """Return the integral of T d delta from 0 to d, [J]; NumPy only.

    Args:
        law: Name of the law, key of `LAWS`.
        p: Parameters of the springs.
        d: Coordinate >= 0, a number or shape (n,), [m].
    """
    inside = np.minimum(d, p.end)
    stored = LAWS[law].energy(p, inside)
    more, (last, slope) = d - inside, tension(NUMPY, law, p, inside)
    return stored + elongation(NUMPY, law, p, inside)[1] * more * (last + 0.5 * slope * more)
