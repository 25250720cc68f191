"""The report of a campaign: JSON with everything, and a page to read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from cards_bringup.reproduce.report import html_page
from cards_bringup.soak.plan import Plan
from cards_core import __version__
from cards_core.files import write_atomically

JSON = "report.json"
HTML = "report.html"

HEAD = ("at", "fault", "target", "lasts", "to safe state", "until commanded again", "verdict", "")


def summary(
    plan: Plan,
    schedule: Sequence[Mapping[str, Any]],
    episodes: Sequence[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Return the report as plain data.

    Args:
        plan: The plan.
        schedule: All episodes that were to be, see `Episode.to_json`.
        episodes: What became of those that were.
        **more: Seed, hours and how it ended.
    """
    violations = [v for episode in episodes for v in episode["violations"]]
    faults = [f for episode in episodes for f in episode["faults"]]
    kinds: dict[str, dict[str, Any]] = {}
    for fault in faults:
        row = kinds.setdefault(
            fault["kind"], {"done": 0, "skipped": 0, "violations": 0, "to_safe_max_s": None}
        )
        row["skipped" if fault["skipped"] else "done"] += 1
        row["violations"] += len(fault["violations"])
        if fault["to_safe_s"] is not None:
            row["to_safe_max_s"] = max(row["to_safe_max_s"] or 0.0, fault["to_safe_s"])
    if more.get("hours") == math.inf:
        more["hours"] = None  # a replay
    return {
        "cards_version": __version__,
        **more,
        "plan": asdict(plan),
        "episodes_done": len(episodes),
        "faults_done": sum(not f["skipped"] for f in faults),
        "faults_skipped": sum(bool(f["skipped"]) for f in faults),
        "violations": len(violations),
        "verdict": "failed" if violations else "ok" if episodes else "nothing done",
        "kinds": kinds,
        "episodes": list(episodes),
        "schedule": list(schedule),
    }


def write(folder: Path, data: Mapping[str, Any]) -> Path:
    """Write both files; return the page. Raises `OSError`."""
    write_atomically(folder / JSON, json.dumps(data, indent=1, allow_nan=False) + "\n")
    write_atomically(folder / HTML, page(data))
    return folder / HTML


def page(data: Mapping[str, Any]) -> str:
    """Return the page."""
    lines = [
        f"<h1>Chaos campaign {_badge(data['verdict'])}</h1>",
        f'<p class="paper">{escape(data["plan"]["robot"])}, seed {data["seed"]}, '
        f"{data['wall_s'] / 3600:.2f} h: {data['episodes_done']} of {len(data['schedule'])} "
        f"episodes, {data['faults_done']} faults, {data['faults_skipped']} skipped, "
        f"{data['violations']} violations. {escape(data['ended'])}</p>",
        "<h2>Faults by kind</h2>",
        "<table><tr><th>fault</th><th>done</th><th>skipped</th><th>violations</th>"
        "<th>longest time to safe state</th></tr>",
    ]
    for kind, row in sorted(data["kinds"].items()):
        lines.append(
            f'<tr><td>{escape(kind)}</td><td class="number">{row["done"]}</td>'
            f'<td class="number">{row["skipped"]}</td>'
            f'<td class="number">{row["violations"]}</td>'
            f'<td class="number">{_time(row["to_safe_max_s"])}</td></tr>'
        )
    lines.append("</table>")
    found = [(e, v) for e in data["episodes"] for v in e["violations"]]
    if found:
        lines.append("<h2>Violations</h2><ul>")
        lines += [
            f"<li>episode {e['number']}, {v['at']:.2f} s, <b>{escape(v['invariant'])}</b>: "
            f"{escape(v['text'])}</li>"
            for e, v in found
        ]
        lines.append("</ul>")
    for episode in data["episodes"]:
        lines += _episode(episode)
    return html_page("chaos campaign", lines)


def _episode(episode: Mapping[str, Any]) -> list[str]:
    notes = "; ".join(f"{name}: {value}" for name, value in episode["facts"].items())
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    lines = [
        f"<h2>Episode {episode['number']}: {escape(episode['system'])} "
        f"{_badge('failed' if episode['violations'] else 'ok')}</h2>",
        f'<p class="paper">{escape(notes)}</p>',
        f"<table><tr>{head}</tr>",
    ]
    for fault in episode["faults"]:
        verdict = "failed" if fault["violations"] else "skipped" if fault["skipped"] else "ok"
        note = fault["skipped"] or fault["note"] or ""
        lines.append(
            f'<tr><td class="number">{fault["at"]:.2f} s</td><td>{escape(fault["kind"])}</td>'
            f"<td>{escape(fault['target'])}</td>"
            f'<td class="number">{fault["duration"]:.2f} s</td>'
            f'<td class="number">{_time(fault["to_safe_s"])}</td>'
            f'<td class="number">{_time(fault["recovered_s"])}</td>'
            f"<td>{_badge(verdict)}</td><td>{escape(str(note))}</td></tr>"
        )
    return [*lines, "</table>"]


def _time(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"


def _badge(text: str) -> str:
    kind = {"ok": "reproduced", "failed": "wrong"}.get(text, "open")
    return f'<span class="verdict {kind}">{escape(text)}</span>'
