"""Test vectors of the muscle impedance law, by its plain formula.

T = min(max(T_floor, T0 + K (l - l0) + B (ldot - v0), T_min), T_max)

``python impedance_vectors.py`` writes ``test/data/impedance_vectors.csv``, one muscle per row, for
whoever computes the law: core, simulators, firmware. Inputs are whole counts of the boards' line,
so that all of them are given the same numbers. NaN is not among them: it is refused before the
law.
"""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "data" / "impedance_vectors.csv"

COUNTS = {
    "K": 10,  # per N/m
    "B": 1000,  # per N s/m
    "T_floor": 10,  # per N
    "T_min": 10,
    "T_max": 10,
    "T0": 10,
    "l0": 1_000_000,  # per m
    "v0": 10_000,  # per m/s
    "l": 1_000_000,
    "ldot": 10_000,
}
"""Inputs and counts per SI unit: [N/m], [N s/m], [N], [m], [m/s]."""

COLUMNS = (*COUNTS, "T")

_RANDOM_ROWS = 150


def law(row: dict[str, float]) -> float:
    """Return the tension before the limits, [N]."""
    spring = row["K"] * (row["l"] - row["l0"])
    damper = row["B"] * (row["ldot"] - row["v0"])
    return max(row["T_floor"], row["T0"] + spring + damper)


def tension(row: dict[str, float]) -> float:
    """Return the tension that the muscle is told, [N]."""
    return min(max(law(row), row["T_min"]), row["T_max"])


def largest_term(row: dict[str, float]) -> float:
    """Return the largest number in the sum, [N]: rounding errors are relative to it."""
    spring = row["K"] * (row["l"] - row["l0"])
    damper = row["B"] * (row["ldot"] - row["v0"])
    return max(abs(spring), abs(damper), row["T0"], row["T_floor"], row["T_min"])


def read() -> list[dict[str, float]]:
    """Return the rows of the file."""
    with FILE.open(newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def text() -> str:
    """Return what the file holds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows():
        writer.writerow([repr(row[name]) for name in COUNTS] + [repr(tension(row))])
    return out.getvalue()


def rows() -> list[dict[str, float]]:
    """Return the inputs of all rows: edges first, then at random."""
    return [_rounded(row) for row in (*_edges(), *_random_rows())]


def _rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: round(row[name] * per_unit) / per_unit for name, per_unit in COUNTS.items()}


def _edges() -> list[dict[str, float]]:
    base = {
        "K": 5000.0,
        "B": 40.0,
        "T_floor": 3.0,
        "T_min": 2.0,
        "T_max": 300.0,
        "T0": 20.0,
        "l0": 0.3,
        "v0": 0.0,
        "l": 0.3,
        "ldot": 0.0,
    }
    changes: list[dict[str, float]] = [
        {},
        # tension control: K = B = 0, whatever lengths and rates are
        *({"K": 0.0, "B": 0.0, "T0": t, "T_floor": 2.0} for t in (0.0, 0.1, 2.0, 33.3, 299.9)),
        {"K": 0.0, "B": 0.0, "T0": 300.0, "l": 4.0, "ldot": 3.0},
        {"K": 0.0, "B": 0.0, "T0": 50.0, "l0": -2000.0, "v0": -3.2767},
        {"K": 0.0, "B": 0.0, "T0": 50.0, "l0": 2000.0, "v0": 3.2767, "ldot": -1.0},
        # muscle stiffness control: T_floor = T0, from slack over the corner to the limit
        *(
            {"B": 0.0, "T_floor": 10.0, "T0": 10.0, "l": 0.3 + mm * 1e-3}
            for mm in (-200.0, -10.0, -0.001, 0.0, 0.001, 1.0, 10.0, 57.999, 58.0, 58.001, 100.0)
        ),
        {"B": 0.0, "T_floor": 10.0, "T0": 10.0, "l": 0.31, "ldot": 3.0},
        # cables of a tensegrity: T_floor = T_min = 0
        *(
            {
                "K": 500.0,
                "B": 5.0,
                "T_floor": 0.0,
                "T_min": 0.0,
                "T0": 0.0,
                "l": 0.3 + x,
                "ldot": v,
            }
            for x, v in ((-0.05, 0.0), (0.0, 0.0), (0.05, 0.0), (0.05, -1.0), (0.01, -1.0001))
        ),
        {"K": 500.0, "B": 5.0, "T_floor": 0.0, "T_min": 0.0, "T0": 25.0, "l": 0.25},
        {"K": 500.0, "B": 5.0, "T_floor": 0.0, "T_min": 0.0, "T0": 25.0, "l": 0.250001},
        # damper alone; a set-point that moves along with the muscle
        {"K": 0.0, "ldot": 0.5},
        {"K": 0.0, "ldot": -0.4},
        {"K": 0.0, "ldot": -0.6},
        {"v0": -0.2, "ldot": -0.2},
        {"v0": -0.2, "ldot": 0.2, "l": 0.301},
        {"v0": 0.2, "ldot": -0.2, "l": 0.299},
        # floor and limits against each other
        {"T_floor": 0.0, "T_min": 5.0, "l": 0.2},
        {"T_floor": 5.0, "T_min": 0.0, "l": 0.2},
        {"T_floor": 5.0, "T_min": 5.0, "l": 0.2},
        {"T_floor": 30.0, "T0": 20.0},
        {"T_floor": 400.0, "T_max": 300.0},
        {"T_min": 300.0, "T_max": 300.0, "T0": 0.0},
        {"l": 10.0},
        {"l": 0.3, "l0": -0.7, "K": 1e7},
        {"K": 1e7, "B": 0.0, "l": 0.300001},
        {"K": 1e7, "B": 0.0, "l": 0.299999},
        {"B": 1e4, "K": 0.0, "ldot": 0.0001},
        {"B": 1e4, "K": 0.0, "ldot": -0.0001},
        {"K": 0.1, "B": 0.001, "l": 0.4, "ldot": 0.1},
        {"T_max": 3276.0, "T0": 3276.0},
    ]
    return [base | change for change in changes]


def _random_rows() -> list[dict[str, float]]:
    rng = random.Random(20)
    out = []
    for _ in range(_RANDOM_ROWS):
        high = rng.choice((50.0, 300.0, 800.0))
        low = rng.choice((0.0, rng.uniform(0.0, 20.0)))
        length = rng.uniform(0.05, 1.5)
        stiffness = rng.choice((0.0, 10.0 ** rng.uniform(1.0, 5.0)))
        pull = rng.uniform(-0.5, 1.0) * high  # by the spring
        stretch = pull / stiffness if stiffness else rng.uniform(-0.1, 0.1)
        out.append(
            {
                "K": stiffness,
                "B": rng.choice((0.0, 10.0 ** rng.uniform(-1.0, 2.5))),
                "T_floor": rng.choice((0.0, low, rng.uniform(0.0, 30.0))),
                "T_min": low,
                "T_max": high,
                "T0": rng.choice((0.0, rng.uniform(0.0, 0.5 * high))),
                "l0": length - min(max(stretch, -1.0), 1.0),
                "v0": rng.choice((0.0, rng.uniform(-0.5, 0.5))),
                "l": length,
                "ldot": rng.uniform(-0.8, 0.8),
            }
        )
    return out


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text())
