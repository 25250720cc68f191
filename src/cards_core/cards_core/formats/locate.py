"""Find a robot by name or path, and the files that an SDF document refers to.

These are included models and meshes. ``model://name/...`` and relative paths are looked for, in
this order, beside the file that names them, in the folders of ``CARDS_MODEL_PATH``, in the
repository's ``models``, in the installed ``share/cards_bringup/models``, and in the folders of
``GZ_SIM_RESOURCE_PATH``. Nothing is downloaded, and what lies elsewhere is not read, see
`cards_core.named_files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cards_core.checks import check_kind
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats.imports.next_command import refuse_cad
from cards_core.formats.sdf.schema import VERSIONS
from cards_core.formats.sdf.values import required, text_of
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.named_files import (
    confinement,
    is_folder,
    model_folders,
    named_folder,
    outside,
    resource_folders,
)
from cards_core.parameters.parameter_file import own_parameters
from cards_core.robot.model import Robot
from cards_core.shared_files import shared_folders


def known_models(*, rods: bool | None = None) -> list[str]:
    """Return the names of all models in `model_folders`, sorted.

    Args:
        rods: True for robots of rods alone, False for all others alone.
    """
    names: set[str] = set()
    for folder in model_folders():
        try:
            names |= {item.name for item in folder.iterdir() if _has_model(item)}
        except OSError:
            continue
    if rods is not None:
        names = {name for name in names if _is_rod_model(name) is rods}
    return sorted(names)


def _is_rod_model(name: str) -> bool:
    try:
        return has_rods(find_model(name))
    except CardsError:
        return False


def find_model(name_or_path: str | os.PathLike[str]) -> Path:
    """Return the SDF file of a model.

    Args:
        name_or_path: An existing file, an existing folder with a model, or the name of a folder
            in one of `model_folders`.

    Raises:
        CardsError: It is neither a text nor a path.
        UnknownNameError: There is no such model; the message lists those there are.
        DescriptionError: The folder exists, but holds no SDF file, or the file is one of CAD.
    """
    check_kind(name_or_path, (str, os.PathLike), "the source of a robot", _SOURCE)
    text = os.fspath(name_or_path)
    check_kind(text, str, "the source of a robot", _SOURCE)
    if text and "\0" not in text and len(text) < 4096:
        path = Path(text)
        if is_folder(path) and (os.sep in text or _has_model(path)):
            return model_file(path)
        if _is_file(path):
            refuse_cad(path, "an SDF")
            return path
        # a path that leads nowhere is not a name; ".." would leave the model folders
        if path.name == text and text not in (".", ".."):
            for folder in model_folders():
                if is_folder(folder / text):
                    return model_file(folder / text)
    raise UnknownNameError("model or file", shorten(text), known_models())


_SOURCE = "the name of a model, or the path of an SDF file"


def model_file(folder: Path) -> Path:
    """Return the SDF file of a model folder: the one ``model.config`` names, or ``model.sdf``.

    Of several entries in ``model.config`` the newest version that we read is taken.

    Raises:
        DescriptionError: There is no SDF file, or ``model.config`` is not understood.
    """
    config = folder / "model.config"
    if _is_file(config):
        return _configured(folder, config)
    if _is_file(folder / "model.sdf"):
        return folder / "model.sdf"
    raise DescriptionError(
        "the folder holds no model", source=str(folder), expected="model.config or model.sdf"
    )


def _configured(folder: Path, config: Path) -> Path:
    root = parse_xml(config)
    best: tuple[int, Path] | None = None
    for entry in root.children("sdf"):
        file = folder / text_of(entry)
        version = entry.get("version", VERSIONS[0]).strip()
        if not text_of(entry) or "\0" in text_of(entry) or not _is_file(file):
            raise entry.error(f"the file '{text_of(entry)}' does not exist", "a file beside it")
        _check_confined(entry, file, config)
        rank = VERSIONS.index(version) if version in VERSIONS else -1
        if best is None or rank > best[0]:
            best = (rank, file)
    if best is None:
        raise root.error("names no SDF file", '<sdf version="1.11">model.sdf</sdf>')
    return best[1]


def shipped_parameters(robot: Robot, node: str) -> dict[str, Any]:
    """Return the parameters that the shipped configuration has for a node of a shipped robot.

    Args:
        robot: The robot; one that was read from elsewhere has none.
        node: Name of the node, e.g. ``simulator`` or the kind of a controller.
    """
    for folder in shared_folders():
        file = folder / "config" / f"{robot.name}.yaml"
        models = (folder / "models").resolve()
        if file.is_file() and robot.source and models in Path(robot.source).resolve().parents:
            return own_parameters(file, node)
    return {}


ROD_MODULE = "cards_rod_plugin.system"
"""``<module_name>`` of the ``<plugin>`` that names the file with the rods of a model."""

RODS_FILE = "rods.yaml"
"""File with the rods, where the SDF has no such plugin."""


def has_rods(file: Path) -> bool:
    """Return True if an SDF file is that of a robot of rods, without reading all of it."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f"<module_name>{ROD_MODULE}</module_name>" in text or _is_file(file.parent / RODS_FILE)


