"""Ground as heights on a regular grid: interpolation, triangles, files.

Between its points the surface is two triangles per cell, split from the lower left to the upper
right corner, as MuJoCo splits the cells of its height fields: contacts, meshes for other programs
and `surface_height` are of one surface.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_fits
from cards_core.errors import CardsError
from cards_core.foreign_files import opened, read_text
from cards_core.robot.elements import HeightField
from cards_core.table_files import read_npz
from cards_core.typing import Array

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
TABLES = (".npz", ".csv")
MESHES = (".stl", ".obj")

MOST_POINTS = 20_000_000
"""Of a file: a picture of some kilobytes may have thousands of millions."""

BYTES_PER_POINT = 200.0
"""What a point of a grid takes as array, in text and as triangles, about."""


def grid_axes(field: HeightField) -> tuple[Array, Array]:
    """Return the x of the columns and the y of the rows, [m]."""
    rows, columns = field.heights.shape
    half_x, half_y = 0.5 * field.size[0], 0.5 * field.size[1]
    return np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows)


def grid_points(size: tuple[float, float], resolution: float) -> tuple[Array, Array]:
    """Return x and y of the points of a grid around the origin, shape (rows, columns) each.

    Args:
        size: Along x and y, [m].
        resolution: Largest distance of neighbours, [m].

    Raises:
        CardsError: More points than fit into memory.
    """
    counts = [max(2, int(np.ceil(length / resolution - 1e-9)) + 1) for length in size]
    check_fits(
        float(counts[0]) * counts[1], BYTES_PER_POINT, "points of a terrain", "a larger resolution"
    )
    x = np.linspace(-0.5 * size[0], 0.5 * size[0], counts[0])
    y = np.linspace(-0.5 * size[1], 0.5 * size[1], counts[1])
    across, along = np.meshgrid(x, y)
    return across, along


def surface_height(field: HeightField, x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Return the height of the surface, [m], NaN beside it; x and y of one shape.

    Args:
        field: The height field.
        x: [m].
        y: [m].
    """
    xs, ys = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    heights = field.heights
    rows, columns = heights.shape
    u = (xs / field.size[0] + 0.5) * (columns - 1)
    v = (ys / field.size[1] + 0.5) * (rows - 1)
    inside = (u >= 0.0) & (u <= columns - 1) & (v >= 0.0) & (v <= rows - 1)
    u, v = np.where(inside, u, 0.0), np.where(inside, v, 0.0)
    i = np.minimum(u.astype(int), columns - 2)
    j = np.minimum(v.astype(int), rows - 2)
    a, b = u - i, v - j
    low, high = heights[j, i], heights[j + 1, i + 1]
    # below the diagonal the third corner is to the right, above it is ahead
    right = low + a * (heights[j, i + 1] - low) + b * (high - heights[j, i + 1])
    ahead = low + b * (heights[j + 1, i] - low) + a * (high - heights[j + 1, i])
    out: Array = np.where(inside, np.where(a >= b, right, ahead), np.nan)
    return out


