"""A robot that was imported, with everything a user must know to trust, or distrust, the result.

An importer makes an `ImportedModel`; the folder, the report and the command line are the same for
all formats. Importers of formats with more to say (CASPR) have reports of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cards_core.errors import DescriptionError
from cards_core.files import inside
from cards_core.formats.imports.findings import (
    Finding,
    FindingList,
    renamed_robot,
    safe_name,
)
from cards_core.formats.imports.folder import write_import_folder
from cards_core.formats.imports.meshes import copy_meshes
from cards_core.formats.imports.source_file import REPORT
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.sdf.writer import write_model
from cards_core.robot.elements import Collision, Visual
from cards_core.robot.model import Robot

FIT_TARGETS = "muscle_fit.yaml"
"""File for ``./cards fit-muscles`` that asks for what the source has and the robot has not."""


@dataclass(frozen=True, eq=False)
class Section:
    """One part of a report.

    Attributes:
        key: Name of the part in JSON.
        title: Heading in Markdown.
        data: Plain data, as JSON has them; numbers are finite, or None.
        text: The same for people, Markdown.
    """

    key: str
    title: str
    data: Any
    text: str


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """An imported robot.

    Attributes:
        robot: What was made of the file; its name is that of the folder. Meshes with absolute
            paths are copied when it is written (`cards_core.formats.imports.meshes`).
        program: Whose format it was, e.g. ``OpenSim``.
        source: The file that was read.
        findings: Warnings and notes.
        renamed: (name in the file, our name) of everything whose name changed.
        sections: What else the report says, in this order.
        files: Further files of the folder, such as meshes: path within it to content.
        meshes: Mesh files that the import has found where it may copy from.
        description: One sentence for ``model.config``; by default it names program and source.
        size: Edges x, y, z of the box around all shapes as the file has them, [m]; None where it
            is not known.
    """

    robot: Robot
    program: str
    source: Path
    findings: FindingList
    renamed: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    meshes: frozenset[Path] = frozenset()
    description: str = ""
    size: tuple[float, float, float] | None = None

    @property
    def name(self) -> str:
        """Name of the robot and of its folder."""
        return self.robot.name

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return self.findings.warnings

    @property
    def mass(self) -> float:
        """Mass of all links together, [kg]."""
        return sum(link.inertia.mass for link in self.robot.links)

    def summary(self) -> str:
        """Return one line for a terminal."""
        robot = self.robot
        count = sum(item.count for item in self.warnings)
        size = ""
        if self.size is not None:
            size = " x ".join(f"{edge:.3g}" for edge in self.size) + " m, "
        return (
            f"{robot.name}: {len(robot.links)} links, {robot.tree.nv} degrees of freedom, "
            f"{len(robot.muscles)} muscles, {size}{self.mass:.4g} kg, "
            f"{count} warning{'' if count == 1 else 's'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        robot = self.robot
        return {
            "format": "cards-import-1",
            "name": robot.name,
            "program": self.program,
            "source": str(self.source),
            "counts": {
                "links": len(robot.links),
                "coordinates": len(robot.tree.position_names),
                "degrees_of_freedom": robot.tree.nv,
                "muscles": len(robot.muscles),
                "warnings": sum(item.count for item in self.warnings),
                "warnings_by_code": self.findings.counts(),
            },
            "mass": self.mass,
            "size": None if self.size is None else list(self.size),
            "renamed": [{"source": old, "name": new} for old, new in self.renamed],
            **{section.key: section.data for section in self.sections},
            "findings": [dict(item.__dict__) for item in self.findings],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return the report for people."""
        parts = [
            f"# Import of {self.source.name} ({self.program})",
            self.summary() + ".",
            "## Warnings and notes\n\n" + findings_text(self.findings),
        ]
        parts += [f"## {section.title}\n\n{section.text}" for section in self.sections]
        if self.renamed:
            rows = [[f"`{old}`", f"`{new}`"] for old, new in self.renamed]
            parts.append("## Names that changed\n\n" + table(["in the file", "here"], rows))
        return "\n\n".join(parts) + "\n"


