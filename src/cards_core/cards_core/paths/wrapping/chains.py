"""The path between two fixed points over one surface or several in a row.

One surface: `contact_guesses` says whether it is touched and where about. Where only one guess may
lead to the shortest path, Newton's method solves it; else `shoot` finds all paths, and the best
is taken: on the side asked for, a minimum, the shortest. Several: starting from the straight line,
every surface in turn finds its contact between those of its neighbours, until they settle. From
there Newton's method solves all touched surfaces at once; one whose arc gets negative is dropped,
one that a straight piece runs into is added, until neither happens. Then single surfaces take
other ways while that makes the whole path better. What is found depends on where the surfaces are,
not on how they came there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.paths.wrapping.contact_guesses import (
    Guess,
    contact_guesses,
    lies_inside,
    lifted,
    one_way,
    passes_side,
    same_branch,
)
from cards_core.paths.wrapping.geodesic import Geodesic, trace
from cards_core.paths.wrapping.mesh import HullSurface
from cards_core.paths.wrapping.path_newton import (
    Placed,
    Start,
    solve_path,
    start_towards,
)
from cards_core.paths.wrapping.shooting import shoot
from cards_core.paths.wrapping.surfaces import Surface
from cards_core.typing import Vector3

SWEEPS, MOST_SWEEPS = 30, 6
"""Most rounds over the surfaces of a chain, before Newton's method is tried, and how often."""

SWEEP_TOLERANCE = 1e-2
"""Movement of the contacts, relative to their surface's size, at which a sweep has settled."""

ROUNDS = 12
"""Most changes of the set of touched surfaces."""

SMALLEST_STRIDE = 1e-3
"""Of the continuation from a guessed path, whose ends fit the guess, to the wanted ends."""

WANTED = 4
"""Level of a path over one surface that is a minimum on the side asked for."""


@dataclass(eq=False)
class Obstacle:
    """A surface in a muscle's path.

    Attributes:
        placed: The surface; its pose changes with every call.
        side: In surface coordinates, shape (3,), [m], or None.
    """

    placed: Placed
    side: Vector3 | None

    @property
    def surface(self) -> Surface:
        """The surface in its own frame."""
        return self.placed.surface


