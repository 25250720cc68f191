"""From what the simulator says about a model to the robot that its muscles belong to.

The muscles come from the plugin's own element, as text: what Gazebo loaded counts. Kinematics, for
the order and names of the coordinates and for ``robot_description``, come from the model's file.
A model without one (made from text) or nested in another gets its joints from the simulator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.sdf.muscle_block import (
    MuscleBlock,
    is_muscle_plugin,
    parse_muscle_block,
)
from cards_core.formats.urdf.writer import to_urdf
from cards_core.formats.xml_lines import XmlElement, parse_xml
from cards_core.robot.elements import WORLD, Joint, JointAxis, JointKind, Link
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_muscle_plugin.ports import ModelPort
from cards_muscle_plugin.surroundings import Surroundings, surroundings_of
from cards_ros.namespaces import namespace_of


@dataclass(frozen=True, eq=False)
class HostedRobot:
    """A robot in the simulator.

    Attributes:
        robot: The robot, with the muscles of the plugin.
        tree: Lays out its coordinates.
        namespace: ROS namespace of its node.
        moving: Names of the links that can move.
        urdf: For ``robot_description``; empty where the model has no file.
        muscle_robot: What the muscle models are made from: without the placeholder joints of a
            model that has no file.
        surroundings: What is around it, for cables with contact; None if nobody said.
    """

    robot: Robot
    tree: Tree
    namespace: str
    moving: frozenset[str]
    urdf: str
    muscle_robot: Robot
    surroundings: Surroundings | None = None


def host_robot(model: ModelPort, block_text: str) -> HostedRobot:
    """Find out what robot a plugin belongs to.

    Args:
        model: The model that holds the plugin.
        block_text: The plugin's element.

    Raises:
        CardsError: Its element or its file is wrong; the message says where.
        OSError: The file of its surroundings cannot be read.
    """
    links = model.link_names()
    name = f"<plugin> of model '{'::'.join(model.path)}'"
    base = None if model.file is None else model.file.parent
    known, described = _read_file(model)
    block = parse_muscle_block(block_text, name=name, links=links, base=base)
    if described is None:
        robot = _from_joints(model, links, block)
        muscle_robot = dataclasses.replace(robot, joints=(), home={})
    else:
        robot = muscle_robot = _with_block(described, block, links)
    tree = robot.tree
    moving = frozenset(
        link.name for link in robot.links if tree.link_node[link.name][0] != WORLD_NODE
    )
    touching = any(muscle.contact for muscle in muscle_robot.muscles)
    return HostedRobot(
        robot=robot,
        tree=tree,
        namespace=namespace_of(model.path, known),
        moving=frozenset() if model.static else moving,
        urdf="" if described is None else to_urdf(robot),
        muscle_robot=muscle_robot,
        surroundings=surroundings_of(model.path[0]) if touching else None,
    )


def _read_file(model: ModelPort) -> tuple[list[str], Robot | None]:
    """Return the names of the robots in a model's file, and the model as described there."""
    if model.file is None or len(model.path) > 1:
        return [], None
    names = robots_in(model.file)
    name = model.path[0]
    if name in names:
        return names, load(model.file, model=name)
    if len(names) != 1:
        return names, None  # e.g. a file that was changed since
    return names, load(model.file, model=names[0])


def robots_in(file: Path) -> list[str]:
    """Return the names of the models with muscles in an SDF file.

    Raises:
        DescriptionError: It is no SDF file.
    """

    def has_muscles(element: XmlElement) -> bool:
        if any(is_muscle_plugin(plugin) for plugin in element.children("plugin")):
            return True
        return any(has_muscles(inner) for inner in element.children("model"))

    root = parse_xml(file)
    worlds = [root, *root.children("world")]
    models = (model for world in worlds for model in world.children("model"))
    return [model.get("name", "") for model in models if has_muscles(model)]


def _with_block(described: Robot, block: MuscleBlock, links: Collection[str]) -> Robot:
    """Return the robot of a file with the muscles that the simulator loaded."""
    missing = [link.name for link in described.links if link.name not in links]
    if missing:
        raise UnknownNameError("link in the simulator", missing[0], links)
    return dataclasses.replace(
        described,
        muscles=block.muscles,
        wrap_surfaces=block.wrap_surfaces,
        home={**described.home, **block.home},
    )


_KINDS: dict[str, tuple[JointKind, int]] = {
    "fixed": ("fixed", 0),
    "revolute": ("revolute", 1),
    "continuous": ("revolute", 1),
    "prismatic": ("prismatic", 1),
    "universal": ("universal", 2),
}
"""Joint types that can be had without the file, and their number of axes."""


def _from_joints(model: ModelPort, links: Collection[str], block: MuscleBlock) -> Robot:
    """Return a robot that has the coordinates of the joints, in the order of the file.

    Axes and frames are placeholders: positions and velocities are read, not computed. A link that
    is no joint's child is free, as in a file.
    """
    name = "::".join(model.path)
    joints = []
    found = [info.name for info in model.joints()]
    for driven in block.motors:
        check_choice(driven, "joint of a <motor>", found)
    for info in model.joints():
        if info.kind not in _KINDS:
            raise DescriptionError(
                f"a {info.kind} joint of a model that Gazebo made from text, or that is nested",
                source=f"model '{name}'",
                element=f"joint '{info.name}'",
                expected="the plugin in a model of its own, included or spawned from a file",
            )
        kind, count = _KINDS[info.kind]
        axes = tuple(JointAxis(np.eye(3)[i]) for i in range(count))
        parent = info.parent if info.parent in links else WORLD
        motor = info.name in block.motors
        joints.append(Joint(info.name, kind, parent, info.child, axes=axes, motor=motor))
    children = {joint.child for joint in joints}
    for link in links:
        if link not in children:
            kind = "fixed" if model.static else "free"
            joints.append(Joint(f"{link}_{kind}", kind, WORLD, link))
    return Robot(
        model.path[-1],
        tuple(Link(link) for link in links),
        tuple(joints),
        muscles=block.muscles,
        wrap_surfaces=block.wrap_surfaces,
        home=block.home,
    )
