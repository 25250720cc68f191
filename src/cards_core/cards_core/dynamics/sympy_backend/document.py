"""A robot's equations in the order of a text, as LaTeX that compiles by itself and as Markdown.

SymPy's printer writes one line of any length. Here, so that lines fit a page, sums are broken
between terms, also those in brackets, and long numbers are rounded for the eye.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.sympy_backend.quantities import Quantity, select
from cards_core.dynamics.sympy_backend.subexpressions import Abbreviations, common_subexpressions

DIGITS = 8
"""Digits of numbers that are neither short decimals nor short fractions."""

LINE = 78
"""Characters of mathematics that fit on a line of a page."""


class LatexExpressions:
    """Writes expressions.

    Args:
        names: Symbol to its LaTeX, where that is not what SymPy would write.
    """

    def __init__(self, names: Mapping[Expr, str]) -> None:
        self._names = names

    def write(self, expression: Expr) -> str:
        """Return an expression in one line."""
        terms = [self._signed(term) for term in _terms(expression)]
        return _joined(terms)

    def lines(self, expression: Expr, width: int = LINE) -> list[str]:
        """Return an expression in lines; each but the first starts with its sign."""
        terms: list[tuple[str, str]] = []
        for term in _terms(expression):
            signed = self._signed(term)
            if _width(signed[1]) > width:
                terms += self._bracketed(term) or [signed]
            else:
                terms.append(signed)
        out: list[str] = []
        line: list[tuple[str, str]] = []
        length = 0
        for sign, body in terms:
            if line and length + _width(body) + 2 > width:
                out.append(_joined(line, first=not out))
                line, length = [], 0
            line.append((sign, body))
            length += _width(body) + 2
        return [*out, _joined(line, first=not out)]

    def _bracketed(self, term: Expr) -> list[tuple[str, str]]:
        """The terms of a product with one sum, the first and last with what stands around it."""
        sums = [factor for factor in term.args if factor.is_Add] if term.is_Mul else []
        if len(sums) != 1:
            return []
        factors = sorted((x for x in term.args if x != sums[0]), key=_rank)
        before = sp.Mul(*(x for x in factors if _rank(x) < 4))
        after = sp.Mul(*(x for x in factors if _rank(x) == 4))
        sign, head = ("+", "") if before == 1 else self._signed(before)
        head = rf"{head} \, \bigl(" if head and head != "1" else r"\bigl("
        inner = [self._signed(part) for part in _terms(sums[0])]
        first = _joined(inner[:1])
        tail = r"\bigr)" if after == 1 else rf"\bigr) \, {self._product(after)}"
        inner[0] = (sign, f"{head}{first}")
        inner[-1] = (inner[-1][0], f"{inner[-1][1]}{tail}")
        return inner

    def _signed(self, term: Expr) -> tuple[str, str]:
        if term.could_extract_minus_sign() and not term.is_Add:
            return "-", self._product(-term)
        return "+", self._product(term)

    def _product(self, term: Expr) -> str:
        """A product as a fraction with negative powers in the denominator."""
        if term.is_Rational:
            return number(term)
        coefficient, rest = term.as_coeff_Mul(rational=True)
        powers = [factor.as_base_exp() for factor in sorted(rest.as_ordered_factors(), key=_rank)]
        over = [(base, power) for base, power in powers if not power.is_negative]
        alone = len(over) == 1 and coefficient == 1
        above = [self._power(base, power, alone=alone) for base, power in over]
        below = [
            self._power(base, -power, alone=False) for base, power in powers if power.is_negative
        ]
        split = coefficient.q != 1 and _is_short(coefficient)
        if below and split:
            below.insert(0, str(coefficient.q))
            coefficient = sp.Integer(coefficient.p)
        if coefficient != 1 or not above:
            above.insert(0, number(coefficient))
        top, bottom = (r" \, ".join(part) for part in (above, below))
        return rf"\frac{{{top}}}{{{bottom}}}" if below else top

    def _power(self, base: Expr, power: Expr, *, alone: bool) -> str:
        if power == sp.Rational(1, 2):
            return rf"\sqrt{{{self.write(base)}}}"
        if base.is_Add or base.is_Mul:
            text = self.write(base)
            if not (alone and power == 1):
                text = rf"\left({text}\right)"
        else:
            text = self._atom(base)
        if power == 1:
            return text
        if base.is_Symbol and text.startswith(r"\dot"):
            text = f"{{{text}}}"
        return f"{text}^{{{self.write(power)}}}"

    def _atom(self, expression: Expr) -> str:
        if expression.is_Symbol:
            return symbol(expression, self._names)
        if expression.is_Rational:
            return number(expression)
        if isinstance(expression, sp.sin | sp.cos):
            name = "sin" if isinstance(expression, sp.sin) else "cos"
            return rf"\{name}\left({self.write(expression.args[0])}\right)"
        if expression.is_Pow:
            return self._product(expression)
        return str(sp.latex(expression))


def _rank(factor: Expr) -> int:
    """Order of factors: parameters, coordinates, sums, waves, velocities."""
    base = factor.as_base_exp()[0]
    if not base.is_Symbol:
        return 2
    return {"q": 1, "c": 3, "s": 3, "qd": 4}.get(str(base).partition("_")[0], 0)


def symbol(item: Expr, names: Mapping[Expr, str]) -> str:
    """Return the LaTeX of a symbol: ``qd_1`` is a rate, ``r_1_2x`` has two indices."""
    if item in names:
        return names[item]
    letter, _, index = str(item).partition("_")
    if not index:
        digits = letter.lstrip("abcdefghijklmnopqrstuvwxyz")
        stem = letter[: len(letter) - len(digits)]
        return f"{stem}_{{{digits}}}" if digits and stem else letter
    index = re.sub(r"(?<=\d)([xyz]+)$", r"\\mathrm{\1}", index.strip("_"))
    index = ",".join(_escaped(part) for part in index.split("_"))
    return rf"\dot{{q}}_{{{index}}}" if letter == "qd" else f"{letter}_{{{index}}}"


def number(value: Expr) -> str:
    """Return a rational number: a short fraction, a decimal, or `DIGITS` of its digits."""
    if value.is_Integer:
        return str(value) if len(str(value)) <= DIGITS + 4 else _rounded(value)
    if _is_short(value):
        sign = "-" if value < 0 else ""
        return rf"{sign}\frac{{{abs(value.p)}}}{{{value.q}}}"
    return _rounded(value)


def _is_short(value: Expr) -> bool:
    return bool(value.q < 1000 and abs(value.p) < 1000)


def _rounded(value: Expr) -> str:
    text = f"{float(value):.{DIGITS}g}"
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _terms(expression: Expr) -> list[Expr]:
    return list(expression.as_ordered_terms()) if expression.is_Add else [expression]


def _joined(terms: list[tuple[str, str]], *, first: bool = True) -> str:
    text = " ".join(f"{sign} {body}" for sign, body in terms)
    return text[2:] if first and text.startswith("+ ") else text


def _width(text: str) -> int:
    """About how many characters wide a formula is."""
    top = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{(?:[^{}]|\{[^{}]*\})*\}", r"\1", text)
    return len(re.sub(r"\\[a-zA-Z]+|[{}_^\\, ]", "", top)) + top.count(" ") // 2


def _escaped(text: str) -> str:
    if text.startswith(r"\mathrm") or re.fullmatch(r"\d+(\\mathrm\{[xyz]+\})?", text):
        return text
    return r"\mathrm{" + text.replace("_", r"\_") + "}"


CONVENTIONS = (
    "M \\ddot{q} + C + G = -L^\\top f, \\qquad f \\ge 0 \\text{ pulls}, \\qquad "
    "L = \\partial l / \\partial q"
)


@dataclass
class Section:
    """A heading, a sentence, and formulas: (left side, lines of the right side)."""

    title: str
    text: str = ""
    formulas: list[tuple[str, list[str]]] = field(default_factory=list)


@dataclass
class Document:
    """What a text about a robot says.

    Attributes:
        title: Of the document.
        coordinates: Rows of symbol (LaTeX), name of the joint coordinate, what it is.
        parameters: Rows of symbol (LaTeX), value (LaTeX), meaning.
        sections: In order.
        notes: Sentences at the end.
    """

    title: str
    coordinates: list[tuple[str, str, str]]
    parameters: list[tuple[str, str, str]]
    sections: list[Section]
    notes: list[str]


def make_document(
    model: SymbolicModel, quantities: Iterable[str] | None = None, *, subexpressions: bool = False
) -> Document:
    """Write a robot's equations down.

    Args:
        model: The robot.
        quantities: Names of `QUANTITIES` (default: `USUAL`).
        subexpressions: Put what repeats into a table.

    Raises:
        UnknownNameError: No quantity has this name.
    """
    chosen = select(model, quantities)
    short = Abbreviations()
    matrices = {q.name: _abbreviated(short, q, model) for q in chosen}
    everything = [sp.Matrix(list(short.distances.values()))]
    everything += [matrix for group in matrices.values() for matrix in group]
    used = set[Expr]().union(*(matrix.free_symbols for matrix in everything))
    table: list[tuple[Expr, Expr]] = []
    distances = list(short.distances.items())
    if subexpressions:
        flat = [root.base for _, root in distances]
        flat += [x for group in matrices.values() for matrix in group for x in matrix]
        table, flat = common_subexpressions(flat, "x_", longest=10**9)
        bases = [flat.pop(0) for _ in distances]
        distances = [(name, sp.sqrt(b)) for (name, _), b in zip(distances, bases, strict=True)]
        for name, group in matrices.items():
            matrices[name] = [
                sp.Matrix(*m.shape, [flat.pop(0) for _ in range(len(m))]) for m in group
            ]
    write = LatexExpressions({**short.latex, **_coordinate_names(model)})
    sections = _definitions(model, short, distances, table, write)
    for quantity in chosen:
        sections.append(_section(quantity, matrices[quantity.name], write))
    return Document(
        title=f"Equations of {model.robot.name}",
        coordinates=_coordinates(model, write),
        parameters=[
            (write.write(name), number(value), model.meaning[name])
            for name, value in model.parameters.items()
            if name in used
        ],
        sections=sections,
        notes=_notes(model, chosen),
    )


def _abbreviated(short: Abbreviations, quantity: Quantity, model: SymbolicModel) -> list[Expr]:
    return [matrix.applyfunc(short.apply) for matrix in quantity.value(model)]


def _coordinate_names(model: SymbolicModel) -> dict[Expr, str]:
    """Velocities of ball joints are no rates of coordinates: they are written omega."""
    names = {}
    for node in model.tree.nodes:
        if node.kind == "ball":
            for k in range(node.v, node.v + 3):
                names[model.qd[k]] = rf"\omega_{{{k + 1}}}"
    return names


def _coordinates(model: SymbolicModel, write: LatexExpressions) -> list[tuple[str, str, str]]:
    rows = []
    for node in model.tree.nodes:
        position, velocity = model.tree.position_names, model.tree.velocity_names
        text = {
            "revolute": "angle [rad]",
            "prismatic": "displacement [m]",
            "ball": "quaternion w, x, y, z of unit length",
        }[node.kind]
        for k in range(node.q, node.q + node.nq):
            rows.append((write.write(model.q[k]), position[k], text))
        if node.kind == "ball":
            for k in range(node.v, node.v + 3):
                spin = "angular velocity in axes of the moving body [rad/s]"
                rows.append((write.write(model.qd[k]), velocity[k], spin))
    return rows


def _definitions(
    model: SymbolicModel,
    short: Abbreviations,
    distances: list[tuple[Expr, Expr]],
    table: list[tuple[Expr, Expr]],
    write: LatexExpressions,
) -> list[Section]:
    """Sections of what the others use."""
    out = []
    if short.waves:
        section = Section("Abbreviations", "Sines and cosines of angles and of their sums.")
        rows = sorted(short.waves.items(), key=lambda item: (str(item[0])[2:], str(item[0])[0]))
        section.formulas = [(write.write(name), [write.write(wave)]) for name, wave in rows]
        out.append(section)
    if distances:
        section = Section("Distances", "Lengths of the straight pieces of the muscles.")
        section.formulas = [
            (f"{write.write(name)}^2", write.lines(root**2)) for name, root in distances
        ]
        out.append(section)
    if table:
        section = Section("Common subexpressions", "In the order of their use; also in distances.")
        section.formulas = [(write.write(name), write.lines(value)) for name, value in table]
        out.insert(1, section)
    return out


def _section(quantity: Quantity, group: list[Expr], write: LatexExpressions) -> Section:
    section = Section(quantity.text.partition(" (")[0], quantity.text + ".")
    symmetric = quantity.name == "M"
    zeros = 0
    for number_, matrix in enumerate(group, start=1):
        rows, columns = matrix.shape
        for i in range(rows):
            for j in range(i if symmetric else 0, columns):
                if matrix[i, j] == 0:
                    zeros += 1
                    continue
                index = [number_] if len(group) > 1 else []
                index += [i + 1] if columns == 1 else [i + 1, j + 1]
                left = _indexed(quantity.latex, index, scalar=matrix.shape == (1, 1))
                section.formulas.append((left, write.lines(matrix[i, j])))
    if symmetric:
        section.text += " It is symmetric: $M_{ji} = M_{ij}$."
    if not section.formulas:
        section.text += " It is zero."
    elif zeros:
        section.text += " Entries that are not listed are zero."
    return section


def _indexed(latex: str, index: list[int], *, scalar: bool) -> str:
    if scalar and latex == "U":
        return latex
    separator = "," if any(k > 9 for k in index) else ""
    # a dot or a name of two letters is one symbol with an index
    stem = f"({latex})" if " " in latex or "_" in latex or r"\dot" in latex else latex
    return f"{stem}_{{{separator.join(map(str, index))}}}"


def _notes(model: SymbolicModel, chosen: list[Quantity]) -> list[str]:
    notes = []
    names = {q.name for q in chosen}
    muscles = ", ".join(f"{i + 1} {name}" for i, name in enumerate(model.muscle_names))
    if muscles and names & {"l", "L", "Ldot_qd", "dL_dq", "V"}:
        notes.append(f"Muscles: {muscles}.")
    if names & {"y", "R", "J", "Jdot_qd"}:
        notes.append(f"Operational frame: {model.robot.operational_frame}.")
    if names & {"W", "V", "M_b", "C_b", "G_b"}:
        bodies = ", ".join(f"{b.number} {' + '.join(b.links)}" for b in model.kinematics.bodies)
        notes.append(f"Bodies: {bodies}.")
    left_out = len(model.robot.muscles) - len(model.muscle_names)
    if left_out:
        notes.append(f"{left_out} muscles of the robot are left out.")
    notes.append("Numbers of more than eight digits are rounded in this text; SI units.")
    if model.unfinished:
        notes.append(
            "Not fully simplified within the time limit: " + ", ".join(model.unfinished) + "."
        )
    return notes


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
