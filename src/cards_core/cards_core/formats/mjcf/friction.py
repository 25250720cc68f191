"""The friction of two shapes in contact: the product of their coefficients, mu = mu1 mu2.

That is the rule of Bullet, and so of NASA's tensegrity toolkit. MuJoCo takes the larger of both
geoms, or that of the geom with the higher priority, or what a pair of geoms says:

- Geoms get mu1^2: two alike make mu1 mu2.
- Where all shapes that move are alike, those that do not move get the product and priority.
- Else pairs of unlike shapes are written as pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cards_core.formats.sdf.elements import numbers
from cards_core.robot.elements import Collision, Link
from cards_core.robot.model import WORLD_NODE, Robot

GROUND_FRICTION = 1.0
"""mu of the plane that a simulator adds as ground."""

GROUND = "ground"
"""Name of its geom."""

_FURTHER = (0.005, 0.0001)
"""Torsional and rolling friction as MuJoCo has them by default, [m]."""


class FrictionRule:
    """What the geoms of a robot say of friction.

    Args:
        robot: The robot, or a world as one.
        ground: There is a ground plane.
    """

    def __init__(self, robot: Robot, *, ground: bool) -> None:
        nodes = robot.tree.link_node
        self._node = {link.name: nodes[link.name][0] for link in robot.links}
        moving = {
            collision.friction
            for link in robot.links
            if self._node[link.name] != WORLD_NODE
            for collision in link.collisions
        }
        self._alike = moving.pop() if len(moving) == 1 else None
        self._several = len(moving) > 0
        self._ground = ground

    def of(self, link: Link, collision: Collision, *, moving: bool) -> dict[str, str]:
        """Return the attributes of a geom.

        Args:
            link: The link.
            collision: One of its collisions.
            moving: Whether the link moves; else it may get the product of the coefficients and
                priority.

        Returns:
            ``friction``, and ``priority`` or ``name`` where the rule needs them.
        """
        attributes = {} if moving else self._fixed(collision.friction)
        if not attributes:
            attributes = {"friction": numbers(collision.friction**2, *_FURTHER)}
        if self._several:
            attributes["name"] = _name(link, collision)
        return attributes

    def of_ground(self) -> dict[str, str]:
        """Return the attributes of the ground plane."""
        return self._fixed(GROUND_FRICTION)

    def _fixed(self, friction: float) -> dict[str, str]:
        if self._alike is None or self._alike == friction:
            return {}
        return {"friction": numbers(friction * self._alike, *_FURTHER), "priority": "1"}

    def pairs(
        self, robot: Robot, exclude: Collection[tuple[str, str]]
    ) -> Iterator[dict[str, str]]:
        """Yield the attributes of the pairs whose friction their geoms cannot say.

        Args:
            robot: As given.
            exclude: Pairs of links, each in alphabetical order, that do not collide.
        """
        if not self._several:
            return
        # as MuJoCo does by itself: no contacts of what a joint joins
        joined = {
            frozenset((self._node[joint.parent], self._node[joint.child]))
            for joint in robot.joints
            if joint.parent in self._node
        }
        shapes: list[tuple[str | None, int, float, str]] = [
            (link.name, self._node[link.name], item.friction, _name(link, item))
            for link in robot.links
            for item in link.collisions
        ]
        if self._ground:
            shapes.append((None, WORLD_NODE, GROUND_FRICTION, GROUND))
        for i, (link, node, mu, name) in enumerate(shapes):
            for other_link, other_node, other_mu, other_name in shapes[:i]:
                if mu == other_mu or node == other_node:
                    continue
                nodes = {node, other_node}
                if WORLD_NODE not in nodes and nodes in joined:
                    continue
                if (
                    link is not None
                    and other_link is not None
                    and (min(link, other_link), max(link, other_link)) in exclude
                ):
                    continue
                product = mu * other_mu
                yield {
                    "geom1": other_name,
                    "geom2": name,
                    "friction": numbers(product, product, _FURTHER[0], _FURTHER[1], _FURTHER[1]),
                }


def _name(link: Link, collision: Collision) -> str:
    return f"{link.name}/{collision.name}"
