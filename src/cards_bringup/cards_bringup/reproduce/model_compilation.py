"""Tables of the paper on model compilation: what a compiled model saves in CASPR, and here.

Published times and our measurements are those of ``./cards bench paper``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cards_bringup.benchmarks.paper import MEASUREMENTS, PUBLISHED, ROBOTS, SIZES, size_of
from cards_bringup.reproduce.compilation_curves import (
    CURVES,
    curve_claims,
    curve_plot,
    curve_values,
    save_curves,
)
from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Difference,
    Experiment,
    FinishedRun,
    Outcome,
    Paper,
    Plot,
    Setup,
    Tell,
)
from cards_core.formats import load
from cards_viz.colors import ACTUAL, DESIRED
from cards_viz.plots.drawing import styled_figure

PAPER = Paper("004", "Generalised model compilation in CASPR", "Chan")

TITLES = {
    "planar_xy": "planar",
    "bm_arm": "BM-Arm",
    "ipanema_1": "IPAnema1",
    "spherical_2s": "2S-MCDR",
}
"""Robot to its name in the paper."""

TABLES = {
    "FK": ("fk", "step", "forward kinematics"),
    "ID": ("id", "step", "inverse dynamics"),
    "WCC": ("wcc", "point", "wrench closure"),
    "WFC": ("wfc", "point", "wrench feasibility"),
}
"""Experiment to what it measures, in which unit of work, and its title."""

KINDS = ("numeric", "compiled")
"""Interpreted and compiled, as the measurements call them."""

FASTER = "other machine and language: the time must not be longer, the gain not be smaller"

MOTION_NOTE = (
    "The motions are the paper's parabolic blends of 10 s, in steps of 10 ms, the workspaces "
    "grids of 200 points. Start and end are published for the planar robot; those of the others, "
    "and which coordinates the grids vary, are chosen here: `MOTIONS` and `workspace_grid` of "
    "`cards_bringup.benchmarks.paper`."
)

NOTES = (
    "The paper measures MATLAB R2017a on an Intel i5-6500. Here the model is called from Python; "
    "interpreted is the numeric backend in NumPy, compiled the default.",
    "Absolute times say more about machines and languages than about the method; what the paper "
    "claims is the gain. Times change with what else the machine does.",
    "The gain depends on what it is compared with: on an idle machine our numeric backend takes "
    "a third to a half of the time of CASPR's interpreted mode.",
)


def measure(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Measure one robot; `setup` names ``robot`` and ``measurements``.

    Leaves what the motion or grid of these measurements gives, see `save_curves`.
    """
    robot = load(setup["robot"])
    out: dict[str, Any] = {}
    for done, name in enumerate(setup["measurements"], 1):
        out |= MEASUREMENTS[name](robot)
        if name in CURVES:
            save_curves(robot, name, folder)
        tell(done / len(setup["measurements"]))
    return out


# The robots --------------------------------------------------------------------------------------

SIZE_NAMES = {"links": "links", "dof": "degrees of freedom", "cables": "cables"}


def _size_claims() -> tuple[Claim, ...]:
    return tuple(
        Claim(
            f"{robot}.{key}",
            f"{TITLES[robot]}: {words}",
            "Table I",
            Band(SIZES[robot][key], SIZES[robot][key]),
            published=SIZES[robot][key],
            why="a robot is the same one or it is not",
        )
        for robot in ROBOTS
        for key, words in SIZE_NAMES.items()
    )


