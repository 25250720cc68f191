"""A page about a run of ``./cards learn``: its best trials, how it came there, what was learnt."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cards_bringup.reproduce.report import html_page
from cards_core.errors import CardsError
from cards_core.files import writing_together
from cards_core.typing import Array
from cards_learning.experiment import Experiment
from cards_learning.folder import RunFolder
from cards_learning.trial import TrialResult
from cards_viz.colors import ACTUAL, DESIRED
from cards_viz.plots.drawing import save, styled_figure

PAGE = "report.html"

BEST = 10
"""Trials in the table."""

RELOAD = 20.0
"""While trials are missing the page is read again at this period, [s]."""

SHARE = 0.05
"""Share of the time that drawing the page again and again may take."""

SHOWN = (
    ("distance", "m"),
    ("speed", "m/s"),
    ("towards_goal", "m"),
    ("work_ideal", "J"),
    ("work_motor", "J"),
    ("cost_of_transport_ideal", ""),
    ("cost_of_transport_motor", ""),
)


def write_report(folder: Path, out: Path) -> Path:
    """Write page and plots of a run; returns the page.

    While trials are missing, browsers read the page again every `RELOAD` seconds.

    Args:
        folder: Of the run.
        out: Where they go.

    Raises:
        CardsError: There is no run, or no trial as yet.
        OSError: They cannot be written.
    """
    store = RunFolder(folder)
    experiment = store.experiment()
    known = store.trials(experiment)
    if not known:
        raise CardsError(f"{folder} has no finished trial yet (expected: one at least)")
    trials = [known[number] for number in sorted(known)]
    figures = {
        "scores": (
            _scores_figure(trials),
            "Score of every trial, and the best until then. Grey: trials that failed.",
        ),
        "yield": (
            _yield_figure(trials),
            "How many trials reach which score: few random gaits are of use.",
        ),
        "cost": (
            _cost_figure(trials),
            "Way and cost of transport of every trial that did not fail (means over its runs, "
            "ideal work).",
        ),
        "parameters": (
            _parameters_figure(experiment, trials),
            "Where in their ranges the values of the best ten are; the best in blue. Values at an "
            "end of a range ask for a wider one.",
        ),
    }
    with writing_together(out) as work:
        plots = []
        for name, (figure, caption) in figures.items():
            file = work / f"{name}.png"
            save(figure, file)
            plots.append((file.read_bytes(), caption))
        title = f"Learning of {Path(experiment.robot).stem}"
        missing = len(trials) < experiment.trials
        body = _body(title, experiment, trials, plots)
        page = html_page(title, body, reload=RELOAD if missing else None)
        (work / PAGE).write_text(page, encoding="utf-8")
    return out / PAGE


class LiveReport:
    """Writes the report of a run again and again while the run goes on.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = time.monotonic()

    def update(self) -> bool:
        """Write the report if it is time to; returns True if it was written.

        What cannot be written is left to the next time: a run does not end for want of a picture.
        """
        begin = time.monotonic()
        if begin < self._next:
            return False
        written = False
        with contextlib.suppress(OSError):
            write_report(self._folder, self._folder)
            written = True
        end = time.monotonic()
        self._next = end + max(RELOAD, (end - begin) / SHARE)
        return written


