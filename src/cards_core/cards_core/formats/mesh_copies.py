"""Copies of mesh files beside a file that is written, which names them by relative paths.

The copies are in the folder `FOLDER` beside it. Nothing that is there is replaced: what has the
same content is used as it is, and what has another leaves its name to itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cards_core.errors import CardsError
from cards_core.files import file_digest, making, write_atomically
from cards_core.robot.elements import Collision, Link, Mesh, Visual, WrapSurface
from cards_core.robot.model import Robot

FOLDER = "meshes"
"""Folder of the copies, beside the file that names them."""


@dataclass(frozen=True)
class MeshCopies:
    """Where copies of mesh files are, or will be.

    Attributes:
        folder: Of the file that names them.
        names: Path of a mesh file to that of its copy, relative to the folder.
        new: Copies that are not there yet, to what they are copied from, or what they hold.
    """

    folder: Path
    names: Mapping[str, str]
    new: Mapping[str, Path | bytes]

    def uri(self, uri: str) -> str:
        """Return the path of the copy of a mesh file; what is not copied stays as it is.

        Args:
            uri: Of a mesh; absolute paths are those of files.
        """
        return self.names.get(uri, uri)

    @property
    def listed(self) -> list[str]:
        """The paths of the copies, relative to the folder, each once."""
        return sorted(set(self.names.values()))

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        """Make the copies that are missing; they are gone again if the block fails.

        Raises:
            OSError: A file cannot be read or written.
        """
        made: list[Path] = []
        with contextlib.ExitStack() as folders:
            if self.new:
                (self.folder / FOLDER).parent.stat()  # only the folder itself is made
            try:
                for name, source in self.new.items():
                    target = self.folder / name
                    folders.enter_context(making(target.parent))
                    made.append(target)
                    data = source if isinstance(source, bytes) else source.read_bytes()
                    write_atomically(target, data)
                yield
            except BaseException:
                for target in made:
                    target.unlink(missing_ok=True)
                raise


def place_meshes(
    files: Iterable[Path],
    folder: Path,
    converted: Callable[[Path], bytes | None] | None = None,
) -> MeshCopies:
    """Choose names for copies of mesh files beside a file; nothing is written.

    A copy is called ``meshes/NAME``; where another content has that name,
    ``meshes/FOLDER/NAME`` after the folder of the file, and then ``meshes/FOLDER/NAME_2``, ...
    Names that differ in the case of letters alone count as the same. Files of the same content
    have one copy.

    Args:
        files: Absolute paths.
        folder: Of the file that will name them; exists.
        converted: Gives what the copy of a file holds, where that is not what the file does.

    Raises:
        CardsError: There is a file, or a link, in place of the folder of copies.
        OSError: A file cannot be read.
    """
    place = folder / FOLDER
    todo = list(dict.fromkeys(files))
    if todo and os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
        raise CardsError(
            f"{place} is no folder of its own (expected: another place for the file, whose meshes "
            "are copied there)"
        )
    names: dict[str, str] = {}
    new: dict[str, Path | bytes] = {}
    by_content: dict[str, str] = {}
    taken: set[str] = set()
    for file in todo:
        data = None if converted is None else converted(file)
        content = file_digest(file) if data is None else hashlib.sha256(data).hexdigest()
        name = by_content.get(content)
        if name is None:
            name = next(
                name
                for name in _candidates(file)
                if name.casefold() not in taken and _may_be(folder, name, content)
            )
            by_content[content] = name
            taken.add(name.casefold())
            if not (folder / name).exists():
                new[name] = file if data is None else data
        names[str(file)] = name
    return MeshCopies(folder, names, new)


def _candidates(file: Path) -> Iterator[str]:
    yield f"{FOLDER}/{file.name}"
    below = PurePosixPath(FOLDER, file.parent.name or FOLDER)
    yield str(below / file.name)
    for number in itertools.count(2):
        numbered = f"{file.stem}_{number}{file.suffix}"
        yield str(below / numbered)
        yield f"{FOLDER}/{numbered}"  # there may be a file in place of that folder


def _may_be(folder: Path, name: str, content: str) -> bool:
    """Return whether nothing has this name, or a file of this content."""
    path = folder / name
    parent = path.parent
    if os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()):
        return False
    if not os.path.lexists(path):
        return True
    return not path.is_symlink() and path.is_file() and file_digest(path) == content


# Meshes of a robot -----------------------------------------------------------------------------


def is_local(uri: str) -> bool:
    """Return whether the URI of a mesh is the absolute path of a file."""
    return "://" not in uri and Path(uri).is_absolute()


def mesh_files(robot: Robot) -> list[Path]:
    """Return the absolute paths among the URIs of the meshes of a robot, each once, in order."""
    return [Path(uri) for uri in _uris(robot) if is_local(uri)]


def elsewhere(robot: Robot) -> list[str]:
    """Return the URIs of the meshes of a robot that are no paths, each once, in order."""
    return [uri for uri in _uris(robot) if "://" in uri]


def _uris(robot: Robot) -> dict[str, None]:
    out: dict[str, None] = {}

    def seen(uri: str) -> str:
        out[uri] = None
        return uri

    with_meshes(robot, seen)
    return out


def with_meshes(robot: Robot, rename: Callable[[str], str]) -> Robot:
    """Return the robot with every mesh URI replaced by what ``rename`` gives for it."""

    def shape(item: Visual | Collision | WrapSurface) -> Mesh | None:
        if not isinstance(item.geometry, Mesh):
            return None
        return dataclasses.replace(item.geometry, uri=rename(item.geometry.uri))

    def visual(item: Visual) -> Visual:
        mesh = shape(item)
        return item if mesh is None else dataclasses.replace(item, geometry=mesh)

    def collision(item: Collision) -> Collision:
        mesh = shape(item)
        return item if mesh is None else dataclasses.replace(item, geometry=mesh)

    def surface(item: WrapSurface) -> WrapSurface:
        mesh = shape(item)
        return item if mesh is None else dataclasses.replace(item, geometry=mesh)

    def link(item: Link) -> Link:
        return dataclasses.replace(
            item,
            visuals=tuple(visual(v) for v in item.visuals),
            collisions=tuple(collision(c) for c in item.collisions),
        )

    return dataclasses.replace(
        robot,
        links=tuple(link(item) for item in robot.links),
        wrap_surfaces=tuple(surface(item) for item in robot.wrap_surfaces),
    )
