"""Finds the robot of rods that belongs to a model of the simulator.

Rigid bodies come from the model's file, rods from the YAML file that its ``<plugin>`` names;
gravity and the place of the robot come from the world. Inside, all is in the axes of the model's
file; `HostedRods.base` leads to the world.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats.locate import ROD_MODULE
from cards_core.formats.sdf.values import text_of
from cards_core.formats.xml_lines import XmlElement, parse_xml
from cards_core.robot.elements import WORLD
from cards_core.robot.model import Robot
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.typing import Array
from cards_rod_plugin.ports import RodModelPort
from cards_ros.namespaces import namespace_of


@dataclass(frozen=True, eq=False)
class HostedRods:
    """A robot of rods in the simulator.

    Attributes:
        robot: The robot; its gravity is that of the world, in the axes of the model.
        base: Pose of the model's frame in the world, shape (4, 4).
        gravity: Of the world, in its axes, shape (3,), [m/s^2]: what acts on free links.
        namespace: ROS namespace of its node.
        notes: What the user should know.
    """

    robot: RodRobot
    base: Array
    gravity: Array
    namespace: str
    notes: tuple[str, ...] = ()


def host_rods(model: RodModelPort, block_text: str) -> HostedRods:
    """Find the robot that a plugin belongs to.

    Args:
        model: The model that holds the plugin.
        block_text: The plugin's element.

    Raises:
        CardsError: The model, its file or its rods are wrong; the message says where.
    """
    place = f"model '{'::'.join(model.path)}'"
    if model.file is None or len(model.path) > 1:
        raise DescriptionError(
            "a robot of rods that Gazebo made from text, or that is nested: nothing tells where "
            "its rods are described",
            source=place,
            expected="a model of its own, included or spawned from its file",
        )
    if model.static:
        raise DescriptionError(
            "is static, so its plate cannot move", source=place, expected="no <static>"
        )
    known = rod_models_in(model.file)
    own = model.path[0] if model.path[0] in known else known[0] if len(known) == 1 else None
    if own is None:
        raise UnknownNameError("model of rods in " + str(model.file), model.path[0], known)
    robot = read_rod_robot(model.file, model=own)
    _check_rods_file(robot, block_text, place)
    if robot.description is None:
        raise CardsError(f"{robot.name} has no rigid bodies")
    links = model.link_names()
    for link in robot.description.links:
        check_choice(link.name, "link in the simulator", links)
    base = _base(model, robot.description, place)
    gravity, notes = _gravity(model, robot, base)
    inner = base[:3, :3].T @ gravity
    if not notes:
        flat = (1.0, 1.0, 0.0) if robot.planar else (1.0, 1.0, 1.0)
        robot = dataclasses.replace(robot, gravity=inner * flat)
    robot = robot.turned_loads(base[:3, :3].T)
    return HostedRods(robot, base, gravity, namespace_of(model.path, known), notes)


def rod_models_in(file: Path) -> list[str]:
    """Return the names of the models of rods in an SDF file. Raises `DescriptionError`."""

    def has_rods(model: XmlElement) -> bool:
        plugins = model.children("plugin")
        names = (name for plugin in plugins for name in plugin.children("module_name"))
        return any(text_of(name) == ROD_MODULE for name in names)

    root = parse_xml(file)
    found = [m for top in (root, *root.children("world")) for m in top.children("model")]
    return [model.get("name", "") for model in found if has_rods(model)]


def _check_rods_file(robot: RodRobot, block_text: str, place: str) -> None:
    """Raise `DescriptionError` if the plugin that was loaded names other rods than the file."""
    if not block_text.strip():
        return
    block = parse_xml(block_text, name=f"<plugin> of {place}")
    names = [text_of(element) for element in block.children("rods")]
    name = Path(robot.rods_source or "").name
    if names and Path(names[0]).name != name:
        raise DescriptionError(
            f"the plugin names the rods '{names[0]}'",
            source=place,
            element="<rods>",
            expected=f"'{name}', as in the model's file",
        )


def _base(model: RodModelPort, description: Robot, place: str) -> Array:
    """Return the pose of the model in the world, from that of a link that cannot move."""
    joints = {joint.child: joint for joint in description.joints}
    for link in description.links:
        pose, name = np.eye(4), link.name
        while name != WORLD and (joint := joints.get(name)) is not None and joint.kind == "fixed":
            pose = joint.parent_to_joint.matrix @ joint.joint_to_child.matrix @ pose
            name = joint.parent
        if name == WORLD:
            port, world = model.link(link.name, moving=False), np.eye(4)
            if port is None or not port.read_pose(world):
                raise CardsError(f"{place}: the pose of link '{link.name}' is not known")
            return np.asarray(world @ np.linalg.inv(pose))
    raise DescriptionError(
        "stands on nothing: none of its links is fixed to the world",
        source=place,
        expected="a joint of type 'fixed' from 'world' to the base",
    )


def _gravity(model: RodModelPort, robot: RodRobot, base: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the gravity of the world, and a note if the rods' file has another of its own."""
    assert robot.description is not None
    read = np.array(robot.description.gravity)
    if robot.planar:
        read = read * (1.0, 1.0, 0.0)
    found = model.gravity()
    world = base[:3, :3] @ robot.description.gravity if found is None else np.array(found)
    if np.array_equal(read, robot.gravity):
        return world, ()
    return world, (
        f"{robot.rods_source} gives the rods a gravity of {robot.gravity.tolist()} m/s^2, "
        f"whatever the world has ({world.tolist()})",
    )
