"""Equations of the bodies in their own axes, before they are projected on the joints.

With x' = (v, w) per body stacked, v of the centre of mass and w, both in node axes:

    x' = W qd,   M = W' M_b,   C = W' C_b,   G = -W' G_b,   L = V W

    M_b = blkdiag(m E, I) W,   C_b = blkdiag(m E, I) dW/dt qd + (w x m v, w x I w),
    G_b = (R' m g, 0)

A straight piece of a muscle from A to B with the unit vector u gives its row of V, on the body of
B, ``(u, (B - G) x u)`` in node axes, and the same with the opposite sign on the body of A.

Source: [Lau2016]_.
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.kinematics import SymbolicKinematics
from cards_core.dynamics.sympy_backend.lagrange import Lagrange
from cards_core.dynamics.sympy_backend.muscles import MusclePaths


class BodySpace:
    """W, V, M_b, C_b and G_b of a tree; p bodies in the order of nodes that carry links.

    Args:
        kinematics: Poses as expressions.
        lagrange: For gravity.
        muscles: The muscles' straight pieces.
    """

    def __init__(
        self, kinematics: SymbolicKinematics, lagrange: Lagrange, muscles: MusclePaths
    ) -> None:
        self._kinematics = kinematics
        self._lagrange = lagrange
        self._muscles = muscles

    @cached_property
    def jacobian(self) -> Expr:
        """W, (6 p, nv)."""
        k = self._kinematics
        blocks = []
        for body in k.bodies:
            rotation, name = k.rotation[body.node], f"W of body {body.number}"
            linear = rotation.T * k.centre_jacobian(body)
            blocks += [k.simplify.final(linear, name), k.angular_jacobian(body.node)]
        return _stacked(blocks, k.tree.nv)

    @cached_property
    def _inertia(self) -> Expr:
        blocks = []
        for body in self._kinematics.bodies:
            blocks += [body.mass * sp.eye(3), body.tensor]
        return sp.diag(*blocks) if blocks else sp.zeros(0, 0)

    @cached_property
    def mass_matrix(self) -> Expr:
        """M_b, (6 p, nv)."""
        return self._kinematics.simplify.final(self._inertia * self.jacobian, "M_b")

    @cached_property
    def coriolis(self) -> Expr:
        """C_b, (6 p, 1)."""
        k = self._kinematics
        qd = sp.Matrix(k.qd)
        twist = self.jacobian * qd
        total = self._inertia * (k.rate(self.jacobian) * qd)
        for row, body in enumerate(k.bodies):
            v, w = twist[6 * row : 6 * row + 3, 0], twist[6 * row + 3 : 6 * row + 6, 0]
            total[6 * row : 6 * row + 3, 0] += body.mass * w.cross(v)
            total[6 * row + 3 : 6 * row + 6, 0] += w.cross(body.tensor * w)
        return k.simplify.final(total, "C_b")

    @cached_property
    def gravity(self) -> Expr:
        """G_b, (6 p, 1)."""
        k = self._kinematics
        blocks = []
        for body in k.bodies:
            weight = body.mass * k.rotation[body.node].T * self._lagrange.gravity_vector
            blocks += [weight, sp.zeros(3, 1)]
        return k.simplify.final(_stacked(blocks, 1), "G_b")

    @cached_property
    def muscle_jacobian(self) -> Expr:
        """V, (m, 6 p): muscle lengths' rates per body twist."""
        k = self._kinematics
        row_of = {body.node: 6 * i for i, body in enumerate(k.bodies)}
        out = sp.zeros(self._muscles.count, 6 * len(k.bodies))
        for piece in self._muscles.pieces:
            for sign, end in ((-1, piece.start), (1, piece.end)):
                if end.node not in row_of or piece.rigid:
                    continue
                body = k.bodies[row_of[end.node] // 6]
                u = k.rotation[body.node].T * piece.delta
                u = k.simplify.work(sign * u, "V")
                moment = k.simplify.work((end.local - body.com).cross(u), "V")
                first = row_of[end.node]
                row = u.col_join(moment).T / piece.length
                out[piece.muscle, first : first + 6] += row
        return out


def _stacked(blocks: list[Expr], columns: int) -> Expr:
    return sp.Matrix.vstack(*blocks) if blocks else sp.zeros(0, columns)