def count(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Return the numbers of links, degrees of freedom and cables of the robot that `setup` names.

    Args:
        setup: Has ``robot``.
        folder: Not used.
        tell: Not used.
    """
    return size_of(load(setup["robot"]))


def size_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate what was counted."""
    table: dict[str, Any] = {"robot": [TITLES[robot] for robot in runs]}
    for key, words in SIZE_NAMES.items():
        table[f"{words}, published"] = [SIZES[robot][key] for robot in runs]
        table[f"{words}, ours"] = [run.numbers[key] for run in runs.values()]
    values = {
        f"{robot}.{key}": run.numbers[key] for robot, run in runs.items() for key in SIZE_NAMES
    }
    return Outcome(values, {"robots": table})


# model update and one step or point --------------------------------------------------------------


def _table_claims(what: str, unit: str) -> tuple[Claim, ...]:
    claims = []
    for robot, title in TITLES.items():
        published = PUBLISHED[robot]
        for part, words in (("update", "update"), (unit, unit)):
            slow, fast = (published[f"{what}_{part}_{kind}_us"] for kind in KINDS)
            claims.append(
                Claim(
                    f"{robot}.{part}_ms",
                    f"{title}: {words}, compiled",
                    "Tables I to VI",
                    Band.at_most(fast / 1e3),
                    "ms",
                    published=fast / 1e3,
                    why=FASTER,
                )
            )
            gain = Claim(
                f"{robot}.{part}_gain",
                f"{title}: {words}, interpreted : compiled",
                "Tables I to VI",
                Band.at_least(slow / fast),
                published=slow / fast,
                why=FASTER,
            )
            share = Claim(
                f"{robot}.{part}_saved",
                f"{title}: {words}, share of the time that is saved",
                "Tables I to VI, of the times there",
                Band.at_least(_saved(slow, fast)),
                "%",
                published=_saved(slow, fast),
                why=FASTER,
            )
            for claim in (gain, share):
                hardly = (what, part) == ("wfc", "point")
                claims.append(_hardly_faster(claim) if hardly else claim)
    return (*claims, *curve_claims(what, TITLES))


def _saved(slow: float, fast: float) -> float:
    """Return the share of the interpreted model's time that the compiled one saves, [%]."""
    return 100.0 * (1.0 - fast / slow)


def _hardly_faster(gain: Claim) -> Claim:
    """Return the claim that compilation hardly helps where the algorithm takes the time."""
    assert gain.published is not None
    return Claim(
        gain.value,
        gain.text,
        gain.source,
        Band.around(gain.published, relative=0.2),
        gain.unit,
        published=gain.published,
        why="the paper finds no gain, because the algorithm takes the time and not the model",
        difference=Difference(
            "all facets of the set of wrenches are found by elimination in microseconds, so that "
            "the model takes the time, and compilation helps",
            Band.at_least(gain.published),
        ),
    )


def table_outcome(what: str, unit: str, title: str, runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate one of the tables of update and step, or point.

    Args:
        what: Measurement, a key of `cards_bringup.benchmarks.paper.MEASUREMENTS`.
        unit: ``step`` or ``point``.
        title: Of the plot.
        runs: A run for each robot.
    """
    values: dict[str, float] = {}
    bars: dict[str, list[tuple[float, float, float, float]]] = {"update": [], unit: []}
    for robot, run in runs.items():
        found, published = run.numbers, PUBLISHED[robot]
        for part, key in (("update", "update"), (unit, f"{what}_{unit}")):
            slow, fast = (found[f"{key}_{kind}_us"] / 1e3 for kind in KINDS)
            values[f"{robot}.{part}_ms"] = fast
            values[f"{robot}.{part}_gain"] = slow / fast
            values[f"{robot}.{part}_saved"] = _saved(slow, fast)
            theirs = (published[f"{what}_{part}_{kind}_us"] / 1e3 for kind in KINDS)
            bars[part].append((*theirs, slow, fast))
    table: dict[str, Any] = {"robot": [TITLES[robot] for robot in runs]}
    for part, rows in bars.items():
        for i, name in enumerate(SERIES):
            table[f"{part}, {name} [ms]"] = [row[i] for row in rows]
    figure = _bars(title, {f"{part} [ms]": rows for part, rows in bars.items()}, SERIES)
    caption = (
        "Times in the four columns of the paper's tables, for its four robots; logarithmic scale."
    )
    return Outcome(
        values | curve_values(what, runs),
        {"times": table},
        {"times": Plot(figure, caption), "curves": curve_plot(what, runs, TITLES)},
    )


SERIES = (
    "published, interpreted",
    "published, compiled",
    "ours, interpreted",
    "ours, compiled",
)

LIGHT = {"published": ("#cfcfcf", DESIRED), "ours": ("#b9cfe8", ACTUAL)}
"""Colours of the slower and of the faster of two bars."""


def _bars(title: str, groups: Mapping[str, list[Any]], series: tuple[str, ...]) -> Figure:
    """Draw a chart for each group: four bars for each robot."""
    colors = [*LIGHT["published"], *LIGHT["ours"]]
    with styled_figure(10.0, 3.6, title) as figure:
        axes = figure.subplots(1, len(groups), squeeze=False)[0]
        places = np.arange(len(ROBOTS))
        for axis, (label, rows) in zip(axes, groups.items(), strict=True):
            for i, (name, color) in enumerate(zip(series, colors, strict=True)):
                heights = [row[i] for row in rows]
                axis.bar(places + 0.2 * (i - 1.5), heights, 0.19, color=color, label=name)
            axis.set_yscale("log")
            axis.set_ylabel(label)
            axis.set_xticks(places, [TITLES[robot] for robot in ROBOTS])
            axis.grid(visible=False, axis="x")
            axis.yaxis.set_major_formatter("{x:g}")
        handles, texts = axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=4)
    return figure


# compilation -------------------------------------------------------------------------------------

COMPILED = (
    ("compile_s", "not simplified"),
    ("compile_simplified_s", "simplified"),
)


def _compile_claims() -> tuple[Claim, ...]:
    claims = []
    for robot, title in TITLES.items():
        published = PUBLISHED[robot]
        for key, words in COMPILED:
            claims.append(
                Claim(
                    f"{robot}.{key}",
                    f"{title}: compilation, {words}",
                    "Tables I to VI",
                    Band.at_most(published[key]),
                    "s",
                    published=published[key],
                    why=FASTER,
                )
            )
        gain = published["compile_s"] / published["compile_simplified_s"]
        claims.append(
            Claim(
                f"{robot}.compile_gain",
                f"{title}: compilation, not simplified : simplified",
                "Tables I to VI",
                Band.around(gain, relative=0.5),
                published=gain,
                why="each model is compiled once, and such times vary by tens of percent",
                difference=Difference(
                    "the equations are recursions with common subexpressions from the start, so "
                    "that little is left to simplify",
                    Band.at_most(gain),
                ),
            )
        )
    return tuple(claims)


def compile_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate the times of compilation."""
    values: dict[str, float] = {}
    rows = []
    for robot, run in runs.items():
        slow, fast = (float(run.numbers[key]) for key, _ in COMPILED)
        values |= {f"{robot}.compile_s": slow, f"{robot}.compile_simplified_s": fast}
        values[f"{robot}.compile_gain"] = slow / fast
        theirs = [PUBLISHED[robot][key] for key, _ in COMPILED]
        rows.append((*theirs, slow, fast))
    series = tuple(f"{who}, {words}" for who in LIGHT for _, words in COMPILED)
    table: dict[str, Any] = {"robot": [TITLES[robot] for robot in runs]}
    for i, name in enumerate(series):
        table[f"{name} [s]"] = [row[i] for row in rows]
    figure = _bars("Compilation", {"from description to function [s]": rows}, series)
    return Outcome(
        values,
        {"times": table},
        {"times": Plot(figure, "Time to compile the model of each robot; logarithmic scale.")},
    )


def _runs() -> dict[str, Setup]:
    return {robot: {"robot": robot} for robot in ROBOTS}


EXPERIMENTS = (
    Experiment(
        PAPER,
        "ROBOTS",
        "The robots of the paper: links, degrees of freedom, cables",
        {},
        _size_claims(),
        count,
        size_outcome,
        runs=_runs(),
        notes=("The bodies between two joints of a chain that stand for one joint do not count.",),
    ),
    *(
        Experiment(
            PAPER,
            name,
            f"Gain by a compiled model: {title}",
            {"measurements": ["update", what]},
            _table_claims(what, unit),
            measure,
            partial(table_outcome, what, unit, title.capitalize()),
            runs=_runs(),
            notes=(MOTION_NOTE, *NOTES),
        )
        for name, (what, unit, title) in TABLES.items()
    ),
    Experiment(
        PAPER,
        "COMPILE",
        "Time to compile a model, simplified or not",
        {"measurements": ["compile"]},
        _compile_claims(),
        measure,
        compile_outcome,
        runs=_runs(),
        notes=NOTES,
    ),
)
