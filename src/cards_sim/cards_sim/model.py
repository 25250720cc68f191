"""MuJoCo models of worlds: compiled from the description, with what touches at home excluded."""

from __future__ import annotations

import hashlib
import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.mjcf.mesh_files import converted
from cards_core.formats.mjcf.writer import Integrator, merged_links, to_mjcf
from cards_core.robot.elements import WORLD, Link, PathElement, Wrap
from cards_core.robot.model import Robot
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_core.typing import Array

_log = logging.getLogger(__name__)


def build_model(
    world: World,
    *,
    timestep: float,
    integrator: Integrator = "Euler",
    ground: float | None = None,
    world_xml: str = "",
) -> mujoco.MjModel:
    """Return the MuJoCo model of a world, with link sensors and without what is only seen.

    See `to_mjcf` for the arguments.

    Links of one model whose collision shapes overlap in the home pose never collide with each
    other: shapes drawn generously around a joint would otherwise push the robot apart from the
    first step. Nor do links that are joined by a joint between models.

    Raises:
        DescriptionError: MuJoCo does not accept the world or the additional one.
    """
    robot = world.combined()
    grasps = possible_grasps(world)
    if mujoco.get_mju_user_warning() is None:
        # MuJoCo's own handler writes a file MUJOCO_LOG.TXT into the working directory
        mujoco.set_mju_user_warning(lambda text: _log.warning("MuJoCo: %s", text))

    def compiled(exclude: set[tuple[str, str]]) -> mujoco.MjModel:
        text = to_mjcf(
            robot,
            timestep=timestep,
            integrator=integrator,
            ground=ground,
            world_xml=world_xml,
            exclude=exclude | joined,
            joints=world.joints,
            grasps=grasps,
            link_sensors=True,
            visuals=False,
        )
        return accepted(text, robot)

    joined = {(j.parent, j.child) for j in world.joints if j.parent != WORLD}
    owner = {m.prefixed(link.name): m for m in world.models for link in m.robot.links}
    model = compiled(set())
    pairs = links_in_contact(model, robot)
    touching = {(a, b) for a, b in pairs if owner[a] is owner[b]}
    if touching:
        _log.info("links that touch at home do not collide: %s", sorted(touching))
        model = compiled(touching)
    return model


def accepted(text: str, robot: Robot) -> mujoco.MjModel:
    """Return the model of an MJCF text. Raises `DescriptionError` if MuJoCo refuses it.

    The text has the robot's meshes at their places; of ASCII STL files MuJoCo gets binary ones.
    """
    try:
        return mujoco.MjModel.from_xml_string(*_with_converted_meshes(text))
    except (OSError, ValueError) as error:
        raise DescriptionError(
            f"MuJoCo does not accept it: {' '.join(str(error).split())}",
            source=robot.source,
            element=f"robot '{robot.name}'",
        ) from error


def _with_converted_meshes(text: str) -> tuple[str, dict[str, bytes]]:
    """Return a text with other names for mesh files that MuJoCo does not read; their content."""
    root = ET.fromstring(text)
    files: dict[str, bytes] = {}
    for mesh in root.iter("mesh"):
        path = Path(mesh.get("file", ""))
        data = converted(path) if path.is_file() else None
        if data is not None:
            # MuJoCo looks for the last part of a path among these names
            name = f"{hashlib.sha256(data).hexdigest()}.stl"
            files[name] = data
            mesh.set("file", name)
    return (ET.tostring(root, encoding="unicode"), files) if files else (text, files)


def possible_grasps(world: World) -> list[tuple[str, str]]:
    """Return the pairs of links of which the first can grasp the second.

    Robots grasp objects: with every link that moves, each link that moves.
    """

    def links(models: Iterable[WorldModel]) -> list[str]:
        return [
            model.prefixed(link)
            for model in models
            for link in model.moving_links()
            if link not in merged_links(model.robot)
        ]

    return [(hand, thing) for hand in links(world.driven) for thing in links(world.objects)]


def links_in_contact(model: mujoco.MjModel, robot: Robot) -> set[tuple[str, str]]:
    """Return the pairs of links that overlap or touch in the home pose."""
    tree = robot.tree
    data = mujoco.MjData(model)
    data.qpos[: tree.nq] = tree.home
    mujoco.mj_fwdPosition(model, data)
    names = {link.name for link in robot.links}
    pairs = set()
    for geoms in data.contact.geom[: data.ncon]:
        first, second = (model.body(model.geom_bodyid[geom]).name for geom in geoms)
        if first in names and second in names:
            pairs.add((min(first, second), max(first, second)))
    return pairs


def at_centres_of_mass(robot: Robot, coms: Mapping[str, Array]) -> Robot:
    """Return the robot with its muscle paths, shapes and masses relative to centres of mass.

    MuJoCo takes external wrenches about the centre of mass of a body. Given link frames there,
    the muscle engine computes just these, and no wrench has to be shifted in every step.

    Args:
        robot: The description.
        coms: Centre of mass of every link in link coordinates, shape (3,), [m].
    """
    surface_link = {surface.name: surface.link for surface in robot.wrap_surfaces}

    def shift(link: str) -> Array:
        return np.zeros(3) if link == WORLD else coms[link]

    def moved(item: PathElement) -> PathElement:
        if not isinstance(item, Wrap):
            return replace(item, position=item.position - shift(item.link))
        if item.side is None:
            return item
        return replace(item, side=item.side - shift(surface_link[item.surface]))

    muscles = (replace(m, path=tuple(moved(item) for item in m.path)) for m in robot.muscles)
    surfaces = (
        replace(
            surface,
            pose=Pose(surface.pose.rotation, surface.pose.translation - shift(surface.link)),
        )
        for surface in robot.wrap_surfaces
    )
    links = (link_at(link, shift(link.name)) for link in robot.links)
    return replace(
        robot, links=tuple(links), muscles=tuple(muscles), wrap_surfaces=tuple(surfaces)
    )


def link_at(link: Link, origin: Array) -> Link:
    """Return a link whose mass and collision shapes are relative to a point of it.

    Args:
        link: The link.
        origin: The point, in link coordinates, shape (3,), [m].
    """
    shapes = (
        replace(c, pose=Pose(c.pose.rotation, c.pose.translation - origin))
        for c in link.collisions
    )
    inertia = replace(link.inertia, com=link.inertia.com - origin)
    return replace(link, inertia=inertia, collisions=tuple(shapes))


def joint_of_coordinate(model: mujoco.MjModel, index: int) -> tuple[str, str]:
    """Return the names of the joint and the body that an entry of q belongs to."""
    joint = int(np.searchsorted(model.jnt_qposadr, index, side="right")) - 1
    return model.joint(joint).name, model.body(model.jnt_bodyid[joint]).name


def joint_of_velocity(model: mujoco.MjModel, index: int) -> tuple[str, str]:
    """Return the names of the joint and the body that an entry of qd belongs to."""
    joint = model.dof_jntid[index]
    return model.joint(joint).name, model.body(model.jnt_bodyid[joint]).name
