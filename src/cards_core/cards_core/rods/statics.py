"""Equilibrium of a single rod under any end conditions and loads.

start, tip = clamped(pose), free([0, 0, -1, 0, 0, 0])
solution = solve_rod(rod, 0.5, start, tip, loading=Loading(gravity=(0, 0, -9.81)))
solution.shape().p, solution.start_wrench, solution.status
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.ends import End, unheld
from cards_core.rods.initial_shape import InitialShape, initial_shapes
from cards_core.rods.loads import Loading, Piece, pieces
from cards_core.rods.rod import Rod
from cards_core.rods.shooting import (
    NewtonResult,
    ShootingProblem,
    cut_pieces,
    cuts_of,
    homotopy,
    newton,
    relax,
    scales,
    shoot,
    slenderness,
    states_at_cuts,
    states_from_start,
    steps_of,
)
from cards_core.rods.solution import RodSolution
from cards_core.rods.stability import Stability, stability
from cards_core.rods.status import RodStatus
from cards_core.spatial import quaternion_matrix, rotation_exp
from cards_core.typing import Array

TOLERANCE = 1e-10
"""Largest residual: lengths over L, angles, forces times L^2/EI, moments times L/EI."""

CREPT = 1e-7
"""Largest residual of a relaxation, before Newton's method takes over."""

ACCURACY = 1e-10
"""Largest change of a segment's end, scaled in the same way, when its steps are doubled."""

SLENDER = 10.0
"""``sqrt(|n|/EI)`` times the length of a segment beyond which it is cut further."""

STRETCH = 0.01
"""Strain beyond which two held ends are out of reach, if the rod has no yield strain."""


def solve_rod(
    rod: Rod,
    length: float,
    start: End,
    tip: End,
    *,
    loading: Loading | None = None,
    guess: RodSolution | Sequence[float] | Array | None = None,
    bulge: Sequence[float] | Array | None = None,
    segments: int | None = None,
    tolerance: float = TOLERANCE,
    check_stability: bool = True,
) -> RodSolution:
    """Find an equilibrium of a rod.

    Newton's method on the multiple-shooting equations, and a homotopy from the guess if it fails.
    A rod has many equilibria. Without a guess the search begins at a cubic curve between the held
    ends, or at the rod at rest, and relaxes; where that leads to an unstable one, it goes on
    along its softest mode, and from rods bent further.

    Args:
        rod: The rod.
        length: Unstrained length, [m].
        start: End condition at s = 0.
        tip: End condition at s = length.
        loading: Loads between the ends.
        guess: A solution nearby, or (n, m) at the start, shape (6,), if the start is clamped.
        bulge: Direction in the world in which a compressed rod gives way, shape (3,).
        segments: Number of segments; None: chosen by the force, at least `FEWEST`.
        tolerance: Largest scaled residual.
        check_stability: Tell whether the equilibrium is stable, and look for a stable one if
            there was no guess; not for follower loads.

    Returns:
        The equilibrium, or the best that was found with a status that says so.

    Raises:
        RodError: Arguments that mean nothing, or a force that nothing holds: no equilibrium.
    """
    if not isinstance(rod, Rod):
        raise RodError(f"rod is of type {type(rod).__name__}; expected a Rod")
    for name, end in (("start", start), ("tip", tip)):
        if not isinstance(end, End):
            raise RodError(
                f"{name} is of type {type(end).__name__}; expected an end condition: "
                "clamped(pose), free(wrench), jointed(pose, mask)"
            )
    task = _Task(
        rod, length, (start, tip), loading or Loading(), segments=segments, tolerance=tolerance
    )
    _check_held(task.whole, task.ends)
    side = _direction(bulge)
    missing = _missing(rod, length, start, tip)
    if guess is not None:
        solution = task.solve(_given(guess, task, length))
        guesses: Iterator[InitialShape] = iter(())
    else:
        guesses = initial_shapes(rod, length, (start, tip), task.cuts, side)
        solution = task.solve(next(guesses))
    if missing > 0.0:
        message = f"the ends are {1e3 * missing:.3g} mm farther apart than the rod can be long"
        return replace(solution, status=RodStatus.UNREACHABLE, message=message)
    if check_stability and solution.conservative:
        solution, mode = _checked(solution)
        others = guesses if guess is not None or mode is None else chain(mode, guesses)
        for other in others:
            if solution.status not in (RodStatus.UNSTABLE, RodStatus.NOT_CONVERGED):
                break
            found, _ = _checked(task.solve(other))
            if found.converged and not found.min_eigenvalue < solution.min_eigenvalue:
                solution = found
    return _yield_checked(solution)


