"""The geometry to draw of a world around a robot: objects, and other robots as rigid bodies.

Everything is in the axes of the robot that is drawn, as all that its controllers know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.checks import check_choice
from cards_core.robot.elements import Plane
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_core.typing import Array, Backend
from cards_ros.namespaces import namespaces_in
from cards_viz.muscles.scene import Scene, Shape


@dataclass(frozen=True, eq=False)
class OtherRobot:
    """Another robot of the world.

    Attributes:
        namespace: Of its topics.
        scene: Its geometry.
        place: From its axes to those of the robot that is drawn, shape (4, 4).
        bodies: Names of its links in the world, in the order of its links.
    """

    namespace: str
    scene: Scene
    place: Array
    bodies: tuple[str, ...]

    def poses(self, q: Array) -> dict[str, Array]:
        """Return the poses of its links in the axes of the robot that is drawn, at q."""
        return dict(zip(self.bodies, self.place @ self.scene.link_poses(q), strict=True))


class WorldScene:
    """Geometry of a world around one robot.

    Horizontal planes of models that do not move are the ground, which the page draws by itself.

    Args:
        world: The world.
        namespace: Of the robot that is drawn, if it is one of the world's; empty for a robot that
            is put into it.
        backend: As of `Scene`, for the other robots.

    Attributes:
        namespace: That of the robot, if it is one of the world's own.
        model: Name of that robot in the world; empty without one.
        bodies: Names of what moves, ``model::link``.
        start: Their poses at the start, by name, shape (4, 4).
        fixed: Shapes that do not move.
        moving: Shapes of ``bodies``; `Shape.link` is the index there.
        robots: The other robots.
        ground: Height of the ground, [m]; None without one.
        outline: Points that show the extent of all shapes at the start, shape (k, 3), [m].

    Raises:
        UnknownNameError: The world has robots, and none with this namespace.
        DescriptionError: Robots of the world would share their topics.
    """

    def __init__(self, world: World, namespace: str = "", backend: Backend = "compiled") -> None:
        spaces = namespaces_in(world)
        self._own: WorldModel | None = None
        if spaces:
            names = {space: name for name, space in spaces.items()}
            check_choice(namespace, "namespace of a robot", names)
            self._own = world.model(names[namespace])
        self.model = "" if self._own is None else self._own.name
        self.namespace = "" if self._own is None else namespace
        self.world_to_robot = (Pose() if self._own is None else self._own.pose).inverse().matrix
        self.bodies: list[str] = []
        self.start: dict[str, Array] = {}
        self.robots: list[OtherRobot] = []
        self.ground: float | None = None
        self._fixed: list[Shape] = []
        self._moving: list[Shape] = []
        self._points: list[Array] = [np.zeros((0, 3))]
        for model in world.models:
            if model is not self._own:
                scene = Scene(model.robot, backend=backend if model.driven else "numeric")
                self._add(model, scene)
                if model.driven:
                    bodies = tuple(model.prefixed(link.name) for link in model.robot.links)
                    place = self.world_to_robot @ model.pose.matrix
                    self.robots.append(OtherRobot(spaces[model.name], scene, place, bodies))
        self.fixed, self.moving = tuple(self._fixed), tuple(self._moving)
        self.outline = np.concatenate(self._points)

    def _add(self, model: WorldModel, scene: Scene) -> None:
        place = self.world_to_robot @ model.pose.matrix
        poses = place @ scene.link_poses(scene.tree.home)
        names = [link.name for link in model.robot.links]
        indices: dict[str, int] = {}
        for name in model.moving_links():
            indices[name] = len(self.bodies)
            self.bodies.append(model.prefixed(name))
            self.start[model.prefixed(name)] = poses[names.index(name)]
        for shape in scene.shapes:
            assert shape.link is not None
            link, pose = names[shape.link], poses[shape.link]
            label = model.prefixed(shape.name)
            if link in indices:
                self._moving.append(dataclasses.replace(shape, name=label, link=indices[link]))
            else:
                at = pose @ shape.pose.matrix
                if isinstance(shape.geometry, Plane):
                    normal = at[:3, :3] @ shape.geometry.normal
                    if np.allclose(normal, (0.0, 0.0, 1.0), atol=1e-6):
                        height = float(at[2, 3])
                        self.ground = height if self.ground is None else min(self.ground, height)
                        continue
                fixed = Pose(at[:3, :3], at[:3, 3])
                self._fixed.append(dataclasses.replace(shape, name=label, link=None, pose=fixed))
            vertices = shape.pose.apply(shape.vertices)
            self._points.append(vertices @ pose[:3, :3].T + pose[:3, 3])

    def in_robot_axes(self, pose: Pose) -> Array:
        """Return a pose in the world in the axes of the robot, shape (4, 4)."""
        moved: Array = self.world_to_robot @ pose.matrix
        return moved

    def poses(self, known: Mapping[str, Array]) -> list[Array | None]:
        """Return the poses of `bodies`, None where it is not known.

        Args:
            known: By name, shape (4, 4).
        """
        return [known.get(name) for name in self.bodies]
