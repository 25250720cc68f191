"""Wrench feasibility: can the muscles carry all required wrenches within their limits?

    -L' f = M a + C + G + w - J' w_e     for all a, w, w_e of their sets

with one velocity (at rest unless told otherwise), accelerations ``|a_i| <= a_max``, joint forces w
in a box or a polytope, and an external wrench w_e (force and moment in world axes, acting on the
robot at the origin of a frame) in a box. Their sum is a convex set R; the muscles carry it iff it
lies within the set W of wrenches that they can make. Static feasibility asks for gravity alone.

Two exact methods. *Facets*: hyperplane shifting over the facets of W, which gives a margin; its
cost grows with the number of combinations of nv - 1 muscles. *Vertices*: W is convex, so it
contains R iff it contains the corners of R; one bounded least-squares problem per corner, at any
number of muscles and any rank of L.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.base import (
    STATUS,
    Column,
    ConditionError,
    Options,
    PointCondition,
    Results,
    option,
    rank_option,
)
from cards_core.analysis.conditions.kernels import (
    RequiredWrenches,
    capacity,
    distances,
    mark_indefinite,
)
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.errors import UnknownNameError
from cards_core.typing import Array

METHODS = ("auto", "facets", "vertices")


@dataclass(frozen=True, kw_only=True)
class RequiredOptions(Options):
    """What has to be carried, and how the question is answered."""

    force_lower: tuple[float, ...] = option(
        (),
        "Lower ends of extra joint forces: one per velocity, or one for all.",
        "N or Nm",
        default_text="0",
    )
    force_upper: tuple[float, ...] = option((), "Their upper ends.", "N or Nm", default_text="0")
    vertices: tuple[tuple[float, ...], ...] = option(
        (),
        "Corners of joint forces whose convex hull has to be carried, one row per corner.",
        "N or Nm",
        kind=tuple,
        default_text="none",
    )
    frame: str | None = option(
        None,
        "Frame or link on whose origin the external wrench acts.",
        kind=str,
        default_text="operational frame",
    )
    wrench_lower: tuple[float, ...] = option(
        (),
        "Lower ends of the external wrench: force, then moment, in world axes.",
        "N, Nm",
        default_text="0",
    )
    wrench_upper: tuple[float, ...] = option((), "Its upper ends.", "N, Nm", default_text="0")
    accelerations: tuple[float, ...] = option(
        (),
        "Largest absolute accelerations: one per velocity, or one for all.",
        "rad/s^2 or m/s^2",
        lower=0.0,
        default_text="0",
    )
    velocities: tuple[float, ...] = option(
        (), "qd: one per velocity, or one for all.", "rad/s or m/s", default_text="0"
    )
    characteristic_length: float | None = option(
        None, "Divides moments, so that the margin is a force.", "m", above=0.0, kind=float
    )
    method: str = option(
        "auto",
        "Facets: the margin; vertices: each corner; auto: facets unless there are too many.",
        choices=METHODS,
    )
    max_facets: int = option(
        1_000_000, "Most combinations of nv - 1 muscles.", lower=1, default_text="1,000,000"
    )
    max_vertices: int = option(4096, "Most vertices of the required wrenches.", lower=1)
    tolerance: float = option(
        1e-9, "Rounding that is granted, relative to the largest wrench involved.", above=0.0
    )


class RequiredSet:
    """R of a robot for the options; see the module.

    Args:
        dynamics: Of the robot.
        actuation: Whose coordinates count.
        options: See `RequiredOptions`.

    Attributes:
        generators: Number of segments that R is the sum of.
        vertices: Number of points whose hull is added.
        velocity: qd, shape (nv,).
        needs_inertia: Whether M counts.

    Raises:
        ConditionError: The numbers do not fit the robot; the message names the option.
        UnknownNameError: There is no frame of this name.
    """

    def __init__(self, dynamics: Dynamics, actuation: Actuation, options: RequiredOptions) -> None:
        self._dynamics = dynamics
        self._actuation = actuation
        names = dynamics.tree.velocity_names
        low = _per_name(options.force_lower, names, "force_lower")
        high = _per_name(options.force_upper, names, "force_upper")
        self._centre, self._half = _box(low, high, "force")
        low = _per_name(options.wrench_lower, _WRENCH, "wrench_lower")
        high = _per_name(options.wrench_upper, _WRENCH, "wrench_upper")
        self._wrench, self._wrench_half = _box(low, high, "wrench")
        self._accelerations = _per_name(options.accelerations, names, "accelerations")
        self.velocity = _per_name(options.velocities, names, "velocities")
        for corner in options.vertices:
            if len(corner) != len(names):
                raise ConditionError(
                    f"option 'vertices' has a corner of {len(corner)} numbers, expected "
                    f"{len(names)}: {', '.join(names)}"
                )
        self._corners = np.array(options.vertices).reshape(1, -1, len(names))
        self._frame: str | None = None
        if self._wrench.any() or self._wrench_half.any():
            self._frame = options.frame or dynamics.robot.operational_frame
            if self._frame is None:
                raise ConditionError(
                    "an external wrench needs option 'frame': the robot has no operational frame"
                )
            dynamics.tree.locate(self._frame)
        self.needs_inertia = bool(self._accelerations.any())
        counts = (self._half, self._wrench_half, self._accelerations)
        self.generators = sum(int(np.count_nonzero(values)) for values in counts)
        self.vertices = len(options.vertices)

    def at(self, q: Array, state: BatchState) -> RequiredWrenches:
        """Return R at points."""
        kept = self._actuation.coordinates
        load = self._actuation.load(state)
        if self.velocity.any():
            load = load + state.coriolis[:, kept]
        if self._centre.any():
            load = load + self._centre[kept]
        parts: list[Array] = []
        if self._half.any():
            (wide,) = np.nonzero(self._half)
            box = np.diag(self._half)[wide][:, kept]
            parts.append(np.broadcast_to(box, (len(q), *box.shape)))
        if self._frame is not None:
            jacobian = _frame_jacobians(self._dynamics, q, self._frame)[:, :, kept]
            load = load - self._wrench @ jacobian
            (wide,) = np.nonzero(self._wrench_half)
            parts.append(jacobian[:, wide] * self._wrench_half[wide, None])
        if self.needs_inertia:
            (wide,) = np.nonzero(self._accelerations)
            columns = state.mass_matrix[:, wide][:, :, kept]
            parts.append(columns * self._accelerations[wide, None])
        generators = np.concatenate(parts, axis=1) if parts else np.zeros((1, 0, 0))
        return RequiredWrenches(load, generators, self._corners[:, :, kept])


_WRENCH = ("force x", "force y", "force z", "moment x", "moment y", "moment z")


def _frame_jacobians(dynamics: Dynamics, q: Array, frame: str) -> Array:
    """Return J of a frame at points, shape (n, 6, nv)."""
    if isinstance(dynamics, CompiledDynamics):
        return dynamics.batch_operational(q, frame=frame)["jacobian"]
    rest = np.zeros(dynamics.tree.nv)
    return np.array([dynamics.operational(row, rest, frame).jacobian.copy() for row in q])


def _per_name(values: tuple[float, ...], names: tuple[str, ...], option_name: str) -> Array:
    if len(values) <= 1:
        return np.full(len(names), values[0] if values else 0.0)
    if len(values) != len(names):
        raise ConditionError(
            f"option '{option_name}' has {len(values)} numbers, expected one or {len(names)}: "
            f"{', '.join(names)}"
        )
    return np.array(values)


def _box(low: Array, high: Array, name: str) -> tuple[Array, Array]:
    if (low > high).any():
        raise ConditionError(f"option '{name}_lower' is above '{name}_upper' in some entry")
    return 0.5 * (low + high), 0.5 * (high - low)


@dataclass(frozen=True, kw_only=True)
class WrenchFeasibleOptions(RequiredOptions):
    """Options of `WrenchFeasible`."""

    rank_tolerance: float = rank_option(note="; facets only")


@dataclass(frozen=True, kw_only=True)
class CapacityMarginOptions(WrenchFeasibleOptions):
    """Options of `CapacityMargin`."""

    min: float = option(0.0, "Margin from which a point is feasible.", "N or Nm")


@dataclass(frozen=True, kw_only=True)
class DynamicFeasibleOptions(WrenchFeasibleOptions):
    """Options of `DynamicFeasible`."""

    accelerations: tuple[float, ...] = option(
        (1.0,),
        "Largest absolute accelerations: one per velocity, or one for all.",
        "rad/s^2 or m/s^2",
        lower=0.0,
        default_text="1",
    )


class _Contained(PointCondition[WrenchFeasibleOptions]):
    """Base: is R within W?

    Raises:
        ConditionError: Neither method can be afforded, or the one that was asked for cannot.
    """

    def __init__(
        self, dynamics: Dynamics, options: WrenchFeasibleOptions, least: float = 0.0
    ) -> None:
        super().__init__(dynamics, options)
        actuation = self._actuation
        self._least = least
        self._required = RequiredSet(dynamics, actuation, options)
        self._scale = actuation.scale(options.characteristic_length)
        unit = actuation.unit(options.characteristic_length)
        self.method = self._choose_method()
        if self.method == "facets":
            number = Column("margin", "float64", unit, "distance of R from the facets of W")
        else:
            number = Column("distance", "float64", unit, "of the farthest corner of R from W")
        self.columns = (STATUS, number)

    @property
    def facets(self) -> int:
        """Combinations of nv - 1 muscles that facets of W can belong to."""
        return self._actuation.facets

    @property
    def corners(self) -> int:
        """Corners of R that the method *vertices* looks at."""
        return int(max(self._required.vertices, 1) * 2 ** min(self._required.generators, 60))

    def _choose_method(self) -> str:
        options = self.options
        few_facets = self.facets <= options.max_facets
        few_corners = self.corners <= options.max_vertices
        wanted = options.method
        if wanted == "auto":
            wanted = "facets" if few_facets else "vertices"
        if (wanted == "facets" and few_facets) or (wanted == "vertices" and few_corners):
            return wanted
        actuation = self._actuation
        raise ConditionError(
            f"{self.name}: {len(actuation.lower)} muscles at {len(actuation.coordinates)} "
            f"coordinates have {self.facets:,} combinations (option 'max_facets' allows "
            f"{options.max_facets:,}) and the required wrenches {self.corners:,} corners (option "
            f"'max_vertices' allows {options.max_vertices:,}): make the required set simpler, "
            "e.g. a wrench at one frame or a list of 'vertices', use 'static', or raise a limit"
        )

    def _velocities(self, count: int) -> Array | None:
        velocity = self._required.velocity
        return np.tile(velocity, (count, 1)) if velocity.any() else None

    def _answer(self, q: Array, state: BatchState) -> Results:
        options, actuation = self.options, self._actuation
        arguments = (
            actuation.jacobian(state),
            actuation.lower,
            actuation.upper,
            self._required.at(q, state),
            self._scale,
        )
        if self.method == "facets":
            status, numbers = capacity(
                *arguments,
                least=self._least,
                tolerance=options.tolerance,
                rank_tolerance=options.rank_tolerance,
            )
        elif self.method == "vertices":
            status, numbers = distances(*arguments, tolerance=options.tolerance)
        else:
            raise UnknownNameError("method", self.method, ("facets", "vertices"))
        if self._required.needs_inertia:
            mark_indefinite(state.mass_matrix, status)
        return {"status": status, self.columns[1].name: numbers}


class WrenchFeasible(_Contained):
    """Whether gravity and all required wrenches can be carried; see the module.

    With the method *facets* the second column is the margin [Ruiz2015], negative outside; with
    *vertices* it is the distance of the farthest corner, 0 inside.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `WrenchFeasibleOptions`.

    Raises:
        ConditionError: The options do not fit the robot, or both methods cost too much.
        UnknownNameError: There is no frame of this name.
    """

    name = "wrench_feasible"


class DynamicFeasible(_Contained):
    """Whether every acceleration of a set is possible, from rest or at one velocity.

    As `WrenchFeasible`; accelerations are up to 1 in every coordinate unless told otherwise.

    Points whose M is not positive definite are UNPHYSICAL_INERTIA.
    """

    name = "dynamic"


class CapacityMargin(_Contained):
    """The capacity margin [Ruiz2015]: ``min over facets of h_W(c) - h_R(c)``, |c| = 1.

    Without a characteristic length it mixes units: it is the smallest of distances in N and Nm.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `CapacityMarginOptions`.

    Raises:
        ConditionError: The options do not fit the robot, or there are too many facets.
        UnknownNameError: There is no frame of this name.
    """

    name = "capacity_margin"

    def __init__(self, dynamics: Dynamics, options: CapacityMarginOptions) -> None:
        if options.method == "vertices":
            raise ConditionError("capacity_margin: a margin needs the method 'facets'")
        super().__init__(dynamics, replace(options, method="facets"), options.min)


@dataclass(frozen=True, kw_only=True)
class StaticOptions(Options):
    """Options of `Static`."""

    characteristic_length: float | None = option(
        None, "Divides moments, so that the residual is a force.", "m", above=0.0, kind=float
    )
    tolerance: float = option(
        1e-9, "Largest residual that counts as none, relative to the largest term.", above=0.0
    )


class Static(PointCondition[StaticOptions]):
    """Whether there are tensions within the limits with ``-L'f = G`` (and ligaments in G).

    The residual is ``min |S (-L'f - G)|``, the distance of G from what the muscles can make, by
    bounded least squares [Stark1995]; S divides moments by the characteristic length.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: See `StaticOptions`.
    """

    name = "static"

    def __init__(self, dynamics: Dynamics, options: StaticOptions) -> None:
        super().__init__(dynamics, options)
        unit = self._actuation.unit(options.characteristic_length)
        self.columns = (STATUS, Column("residual", "float64", unit, "smallest |-L'f - G|"))
        self._scale = self._actuation.scale(options.characteristic_length)

    def _answer(self, q: Array, state: BatchState) -> Results:
        actuation = self._actuation
        status, residual = distances(
            actuation.jacobian(state),
            actuation.lower,
            actuation.upper,
            RequiredWrenches(actuation.load(state)),
            self._scale,
            tolerance=self.options.tolerance,
        )
        return {"status": status, "residual": residual}