class _Task:
    """One rod with its ends and loads: solves from a guess."""

    def __init__(
        self,
        rod: Rod,
        length: float,
        ends: tuple[End, End],
        loading: Loading,
        *,
        segments: int | None,
        tolerance: float,
    ) -> None:
        self.rod, self.length, self.ends, self.loading = rod, length, ends, loading
        self.segments, self.tolerance = segments, tolerance
        self.whole = pieces(rod, length, loading)
        force = sum(float(np.linalg.norm(p.force)) * p.length for p in self.whole)
        force += sum(float(np.linalg.norm(p.jump[:3])) for p in self.whole)
        force += sum(float(np.linalg.norm((end.wrench * end.mask)[:3])) for end in ends)
        slender = math.sqrt(force / rod.bending_stiffness) * length
        self.parts = cut_pieces(self.whole, length, slender, segments)

    @property
    def cuts(self) -> Array:
        """Arc lengths of the ends of the segments, shape (k,), [m]."""
        return cuts_of(self.parts)

    def solve(self, guess: InitialShape) -> RodSolution:
        run = _Run(self.rod, self.length, self.ends, self.tolerance)
        parts = self.parts
        result = run.solve(parts, guess.states, relaxed=guess.relax)
        for _ in range(4):
            if not result.converged or self.segments is not None:
                break
            slender = slenderness(self.rod, self.length, result.nodes)
            if slender <= SLENDER * len(parts):
                break
            finer = cut_pieces(self.whole, self.length, slender, None)
            nodes = states_at_cuts(parts, result.nodes, finer)
            parts = finer
            result = run.solve(parts, nodes)
        status, message = RodStatus.OK, ""
        if not result.converged:
            status = RodStatus.NOT_CONVERGED
            message = (
                f"no equilibrium found: residual {result.error:.2g} after {run.iterations} "
                "iterations"
            )
            if all(end.mask.all() for end in self.ends):
                message += "; nothing holds the rod: both ends are free"
        elif guess.arbitrary:
            status = RodStatus.AMBIGUOUS
            message = "the rod gives way to an arbitrary side; `bulge` would declare it"
        return RodSolution(
            status=status,
            message=message,
            rod=self.rod,
            length=self.length,
            ends=self.ends,
            loading=self.loading,
            parts=parts,
            nodes=result.nodes,
            residual=result.error,
            discretisation=run.discretisation,
            iterations=run.iterations,
            steps=run.steps,
        )


class _Run:
    """Relaxation or homotopy, Newton, and steps doubled until the discretisation is fine."""

    def __init__(self, rod: Rod, length: float, ends: tuple[End, End], tolerance: float) -> None:
        self.rod, self.ends, self.tolerance = rod, ends, tolerance
        self.scale = scales(rod, length)
        self.iterations, self.steps, self.discretisation = 0, 0, math.inf

    def solve(
        self, parts: Sequence[Piece], nodes: Array, *, relaxed: bool = False
    ) -> NewtonResult:
        angle = 0.3
        if relaxed:
            counts = [max(4, steps_of(p, x, angle)) for p, x in zip(parts, nodes, strict=False)]
            problem = ShootingProblem(parts, counts, self.ends, self.scale)
            result = relax(problem, nodes, tolerance=CREPT)
            self.iterations += result.iterations
            if result.converged:
                nodes = result.nodes
        result = self._attempt(parts, nodes, angle, lead=not relaxed)
        for _ in range(6):
            if not result.converged:
                break
            steps = [steps_of(p, x, angle) for p, x in zip(parts, result.nodes, strict=False)]
            self.steps = sum(steps)
            self.discretisation = self._doubled(parts, result.nodes, steps)
            if self.discretisation <= ACCURACY:
                break
            angle *= 0.5
            result = self._attempt(parts, result.nodes, angle, lead=True)
        return result

    def _attempt(
        self, parts: Sequence[Piece], nodes: Array, angle: float, *, lead: bool
    ) -> NewtonResult:
        # the guess may carry little load yet; the second round has the steps of the solution
        result = NewtonResult(nodes, math.inf, 0, converged=False)
        counts: list[int] = []
        for _ in range(3):
            before = counts
            counts = [
                max(steps_of(p, x, angle), old)
                for p, x, old in zip(parts, nodes, before or [1] * len(parts), strict=False)
            ]
            if counts == before:
                break
            problem = ShootingProblem(parts, counts, self.ends, self.scale)
            result = newton(problem, nodes, tolerance=self.tolerance)
            self.iterations += result.iterations
            if lead and not result.converged:
                result = homotopy(problem, nodes, tolerance=self.tolerance)
                self.iterations += result.iterations
            if not result.converged:
                break
            nodes = result.nodes
        return result

    def _doubled(self, parts: Sequence[Piece], nodes: Array, steps: Sequence[int]) -> float:
        worst = 0.0
        for part, node, count in zip(parts, nodes, steps, strict=False):
            change = shoot(part, node, 2 * count) - shoot(part, node, count)
            lengths = np.abs(change[:3]) / self.scale[:3]
            loads = np.abs(change[12:]) / self.scale[6:]
            worst = max(worst, *lengths, *np.abs(change[3:12]), *loads)
        return worst


