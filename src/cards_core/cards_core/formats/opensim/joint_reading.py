"""Joints and coordinates of an OpenSim document, of format 4 and of the older ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.formats.opensim.fields import (
    flag,
    name_of,
    number,
    objects,
    placement,
    vector,
    word,
)
from cards_core.formats.opensim.functions import Function, Linear, function_in
from cards_core.formats.opensim.source import GROUND, Axis, Coordinate, SourceJoint
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.spatial import Pose
from cards_core.typing import Array

_X, _Y, _Z = np.eye(3)
_EULER = (_X, _Y, _Z)

MOTIONS: Mapping[str, tuple[tuple[Array, ...], tuple[Array, ...]]] = {
    "WeldJoint": ((), ()),
    "PinJoint": ((_Z,), ()),
    "SliderJoint": ((), (_X,)),
    "UniversalJoint": ((_X, _Y), ()),
    "GimbalJoint": (_EULER, ()),
    "BallJoint": (_EULER, ()),
    "PlanarJoint": ((_Z,), (_X, _Y)),
    "FreeJoint": (_EULER, _EULER),
}
"""Axes of the rotations and of the translations of each kind of joint but `CustomJoint`, which
states its own. OpenSim's coordinates of a ball joint are three angles too."""


@dataclass(frozen=True)
class Frames:
    """Frames that sockets may name: (body, frame to body) by name and by the end of their path."""

    bodies: frozenset[str]
    offsets: Mapping[str, tuple[str, Pose]]

    def find(
        self, path: str, local: Mapping[str, tuple[str, Pose]], element: XmlElement
    ) -> tuple[str, Pose]:
        """Return body and pose of the frame that a socket names.

        Args:
            path: As in the file, e.g. ``/bodyset/femur_r``.
            local: Frames of the same joint, by name.
            element: Where it stands, for the error.

        Raises:
            DescriptionError: There is no such frame.
        """
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        last = parts[-1] if parts else ""
        if last in local and (len(parts) == 1 or not path.startswith("/bodyset")):
            return local[last]
        if len(parts) > 1 and "/".join(parts[-2:]) in self.offsets:
            return self.offsets["/".join(parts[-2:])]
        if last == GROUND or last in self.bodies:
            return last, Pose()
        if last in self.offsets:
            return self.offsets[last]
        raise element.error(
            f"frame '{shorten(path)}' does not exist",
            ", ".join([GROUND, *sorted(self.bodies)][:20]),
        )


def offset_frames(
    parent: XmlElement | None, tag: str, frames: Frames, owner: str = ""
) -> dict[str, tuple[str, Pose]]:
    """Return the offset frames among the children of ``parent``'s child ``tag``, by name.

    Args:
        parent: A joint, body or model, or None.
        tag: ``frames`` or ``components``.
        frames: What they may be attached to.
        owner: Body that a frame without a socket, or with ``..``, is attached to.
    """
    listed = parent.child(tag) if parent is not None else None
    items = list(listed) if listed is not None else []
    items = [child for item in items for child in (item if item.tag == "objects" else (item,))]
    out: dict[str, tuple[str, Pose]] = {}
    for item in items:
        if item.tag != "PhysicalOffsetFrame":
            continue
        path = word(item, "socket_parent", "socket_parent_frame")
        if owner and path.strip("./") == "":
            body, base = owner, Pose()
        else:
            body, base = frames.find(path, out, item)
        out[name_of(item)] = (body, base @ placement(item, "translation", "orientation"))
    return out


def read_coordinates(joint: XmlElement) -> list[Coordinate]:
    """Return the coordinates that a joint declares, in their order.

    Raises:
        DescriptionError: A damaged coordinate.
    """
    listed = joint.child("coordinates")
    items = list(listed.children("Coordinate")) if listed is not None else []
    items += list(objects(joint, "CoordinateSet"))
    out = []
    for item in items:
        limits = vector(item, "range", 2, np.array([-math.inf, math.inf]))
        if limits[0] > limits[1]:
            raise item.error(f"range {limits[0]:g} to {limits[1]:g}", "lower <= upper")
        default = number(item, "default_value", 0.0)
        held = bool(limits[0] == limits[1] == default)
        out.append(
            Coordinate(
                name_of(item), default, float(limits[0]), float(limits[1]),
                flag(item, "locked", False) or held, flag(item, "prescribed", False), item,
            )
        )  # fmt: skip
    return out


