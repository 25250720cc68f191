"""Read ``<joint>``: kind, axes, limits, damping."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cards_core.formats.sdf.frames import (
    FrameNode,
    body_of,
    finite,
    relative_pose,
    world_of,
)
from cards_core.formats.sdf.schema import JOINT_TYPES, check
from cards_core.formats.sdf.values import numbers, required, scalar, text_of
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.robot.elements import WORLD, Joint, JointAxis, JointKind
from cards_core.typing import Vector3

_KINDS: Mapping[str, tuple[JointKind, tuple[str, ...]]] = {
    "fixed": ("fixed", ()),
    "revolute": ("revolute", ("axis",)),
    "continuous": ("revolute", ("axis",)),
    "prismatic": ("prismatic", ("axis",)),
    "universal": ("universal", ("axis", "axis2")),
    "ball": ("ball", ()),
}


def read_joint(
    node: FrameNode,
    parent: FrameNode,
    child: FrameNode,
    *,
    line: int | None,
    locked: bool = False,
) -> Joint:
    """Return the joint that a node of kind ``joint`` stands for.

    Args:
        node: The joint.
        parent: First body that `joint_ends` gives for it.
        child: The second.
        line: Line to record in the joint.
        locked: Take limits that are equal, too.

    Raises:
        DescriptionError: Something in it is wrong, or would move and is not supported.
    """
    element = node.element
    check(element)
    kind, axes = _KINDS[_type_of(element)]
    placement = relative_pose(node, parent)
    to_child = relative_pose(child, node)
    if not (finite(placement) and finite(to_child)):
        raise element.error("its pose is not finite", "smaller numbers")
    return Joint(
        name=node.name,
        kind=kind,
        parent=parent.name,
        child=child.name,
        parent_to_joint=placement,
        joint_to_child=to_child,
        axes=tuple(_axis(node, tag, locked=locked) for tag in axes),
        line=line,
    )


def _type_of(element: XmlElement) -> str:
    name = element.get("type", "").strip()
    if name not in JOINT_TYPES:
        problem = f"type '{shorten(name)}' is not supported" if name else "has no type"
        raise element.error(problem, ", ".join(JOINT_TYPES))
    return name


def joint_ends(node: FrameNode) -> tuple[FrameNode, FrameNode]:
    """Return the parent (a link or the world) and the child link that a joint connects.

    Both may be named by any frame; meant are the links that these are attached to.

    Raises:
        DescriptionError: A name does not exist, the child is the world, or both are one link.
    """
    element, scope = node.element, node.scope
    ends: dict[str, FrameNode] = {}
    for role in ("parent", "child"):
        item = required(element, role)
        check(item)
        name = text_of(item)
        if not name:
            raise item.error("is empty", "the name of a link or frame")
        # only a joint may say "world" inside a model
        found = world_of(node) if name == WORLD else scope.find(name, item, role)
        if found is node:
            raise item.error("names the joint itself", "a link or another frame")
        ends[role] = body_of(found)
        if role == "child" and ends[role].kind == "world":
            raise item.error(
                f"'{shorten(name)}' is the world, or fixed to it", "a link that can move"
            )
    if ends["parent"] is ends["child"]:
        raise element.error(
            f"parent and child are both link '{ends['child'].name}'", "two different links"
        )
    return ends["parent"], ends["child"]


def _axis(node: FrameNode, tag: str, *, locked: bool) -> JointAxis:
    element = required(node.element, tag)
    check(element)
    continuous = node.element.get("type", "").strip() == "continuous"
    lower, upper, effort, velocity = _limits(element, locked=locked or continuous)
    damping, friction = _dynamics(element)
    if continuous:
        lower, upper = -math.inf, math.inf
    return JointAxis(_direction(node, element), lower, upper, effort, velocity, damping, friction)


def _direction(node: FrameNode, axis: XmlElement) -> Vector3:
    """Return the unit vector of an axis in joint coordinates."""
    element = axis.child("xyz")
    if element is None:
        return np.array([0.0, 0.0, 1.0])
    check(element)
    vector = numbers(element, 3, what="numbers x y z")
    length = float(np.linalg.norm(vector))
    if length < 1e-9:
        raise element.error("an axis without direction", "a vector that is not zero")
    frame = element.get("expressed_in", "").strip()
    if frame:
        source = node.scope.find(frame, element, "expressed_in")
        vector = relative_pose(source, node).rotation @ vector
    # a unit vector stays as it is: dividing by 1 - 1e-16 would change its digits
    return vector if abs(length - 1.0) < 1e-15 else np.asarray(vector / length)


def _limits(axis: XmlElement, *, locked: bool) -> tuple[float, float, float, float]:
    """Return lower, upper, effort and velocity; infinite where there are none."""
    element = axis.child("limit")
    if element is None:
        return -math.inf, math.inf, math.inf, math.inf
    check(element)
    _check_values(element)
    lower = scalar(element, "lower", -math.inf, infinite=True)
    upper = scalar(element, "upper", math.inf, infinite=True)
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise element.error(f"lower {lower:g} is above upper {upper:g}", "lower < upper")
    if lower == upper and not locked:
        raise element.error(
            f"lower and upper are both {lower:g}",
            "lower < upper; a joint that shall not move is of type fixed",
        )
    effort = scalar(element, "effort", math.inf, infinite=True)
    velocity = scalar(element, "velocity", math.inf, infinite=True)
    # SDFormat: a negative value switches the limit off
    return (
        lower,
        upper,
        math.inf if effort < 0.0 else effort,
        math.inf if velocity < 0.0 else velocity,
    )


def _dynamics(axis: XmlElement) -> tuple[float, float]:
    """Return damping and friction; springs in joints are refused."""
    element = axis.child("dynamics")
    if element is None:
        return 0.0, 0.0
    check(element)
    _check_values(element)
    if scalar(element, "spring_stiffness", 0.0) != 0.0:
        raise element.error("a spring in a joint is not supported", "spring_stiffness 0 or none")
    return (
        scalar(element, "damping", 0.0, minimum=0.0),
        scalar(element, "friction", 0.0, minimum=0.0),
    )


def _check_values(element: XmlElement) -> None:
    for item in element:
        if ":" not in item.tag:
            check(item)
