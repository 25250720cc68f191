"""Write the parameter tables of muscles.md from the dataclasses of the actuators.

Run ``python docs/muscle_tables.py`` after a change of a parameter; ``--check`` only compares, and
so does a test.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from pathlib import Path
from typing import Any

from cards_core.robot.actuators import ACTUATORS, Motor, Spring, Thermal, Valve

PAGE = Path(__file__).with_name("muscles.md")
GROUPS = {"motor": Motor, "spring": Spring, "thermal": Thermal, "valve": Valve}


def accepted(field: dataclasses.Field[Any]) -> str:
    """Return the accepted values of a parameter."""
    limits = field.metadata
    if limits["choices"]:
        return ", ".join(f"`{name}`" for name in limits["choices"])
    bounds = []
    if math.isfinite(limits["above"]):
        bounds.append(f"> {limits['above']:g}")
    if math.isfinite(limits["minimum"]):
        bounds.append(f">= {limits['minimum']:g}")
    if math.isfinite(limits["maximum"]):
        bounds.append(f"<= {limits['maximum']:g}")
    return ", ".join(bounds)


def default(field: dataclasses.Field[Any]) -> str:
    """Return the default of a parameter as it would be written."""
    if field.default is dataclasses.MISSING:
        return "mandatory"
    if field.default is None:
        return ""
    return f"{field.default:g}" if isinstance(field.default, float) else str(field.default)


def table(group: type[Any]) -> list[str]:
    """Return the table of one group as lines of Markdown."""
    lines = ["| attribute | unit | default | accepted | meaning |", "|---|---|---|---|---|"]
    for field in dataclasses.fields(group):
        if "unit" in field.metadata:
            meta = field.metadata
            cells = (f"`{field.name}`", meta["unit"], default(field), accepted(field))
            lines.append(f"| {' | '.join(cells)} | {meta['meaning']} |")
    return lines


def with_tables(text: str) -> str:
    """Return the page with new tables between its ``<!-- parameters of NAME -->`` marks."""
    for name, group in (ACTUATORS | GROUPS).items():
        begin, end = f"<!-- parameters of {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        lines = "\n".join([begin, "", *table(group), "", end])
        text, count = pattern.subn(lambda _match, lines=lines: lines, text)
        if count != 1:
            raise SystemExit(f"{PAGE.name}: {count} tables marked '{begin}', expected one")
    return text


if __name__ == "__main__":
    before = PAGE.read_text()
    after = with_tables(before)
    if "--check" in sys.argv[1:]:
        raise SystemExit(0 if before == after else f"{PAGE.name} is old: run python {sys.argv[0]}")
    PAGE.write_text(after)