def read_joint(element: XmlElement, frames: Frames, child_body: str | None) -> SourceJoint:
    """Return a joint.

    Args:
        element: The joint.
        frames: What it may connect.
        child_body: Body that the joint is nested in, in the older formats; else None.

    Raises:
        DescriptionError: An unknown kind, frame or coordinate, or damaged numbers.
    """
    kind = element.tag
    if kind != "CustomJoint" and kind not in MOTIONS:
        raise element.error(
            f"joints of kind '{shorten(kind)}' cannot be converted",
            ", ".join(["CustomJoint", *MOTIONS]),
        )
    if child_body is None:
        local = offset_frames(element, "frames", frames)
        parent, parent_frame = frames.find(
            word(element, "socket_parent_frame", "connector_parent_frame"), local, element
        )
        child, child_frame = frames.find(
            word(element, "socket_child_frame", "connector_child_frame"), local, element
        )
    else:
        parent, base = frames.find(word(element, "parent_body"), {}, element)
        parent_frame = base @ placement(element, "location_in_parent", "orientation_in_parent")
        child, child_frame = child_body, placement(element, "location", "orientation")
    names = [item.name for item in read_coordinates(element)]
    if kind == "CustomJoint":
        rotations, translations = _custom(element, names)
    else:
        rotations, translations = _plain(element, kind, names)
    if flag(element, "reverse", False):
        raise element.error("a reversed joint cannot be converted", "reverse false")
    return SourceJoint(
        name_of(element), kind, parent, child, parent_frame, child_frame,
        rotations, translations, tuple(names), element,
    )  # fmt: skip


def _plain(
    element: XmlElement, kind: str, names: list[str]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    turning, sliding = MOTIONS[kind]
    count = len(turning) + len(sliding)
    if len(names) != count:
        raise element.error(f"{len(names)} coordinates", f"{count} for a {kind}")
    axes = [
        Axis(axis, name, Linear(1.0, 0.0))
        for axis, name in zip((*turning, *sliding), names, strict=True)
    ]
    return tuple(axes[: len(turning)]), tuple(axes[len(turning) :])


def _custom(element: XmlElement, names: list[str]) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    transform = element.child("SpatialTransform")
    if transform is None:
        raise element.error("no <SpatialTransform>", "<SpatialTransform>")
    found: dict[str, Axis] = {}
    for item in transform.children("TransformAxis"):
        name = name_of(item)
        if name in found:
            raise item.error("given twice", "each axis once")
        found[name] = _axis(item, names)
    parts = []
    for group in ("rotation", "translation"):
        part = []
        for index in (1, 2, 3):
            axis = found.pop(f"{group}{index}", None)
            if axis is None:
                raise transform.error(f"no axis '{group}{index}'", "rotation1 to translation3")
            part.append(axis)
        # three axes in one plane do not span the space: OpenSim refuses them
        if abs(np.linalg.det(np.array([axis.axis for axis in part]))) < 1e-9 and group:
            _check_span(part, transform, group)
        parts.append(tuple(part))
    if found:
        raise transform.error(f"unknown axis '{shorten(next(iter(found)))}'", "rotation1 ...")
    return parts[0], parts[1]


def _check_span(axes: list[Axis], element: XmlElement, group: str) -> None:
    first, second, third = (axis.axis for axis in axes)
    pairs = ((first, second), (second, third))
    if any(np.linalg.norm(np.cross(a, b)) < 1e-9 for a, b in pairs):
        raise element.error(f"two {group} axes are parallel", "axes that differ")


def _axis(element: XmlElement, names: list[str]) -> Axis:
    axis = vector(element, "axis", 3)
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise element.error("the axis has no direction", "three numbers, not all 0")
    listed = word(element, "coordinates", "coordinate").split()
    function: Function | None = function_in(element)
    if len(listed) > 1:
        raise element.error(f"{len(listed)} coordinates", "at most one")
    if listed and listed[0] not in names:
        raise element.error(
            f"coordinate '{shorten(listed[0])}' is not one of the joint's", ", ".join(names)
        )
    if function is None:
        function = Linear(1.0, 0.0) if listed else Linear(0.0, 0.0)
    if not listed:
        function = Linear(0.0, function(0.0))
    return Axis(axis / length, listed[0] if listed else None, function)