class Chain:
    """Surfaces between two fixed points of a muscle.

    Args:
        obstacles: In the order of the path.

    Attributes:
        contacts: Result of `solve`: geodesic in surface coordinates, None where not touched.
        lost: Whether no path was found and the last contacts are a guess.
        failures: How often that was.
    """

    def __init__(self, obstacles: Sequence[Obstacle]) -> None:
        self.obstacles = tuple(obstacles)
        self.contacts: list[Geodesic | None] = [None] * len(self.obstacles)
        self.lost = False
        self.failures = 0
        self._warm_start: list[Start | None] = [None] * len(self.obstacles)

    def reset(self) -> None:
        """Forget the last solution."""
        self.contacts = [None] * len(self.obstacles)
        self._warm_start = [None] * len(self.obstacles)

    def solve(self, p: Vector3, q: Vector3) -> None:
        """Find the path from p to q, shape (3,), [m], in the frame of the obstacles' poses."""
        self.lost = not self._found(p, q)
        self.failures += self.lost

    def _found(self, p: Vector3, q: Vector3) -> bool:
        """Find the contacts; say whether they are a path."""
        if len(self.obstacles) == 1:
            self.contacts[0], found = self._single(0, p, q)
            return found
        self.reset()
        for k in range(MOST_SWEEPS):
            # surfaces that answer one another may go round in circles, and then keep to their ways
            self._sweep(p, q, keep=k > 0)
            swept = list(self.contacts)
            if self._settle(p, q):
                self._improve(p, q)
                return True
            self.contacts = swept
        return False

    # one surface -----------------------------------------------------------------------------

    def _single(
        self, index: int, p: Vector3, q: Vector3, *, keep: bool = False
    ) -> tuple[Geodesic | None, bool]:
        """Return the contact of one surface between p and q, and whether it is a solution.

        Args:
            index: Of the surface.
            p: Start of the path.
            q: End of the path.
            keep: On the way of the last solution while that is a minimum.
        """
        obstacle = self.obstacles[index]
        placed, surface = obstacle.placed, obstacle.surface
        p, q = placed.inward(p), placed.inward(q)
        guesses = contact_guesses(surface, p, q, obstacle.side)
        known, self._warm_start[index] = self._warm_start[index], None
        if not guesses:
            return None, True
        p, q = lifted(surface, p), lifted(surface, q)
        here = Placed(surface, np.eye(3), np.zeros(3))
        alone, best = one_way(surface), None
        if keep and known is not None:
            (geodesic,), solved = solve_path(p, q, [here], [known])
            if solved and geodesic.length > 0.0:
                stable = alone or self._rank(obstacle, geodesic, p, q)[0] % 3
                best = geodesic if stable else None
        else:
            primary = [guess for guess in guesses if guess.primary]
            # shooting at a mesh takes too long where each guess leads to a minimum
            several = isinstance(surface, HullSurface)
            found = [
                self._first(here, guess, known, p, q)
                for guess in primary
                if several or len(primary) == 1
            ]
            if len(guesses) == len(found) == 1 and found[0][1] and found[0][0].length <= 0.0:
                return None, True
            paths = [path for path, solved in found if solved and path.length > 0.0]
            ranks = [self._rank(obstacle, path, p, q) for path in paths]
            good = [rank for rank in ranks if alone or rank[0] == WANTED]
            best = paths[ranks.index(max(good))] if good else None
        if best is None and not alone:
            best = self._best(obstacle, here, shoot(surface, p, q), p, q)
        if best is None:
            best = self._best(obstacle, here, guesses, p, q)
        if best is None:
            fallback = start_towards(surface, guesses[0].start, guesses[0].length, p)
            return trace(surface, fallback.point, fallback.tangent, fallback.length), False
        self._warm_start[index] = Start(best.start, best.start_tangent, best.length)
        return best, True

    @staticmethod
    def _first(
        here: Placed, guess: Guess, known: Start | None, p: Vector3, q: Vector3
    ) -> tuple[Geodesic, bool]:
        """Solve from the last solution if it is on the branch of a guess, else from the guess."""
        if known is not None and same_branch(here.surface, p, known.point, guess.start):
            (geodesic,), solved = solve_path(p, q, [here], [known])
            if solved and same_branch(here.surface, p, geodesic.start, guess.start):
                return geodesic, True
        return from_guess(here, guess, p, q)

    def _best(
        self, obstacle: Obstacle, here: Placed, guesses: Sequence[Guess], p: Vector3, q: Vector3
    ) -> Geodesic | None:
        """Return the first of the paths that guesses lead to, by `_rank`."""
        found = [from_guess(here, guess, p, q) for guess in guesses]
        paths = [geodesic for geodesic, solved in found if solved and geodesic.length > 0.0]
        return max(paths, key=lambda path: self._rank(obstacle, path, p, q), default=None)

    @staticmethod
    def _rank(obstacle: Obstacle, geodesic: Geodesic, p: Vector3, q: Vector3) -> tuple[int, float]:
        """Order of paths: those on the side asked for, minima, the shortest."""
        # a winding of more than half a turn can have two conjugate points, and look stable
        stable = is_minimum(p, q, geodesic) and geodesic.angle < math.pi
        contact = geodesic.start, geodesic.end
        on_side = obstacle.side is None or passes_side(
            obstacle.surface, (p, q), contact, obstacle.side
        )
        return 3 * on_side + stable, -path_length(p, q, geodesic)

    # several ---------------------------------------------------------------------------------

    def _neighbours(self, index: int, p: Vector3, q: Vector3) -> tuple[Vector3, Vector3]:
        """Ends of the straight pieces before and after a surface, in the common frame."""
        before, after = p, q
        for i in range(index - 1, -1, -1):
            if (contact := self.contacts[i]) is not None:
                before = self.obstacles[i].placed.outward(contact.end)
                break
        for i in range(index + 1, len(self.obstacles)):
            if (contact := self.contacts[i]) is not None:
                after = self.obstacles[i].placed.outward(contact.start)
                break
        return before, after

    def _sweep(self, p: Vector3, q: Vector3, *, keep: bool) -> None:
        """Let every surface in turn find its contact between its neighbours'."""
        for _ in range(SWEEPS):
            movement = 0.0
            for i, obstacle in enumerate(self.obstacles):
                old = self.contacts[i]
                new, _ = self._single(i, *self._neighbours(i, p, q), keep=keep)
                self.contacts[i] = new
                movement = max(movement, _moved(old, new) / obstacle.surface.size)
            if movement < (0.0 if keep else SWEEP_TOLERANCE):
                break

    def _settle(self, p: Vector3, q: Vector3) -> bool:
        """Find which surfaces are touched and solve for all of them; say whether it worked."""
        for _ in range(ROUNDS):
            touched = [i for i, contact in enumerate(self.contacts) if contact is not None]
            if touched and not self._solve_touched(touched, p, q):
                return False
            lengths = {i: c.length for i, c in enumerate(self.contacts) if c is not None}
            if lengths and min(lengths.values()) <= 0.0:
                self.contacts[min(lengths, key=lambda i: lengths[i])] = None
                continue
            for i, contact in enumerate(self.contacts):
                if contact is None:
                    new, solved = self._single(i, *self._neighbours(i, p, q))
                    if not solved:
                        return False
                    if new is not None:
                        self.contacts[i] = new
                        break
            else:
                return True
        return False

    def _improve(self, p: Vector3, q: Vector3) -> None:
        """Take another way over one surface while that makes the whole path better."""
        for _ in range(ROUNDS):
            current = best = list(self.contacts)
            rank = self._whole_rank(p, q)
            for i, contact in enumerate(current):
                here = Placed(self.obstacles[i].surface, np.eye(3), np.zeros(3))
                ends = [self.obstacles[i].placed.inward(x) for x in self._neighbours(i, p, q)]
                for guess in self._other_ways(i, p, q):
                    found, solved = from_guess(here, guess, *ends)
                    if not solved or found.length <= 0.0:
                        continue
                    if _moved(contact, found) < 1e-6 * here.surface.size:
                        continue
                    self.contacts[i] = found
                    if self._settle(p, q):
                        tried = self._whole_rank(p, q)
                        if tried > (rank[0], rank[1] + 1e-9 * abs(rank[1])):
                            best, rank = list(self.contacts), tried
                    self.contacts = list(current)
            self.contacts = best
            if best is current:
                return

    def _other_ways(self, index: int, p: Vector3, q: Vector3) -> list[Guess]:
        """Return all paths over a surface, none where its only guess leads to that it has."""
        obstacle, contact = self.obstacles[index], self.contacts[index]
        if contact is None or one_way(obstacle.surface):
            return []
        before, after = map(obstacle.placed.inward, self._neighbours(index, p, q))
        guesses = contact_guesses(obstacle.surface, before, after, obstacle.side)
        if sum(guess.primary for guess in guesses) == 1:
            level = self._rank(obstacle, contact, before, after)[0]
            same = same_branch(obstacle.surface, before, contact.start, guesses[0].start)
            if level == WANTED and same:
                return []
        return shoot(obstacle.surface, before, after)

    def _whole_rank(self, p: Vector3, q: Vector3) -> tuple[int, float]:
        """Order of paths over all surfaces: the sum of their levels, then the shortest."""
        levels, length, at = 0, 0.0, p
        for i, (obstacle, contact) in enumerate(zip(self.obstacles, self.contacts, strict=True)):
            if contact is None:
                levels += WANTED
                continue
            if one_way(obstacle.surface):
                levels += WANTED
            else:
                before, after = map(obstacle.placed.inward, self._neighbours(i, p, q))
                levels += self._rank(obstacle, contact, before, after)[0]
            length += _distance(at, obstacle.placed.outward(contact.start)) + contact.length
            at = obstacle.placed.outward(contact.end)
        return levels, -length - _distance(at, q)

    def _solve_touched(self, touched: Sequence[int], p: Vector3, q: Vector3) -> bool:
        placed = [self.obstacles[i].placed for i in touched]
        starts = []
        for i in touched:
            contact = self.contacts[i]
            assert contact is not None
            starts.append(Start(contact.start, contact.start_tangent, contact.length))
        first, last = placed[0], placed[-1]
        p, q = first.inward(p), last.inward(q)
        if lies_inside(first.surface, p) or lies_inside(last.surface, q):
            return False
        p = first.outward(lifted(first.surface, p))
        q = last.outward(lifted(last.surface, q))
        geodesics, solved = solve_path(p, q, placed, starts)
        for i, geodesic in zip(touched, geodesics, strict=True):
            self.contacts[i] = geodesic
        return solved


