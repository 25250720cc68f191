"""A workspace as one HTML file: a cloud of points to turn, cut and ask, without any network."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Result
from cards_viz.colormap import colors
from cards_viz.workspace_data import STATUS_COLORS, columns_of, scattered, varies

MOST_POINTS = 200_000
"""More points than this make the page slow and no clearer."""

TEMPLATE = Path(__file__).with_suffix(".html")
PLACEHOLDER = "/*DATA*/"


def write_page(result: Result, path: Path, *, metric: str | None = None) -> None:
    """Write the page of a result of points.

    Args:
        result: Of a grid, samples, or a file.
        path: Where to.
        metric: Column of the colours; default: the first.

    Raises:
        UnknownNameError: There is no such metric.
    """
    data = page_data(result, metric)
    # a robot's name may not end the script element
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = TEMPLATE.read_text(encoding="utf-8").replace(PLACEHOLDER, text)
    path.write_text(page, encoding="utf-8")


def page_data(result: Result, metric: str | None = None) -> dict[str, Any]:
    """Return what the page shows, as plain data."""
    names = columns_of(result)
    chosen = names.metric(metric)
    rows = scattered(result, MOST_POINTS)
    table = result.rows(rows)
    status = table["status"]
    if metric is None and chosen and not varies(table[chosen][status == PointStatus.FEASIBLE]):
        chosen = None  # one colour says no more than the status
    counts = result.summary["statuses"]
    total = int(result.summary["points"])
    part = f"{len(rows)} of {total} points" if len(rows) < total else f"{total} points"
    fixed = ", ".join(f"{name} = {value:g}" for name, value in result.summary["fixed"].items())
    there = [PointStatus[name] for name in counts]
    # what is feasible is what one looks for; all else can be switched on
    hidden = [int(s) for s in there if s != PointStatus.FEASIBLE]
    axes: list[str | None] = [*names.coordinates[:3]]
    return {
        "title": f"{result.summary['robot']}: {result.summary['condition']}",
        "about": part + (f"; {fixed}" if fixed else ""),
        "columns": [
            {"name": n, "unit": names.units[n], "data": _encoded(table[n])}
            for n in (*names.coordinates, *names.metrics)
        ],
        "status": _encoded(status),
        "axes": axes + [None] * (3 - len(axes)),
        "metric": chosen,
        "metrics": list(names.metrics),
        "hidden": hidden if PointStatus.FEASIBLE in there else [],
        "statuses": [
            {
                "value": int(s),
                "name": s.name.lower().replace("_", " "),
                "rgb": _rgb(STATUS_COLORS[s]),
                "count": counts[s.name],
            }
            for s in there
        ],
        "colormap": colors(np.linspace(0.0, 1.0, 32)).tolist(),
    }


def _encoded(column: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(column, "<f4").tobytes()).decode()


def _rgb(css: str) -> list[int]:
    return [int(css[k : k + 2], 16) for k in (1, 3, 5)]
