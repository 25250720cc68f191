"""The path between two fixed points over one surface or several in a row.

One surface: `contact_guesses` says whether it is touched and where about; Newton's method does the
rest. Several: starting from the straight line, the contact of every surface in turn is guessed
between those of its neighbours, until the guesses settle. From there, or from the last solution,
Newton's method solves all touched surfaces at once; one whose arc gets negative is dropped, one
that a straight piece runs into is added, until neither happens. The last solution is only used
while it follows these guesses: what is found depends on where the surfaces are, not on how they
came there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.paths.wrapping.contact_guesses import (
    Guess,
    contact_guesses,
    is_ring,
    lies_inside,
    lifted,
    passes_side,
    same_branch,
)
from cards_core.paths.wrapping.geodesic import Geodesic, trace
from cards_core.paths.wrapping.path_newton import (
    Placed,
    Start,
    solve_path,
    start_towards,
)
from cards_core.paths.wrapping.surfaces import Surface, TorusSurface
from cards_core.typing import Vector3

SWEEPS = 30
"""Most rounds over the surfaces of a chain."""

SWEEP_TOLERANCE = 1e-2
"""Movement of the contacts, relative to their surface's size, at which a sweep has settled."""

ROUNDS = 12
"""Most changes of the set of touched surfaces."""

SMALLEST_STRIDE = 1e-3
"""Of the continuation from a guessed path, whose ends fit the guess, to the wanted ends."""

WANTED, LAST_RESORT = 4, 2
"""Levels of paths over one surface: 3 for the side asked for and 1 for a minimum, added; a saddle
that a guess for minima led to is taken where there is nothing else on that side."""


