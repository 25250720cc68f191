"""Where every muscle runs at one instant: contacts solved in NumPy, points in the world."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cards_core.paths.layout import FRICTION_MARGIN, ContactSpec, PathLayout
from cards_core.paths.wrapping.closed_forms import (
    Contact,
    cylinder_contact,
    pulley_contact,
    sphere_contact,
)
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Cylinder, Pulley, Sphere, Wrap
from cards_core.typing import Array, Vector3


class Paths:
    """The paths of a layout for given poses of its frames.

    Args:
        layout: The flattened paths.
        geodesics: Solver of the contacts without a closed form, if there are any.

    Attributes:
        local: Path points in coordinates of their frames, shape (P, 3), [m].
        points: In the world, shape (P, 3), [m].
        arcs: Arc length of every contact, shape (C,), [m].
        angles: Turning angle of every contact, shape (C,), [rad].
        found: Closed-form contacts as solved last, by index of the contact.
    """

    def __init__(self, layout: PathLayout, geodesics: GeodesicPaths | None) -> None:
        self.layout = layout
        self.geodesics = geodesics
        self.local: Array = layout.point_position.copy()
        self.points: Array = np.zeros_like(self.local)
        count = len(layout.contacts)
        self.arcs: Array = np.zeros(count)
        self.angles: Array = np.zeros(count)
        self.found: dict[int, Contact] = {}
        self._geodesic_rows = layout.geodesics

    def solve(self, rotations: Array, positions: Array, geodesic_rows: Array | None) -> None:
        """Find all contacts.

        Args:
            rotations: Of the frames in the world, the world itself last, shape (F + 1, 3, 3).
            positions: Of their origins, shape (F + 1, 3), [m].
            geodesic_rows: What `GeodesicPaths.solve` gives for the same instant.
        """
        layout, local = self.layout, self.local
        frame = layout.point_frame
        if layout.contacts:
            self.points = _to_world(rotations[frame], positions[frame], local)
            for i, contact in enumerate(layout.contacts):
                if contact.closed:
                    found = self._solve_closed(contact, rotations, positions)
                    self.found[i] = found
                    place = contact.placement
                    row = found.row(place.rotation, place.translation)
                    self._store(i, row[:3], row[3:6], row[6], row[7])
            if geodesic_rows is not None:
                for i, row in zip(self._geodesic_rows, geodesic_rows, strict=True):
                    offset = layout.contacts[i].offset
                    start, end = offset.apply(row[:3]), offset.apply(row[3:6])
                    self._store(i, start, end, row[6], row[7])
        self.points = _to_world(rotations[frame], positions[frame], local)

    def _store(self, i: int, start: Vector3, end: Vector3, arc: float, angle: float) -> None:
        point = self.layout.contacts[i].point
        self.local[point], self.local[point + 1] = start, end
        self.arcs[i], self.angles[i] = arc, angle

    def _solve_closed(self, spec: ContactSpec, rotations: Array, positions: Array) -> Contact:
        place = spec.placement
        rotation = rotations[spec.frame] @ place.rotation
        origin = rotations[spec.frame] @ place.translation + positions[spec.frame]
        q = rotation.T @ (self.points[spec.after] - origin)
        element = spec.element
        if isinstance(element, Pulley):
            return pulley_contact(element.position, element.axis, element.radius, q)
        p = rotation.T @ (self.points[spec.before] - origin)
        assert spec.surface is not None
        geometry = spec.surface.geometry
        if isinstance(geometry, Sphere):
            return sphere_contact(p, q, geometry.radius, spec.side, inside=element.inside)
        assert isinstance(geometry, Cylinder)  # nothing else has a closed form
        return cylinder_contact(
            p, q, geometry.radius, geometry.length, spec.side, inside=element.inside
        )

    def friction_factors(self, velocities: Array, tensions: Array, mobility: Array) -> Array:
        """Return the tension of every straight piece relative to that at the origin, shape (S,).

        Capstan equation at every via point and contact with turning angle phi:
        ``T_after = T_before exp(mu phi tanh(v / v0))`` with v the speed at which the muscle slides
        towards its insertion, i.e. the rate of the straight pieces behind the contact.

        The slope of the tanh acts like a damper of ``f mu phi / v0``. Where that is stiff against
        the host's step, v0 grows to ``FRICTION_MARGIN f sum(mu phi) dt / m``: else friction would
        overshoot in every step, and shake light bodies instead of slowing them.

        Args:
            velocities: Rate of every straight piece, shape (S,), [m/s].
            tensions: At the origins, shape (m,), [N].
            mobility: dt / m of every muscle, shape (m,), [s/kg]; 0 keeps v0 as it is.
        """
        layout = self.layout
        factors = np.ones(len(layout.start))
        mu = {
            c.point: (c.element.friction, self.angles[i])
            for i, c in enumerate(layout.contacts)
            if isinstance(c.element, Wrap)
        }
        for i in range(len(layout.bounds) - 1):
            pieces = np.flatnonzero(layout.piece_muscle == i)
            rub = []
            for k in pieces[:-1]:
                corner = int(layout.start[k]) + 1
                coefficient, angle = mu.get(corner, (float(layout.point_friction[corner]), None))
                if coefficient and angle is None:
                    angle = self._turn(int(layout.start[k]), corner)
                rub.append(coefficient * angle if coefficient else 0.0)
            stiff = FRICTION_MARGIN * tensions[i] * sum(rub) * mobility[i]
            smooth = max(float(layout.friction_speed[i]), float(stiff))
            behind = float(np.sum(velocities[pieces]))
            exponent = 0.0
            for (k, after), share in zip(pairwise(pieces), rub, strict=True):
                behind -= float(velocities[k])
                exponent += share * np.tanh(behind / smooth)
                factors[after] = np.exp(exponent)
        return factors

    def _turn(self, before: int, corner: int) -> float:
        """Angle by which the path turns at a via point, [rad]."""
        a = self.points[corner] - self.points[before]
        b = self.points[corner + 1] - self.points[corner]
        return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def _to_world(rotations: Array, positions: Array, local: Array) -> Array:
    return np.asarray(np.einsum("kij,kj->ki", rotations, local) + positions)
