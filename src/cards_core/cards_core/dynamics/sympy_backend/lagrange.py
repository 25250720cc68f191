"""Equations of motion from energies: M, C, G and the Christoffel symbols.

    T = 1/2 sum m |v|^2 + w' I w,   U = -sum m g' p,   M = d^2 T / dqd^2,   G_k = X_k U

with v, w by differentiation of the poses. Where all velocities are rates of coordinates,

    C_k = sum_ij Gamma_kij qd_i qd_j,   Gamma_kij = 1/2 (X_j M_ki + X_i M_kj - X_k M_ij)

For the angular velocities of ball joints, which are quasi-velocities, the Koszul formula adds the
structure constants of the rotation group, ``[X_a, X_b] = eps_abc X_c``:

    Gamma_kij += 1/2 ([j, i] . k - [j, k] . i - [i, k] . j),    [a, b] . c = sum_d eps_abd M_dc

Then ``C_k`` is the Boltzmann-Hamel equation, and with the matrix ``C_ki = sum_j Gamma_kij qd_j``
the matrix ``dM/dt - 2 C`` is skew-symmetric for balls too. None of this is what the other backends
do (Newton-Euler, composite bodies), so agreement is a check of both.

Source: [Siciliano2009]_ chapter 7, [Bullo2004]_ chapter 4.
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp
from sympy import LeviCivita

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.kinematics import SymbolicKinematics
from cards_core.typing import Vector3

HALF = sp.Rational(1, 2)


class Lagrange:
    """Equations of motion of a tree.

    Args:
        kinematics: Poses as expressions.
        gravity: In world axes, shape (3,), [m/s^2].
    """

    def __init__(self, kinematics: SymbolicKinematics, gravity: Vector3) -> None:
        self._kinematics = kinematics
        self._nv = kinematics.tree.nv
        self.gravity_vector = self._gravity(gravity)

    def _gravity(self, gravity: Vector3) -> Expr:
        """Gravity as numbers, as one parameter g if it points down, or as three."""
        constants = self._kinematics.constants
        if gravity[0] == 0.0 and gravity[1] == 0.0:
            g = constants.scalar(-float(gravity[2]), "g", "gravity, downwards [m/s^2]")
            return sp.Matrix([0, 0, -g])
        return constants.vector(gravity, "g_", "gravity [m/s^2]")

    @cached_property
    def kinetic_energy(self) -> Expr:
        """T, [J]."""
        qd = sp.Matrix(self._kinematics.qd)
        return (HALF * qd.T * self.mass_matrix * qd)[0, 0] if self._nv else sp.Integer(0)

    @cached_property
    def potential_energy(self) -> Expr:
        """U, [J], zero with all centres of mass at the world's origin."""
        total = sp.Integer(0)
        for body in self._kinematics.bodies:
            total -= body.mass * self.gravity_vector.dot(
                self._kinematics.place(body.node, body.com)
            )
        return self._kinematics.simplify.scalar(total, "U")

    @cached_property
    def mass_matrix(self) -> Expr:
        """M, (nv, nv): the Hessian of T in the velocities, ``sum m J_v' J_v + J_w' I J_w``."""
        k = self._kinematics
        total = sp.zeros(self._nv, self._nv)
        for body in k.bodies:
            linear, angular = k.centre_jacobian(body), k.angular_jacobian(body.node)
            total += body.mass * linear.T * linear + angular.T * body.tensor * angular
        return k.simplify.final(total, "M")

    @cached_property
    def gravity(self) -> Expr:
        """G, (nv, 1)."""
        column = [self._kinematics.derivative(self.potential_energy, k) for k in range(self._nv)]
        return self._kinematics.simplify.final(sp.Matrix(self._nv, 1, column), "G")

    @cached_property
    def christoffel(self) -> list[Expr]:
        """Gamma: for every k the matrix of Gamma_kij, (nv, nv)."""
        k = self._kinematics
        mass, n = self.mass_matrix, self._nv
        slopes = [k.simplify.work(k.derivative(mass, j), f"dM/dq_{j + 1}") for j in range(n)]
        return [
            sp.Matrix(n, n, lambda i, j, row=row: self._gamma(slopes, row, i, j))
            for row in range(n)
        ]

    def _gamma(self, slopes: list[Expr], k: int, i: int, j: int) -> Expr:
        value = slopes[j][k, i] + slopes[i][k, j] - slopes[k][i, j]
        value += self._bracket(j, i, k) - self._bracket(j, k, i) - self._bracket(i, k, j)
        return HALF * value

    def _bracket(self, a: int, b: int, c: int) -> Expr:
        """Inner product of [X_a, X_b] and X_c; zero but for two axes of the same ball."""
        first, second = self._kinematics.ball_of(a), self._kinematics.ball_of(b)
        if first is None or second is None or first[0] != second[0]:
            return sp.Integer(0)
        start = first[0]
        return sum(
            LeviCivita(first[1], second[1], d) * self.mass_matrix[start + d, c] for d in range(3)
        )

    @cached_property
    def coriolis_matrix(self) -> Expr:
        """The matrix of Christoffel symbols with ``C = matrix qd``, (nv, nv)."""
        qd = sp.Matrix(self._kinematics.qd)
        rows = [(gamma * qd).T for gamma in self.christoffel]
        matrix = sp.Matrix.vstack(*rows) if rows else sp.zeros(0, 0)
        return self._kinematics.simplify.work(matrix, "C matrix")

    @cached_property
    def coriolis_coefficients(self) -> list[dict[tuple[int, int], Expr]]:
        """For every row of C the coefficients of ``qd_i qd_j``, i <= j, that are not zero."""
        n = self._nv
        out: list[dict[tuple[int, int], Expr]] = []
        pairs = [(i, j) for i in range(n) for j in range(i, n)]
        for k, gamma in enumerate(self.christoffel):
            column = [gamma[i, j] + (gamma[j, i] if i != j else 0) for i, j in pairs]
            done = self._kinematics.simplify.final(
                sp.Matrix(len(pairs), 1, column), f"row {k + 1} of C"
            )
            out.append({pair: x for pair, x in zip(pairs, done, strict=True) if x != 0})
        return out

    @cached_property
    def coriolis(self) -> Expr:
        """C(q, qd), (nv, 1), sorted by products of velocities."""
        qd = self._kinematics.qd
        rows = [
            sp.Add(*(value * qd[i] * qd[j] for (i, j), value in row.items()))
            for row in self.coriolis_coefficients
        ]
        return sp.Matrix(self._nv, 1, rows)
