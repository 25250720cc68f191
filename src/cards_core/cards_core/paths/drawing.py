"""Muscle paths as polylines to draw, with arcs sampled."""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.closed_forms import Contact, swivel_rest
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


ARC_POINTS = 9
"""Points per arc, its ends included: a half circle is then within 2 % of its radius."""


def drawn_paths(paths: Paths, poses: Array) -> list[Array]:
    """Return the path of every muscle in the world, arrays of shape (k, 3), [m].

    Args:
        paths: Solved for these poses.
        poses: Frames in the world, the world itself last, shape (F + 1, 4, 4).
    """
    layout = paths.layout
    geodesic_arcs = iter(paths.geodesics.arc_points(ARC_POINTS) if paths.geodesics else ())
    arcs: dict[int, Array] = {}
    for i, contact in enumerate(layout.contacts):
        if contact.closed:
            place = contact.placement
            points = _closed_arc(paths, i)
        else:
            place = contact.offset
            points = next(geodesic_arcs)
        local = points @ place.rotation.T + place.translation
        pose = poses[contact.frame]
        arcs[contact.point] = local @ pose[:3, :3].T + pose[:3, 3]
    out = []
    for a, b in zip(layout.bounds, layout.bounds[1:], strict=False):
        parts = []
        k = a
        while k < b:
            if k in arcs:
                parts.append(arcs[k])
                k += 2
            else:
                parts.append(paths.points[k : k + 1])
                k += 1
        out.append(np.concatenate(parts) if parts else np.zeros((0, 3)))
    return out


def _closed_arc(paths: Paths, i: int) -> Array:
    spec = paths.layout.contacts[i]
    if isinstance(spec.element, Pulley):
        return pulley_arc_points(spec.element, paths.found[i], ARC_POINTS)
    assert spec.surface is not None
    return arc_points(
        spec.surface.geometry, paths.found[i], ARC_POINTS, inside=spec.element.inside
    )
