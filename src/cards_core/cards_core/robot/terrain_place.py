"""A robot on a terrain: how high the ground may be, and the two as a world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cards_core.robot.elements import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import WORLD_NODE, Robot
from cards_core.robot.terrain import NAME, Terrain, height_function, terrain_model
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_core.typing import Array

GROUND = "ground"
"""Name of the model of a world that a terrain replaces."""

_SPACING = 0.01  # [m], largest distance of the points of a shape that are looked at


def on_terrain(terrain: Terrain, robot: Robot, world: World | None = None) -> World:
    """Return a world with a terrain, to which the robot is to be added.

    Args:
        terrain: The ground.
        robot: Stands on it; see `level_under`. Its gravity is the world's if there is none.
        world: What else there is; its fixed model `GROUND` is left out.

    Raises:
        CardsError: A file of the terrain cannot be used.
    """
    if world is None:
        world = World(NAME, gravity=robot.gravity)
    kept = tuple(m for m in world.models if not (m.name == GROUND and m.static))
    ground = WorldModel(NAME, terrain_model(terrain, level_under(terrain, robot)))
    return replace(world, models=(*kept, ground))


def level_under(terrain: Terrain, robot: Robot) -> float:
    """Return the z of the terrain's height zero, [m].

    It is the terrain's own ``level``; without that, zero, or as far below as is needed for no
    shape of a moving link to be in the ground at home.

    Raises:
        CardsError: A file of the terrain cannot be used.
    """
    if terrain.level is not None:
        return terrain.level
    points, radii = _surface_points(robot)
    if not len(points):
        return 0.0
    height = height_function(terrain)
    room = np.full(len(points), np.inf)
    # the lowest point of a ball, and its sides, which a slope meets first
    for angle in np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False):
        for share in (0.0, 0.5, 0.87):
            away = share * radii
            x = points[:, 0] + away * np.cos(angle)
            y = points[:, 1] + away * np.sin(angle)
            below = points[:, 2] - radii * np.sqrt(1.0 - share**2)
            room = np.fmin(room, below - height(x, y))
    return float(min(0.0, np.fmin.reduce(room, initial=0.0)))


def _surface_points(robot: Robot) -> tuple[Array, Array]:
    """Return balls that fill the shapes of moving links at home: centres (k, 3), radii (k,)."""
    tree = robot.tree
    motion = forward_kinematics(tree, tree.home, np.zeros(tree.nv))
    points, radii = [np.zeros((0, 3))], [np.zeros(0)]
    for link in robot.links:
        node, at_node = tree.link_node[link.name]
        if node == WORLD_NODE:
            continue
        place = Pose(motion.rotation[node], motion.position[node]) @ at_node
        for collision in link.collisions:
            centres, radius = _balls(collision.geometry)
            points.append((place @ collision.pose).apply(centres))
            radii.append(np.full(len(centres), radius))
    return np.concatenate(points), np.concatenate(radii)


def _balls(shape: Geometry) -> tuple[Array, float]:
    """Return balls along a shape, in its frame; none for what has no thickness."""
    match shape:
        case Sphere(radius):
            return np.zeros((1, 3)), radius
        case Cylinder(radius, length) | Capsule(radius, length):
            z = np.linspace(-0.5 * length, 0.5 * length, 2 + int(length / _SPACING))
            return np.stack([0.0 * z, 0.0 * z, z], axis=-1), radius
        case Box(size):
            half = 0.5 * np.asarray(size)
            axes = [np.linspace(-h, h, 2 + min(20, int(2.0 * h / _SPACING))) for h in half]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
            return grid, 0.0
        case Ellipsoid(radii):
            return np.zeros((1, 3)), float(np.max(radii))
        case _:
            return np.zeros((0, 3)), 0.0
