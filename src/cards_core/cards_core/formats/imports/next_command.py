"""What to type next, where a file of another program stands in the place of an SDF."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from cards_core.formats.imports.findings import safe_name
from cards_core.formats.xml_lines import XmlElement

FOLDER = "robots"
"""Folder of imported robots in what is proposed."""

CAD = (".step", ".stp", ".fcstd")
"""Endings of CAD files, which are no XML."""


def _opensim_name(root: XmlElement) -> str | None:
    model = root.child("Model")
    return None if model is None else model.get("name")


_ROOTS: dict[str, tuple[str, str, Callable[[XmlElement], str | None]]] = {
    "robot": ("a URDF", "urdf", lambda root: root.get("name", "")),
    "mujoco": ("an MJCF", "mjcf", lambda root: root.get("model")),
    "OpenSimDocument": ("an OpenSim model", "opensim", _opensim_name),
}


def other_format(root: XmlElement) -> tuple[str, str] | None:
    """Return what a document is, and what to type to get a robot of it; None if unknown.

    Args:
        root: Of a document that is no SDF.
    """
    if root.tag not in _ROOTS:
        return None
    what, importer, name_of = _ROOTS[root.tag]
    if root.source.startswith("<"):  # text without a file
        return what, f"./cards import {importer} FILE -o {FOLDER}"
    name = name_of(root)
    name = safe_name(Path(root.source).stem if name is None else name, "robot")
    command = f"./cards import {importer} {shlex.quote(root.source)} -o {FOLDER}"
    return what, f"{command}, which makes {shlex.quote(f'{FOLDER}/{name}')}"


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
