"""From vertices to the smooth convex body that muscles wrap over."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from cards_core.paths.wrapping import geodesic
from cards_core.paths.wrapping.mesh_surface import HullSurface
from cards_core.typing import Array, Matrix3, Vector3

MOST_PLANES = 100
"""Planes of the hull that are kept: those that the others describe worst."""

SHARPNESS = 20.0
"""Inverse rounding length times the body's mean radius."""

BULGE = 20.0
"""Radius of curvature of flat faces relative to the largest radius."""

SAMPLE_COUNT = 1500
"""Points of the hull at which the body is fitted."""

FIT_ROUNDS = 8
"""Gauss-Newton steps of the fit."""

STEP_ERROR = 1e-8
"""Error relative to the body's size that the integration of a test geodesic may have."""


def smooth_hull(vertices: Array) -> HullSurface:
    """Return a smooth convex body close to the convex hull of points.

    At most `MOST_PLANES` planes of the hull are kept; their offsets are then fitted so that the
    level set passes through points spread over the hull (least squares).

    Args:
        vertices: shape (V, 3), [m].

    Raises:
        ValueError: The points span no volume.
    """
    try:
        hull = ConvexHull(vertices)
    except (QhullError, ValueError):
        raise ValueError("its vertices span no volume") from None
    samples = _samples(hull)
    rotation = _axes(samples)
    along = vertices[hull.vertices] @ rotation
    low, high = along.min(axis=0), along.max(axis=0)
    radii, centre = 0.5 * (high - low), rotation @ (0.5 * (high + low))
    normals, offsets = _planes(hull, samples, rotation)
    sharpness = SHARPNESS / float(np.prod(radii) ** (1.0 / 3.0))
    bulge = BULGE * float(radii.max())
    offsets = _fitted(normals, offsets, samples, sharpness=sharpness, bulge=bulge, centre=centre)
    surface = HullSurface(
        normals=normals,
        offsets=offsets,
        sharpness=sharpness,
        bulge=bulge,
        centre=centre,
        radii=radii,
        rotation=rotation,
        deviation=0.0,
        step=1.0 / sharpness,
    )
    surface.deviation = max(abs(surface.height(y)) for y in samples)
    surface.step = _step(surface)
    return surface


def _samples(hull: ConvexHull) -> Array:
    """Points spread evenly over the hull's faces."""
    corners = hull.points[hull.simplices]
    area = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    rng = np.random.default_rng(0)
    face = rng.choice(len(area), SAMPLE_COUNT, p=area / area.sum())
    weights = rng.dirichlet(np.ones(3), SAMPLE_COUNT)
    return np.asarray(np.einsum("ki,kij->kj", weights, corners[face]))


def _axes(samples: Array) -> Matrix3:
    """Principal axes of the surface as columns, right-handed."""
    axes = np.linalg.eigh(np.cov(samples.T))[1]
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return np.asarray(axes)


def _planes(hull: ConvexHull, samples: Array, rotation: Matrix3) -> tuple[Array, Array]:
    """Normals and offsets of the planes that are kept."""
    # facets of the same plane only count once
    rounded = np.round(hull.equations / [1.0, 1.0, 1.0, np.ptp(hull.points)], 9)
    equations = hull.equations[np.unique(rounded, axis=0, return_index=True)[1]]
    facets, heights = equations[:, :3], -equations[:, 3]
    if len(facets) <= MOST_PLANES:
        return facets, heights
    # the six sides of the box along the principal axes make any selection a bounded body
    normals = np.vstack([rotation.T, -rotation.T])
    offsets = (hull.points[hull.vertices] @ normals.T).max(axis=0)
    below = heights[:, None] - facets @ samples.T
    gap = (offsets[:, None] - normals @ samples.T).min(axis=0)
    while len(normals) < MOST_PLANES:
        worst = int(np.argmax(gap))
        facet = int(np.argmin(below[:, worst]))
        normals, offsets = np.vstack([normals, facets[facet]]), np.append(offsets, heights[facet])
        gap = np.minimum(gap, below[facet])
    return normals, offsets


def _fitted(
    normals: Array,
    offsets: Array,
    samples: Array,
    *,
    sharpness: float,
    bulge: float,
    centre: Vector3,
) -> Array:
    """Offsets for which the level set comes closest to the samples."""
    bulges = 0.5 * ((samples - centre) ** 2).sum(axis=1) / bulge
    for _ in range(FIT_ROUNDS):
        heights = sharpness * (samples @ normals.T - offsets)
        top = heights.max(axis=1, keepdims=True)
        weights = np.exp(heights - top)
        total = weights.sum(axis=1, keepdims=True)
        level = (top + np.log(total))[:, 0] / sharpness + bulges
        weights /= total
        # a plane that the samples hardly feel stays where it is
        damping = 1e-3 * len(samples) / len(normals) * np.eye(len(normals))
        change = np.linalg.solve(weights.T @ weights + damping, weights.T @ level)
        offsets = offsets + change
    return offsets


def _step(surface: HullSurface) -> float:
    """Longest integration step that the curvature of the body allows."""
    rng = np.random.default_rng(0)
    starts = []
    for _ in range(8):
        y = rng.normal(size=3)
        x = surface.project(
            surface.centre + surface.rotation @ (surface.radii * y / np.linalg.norm(y))
        )
        t = np.cross(surface.normal(x), rng.normal(size=3))
        starts.append((x, t / np.linalg.norm(t)))
    length = 0.5 * surface.size

    def ends(count: int) -> Array:
        surface.step = length / count
        return np.array([geodesic.trace(surface, x, t, length).end for x, t in starts])

    count = 4
    coarse = ends(count)
    while count < geodesic.MAX_STEPS:
        finer = math.ceil(1.5 * count)
        fine = ends(finer)
        if float(np.abs(fine - coarse).max()) < STEP_ERROR * surface.size:
            break
        count, coarse = finer, fine
    return length / count
