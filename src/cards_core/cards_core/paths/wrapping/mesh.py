"""The smooth convex body in place of a mesh: vertices from STL or OBJ files, hull, level set.

The planes ``n_k . x = h_k`` of the mesh's convex hull make the level set

    g(x) = log(sum_k exp(beta (n_k . x - h_k))) / beta + |x - c|^2 / (2 R) = 0

The first term is a smooth maximum: edges are rounded with a radius of about ``2 / beta``. The
second lets flat faces bulge a little, so that the curvature is positive everywhere. Both are
convex and infinitely smooth, and so is the body.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from cards_core.named_files import confinement, named_folder
from cards_core.paths.wrapping import geodesic
from cards_core.paths.wrapping.surfaces import Surface
from cards_core.robot.stl_file import stl_corners, text_vertices
from cards_core.typing import Array, Matrix3, Vector3


def mesh_path(uri: str, source: str | None) -> Path | None:
    """Return the file that a mesh URI names, or None if there is none.

    Absolute paths are taken as they are: the readers of descriptions make paths absolute, and
    refuse those that lead out of the model. Relative ones start from the description's folder.
    ``model://robot/meshes/hand.stl`` and ``package://...`` are searched from that folder upwards.
    These count where a description in it may name files (`cards_core.named_files`). ``%20`` of
    a URI is a blank; in a path it is what it says, which is what readers have checked.
    """
    folder = Path(source).resolve().parent if source else Path.cwd()
    scheme, separator, rest = uri.partition("file:" if uri.startswith("file:") else "://")
    if not scheme and separator:
        scheme, rest = "file", rest.removeprefix("//")
    rest = unquote(rest)  # before it is checked
    candidates: list[tuple[Path, Path | None]]
    if not separator or scheme == "file":
        path = Path(rest.removeprefix("localhost") if separator else uri)
        candidates = [(folder / path, None)]
        checked = source is not None and not path.is_absolute()
    else:
        name, _, below = rest.partition("/")
        bases = (folder, *folder.parents)
        candidates = [(base / rest, named_folder(base, name)) for base in bases]
        candidates.append((folder / below, None))
        checked = True
    try:
        found = [(file, named) for file, named in candidates if file.is_file()]
    except (OSError, ValueError):  # a name that is too long, or no name
        return None
    if not found:
        return None
    if not checked:
        return found[0][0]
    allowed = confinement(folder)
    return next((file for file, named in found if allowed.holds(file, named)), None)


def mesh_vertices(data: bytes, name: str) -> Array:
    """Return the vertices in a mesh file, shape (V, 3), in the file's unit.

    Args:
        data: Content of the file.
        name: Its name; the ending says which format it is.

    Raises:
        ValueError: An unknown format or a damaged file, with the reason.
    """
    ending = name.rpartition(".")[2].lower()
    if ending == "stl":
        vertices = stl_corners(data).reshape(-1, 3)
    elif ending == "obj":
        vertices = text_vertices(data, "v")
    else:
        raise ValueError(f"muscles cannot wrap over files ending in '.{ending}'")
    if len(vertices) < 4:
        raise ValueError(f"it has {len(vertices)} vertices")
    if not np.all(np.isfinite(vertices)):
        raise ValueError("it has vertices that are not finite")
    return np.unique(vertices, axis=0)


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

    def gradient(self, x: Vector3) -> Vector3:
        """Return that of `cover`, shape (3,)."""
        weights, _ = self._weights(x)
        return np.asarray(weights @ self.normals + (x - self.centre) / self.bulge)

    def height(self, x: Vector3) -> float:
        """See `Surface`."""
        return self.cover(x) / max(float(np.linalg.norm(self.gradient(x))), 1e-3)

    def project(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        for _ in range(6):
            gradient = self.gradient(x)
            x = x - self.cover(x) / max(float(gradient @ gradient), 1e-6) * gradient
        return x

    def normal(self, x: Vector3) -> Vector3:
        """See `Surface`."""
        gradient = self.gradient(x)
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
    # embedded Pythons without SciPy load cached code, which needs no hull
    from scipy.spatial import ConvexHull, QhullError

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


def _samples(hull: Any) -> Array:
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


def _planes(hull: Any, samples: Array, rotation: Matrix3) -> tuple[Array, Array]:
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