def field_triangles(field: HeightField) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return the surface as triangles that turn left seen from above.

    Returns:
        Vertices, shape (V, 3), [m], and the indices of three for each triangle, shape (F, 3).
    """
    x, y = grid_axes(field)
    across, along = np.meshgrid(x, y)
    vertices = np.stack([across, along, field.heights], axis=-1).reshape(-1, 3)
    rows, columns = field.heights.shape
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, ahead, both = corner + 1, corner + columns, corner + columns + 1
    lower = np.stack([corner, right, both], axis=-1)
    upper = np.stack([corner, both, ahead], axis=-1)
    return vertices, np.concatenate([lower, upper])


# Files -------------------------------------------------------------------------------------------


def read_heights(path: Path) -> Array:
    """Return the heights in a file, shape (rows, columns), rows along y.

    Images are 0 (black) to 1 (white), their first row is the last one here; tables are in metres.

    Raises:
        CardsError: The file is missing, damaged, or of another kind.
    """
    ending = path.suffix.lower()
    if ending not in (*IMAGES, *TABLES):
        raise CardsError(
            f"{path}: heights in files ending in '{ending}' (expected: an image, "
            f"{', '.join(IMAGES)}, or a table, {', '.join(TABLES)})"
        )
    if not path.is_file():
        raise CardsError(f"{path} does not exist (expected: a file with heights)")
    if ending == ".npz":
        found = read_npz(path, ["height"])
        if "height" not in found:
            raise CardsError(f"{path} holds no 'height' (expected: an array of rows along y, [m])")
        heights = found["height"]
    elif ending == ".csv":
        heights = _read_csv(path)
    else:
        heights = _read_image(path)
    if heights.ndim != 2 or min(heights.shape) < 2:
        raise CardsError(
            f"{path} holds heights of shape {heights.shape} (expected: rows and columns, at least "
            "2 of each)"
        )
    _check_count(heights.shape[0], heights.shape[1], path)
    if not np.isfinite(heights).all():
        raise CardsError(f"{path} holds heights that are not finite (expected: numbers)")
    return heights


def _check_count(rows: int, columns: int, path: Path) -> None:
    if rows * columns > MOST_POINTS:
        raise CardsError(
            f"{path} holds {rows} x {columns} heights (expected: at most {MOST_POINTS} in all)"
        )


def _read_csv(path: Path) -> Array:
    rows: list[list[float]] = []
    lines = read_text(path, "rows of numbers").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append([float(cell) for cell in line.split(",")])
        except ValueError:
            raise CardsError(
                f"{path}:{number}: '{line.strip()[:60]}' (expected: numbers with commas between "
                "them, no names)"
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise CardsError(
                f"{path}:{number}: {len(rows[-1])} values (expected: {len(rows[0])}, as in the "
                "first row)"
            )
    if not rows:
        raise CardsError(f"{path} is empty (expected: rows of numbers)")
    return np.array(rows, dtype=float)


def _read_image(path: Path) -> Array:
    # imported here: Gazebo's Python has no Pillow, and needs none
    from PIL import Image

    try:
        with opened(path, "an image") as stream, Image.open(stream) as image:
            _check_count(*image.size, path)
            deep = image.mode.startswith(("I", "F"))
            pixels = np.asarray(image if deep else image.convert("L"))
    except CardsError:
        raise
    except Exception as error:  # each format of Pillow raises exceptions of its own
        raise CardsError(f"{path} cannot be read: {error} (expected: an image)") from error
    scale = 255.0
    if deep:
        scale = 65535.0 if pixels.size and pixels.max() > 1.0 else 1.0
    return np.asarray(pixels[::-1] / scale)


def mesh_heights(path: Path, resolution: float, scale: float) -> HeightField:
    """Return the upper surface of a mesh on a grid, where the mesh has it; rows along y.

    Where nothing of the mesh is above or below a point, the lowest height found counts. The field
    is centred: the middle of the mesh's bounding box is its origin in x and y.

    Args:
        path: STL or OBJ, z up.
        resolution: Largest distance of neighbours, [m].
        scale: Length of the file's unit, [m].

    Raises:
        CardsError: The file is missing, damaged, of another kind, or no surface seen from above.
    """
    ending = path.suffix.lower()
    if ending not in MESHES:
        raise CardsError(
            f"{path}: a mesh in a file ending in '{ending}' (expected: {', '.join(MESHES)})"
        )
    if not path.is_file():
        raise CardsError(f"{path} does not exist (expected: a mesh)")
    # imported here: who reads no meshes needs no trimesh
    from cards_core.robot.mesh_file import load_triangles

    try:
        vertices, faces = load_triangles(path)
        corners = vertices[faces] * scale
    except Exception as error:  # each format of trimesh raises exceptions of its own
        raise CardsError(f"{path} cannot be read: {error} (expected: a mesh)") from error
    if len(corners) == 0 or not np.isfinite(corners).all():
        raise CardsError(f"{path} holds no triangles (expected: a mesh)")
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    size = (float(high[0] - low[0]), float(high[1] - low[1]))
    if min(size) <= 0.0:
        raise CardsError(f"{path} is {size[0]:g} x {size[1]:g} m seen from above (expected: more)")
    corners[..., :2] -= 0.5 * (low + high)[:2]
    across, along = grid_points(size, resolution)
    heights = np.full(across.shape, -np.inf)
    rows, columns = across.shape
    step = np.array([size[0] / (columns - 1), size[1] / (rows - 1)])
    for triangle in corners:
        _raise_to(heights, triangle, (across, along), step)
    heights[np.isneginf(heights)] = heights[np.isfinite(heights)].min(initial=float(low[2]))
    return HeightField(heights, size)


def _raise_to(heights: Array, triangle: Array, grid: tuple[Array, Array], step: Array) -> None:
    """Raise the points of a grid that are under a triangle to it."""
    across, along = grid
    start = np.array([across[0, 0], along[0, 0]])
    plan = triangle[:, :2]
    (ux, uy), (vx, vy) = plan[1] - plan[0], plan[2] - plan[0]
    area = ux * vy - uy * vx
    if abs(area) < 1e-12 * float(step[0] * step[1]):
        return  # upright: its edges are those of others
    tolerance = 1e-9
    first = np.ceil((plan.min(axis=0) - start) / step - tolerance).astype(int)
    last = np.floor((plan.max(axis=0) - start) / step + tolerance).astype(int)
    part = np.s_[max(first[1], 0) : last[1] + 1, max(first[0], 0) : last[0] + 1]
    x, y = across[part] - plan[0, 0], along[part] - plan[0, 1]
    a, b = (x * vy - y * vx) / area, (y * ux - x * uy) / area
    z = triangle[:, 2]
    found = z[0] + a * (z[1] - z[0]) + b * (z[2] - z[0])
    inside = (a >= -tolerance) & (b >= -tolerance) & (a + b <= 1.0 + tolerance)
    heights[part] = np.where(inside, np.maximum(heights[part], found), heights[part])
