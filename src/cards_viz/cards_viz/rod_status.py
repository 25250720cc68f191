"""Status of a rod robot in plain words, and the legend of its colours, as HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from cards_core.rods.status import RodStatus
from cards_viz.colormap import css, css_gradient
from cards_viz.rod_colors import RodColors
from cards_viz.rod_snapshot import RodSnapshot

GREEN, AMBER, RED_TEXT, GREY = "#2b8a3e", "#b07400", "#c92a2a", "#868e96"

WORDS: dict[RodStatus, tuple[str, str]] = {
    RodStatus.OK: ("At its target, stable", GREEN),
    RodStatus.MOVING: ("Moving to its target", GREEN),
    RodStatus.NEAR_LIMIT: ("Close to collapse", RED_TEXT),
    RodStatus.UNSTABLE: ("Not stable: it would collapse", RED_TEXT),
    RodStatus.UNREACHABLE: ("Cannot be reached", RED_TEXT),
    RodStatus.NOT_CONVERGED: ("No equilibrium found", RED_TEXT),
    RodStatus.LIMIT: ("Beyond the limit of a joint", AMBER),
    RodStatus.BRANCH_CHANGED: ("The rods have snapped to another shape", AMBER),
    RodStatus.HELD: ("Held: the next step cannot be made", RED_TEXT),
    RodStatus.SINGULAR: ("Something can move freely", RED_TEXT),
    RodStatus.NOT_FINITE: ("The command was not a number", AMBER),
    RodStatus.YIELD: ("A rod is bent beyond its yield strain", AMBER),
    RodStatus.INVALID: ("The command makes no sense", AMBER),
    RodStatus.AMBIGUOUS: ("Which way a rod buckles is arbitrary", AMBER),
}
"""Plain words and colour of each status."""

WARN_MARGIN, ALARM_MARGIN = 0.25, 0.05
"""Parts of the first stiffness below which the bar is amber and red."""


def status_html(snapshot: RodSnapshot, turning: frozenset[str] = frozenset()) -> str:
    """Return state, message, stiffness and numbers of the solver as HTML.

    Args:
        snapshot: What to show.
        turning: Limbs whose joint turns: what they lack may be an angle, the message says it.
    """
    words, color = WORDS[snapshot.status]
    if snapshot.playing and color == GREEN:
        words = "Playing a motion"
    elif snapshot.held and snapshot.status is not RodStatus.HELD:
        words += ": stopped here"
    if not snapshot.alive:
        words, color = "Waiting for the node rod_solver", GREY
    return (
        f'<div style="padding:2px 12px 6px">'
        f'<div style="font-size:13px;margin-bottom:3px"><b style="color:{color}">● {words}</b>'
        f"</div>{_sentences(snapshot, color, turning)}{_stiffness(snapshot)}"
        f"{_numbers(snapshot)}</div>"
    )


def _sentences(snapshot: RodSnapshot, color: str, turning: frozenset[str]) -> str:
    """What is wrong: the limb and how much it lacks, the message, what was refused."""
    found = []
    if snapshot.limb is not None and snapshot.missing and snapshot.limb not in turning:
        found.append(
            f'<div style="color:{color};font-size:14px;font-weight:600">'
            f"{escape(snapshot.limb)}: {1e3 * abs(snapshot.missing):.3g} mm missing</div>"
        )
    texts = [snapshot.message, *snapshot.warnings, snapshot.refused]
    for text in dict.fromkeys(text for text in texts if text):
        found.append(
            f'<div style="color:#495057;font-size:11.5px;line-height:1.35">{escape(text)}</div>'
        )
    return f'<div style="margin-bottom:5px">{"".join(found[:4])}</div>' if found else ""


def _stiffness(snapshot: RodSnapshot) -> str:
    """The smallest eigenvalue, and as a bar how much of that at the start is left."""
    margin, value = snapshot.margin, snapshot.eigenvalue
    if not np.isfinite(value):
        return ""
    part = float(np.clip(np.nan_to_num(margin), 0.0, 1.0))
    color = GREEN if part > WARN_MARGIN else AMBER if part > ALARM_MARGIN else RED_TEXT
    percent = f"{100 * margin:.0f} % of the start" if np.isfinite(margin) else ""
    return (
        f'<div style="display:flex;justify-content:space-between;font-size:11px;color:{GREY}">'
        f"<span>stiffness, smallest eigenvalue</span><span>{percent}</span></div>"
        f'<div style="display:grid;grid-template-columns:64px 1fr;gap:8px;align-items:center">'
        f'<span style="font-size:15px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{value:.3g}</span>"
        f'<span style="background:#e9ecef;border-radius:4px;height:10px">'
        f'<span style="display:block;width:{100 * part:.1f}%;height:10px;border-radius:4px;'
        f'background:{color}"></span></span></div>'
    )


def _numbers(snapshot: RodSnapshot) -> str:
    values = snapshot.values

    def text(name: str, form: str, factor: float = 1.0) -> str:
        value = factor * values.get(name, np.nan)
        return form.format(value) if np.isfinite(value) else "–"

    cells = [
        ("one solve", text("solve_us", "{:.0f} µs")),
        ("solves", text("rate_hz", "{:.0f} Hz")),
        ("residual", text("residual", "{:.0e}")),
        ("way to go", text("remaining", "{:.0f} %", 100.0)),
    ]
    grid = "".join(
        f'<div><div style="color:{GREY};font-size:10.5px">{name}</div>'
        f'<div style="font-size:12.5px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{escape(value)}</div></div>"
        for name, value in cells
    )
    return (
        f'<div style="display:grid;grid-template-columns:1fr 1fr 1fr 1fr;gap:6px;margin-top:5px">'
        f"{grid}</div>"
    )


def legend_html(colors: RodColors, snapshot: RodSnapshot) -> str:
    """Return the colour scale and the largest value of every rod as HTML."""
    quantity, scale = colors.quantity, colors.scale
    largest = colors.values(snapshot.lines).max(axis=1)
    rows = "".join(
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:9px;'
        f"height:9px;border-radius:5px;margin-right:4px;background:"
        f'{css(scale.colors(np.array([value]))[0])}"></span>{escape(name)}'
        f'&nbsp;<b style="font-variant-numeric:tabular-nums">{value:.3g}</b></span>'
        for name, value in zip(colors.names, largest, strict=True)
    )
    return (
        f'<div style="padding:0 12px 4px;font-size:11px">'
        f'<div style="height:9px;border-radius:3px;background:{css_gradient()}"></div>'
        f'<div style="display:flex;justify-content:space-between;color:{GREY}">'
        f"<span>{scale.low:g}</span><span>{quantity.title} [{quantity.unit}]</span>"
        f"<span>{scale.high:g}</span></div>"
        f'<div style="display:grid;grid-template-columns:1fr 1fr 1fr;gap:1px 8px;margin-top:3px">'
        f"{rows}</div></div>"
    )
