"""What a comparison of two runs is written to: figures, a page, numbers."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cards_core import __version__
from cards_core.typing import Array
from cards_viz.plots import comparison as plots
from cards_viz.plots.drawing import save
from cards_viz.runs.comparison import Comparison, Difference, Quantity, Series

HTML = "comparison.html"
JSON = "comparison.json"
OVERVIEW = "overview"

HEAD = ("mean A", "mean B", "mean B - A", "rms B - A", "max |B - A|", "at")
"""Heads of the columns of the table beside quantity and unit."""

_OVERVIEW: Mapping[str, tuple[str, str]] = {
    "released length": ("mean released length", "mean"),
    "temperature": ("hottest motor", "max"),
}
"""Quantities of several entries that the overview has one value of."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 2em auto;
       padding: 0 1em; }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0 }
th, td { padding: 3px 10px; border-bottom: 1px solid #ddd; text-align: right;
         font-variant-numeric: tabular-nums; white-space: nowrap }
th { font-weight: 600; color: #555 } th:first-child, td:first-child { text-align: left }
img { max-width: 100%; height: auto } .plain { color: #666 }
"""


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the figures by name: ``overview``, then one for each quantity of several entries."""
    labels = comparison.labels
    a, b = comparison.a.info.controller, comparison.b.info.controller
    title = f"{comparison.a.robot.name}: {a}" + ("" if a == b else f" and {b}")
    charts = []
    for quantity in comparison.quantities:
        if len(quantity.entries) == 1:
            pair = (_curve(quantity.a, "mean"), _curve(quantity.b, "mean"))
            charts.append((quantity.name, quantity.unit, pair))
        elif quantity.name in _OVERVIEW:
            name, how = _OVERVIEW[quantity.name]
            charts.append(
                (name, quantity.unit, (_curve(quantity.a, how), _curve(quantity.b, how)))
            )
    out = {OVERVIEW: plots.overview(charts, labels, title)} if charts else {}
    for quantity in comparison.quantities:
        if len(quantity.entries) > 1:
            both = (_curve(quantity.a, None), _curve(quantity.b, None))
            out[_file_name(quantity)] = plots.entries(
                quantity.name, quantity.unit, quantity.entries, both, labels
            )
    return out


def _curve(series: Series | None, how: str | None) -> plots.Curve | None:
    """Return the curve of a series: all entries, or their mean or maximum."""
    if series is None:
        return None
    values: Array = series.values
    if how is not None:
        # entries without a value (a muscle without a motor) have none at any time
        known = values[:, np.isfinite(values).any(axis=0)]
        values = known.max(axis=1) if how == "max" else known.mean(axis=1)
    return plots.Curve(series.time, values)


def _file_name(quantity: Quantity) -> str:
    return quantity.name.replace(" ", "_")


def cells(row: Difference) -> list[str]:
    """Return the numbers of a row of the table as texts, in the order of `HEAD`."""
    numbers = [row.mean_a, row.mean_b, row.mean, row.rms, row.largest]
    texts = [_text(value) for value in numbers]
    if not math.isfinite(row.at):
        return [*texts, "-"]
    of = f", {row.of}" if row.of and not row.entry else ""
    return [*texts, f"{row.at:.2f} s{of}"]


def _text(value: float) -> str:
    """Write a number with four digits; one that is nothing but rounding as 0."""
    if not math.isfinite(value):
        return "-"
    return "0" if abs(value) < 1e-9 else f"{value:.4g}"


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Write figures (PNG), page and numbers; return the files.

    Args:
        comparison: What to write.
        folder: Exists.

    Raises:
        OSError: A file cannot be written.
    """
    files = []
    drawn = figures(comparison)
    for name, figure in drawn.items():
        save(figure, folder / f"{name}.png")
        files.append(folder / f"{name}.png")
    text = json.dumps(comparison.to_json(), indent=1, allow_nan=False) + "\n"
    (folder / JSON).write_text(text, encoding="utf-8")
    (folder / HTML).write_text(html(comparison, drawn), encoding="utf-8")
    return [*files, folder / JSON, folder / HTML]


def html(comparison: Comparison, drawn: Mapping[str, Figure]) -> str:
    """Return one page with the figures in it.

    Args:
        comparison: What it is about.
        drawn: Of `figures`.
    """
    a, b = comparison.a, comparison.b
    rows = comparison.differences()
    body = [
        f"<h1>{escape(a.robot.name)}: two runs compared</h1>",
        f'<p class="plain">A: {escape(a.name)} ({escape(a.info.controller)}, '
        f"{a.time[-1]:.4g} s) &nbsp; B: {escape(b.name)} ({escape(b.info.controller)}, "
        f"{b.time[-1]:.4g} s). Compared from {comparison.begin:.4g} to {comparison.end:.4g} s of "
        f"simulation time; B is interpolated at the times of A. CARDS {escape(__version__)}</p>",
        *(f'<p class="plain">{escape(note)}.</p>' for note in comparison.notes),
        _html_table([row for row in rows if not row.entry], "quantity"),
    ]
    if OVERVIEW in drawn:
        body.append(_image(drawn[OVERVIEW], OVERVIEW))
    for quantity in comparison.quantities:
        own = [row for row in rows if row.quantity == quantity.name and row.entry]
        if own:
            name = _file_name(quantity)
            body.append(f"<h2>{escape(quantity.name.capitalize())}</h2>")
            body += [_image(drawn[name], quantity.name), _html_table(own, quantity.name)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(a.name)} and {escape(b.name)}</title>\n<style>{STYLE}</style></head>\n"
        "<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _html_table(rows: list[Difference], what: str) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (what, "unit", *HEAD))
    lines = [
        f"<tr><td>{escape(row.entry or row.quantity)}</td><td>{escape(row.unit)}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row))
        + "</tr>"
        for row in rows
    ]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _image(figure: Figure, name: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">'
