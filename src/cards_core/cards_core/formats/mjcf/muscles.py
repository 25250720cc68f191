"""Muscles in MJCF: sites for drawing, and on demand spatial tendons that wrap as MuJoCo can.

MuJoCo wraps over one sphere or infinite cylinder at a time, between two sites. A wrap over another
shape, or over one surface of several in a row, is left out of the tendon with a comment in its
place. A pulley becomes the site where its cable enters; the ends of a finite cylinder are lost.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.formats.mjcf.scene import pose_attributes
from cards_core.formats.sdf.geometry_xml import numbers
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Muscle,
    Pulley,
    Sphere,
    Torus,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.typing import Vector3

WRAP_GROUP = "4"
"""Group of the geoms that tendons wrap over; MuJoCo's viewer hides it at first."""

_DRAWN_RADII = 10.0
"""Half the drawn length of an infinite cylinder, in radii."""


def add_sites(body: ET.Element, robot: Robot, link: str, *, sides: bool = False) -> None:
    """Mark the via points and pulleys on a link; with ``sides`` also where wraps pass."""
    for muscle in robot.muscles:
        for index, item in enumerate(muscle.path):
            if not isinstance(item, Wrap):
                if item.link == link:
                    _add_site(body, f"{muscle.name} {index}", item.position)
            elif sides and robot.wrap_surface(item.surface).link == link:
                side = _side(item, robot.wrap_surface(item.surface))
                if side is not None:
                    _add_site(body, f"{muscle.name} {index}", side)


def add_wrap_geoms(body: ET.Element, robot: Robot, link: str) -> None:
    """Add the surfaces of a link that MuJoCo wraps over; they touch and weigh nothing."""
    for surface in robot.wrap_surfaces:
        match surface.geometry:
            case Sphere(radius):
                shape = {"type": "sphere", "size": numbers(radius)}
            case Cylinder(radius, length):
                half = 0.5 * length if math.isfinite(length) else _DRAWN_RADII * radius
                shape = {"type": "cylinder", "size": numbers(radius, half)}
            case Ellipsoid() | Torus() | Mesh():
                continue
            case _:
                raise UnknownNameError.of_type(
                    "wrap surface", surface.geometry, get_args(WrapGeometry)
                )
        if surface.link == link:
            shape |= pose_attributes(surface.pose)
            shape |= {"contype": "0", "conaffinity": "0", "group": WRAP_GROUP, "mass": "0"}
            name = _geom_name(surface.name)
            ET.SubElement(body, "geom", shape, name=name, rgba="0.3 0.5 0.8 0.3")


def add_tendons(root: ET.Element, robot: Robot) -> None:
    """Add one spatial tendon per muscle, of the muscle's name."""
    if not robot.muscles:
        return
    tendons = ET.SubElement(root, "tendon")
    for muscle in robot.muscles:
        tendon = ET.SubElement(tendons, "spatial", name=muscle.name, width="0.003")
        for index, item in enumerate(muscle.path):
            if not isinstance(item, Wrap):
                if isinstance(item, Pulley):
                    _note(tendon, "the wheel of a pulley is left out")
                ET.SubElement(tendon, "site", site=f"{muscle.name} {index}")
                continue
            surface = robot.wrap_surface(item.surface)
            problem = _problem(muscle, index, surface)
            if problem:
                _note(tendon, f"wrap over '{surface.name}' left out: {problem}")
                continue
            geom = ET.SubElement(tendon, "geom", geom=_geom_name(surface.name))
            if _side(item, surface) is not None:
                geom.set("sidesite", f"{muscle.name} {index}")


def _problem(muscle: Muscle, index: int, surface: WrapSurface) -> str:
    """Return why MuJoCo cannot wrap here; empty if it can."""
    if not isinstance(surface.geometry, Sphere | Cylinder):
        return "MuJoCo wraps over spheres and cylinders only"
    if any(isinstance(muscle.path[i], Wrap) for i in (index - 1, index + 1)):
        return "MuJoCo wraps over one surface between two points"
    return ""


def _side(wrap: Wrap, surface: WrapSurface) -> Vector3 | None:
    """Return where MuJoCo's side site goes, in link coordinates: within the geom for inside."""
    if wrap.inside:
        return np.array(surface.pose.translation)
    return wrap.side


def _add_site(body: ET.Element, name: str, position: Vector3) -> None:
    attributes = {"size": "0.004", "rgba": "0.8 0.1 0.1 1"}
    ET.SubElement(body, "site", attributes, name=name, pos=numbers(*position))


def _geom_name(surface: str) -> str:
    return f"wrap {surface}"


def _note(parent: ET.Element, text: str) -> None:
    parent.append(ET.Comment(f" {text} ".replace("--", "- -")))
