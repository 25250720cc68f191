"""C source of the geodesic paths of one robot: its tables, followed by the files in ``native``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cards_core.codegen.kernel import SourceKernel
from cards_core.errors import UnknownNameError
from cards_core.paths.wrapping.contact_guesses import (
    REFERENCE_ELLIPSOIDS,
    reference_ellipsoid,
)
from cards_core.paths.wrapping.geodesic import MATRIX, WEIGHTS
from cards_core.paths.wrapping.mesh import HullSurface
from cards_core.paths.wrapping.problem import GeodesicProblem
from cards_core.paths.wrapping.surfaces import (
    CylinderSurface,
    EllipsoidSurface,
    Surface,
    TorusSurface,
)
from cards_core.typing import Array

WARM_START_SIZE = 16
"""Numbers that the native code keeps per obstacle; see ``native/surfaces.c``."""

LANES = 8
"""Planes of a hull that the native code treats at once; see ``native/surfaces.c``."""

SOURCES = ("surfaces.c", "geodesics.c", "contact_guesses.c", "shooting.c", "chains.c")
"""Files of the folder ``native``, each using those before it."""

_TYPES = """\
typedef struct {
  int kind, closed, planes;
  double radii[3], weights[3], length, size, step;
  double ellipsoid_radii[3], centre[3], axes[9];
  double sharpness, bulge;
  const double *plane;
} surface_t;
typedef struct {
  int surface, link, has_side;
  double side[3], rotation[9], translation[3];
} obstacle_t;
typedef struct { int first, count, link_p, link_q; double p[3], q[3]; } chain_t;
"""


def geodesic_kernels(problem: GeodesicProblem) -> list[SourceKernel]:
    """Return the kernels ``geodesic_paths`` and ``geodesic_points``.

    ``geodesic_paths``: ``poses`` (n, 4, 4) to ``rows`` (k, 8), with ``warm_start`` (k, 16), the
    last solution, and ``failures`` (1,), which are kept from call to call: zero them to forget.
    ``lost`` (k,) is 1 where no path was found.

    ``geodesic_points``: ``rows``, ``warm_start`` and ``share`` (1,) to ``points`` (k, 3), the
    point of every contact at this share of its arc, in link coordinates.
    """
    count = len(problem.obstacles)
    shapes = (("rows", (count, 8)), ("warm_start", (count, WARM_START_SIZE)))
    paths = (
        "int {symbol}(const double **arg, double **res, long long *iw, double *w, int mem) {\n"
        "  solve_paths(arg[0], res[0], res[1], res[2], res[3]);\n  return 0;\n}\n"
    )
    points = (
        "int {symbol}(const double **arg, double **res, long long *iw, double *w, int mem) {\n"
        "  arc_points(arg[0], arg[1], arg[2][0], res[0]);\n  return 0;\n}\n"
    )
    return [
        SourceKernel(
            "geodesic_paths",
            (("poses", (problem.links, 4, 4)),),
            (*shapes, ("failures", (1,)), ("lost", (count,))),
            source_text(problem) + paths,
        ),
        SourceKernel(
            "geodesic_points", (*shapes, ("share", (1,))), (("points", (count, 3)),), points
        ),
    ]


def source_text(problem: GeodesicProblem) -> str:
    """Return the tables of a problem and the code that works on them."""
    surfaces = problem.surfaces
    hulls = [s for s in surfaces if isinstance(s, HullSurface)]
    sizes = {
        "LINKS": problem.links,
        "OBSTACLES": len(problem.obstacles),
        "CHAINS": len(problem.chains),
        "LONGEST": max((chain.count for chain in problem.chains), default=1),
        "PLANES": max((len(_padded(s)[1]) for s in hulls), default=LANES),
    }
    lines = ["#include <math.h>", "#include <string.h>"]
    lines += [f"#define {name} {value}" for name, value in sizes.items()]
    lines.append(_TYPES)
    lines += [_planes(i, s) for i, s in enumerate(surfaces) if isinstance(s, HullSurface)]
    lines.append(_table("surface_t surfaces", (_surface(i, s) for i, s in enumerate(surfaces))))
    rows = []
    for item in problem.obstacles:
        side = np.zeros(3) if item.side is None else item.side
        head = f"{item.surface}, {item.link}, {int(item.side is not None)}"
        pose = f"{_numbers(item.pose.rotation)}, {_numbers(item.pose.translation)}"
        rows.append(f"{{{head}, {_numbers(side)}, {pose}}}")
    lines.append(_table("obstacle_t obstacles", rows))
    rows = []
    for chain in problem.chains:
        head = f"{chain.first}, {chain.count}, {chain.link_before}, {chain.link_after}"
        rows.append(f"{{{head}, {_numbers(chain.before)}, {_numbers(chain.after)}}}")
    lines.append(_table("chain_t chains", rows))
    matrix = ",\n".join(_numbers(row) for row in MATRIX)
    lines.append(f"static const double MATRIX[11][11] = {{\n{matrix}}};")
    lines.append(f"static const double WEIGHTS[11] = {_numbers(WEIGHTS)};")
    folder = Path(__file__).parent / "native"
    lines += [(folder / name).read_text() for name in SOURCES]
    return "\n".join(lines)


def _surface(index: int, surface: Surface) -> str:
    radii, weights, length = np.zeros(3), np.zeros(3), 0.0
    sharpness, bulge, closed, planes, plane = 1.0, 1.0, 0, 0, "0"
    match surface:
        case EllipsoidSurface():
            kind, radii, weights = 0, surface.radii, surface.radii**-2.0
        case CylinderSurface():
            kind, radii, length = 1, np.array([surface.radius, 0.0, 0.0]), surface.length
        case TorusSurface():
            kind, radii = 2, np.array([surface.radius, surface.tube_radius, 0.0])
            closed = int(surface.closed)
        case HullSurface():
            kind, planes, plane = 3, len(_padded(surface)[1]), f"planes{index}"
            sharpness, bulge = surface.sharpness, surface.bulge
        case _:
            raise UnknownNameError.of_type("surface", surface, REFERENCE_ELLIPSOIDS)
    ellipsoid = reference_ellipsoid(surface)
    values = [
        f"{kind}, {closed}, {planes}",
        _numbers(radii),
        _numbers(weights),
        f"{_number(length)}, {_number(surface.size)}, {_number(surface.step)}",
        f"{_numbers(ellipsoid.radii)}, {_numbers(ellipsoid.centre)}",
        _numbers(ellipsoid.rotation),
        f"{_number(sharpness)}, {_number(bulge)}, {plane}",
    ]
    return "{" + ", ".join(values) + "}"


def _padded(surface: HullSurface) -> tuple[Array, Array]:
    """Normals and offsets with planes that are never met, up to a multiple of `LANES`."""
    missing = -len(surface.offsets) % LANES
    far = np.full(missing, 1e6 * surface.size)
    return np.vstack([surface.normals, np.zeros((missing, 3))]), np.append(surface.offsets, far)


def _planes(index: int, surface: HullSurface) -> str:
    normals, offsets = _padded(surface)
    values = np.concatenate([normals.T.ravel(), offsets])
    return f"static const double planes{index}[{len(values)}] = {_numbers(values)};"


def _table(head: str, rows: Iterable[str]) -> str:
    items = list(rows)
    return f"static const {head}[{len(items)}] = {{\n" + ",\n".join(items) + "};"


def _numbers(values: Array | Sequence[float]) -> str:
    return "{" + ", ".join(_number(v) for v in np.ravel(np.asarray(values))) + "}"


def _number(value: float) -> str:
    return "INFINITY" if value == np.inf else float(value).hex()
