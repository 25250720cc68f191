"""Points along a contact, for drawing."""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.wrapping.contact import Contact
from cards_core.paths.wrapping.pulley import swivel_rest
from cards_core.robot.elements import Cylinder, Pulley, Sphere, WrapGeometry
from cards_core.typing import Array, Vector3


def arc_points(
    geometry: WrapGeometry, contact: Contact, count: int, inside: bool = False
) -> Array:
    """Return points along a contact with a sphere or cylinder, shape (count, 3), [m].

    Evenly spaced, start and end included; all equal where the path does not touch and where it
    bends at one point of a bore.

    Args:
        geometry: Of the surface.
        contact: In coordinates of the surface, as `sphere_contact` or `cylinder_contact` gives it.
        count: At least 2.
        inside: Whether the path runs through the bore.

    Raises:
        TypeError: The geometry is neither sphere nor cylinder.
    """
    if not isinstance(geometry, Sphere | Cylinder):
        raise TypeError(f"expected a Sphere or Cylinder, got a {type(geometry).__name__}")
    if not contact.wrapped or inside or contact.tangent is None:
        return np.repeat(contact.start[None, :], count, axis=0)
    steps = np.linspace(0.0, 1.0, count)
    tangent = geometry.radius * contact.tangent
    if isinstance(geometry, Sphere):
        return _on_circle(contact.start, tangent, contact.angle * steps)
    # a helix turns by its angle around the axis times the cosine of its pitch
    start = contact.start * np.array([1.0, 1.0, 0.0])
    level = math.hypot(contact.tangent[0], contact.tangent[1])
    flat = tangent * np.array([1.0, 1.0, 0.0]) / level
    points = _on_circle(start, flat, contact.angle / level * steps)
    points[:, 2] = contact.start[2] + (contact.end[2] - contact.start[2]) * steps
    return points


def pulley_arc_points(pulley: Pulley, contact: Contact, count: int) -> Array:
    """Return points along the arc on a caster pulley, shape (count, 3), in its link, [m].

    Args:
        pulley: The pulley.
        contact: In coordinates of the pulley's link.
        count: At least 2.
    """
    reach = contact.end - contact.start
    across = reach - float(reach @ pulley.axis) * pulley.axis
    size = math.sqrt(float(across @ across))
    e = across / size if size > 1e-9 * pulley.radius else swivel_rest(pulley.axis)
    angles = contact.angle * np.linspace(0.0, 1.0, count)
    centre = contact.start + pulley.radius * e
    points: Array = centre + _on_circle(-pulley.radius * e, pulley.radius * pulley.axis, angles)
    return points


def _on_circle(start: Vector3, tangent: Vector3, angles: Array) -> Array:
    points: Array = np.outer(np.cos(angles), start) + np.outer(np.sin(angles), tangent)
    return points
