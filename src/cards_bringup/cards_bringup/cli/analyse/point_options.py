"""What ``./cards analyse workspace`` says about points, turned into a point set."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from cards_bringup.option_types import number_in
from cards_core.analysis.workspace import Axis, Grid, PointSet, PointSetError, Rays, Samples
from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.analysis.workspace.point_file import read_points
from cards_core.robot import Tree


def point_set(args: argparse.Namespace, tree: Tree) -> PointSet:
    """Return the points that the arguments describe.

    Raises:
        UnknownNameError: The robot has no such coordinate.
        PointSetError: The text cannot be understood, or describes no points.
    """
    coordinates = Coordinates(tree)
    given = assignments(args.fix, "--fix", "x=0.5", lambda name: coordinates.find(name).name)
    fixed = {full: number_of(text, f"--fix {name}") for full, name, text in given}
    lines = _lines(args, coordinates)
    starts = {name: begin for name, (begin, _) in lines.items()}
    if both := sorted(set(starts) & set(fixed)):
        raise PointSetError(f"'{both[0]}' is given twice, by --fix and --rays (expected: once)")
    points = _points(args, coordinates, {**fixed, **starts})
    if not lines and not args.fan:
        return points
    common: dict[str, Any] = {"scan": args.scan, "tolerance": args.tolerance}
    if args.fan:
        if lines:
            raise PointSetError("--rays and --fan (expected: one of them)")
        among = tuple(name for name in (args.among or "").split(",") if name)
        return Rays(
            points,
            length=args.length,
            among=among,
            per_start=args.fan,
            seed=args.seed,
            **common,
        )
    direction, length = _direction(lines, coordinates)
    return Rays(points, direction=direction, length=length, **common)


def _points(
    args: argparse.Namespace, coordinates: Coordinates, fixed: Mapping[str, float]
) -> PointSet:
    kinds = [
        name for name in ("grid", "samples", "points") if getattr(args, name) not in (None, [])
    ]
    if len(kinds) > 1:
        raise PointSetError(f"--{' and --'.join(kinds)} (expected: one of them)")
    if args.points:
        return read_points(args.points, coordinates.tree, fixed=fixed)
    if args.samples is not None:
        texts = assignments(args.range, "--range", "x=-1:1", lambda n: coordinates.find(n).name)
        ranges = {full: _range(text, f"--range {name}") for full, name, text in texts}
        home = tuple(name for name in (args.at_home or "").split(",") if name)
        return Samples(args.samples, args.seed, ranges, fixed, home)
    grid = grid_of(args.grid, lambda name: coordinates.find(name).name, fixed)
    if not grid.axes and not args.grid and not (args.rays or args.fan):
        raise PointSetError(
            "no points (expected: --grid, --samples, --points, --rays or --fan; coordinates: "
            f"{', '.join(c.name for c in coordinates.all)})"
        )
    return grid


def grid_of(
    texts: list[str] | None, find: Callable[[str], str], fixed: Mapping[str, float]
) -> Grid:
    """Read ``--grid`` texts; a name with one value instead of a range is held there.

    Args:
        texts: As given, e.g. ``["x=-2:2:41,z=0.5"]``.
        find: Returns the full name of a coordinate.
        fixed: Values of other coordinates.

    Raises:
        PointSetError: A text cannot be understood.
    """
    axes: list[Axis] = []
    values = dict(fixed)
    for full, name, text in assignments(texts, "--grid", "x=-2:2:41", find):
        words = text.split(":")
        if full in values:
            raise PointSetError(f"'{full}' is given twice, by --grid and besides (expected: once)")
        if len(words) == 1:
            values[full] = number_of(text, f"--grid {name}")
        elif len(words) == 3 and words[2].strip().isdecimal() and int(words[2]):
            begin, end = _range(":".join(words[:2]), f"--grid {name}", ordered=False)
            axes.append(Axis(full, begin, end, int(words[2])))
        else:
            raise PointSetError(
                f"--grid {name}={text} (expected: first:last:number, e.g. {name}=-2:2:41)"
            )
    return Grid(tuple(axes), values)


def _lines(args: argparse.Namespace, coordinates: Coordinates) -> dict[str, tuple[float, float]]:
    texts = assignments(args.rays, "--rays", "x=-2:2", lambda name: coordinates.find(name).name)
    return {full: _range(text, f"--rays {name}", ordered=False) for full, name, text in texts}


def _direction(
    lines: Mapping[str, tuple[float, float]], coordinates: Coordinates
) -> tuple[dict[str, float], float]:
    """Return direction and length: s in [m] or [rad], or 0..1 where both units occur."""
    steps = {name: end - begin for name, (begin, end) in lines.items()}
    units = {coordinates.find(name).unit for name in steps}
    length = math.hypot(*steps.values()) if len(units) == 1 else 1.0
    if length == 0.0 or not any(steps.values()):
        raise PointSetError("--rays that end where they begin (expected: e.g. x=-2:2)")
    names = coordinates.tree.velocity_names
    direction = {names[coordinates.find(name).v]: step / length for name, step in steps.items()}
    return direction, length


def assignments(
    texts: list[str] | None, option: str, example: str, find: Callable[[str], str] = str
) -> list[tuple[str, str, str]]:
    """Split ``["x=1,y=2", "z=3"]`` into full names, names as given, and values.

    Args:
        texts: As given.
        option: For messages, as is ``example``.
        example: What would be right.
        find: Returns the full name of what was named.

    Raises:
        PointSetError: A part is no assignment, or two of them are of the same name.
    """
    out: dict[str, tuple[str, str]] = {}
    for part in ",".join(texts or []).split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        if part.strip() == "":
            continue
        if not sign or not name or not value:
            raise PointSetError(f"{option} {part} (expected: e.g. {option} {example})")
        full = find(name)
        if full in out:
            before = "=".join(out[full])
            raise PointSetError(
                f"{option} {name}={value}: '{full}' is given twice, before as {before} "
                "(expected: once)"
            )
        out[full] = name, value
    return [(full, *given) for full, given in out.items()]


def number_of(text: str, place: str) -> float:
    """Read a number. Raises `PointSetError` that names the place."""
    return number_in(text, f"{place}:", PointSetError)


def _range(text: str, place: str, *, ordered: bool = True) -> tuple[float, float]:
    begin, sign, end = text.partition(":")
    if not sign or ":" in end:
        raise PointSetError(f"{place}={text} (expected: two numbers, e.g. -1:1)")
    low, high = number_of(begin, place), number_of(end, place)
    if ordered and low > high:
        raise PointSetError(f"{place}={text} (expected: the lower number first)")
    return low, high


def option_values(texts: list[str] | None) -> dict[str, Any]:
    """Read ``name=value`` options; values are JSON, lists may come without brackets, or text.

    Raises:
        PointSetError: A text is no assignment.
    """
    out: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise PointSetError(f"--option {text} (expected: name=value)")
        if name.strip() in out:
            raise PointSetError(
                f"--option {text}: '{name.strip()}' is given twice (expected: once)"
            )
        out[name.strip()] = _value(value.strip())
    return out


def _value(text: str) -> Any:
    for attempt in (text, f"[{text}]" if "," in text else text):
        try:
            return json.loads(attempt)  # NaN too, which the options refuse with their names
        except ValueError:
            continue
    return [part.strip() for part in text.split(",")] if "," in text else text
