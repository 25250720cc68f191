"""Read the poses of a fit: grids, samples, lists, and curves along one coordinate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.analysis.workspace.coordinates import Coordinate, Coordinates
from cards_core.analysis.workspace.points import Axis, Grid, Samples
from cards_core.errors import CardsError
from cards_core.paths.layout import Indices
from cards_core.robot.model import Tree
from cards_core.typing import Array
from cards_core.yaml_fields import Field

MAX_POSES = 20_000
"""Most poses of a specification; a fit looks at all of them in every step."""

LIMIT_TOLERANCE = 1e-9
"""What a pose may be beyond a limit by rounding, [rad] or [m]; relative where larger than 1."""

_KEYS = ("grid", "samples", "seed", "ranges", "fix", "list")


class PoseReader:
    """Collects all poses of a document; goals know theirs by index.

    Args:
        top: The document.
        tree: The robot's.

    Attributes:
        coordinates: Those of the robot, by name.
        common: Poses of goals that have none of their own; None if there are none.
    """

    def __init__(self, top: Field, tree: Tree) -> None:
        self._top, self._tree = top, tree
        self.coordinates = Coordinates(tree)
        self._q: list[Array] = []
        self._count = 0
        self.common: Indices | None = None
        self._beyond = top.has("beyond_limits") and top["beyond_limits"].flag()

    @property
    def q(self) -> Array:
        """All poses so far, shape (n, nq)."""
        return np.concatenate(self._q)

    def add(self, q: Array, item: Field) -> Indices:
        """Add poses and return their indices.

        Args:
            q: Shape (n, nq).
            item: What states them.

        Raises:
            DescriptionError: There are too many, or one is beyond a joint limit and the document
                does not say ``beyond_limits: true``.
        """
        if not self._beyond:
            self._within_limits(q, item)
        self._count += len(q)
        if self._count > MAX_POSES:
            raise self._top.error(f"has {self._count} poses", f"at most {MAX_POSES}")
        self._q.append(q)
        return np.arange(self._count - len(q), self._count)

    def _within_limits(self, q: Array, item: Field) -> None:
        lower, upper = self._tree.lower, self._tree.upper
        beyond = np.maximum(lower - q, q - upper)
        rows, columns = np.nonzero(beyond > LIMIT_TOLERANCE * np.maximum(1.0, np.abs(q)))
        if not rows.size:
            return
        row, column = int(rows[0]), int(columns[0])
        value, name = float(q[row, column]), self._tree.position_names[column]
        count = len(np.unique(rows))
        raise item.error(
            f"pose {row + 1} of {len(q)} has {name} = {value:g}, beyond its limits "
            f"{lower[column]:g} .. {upper[column]:g}"
            + (f" ({count} poses are beyond limits)" if count > 1 else ""),
            "poses within the joint limits, or 'beyond_limits: true' at the top of the file",
        )

    def rows(self, item: Field) -> Indices:
        """Return the poses of a goal: its own, or the common ones. Raises `DescriptionError`."""
        if item.has("poses"):
            return self.add(self.read(item["poses"]), item["poses"])
        if self.common is None:
            raise item.error("has no poses", "'poses' here, or for all at the top of the file")
        return self.common

    def read(self, item: Field) -> Array:
        """Return poses, shape (n, nq). Raises `DescriptionError`."""
        item.mapping(_KEYS)
        fixed = self._values(item["fix"]) if item.has("fix") else {}
        kinds = [key for key in ("grid", "samples", "list") if item.has(key)]
        if len(kinds) != 1:
            have = " and ".join(kinds) or "none"
            raise item.error(f"has {have} of grid, samples, list", "one of them")
        for key in ("seed", "ranges"):
            if item.has(key) and kinds != ["samples"]:
                raise item[key].error(f"'{key}' without 'samples'", f"'{key}' of samples")
        try:
            if kinds == ["list"]:
                return self._listed(item["list"], fixed)
            if kinds == ["grid"]:
                points: Grid | Samples = Grid(self._axes(item["grid"]), fixed)
            else:
                ranges = self._ranges(item["ranges"]) if item.has("ranges") else {}
                seed = item["seed"].whole() if item.has("seed") else 0
                points = Samples(item["samples"].whole(at_least=1), seed, ranges, fixed)
            if points.count > MAX_POSES:
                raise item.error(f"has {points.count} poses", f"at most {MAX_POSES}")
            bound = points.bind(self._tree)
            return bound.q(bound.values(0, points.count))
        except CardsError as error:
            if str(error).startswith(self._top.document.source):
                raise
            raise item.error(str(error)) from None

    def _axes(self, item: Field) -> tuple[Axis, ...]:
        axes = []
        for name in item.mapping():
            start, stop, count = item[name].vector(3, "first value, last value, how many")
            if count != int(count) or count < 1:
                raise item[name].error(f"has {count:g} values", "a whole number of values >= 1")
            axes.append(Axis(name, float(start), float(stop), int(count)))
        return tuple(axes)

    def _ranges(self, item: Field) -> dict[str, tuple[float, float]]:
        out = {}
        for name in item.mapping():
            low, high = item[name].vector(2, "lower and upper value")
            out[name] = (float(low), float(high))
        return out

    def _values(self, item: Field) -> dict[str, float]:
        return {name: item[name].number() for name in item.mapping()}

    def _listed(self, item: Field, fixed: Mapping[str, float]) -> Array:
        rows = []
        for one in item.items():
            values = self.coordinates.find_values({**fixed, **self._values(one)})
            rows.append(self.coordinates.compose((), np.zeros((1, 0)), values))
        return np.concatenate(rows)

    def coordinate(self, item: Field) -> Coordinate:
        """Return the coordinate that a field names. Raises `DescriptionError`."""
        try:
            return self.coordinates.find(item.text())
        except CardsError as error:
            if str(error).startswith(self._top.document.source):
                raise
            raise item.error(str(error)) from None

    def curve(self, item: Field, coordinate: Coordinate) -> Indices:
        """Add the poses of ``at`` and ``fix`` of a goal, and return their indices.

        Raises:
            DescriptionError: They are wrong, or there are ``poses`` too.
        """
        if item.has("poses"):
            raise item["poses"].error("'poses' beside 'at'", "one of them")
        at = item["at"].vector()
        fixed = self._values(item["fix"]) if item.has("fix") else {}
        try:
            values = self.coordinates.find_values(fixed)
            if coordinate in values:
                raise item["fix"].error(f"has '{coordinate.name}' too", "other coordinates")
            q = self.coordinates.compose((coordinate,), at[:, None], values)
        except CardsError as error:
            if str(error).startswith(self._top.document.source):
                raise
            raise item["fix"].error(str(error)) from None
        return self.add(q, item["at"])
