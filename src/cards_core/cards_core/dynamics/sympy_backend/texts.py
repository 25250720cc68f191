"""A `Document` as LaTeX that compiles by itself, and as Markdown with ``$$`` formulas."""

from __future__ import annotations

import re

from cards_core.dynamics.sympy_backend.document import CONVENTIONS, Document, Section

BLOCK_LINES = 12
"""Lines of a block of formulas in Markdown."""

_HEAD = r"""\documentclass[a4paper]{article}
\usepackage[utf8]{inputenc}
\usepackage{amsmath}
\usepackage{longtable}
\usepackage[margin=20mm]{geometry}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
"""

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
} | {c: "\\" + c for c in "&%$#_{}"}


def latex_document(document: Document) -> str:
    """Return a LaTeX document that needs only packages of every distribution."""
    parts = [_HEAD + rf"\title{{{escaped(document.title)}}}", r"\date{}", r"\begin{document}"]
    parts.append(r"\maketitle")
    parts.append(f"\\[\n{CONVENTIONS}\n\\]")
    if document.coordinates:
        parts.append(_latex_table("Coordinates", document.coordinates, formula_columns=(0,)))
    if document.parameters:
        parts.append(_latex_table("Parameters", document.parameters, formula_columns=(0, 1)))
    for section in document.sections:
        parts.append(f"\\section*{{{escaped(section.title)}}}\n{_text(section.text)}")
        if section.formulas:
            parts.append(_aligned(section, "align*"))
    parts.append(r"\section*{Notes}")
    parts += [escaped(note) + "\n" for note in document.notes]
    parts.append(r"\end{document}")
    return "\n".join(parts) + "\n"


def markdown_document(document: Document) -> str:
    """Return Markdown with ``$$`` formulas, as GitHub and Jupyter show them."""
    parts = [f"# {document.title}", f"$$\n{CONVENTIONS}\n$$"]
    if document.coordinates:
        rows = [(f"${a}$", f"`{b}`", c) for a, b, c in document.coordinates]
        parts.append(_markdown_table("Coordinates", ("symbol", "joint", "what"), rows))
    if document.parameters:
        rows = [(f"${a}$", f"${b}$", c) for a, b, c in document.parameters]
        parts.append(_markdown_table("Parameters", ("symbol", "value", "what"), rows))
    for section in document.sections:
        parts.append(f"## {section.title}\n\n{section.text}")
        parts += ["$$\n" + _aligned(block, "aligned") + "\n$$" for block in _blocks(section)]
    parts.append("## Notes\n\n" + "\n\n".join(document.notes))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Return plain text for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def _text(text: str) -> str:
    """Plain text with formulas between dollar signs."""
    parts = re.split(r"(\$[^$]*\$)", text)
    return "".join(part if part.startswith("$") else escaped(part) for part in parts)


def _blocks(section: Section) -> list[Section]:
    """Split the formulas of a section: a block of Markdown cannot break over pages."""
    out: list[Section] = []
    for formula in section.formulas:
        size = sum(len(lines) for _, lines in out[-1].formulas) if out else BLOCK_LINES
        if size + len(formula[1]) > BLOCK_LINES:
            out.append(Section(section.title))
        out[-1].formulas.append(formula)
    return out


def _aligned(section: Section, environment: str) -> str:
    rows = []
    for left, lines in section.formulas:
        rows.append(f"{left} &= {lines[0]}")
        rows += [rf"&\quad {line}" for line in lines[1:]]
    body = " \\\\\n".join(rows)
    return f"\\begin{{{environment}}}\n{body}\n\\end{{{environment}}}"


def _latex_table(
    title: str, rows: list[tuple[str, str, str]], *, formula_columns: tuple[int, ...]
) -> str:
    lines = [rf"\section*{{{title}}}", r"\begin{longtable}{lll}"]
    for row in rows:
        cells = [
            f"${cell}$" if k in formula_columns else escaped(cell) for k, cell in enumerate(row)
        ]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\end{longtable}"])


def _markdown_table(
    title: str, heads: tuple[str, str, str], rows: list[tuple[str, str, str]]
) -> str:
    lines = [f"## {title}", "", "| " + " | ".join(heads) + " |", "|---|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
