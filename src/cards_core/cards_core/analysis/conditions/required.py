"""Which wrenches a robot is required to carry: gravity, external wrenches, accelerations.

    -L' f = M a + C + G + w - J' w_e     for all a, w, w_e of their sets

with one velocity (at rest unless told otherwise), accelerations ``|a_i| <= a_max``, joint forces w
in a box or a polytope, and an external wrench w_e (force and moment in world axes, acting on the
robot at the origin of a frame) in a box. Their sum is a convex set R; the muscles carry it iff it
lies within what they can make.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RequiredWrenches
from cards_core.analysis.conditions.options import ConditionError, Options, option
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.typing import Array

METHODS = ("auto", "facets", "vertices")


@dataclass(frozen=True, kw_only=True)
class RequiredOptions(Options):
    """What has to be carried, and how the question is answered."""

    force_lower: tuple[float, ...] = option(
        "N or Nm", "lower ends of extra joint forces, one per velocity or one for all", ()
    )
    force_upper: tuple[float, ...] = option("N or Nm", "their upper ends", ())
    vertices: tuple[tuple[float, ...], ...] = option(
        "N or Nm", "joint forces whose convex hull has to be carried, one tuple per corner", ()
    )
    frame: str | None = option(
        "", "frame or link the external wrench acts on; the operational frame without it", None
    )
    wrench_lower: tuple[float, ...] = option(
        "N, Nm", "lower ends of the external wrench: force, then moment, in world axes", ()
    )
    wrench_upper: tuple[float, ...] = option("N, Nm", "its upper ends", ())
    accelerations: tuple[float, ...] = option(
        "rad/s^2 or m/s^2",
        "greatest |acceleration|, one per velocity or one for all",
        (),
        minimum=0.0,
    )
    velocities: tuple[float, ...] = option(
        "rad/s or m/s", "qd, one per velocity or one for all; at rest without", ()
    )
    characteristic_length: float | None = option(
        "m", "divides moments, so that the margin is a force", None, above=0.0
    )
    method: str = option(
        "",
        "facets: the margin; vertices: each corner; auto: facets unless there are too many",
        "auto",
        choices=METHODS,
    )
    max_facets: int = option("", "most combinations of nv - 1 muscles", 1_000_000, minimum=1)
    max_vertices: int = option("", "most vertices of the required wrenches", 4096, minimum=1)
    tolerance: float = option(
        "", "rounding granted, relative to the largest wrench involved", 1e-9, above=0.0
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
