"""Write benchmarks.md from measurements on this machine.

    ./cards bench paper --json > paper.json
    ./cards bench compiler --json > compiler.json
    python docs/benchmark_tables.py paper.json compiler.json

Run it on a machine that does nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("benchmarks.md")

TITLES = {
    "planar_xy": "planar",
    "bm_arm": "BM-Arm",
    "ipanema_1": "IPAnema1",
    "spherical_2s": "2S-MCDR",
}

TIMES = (
    ("fk_step", "forward kinematics, step"),
    ("id_step", "inverse dynamics, step"),
    ("wcc_point", "wrench closure, point"),
    ("wfc_point", "wrench feasible, point"),
)

INTRODUCTION = """\
# Benchmarks

Made by `docs/benchmark_tables.py` from `./cards bench paper --json` and `./cards bench compiler --json`; do not edit. Measure on
your machine before you compare: {cpu}, {cores} cores, Python {python} here.

## The robots of the model-compilation paper

The paper measured CASPR's interpreted and compiled modes on four robots, in MATLAB R2017a on an Intel i5-6500. The same questions, asked of
the same robots: *numeric* is our backend in NumPy, *compiled* the default. All times are called from Python, one state at a time, and
include the update of the model; only the {points} workspace points are evaluated at once. In *(brackets)* the published figure. `compile` is
the way from a description to a function that can be called, with an empty cache; the model is that of the dynamics with muscle lengths and
Jacobian, M, C, G, l and L together, where CASPR compiles body-space quantities and multiplies them in every update.
"""

READING = """\
How to read it:

- The update gives M, C, G, l and L together. CASPR's four tables give four updates of 110 to 350 us; the one shown is that of its inverse dynamics.
- A step of forward kinematics is least squares with the analytic Jacobian, started from the last step, 10 ms apart; a step of inverse
  dynamics is the tension distribution of least norm within the limits. The motions are parabolic blends of 10 s, as in the paper.
- Wrench closure and wrench feasibility are exact: tested against linear programs ([conditions.md](conditions.md)). CASPR's three seconds a
  point are not the model's but the algorithm's: here all facets of the set of wrenches are found by elimination. Points: a grid of the first two
  coordinates, the others as at home; feasible are {feasible}.
- MuJoCo does positions and velocities of the same robot, with tendons; Pinocchio M and C + G alone, because it knows no muscles. Both are called
  from Python in the same run; a ratio above 1 says how much longer they take.
"""


def us(value: float) -> str:
    """Return a time in its best unit, from microseconds."""
    if value < 10:
        return f"{value:.2f} us"
    if value < 1000:
        return f"{value:.0f} us"
    return f"{value / 1e3:.2f} ms" if value < 1e5 else f"{value / 1e6:.2f} s"


def paper_table(paper: dict[str, Any]) -> list[str]:
    """Return the comparison with the published figures."""
    robots = {name: paper[name] for name in TITLES}
    lines = ["| | " + " | ".join(TITLES[name] for name in robots) + " |"]
    lines.append("|---|" + "---|" * len(robots))

    def row(title: str, cells: list[str]) -> None:
        lines.append(f"| {title} | " + " | ".join(cells) + " |")

    row("degrees of freedom, muscles", [f"{r['dof']}, {r['muscles']}" for r in robots.values()])
    for kind in ("numeric", "compiled"):
        row(
            f"update, {kind}",
            [
                f"{us(r[f'update_{kind}_us'])} *({us(r['published'][f'id_update_{kind}_us'])})*"
                for r in robots.values()
            ],
        )
    row("numeric : compiled", [f"{r['update_ratio']:.0f}" for r in robots.values()])
    for key, title in TIMES:
        for kind in ("numeric", "compiled"):
            row(
                f"{title}, {kind}",
                [
                    f"{us(r[f'{key}_{kind}_us'])} *({us(r['published'][f'{key}_{kind}_us'])})*"
                    for r in robots.values()
                ],
            )
    for key, title in (
        ("compile_s", "compile, not simplified"),
        ("compile_simplified_s", "compile, simplified (default)"),
    ):
        row(title, [f"{r[key]:.2f} s *({r['published'][key]:g} s)*" for r in robots.values()])
    row(
        "updates of 100,000 poses at once",
        [f"{r['batch_poses_per_s'] / 1e6:.1f} million/s" for r in robots.values()],
    )
    for peer, title in (
        ("mujoco", "MuJoCo, position and velocity"),
        ("pinocchio_without_muscles", "Pinocchio, M and C + G only"),
    ):
        cells = []
        for r in robots.values():
            found = r["peers"].get(peer)
            cells.append(f"{us(found['us'])}, {found['ratio']:.1f} x" if found else "-")
        row(title, cells)
    return lines


def compiler_table(compiler: dict[str, Any]) -> list[str]:
    """Return the comparison of ways to native code."""
    ways = compiler["ways"]
    lines = ["## The way to native code", ""]
    lines.append("Each cell: operations, seconds from description to function, time of an update.")
    lines += ["", "| | " + " | ".join(f"`{way}`" for way in ways) + " |"]
    lines.append("|---|" + "---|" * len(ways))
    for robot, results in compiler["robots"].items():
        cells = []
        for way in ways:
            found = results.get(way)
            cells.append(
                f"{found['instructions']:,}; {found['seconds']:.2f} s; {us(found['update_us'])}"
                if found
                else "-"
            )
        lines.append(f"| {robot} | " + " | ".join(cells) + " |")
    lines += ["", *(f"- `{way}`: {text}." for way, text in ways.items())]
    return lines


def page(paper: dict[str, Any], compiler: dict[str, Any]) -> str:
    """Return the whole page."""
    feasible = ", ".join(
        f"{100 * r['wcc_feasible']:.0f} % and {100 * r['wfc_feasible']:.0f} % ({TITLES[name]})"
        for name, r in paper.items()
        if name in TITLES
    )
    lines = [INTRODUCTION.format(points="200", **paper["machine"]), *paper_table(paper), ""]
    lines += [READING.format(feasible=feasible), *compiler_table(compiler)]
    text = "\n".join(lines)
    return text.rstrip() + "\n"


def main() -> int:
    """Write the page."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    paper, compiler = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    PAGE.write_text(page(paper, compiler))
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
