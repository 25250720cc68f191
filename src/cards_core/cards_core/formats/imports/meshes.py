"""Mesh files of an imported robot: found where others mean them, copied into its folder."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

from cards_core.errors import DescriptionError
from cards_core.formats.mesh_copies import is_local, place_meshes, with_meshes
from cards_core.formats.sdf.values import text_of
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.named_files import (
    PACKAGE_PATH,
    UPWARDS,
    Confinement,
    import_confinement,
    named_folder,
    outside,
    variable_folders,
)
from cards_core.robot.model import Robot

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".msh", ".glb", ".gltf", ".3ds", ".off", ".wrl")
"""Endings of mesh files. A description that names any other file does not get it copied."""

DRAWN = (".stl", ".obj", ".dae", ".ply", ".glb", ".gltf", ".off")
"""Those whose files are drawn (`cards_core.robot.mesh_file`)."""

EXPECTED = f"a mesh file, which ends in one of {', '.join(SUFFIXES)}"
"""What would be right where no mesh file was found."""


def find_mesh(element: XmlElement, uri: str, folder: Path, allowed: Confinement) -> Path | None:
    """Return the file that a mesh URI of another program means; None if there is none.

    ``package://NAME/...`` and ``model://NAME/...`` are looked for in the folder that the user gave
    for NAME; else below every folder from that of the file upwards, with and without NAME: a
    package seldom stands in a folder of its name when it was downloaded. Then below
    ``ROS_PACKAGE_PATH`` and ``<prefix>/share`` of ``AMENT_PREFIX_PATH``. ``file://`` and plain
    paths are absolute, or relative to the file.

    Args:
        element: Element that names it, for messages.
        uri: As written.
        folder: Folder of the file that names it.
        allowed: Where it may lie; so may a file of a package NAME beside those, and what a plain
            path leads to that it follows.

    Raises:
        DescriptionError: The file is there, but where an import copies nothing from.
    """
    scheme, separator, rest = uri.strip().partition("://")
    if not separator:
        rest = scheme
    elif scheme == "file":
        rest = unquote(rest)
    if not rest or "\0" in rest or len(rest) > 4096 or (separator and scheme not in _SCHEMES):
        return None
    elsewhere: Path | None = None
    for candidate, package in _candidates(scheme if separator else "", rest, folder, allowed):
        try:
            if candidate.suffix.lower() not in SUFFIXES or not candidate.is_file():
                continue
            found = candidate.resolve()
        except OSError:
            continue
        if allowed.holds(found, package) or (not separator and allowed.follows(folder, rest)):
            return found
        elsewhere = elsewhere or found
    if elsewhere is not None:
        name = rest.partition("/")[0] if scheme in ("package", "model") and separator else "NAME"
        raise element.error(
            outside(uri, elsewhere, "the package"),
            f"{allowed.expected}; or --package {shorten(name)}=DIR with a folder that holds it",
        )
    return None


_SCHEMES = ("package", "model", "file")


def _candidates(
    scheme: str, rest: str, folder: Path, allowed: Confinement
) -> Iterator[tuple[Path, Path | None]]:
    """Yield paths, and the folder of the package that they are in by its name."""
    if scheme == "file" and not rest.startswith("/"):
        rest = "/" + rest.partition("/")[2]  # file://localhost/...
    if scheme in ("", "file"):
        yield folder / rest, None
        return
    name, _, below = rest.partition("/")
    if name in allowed.packages:
        yield allowed.packages[name] / below, None
    above = [folder, *folder.parents][: UPWARDS + 1]
    for base in above:
        yield base / rest, named_folder(base, name)
    if below:
        for base in above:
            yield base / below, None
    for entry in variable_folders(PACKAGE_PATH):
        yield entry / rest, named_folder(entry, name)
        yield entry.parent / rest, None
    for entry in variable_folders("AMENT_PREFIX_PATH", "share"):
        package = named_folder(entry, name)
        yield entry / rest, None if package is None else _source_of(package)


def _source_of(package: Path) -> Path:
    """Return where an installed package comes from: colcon may link its files one by one."""
    mark = package / "package.xml"
    return mark.resolve().parent if mark.is_file() else package


class FoundMeshes:
    """The mesh files that one import has found, and URIs for them until the robot is read.

    Readers of SDF would check paths against what a robot in this folder may name; an import may
    more. They leave ``package://`` as it is, so this stands before a random text, which no
    document can spell, and the number of the file.

    Args:
        folder: Of the file that is imported.
        allowed: Where its meshes may lie.
    """

    def __init__(self, folder: Path, allowed: Confinement) -> None:
        self.folder, self.allowed = folder, allowed
        self._prefix = f"package://{secrets.token_hex(16)}/"
        self._uris: dict[str, Path] = {}

    @property
    def files(self) -> frozenset[Path]:
        """The files."""
        return frozenset(self._uris.values())

    def uri(self, element: XmlElement, uri: str) -> str | None:
        """Return the URI of the file that a mesh URI means; None if there is none.

        Args:
            element: Element that names it, for messages.
            uri: As written.

        Raises:
            DescriptionError: As of `find_mesh`.
        """
        found = find_mesh(element, uri, self.folder, self.allowed)
        return None if found is None else self._add(found)

    def _add(self, found: Path) -> str:
        uri = f"{self._prefix}{len(self._uris)}"
        self._uris[uri] = found
        return uri

    def resolve(self, root: XmlElement, folder: Path) -> None:
        """Find all meshes of an SDF document that `uri` did not find yet, those of wraps too.

        Args:
            root: Element above them; their URIs are replaced.
            folder: Of the file.

        Raises:
            DescriptionError: A file is missing, or where an import copies nothing from.
        """
        allowed = self.allowed
        if folder != self.folder:  # of an included model
            allowed = import_confinement(folder, SUFFIXES, allowed.packages)
        for mesh in root.iter("mesh"):
            assert isinstance(mesh, XmlElement)
            for child in mesh.children("uri"):
                child.text = self._resolved(child, text_of(child), folder, allowed)
            if "uri" in mesh.attrib:
                mesh.set("uri", self._resolved(mesh, mesh.get("uri", ""), folder, allowed))

    def _resolved(self, element: XmlElement, uri: str, folder: Path, allowed: Confinement) -> str:
        if uri in self._uris or not uri or uri.startswith(_REMOTE):
            return uri
        found = find_mesh(element, uri, folder, allowed)
        if found is None:
            raise element.error(f"'{shorten(uri)}' is no mesh file that was found", EXPECTED)
        return self._add(found)

    def in_place(self, robot: Robot) -> Robot:
        """Return a robot with paths in place of the URIs that `uri` and `resolve` gave."""
        return with_meshes(robot, lambda uri: str(self._uris.get(uri, uri)))


_REMOTE = ("http://", "https://")


def copy_meshes(robot: Robot, folder: Path, found: Collection[Path]) -> Robot:
    """Copy the mesh files of a robot into ``folder/meshes``; return the robot that uses them.

    Meshes with relative paths are in the folder already, those with ``https://`` and the like stay
    where they are. Names are those of `cards_core.formats.mesh_copies`.

    Args:
        robot: Mesh files have absolute paths.
        folder: Of the robot.
        found: Files that the import has found where it may copy from; it copies no others.

    Raises:
        DescriptionError: A mesh is none of these, or does not end like a mesh file.
        OSError: A file cannot be read or written.
    """
    files: dict[str, Path] = {}

    def checked(uri: str) -> str:
        if is_local(uri):
            source = Path(uri)
            if source not in found or source.suffix.lower() not in SUFFIXES:
                raise DescriptionError(
                    f"mesh '{shorten(uri)}' is not copied", source=robot.source, expected=EXPECTED
                )
            files[uri] = source
        return uri

    with_meshes(robot, checked)
    copies = place_meshes(files.values(), folder)
    with copies.made():
        return with_meshes(robot, copies.uri)
