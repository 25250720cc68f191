"""Mesh files of an imported robot: found where others mean them, copied into its folder."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cards_core.robot.elements import Collision, Link, Mesh, Visual, WrapSurface
from cards_core.robot.model import Robot

FOLDER = "meshes"
"""Folder of the copies, within that of the robot."""

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".msh", ".glb", ".gltf", ".3ds", ".off", ".wrl")
"""Endings of mesh files. A description that names any other file does not get it copied."""

_UPWARDS = 4  # how far above the file the folder of a package or model may be

PACKAGE_PATH = "ROS_PACKAGE_PATH"
"""Environment variable: folders with packages, as ROS has it; ``AMENT_PREFIX_PATH`` too."""


def find_mesh(uri: str, folder: Path) -> Path | None:
    """Return the file that a mesh URI of another program means; None if there is none.

    ``package://NAME/...`` and ``model://NAME/...`` are looked for below every folder from that of
    the file upwards, with and without NAME: a package seldom stands in a folder of its name when
    it was downloaded. Then below ``ROS_PACKAGE_PATH`` and ``<prefix>/share`` of
    ``AMENT_PREFIX_PATH``. ``file://`` and plain paths are absolute, or relative to the file.

    Args:
        uri: As written.
        folder: Folder of the file that names it.
    """
    scheme, separator, rest = uri.strip().partition("://")
    if not separator:
        rest = scheme
    if not rest or "\0" in rest or len(rest) > 4096 or (separator and scheme not in _SCHEMES):
        return None
    for candidate in _candidates(scheme if separator else "", rest, folder):
        try:
            if candidate.suffix.lower() in SUFFIXES and candidate.is_file():
                return candidate.resolve()
        except OSError:
            continue
    return None


_SCHEMES = ("package", "model", "file")


def _candidates(scheme: str, rest: str, folder: Path) -> Iterator[Path]:
    if scheme == "file" and not rest.startswith("/"):
        rest = "/" + rest.partition("/")[2]  # file://localhost/...
    if scheme in ("", "file"):
        yield folder / rest
        return
    below = rest.partition("/")[2]
    above = [folder, *folder.parents][: _UPWARDS + 1]
    yield from (base / rest for base in above)
    if below:
        yield from (base / below for base in above)
    for entry in os.environ.get(PACKAGE_PATH, "").split(os.pathsep):
        if entry:
            yield Path(entry, rest)
            yield Path(entry).parent / rest
    for entry in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry, "share", rest)


def copy_meshes(robot: Robot, folder: Path) -> Robot:
    """Copy the mesh files of a robot into ``folder/meshes``; return the robot that uses them.

    Meshes with relative paths are in the folder already, those with ``https://`` and the like stay
    where they are. Of files of the same name, the second gets the folder that it was in.

    Args:
        robot: Mesh files have absolute paths.
        folder: Of the robot.

    Raises:
        OSError: A file cannot be read or written.
    """
    names: dict[str, str] = {}

    def copied(uri: str) -> str:
        if "://" in uri or not Path(uri).is_absolute():
            return uri
        if uri not in names:
            source = Path(uri)
            name = f"{FOLDER}/{source.name}"
            if name in names.values():
                name = f"{FOLDER}/{source.parent.name}/{source.name}"
            stem, count = name, 1
            while name in names.values():
                count += 1
                name = f"{stem.removesuffix(source.suffix)}_{count}{source.suffix}"
            target = folder.joinpath(*name.split("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            names[uri] = name
        return names[uri]

    return with_meshes(robot, copied)


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