def _body(
    title: str,
    experiment: Experiment,
    trials: Sequence[TrialResult],
    plots: Sequence[tuple[bytes, str]],
) -> list[str]:
    states: dict[str, int] = {}
    for trial in trials:
        states[trial.state] = states.get(trial.state, 0) + 1
    said = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    lines = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="paper">{escape(experiment.source)}: {escape(experiment.algorithm.kind)}, '
        f"{len(trials)} of {experiment.trials} trials ({escape(said)}), "
        f"seed {experiment.seed}</p>",
        "<h2>Best trials</h2>",
        *_table(experiment, trials),
    ]
    for data, caption in plots:
        text = base64.b64encode(data).decode()
        lines.append(
            f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{text}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    lines.append("<h2>Experiment</h2><table>")
    lines += [
        f"<tr><td>{escape(key)}</td><td><code>{escape(str(value))}</code></td></tr>"
        for key, value in experiment.content().items()
    ]
    lines.append("</table>")
    return lines


def best_first(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """Return trials by score, the best first; of equals the first."""
    return sorted(trials, key=lambda trial: (-trial.score, trial.number))


def _table(experiment: Experiment, trials: Sequence[TrialResult]) -> list[str]:
    columns = [
        (name, unit)
        for name, unit in SHOWN
        if any(np.isfinite(run.measures[name]) for trial in trials for run in trial.runs)
    ]
    head = "".join(
        f"<th>{name.replace('_', ' ')}{f' [{u}]' if u else ''}</th>" for name, u in columns
    )
    lines = [f"<table><tr><th>trial</th><th>score</th><th>terrain</th><th>state</th>{head}</tr>"]
    for trial in best_first(trials)[:BEST]:
        for row, (what, run) in enumerate(zip(experiment.runs, trial.runs, strict=True)):
            first = [str(trial.number), f"{trial.score:.4g}"] if row == 0 else ["", ""]
            cells = [*first, what.terrain, run.state]
            cells += [f"{run.measures[name]:.3g}" for name, _ in columns]
            lines.append(
                "<tr>" + "".join(f'<td class="number">{escape(c)}</td>' for c in cells) + "</tr>"
            )
    return [*lines, "</table>"]


def _scores_figure(trials: Sequence[TrialResult]) -> Figure:
    numbers = np.array([trial.number for trial in trials])
    scores = np.array([trial.score for trial in trials])
    good = np.array([trial.state == "done" for trial in trials])
    with styled_figure(10.0, 3.4) as figure:
        axis = figure.subplots()
        axis.plot(numbers[good], scores[good], ".", ms=3.0, color=ACTUAL, alpha=0.5)
        axis.plot(numbers[~good], scores[~good], "x", ms=4.0, color=DESIRED)
        axis.step(numbers, np.maximum.accumulate(scores), where="post", color="#222222")
        axis.set_xlabel("trial")
        axis.set_ylabel("score")
    return figure


def _yield_figure(trials: Sequence[TrialResult]) -> Figure:
    scores = np.sort([trial.score for trial in trials])[::-1]
    with styled_figure(10.0, 3.0) as figure:
        axis = figure.subplots()
        axis.step(scores, np.arange(1, scores.size + 1), where="pre", color=ACTUAL)
        axis.set_yscale("log")
        axis.set_xlabel("score at least")
        axis.set_ylabel("trials")
    return figure


def _cost_figure(trials: Sequence[TrialResult]) -> Figure:
    good = [trial for trial in trials if trial.state == "done"]
    with styled_figure(10.0, 3.4) as figure:
        axis = figure.subplots()
        axis.plot(
            _means(good, "distance"),
            _means(good, "cost_of_transport_ideal"),
            ".",
            ms=4.0,
            color=ACTUAL,
        )
        axis.set_yscale("log")
        axis.set_xlabel("distance [m]")
        axis.set_ylabel("cost of transport")
    return figure


def _means(trials: Sequence[TrialResult], name: str) -> Array:
    return np.array([np.mean([run.measures[name] for run in trial.runs]) for trial in trials])


def _parameters_figure(experiment: Experiment, trials: Sequence[TrialResult]) -> Figure:
    space: Any = experiment.space
    ranked = best_first(trials)[:BEST]
    shares = (np.array([trial.values for trial in ranked]) - space.low) / space.span
    named = [i for i, name in enumerate(space.names) if "[" not in name]
    others = [i for i, name in enumerate(space.names) if "[" in name]
    with styled_figure(10.0, 3.2) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1, 2))
        for row, share in reversed(list(enumerate(shares))):
            color, size = (DESIRED, 4.0) if row else (ACTUAL, 6.0)
            left.plot(share[named], np.arange(len(named)), ".", ms=size, color=color)
            right.plot(np.arange(len(others)), share[others], ".", ms=0.7 * size, color=color)
        left.set_yticks(np.arange(len(named)), [space.names[i] for i in named])
        left.invert_yaxis()
        left.set_xlim(-0.05, 1.05)
        left.set_xlabel("share of the range")
        right.set_ylim(-0.05, 1.05)
        right.set_xlabel("couplings, then weights of networks")
    return figure