def from_guess(placed: Placed, guess: Guess, p: Vector3, q: Vector3) -> tuple[Geodesic, bool]:
    """Solve for one surface from a guess, in the frame of its pose.

    If Newton's method fails, the ends are moved to where the guess is a solution and from there,
    in steps that are halved when one fails, to p and q.

    Args:
        placed: The surface and its place.
        guess: Where the path meets and leaves it.
        p: Start of the path, frame of the surface, shape (3,), [m].
        q: End of the path, same frame.

    Returns:
        The geodesic, and whether it solves the path from p to q.
    """
    surface = placed.surface
    start = start_towards(surface, guess.start, guess.length, p)
    (geodesic,), solved = solve_path(p, q, [placed], [start])
    if solved and geodesic.length > -0.05 * surface.size:
        return geodesic, True
    first = trace(surface, start.point, start.tangent, start.length)
    reach_p, reach_q = _distance(p, first.start), _distance(q, first.end)
    from_p = first.start - reach_p * first.start_tangent
    from_q = first.end + reach_q * first.end_tangent
    done, stride, geodesic = 0.0, 0.25, first
    while done < 1.0 and stride > SMALLEST_STRIDE:
        share = min(done + stride, 1.0)
        (tried,), solved = solve_path(
            from_p + share * (p - from_p), from_q + share * (q - from_q), [placed], [start]
        )
        if solved:
            done, geodesic = share, tried
            start = Start(tried.start, tried.start_tangent, tried.length)
        else:
            stride *= 0.5
    return geodesic, done == 1.0


