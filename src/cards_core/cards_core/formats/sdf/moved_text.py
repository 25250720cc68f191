"""The text of an SDF file for another folder: what it names by relative paths is found from there.

Meshes get copies beside it (`cards_core.formats.mesh_copies`); every other byte stays.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from cards_core.errors import DescriptionError
from cards_core.formats.locate import REMOTE, find_resource
from cards_core.formats.mesh_copies import MeshCopies, place_meshes
from cards_core.formats.sdf.text_edits import TextEdits
from cards_core.formats.sdf.values import text_of
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten


def moved_text(
    data: bytes, name: str | os.PathLike[str], folder: Path
) -> tuple[bytes, MeshCopies]:
    """Return the text of an SDF file for another folder, and the copies of its meshes there.

    Args:
        data: Content of the file, UTF-8.
        name: Path of the file: relative paths in it start at its folder.
        folder: Where the text will be; exists.

    Raises:
        DescriptionError: It includes a model that cannot be found from there.
        CardsError: There is a file, or a link, in place of the folder of copies.
        OSError: A mesh cannot be read.
    """
    base, target = Path(name).resolve().parent, folder.resolve()
    root = parse_xml(data, name=os.fspath(name))
    meshes: list[tuple[XmlElement, str, Path]] = []
    for element, uri in _uris(root):
        try:
            here = find_resource(uri, element, base)
        except DescriptionError:
            continue  # of a model that nobody has read
        if _found(uri, element, target) == here:
            continue
        if element.parent is not None and element.parent.tag == "include":
            raise element.error(
                f"'{shorten(uri)}' is not found from '{target}'",
                f"a file in '{base}', or model://NAME of a model in a folder of CARDS_MODEL_PATH",
            )
        meshes.append((element, uri, here))
    copies = place_meshes([file for *_, file in meshes], target)
    edits = TextEdits(data)
    for element, uri, file in meshes:
        old, new = (_named(element, text) for text in (uri, copies.names[str(file)]))
        edits.patch(element, old, new)
    return edits.applied(), copies


def _uris(root: XmlElement) -> Iterator[tuple[XmlElement, str]]:
    """Yield what names a mesh or an included model: ``<uri>``, and ``<mesh uri>`` of wraps."""
    for element in root.iter():
        assert isinstance(element, XmlElement)
        if element.tag in ("include", "mesh"):
            found = [(child, text_of(child)) for child in element.children("uri")]
            if element.tag == "mesh" and "uri" in element.attrib:
                found.append((element, element.get("uri", "")))
            yield from ((item, uri) for item, uri in found if not uri.startswith(REMOTE))


def _found(uri: str, element: XmlElement, base: Path) -> Path | None:
    try:
        return find_resource(uri, element, base)
    except DescriptionError:
        return None


def _named(element: XmlElement, uri: str) -> ET.Element:
    """Return the element as far as it says where the mesh is."""
    if element.tag == "uri":
        named = ET.Element("uri")
        named.text = uri
        return named
    return ET.Element(element.tag, uri=uri)
