"""Wrap surfaces and muscles as elements of our plugin block; `sdf_writer` puts them there."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, get_args

from cards_core.errors import UnknownNameError
from cards_core.formats.sdf.elements import is_identity, mesh_location, round_angles
from cards_core.formats.sdf.geometry_xml import numbers
from cards_core.formats.sdf.muscle_parameters import parameters_of
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Muscle,
    PathElement,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapGeometry,
    WrapSurface,
)


def add_wrap_surface(block: ET.Element, surface: WrapSurface, base: Path | None) -> None:
    """Add a wrap surface to the block."""
    element = ET.SubElement(block, "wrap_surface", name=surface.name, link=surface.link)
    if not is_identity(surface.pose):
        angles = round_angles(surface.pose)
        angles = surface.pose.rpy if angles is None else angles
        element.set("pose", numbers(*surface.pose.translation, *angles))
    match surface.geometry:
        case Sphere(radius):
            ET.SubElement(element, "sphere", radius=numbers(radius))
        case Cylinder(radius, length):
            shape = ET.SubElement(element, "cylinder", radius=numbers(radius))
            if math.isfinite(length):
                shape.set("length", numbers(length))
        case Ellipsoid(radii):
            ET.SubElement(element, "ellipsoid", radii=numbers(*radii))
        case Torus(radius, tube_radius):
            sizes = {"radius": numbers(radius), "tube_radius": numbers(tube_radius)}
            ET.SubElement(element, "torus", sizes)
        case Mesh(uri, scale):
            place = mesh_location(uri, base)
            ET.SubElement(element, "mesh", uri=place, scale=numbers(*scale))
        case _:
            raise UnknownNameError.of_type(
                "wrap surface", surface.geometry, get_args(WrapGeometry)
            )


def add_muscle(block: ET.Element, muscle: Muscle) -> None:
    """Add a muscle to the block; what is at its default is left out."""
    element = ET.SubElement(block, "muscle", name=muscle.name, type=muscle.kind)
    if muscle.friction_speed != Muscle.friction_speed:
        element.set("friction_speed", numbers(muscle.friction_speed))
    if math.isfinite(muscle.tension_max):
        limits = (numbers(muscle.tension_min), numbers(muscle.tension_max))
        ET.SubElement(element, "tension", min=limits[0], max=limits[1])
    parameters = ET.Element("parameters")
    _fill(parameters, muscle.actuator)
    if parameters.attrib or len(parameters):
        element.append(parameters)
    for item in muscle.path:
        _add_path_element(element, item)


def _fill(element: ET.Element, values: Any) -> None:
    """Write the fields of a parameter dataclass that differ from their defaults."""
    for item in parameters_of(type(values)):
        value = getattr(values, item.name)
        if value is None or (not item.required and value == item.default):
            continue
        if item.nested:
            _fill(ET.SubElement(element, item.name), value)
        elif isinstance(value, bool):
            element.set(item.name, str(value).lower())
        else:
            element.set(item.name, value if isinstance(value, str) else numbers(value))


def _add_path_element(muscle: ET.Element, item: PathElement) -> None:
    match item:
        case ViaPoint():
            element = ET.SubElement(muscle, "via_point", link=item.link)
            element.text = numbers(*item.position)
        case Wrap():
            element = ET.SubElement(muscle, "wrap", surface=item.surface)
            if item.side is not None:
                element.set("side", numbers(*item.side))
            if item.inside:
                element.set("inside", "true")
        case Pulley():
            sizes = {"axis": numbers(*item.axis), "radius": numbers(item.radius)}
            element = ET.SubElement(muscle, "pulley", {"link": item.link} | sizes)
            element.text = numbers(*item.position)
            return
        case _:
            raise UnknownNameError.of_type("path element", item, get_args(PathElement))
    if item.friction:
        element.set("friction", numbers(item.friction))
