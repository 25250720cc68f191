"""Numbers from the expressions: as a backend with NumPy, and with as many digits as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from cards_core.dynamics.numeric import NumericOperationalState, NumericState
from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.sympy_backend.options import SymbolicOptions
from cards_core.dynamics.sympy_backend.quantities import select
from cards_core.dynamics.sympy_backend.subexpressions import for_lambdify, with_floats
from cards_core.robot.model import Robot
from cards_core.typing import Array

_Groups = Callable[[SymbolicModel], Sequence[tuple[Expr, tuple[int, ...]]]]
"""Says which matrices a function has, with the shapes of the arrays that they become."""


class SympyDynamics:
    """The symbolic model as a backend; see `cards_core.dynamics.interface.Dynamics`.

    Every function is derived when it is first called, which may take seconds. Where a straight
    piece has no length its direction does not exist: l is right, L is NaN.

    Args:
        robot: The description.
        options: How the expressions are made.
        digits: Calculate with this many digits and return arrays of mpmath numbers
            (``dtype=object``) instead of floats. With ``constants="binary"``, which is then the
            default, the robot's numbers are exactly those other backends calculate with.

    Raises:
        CardsError: The robot is too large, or a muscle wraps.
    """

    def __init__(
        self, robot: Robot, options: SymbolicOptions | None = None, *, digits: int | None = None
    ) -> None:
        if options is None:
            options = SymbolicOptions() if digits is None else SymbolicOptions(constants="binary")
        self.model = SymbolicModel(robot, options)
        self.robot = robot
        self.tree = self.model.tree
        self._digits = digits
        self._functions: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {}

    def update(self, q: Array, qd: Array) -> NumericState:
        """Compute M, C, G, l, L; see `Dynamics.update`."""
        return NumericState(*self._call("update", _update, q, qd))

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """Return dL/dt qd, shape (m,)."""
        return self._call("bias", _bias, q, qd)[0]

    def jacobian_gradient(self, q: Array) -> Array:
        """Return dL/dq, shape (m, nv, nv): [i, j, k] = d L_ij / d q_k (tangent)."""
        nv = self.tree.nv
        rows = self._call("gradient", _gradient, q, np.zeros(nv))
        return np.array(rows).reshape(len(rows), nv, nv)

    def operational(
        self, q: Array, qd: Array, frame: str | None = None
    ) -> NumericOperationalState:
        """Compute pose, Jacobian and bias of a frame; see `Dynamics.operational`."""

        def expressions(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
            found = model.frame(frame)
            return [
                (found.position, (3,)),
                (found.rotation, (3, 3)),
                (found.jacobian, (6, self.tree.nv)),
                (found.bias, (6,)),
            ]

        return NumericOperationalState(*self._call(f"frame {frame}", expressions, q, qd))

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4)."""
        poses = self._call("poses", _poses, q, np.zeros(self.tree.nv))
        return np.array(poses).reshape(len(poses), 4, 4)

    def evaluate(self, names: str | Iterable[str], q: Array, qd: Array) -> dict[str, Array]:
        """Return quantities by name; those of a frame are of the operational one.

        Args:
            names: Of `QUANTITIES`, e.g. ``"W,V,M_b"`` or a sequence of names.
            q: Coordinates, shape (nq,).
            qd: Velocities, shape (nv,).

        Raises:
            UnknownNameError: No quantity has this name.
        """
        if isinstance(names, str):
            names = [part.strip() for part in names.split(",")]
        chosen = select(self.model, names)

        def expressions(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
            return [
                (sp.Matrix([list(matrix) for matrix in item.value(model)]), item.shape(model))
                for item in chosen
            ]

        key = ",".join(item.name for item in chosen)
        values = self._call(key, expressions, q, qd)
        return {item.name: value for item, value in zip(chosen, values, strict=True)}

    def _call(self, name: str, expressions: _Groups, q: Array, qd: Array) -> list[Array]:
        """Evaluate matrices; each comes back in the shape that is wanted."""
        if name not in self._functions:
            self._functions[name] = self._function(expressions(self.model))
        function, shapes = self._functions[name]
        ignore = np.errstate(divide="ignore", invalid="ignore")
        with mpmath.workdps(self._digits or 15), ignore:
            flat = function(self._values(q, quaternions=True), self._values(qd))
            kind = float if self._digits is None else object
            values = np.array(flat, dtype=kind)
        bounds = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        return [
            values[a:b].reshape(shape)
            for a, b, shape in zip(bounds[:-1], bounds[1:], shapes, strict=True)
        ]

    def _function(
        self, wanted: Sequence[tuple[Expr, tuple[int, ...]]]
    ) -> tuple[Callable[..., Any], list[tuple[int, ...]]]:
        flat = [entry.xreplace(self.model.parameters) for matrix, _ in wanted for entry in matrix]
        modules = "mpmath"
        if self._digits is None:
            modules, memo = "numpy", dict[Expr, Expr]()
            flat = [with_floats(entry, memo) for entry in flat]
        arguments = [list(self.model.q), list(self.model.qd)]
        function = sp.lambdify(arguments, flat, modules=modules, cse=for_lambdify)
        return function, [shape for _, shape in wanted]

    def _values(self, values: Array, *, quaternions: bool = False) -> list[Any]:
        """Floats, or the same exactly with many digits and quaternions of unit length."""
        if self._digits is None:
            return list(np.asarray(values, dtype=float).tolist())
        out = [mpmath.mpf(float(x)) for x in values]
        for node in self.tree.nodes:
            if quaternions and node.kind == "ball":
                part = out[node.q : node.q + 4]
                norm = mpmath.sqrt(sum(x * x for x in part))
                out[node.q : node.q + 4] = [x / norm for x in part]
        return out


def _update(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
    nv, m = model.tree.nv, len(model.muscle_names)
    return [
        (model.mass_matrix, (nv, nv)),
        (model.coriolis, (nv,)),
        (model.gravity, (nv,)),
        (model.muscle_lengths, (m,)),
        (model.muscle_jacobian, (m, nv)),
    ]


def _bias(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
    return [(model.muscle_bias, (len(model.muscle_names),))]


def _gradient(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
    nv = model.tree.nv
    return [(matrix, (nv, nv)) for matrix in model.jacobian_gradient]


def _poses(model: SymbolicModel) -> list[tuple[Expr, tuple[int, ...]]]:
    return [(matrix, (4, 4)) for matrix in model.link_poses]


def in_many_digits(robot: Robot, digits: int = 50, **changes: Any) -> SympyDynamics:
    """Return the model with floats taken as they are and results of ``digits`` digits.

    Its difference to another backend is what rounding cost that one.

    Args:
        robot: The description.
        digits: Decimal digits of every operation.
        changes: Fields of `SymbolicOptions`.
    """
    options = replace(SymbolicOptions(constants="binary"), **changes)
    return SympyDynamics(robot, options, digits=digits)
