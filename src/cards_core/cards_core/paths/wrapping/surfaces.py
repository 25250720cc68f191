"""Smooth surfaces as geodesics see them: height, normal and curvature.

A surface is the zero set of a height that is positive outside. Along a unit tangent ``t`` with
outward normal ``n`` and ``b = n x t`` the shape operator S (``dn = S dx``) has the entries

    k_t = t.S t,   tau = t.S b,   k_b = b.S b

positive where the surface is convex. A geodesic obeys ``x' = t``, ``t' = -k_t n``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from cards_core.typing import Vector3

STEP = 0.25
"""Longest integration step as a multiple of the smallest radius of curvature."""


class Surface(ABC):
    """A smooth surface in its own frame, [m].

    Attributes:
        step: Longest arc that one integration step may cover, [m].
        size: A typical radius, [m].
    """

    step: float
    size: float

    @abstractmethod
    def height(self, x: Vector3) -> float:
        """Return a function of position that is 0 on the surface, with unit slope there, [m]."""

    @abstractmethod
    def cover(self, x: Vector3) -> float:
        """Return a convex function of position, negative inside the surface's convex hull."""

    @abstractmethod
    def project(self, x: Vector3) -> Vector3:
        """Return a point of the surface that is next to a point near it, [m]."""

    @abstractmethod
    def normal(self, x: Vector3) -> Vector3:
        """Return the outward unit normal."""

    @abstractmethod
    def curvature(self, x: Vector3, t: Vector3) -> tuple[Vector3, float, float, float]:
        """Return n, k_t, tau, k_b [1/m] at ``x`` along the unit tangent ``t``."""


class EllipsoidSurface(Surface):
    """``|y| = 1`` with ``y = x / radii``; a sphere if the radii are equal.

    Args:
        radii: Semi-axes, shape (3,), [m].
    """

    def __init__(self, radii: Vector3) -> None:
        self.radii = np.array(radii, dtype=float)
        smallest, largest = float(self.radii.min()), float(self.radii.max())
        self.step = STEP * smallest**2 / largest
        self.size = largest

    def height(self, x: Vector3) -> float:
        """See `Surface`."""
        y = x / self.radii
        slope = max(float(np.linalg.norm(y / self.radii)), 1e-9 / self.size)
        return 0.5 * float(y @ y - 1.0) / slope

    def cover(self, x: Vector3) -> float:
        """See `Surface`."""
        y = x / self.radii
        return float(y @ y - 1.0)

    def project(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        return np.asarray(x / max(float(np.linalg.norm(x / self.radii)), 1e-9))

    def normal(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        gradient = x / self.radii**2
        return np.asarray(gradient / np.linalg.norm(gradient))

    def curvature(self, x: Vector3, t: Vector3) -> tuple[Vector3, float, float, float]:
        """See `Surface`."""
        gradient = x / self.radii**2
        slope = float(np.linalg.norm(gradient))
        n = gradient / slope
        b = np.cross(n, t)
        scaled = t / self.radii**2 / slope
        return n, float(t @ scaled), float(b @ scaled), float(b @ (b / self.radii**2)) / slope


class CylinderSurface(Surface):
    """Cylinder around z.

    Args:
        radius: [m].
        length: Along z, centred: only while the middle of the contact lies within it does the
            path touch, [m].
    """

    def __init__(self, radius: float, length: float = math.inf) -> None:
        self.radius, self.length = radius, length
        self.step = STEP * radius
        self.size = radius

    def height(self, x: Vector3) -> float:
        """See `Surface`."""
        return math.hypot(x[0], x[1]) - self.radius

    def cover(self, x: Vector3) -> float:
        """See `Surface`."""
        return self.height(x)

    def project(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        scale = self.radius / max(math.hypot(x[0], x[1]), 1e-9 * self.radius)
        return np.array([x[0] * scale, x[1] * scale, x[2]])

    def normal(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        rho = max(math.hypot(x[0], x[1]), 1e-9 * self.radius)
        return np.array([x[0] / rho, x[1] / rho, 0.0])

    def curvature(self, x: Vector3, t: Vector3) -> tuple[Vector3, float, float, float]:
        """See `Surface`."""
        n = self.normal(x)
        around = np.array([-n[1], n[0], 0.0])
        rho = math.hypot(x[0], x[1])
        along, across = float(t @ around), float(np.cross(n, t) @ around)
        return n, along * along / rho, along * across / rho, across * across / rho


class TorusSurface(Surface):
    """Tube of radius r around a circle of radius R in the plane z = 0, or its convex hull.

    Args:
        radius: R, [m].
        tube_radius: r < R, [m].
        closed: Whether two flat discs, up to the distance R from the axis, close its hole.
    """

    def __init__(self, radius: float, tube_radius: float, *, closed: bool = False) -> None:
        self.radius, self.tube_radius, self.closed = radius, tube_radius, closed
        self.step = STEP * (tube_radius if closed else min(tube_radius, radius - tube_radius))
        self.size = radius + tube_radius

    def _polar(self, x: Vector3) -> tuple[float, float, float]:
        """Distance from the axis, how far that of the nearest point within is, and the rest."""
        rho = max(math.hypot(x[0], x[1]), 1e-9 * self.radius)
        beyond = max(rho - self.radius, 0.0) if self.closed else rho - self.radius
        return rho, beyond, max(math.hypot(beyond, x[2]), 1e-9 * self.tube_radius)

    def height(self, x: Vector3) -> float:
        """See `Surface`."""
        return self._polar(x)[2] - self.tube_radius

    def cover(self, x: Vector3) -> float:
        """See `Surface`; only of a closed one."""
        return self.height(x)

    def project(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        return np.asarray(x - self.height(x) * self.normal(x))

    def normal(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        rho, beyond, distance = self._polar(x)
        radial = beyond / (rho * distance)
        return np.array([x[0] * radial, x[1] * radial, x[2] / distance])

    def curvature(self, x: Vector3, t: Vector3) -> tuple[Vector3, float, float, float]:
        """See `Surface`."""
        rho, beyond, distance = self._polar(x)
        n = self.normal(x)
        around = np.array([-x[1], x[0], 0.0]) / rho
        ring, tube = beyond / (distance * rho), 1.0 / distance
        if self.closed and rho < self.radius:
            tube = 0.0
        along, across = float(t @ around), float(np.cross(n, t) @ around)
        # the other principal direction is n x around
        k_t = ring * along**2 + tube * across**2
        k_b = ring * across**2 + tube * along**2
        return n, k_t, (ring - tube) * along * across, k_b
