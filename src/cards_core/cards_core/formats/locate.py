"""Find a robot by name or path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats.sdf.schema import VERSIONS
from cards_core.formats.sdf.values import required, text_of
from cards_core.formats.xml_lines import XmlElement, parse_xml
from cards_core.shared_files import shared_folders

MODEL_PATH = "CARDS_MODEL_PATH"
"""Environment variable: folders with models, separated like PATH."""


def _variable_folders(name: str, *below: str) -> Iterator[Path]:
    for entry in os.environ.get(name, "").split(os.pathsep):
        if entry:
            yield Path(entry, *below)


def model_folders() -> list[Path]:
    """Return the existing folders that hold one folder per model, in the order of search.

    ``CARDS_MODEL_PATH``, then ``models`` of the shared folders (`cards_core.shared_files`).
    """
    folders = [
        *_variable_folders(MODEL_PATH),
        *shared_folders("models"),
    ]
    return [folder for folder in dict.fromkeys(folders) if is_folder(folder)]


def resource_folders() -> list[Path]:
    """Return `model_folders` and the folders of ``GZ_SIM_RESOURCE_PATH``."""
    extra = [p for p in _variable_folders("GZ_SIM_RESOURCE_PATH") if is_folder(p)]
    return list(dict.fromkeys([*model_folders(), *extra]))


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
        UnknownNameError: There is no such model; the message lists those there are.
        DescriptionError: The folder exists, but holds no SDF file.
    """
    text = os.fspath(name_or_path)
    if text and "\0" not in text and len(text) < 4096:
        path = Path(text)
        if is_folder(path) and (os.sep in text or _has_model(path)):
            return model_file(path)
        if _is_file(path):
            return path
        # a path that leads nowhere is not a name; ".." would leave the model folders
        if path.name == text and text not in (".", ".."):
            for folder in model_folders():
                if is_folder(folder / text):
                    return model_file(folder / text)
    raise UnknownNameError("model or file", text, known_models())


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
        rank = VERSIONS.index(version) if version in VERSIONS else -1
        if best is None or rank > best[0]:
            best = (rank, file)
    if best is None:
        raise root.error("names no SDF file", '<sdf version="1.11">model.sdf</sdf>')
    return best[1]


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
            return found
    if _is_file(file.parent / RODS_FILE):
        return file.parent / RODS_FILE
    raise DescriptionError(
        "is no robot of rods",
        source=str(file),
        expected=f"a <plugin> with <module_name>{ROD_MODULE}</module_name> and "
        f"<rods>{RODS_FILE}</rods>, or {RODS_FILE} beside the SDF",
    )


def is_folder(path: Path) -> bool:
    """Return True for an existing folder, False for anything else, without raising."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _has_model(folder: Path) -> bool:
    return _is_file(folder / "model.config") or _is_file(folder / "model.sdf")
