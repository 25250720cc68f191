"""What to type next, where a file of another program stands in the place of an SDF."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import safe_name
from cards_core.formats.xml_lines import XmlElement, parse_xml

FOLDER = "robots"
"""Folder of imported robots in what is proposed."""

CAD = (".step", ".stp", ".fcstd")
"""Endings of CAD files, which are no XML."""


def _opensim_name(root: XmlElement) -> str | None:
    model = root.child("Model")
    return None if model is None else model.get("name")


def _model_name(root: XmlElement) -> str | None:
    world = root.child("world")
    model = (root if world is None else world).child("model")
    return None if model is None else model.get("name")


_ROOTS: dict[str, tuple[str, str, Callable[[XmlElement], str | None]]] = {
    "sdf": ("an SDF", "cardsflow", _model_name),
    "robot": ("a URDF", "urdf", lambda root: root.get("name", "")),
    "mujoco": ("an MJCF", "mjcf", lambda root: root.get("model")),
    "OpenSimDocument": ("an OpenSim model", "opensim", _opensim_name),
}


def other_format(root: XmlElement) -> tuple[str, str] | None:
    """Return what a document is, and what to type to get a robot of it; None if unknown.

    Args:
        root: Of a document.
    """
    if root.tag not in _ROOTS:
        return None
    what, importer, name_of = _ROOTS[root.tag]
    if root.source.startswith("<"):  # text without a file
        return what, f"./cards import {importer} FILE -o {FOLDER}"
    name = name_of(root)
    name = safe_name(Path(root.source).stem if name is None else name, "robot")
    file = shlex.quote(root.source)
    command = f"./cards import {importer} {file} -o {FOLDER}"
    if root.tag == "sdf":
        return what, f"./cards edit {file}; for one of CARDSflow {command}"
    return what, f"{command}, which makes {shlex.quote(f'{FOLDER}/{name}')}"


def wrong_root(root: XmlElement, what: str, right: str, *, seems: str = "") -> DescriptionError:
    """Return (not raise) the error of a document that an importer does not read.

    Args:
        root: Of the document.
        what: What it should be, e.g. ``a URDF``.
        right: The root of such a document, for what is unknown.
        seems: What an unknown document is, in a few words.
    """
    if other := other_format(root):
        return root.error(f"not {what} ({other[0]})", other[1])
    return root.error(f"not {what}{f' ({seems})' if seems else ''}", right)


def refuse_cad(source: object, what: str) -> None:
    """Refuse a CAD file in the place of XML, by its ending.

    Args:
        source: What an importer was given; only paths are looked at.
        what: What it should be, e.g. ``a URDF``.

    Raises:
        DescriptionError: It is one.
    """
    if isinstance(source, Path) and source.suffix.lower() in CAD and source.is_file():
        raise DescriptionError(
            f"is a CAD file, not {what}", source=str(source), expected=cad_command(source)
        )


def refuse_xml(source: Path, what: str) -> None:
    """Refuse an XML file of a known format in the place of something else.

    Args:
        source: The file; what cannot be read is another's matter.
        what: What it should be, e.g. ``a CAD file``.

    Raises:
        DescriptionError: It is one.
    """
    try:
        root = parse_xml(source)
    except DescriptionError:
        return
    if other_format(root):
        raise wrong_root(root, what, "")


def cad_command(path: Path) -> str:
    """Return what to type first to get a robot of a CAD file.

    Args:
        path: The file.
    """
    file, config = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".yaml")))
    return (
        f"./cards import cad {file} --propose {config}, then ./cards import cad {file} "
        f"--config {config} -o {FOLDER}"
    )
