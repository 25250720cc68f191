"""Keeps via points out of the surfaces beside them, and neighbours on one link apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cards_core.analysis.muscle_fit.moment_arms import (
    LinkMotion,
    between_links,
    link_motion,
)
from cards_core.analysis.muscle_fit.specification import FitSpecification, wraps_near
from cards_core.analysis.muscle_fit.variables import with_radius
from cards_core.formats.sdf.muscle_path import depth_inside, inside_problem
from cards_core.robot.elements import Muscle, ViaPoint, WrapSurface
from cards_core.typing import Array

CLEARANCE = 5e-4
"""Distance that via points keep from the surfaces beside them, and from their neighbours on the
same link, [m], where they have it now."""

DEPTH_UNIT = 1e-5
"""Depth, or lack of distance, that counts as much as a moment arm at its tolerance, [m]."""


class Clearance:
    """How much deeper in surfaces, or nearer to others, via points are than they may be.

    Args:
        specification: The fit.
        motion: Of the links at its poses.
    """

    def __init__(self, specification: FitSpecification, motion: LinkMotion) -> None:
        self._specification = specification
        robot = specification.robot
        index = {link.name: k for k, link in enumerate(robot.links)}
        world = len(robot.links)
        home = link_motion(robot, robot.tree.home[None])
        variables = specification.variables
        self._pairs: list[tuple[int, int, WrapSurface, Array, Array]] = []
        resized = {radius.surface for radius in variables.radii}
        for i in range(len(robot.muscles)):
            moved = {point for point, _, _ in variables.columns(i)}
            for point, wrap in wraps_near(robot, i):
                surface = robot.wrap_surface(wrap.surface)
                if point not in moved and wrap.surface not in resized:
                    continue
                place = robot.muscles[i].via_points[point]
                if wrap.inside and inside_problem(wrap, surface, _centre(surface)) is None:
                    continue  # in the bore is where the muscle runs
                a = index.get(place.link, world)
                b = index.get(surface.link, world)
                # at home too: files are refused where a point is inside there
                both = [between_links(one, a, b) for one in (motion, home)]
                turn, shift = (np.concatenate(parts) for parts in zip(*both, strict=True))
                if a == b:
                    turn, shift = turn[:1], shift[:1]
                self._pairs.append((i, point, surface, turn, shift))
        self._neighbours = [
            (i, k)
            for i, muscle in enumerate(robot.muscles)
            for k in _neighbours(muscle)
            if {k, k + 1} & {point for point, _, _ in variables.columns(i)}
        ]
        self._gaps = np.minimum(CLEARANCE, self._distances(variables.start))
        # as the robot is, not where a search begins: bounds may be elsewhere, within a surface
        present = self._depths_at(variables.positions_of(robot), {})
        self._allowed = [np.maximum(-CLEARANCE, depths) for depths in present]

    def _depths(self, y: Array) -> list[Array]:
        variables = self._specification.variables
        return self._depths_at(variables.positions(y), variables.radius_values(y))

    def _depths_at(self, places: list[Array], radii: dict[str, float]) -> list[Array]:
        out = []
        for i, point, surface, turn, shift in self._pairs:
            resized = surface
            if surface.name in radii:
                resized = with_radius(surface, radii[surface.name])
            local = turn @ places[i][point] + shift
            out.append(np.array([depth_inside(resized, x) for x in local]))
        return out

    def _distances(self, y: Array) -> Array:
        """Return the distances of neighbours on one link, [m]."""
        places = self._specification.variables.positions(y)
        pairs = ((places[i][k], places[i][k + 1]) for i, k in self._neighbours)
        return np.array([np.linalg.norm(a - b) for a, b in pairs])

    def residuals(self, y: Array) -> Array:
        """Return how much deeper, and then nearer, points are than allowed, shape (k,)."""
        parts = [
            np.maximum(depths - allowed, 0.0) / DEPTH_UNIT
            for depths, allowed in zip(self._depths(y), self._allowed, strict=True)
        ]
        parts.append(np.maximum(self._gaps - self._distances(y), 0.0) / DEPTH_UNIT)
        return np.concatenate(parts)

    def linearise(self, y: Array) -> tuple[Array, Array]:
        """Return residuals and their Jacobian, by differences."""
        r = self.residuals(y)
        jacobian = np.zeros((len(r), len(y)))
        if r.any():
            for k in range(len(y)):
                step = np.zeros(len(y))
                step[k] = 1e-6
                change = self.residuals(y + step) - self.residuals(y - step)
                jacobian[:, k] = change / 2e-6
        return r, jacobian


def _neighbours(muscle: Muscle) -> Iterator[int]:
    """Yield via points whose next path element is a via point of the same link."""
    k = -1
    for one, other in pairwise(muscle.path):
        if isinstance(one, ViaPoint):
            k += 1
            if isinstance(other, ViaPoint) and one.link == other.link:
                yield k


def _centre(surface: WrapSurface) -> Array:
    return np.asarray(surface.pose.translation)