@dataclass(eq=False)
class Obstacle:
    """A surface in a muscle's path.

    Attributes:
        placed: The surface; its pose changes with every call.
        side: In surface coordinates, shape (3,), [m], or None.
        inside: Whether the path goes through it.
    """

    placed: Placed
    side: Vector3 | None
    inside: bool

    @property
    def surface(self) -> Surface:
        """The surface in its own frame."""
        return self.placed.surface

    @property
    def ambiguous(self) -> bool:
        """Around a torus on a side: geodesics of one branch differ, the guess alone decides."""
        around = isinstance(self.surface, TorusSurface) and self.side is not None
        return around and not is_ring(self.surface, self.side, self.inside)


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
        first_guesses = self._first_guesses(p, q)
        if any(self.contacts) and self._settle(p, q) and self._follows(first_guesses, p, q):
            return True
        self.reset()
        for i, guess in enumerate(first_guesses):
            if guess is not None:
                surface = self.obstacles[i].surface
                before = self.obstacles[i].placed.inward(self._neighbours(i, p, q)[0])
                start = start_towards(surface, guess.start, guess.length, before)
                self.contacts[i] = trace(surface, start.point, start.tangent, start.length)
        if self._settle(p, q):
            return True
        self.reset()
        self._sweep(p, q)
        return self._settle(p, q)

    # one surface -----------------------------------------------------------------------------

    def _single(self, index: int, p: Vector3, q: Vector3) -> tuple[Geodesic | None, bool]:
        """Return the contact of one surface between p and q, and whether it is a solution."""
        obstacle = self.obstacles[index]
        placed, surface = obstacle.placed, obstacle.surface
        p, q = placed.inward(p), placed.inward(q)
        guesses = contact_guesses(surface, p, q, obstacle.side, obstacle.inside)
        start, self._warm_start[index] = self._warm_start[index], None
        if not guesses:
            return None, True
        p, q = lifted(surface, p), lifted(surface, q)
        here = Placed(surface, np.eye(3), np.zeros(3))
        ring = is_ring(surface, obstacle.side, obstacle.inside)
        best: tuple[tuple[int, float], Geodesic] | None = None
        only_way = len(guesses) == 1 or guesses[1].minimum_only
        # where a primary guess leads to a saddle there is a minimum on either side of it
        enough = sum(guess.primary for guess in guesses)
        for k, guess in enumerate(guesses):
            level = -1 if best is None else best[0][0]
            if (level == WANTED and k >= enough) or (guess.off_side and level >= LAST_RESORT):
                break
            geodesic, solved = None, False
            known = None if guess.minimum_only or obstacle.ambiguous else start
            if known is not None and same_branch(surface, p, ring, known.point, guess.start):
                (geodesic,), solved = solve_path(p, q, [here], [known])
                solved = solved and same_branch(surface, p, ring, geodesic.start, guess.start)
            if not solved:
                geodesic, solved = from_guess(here, guess, p, q)
            if not solved or geodesic is None:
                continue
            if only_way and not guess.minimum_only and geodesic.length <= 0.0:
                return None, True
            stable = len(guesses) == 1 or is_minimum(p, q, geodesic)
            if guess.primary and not stable:
                enough += 2
            contact = geodesic.start, geodesic.end
            on_side = (
                len(guesses) == 1
                or obstacle.side is None
                or passes_side(surface, (p, q), contact, obstacle.side)
            )
            if geodesic.length <= 0.0:
                continue
            level = 3 * on_side + stable
            if guess.minimum_only:
                # a winding of more than half a turn can have two conjugate points, and look stable
                if not on_side or geodesic.angle > math.pi:
                    continue
                level = level if stable else LAST_RESORT
            rank = level, -path_length(p, q, geodesic)
            if best is None or rank > best[0]:
                best = rank, geodesic
        if best is None:
            fallback = start_towards(surface, guesses[0].start, guesses[0].length, p)
            return trace(surface, fallback.point, fallback.tangent, fallback.length), False
        geodesic = best[1]
        self._warm_start[index] = Start(geodesic.start, geodesic.start_tangent, geodesic.length)
        return geodesic, True

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

    def _sweep(self, p: Vector3, q: Vector3) -> None:
        """Let every surface in turn find its contact between its neighbours'."""
        for _ in range(SWEEPS):
            movement = 0.0
            for i, obstacle in enumerate(self.obstacles):
                old = self.contacts[i]
                new, _ = self._single(i, *self._neighbours(i, p, q))
                self.contacts[i] = new
                movement = max(movement, _moved(old, new) / obstacle.surface.size)
            if movement < SWEEP_TOLERANCE:
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

    def _first_guesses(self, p: Vector3, q: Vector3) -> list[Guess | None]:
        """Guess all contacts, starting from the straight line."""
        first_guesses: list[Guess | None] = [None] * len(self.obstacles)
        for _ in range(SWEEPS):
            movement = 0.0
            for i, obstacle in enumerate(self.obstacles):
                before, after = p, q
                for j in range(i):
                    if (guess := first_guesses[j]) is not None:
                        before = self.obstacles[j].placed.outward(guess.end)
                for j in range(len(first_guesses) - 1, i, -1):
                    if (guess := first_guesses[j]) is not None:
                        after = self.obstacles[j].placed.outward(guess.start)
                before, after = obstacle.placed.inward(before), obstacle.placed.inward(after)
                found = contact_guesses(
                    obstacle.surface, before, after, obstacle.side, obstacle.inside
                )
                old, new = first_guesses[i], found[0] if found else None
                first_guesses[i] = new
                movement = max(movement, _moved(old, new) / obstacle.surface.size)
            if movement < SWEEP_TOLERANCE:
                break
        return first_guesses

    def _follows(self, first_guesses: Sequence[Guess | None], p: Vector3, q: Vector3) -> bool:
        """Whether every contact is on the branch of its first guess."""
        for i, (obstacle, guess) in enumerate(zip(self.obstacles, first_guesses, strict=True)):
            contact = self.contacts[i]
            if contact is None or guess is None:
                if contact is None and guess is None:
                    continue
                return False
            if obstacle.ambiguous:
                return False
            before = obstacle.placed.inward(self._neighbours(i, p, q)[0])
            ring = is_ring(obstacle.surface, obstacle.side, obstacle.inside)
            if not same_branch(obstacle.surface, before, ring, contact.start, guess.start):
                return False
        return True


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
