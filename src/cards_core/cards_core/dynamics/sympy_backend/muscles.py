"""Lengths of straight muscles and their derivatives as SymPy expressions.

A muscle through via points is a sum of distances, ``l = sum sqrt(d2)`` with d2 = |B - A|^2:

    L_j = sum  N_j / sqrt(d2),                 N_j = 1/2 X_j d2
    X_k L_j = sum  X_k N_j / sqrt(d2) - N_j N_k / sqrt(d2)^3

which is the differentiation of the norm, once and twice, with each numerator simplified by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.kinematics import SymbolicKinematics
from cards_core.dynamics.sympy_backend.options import Muscles
from cards_core.errors import CardsError
from cards_core.paths.layout import tree_layout
from cards_core.robot.elements import Muscle, Pulley
from cards_core.robot.model import WORLD_NODE


@dataclass(frozen=True, eq=False)
class End:
    """End of a straight piece: node (`WORLD_NODE` for the world) and position in its frame."""

    node: int
    local: Expr


@dataclass(frozen=True, eq=False)
class Piece:
    """A straight piece of a muscle.

    Attributes:
        muscle: Row of the muscle.
        start, end: Its ends A and B.
        delta: B - A in world axes.
        square: |B - A|^2.
        length: Its root.
        rigid: Both ends are on one node: the length is constant.
    """

    muscle: int
    start: End
    end: End
    delta: Expr
    square: Expr
    length: Expr
    rigid: bool


class MusclePaths:
    """Muscle lengths of a tree.

    Args:
        kinematics: Poses as expressions.
        which: See `SymbolicOptions.muscles`.

    Attributes:
        names: Of the muscles that have a row.

    Raises:
        CardsError: A muscle wraps, and ``which`` is ``all``.
    """

    def __init__(self, kinematics: SymbolicKinematics, which: Muscles) -> None:
        self._kinematics = kinematics
        tree = kinematics.tree
        self._layout = tree_layout(tree)
        wrapped = {contact.muscle: contact for contact in self._layout.contacts}
        muscles = tree.robot.muscles
        if which == "all" and wrapped:
            first = min(wrapped)
            raise _wraps(muscles[first], wrapped[first].element, len(wrapped))
        kept = [i for i in range(len(muscles)) if which != "none" and i not in wrapped]
        self._row = {muscle: row for row, muscle in enumerate(kept)}
        self.names = tuple(muscles[i].name for i in kept)

    @property
    def count(self) -> int:
        """Number of muscles m."""
        return len(self.names)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All straight pieces."""
        layout, ends = self._layout, {}
        out = []
        for muscle, first in zip(layout.piece_muscle, layout.start, strict=True):
            if muscle not in self._row:
                continue
            for k in (first, first + 1):
                if k not in ends:
                    ends[k] = self._end(int(muscle), int(k))
            out.append(self._piece(self._row[int(muscle)], ends[first], ends[first + 1]))
        return tuple(out)

    def _end(self, muscle: int, k: int) -> End:
        layout = self._layout
        node = int(layout.point_frame[k])
        number = k - int(layout.bounds[muscle]) + 1
        name = self._kinematics.tree.robot.muscles[muscle].name
        local = self._kinematics.constants.vector(
            layout.point_position[k],
            f"r_{self._row[muscle] + 1}_{number}",
            f"via point {number} of muscle {name} [m]",
        )
        return End(WORLD_NODE if node == layout.frames else node, local)

    def _piece(self, row: int, start: End, end: End) -> Piece:
        k = self._kinematics
        name = self.names[row]
        rigid = start.node == end.node
        if rigid:
            delta = end.local - start.local
        else:
            delta = k.simplify.work(
                k.place(end.node, end.local) - k.place(start.node, start.local),
                f"path of {name}",
            )
        square = k.simplify.scalar(delta.dot(delta), f"length of {name}")
        return Piece(row, start, end, delta, square, sp.sqrt(square), rigid)

    @cached_property
    def lengths(self) -> Expr:
        """l, (m, 1)."""
        out = sp.zeros(self.count, 1)
        for piece in self.pieces:
            out[piece.muscle, 0] += piece.length
        return out

    @cached_property
    def _numerators(self) -> list[Expr]:
        """N of every piece, (1, nv)."""
        k = self._kinematics
        out = []
        for piece in self.pieces:
            row = [k.derivative(piece.square, j) / 2 for j in range(k.tree.nv)]
            name = f"row of L of {self.names[piece.muscle]}"
            out.append(k.simplify.final(sp.Matrix(1, k.tree.nv, row), name))
        return out

    @cached_property
    def jacobian(self) -> Expr:
        """L = dl/dq, (m, nv)."""
        out = sp.zeros(self.count, self._kinematics.tree.nv)
        for piece, numerator in zip(self.pieces, self._numerators, strict=True):
            if not piece.rigid:
                out[piece.muscle, :] += numerator / piece.length
        return out

    @cached_property
    def gradient(self) -> list[Expr]:
        """dL/dq: for every muscle the matrix of X_k L_j, row j and column k, (nv, nv)."""
        k = self._kinematics
        n = k.tree.nv
        out = [sp.zeros(n, n) for _ in range(self.count)]
        for piece, numerator in zip(self.pieces, self._numerators, strict=True):
            if piece.rigid:
                continue
            name = f"dL/dq of {self.names[piece.muscle]}"
            columns = [k.derivative(numerator, j).T for j in range(n)]
            second = k.simplify.final(sp.Matrix.hstack(*columns), name)
            out[piece.muscle] += second / piece.length - numerator.T * numerator / piece.length**3
        return out

    @cached_property
    def bias(self) -> Expr:
        """dL/dt qd, (m, 1)."""
        # not as a product of matrices: that expands what is long here
        qd = self._kinematics.qd
        pairs = [(j, k) for j in range(len(qd)) for k in range(len(qd))]
        rows = [sp.Add(*(qd[j] * qd[k] * item[j, k] for j, k in pairs)) for item in self.gradient]
        return sp.Matrix(self.count, 1, rows)


def _wraps(muscle: Muscle, element: object, count: int) -> CardsError:
    what = "starts at a pulley" if isinstance(element, Pulley) else "wraps over a surface"
    others = f" (and {count - 1} more)" if count > 1 else ""
    return CardsError(
        f"muscle '{muscle.name}'{others} {what}, which has no single expression: its contact "
        "points depend on the pose. Expected: straight muscles through via points. To leave out "
        "wrapped muscles: muscles='straight', on the command line --muscles straight; for their "
        "numbers: ./cards eval"
    )
