"""Find the files of a CASPR model: by folder, by name, and through the lists of models.

A model has four files, ``<stem>_bodies.xml``, ``_cables.xml``, ``_trajectories.xml`` and
``_operational_spaces.xml``. A list (``*_list.csv``) has a row per model: ``name, folder, bodies,
cables, trajectories, operational spaces``, without header. File systems of CASPR's users ignore
case, so some rows name folders whose case is wrong: names are compared without case where the
exact name does not exist.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cards_core.checks import check_choice
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.foreign_files import read_text
from cards_core.formats.imports.next_command import refuse_cad, refuse_xml
from cards_core.named_files import import_confinement, outside

PARTS = ("bodies", "cables", "trajectories", "operational_spaces")
"""The four files of a model, in the order of the columns of a list."""


@dataclass(frozen=True)
class CasprFiles:
    """The files of one model. Trajectories and operational spaces may be missing.

    Attributes:
        name: Stem of the bodies file: its name without ``_bodies.xml``.
    """

    name: str
    bodies: Path
    cables: Path
    trajectories: Path | None = None
    operational_spaces: Path | None = None


@dataclass(frozen=True)
class ModelRow:
    """A row of a list of models.

    Attributes:
        name: CASPR's name of the model.
        folder: Folder as written in the list.
        list_file: The list.
        line: Row, 1-based.
        files: The files, or None if they are not there.
        problem: Why ``files`` is None; empty otherwise.
    """

    name: str
    folder: str
    list_file: Path
    line: int
    files: CasprFiles | None
    problem: str = ""


def files_of(
    location: str | Path | Mapping[str, str | Path], name: str | None = None
) -> CasprFiles:
    """Return the files of a model.

    Args:
        location: A folder, a bodies file, or a mapping from the names in `PARTS` to paths.
        name: Stem or list name of the model, for folders that hold several.

    Raises:
        CardsError: There is no such folder or no bodies file in it.
        UnknownNameError: The folder holds several models and ``name`` is not one of them.
    """
    if isinstance(location, Mapping):
        return _files_of_mapping(location, name)
    path = existing_path(Path(location))
    if path is None:
        raise CardsError(f"{location}: no such folder or file (expected: the folder of a robot)")
    if not path.is_dir():
        if not path.is_file() or not path.name.lower().endswith("_bodies.xml"):
            refuse_cad(path, "a bodies file of CASPR")
            refuse_xml(path, "a bodies file of CASPR")
            raise CardsError(
                f"{path}: not a bodies file (expected: a folder, or a file *_bodies.xml)"
            )
        return _beside(path)
    models = {found.name: found for found in map(_beside, bodies_files(path))}
    if name is not None and name in models:
        return models[name]
    if not models:
        raise CardsError(
            f"{path}: no bodies file in this folder (expected: *_bodies.xml; --list shows the "
            "robots in the folders below)"
        )
    if len(models) > 1 or name is not None:
        raise UnknownNameError(f"model in {path}", name or "", models)
    return next(iter(models.values()))


def find_models(root: str | Path) -> list[ModelRow]:
    """Return every model under ``root``: the rows of all lists, then folders in no list.

    The folder of a row is looked up beside the list and in the folder that the list is named
    after (``models_list.csv``: ``models/``). Rows without files have `ModelRow.problem` set.

    Raises:
        CardsError: ``root`` is not a folder.
        DescriptionError: A list is not a table with at least four columns, or names files outside
            of its folder and its package.
    """
    base = Path(root)
    if not base.is_dir():
        raise CardsError(f"{base}: no such folder (expected: a folder with CASPR models)")
    rows: list[ModelRow] = []
    for path in sorted(base.rglob("*_list.csv")):
        rows += _read_list(path)
    listed = {row.files.bodies.resolve() for row in rows if row.files}
    for bodies in sorted(base.rglob("*_bodies.xml")):
        if bodies.resolve() in listed:
            continue
        try:
            files, problem = _beside(bodies), ""
        except CardsError as error:
            files, problem = None, str(error)
        folder = str(bodies.parent.relative_to(base))
        rows.append(ModelRow(_stem(bodies), folder, bodies, 0, files, problem))
    return rows


def existing_path(path: Path) -> Path | None:
    """Return the path, with the case of its components corrected if need be, or None."""
    try:
        if path.exists():
            return path
        parent = path.parent
        if parent == path:
            return None
        found = existing_path(parent)
        if found is None or not found.is_dir():
            return None
        same = [item for item in found.iterdir() if item.name.lower() == path.name.lower()]
        # several spellings side by side: which one is meant cannot be known
        return same[0] if len(same) == 1 else None
    except (OSError, ValueError) as error:  # e.g. name too long, null byte
        raise CardsError(f"{path}: cannot be read: {error}") from None


def bodies_files(folder: Path) -> list[Path]:
    """Return the bodies files in a folder, sorted."""
    try:
        items = sorted(folder.iterdir())
    except OSError as error:
        raise CardsError(f"{folder}: cannot be read: {error.strerror or error}") from None
    return [item for item in items if item.name.lower().endswith("_bodies.xml")]


def _stem(bodies: Path) -> str:
    name = bodies.name
    if name.lower().endswith("_bodies.xml"):
        name = name[: -len("_bodies.xml")]
    return name.removesuffix(".xml") or bodies.parent.name


def _beside(bodies: Path) -> CasprFiles:
    """Return the files that lie beside a bodies file and have its stem."""
    stem = _stem(bodies)
    found = {part: existing_path(bodies.with_name(f"{stem}_{part}.xml")) for part in PARTS[1:]}
    cables = found["cables"]
    if cables is None:
        raise CardsError(
            f"{bodies.parent}: no cables file (expected: {stem}_cables.xml beside {bodies.name})"
        )
    return CasprFiles(stem, bodies, cables, found["trajectories"], found["operational_spaces"])


def _files_of_mapping(location: Mapping[str, str | Path], name: str | None) -> CasprFiles:
    for key in location:
        check_choice(key, "part of a CASPR model", PARTS)
    paths: dict[str, Path | None] = dict.fromkeys(PARTS)
    for key, value in location.items():
        paths[key] = existing_path(Path(value))
        if paths[key] is None:
            raise CardsError(f"{value}: no such file (expected: the {key} file)")
    bodies, cables = paths["bodies"], paths["cables"]
    if bodies is None or cables is None:
        raise CardsError("a CASPR model needs at least the files 'bodies' and 'cables'")
    return CasprFiles(
        name or _stem(bodies),
        bodies,
        cables,
        paths["trajectories"],
        paths["operational_spaces"],
    )


def _read_list(path: Path) -> list[ModelRow]:
    text = read_text(path)
    rows: list[ModelRow] = []
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) < 4:
            raise DescriptionError(
                f"{len(cells)} columns",
                source=str(path),
                line=line,
                expected="name, folder, bodies, cables, trajectories, operational spaces",
            )
        rows.append(_row(path, line, cells))
    return rows


def _row(path: Path, line: int, cells: list[str]) -> ModelRow:
    name, folder = cells[0], cells[1].replace("\\", "/").strip("/")
    starts = (path.parent, path.parent / path.name[: -len("_list.csv")])
    found: list[Path | None] = []
    allowed = import_confinement(path.resolve().parent, (".xml",))
    for start in starts:
        directory = existing_path(start / folder)
        if directory is None or not directory.is_dir():
            continue
        found = [
            existing_path(directory / cell) if cell else None
            for cell in (cells[2:] + [""] * 4)[:4]
        ]
        for file in found:
            if file is None or allowed.holds(file):
                continue
            if not allowed.follows(path.parent, os.path.relpath(file, path.parent)):
                raise DescriptionError(
                    outside(str(file), file, "the folder of the list"),
                    source=str(path),
                    line=line,
                    expected=allowed.expected,
                )
        if found[0] is not None and found[1] is not None:
            files = CasprFiles(_stem(found[0]), found[0], found[1], found[2], found[3])
            return ModelRow(name, folder, path, line, files)
    problem = "no such folder" if not found else f"no {cells[2]} or no {cells[3]} in the folder"
    return ModelRow(name, folder, path, line, None, problem)
