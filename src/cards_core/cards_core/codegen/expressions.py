"""Small building blocks of CasADi expressions."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from cards_core.codegen.kernel import Expr

LENGTH_FLOOR = 1e-12
"""Segments shorter than this [m] have no direction: they add neither force nor Jacobian."""


def direction(delta: Expr) -> tuple[Expr, Expr]:
    """Length and unit vector of a segment; safe, with zero derivative, at zero length."""
    square = ca.dot(delta, delta)
    length = ca.sqrt(ca.fmax(square, LENGTH_FLOOR**2))
    # divided by infinity a vanishing segment has no direction, and none that changes
    return length, delta / ca.if_else(square > LENGTH_FLOOR**2, length, ca.inf)


def constant(values: Any) -> Expr:
    """Constants as SX; structural zeros let CasADi drop the products."""
    return ca.SX(ca.DM(np.asarray(values, dtype=float)))
