"""Multiple shooting for one rod: the equations and their derivatives, and methods to solve them.

The rod is cut into segments. Unknown are the states (p, R, n, m) at the cuts. Six rows of end
conditions, twelve per segment (the segment that starts at one state ends at the next), six rows of
end conditions: as many as unknowns, and the Jacobian is a band. One segment is plain shooting,
whose Jacobian grows as ``cosh(sqrt(|n|/EI) L)``; cutting divides the exponent by the number of
segments. The equations are solved by Newton's method; where it fails, a homotopy or a relaxation
leads to where it works.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_banded

from cards_core.errors import RodError
from cards_core.rods.ends import End, left_jacobian_inverse
from cards_core.rods.loads import Piece
from cards_core.rods.native_library import rod_library
from cards_core.rods.rod import Rod
from cards_core.spatial import quaternion_matrix, rotation_exp, rotation_log
from cards_core.typing import Array

BAND = 17
"""Diagonals of the Jacobian below and above the main one."""


def transfer(part: Piece, state: Array, steps: int) -> tuple[Array, Array]:
    """Integrate a piece with its variation.

    Args:
        part: The piece; its jump is taken first.
        state: State at its start, before the jump, shape (18,).
        steps: Number of steps of order 8.

    Returns:
        State at its end, shape (18,); derivative of (p, phi, n, m) there by the same at the
        start, shape (12, 12).
    """
    end, matrix = state.copy(), np.empty((12, 12))
    end[12:] -= part.jump
    rod_library().rod_transfer(
        ctypes.byref(part.native),
        ctypes.c_double(part.length),
        steps,
        ctypes.c_void_p(end.ctypes.data),
        ctypes.c_void_p(matrix.ctypes.data),
    )
    return end, matrix


def shoot(part: Piece, state: Array, steps: int) -> Array:
    """Integrate a piece; as `transfer`, without the derivative."""
    end = state.copy()
    end[12:] -= part.jump
    rod_library().rod_shoot(
        ctypes.byref(part.native),
        ctypes.c_double(part.length),
        steps,
        ctypes.c_void_p(end.ctypes.data),
    )
    return end


def steps_of(part: Piece, state: Array, angle: float) -> int:
    """Return how many steps a piece needs if one turns by `angle` [rad] at most.

    Args:
        part: The piece.
        state: State at its start, shape (18,): p [m], R, n [N], m [Nm].
        angle: Largest turn of one step, [rad].
    """
    contiguous = np.ascontiguousarray(state)
    return int(
        rod_library().rod_steps(
            ctypes.byref(part.native),
            ctypes.c_double(part.length),
            ctypes.c_double(angle),
            ctypes.c_void_p(contiguous.ctypes.data),
        )
    )


def scales(rod: Rod, length: float) -> Array:
    """Return the units of (p, phi, n, m), shape (12,): L, 1, EI/L^2, EI/L."""
    force = rod.bending_stiffness / length**2
    return np.repeat([length, 1.0, force, force * length], 3)


@dataclass(frozen=True)
class ShootingProblem:
    """A rod cut into segments.

    Attributes:
        parts: The segments.
        steps: Steps of order 8 per segment.
        ends: End conditions.
        scale: Units of (p, phi, n, m), shape (12,).
    """

    parts: Sequence[Piece]
    steps: Sequence[int]
    ends: tuple[End, End]
    scale: Array

    def residual(self, nodes: Array) -> Array:
        """Return the scaled residual, shape (12 k,), of the states, shape (k, 18)."""
        rows = [self._end(0, nodes[0])[0]]
        for part, steps, here, there in zip(
            self.parts, self.steps, nodes, nodes[1:], strict=False
        ):
            rows.append(_gap(shoot(part, here, steps), there) / self.scale)
        rows.append(self._end(1, nodes[-1])[0])
        return np.concatenate(rows)

    def linearised(self, nodes: Array, drag: float = 0.0) -> tuple[Array, Array]:
        """Return scaled residual and Jacobian.

        Args:
            nodes: States, shape (k, 18).
            drag: Resistance of the cuts against their move, in EI/L: added to what the wrenches
                at a cut lack for balance. The step then follows the way the rod would take if it
                were let go in honey.

        Returns:
            Residual, shape (12 k,), and Jacobian as a band, shape (2 BAND + 1, 12 k).
        """
        size = 12 * len(nodes)
        band, residual = np.zeros((2 * BAND + 1, size)), np.empty(size)
        residual[:6], block = self._end(0, nodes[0])
        _put(band, 0, 0, block)
        for i, (part, steps) in enumerate(zip(self.parts, self.steps, strict=True)):
            end, matrix = transfer(part, nodes[i], steps)
            gap = _gap(end, nodes[i + 1])
            if not np.isfinite(gap).all():
                return np.full(size, np.inf), band
            matrix[3:6] = left_jacobian_inverse(gap[3:6]) @ matrix[3:6]
            back = -np.eye(12)
            back[3:6, 3:6] = -left_jacobian_inverse(-gap[3:6])
            back = self._scaled(back)
            back[6:, :6] = drag / len(self.parts) * np.eye(6)
            row = 6 + 12 * i
            residual[row : row + 12] = gap / self.scale
            _put(band, row, 12 * i, self._scaled(matrix))
            _put(band, row, 12 * i + 12, back)
        residual[-6:], block = self._end(1, nodes[-1])
        _put(band, size - 6, size - 12, block)
        return residual, band

    def moved(self, nodes: Array, step: Array) -> Array:
        """Return the states after a scaled step, shape (12 k,); orientations turn by exp."""
        out = nodes.copy()
        for row, change in zip(out, step.reshape(-1, 12) * self.scale, strict=True):
            row[:3] += change[:3]
            turn = quaternion_matrix(rotation_exp(change[3:6]))
            row[3:12] = (turn @ row[3:12].reshape(3, 3)).ravel()
            row[12:] += change[6:]
        return out

    def _end(self, which: int, state: Array) -> tuple[Array, Array]:
        end = self.ends[which]
        residual, jacobian = end.rows(state, 1.0 if which else -1.0)
        rows = np.where(end.mask, self.scale[6:], self.scale[:6])
        return residual / rows, jacobian * self.scale / rows[:, None]

    def _scaled(self, matrix: Array) -> Array:
        return matrix * self.scale / self.scale[:, None]


def solve_band(band: Array, residual: Array) -> Array:
    """Return the Newton step of `ShootingProblem.linearised`, shape (12 k,).

    Raises:
        numpy.linalg.LinAlgError: The Jacobian is singular.
    """
    return np.asarray(-solve_banded((BAND, BAND), band, residual, check_finite=False))


def _gap(end: Array, there: Array) -> Array:
    """Difference of two states as (p, phi, n, m), shape (12,)."""
    turn = end[3:12].reshape(3, 3) @ there[3:12].reshape(3, 3).T
    if not np.isfinite(turn).all():
        return np.full(12, np.inf)
    return np.concatenate([end[:3] - there[:3], rotation_log(turn), end[12:] - there[12:]])


def _put(band: Array, row: int, column: int, block: Array) -> None:
    """Write a block into a matrix stored as `solve_banded` has it: band[B + i - j, j]."""
    rows, columns = block.shape
    i = np.arange(row, row + rows)[:, None]
    j = np.arange(column, column + columns)[None, :]
    band[BAND + i - j, np.broadcast_to(j, block.shape)] = block


SEGMENT = 3.0
"""``sqrt(|n|/EI)`` times the length of a segment to which rods are cut."""

FEWEST = 16
"""Segments to begin with: relaxation and Newton's method then converge from far away."""