def is_minimum(p: Vector3, q: Vector3, geodesic: Geodesic) -> bool:
    """Return whether a path is shorter than those next to it (and no saddle).

    It is if no neighbouring path from p crosses it before q (Jacobi's condition): a displacement
    with ``w = 0, w' = 1`` at p grows along the straight piece, follows the Jacobi equation on the
    surface, and must not have come back to zero at q.

    Args:
        p: End point before the surface, shape (3,), [m].
        q: End point behind it, shape (3,), [m].
        geodesic: The arc on the surface.
    """
    a, a_rate, r, r_rate = geodesic.jacobi
    reach = _distance(p, geodesic.start)
    w, w_rate = reach * a + r, reach * a_rate + r_rate
    return bool(w > 0.0 and w + _distance(geodesic.end, q) * w_rate > 0.0)


def path_length(p: Vector3, q: Vector3, geodesic: Geodesic) -> float:
    """Return the length of the straight pieces and the arc, [m].

    Args:
        p: End point before the surface, shape (3,), [m].
        q: End point behind it, shape (3,), [m].
        geodesic: The arc on the surface.
    """
    return _distance(p, geodesic.start) + geodesic.length + _distance(geodesic.end, q)


def _moved(old: Geodesic | Guess | None, new: Geodesic | Guess | None) -> float:
    """Return how far an end of a contact moved; infinite where it is new or gone."""
    if old is None or new is None:
        return 0.0 if old is new else math.inf
    return max(_distance(old.start, new.start), _distance(old.end, new.end))


def _distance(a: Vector3, b: Vector3) -> float:
    return float(np.linalg.norm(a - b))
