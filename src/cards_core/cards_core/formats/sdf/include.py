"""Find the files that an SDF document refers to: included models and meshes.

``model://name/...`` and relative paths are looked for, in this order, beside the file that names
them, in the folders of ``CARDS_MODEL_PATH``, in the repository's ``models``, in the installed
``share/cards_bringup/models``, and in the folders of ``GZ_SIM_RESOURCE_PATH``. Nothing is
downloaded.
"""

from __future__ import annotations

from pathlib import Path

from cards_core.errors import CardsError
from cards_core.formats.locate import is_folder, model_file, resource_folders
from cards_core.formats.sdf.values import required, text_of
from cards_core.formats.xml_lines import XmlElement, shorten

REMOTE = ("http://", "https://", "package://")
"""Schemes that are never resolved to a file here."""


def find_resource(uri: str, element: XmlElement, base: Path | None) -> Path:
    """Return the existing file or folder that a URI in an SDF document means.

    Args:
        uri: ``model://name/...``, ``file://...``, or a path.
        element: Element that holds it, for messages.
        base: Folder of the document; None for text without a file.

    Raises:
        DescriptionError: There is no such file, or the scheme is not one of the above.
    """
    # gz-sim shares models by their folder: model://arm is the folder `arm` in any search folder
    scheme, separator, rest = uri.partition("://")
    name = rest if separator else uri
    if not uri or "\0" in uri or len(uri) > 4096 or not name.strip("/"):
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
    for candidate in searched:
        try:
            if candidate.is_file() or candidate.is_dir():
                return candidate.resolve()
        except OSError:
            continue
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
        return model_file(found)
    except CardsError as error:
        raise uri.error(f"{error}", "a folder with model.config or model.sdf") from None


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