def with_name(model: ImportedModel, name: str | None) -> ImportedModel:
    """Return an imported robot with another name; the same without one.

    Args:
        model: From an importer.
        name: What it was asked to be called; None: as it is.
    """
    if name is None:
        return model
    robot = model.robot
    kept = {item.name for item in robot.links} | {item.name for item in robot.joints}
    kept |= {item.name for item in robot.frames} | {item.name for item in robot.muscles}
    new = safe_name(name, "robot")
    return replace(
        model,
        robot=replace(robot, name=new),
        renamed=(
            *renamed_robot(name, new),
            *(pair for pair in model.renamed if pair[1] != robot.name or pair[1] in kept),
        ),
    )


def write_imported(
    model: ImportedModel,
    out_dir: str | Path,
    *,
    force: bool = False,
    on_kept: Callable[[Path], None] = lambda path: None,
) -> Path:
    """Write ``<out_dir>/<name>/`` and return its path.

    Files: ``model.sdf`` and ``model.config``, ``meshes``, `ImportedModel.files`,
    ``import_report.md`` and ``.json``. What was written is read back before the folder gets its
    name.

    Args:
        model: From an importer.
        out_dir: Folder that gets the model's folder; made if need be.
        force: Replace the files of an earlier import; those that were changed are kept.
        on_kept: Called with the place of each of these.

    Raises:
        DescriptionError: The robot cannot be stated in SDF.
        CardsError: The target exists, or cannot be written.
    """

    def fill(folder: Path) -> None:
        for name, content in model.files.items():
            path = folder
            for part in name.split("/"):  # a folder within it, such as meshes/
                path = inside(path, part)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        with naming_source(model.robot, folder):
            write_model(
                copy_meshes(model.robot, folder, model.meshes),
                folder,
                description=model.description
                or f"Imported from the {model.program} file {model.source.name}. See {REPORT}.md.",
            )
            _verify(folder / "model.sdf", model.robot)
        (folder / f"{REPORT}.md").write_text(model.to_markdown(), encoding="utf-8")
        (folder / f"{REPORT}.json").write_text(model.to_json(), encoding="utf-8")

    return write_import_folder(
        out_dir,
        model.name,
        fill,
        force=force,
        on_kept=on_kept,
        source=model.source,
        other_name="--name",
    )


@contextmanager
def naming_source(robot: Robot, folder: Path) -> Iterator[None]:
    """Say what is wrong with the files of an import of the file that it was made of.

    Args:
        robot: What is written; its source, and the lines of its parts, are in the message.
        folder: Where it is written; in no message, as it is gone when an import fails.

    Raises:
        DescriptionError: One of a file in the folder was raised in the block: the robot cannot be
            used, though each of its parts was understood.
    """
    try:
        yield
    except DescriptionError as error:
        if not (error.source or "").startswith(str(folder)):
            raise
        raise DescriptionError(
            f"the robot that was made of it is refused: {error.problem}",
            source=robot.source,
            line=_line_of(robot, error.element or ""),
            element=error.element,
            expected=error.expected,
        ) from None


def _line_of(robot: Robot, element: str) -> int | None:
    """Return the line of the part that an element such as ``<pose> of link 'a'`` is of."""
    for kind, parts in (("muscle", robot.muscles), ("joint", robot.joints)):
        for part in parts:
            if f"{kind} '{part.name}'" in element:
                return part.line
    for link in robot.links:
        if f"link '{link.name}'" not in element:
            continue
        shapes: tuple[Collision | Visual, ...] = (*link.collisions, *link.visuals)
        for shape in shapes:
            kind = "collision" if isinstance(shape, Collision) else "visual"
            if f"{kind} '{shape.name}' of" in element:
                return shape.line
        return link.line
    return None


def _verify(path: Path, robot: Robot) -> None:
    """Read what was written, so that a folder in place is one that loads."""
    read = read_sdf(path)
    if read.tree.position_names != robot.tree.position_names:
        raise DescriptionError(
            "the joints read back in another order",
            source=robot.source,
            expected="the same order",
        )


def findings_text(findings: FindingList) -> str:
    """Return findings as a Markdown list, warnings first."""
    if not len(findings):
        return "None."
    return "\n".join(
        f"- {item}" for level in ("warning", "note") for item in findings if item.level == level
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    Args:
        head: Titles of the columns.
        rows: Cells; ``|`` in them is escaped.
    """
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