def rods_file(file: Path, plugins: Iterable[XmlElement]) -> Path:
    """Return the YAML file with the rods of a model.

    Args:
        file: SDF file.
        plugins: ``<plugin>`` elements of the model.

    Raises:
        DescriptionError: There is none, or it does not exist.
    """
    for plugin in plugins:
        module = plugin.child("module_name")
        if module is not None and text_of(module) == ROD_MODULE:
            element = required(plugin, "rods")
            # an included model stands in a file of its own
            found = Path(plugin.source).parent / text_of(element)
            if not text_of(element) or "\0" in text_of(element) or not _is_file(found):
                raise element.error(
                    f"the file '{text_of(element)}' does not exist", "a file beside the SDF"
                )
            _check_confined(element, found, Path(plugin.source))
            return found
    beside = file.parent / RODS_FILE
    if _is_file(beside):
        allowed = confinement(file.resolve().parent)
        if not allowed.holds(beside):
            raise DescriptionError(
                outside(str(beside), beside, "the model"),
                source=str(file),
                expected=allowed.expected,
            )
        return beside
    raise DescriptionError(
        "is no robot of rods",
        source=str(file),
        expected=f"a <plugin> with <module_name>{ROD_MODULE}</module_name> and "
        f"<rods>{RODS_FILE}</rods>, or {RODS_FILE} beside the SDF",
    )


def _check_confined(element: XmlElement, file: Path, document: Path) -> None:
    # where the document is: colcon may link each file of a model by itself
    allowed = confinement(document.resolve().parent)
    if not allowed.holds(file):
        raise element.error(
            outside(text_of(element), file, "the model"),
            allowed.expected,
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _has_model(folder: Path) -> bool:
    return _is_file(folder / "model.config") or _is_file(folder / "model.sdf")


# Included files and meshes ---------------------------------------------------------------------


REMOTE = ("http://", "https://", "package://")
"""Schemes that are never resolved to a file here."""


def find_resource(uri: str, element: XmlElement, base: Path | None) -> Path:
    """Return the existing file or folder that a URI in an SDF document means.

    Args:
        uri: ``model://name/...``, ``file://...``, or a path.
        element: Element that holds it, for messages.
        base: Folder of the document; None for text without a file, which a program made and which
            may name any file.

    Raises:
        DescriptionError: There is no such file, it is not where a description may name files, or
            the scheme is not one of the above.
    """
    # gz-sim shares models by their folder: model://arm is the folder `arm` in any search folder
    scheme, separator, rest = uri.partition("://")
    name = rest if separator else uri
    if scheme == "file" and separator:
        name = unquote(name)  # before it is checked, and nowhere after
    if not uri or "\0" in name or len(uri) > 4096 or not name.strip("/"):
        raise element.error(f"'{shorten(uri)}' is not a path", "model://NAME or a relative path")
    if separator and scheme not in ("model", "file"):
        raise element.error(
            f"'{shorten(uri)}' is not downloaded", "model://NAME, file:// or a relative path"
        )
    searched: list[Path] = []
    path = Path(name)
    if scheme == "file" or path.is_absolute():
        searched.append(path)
    else:
        searched += [folder / name for folder in ([base] if base else [])]
        # a model may refer to itself by name: model://arm/meshes/x.stl inside folder arm
        searched += [base.parent / name] if base and separator else []
        searched += [folder / name for folder in resource_folders()]
    allowed = None if base is None else confinement(base)
    for candidate in searched:
        try:
            if not candidate.is_file() and not candidate.is_dir():
                continue
            found = candidate.resolve()
        except OSError:
            continue
        # model://hand of a model beside this one
        beside = None
        if base and separator and scheme == "model":
            beside = named_folder(base.parent, name.partition("/")[0])
        if allowed is not None and not allowed.holds(found, beside):
            raise element.error(outside(uri, found, "the model"), allowed.expected)
        return found
    places = ", ".join(str(p.parent) for p in searched[:8]) or "no folder (text without a file)"
    raise element.error(f"'{shorten(uri)}' was not found", f"a file or folder in {places}")


def include_file(element: XmlElement, base: Path | None) -> Path:
    """Return the SDF file that an ``<include>`` element means.

    Raises:
        DescriptionError: It does not exist, or is a folder without a model.
    """
    uri = required(element, "uri")
    found = find_resource(text_of(uri), uri, base)
    if not is_folder(found):
        return found
    try:
        file = model_file(found)
    except CardsError as error:
        raise uri.error(f"{error}", "a folder with model.config or model.sdf") from None
    if base is not None and not _is_file(found / "model.config"):  # else it has been checked
        _check_confined(uri, file, found / "model.config")
    return file


def mesh_uri(uri: str, element: XmlElement, base: Path | None) -> str:
    """Return the path of a mesh as an absolute path; remote ones stay as they are.

    Text that does not come from a file keeps its URIs: there is nothing to resolve them against.
    Arguments and errors as `find_resource`.
    """
    if uri.startswith(REMOTE) or (base is None and "://" not in uri and uri):
        return uri
    found = find_resource(uri, element, base)
    if not found.is_file():
        raise element.error(f"'{shorten(uri)}' is a folder", "a mesh file")
    return str(found)