def cut_pieces(
    whole: Sequence[Piece], length: float, slender: float, segments: int | None
) -> tuple[Piece, ...]:
    """Cut pieces into segments of about equal length.

    Args:
        whole: The pieces.
        length: Length of the rod, [m].
        slender: ``sqrt(|n|/EI) L`` as far as it is known.
        segments: Number of segments instead of the one that follows from it.

    Raises:
        RodError: Less than one segment is asked for.
    """
    total = max(FEWEST, math.ceil(slender / SEGMENT)) if segments is None else int(segments)
    if total < 1:
        raise RodError(f"{total} segments; expected at least 1")
    out: list[Piece] = []
    for piece in whole:
        count = max(1, math.ceil(total * piece.length / length - 1e-9))
        for i in range(count):
            first = piece.start + piece.length * i / count
            out.append(piece.part(first if i else piece.start, piece.length / count))
    return tuple(out)


def cuts_of(parts: Sequence[Piece]) -> Array:
    """Return the arc lengths of the ends of segments, shape (k,), [m]."""
    last = parts[-1]
    return np.array([part.start for part in parts] + [last.start + last.length])


def states_from_start(parts: Sequence[Piece], start: End, wrench: Array) -> Array:
    """Return the states at the cuts of a rod with this (n, m) at its start.

    Args:
        parts: Pieces of the rod.
        start: Pose of the start, shape (4, 4), [m].
        wrench: Force and moment at the start, shape (6,), [N] and [N m].

    Raises:
        RodError: The wrench is not six finite numbers.
    """
    if wrench.shape != (6,) or not np.isfinite(wrench).all():
        raise RodError(f"guess of shape {wrench.shape}; expected (n, m) at the start, 6 numbers")
    nodes = [np.concatenate([start.pose[:3, 3], start.pose[:3, :3].ravel(), wrench])]
    for part in parts:
        nodes.append(shoot(part, nodes[-1], steps_of(part, nodes[-1], 0.4)))
    return np.array(nodes)