def _check_held(whole: Sequence[Piece], ends: tuple[End, End]) -> None:
    """Refuse forces along a direction in which no end holds the rod: no shape balances them.

    Follower loads are not looked at, their direction is not known yet; nor are moments, whose sum
    depends on the shape.

    Raises:
        RodError: There is such a force.
    """
    if any(end.follower for end in ends):
        return
    loads = [part.force * part.length for part in whole] + [part.jump[:3] for part in whole]
    loads += [end.pose[:3, :3] @ (end.wrench * end.mask)[:3] for end in ends]
    axes = unheld(ends)
    push = axes.T @ axes @ np.sum(loads, axis=0)
    size = float(np.linalg.norm(push))
    if size > 1e-9 * float(np.linalg.norm(loads, axis=1).sum()):
        x, y, z = push / size + 0.0
        raise RodError(
            f"no equilibrium: nothing holds the rod along ({x:.3g}, {y:.3g}, {z:.3g}), where its "
            f"loads sum up to {size:.3g} N; expected an end that is held there (clamped, "
            "jointed), or loads in balance"
        )


def _missing(rod: Rod, length: float, start: End, tip: End) -> float:
    """How much farther apart two held ends are than the rod can be long, [m]; <= 0: nothing."""
    if not (start.holds_position and tip.holds_position):
        return 0.0
    distance = float(np.linalg.norm(tip.pose[:3, 3] - start.pose[:3, 3]))
    stretch = 0.0 if rod.inextensible else rod.yield_strain or STRETCH
    return distance - length * (1.0 + stretch) * float(np.linalg.norm(rod.strain))


def _direction(bulge: Sequence[float] | Array | None) -> Array | None:
    if bulge is None:
        return None
    out = np.asarray(bulge, dtype=float)
    size = float(np.linalg.norm(out))
    if out.shape != (3,) or not np.isfinite(size) or size == 0.0:
        raise RodError(f"bulge is {bulge!r}; expected a direction in the world, three numbers")
    return out / size


def _given(
    guess: RodSolution | Sequence[float] | Array, task: _Task, length: float
) -> InitialShape:
    if isinstance(guess, RodSolution):
        stretch = guess.length / length
        nodes = states_at_cuts(guess.parts, guess.nodes, task.parts, stretch)
        return InitialShape(nodes, relax=False)
    return InitialShape(
        states_from_start(task.parts, task.ends[0], np.asarray(guess, dtype=float)), relax=False
    )


def _checked(solution: RodSolution) -> tuple[RodSolution, Iterator[InitialShape] | None]:
    """The solution with its smallest eigenvalue, UNSTABLE if negative, and then ways out of it."""
    if not solution.converged:
        return solution, None
    found = stability(solution)
    solution = replace(solution, min_eigenvalue=found.min_eigenvalue)
    if found.stable:
        return solution, None
    ways = f"in {found.index} directions" if found.index > 1 else "in one direction"
    message = f"an equilibrium, but it does not hold: the rod collapses {ways}"
    return replace(solution, status=RodStatus.UNSTABLE, message=message), _downhill(
        solution, found
    )


def _downhill(solution: RodSolution, found: Stability) -> Iterator[InitialShape]:
    """Yield the rod displaced along its softest mode, to both sides, a little and far."""
    cuts = cuts_of(solution.parts)
    mode = np.column_stack([np.interp(cuts, found.s, column) for column in found.modes.T])
    mode /= max(float(np.abs(mode[:, 3:]).max()), float(np.abs(mode[:, :3]).max()) / cuts[-1])
    for size in (0.5, -0.5, 1.2, -1.2):
        states = solution.nodes.copy()
        for state, move in zip(states, size * mode, strict=True):
            turn = quaternion_matrix(rotation_exp(move[3:]))
            state[:3] += move[:3]
            state[3:12] = (turn @ state[3:12].reshape(3, 3)).ravel()
        yield InitialShape(states, arbitrary=True)


def _yield_checked(solution: RodSolution) -> RodSolution:
    limit = solution.rod.yield_strain
    if limit is None or solution.status not in (RodStatus.OK, RodStatus.AMBIGUOUS):
        return solution
    strain = solution.shape().max_strain
    if strain <= limit:
        return solution
    message = f"strain {strain:.3g} is beyond the yield strain {limit:.3g}"
    return replace(solution, status=RodStatus.YIELD, message=message)
