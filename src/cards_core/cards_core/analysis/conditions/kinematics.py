"""Conditions of kinematics: what the joint limits and L say, whatever the limits of the tensions.

*Wrench closure*, with the tension factor: can internal tensions be raised at will? *Dexterity*:
how well do muscle rates and joint rates, tensions and wrenches, match? With singular values
``s_1 >= ... >= s_nv`` of L S (S: scale of the coordinates), u the shortest vector with L'u = 0 and
u >= 1, and rho = 1/sqrt(1 + |u|^2):

    condition number         s_1 / s_nv
    manipulability           sqrt(det (L S)'(L S)) = s_1 ... s_nv       [Yoshikawa1985]
    modified tension factor  max of t s_nv / s_1 of L, and of L without one muscle each; t: the
                             tension factor
    unilateral dexterity     sqrt(m + 1) rho s_nv / s_1                 [Kurtz1994]
    force amplification      1 / (s_nv rho)                             [Kurtz1994]

A unit wrench needs tensions of a norm up to 1/s_nv from actuators that push and pull; where they
only pull, an internal load that lifts every tension above zero comes on top, and 1/(s_nv rho)
bounds the norm of both. With m = nv + 1 muscles the last two are those of the source; for more,
u is the internal load of smallest norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cards_core.analysis.conditions.base import (
    STATUS,
    Column,
    Options,
    PointCondition,
    Results,
    option,
    rank_option,
)
from cards_core.analysis.conditions.kernels import (
    Status,
    singular_values,
    tension_factors,
    unilateral_factors,
)
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class JointLimitsOptions(Options):
    """Options of `JointLimits`."""

    min: float = option(
        0.0, "Distance from the nearest limit from which a point is feasible.", "rad or m"
    )


class JointLimits(PointCondition[JointLimitsOptions]):
    """Whether ``lower <= q <= upper``, and the distance from the nearest limit.

    Quaternions have no limits. The margin is infinite where no coordinate has any.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `JointLimitsOptions`.
    """

    name = "joint_limits"
    columns = (
        STATUS,
        Column("limit_margin", "float64", "rad or m", "distance from the nearest limit"),
    )
    least_rows = 0

    def _answer(self, q: Array, state: BatchState) -> Results:
        tree = self._dynamics.tree
        margin = np.minimum(q - tree.lower, tree.upper - q).min(axis=1, initial=np.inf)
        good = margin >= self.options.min
        status = np.where(good, PointStatus.FEASIBLE, PointStatus.INFEASIBLE).astype(np.uint8)
        return {"status": status, "limit_margin": margin}


@dataclass(frozen=True, kw_only=True)
class WrenchClosureOptions(Options):
    """Options of `WrenchClosure`."""

    threshold: float = option(
        1e-10, "Tension factor, of L with rows of norm 1, that counts as zero.", lower=0.0
    )
    rank_tolerance: float = rank_option()


@dataclass(frozen=True, kw_only=True)
class TensionFactorOptions(Options):
    """Options of `TensionFactor`."""

    min: float = option(1e-10, "Tension factor from which a point counts as feasible.", lower=0.0)
    rank_tolerance: float = rank_option()


class WrenchClosure(PointCondition[WrenchClosureOptions]):
    """Whether every wrench can be made by tensions f >= 0 without upper limit.

    ``rank L = nv`` and there is f > 0 with ``L'f = 0`` [Roberts1998]. Coordinates of joints that
    have motors of their own are left out.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `WrenchClosureOptions`.
    """

    name = "wrench_closure"
    columns = (STATUS,)
    motors = False

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, _, _ = tension_factors(
            self._actuation.jacobian(state),
            normalise=True,
            threshold=self.options.threshold,
            rank_tolerance=self.options.rank_tolerance,
        )
        return {"status": status}


class TensionFactor(PointCondition[TensionFactorOptions]):
    """The tension factor ``max of min f / max f`` over all f with L'f = 0, in 0..1 [Pham2009].

    1: all tensions can be equal. 0: no wrench closure.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `TensionFactorOptions`.
    """

    name = "tension_factor"
    columns = (STATUS, Column("tension_factor", "float64", "", "largest min f / max f"))
    motors = False

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, least, _ = tension_factors(
            self._actuation.jacobian(state),
            threshold=self.options.min,
            rank_tolerance=self.options.rank_tolerance,
        )
        return {"status": status, "tension_factor": least}


@dataclass(frozen=True, kw_only=True)
class _ScaledOptions(Options):
    characteristic_length: float | None = option(
        None, "Divides moments, so that all columns of L are alike.", "m", above=0.0, kind=float
    )
    rank_tolerance: float = rank_option()


Scaled = TypeVar("Scaled", bound=_ScaledOptions)


@dataclass(frozen=True, kw_only=True)
class ConditionNumberOptions(_ScaledOptions):
    """Options of `ConditionNumber`."""

    max: float | None = option(
        None, "Condition number up to which a point is feasible.", kind=float
    )


@dataclass(frozen=True, kw_only=True)
class ModifiedTensionFactorOptions(_ScaledOptions):
    """Options of `ModifiedTensionFactor`."""

    min: float = option(
        1e-10, "Modified tension factor from which a point is feasible.", lower=0.0
    )


@dataclass(frozen=True, kw_only=True)
class ManipulabilityOptions(_ScaledOptions):
    """Options of `Manipulability`."""

    min: float | None = option(None, "Manipulability from which a point is feasible.", kind=float)


@dataclass(frozen=True, kw_only=True)
class UnilateralDexterityOptions(_ScaledOptions):
    """Options of `UnilateralDexterity`."""

    min: float | None = option(None, "Dexterity from which a point is feasible.", kind=float)


@dataclass(frozen=True, kw_only=True)
class ForceAmplificationOptions(_ScaledOptions):
    """Options of `ForceAmplification`."""

    max: float | None = option(None, "Amplification up to which a point is feasible.", kind=float)


class _Singular(PointCondition[Scaled]):
    """Base: singular values of L S."""

    motors = False

    def __init__(self, dynamics: Dynamics, options: Scaled) -> None:
        super().__init__(dynamics, options)
        self._rank_tolerance = options.rank_tolerance
        self._scale = self._actuation.scale(options.characteristic_length)

    def _sigma(self, state: BatchState) -> tuple[Status, Array]:
        return singular_values(
            self._actuation.jacobian(state), self._scale, rank_tolerance=self._rank_tolerance
        )

    def _result(self, status: Status, values: Array) -> Results:
        """Return the answer; beyond the option ``min`` or ``max`` a point is INFEASIBLE."""
        least, most = getattr(self.options, "min", None), getattr(self.options, "max", None)
        good = (values >= (0.0 if least is None else least)) & (
            values <= (np.inf if most is None else most)
        )
        status[(status == PointStatus.FEASIBLE) & ~good] = PointStatus.INFEASIBLE
        return {"status": status, self.columns[1].name: values}


class ConditionNumber(_Singular[ConditionNumberOptions]):
    """Condition number of L, 1 or more; see the module.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `ConditionNumberOptions`.
    """

    name = "condition_number"
    columns = (STATUS, Column("condition_number", "float64", "", "of L, its columns scaled"))

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, sigma = self._sigma(state)
        return self._result(status, sigma[:, 0] / sigma[:, -1])


class ModifiedTensionFactor(_Singular[ModifiedTensionFactorOptions]):
    """Tension factor over condition number, the better one with or without a muscle, in 0..1.

    CASPR's variant of the tension factor: it is near 1 only where internal loads are even and all
    directions alike, and a muscle that is in the way does not count. CASPR takes the load of least
    sum that its solver returns; here it is the largest factor, which is unique.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `ModifiedTensionFactorOptions`.
    """

    name = "modified_tension_factor"
    columns = (
        STATUS,
        Column("modified_tension_factor", "float64", "", "tension factor over condition number"),
    )

    def _answer(self, q: Array, state: BatchState) -> Results:
        whole = self._actuation.jacobian(state)
        status, best = self._rated(whole)
        if whole.shape[1] > whole.shape[2] + 1:
            for row in range(whole.shape[1]):
                _, rated = self._rated(np.delete(whole, row, axis=1))
                best = np.fmax(best, rated)
        # where all muscles leave no closure, some of them do not either
        return self._result(status, best)

    def _rated(self, jacobian: Array) -> tuple[Status, Array]:
        status, factor, _ = tension_factors(jacobian, rank_tolerance=self._rank_tolerance)
        _, sigma = singular_values(jacobian, self._scale, rank_tolerance=self._rank_tolerance)
        answered = np.isin(status, (PointStatus.FEASIBLE, PointStatus.INFEASIBLE))
        status[answered] = PointStatus.FEASIBLE
        with np.errstate(divide="ignore", invalid="ignore"):
            return status, np.where(answered, factor * sigma[:, -1] / sigma[:, 0], np.nan)


class Manipulability(_Singular[ManipulabilityOptions]):
    """Manipulability, the product of the singular values of L; see the module.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `ManipulabilityOptions`.
    """

    name = "manipulability"
    columns = (STATUS, Column("manipulability", "float64", "", "sqrt(det L'L), columns scaled"))

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, sigma = self._sigma(state)
        return self._result(status, sigma.prod(axis=1))


class _Unilateral(_Singular[Scaled]):
    def _both(self, state: BatchState) -> tuple[Status, Array, Array]:
        jacobian = self._actuation.jacobian(state)
        status, rho = unilateral_factors(jacobian, rank_tolerance=self._rank_tolerance)
        _, sigma = self._sigma(state)
        return status, rho, sigma


class UnilateralDexterity(_Unilateral[UnilateralDexterityOptions]):
    """Dexterity of actuators that only pull: 0 (no wrench closure) to 1; see the module.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `UnilateralDexterityOptions`.
    """

    name = "unilateral_dexterity"
    columns = (STATUS, Column("unilateral_dexterity", "float64", "", "0..1"))

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, rho, sigma = self._both(state)
        values = np.sqrt(len(self._actuation.lower) + 1.0) * rho * sigma[:, -1] / sigma[:, 0]
        return self._result(status, values)


class ForceAmplification(_Unilateral[ForceAmplificationOptions]):
    """Bound of the norm of the tensions per unit wrench; see the module.

    Infinite without wrench closure, where the status is INFEASIBLE.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `ForceAmplificationOptions`.
    """

    name = "force_amplification"
    columns = (
        STATUS,
        Column("force_amplification", "float64", "", "norm of tensions per unit wrench"),
    )

    def _answer(self, q: Array, state: BatchState) -> Results:
        status, rho, sigma = self._both(state)
        values = np.full(len(rho), np.inf)
        np.divide(1.0, sigma[:, -1] * rho, out=values, where=rho > 0.0)
        return self._result(status, values)