def states_at_cuts(
    parts: Sequence[Piece], nodes: Array, finer: Sequence[Piece], stretch: float = 1.0
) -> Array:
    """Return states at other cuts.

    Args:
        parts: Segments of a solution.
        nodes: States at their ends, shape (k, 18).
        finer: Segments whose ends are wanted.
        stretch: Length of the rod of the solution over that of the other.
    """
    starts = np.array([part.start for part in parts])
    out = []
    for s in cuts_of(finer)[:-1] * stretch:
        i = max(int(np.searchsorted(starts, s * (1.0 + 1e-12), side="right")) - 1, 0)
        state, ahead = nodes[i], s - parts[i].start
        if ahead > 1e-12 * s:
            part = parts[i].part(parts[i].start, ahead)
            state = shoot(part, state, steps_of(part, state, 0.4))
        out.append(state)
    return np.array([*out, nodes[-1]])


def slenderness(rod: Rod, length: float, nodes: Array) -> float:
    """Return ``sqrt(|n|/EI) L`` with the largest force at the cuts.

    Args:
        rod: The rod.
        length: Its length, [m].
        nodes: States at the cuts, shape (k, 18).
    """
    force = float(np.linalg.norm(nodes[:, 12:15], axis=1).max())
    return math.sqrt(force / rod.bending_stiffness) * length


LARGEST_TURN = 0.7
"""Largest rotation of a section in one step, [rad]."""

LARGEST_SHIFT = 0.3
"""Largest move of a section in one step, in lengths of the rod."""

SMALLEST_PART = 1.0 / 64.0
"""Smallest part of a step that is tried before Newton's method gives up."""

START_DRAG = 100.0
"""Drag to begin a relaxation with, in EI/L; the first bending modes have eigenvalues like it."""

NEUTRAL_DRAG = 1.0
"""Drag of Newton's method over the scaled residual, in EI/L."""

FLOOR = 1e-7
"""Scaled residual that is good enough where Newton's method gets no further: a rod that can move
without force is moved by rounding."""

CALM = 1.0
"""Scaled residual below which the drag of a relaxation falls with the residual."""

CREEP_TURN, CREEP_SHIFT = 0.4, 0.15
"""Largest turn [rad] and move [lengths] of a section in one step of a relaxation."""


@dataclass(frozen=True)
class NewtonResult:
    """Where an iteration ended.

    Attributes:
        nodes: States, shape (k, 18).
        error: Largest scaled residual.
        iterations: Jacobians that were formed.
        converged: The error is within the tolerance.
    """

    nodes: Array
    error: float
    iterations: int
    converged: bool


