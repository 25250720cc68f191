"""Reports of experiments: as data, as Markdown, and as a page that needs no other file."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cards_bringup.reproduce.experiment import (
    Experiment,
    Judgement,
    VerdictName,
    number,
    with_unit,
    worst,
)
from cards_core import __version__
from cards_core.exit_codes import ExitCode
from cards_core.json_values import json_value

JSON = "report.json"
MARKDOWN = "report.md"
HTML = "report.html"

State: TypeAlias = Literal["not run", "interrupted", "could not run", "skipped", "done"]


@dataclass
class RunEntry:
    """A run in a report.

    Attributes:
        name: Of the run.
        setup: Its set-up.
        folder: Below that of the report.
        state: ``kept`` from an earlier time, or why not.
        wall_time: How long it took, [s].
        machine: Where it was made: processor, cores, version of Python.
    """

    name: str
    setup: Mapping[str, Any]
    folder: str
    state: Literal["made", "kept", "not finished"] = "not finished"
    wall_time: float = math.nan
    machine: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class PlotFile:
    """A plot: where it is, its path below the folder of the report, and what is to be seen."""

    file: Path
    path: str
    caption: str


@dataclass
class Result:
    """What became of an experiment.

    Attributes:
        experiment: The experiment.
        state: How far it came.
        judgements: One for each claim once it is done.
        runs: Those that were begun.
        tables: CSV files, paths below the folder of the report.
        plots: Plots.
        error: Why it could not run, or was skipped.
    """

    experiment: Experiment
    state: State = "not run"
    judgements: list[Judgement] = field(default_factory=list)
    runs: list[RunEntry] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    plots: list[PlotFile] = field(default_factory=list)
    error: str = ""

    def fail(self, error: str) -> None:
        """State why it could not run."""
        self.state, self.error = "could not run", error
        self.judgements = []

    def skip(self, reason: str) -> None:
        """State what it needs that is not here."""
        self.state, self.error = "skipped", reason

    @property
    def verdict(self) -> VerdictName | None:
        """The worst verdict on a claim; None unless the experiment is done."""
        return worst(j.verdict for j in self.judgements) if self.state == "done" else None

    @property
    def outcome(self) -> str:
        """The verdict, or the state."""
        return self.verdict or self.state


def exit_code(results: Sequence[Result]) -> ExitCode:
    """Return how ``./cards reproduce`` ends: see its help."""
    states = {result.state for result in results}
    if "could not run" in states:
        return ExitCode.ERROR
    if states - {"done", "skipped"}:
        return ExitCode.INTERRUPTED
    if any(result.verdict == "not reproduced" for result in results):
        return ExitCode.FAILED
    return ExitCode.DONE


def content(results: Sequence[Result]) -> dict[str, Any]:
    """Return ``report.json``: numbers that are not finite are null."""
    return {
        "cards_version": __version__,
        "exit_code": int(exit_code(results)),
        "experiments": [_entry(result) for result in results],
    }


def _entry(result: Result) -> dict[str, Any]:
    one = result.experiment
    return {
        "key": one.key,
        "title": one.title,
        "paper": vars(one.paper),
        "state": result.state,
        "verdict": result.verdict,
        "error": result.error or None,
        "claims": [_claim(judgement) for judgement in result.judgements],
        "runs": [
            {
                "name": run.name,
                "state": run.state,
                "folder": run.folder,
                "wall_time_s": json_value(run.wall_time),
                "machine": dict(run.machine),
                "setup": dict(run.setup),
            }
            for run in result.runs
        ],
        "tables": result.tables,
        "plots": [{"file": plot.path, "caption": plot.caption} for plot in result.plots],
        "notes": list(one.notes),
    }


def _claim(judgement: Judgement) -> dict[str, Any]:
    claim = judgement.claim
    return {
        "value": claim.value,
        "claim": claim.text,
        "source": claim.source,
        "published": claim.published,
        "statement": claim.statement or None,
        "ours": json_value(judgement.value),
        "unit": claim.unit,
        "accepted": [json_value(claim.band.low), json_value(claim.band.high)],
        "why": claim.why,
        "verdict": judgement.verdict,
        "reason": judgement.reason or None,
    }


def claim_columns(judgements: Sequence[Judgement]) -> dict[str, list[Any]]:
    """Return the claims as columns of a table."""
    return {
        "claim": [j.claim.text for j in judgements],
        "published": [
            j.claim.statement if j.claim.published is None else j.claim.published
            for j in judgements
        ],
        "ours": [j.value for j in judgements],
        "unit": [j.claim.unit for j in judgements],
        "accepted_from": [j.claim.band.low for j in judgements],
        "accepted_to": [j.claim.band.high for j in judgements],
        "verdict": [j.verdict for j in judgements],
        "reason": [j.reason for j in judgements],
        "source": [j.claim.source for j in judgements],
    }


def counts(result: Result) -> str:
    """Return the number of claims by verdict: ``8 of 9 reproduced, 1 differs``."""
    names = [j.verdict for j in result.judgements]
    parts = [f"{names.count('reproduced')} of {len(names)} reproduced"]
    if names.count("differs"):
        parts.append(f"{names.count('differs')} different for a known reason")
    if names.count("not reproduced"):
        parts.append(f"{names.count('not reproduced')} not reproduced")
    return ", ".join(parts)


def line(result: Result) -> str:
    """Return the outcome of an experiment, in one line."""
    said = counts(result) if result.state == "done" else result.error
    return f"{result.experiment.key}: {result.outcome}" + (f" ({said})" if said else "")


def _setup_rows(result: Result) -> list[tuple[str, str]]:
    """Return the common set-up of all runs, then the changes of each run."""
    one = result.experiment
    rows = [(name, json.dumps(value)) for name, value in one.setup.items()]
    if len(one.runs) > 1:
        rows += [(f"run {name}", json.dumps(change)) for name, change in one.runs.items()]
    return rows


CLAIM_HEAD = ("claim", "published", "ours", "accepted", "verdict")


def _claim_cells(judgement: Judgement) -> tuple[str, str, str, str, str]:
    claim = judgement.claim
    return (
        claim.text,
        claim.published_text,
        with_unit(judgement.value, claim.unit),
        f"{claim.band} {claim.unit}".rstrip(),
        judgement.verdict,
    )


def _remarks(result: Result) -> list[tuple[str, list[str]]]:
    """Return sources, bands and reasons, each once, with the claims that they are about."""
    groups: dict[str, list[str]] = {}
    for judgement in result.judgements:
        claim = judgement.claim
        if claim.why:
            groups.setdefault(f"accepted: {claim.why}", []).append(claim.text)
        if judgement.reason:
            groups.setdefault(f"differs: {judgement.reason}", []).append(claim.text)
    return list(groups.items())


def _sources(result: Result) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for claim in result.experiment.claims:
        groups.setdefault(claim.source, []).append(claim.text)
    return list(groups.items())


def _run_line(run: RunEntry) -> str:
    if run.state == "not finished":
        return f"Run {run.name}: {run.state}"
    where = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    return f"Run {run.name}: {run.state}, {number(run.wall_time)} s; {where}"


# Markdown ----------------------------------------------------------------------------------------


def markdown(results: Sequence[Result]) -> str:
    """Return the report as Markdown; plots and tables are linked."""
    lines = ["# Published results and ours", "", f"CARDS {__version__}.", ""]
    lines += _markdown_table(
        ("experiment", "title", "result"),
        [(r.experiment.key, r.experiment.title, _summary(r)) for r in results],
    )
    for result in results:
        lines += _markdown_section(result)
    return "\n".join(lines) + "\n"


def _summary(result: Result) -> str:
    if result.state == "done":
        return f"**{result.outcome}**: {counts(result)}"
    return f"**{result.outcome}**" + (f": {result.error}" if result.error else "")


def _markdown_section(result: Result) -> list[str]:
    one = result.experiment
    lines = ["", f"## {one.key}: {one.title}", ""]
    lines += [f"{one.paper.title} [{one.paper.reference}]. {_summary(result)}.", ""]
    if result.judgements:
        lines += _markdown_table(CLAIM_HEAD, [_claim_cells(j) for j in result.judgements])
        lines.append("")
    for text, claims in _remarks(result):
        lines.append(f"- {text} ({_listed(claims, len(result.judgements))})")
    for text, claims in _sources(result):
        lines.append(f"- source: {text} ({_listed(claims, len(one.claims))})")
    lines += [f"- note: {note}" for note in one.notes]
    for plot in result.plots:
        lines += ["", f"![{plot.caption}]({plot.path})", "", plot.caption]
    lines += ["", "Set-up:", ""]
    lines += _markdown_table(("", "value"), [(n, f"`{v}`") for n, v in _setup_rows(result)])
    lines += ["", *(f"- {_run_line(run)}" for run in result.runs)]
    if result.tables or result.runs:
        lines += ["", "Data: " + ", ".join(f"[{path}]({path})" for path in _data(result))]
    return lines


def _data(result: Result) -> list[str]:
    return [*result.tables, *(f"{run.folder}/" for run in result.runs)]


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def cells(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

    return [cells(head), "|" + "---|" * len(head), *map(cells, rows)]


def _listed(claims: Sequence[str], total: int) -> str:
    """Return claims by name, or how many where that would be long."""
    if len(claims) == total:
        return "all claims"
    return "; ".join(claims) if len(claims) <= 3 else f"{len(claims)} claims"


# HTML --------------------------------------------------------------------------------------------

STYLE = """
body { font: 15px/1.5 "DejaVu Sans", system-ui, sans-serif; color: #222; background: #fff;
  max-width: 68rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin: 3rem 0 .3rem; padding-top: 1rem; border-top: 1px solid #ddd; }
p.paper { color: #555; margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .87rem; }
th { text-align: left; font-weight: 600; color: #555; border-bottom: 1.5px solid #bbb; }
th, td { padding: .3rem .7rem .3rem 0; vertical-align: top; }
td { border-bottom: 1px solid #eee; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font-size: .8rem; overflow-wrap: anywhere; }
.verdict { white-space: nowrap; font-weight: 600; padding: .05rem .5rem; border-radius: .6rem; }
.reproduced { color: #12602f; background: #def2e4; }
.differs { color: #775400; background: #fdf0cd; }
.wrong { color: #8f1d14; background: #fbe0dd; }
.open { color: #555; background: #eee; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; }
figcaption { color: #555; font-size: .87rem; }
ul { padding-left: 1.2rem; font-size: .87rem; } summary { cursor: pointer; color: #555; }
"""

CLASSES = {
    "reproduced": "reproduced",
    "differs": "differs",
    "not reproduced": "wrong",
    "could not run": "wrong",
}


def html(results: Sequence[Result]) -> str:
    """Return the report as one page with the plots in it."""
    rows = [
        f'<tr><td><a href="#{escape(r.experiment.key)}">{escape(r.experiment.key)}</a></td>'
        f"<td>{escape(r.experiment.title)}</td><td>{_badge(r.outcome)}</td>"
        f"<td>{escape(counts(r) if r.state == 'done' else r.error)}</td></tr>"
        for r in results
    ]
    body = [
        "<h1>Published results and ours</h1>",
        f'<p class="paper">CARDS {escape(__version__)}</p>',
        "<table><tr><th></th><th>experiment</th><th>result</th><th>claims</th></tr>",
        *rows,
        "</table>",
    ]
    for result in results:
        body += _html_section(result)
    return html_page("published results and ours", body)


def html_page(title: str, body: Sequence[str], *, reload: float | None = None) -> str:
    """Return a page in the style of reports that needs no other file.

    Args:
        title: After the name of CARDS.
        body: Lines of HTML.
        reload: Period at which browsers read the page again, [s]; None: never.
    """
    again = "" if reload is None else f'<meta http-equiv="refresh" content="{reload:.0f}">\n'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n{again}'
        f"<title>CARDS: {escape(title)}</title>\n<style>{STYLE}</style></head>\n"
        "<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _badge(text: str) -> str:
    return f'<span class="verdict {CLASSES.get(text, "open")}">{escape(text)}</span>'


def _html_section(result: Result) -> list[str]:
    one = result.experiment
    lines = [
        f'<h2 id="{escape(one.key)}">{escape(one.key)}: {escape(one.title)} '
        f"{_badge(result.outcome)}</h2>",
        f'<p class="paper">{escape(one.paper.title)} [{escape(one.paper.reference)}]</p>',
    ]
    if result.error:
        lines.append(f"<p>{escape(result.error)}</p>")
    if result.judgements:
        head = "".join(f"<th>{name}</th>" for name in CLAIM_HEAD)
        lines.append(f"<table><tr>{head}</tr>")
        for judgement in result.judgements:
            text, published, ours, accepted, verdict = _claim_cells(judgement)
            kind = "" if judgement.claim.published is None else ' class="number"'
            lines.append(
                f"<tr><td>{escape(text)}</td><td{kind}>{escape(published)}</td>"
                f'<td class="number">{escape(ours)}</td>'
                f'<td class="number">{escape(accepted)}</td><td>{_badge(verdict)}</td></tr>'
            )
        lines.append("</table>")
    items = [f"{t} ({_listed(c, len(result.judgements))})" for t, c in _remarks(result)]
    items += [f"source: {t} ({_listed(c, len(one.claims))})" for t, c in _sources(result)]
    items += [f"note: {note}" for note in one.notes]
    lines += ["<ul>", *(f"<li>{escape(item)}</li>" for item in items), "</ul>"]
    for plot in result.plots:
        data = base64.b64encode(plot.file.read_bytes()).decode()
        lines.append(
            f'<figure><img alt="{escape(plot.caption)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(plot.caption)}</figcaption></figure>"
        )
    lines.append("<details><summary>Set-up and data</summary><table>")
    lines += [
        f"<tr><td>{escape(name)}</td><td><code>{escape(value)}</code></td></tr>"
        for name, value in _setup_rows(result)
    ]
    lines.append("</table>")
    for run in result.runs:
        lines.append(f"<p>{escape(_run_line(run))}</p>")
    links = (f'<a href="{escape(path)}">{escape(path)}</a>' for path in _data(result))
    lines.append(f"<p>Data: {', '.join(links)}</p></details>")
    return lines
