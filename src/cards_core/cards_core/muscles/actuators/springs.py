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

from types import SimpleNamespace
from typing import Any

import numpy as np

from cards_core.muscles.actuators.arithmetic import NUMPY, Arithmetic, Real, increasing_root
from cards_core.muscles.actuators.model import Parameters
from cards_core.robot.actuators import Spring

ENDLESS = 1e6
"""Travel of a spring that has no end, [m]."""

ITERATIONS = 4
"""Newton iterations for the coordinate; the curves are nearly straight at that scale."""


def parameters(spring: Spring) -> dict[str, float]:
    """Return the numbers of a law."""
    values: dict[str, float] = {}
    if spring.law == "exponential":
        a, b = float(spring.force_scale or 0.0), float(spring.growth or 0.0)
        values |= {"a": a, "b": b, "end": spring.travel or 10.0 / b}
    elif spring.law == "polynomial":
        values |= {
            "k1": spring.stiffness or 0.0,
            "k2": spring.quadratic or 0.0,
            "k3": spring.cubic or 0.0,
            "end": spring.travel or ENDLESS,
        }
    else:
        values |= {
            "k1": spring.stiffness or 0.0,
            "c1": spring.c1 or 0.012,
            "c2": spring.c2 or 0.008,
            "c3": 0.018 if spring.c3 is None else spring.c3,
            "c4": spring.c4 or 0.039,
            "end": spring.travel or 0.02,
        }
    p = SimpleNamespace(**values)
    samples = np.linspace(0.0, min(values["end"], 1.0), 401)
    slope_of_tension = _curves(NUMPY, spring.law, p, samples)[1]
    values["softest"] = float(np.min(slope_of_tension)) * (1.0 - 1e-9)
    values["shallowest"] = float(np.min(_elongation(NUMPY, spring.law, p, samples)[1]))
    return values


def _curves(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """T and T' for a coordinate within the travel."""
    if law == "exponential":
        growing = p.a * m.exp(p.b * d)
        return growing - p.a, p.b * growing
    if law == "polynomial":
        return d * (p.k1 + d * (p.k2 + d * p.k3)), p.k1 + d * (2.0 * p.k2 + 3.0 * d * p.k3)
    _, cosines = _elongation(m, law, p, d)
    first, second = p.c4 - d, p.c3 + p.c4 - d
    side1 = m.sqrt(p.c1 * p.c1 + first * first)
    side2 = m.sqrt(p.c2 * p.c2 + second * second)
    fall = p.c1 * p.c1 / (side1 * side1 * side1) + p.c2 * p.c2 / (side2 * side2 * side2)
    return p.k1 * d / cosines, p.k1 / cosines + p.k1 * d * fall / (cosines * cosines)


def _elongation(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """Elongation and its slope for a coordinate within the travel."""
    if law != "triangle":
        return d, 1.0 + 0.0 * d
    first, second = p.c4 - d, p.c3 + p.c4 - d
    side1 = m.sqrt(p.c1 * p.c1 + first * first)
    side2 = m.sqrt(p.c2 * p.c2 + second * second)
    whole1 = m.sqrt(p.c1 * p.c1 + p.c4 * p.c4)
    whole2 = m.sqrt(p.c2 * p.c2 + (p.c3 + p.c4) * (p.c3 + p.c4))
    return whole1 + whole2 - side1 - side2, first / side1 + second / side2


def tension(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """Return T(d) and dT/dd for any coordinate d >= 0."""
    inside = m.minimum(d, p.end)
    value, slope = _curves(m, law, p, inside)
    return value + slope * (d - inside), slope


def elongation(m: Arithmetic, law: str, p: Parameters, d: Real) -> tuple[Real, Real]:
    """Return delta(d) and d delta/dd for any coordinate d >= 0."""
    inside = m.minimum(d, p.end)
    value, slope = _elongation(m, law, p, inside)
    return value + slope * (d - inside), slope


def coordinate_of_elongation(m: Arithmetic, law: str, p: Parameters, delta: Real) -> Real:
    """Solve delta(d) = delta for d; 0 for a slack spring (delta < 0)."""
    delta = m.maximum(delta, 0.0)
    if law != "triangle":  # the coordinate is the elongation
        return delta
    high = delta / p.shallowest

    def residual(d: Real) -> tuple[Real, Real, Real]:
        own, own_slope = elongation(m, law, p, d)
        return own - delta, own_slope, 0.0

    return increasing_root(m, residual, high, (0.0 * high, high), ITERATIONS)


def coordinate_of_tension(m: Arithmetic, law: str, p: Parameters, force: Real) -> Real:
    """Solve T(d) = force >= 0 for d."""
    high = force / p.softest

    def residual(d: Real) -> tuple[Real, Real, Real]:
        value, slope = tension(m, law, p, d)
        return value - force, slope, 0.0

    start = high
    if law == "exponential":
        start = m.minimum(high, m.log(1.0 + force / p.a) / p.b)
    return increasing_root(m, residual, start, (0.0 * high, high), ITERATIONS)


def nominal_stiffness(spring: Spring) -> float:
    """Return dT/d delta at 10 mm or the end of the travel, whichever is first, [N/m]."""
    p = SimpleNamespace(**parameters(spring))
    d = np.array(min(p.end, 0.01))
    return float(tension(NUMPY, spring.law, p, d)[1] / elongation(NUMPY, spring.law, p, d)[1])


def energy(law: str, p: Parameters, d: Any) -> Any:
    """Return the integral of T d delta from 0 to d, [J]; NumPy only."""
    inside = np.minimum(d, p.end)
    if law == "exponential":
        stored = p.a * (np.expm1(p.b * inside) / p.b - inside)
    elif law == "polynomial":
        stored = inside**2 * (p.k1 / 2.0 + inside * (p.k2 / 3.0 + inside * p.k3 / 4.0))
    else:
        stored = 0.5 * p.k1 * inside**2
    more, (last, slope) = d - inside, tension(NUMPY, law, p, inside)
    return stored + elongation(NUMPY, law, p, inside)[1] * more * (last + 0.5 * slope * more)
