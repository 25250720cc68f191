"""A smooth convex body in place of a mesh.

The planes ``n_k . x = h_k`` of the mesh's convex hull make the level set

    g(x) = log(sum_k exp(beta (n_k . x - h_k))) / beta + |x - c|^2 / (2 R) = 0

The first term is a smooth maximum: edges are rounded with a radius of about ``2 / beta``. The
second lets flat faces bulge a little, so that the curvature is positive everywhere. Both are
convex and infinitely smooth, and so is the body.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.wrapping.surfaces import Surface
from cards_core.typing import Array, Matrix3, Vector3

NEGLIGIBLE = 60.0
"""No plane's weight gets smaller than exp(-60) of the largest: that changes no digit."""


class HullSurface(Surface):
    """See the module.

    Args:
        normals: Outward unit normals n_k, shape (k, 3).
        offsets: h_k, shape (k,), [m].
        sharpness: beta, [1/m].
        bulge: R, [m].
        centre: c, a point well inside, shape (3,), [m].
        radii, rotation: Ellipsoid about ``centre`` that resembles the body, shape (3,), [m], and
            its axes as columns.
        deviation: Largest distance from the convex hull, [m].
        step: See `Surface`.
    """

    def __init__(
        self,
        *,
        normals: Array,
        offsets: Array,
        sharpness: float,
        bulge: float,
        centre: Vector3,
        radii: Vector3,
        rotation: Matrix3,
        deviation: float,
        step: float,
    ) -> None:
        self.normals, self.offsets = normals, offsets
        self.sharpness, self.bulge = sharpness, bulge
        self.centre = centre
        self.radii, self.rotation = radii, rotation
        self.size = float(radii.max())
        self.deviation = deviation
        self.step = step

    def _weights(self, x: Vector3) -> tuple[Array, float]:
        """Weights of the planes and the smooth maximum of their heights."""
        heights = self.normals @ x - self.offsets
        top = float(heights.max())
        weights = np.exp(np.maximum(self.sharpness * (heights - top), -NEGLIGIBLE))
        total = float(weights.sum())
        return weights / total, top + math.log(total) / self.sharpness

    def cover(self, x: Vector3) -> float:
        """See `Surface`."""
        from_centre = x - self.centre
        maximum = self._weights(x)[1]
        return maximum + 0.5 * float(from_centre @ from_centre) / self.bulge

    def _gradient(self, x: Vector3) -> Vector3:
        weights, _ = self._weights(x)
        return np.asarray(weights @ self.normals + (x - self.centre) / self.bulge)

    def height(self, x: Vector3) -> float:
        """See `Surface`."""
        return self.cover(x) / max(float(np.linalg.norm(self._gradient(x))), 1e-3)

    def project(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        for _ in range(6):
            gradient = self._gradient(x)
            x = x - self.cover(x) / max(float(gradient @ gradient), 1e-6) * gradient
        return x

    def normal(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        gradient = self._gradient(x)
        return np.asarray(gradient / max(float(np.linalg.norm(gradient)), 1e-9))

    def curvature(self, x: Vector3, t: Vector3) -> tuple[Vector3, float, float, float]:
        """See `Surface`."""
        weights, _ = self._weights(x)
        mean = weights @ self.normals
        gradient = mean + (x - self.centre) / self.bulge
        slope = max(float(np.linalg.norm(gradient)), 1e-9)
        n = gradient / slope
        b = np.cross(n, t)
        along, across = self.normals @ t - mean @ t, self.normals @ b - mean @ b
        scale = self.sharpness / slope
        round_off = 1.0 / (self.bulge * slope)
        return (
            n,
            scale * float(weights @ (along * along)) + round_off,
            scale * float(weights @ (along * across)),
            scale * float(weights @ (across * across)) + round_off,
        )
