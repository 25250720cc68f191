"""Tension distribution: tensions within limits that make a joint force, by several methods."""

from cards_core.analysis.tension_distribution.base import TensionDistribution, TensionLimitError
from cards_core.analysis.tension_distribution.closed_form import (
    ClosedForm,
    ImprovedClosedForm,
    Puncture,
)
from cards_core.analysis.tension_distribution.polytope import (
    AnalyticCentre,
    Barycentre,
    ChebyshevCentre,
    RedundancyError,
)
from cards_core.analysis.tension_distribution.programs import (
    LeastInteraction,
    LeastMaximum,
    LeastNorm,
    LeastSum,
    OptimallySafe,
)
from cards_core.checks import check_choice
from cards_core.typing import Array

METHODS: dict[str, type[TensionDistribution]] = {
    method.name: method
    for method in (
        LeastNorm,
        LeastSum,
        LeastMaximum,
        ClosedForm,
        ImprovedClosedForm,
        Puncture,
        Barycentre,
        AnalyticCentre,
        ChebyshevCentre,
        OptimallySafe,
        LeastInteraction,
    )
}
"""Every method by name; the first is the default."""


def make_tension_distribution(
    name: str, tension_min: Array, tension_max: Array, size: int
) -> TensionDistribution:
    """Return a method by name.

    Args:
        name: Of `METHODS`.
        tension_min: Lower limits, shape (m,), [N].
        tension_max: Upper limits, shape (m,), [N].
        size: Number of joint forces nv.

    Raises:
        UnknownNameError: There is no such method.
        TensionLimitError: Limits that the method cannot work with.
    """
    check_choice(name, "tension distribution", METHODS)
    return METHODS[name](tension_min, tension_max, size)


__all__ = [
    "METHODS",
    "AnalyticCentre",
    "Barycentre",
    "ChebyshevCentre",
    "ClosedForm",
    "ImprovedClosedForm",
    "LeastInteraction",
    "LeastMaximum",
    "LeastNorm",
    "LeastSum",
    "OptimallySafe",
    "Puncture",
    "RedundancyError",
    "TensionDistribution",
    "TensionLimitError",
    "make_tension_distribution",
]
