"""A robot's equations in the order of a text, before they become LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import sympy as sp

from cards_core.dynamics.sympy_backend.abbreviations import Abbreviations
from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.latex_expressions import LatexExpressions, number
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.sympy_backend.quantities import Quantity, select
from cards_core.dynamics.sympy_backend.subexpressions import common_subexpressions

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
