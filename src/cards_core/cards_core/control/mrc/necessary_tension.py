"""The tensions that a posture needs, and no more [Kawaharazuka2025]_.

    minimise  w1 |x|^2 + w2 |G' x + tau|^2      subject to  T_min <= x <= T_max

G = dl/dq is only an estimate, so the torque is asked for with a weight, not as an equation. In N,
Nm and m, with w1 = 1e-5 and w2 = 1, one muscle with a moment arm of 40 mm gives 99.4 % of what it
should. A robot without muscles for the torque gets the nearest there is.
"""

from __future__ import annotations

import numpy as np

from cards_core.checks import finite_number
from cards_core.control.interface import is_finite
from cards_core.errors import ParameterError, ShapeError
from cards_core.optimize.qp import QP_INFINITY, QpMethod
from cards_core.optimize.qp_backends import make_qp_solver
from cards_core.typing import Array

TENSION_WEIGHT = 1e-5
"""Published w1, [1/N^2]."""

TORQUE_WEIGHT = 1.0
"""Published w2, [1/(Nm)^2]; also for rows in N."""

AT_BOUND = 1e-9
"""Tensions this near to a limit are at it, [N]: rounding must not tell muscles apart that are all
needed no more than at all."""


class NecessaryTension:
    """Solves the program of the module for one robot after the other pose.

    Args:
        minimum: T_min, shape (m,), [N].
        maximum: T_max, shape (m,), [N], above T_min; infinite: none, as published.
        coordinates: nv, rows of G'.
        tension_weight: w1, [1/N^2].

    Attributes:
        solver: Of the program.
        tensions: The last solution, shape (m,), [N]; overwritten by the next.
        missing: ``-tau - G' x``: torque that it does not give, shape (nv,), [Nm] or [N].
        failed: Whether the last program had no solver that found its solution; the tensions are
            then the best of another method, within the limits.

    Raises:
        ParameterError: A weight or a limit makes no sense.
    """

    def __init__(
        self,
        minimum: Array,
        maximum: Array,
        coordinates: int,
        *,
        tension_weight: float = TENSION_WEIGHT,
    ) -> None:
        finite_number(tension_weight, "tension_weight", above=0.0, error=ParameterError)
        if minimum.shape != maximum.shape or not np.all(np.isfinite(minimum)):
            raise ParameterError("expected one finite least and one largest tension per muscle")
        if not np.all(minimum < maximum):
            bad = int(np.argmin(minimum < maximum))
            raise ParameterError(
                f"the minimum tension of muscle {bad} is {minimum[bad]:g} N, not below its "
                "largest "
                f"{maximum[bad]:g} N"
            )
        # only the ratio of the weights counts; the solver's tolerances are those of H = E
        weights = np.full(coordinates, TORQUE_WEIGHT / tension_weight)
        self.solver = make_qp_solver("daqp", minimum.size, weights)
        self.solver.lower_bounds[:] = minimum
        self.solver.upper_bounds[:] = np.minimum(maximum, QP_INFINITY)
        self.tensions: Array = minimum.copy()
        self.missing: Array = np.zeros(coordinates)
        self.failed = False

    def solve(self, jacobian: Array, torque: Array) -> Array:
        """Return the necessary tensions, shape (m,), [N].

        Args:
            jacobian: G = dl/dq, shape (m, nv), [m/rad] or [1].
            torque: tau = -G' x that the muscles should give, shape (nv,), [Nm] or [N].

        Raises:
            ShapeError: A number is not finite, or there are not as many as expected.
        """
        solver = self.solver
        if jacobian.T.shape != solver.matrix.shape or torque.shape != self.missing.shape:
            raise ShapeError(
                f"dl/dq has shape {jacobian.shape} and the torque {torque.shape}, expected "
                f"{solver.matrix.T.shape} and {self.missing.shape}"
            )
        if not is_finite(jacobian.ravel(), torque):
            raise ShapeError("dl/dq or the torque is not finite")
        solver.matrix[:] = jacobian.T
        np.negative(torque, out=solver.row_lower)
        np.negative(torque, out=solver.row_upper)
        result = solver.solve()
        self.failed = result.method is not QpMethod.SOLVER
        x, low, up = result.x, solver.lower_bounds, solver.upper_bounds
        self.tensions[:] = np.where(x <= low + AT_BOUND, low, np.where(x >= up - AT_BOUND, up, x))
        np.negative(result.residual, out=self.missing)
        return self.tensions
