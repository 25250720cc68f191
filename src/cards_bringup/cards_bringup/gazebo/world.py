"""The world that Gazebo gets: a world file, this run's step and speed, and the robot in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.dom import expatbuilder
from xml.dom.minidom import Document, Element, Node
from xml.parsers import expat

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.locate import ROD_MODULE, find_model
from cards_core.formats.sdf.muscle_block import MODULE
from cards_core.robot.terrain_place import GROUND

MODULES = (MODULE, ROD_MODULE)
"""Plugins that make a model a robot of ours."""


@dataclass(frozen=True)
class RobotInWorld:
    """A model with muscles or rods.

    Attributes:
        name: Name of the model in the world.
        file: Where it is described: its own file, or the world's.
        model: Which model of that file; None for the only one.
        rods: It has rods, not muscles.
    """

    name: str
    file: Path
    model: str | None = None
    rods: bool = False


@dataclass(frozen=True)
class World:
    """A world for one run.

    Attributes:
        text: SDF.
        robots: The models with muscles or rods in it.
    """

    text: str
    robots: tuple[RobotInWorld, ...]


def make_world(
    file: Path,
    *,
    robot: str | Path,
    step: float | None = None,
    real_time_factor: float | None = None,
    terrain: str | None = None,
) -> World:
    """Put a robot into a world, and the time step into its physics.

    No robot is added to a world that already has such robots.

    Args:
        file: World file.
        robot: Name or path of a model, added where its own file puts it.
        step: Physics step, [s]; None: as in the world.
        real_time_factor: Simulated time per real time, 0: as fast as it goes; None: as in the
            world.
        terrain: SDF of a static model, which replaces the model `GROUND`.

    Raises:
        CardsError: A terrain for a world that has robots of its own.
        DescriptionError: A file cannot be read or is no world.
        UnknownNameError: There is no such model.
    """
    document = _parse(file)
    world = _world(document, file)
    _set_physics(document, world, step, real_time_factor)
    _make_absolute(document, world, file.resolve().parent)
    robots = [item for model in _children(world) if (item := _robot(model, file)) is not None]
    if not robots:
        model_file = find_model(robot).resolve()
        if (found := _model_in(model_file)) is None:
            raise DescriptionError(
                "has no muscles and no rods, so there is nothing to simulate in Gazebo",
                source=str(model_file),
                expected=f"a <plugin> with <module_name>{MODULE}</module_name> or {ROD_MODULE}",
            )
        include = world.appendChild(document.createElement("include"))
        # a folder whose model.config names this file, or the file itself: sdformat takes both
        _set_text(document, include, "uri", str(model_file))
        robots = [RobotInWorld(found, model_file, rods=_has_rods(model_file))]
    elif terrain is not None:
        raise CardsError(
            f"a terrain for {file}, which has robots of its own (expected: a world of objects)"
        )
    if terrain is not None:
        for model in _children(world, "model"):
            if model.getAttribute("name") == GROUND:
                world.removeChild(model)
        ground = expatbuilder.parseString(terrain).documentElement
        assert ground is not None
        world.appendChild(ground)
    return World(document.toxml(), tuple(robots))


def _parse(file: Path) -> Document:
    try:
        # without namespaces: SDF files use prefixes such as gz: without declaring them
        return expatbuilder.parseString(file.read_bytes(), namespaces=False)
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", source=str(file)) from error
    except expat.ExpatError as error:
        raise DescriptionError(
            f"malformed XML: {expat.ErrorString(error.code)}",
            source=str(file),
            line=error.lineno,
            expected="well-formed XML",
        ) from None


def _world(document: Document, file: Path) -> Element:
    worlds = [world for sdf in _children(document, "sdf") for world in _children(sdf, "world")]
    if len(worlds) != 1:
        raise DescriptionError(
            f"holds {len(worlds)} worlds", source=str(file), expected="<sdf> with one <world>"
        )
    return worlds[0]


def _set_physics(
    document: Document, world: Element, step: float | None, real_time_factor: float | None
) -> None:
    profiles = _children(world, "physics")
    if not profiles:
        physics = document.createElement("physics")
        physics.setAttribute("name", "run")
        physics.setAttribute("type", "ignored")
        profiles = [world.insertBefore(physics, world.firstChild)]
    chosen = next((p for p in profiles if p.getAttribute("default") in ("true", "1")), profiles[0])
    if step is not None:
        _set_text(document, chosen, "max_step_size", repr(step))
    if real_time_factor is not None:
        _set_text(document, chosen, "real_time_factor", repr(real_time_factor))


def _make_absolute(document: Document, world: Element, folder: Path) -> None:
    """Make relative paths of the world absolute: its copy is in another folder."""
    for uri in world.getElementsByTagName("uri"):
        text = _text(uri)
        if text and "://" not in text and (folder / text).exists():
            _write(document, uri, str(folder / text))


def _robot(model: Element, file: Path) -> RobotInWorld | None:
    """Return what a child of the world is, if it is a robot with muscles or rods."""
    if model.tagName == "model" and (module := _module_in(model.toxml())) is not None:
        title = model.getAttribute("name")
        return RobotInWorld(title, file, title, module == ROD_MODULE)
    if model.tagName != "include":
        return None
    uri = next(iter(_children(model, "uri")), None)
    if uri is None:
        return None
    try:
        source = find_model(re.sub(r"^(model|file)://", "", _text(uri)).rstrip("/")).resolve()
    except CardsError:
        return None  # models of others: Gazebo finds them, or says that it does not
    own = _model_in(source)
    if own is None:
        return None
    name = next(iter(_children(model, "name")), None)
    return RobotInWorld(own if name is None else _text(name), source, rods=_has_rods(source))


def _model_in(file: Path) -> str | None:
    """Return the name of the model with muscles or rods in a file; None if there is none."""
    if _module_in(file.read_text(errors="replace")) is None:
        return None
    models = [model for sdf in _children(_parse(file), "sdf") for model in _children(sdf, "model")]
    return next((m.getAttribute("name") for m in models if _module_in(m.toxml())), None)


def _module_in(text: str) -> str | None:
    """Return which of our plugins a text names."""
    return next((module for module in MODULES if module in text), None)


def _has_rods(file: Path) -> bool:
    return _module_in(file.read_text(errors="replace")) == ROD_MODULE


def _children(element: Element | Document, *tags: str) -> list[Element]:
    nodes = (node for node in element.childNodes if node.nodeType == Node.ELEMENT_NODE)
    return [node for node in nodes if not tags or node.tagName in tags]


def _text(element: Element) -> str:
    return "".join(n.data for n in element.childNodes if n.nodeType == Node.TEXT_NODE).strip()


def _set_text(document: Document, parent: Element, tag: str, text: str) -> None:
    element = next(iter(_children(parent, tag)), None)
    if element is None:
        element = parent.appendChild(document.createElement(tag))
    _write(document, element, text)


def _write(document: Document, element: Element, text: str) -> None:
    while element.firstChild is not None:
        element.removeChild(element.firstChild)
    element.appendChild(document.createTextNode(text))
