"""A world as data: models at their places, gravity, joints between models.

Every model is a `Robot`: a tree of links, with muscles or without, so a box on a table is a robot
of one free link. A model with muscles or motors is *driven*: controllers command it. Its robot is
described in its own axes, those of its own file, because that is the description its controllers
have; `WorldModel.pose` places it. All other models are described in the axes of the world.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from cards_core.checks import by_name
from cards_core.errors import DescriptionError
from cards_core.robot.elements import (
    WORLD,
    Collision,
    Joint,
    Link,
    Muscle,
    PathElement,
    Wrap,
    path_links,
)
from cards_core.robot.model import WORLD_NODE, Robot
from cards_core.spatial import Pose
from cards_core.typing import Vector3

SEPARATOR = "::"
"""Between the name of a model and the name of what is in it."""


@dataclass(frozen=True, eq=False)
class WorldModel:
    """A model in a world.

    Attributes:
        name: Its name in the world; empty for a robot alone, whose links keep their own names.
        robot: Its links, joints and muscles, with the names they have within the model.
        pose: The axes that `robot` is described in, in the world.
    """

    name: str
    robot: Robot
    pose: Pose = field(default_factory=Pose)

    @property
    def driven(self) -> bool:
        """Whether it has muscles or motors that can be commanded."""
        return bool(self.robot.muscles) or any(joint.motor for joint in self.robot.joints)

    @property
    def static(self) -> bool:
        """Whether nothing of it moves."""
        return not self.robot.tree.nodes

    def prefixed(self, name: str) -> str:
        """Return the name in the world of a link, joint, muscle or frame of this model."""
        return f"{self.name}{SEPARATOR}{name}" if self.name else name

    def moving_links(self) -> tuple[str, ...]:
        """Return the names within the model of the links that can move."""
        nodes = self.robot.tree.link_node
        return tuple(link.name for link in self.robot.links if nodes[link.name][0] != WORLD_NODE)


ModelJointKind: TypeAlias = Literal["fixed", "ball", "revolute"]


@dataclass(frozen=True, eq=False)
class ModelJoint:
    """A joint between links of two models, or of a driven model and the world.

    It is no joint of a tree: it closes a loop, and a simulator holds it by constraint forces.

    Attributes:
        name: Unique among the joints of the world.
        kind: ``fixed`` (no relative motion), ``ball`` (the origins of the joint's frames
            coincide) or ``revolute`` (their axes coincide).
        parent, child: Names of the links in the world, ``model::link``; the parent may be
            ``world``.
        parent_to_joint, child_to_joint: The joint's frame in the frames of both links, at the
            start.
        axis: Of a revolute joint, unit vector in the joint's frame, shape (3,).
        line: Of the file that declares it.
    """

    name: str
    kind: ModelJointKind
    parent: str
    child: str
    parent_to_joint: Pose
    child_to_joint: Pose
    axis: Vector3 | None = None
    line: int | None = None


@dataclass(frozen=True, eq=False)
class World:
    """Models at their places.

    Attributes:
        name: Its name.
        models: In the order of the file.
        joints: Between models.
        gravity: In the world's axes, shape (3,), [m/s^2].
        source: File it was read from.
    """

    name: str
    models: tuple[WorldModel, ...] = ()
    joints: tuple[ModelJoint, ...] = ()
    gravity: Vector3 = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    source: str | None = None

    @property
    def driven(self) -> tuple[WorldModel, ...]:
        """The models that controllers command."""
        return tuple(model for model in self.models if model.driven)

    @property
    def objects(self) -> tuple[WorldModel, ...]:
        """All other models."""
        return tuple(model for model in self.models if not model.driven)

    def model(self, name: str) -> WorldModel:
        """Return a model by name. Raises `UnknownNameError`."""
        return by_name(self.models, name, "model")

    def surroundings(self, name: str) -> tuple[Collision, ...]:
        """Return the collision shapes of all models but one that do not move, in the world."""
        found = []
        for model in self.models:
            if model.name == name:
                continue
            for link in model.robot.links:
                node, place = model.robot.tree.link_node[link.name]
                if node == WORLD_NODE:
                    at = model.pose @ place
                    found += [replace(c, pose=at @ c.pose) for c in link.collisions]
        return tuple(found)

    def neighbours(self, name: str) -> tuple[tuple[WorldModel, Link], ...]:
        """Return the links with shapes of all models but one that move, with their models."""
        return tuple(
            (model, link)
            for model in self.models
            if model.name != name
            for link in model.robot.links
            if link.collisions and model.robot.tree.link_node[link.name][0] != WORLD_NODE
        )

    def with_robot(self, robot: Robot, name: str | None = None, pose: Pose | None = None) -> World:
        """Return the world with one more model, after those it has.

        Args:
            robot: The robot.
            name: Name in the world; the robot's own if None.
            pose: The robot's own axes in the world; where its own file puts it if None.

        Raises:
            DescriptionError: The name is taken.
        """
        added = WorldModel(name or robot.name, robot, pose or Pose())
        if any(model.name == added.name for model in self.models):
            raise DescriptionError(
                f"already holds a model '{added.name}'",
                source=self.source,
                element=f"world '{self.name}'",
                expected="another name for the robot",
            )
        return replace(self, models=(*self.models, added))

    def combined(self) -> Robot:
        """Return all models as one tree, named ``model::link``, without the `joints` between them.

        The coordinates of each model are contiguous in q and qd, in the order of `models`.

        Raises:
            DescriptionError: A muscle of a robot that is not at the origin is attached to the
                world.
        """
        if len(self.models) == 1 and not self.models[0].name:
            return self.models[0].robot  # alone: its tree is made once
        for model in self.models:
            if not model.pose.is_identity:
                _refuse_world_points(model)
        parts = [_in_world(model) for model in self.models]
        return Robot(
            name=self.name,
            links=tuple(link for part in parts for link in part.links),
            joints=tuple(joint for part in parts for joint in part.joints),
            muscles=tuple(muscle for part in parts for muscle in part.muscles),
            gravity=self.gravity,
            home={name: values for part in parts for name, values in part.home.items()},
            source=self.source,
            wrap_surfaces=tuple(item for part in parts for item in part.wrap_surfaces),
        )


def empty_world_with(robot: Robot) -> World:
    """Return the world of a robot alone: with its gravity, and its links by their own names."""
    return World(robot.name, (WorldModel("", robot),), gravity=robot.gravity, source=robot.source)


def _refuse_world_points(model: WorldModel) -> None:
    robot = model.robot
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    for muscle in robot.muscles:
        if WORLD in path_links(muscle.path, surfaces):
            raise robot.error(
                muscle,
                f"is attached to the world, but '{model.name}' does not stand at its origin",
                "a link of the robot's base instead of 'world'",
            )


def _in_world(model: WorldModel) -> Robot:
    """Return a model with the names and the place that it has in the world."""
    robot, moved = model.robot, not model.pose.is_identity

    def link_name(name: str) -> str:
        return name if name == WORLD else model.prefixed(name)

    def joint(item: Joint) -> Joint:
        at_root = moved and item.parent == WORLD
        return replace(
            item,
            name=model.prefixed(item.name),
            parent=link_name(item.parent),
            child=link_name(item.child),
            parent_to_joint=model.pose @ item.parent_to_joint if at_root else item.parent_to_joint,
        )

    def element(item: PathElement) -> PathElement:
        if isinstance(item, Wrap):
            return replace(item, surface=model.prefixed(item.surface))
        return replace(item, link=link_name(item.link))

    def muscle(item: Muscle) -> Muscle:
        path: Iterable[PathElement] = map(element, item.path)
        return replace(item, name=model.prefixed(item.name), path=tuple(path))

    return replace(
        robot,
        links=tuple(replace(item, name=model.prefixed(item.name)) for item in robot.links),
        joints=tuple(map(joint, robot.joints)),
        muscles=tuple(map(muscle, robot.muscles)),
        frames=(),
        operational_frame=None,
        home={model.prefixed(name): values for name, values in robot.home.items()},
        wrap_surfaces=tuple(
            replace(item, name=model.prefixed(item.name), link=link_name(item.link))
            for item in robot.wrap_surfaces
        ),
    )
