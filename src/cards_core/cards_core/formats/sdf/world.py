"""Read a ``<world>``: all of its models at their places, gravity, joints between models.

`read_world` reads a file or text, `load_world` a world by name or path. What is read, ignored and
refused within a model is as for a single robot (`cards_core.formats.sdf.reader`). Of the world
itself Gazebo's plugins, lights, physics and scene settings are ignored.

A model with muscles that is included from a file of its own is described in that file's axes,
without what the world does to it beyond its place: so its controllers, which know the file, know
the robot. All other models are described in the world's axes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from cards_core.checks import check_kind
from cards_core.formats.sdf.frames import (
    FrameNode,
    Scope,
    absolute_pose,
    finite,
    relative_pose,
)
from cards_core.formats.sdf.joints import joint_ends, read_joint
from cards_core.formats.sdf.reader import GRAVITY, ModelReader, declare_models, has_muscles
from cards_core.formats.sdf.scopes import ScopeBuilder
from cards_core.formats.xml_lines import XmlSource
from cards_core.robot.elements import WORLD, Joint, JointAxis
from cards_core.robot.world import ModelJoint, ModelJointKind, World, WorldModel
from cards_core.shared_files import find_file
from cards_core.spatial import Pose
from cards_core.typing import Vector3

SUFFIX = ".sdf"


AnyWorld: TypeAlias = str | os.PathLike[str] | World
"""A world by name, by path, or as it is."""


def described_world(world: AnyWorld) -> World:
    """Return the description of a world; raises what `load_world` does."""
    return world if isinstance(world, World) else load_world(world)


def load_world(name_or_path: str | os.PathLike[str]) -> World:
    """Read a world by name or path.

    Args:
        name_or_path: Name of a file in ``worlds/``, or a path.

    Raises:
        CardsError: It is neither a name nor a path.
        UnknownNameError: No such world; the message lists those there are.
        DescriptionError: The description is wrong; the message names file, line and element.
    """
    check_kind(
        name_or_path,
        (str, os.PathLike),
        "the world",
        "the name of a file in worlds/, or the path of an SDF file",
    )
    return read_world(find_file(os.fspath(name_or_path), folder="worlds", suffix=SUFFIX))


def read_world(
    source: XmlSource,
    *,
    base: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> World:
    """Read all models of a world.

    Args:
        source: SDF text (``str`` or ``bytes``), a path object, or an open file.
        base: Folder that relative paths in text start from; for files it is the file's folder.
        name: Name of the document in messages; default its path or ``<string>``.

    Raises:
        DescriptionError: The description is wrong or not supported, or an included model is not
            found; the message names file, line and element.
    """
    declared = declare_models(source, base=base, name=name, strict=True)
    root, scope = declared.root, declared.world
    element = root.child("world")
    if element is None:
        raise root.error("holds no world", "a <world> with models")
    models: dict[str, WorldModel] = {}
    own: set[str] = set()
    for key, node in scope.names.items():
        if node.kind != "model":
            continue
        if node.model is not node.element and has_muscles(node):
            models[key] = _in_own_axes(key, node, declared.builder)
            own.add(key)
        else:
            reader = ModelReader(declared.builder, root.source, scope, node, alone=False)
            models[key] = WorldModel(key, reader.read(declared.gravity))
    return World(
        name=element.get("name", ""),
        models=tuple(models.values()),
        joints=tuple(_joints(scope, models, own, root.source)),
        gravity=declared.gravity,
        source=root.source,
    )


def _in_own_axes(name: str, node: FrameNode, builder: ScopeBuilder) -> WorldModel:
    """Return an included model in the axes of the file that it is included from."""
    include, element = node.element, node.model
    assert element is not None
    scope = builder.world_scope(element)
    alone = builder.add_lone_model(element, scope)
    assert alone.inner is not None
    alone.static = node.static
    alone.inner.plugins += include.children("plugin")
    robot = ModelReader(builder, element.source, scope, alone).read(np.array(GRAVITY))
    pose = Pose()
    if include.child("pose") is not None:
        pose = absolute_pose(node) @ absolute_pose(alone).inverse()
        if not finite(pose):
            raise node.pose_element.error("the pose is not finite", "smaller numbers")
    return WorldModel(name, robot, pose)


# Joints between models -------------------------------------------------------------------------


def _joints(
    scope: Scope, models: Mapping[str, WorldModel], own: Collection[str], source: str
) -> Iterator[ModelJoint]:
    """Yield the joints of a world that are not part of one model's tree.

    Args:
        scope: Of the world.
        models: Its models.
        own: Names of those in the axes of their own files, whose trees are those of the files.
        source: Name of the main file.
    """
    for node in scope.items:
        if node.kind != "joint":
            continue
        parent, child = joint_ends(node)
        above, below = _owner(parent), _owner(child)
        assert below is not None
        if above in (None, below) and below not in own:
            continue  # of the model's tree
        if above == below:
            raise node.element.error(
                f"connects two links of '{below}', which is included from a file of its own",
                "this joint in that file",
            )
        if models[below].static and (above is None or models[above].static):
            continue  # nothing moves there
        joint = read_joint(
            node,
            parent,
            child,
            line=node.element.line if node.element.source == source else None,
        )
        kind, axis = _constraint(node, joint)
        yield ModelJoint(
            name=node.name,
            kind=kind,
            parent=WORLD if above is None else models[above].prefixed(parent.name),
            child=models[below].prefixed(child.name),
            parent_to_joint=joint.parent_to_joint,
            child_to_joint=relative_pose(node, child),
            axis=axis,
            line=joint.line,
        )


def _constraint(node: FrameNode, joint: Joint) -> tuple[ModelJointKind, Vector3 | None]:
    match joint.kind:
        case "fixed" | "ball":
            return joint.kind, None
        case "revolute" if _is_free(joint.axes[0]):
            return joint.kind, joint.axes[0].axis
    what = f"is {joint.kind}"
    if joint.kind == "revolute":
        what = "has limits, damping or friction"
    raise node.element.error(
        f"a joint between two models that {what}",
        "fixed, ball, or revolute without limits, damping and friction",
    )


def _is_free(axis: JointAxis) -> bool:
    return (
        axis.lower == -math.inf
        and axis.upper == math.inf
        and axis.damping == 0.0
        and axis.friction == 0.0
    )


def _owner(node: FrameNode) -> str | None:
    """Return the name of the model of the world that holds a link; None for the world."""
    model: str | None = None
    while node.kind != "world":
        node = node.scope.owner
        if node.kind == "model" and node.scope.is_world:
            model = node.name
    return model