def newton(
    problem: ShootingProblem,
    nodes: Array,
    *,
    tolerance: float,
    target: Array | float = 0.0,
    limit: int = 60,
) -> NewtonResult:
    """Solve ``residual(nodes) = target``; steps are shortened until the residual falls.

    Args:
        problem: The equations.
        nodes: First guess, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        target: Wanted residual, shape (12 k,).
        limit: Largest number of iterations.
    """
    error = 0.0
    for iteration in range(limit + 1):
        # a rod that can move without force has a singular Jacobian: a drag that falls with the
        # residual holds it, and leaves the convergence quadratic
        residual, band = problem.linearised(nodes, NEUTRAL_DRAG * min(error, 1.0))
        residual = residual - target
        size = float(np.linalg.norm(residual))
        error = float(np.abs(residual).max())
        if error <= tolerance or not np.isfinite(size) or iteration == limit:
            return NewtonResult(nodes, error, iteration, error <= tolerance)
        try:
            step = solve_band(band, residual)
        except np.linalg.LinAlgError:
            return NewtonResult(nodes, error, iteration, converged=False)
        if not np.isfinite(step).all():
            return NewtonResult(nodes, error, iteration, converged=False)
        each = np.abs(step.reshape(-1, 12))
        part = min(
            1.0,
            LARGEST_TURN / max(float(each[:, 3:6].max()), 1e-30),
            LARGEST_SHIFT / max(float(each[:, :3].max()), 1e-30),
        )
        while True:
            tried = problem.moved(nodes, part * step)
            with np.errstate(all="ignore"):
                found = float(np.linalg.norm(problem.residual(tried) - target))
            if found < (1.0 - 1e-4 * part) * size:
                nodes = tried
                break
            part *= 0.5
            if part < SMALLEST_PART:
                return NewtonResult(nodes, error, iteration, error <= max(tolerance, FLOOR))
    raise AssertionError("unreachable")


def homotopy(
    problem: ShootingProblem, nodes: Array, *, tolerance: float, budget: int = 150
) -> NewtonResult:
    """Lead the residual of a guess to zero: ``residual(nodes) = (1 - t) residual(guess)``.

    The guess solves it for t = 0; t grows as fast as Newton's method follows. In the terms of a
    rod: its ends and loads are moved from where the guess has them to where they belong.

    Args:
        problem: The equations.
        nodes: Guess, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        budget: Largest number of iterations over all.
    """
    start = problem.residual(nodes)
    done, stride, spent = 0.0, 0.1, 0
    while spent < budget and stride > 1e-4 and np.isfinite(start).all():
        t = min(done + stride, 1.0)
        result = newton(
            problem,
            nodes,
            tolerance=tolerance if t == 1.0 else 1e-3 * tolerance**0.5,
            target=(1.0 - t) * start,
            limit=12,
        )
        spent += max(result.iterations, 1)
        if not result.converged:
            stride *= 0.4
            continue
        done, nodes = t, result.nodes
        if done == 1.0:
            return NewtonResult(nodes, result.error, spent, converged=True)
        stride *= 1.6 if result.iterations <= 4 else 1.0
    error = float(np.abs(problem.residual(nodes)).max())
    return NewtonResult(nodes, error, spent, converged=False)


def relax(
    problem: ShootingProblem, nodes: Array, *, tolerance: float, limit: int = 150
) -> NewtonResult:
    """Let the rod creep downhill in energy until it rests (pseudo-transient continuation).

    Implicit steps of ``drag dX/dt = forces`` on the cuts. The drag falls with the residual, so
    that the last steps are Newton's; while it is larger than the negative eigenvalues of the
    second variation, unstable equilibria repel.

    Args:
        problem: The equations.
        nodes: Where to let go, shape (k, 18).
        tolerance: Largest scaled residual at the end.
        limit: Largest number of iterations.
    """
    error = np.inf
    for iteration in range(limit):
        residual, band = problem.linearised(nodes, START_DRAG * min(1.0, error / CALM))
        error = float(np.abs(residual).max())
        if error <= tolerance or not np.isfinite(error):
            return NewtonResult(nodes, error, iteration, error <= tolerance)
        try:
            step = solve_band(band, residual)
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(step).all():
            break
        each = np.abs(step.reshape(-1, 12))
        excess = max(
            float(each[:, 3:6].max()) / CREEP_TURN, float(each[:, :3].max()) / CREEP_SHIFT, 1.0
        )
        nodes = problem.moved(nodes, step / excess)
    return NewtonResult(nodes, error, limit, converged=False)
