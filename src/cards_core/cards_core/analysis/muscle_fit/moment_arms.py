"""L and lengths at fixed poses while via points and wrap radii change, with derivatives.

Per straight piece from A to B with u = (B - A)/|B - A|, and the velocity of each end per unit
velocity of coordinate j, ``J_j = v_j + w_j x (B - o)``,

    L_j       = u . (J_Bj - J_Aj)
    dL_j/dB   = (E - u u')(J_Bj - J_Aj)/|B - A| + u x w_Bj,   turned into the axes of B's link

and the same with the opposite sign for A. The length l changes by u of B, turned into the axes of
its link, and -u of A. That is exact, and all there is for straight muscles.
Over a surface u is that of the pieces beside it, because the shortest path is stationary: its
tangent points count as fixed to their links, and L is exact again. They move with the via points
though, so that the derivatives of such muscles, and those with respect to radii, are central
differences of L and l.

Numbers of a muscle are its row of L and, as the last column, l.

Poses are fixed, so that forward kinematics is computed once. Via points next to a surface stand on
links of their own here, at the origin: native code of geodesic paths has the positions of points
on links as constants, and would be compiled again for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cards_core.analysis.muscle_fit.variables import with_radius
from cards_core.paths.layout import ContactSpec, Indices, PathLayout, link_layout
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Link, Muscle, ViaPoint
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import Robot
from cards_core.typing import Array

POINT_STEP = 1e-5
"""Step of central differences, [m]: their error is that of a third derivative times its square,
1e-10 relative to a radius of a centimetre, and rounding is 1e-11."""


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Motion of all links at n poses, in world axes; the world itself is the last of k + 1 links.

    Attributes:
        rotation: Link to world, shape (n, k + 1, 3, 3).
        position: Of the origin, shape (n, k + 1, 3), [m].
        linear: Velocity of the origin per unit qd, shape (n, k + 1, 3, nv).
        angular: Angular velocity per unit qd, shape (n, k + 1, 3, nv).
    """

    rotation: Array
    position: Array
    linear: Array
    angular: Array


def link_motion(robot: Robot, q: Array) -> LinkMotion:
    """Return the motion of all links at poses q, shape (n, nq)."""
    tree = robot.tree
    n, k = len(q), len(robot.links)
    out = LinkMotion(
        np.tile(np.eye(3), (n, k + 1, 1, 1)),
        np.zeros((n, k + 1, 3)),
        np.zeros((n, k + 1, 3, tree.nv)),
        np.zeros((n, k + 1, 3, tree.nv)),
    )
    rest = np.zeros(tree.nv)
    for i, row in enumerate(q):
        motion = forward_kinematics(tree, row, rest)
        for j, link in enumerate(robot.links):
            node, pose = tree.link_node[link.name]
            out.rotation[i, j] = motion.rotation[node] @ pose.rotation
            out.position[i, j] = motion.point(node, pose.translation)
            out.linear[i, j] = motion.point_jacobian(node, pose.translation)
            out.angular[i, j] = motion.angular_jacobian[node]
    return out


def between_links(motion: LinkMotion, a: int, b: int) -> tuple[Array, Array]:
    """Return rotations and translations from link a to link b, shapes (n, 3, 3) and (n, 3).

    Args:
        motion: Of the links.
        a: Index of a link; the last one is the world.
        b: Index of the other one.
    """
    turn = np.einsum("nji,njk->nik", motion.rotation[:, b], motion.rotation[:, a])
    away = motion.position[:, a] - motion.position[:, b]
    return turn, np.einsum("nji,nj->ni", motion.rotation[:, b], away)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Straight pieces of one muscle at n poses, between consecutive path points of k points.

    Attributes:
        link: Of every path point, shape (k,).
        points: In the world, shape (n, k, 3), [m].
        start: First point of every piece, shape (s,).
        between: Length that is not in straight pieces, shape (n,), [m].
    """

    link: Indices
    points: Array
    start: Indices
    between: Array


def piece_row(motion: LinkMotion, pieces: Pieces) -> Array:
    """Return the row of L of one muscle and its length, shape (n, nv + 1)."""
    velocities, direction, length = _ends(motion, pieces)
    start = pieces.start
    relative = velocities[:, start + 1] - velocities[:, start]
    arms = np.einsum("nsi,nsij->nj", direction, relative)
    return np.column_stack([arms, length.sum(axis=1) + pieces.between])


def piece_gradient(motion: LinkMotion, pieces: Pieces) -> Array:
    """Return the derivative of `piece_row` with respect to its points, shape (n, nv + 1, k, 3).

    Points are in coordinates of their links; the last index is that of their coordinates.
    """
    velocities, direction, length = _ends(motion, pieces)
    start, link = pieces.start, pieces.link
    relative = velocities[:, start + 1] - velocities[:, start]
    along = np.einsum("nsi,nsij->nsj", direction, relative)
    across = relative - direction[..., None] * along[:, :, None, :]
    across /= np.maximum(length, 1e-12)[..., None, None]
    gradient = np.zeros((*velocities.shape[:2], 3, velocities.shape[3] + 1))
    angular = motion.angular[:, link]
    for s, (first, u) in enumerate(zip(start, np.moveaxis(direction, 1, 0), strict=True)):
        for point, sign in ((first, -1.0), (first + 1, 1.0)):
            turning = np.cross(u[:, :, None], angular[:, point], axis=1)
            gradient[:, point, :, :-1] += sign * (across[:, s] + turning)
            gradient[:, point, :, -1] += sign * u
    return np.asarray(np.einsum("nkxi,nkxj->njki", motion.rotation[:, link], gradient))


def _ends(motion: LinkMotion, pieces: Pieces) -> tuple[Array, Array, Array]:
    """Return velocities of points (n, k, 3, nv), directions (n, s, 3) and lengths (n, s)."""
    link, points, start = pieces.link, pieces.points, pieces.start
    arm = points - motion.position[:, link]
    turning = np.cross(motion.angular[:, link], arm[..., None], axis=2)
    delta = points[:, start + 1] - points[:, start]
    length = np.linalg.norm(delta, axis=2)
    direction = delta / np.maximum(length, 1e-12)[..., None]
    return motion.linear[:, link] + turning, direction, length


class MusclePath:
    """One muscle at the poses of a `LinkMotion`.

    Args:
        robot: Has the muscle.
        muscle: The muscle.
        motion: Of the robot's links.

    Attributes:
        wraps: Whether it has wraps or a pulley: else all is in closed form.
    """

    def __init__(self, robot: Robot, muscle: Muscle, motion: LinkMotion) -> None:
        self._motion = motion
        index = {link.name: i for i, link in enumerate(robot.links)}
        self._world = len(robot.links)
        self._via = [i for i, item in enumerate(muscle.path) if isinstance(item, ViaPoint)]
        self._links = np.array([index.get(p.link, self._world) for p in muscle.via_points])
        self.wraps = len(self._via) < len(muscle.path)
        self._robot, self._muscle = robot, muscle
        self._layout: PathLayout | None = None
        if self.wraps:
            self._place_on_own_links()

    def _place_on_own_links(self) -> None:
        taken = {link.name for link in self._robot.links}
        path, links = list(self._muscle.path), list(self._robot.links)
        for k, i in enumerate(self._via):
            name = f"via_point_{k}"
            while name in taken:
                name += "_"
            links.append(Link(name))
            item = path[i]
            assert isinstance(item, ViaPoint)
            path[i] = replace(item, link=name, position=np.zeros(3))
        muscle = replace(self._muscle, path=tuple(path))
        self._alone = replace(self._robot, links=tuple(links), muscles=(muscle,))
        self._layout = link_layout(self._alone)
        self._geodesics = None
        if len(self._layout.geodesics):
            self._geodesics = GeodesicPaths(self._alone)
        # the link whose velocity a path point has: that of the via point, or of the surface
        own = np.concatenate([np.arange(self._world), self._links, [self._world]])
        self._carrier = own[self._layout.point_frame]

    def row(self, points: Array, radii: dict[str, float] | None = None) -> Array:
        """Return its row of L and its length, shape (n, nv + 1).

        Args:
            points: Its via points in coordinates of their links, shape (k, 3), [m].
            radii: Of wrap surfaces, by name, where they differ from the description, [m].
        """
        if not self.wraps:
            return piece_row(self._motion, self._straight(points))
        return piece_row(self._motion, self._wrapped(points, radii or {}))

    def gradient(
        self, points: Array, radii: dict[str, float] | None = None, *, wanted: list[int]
    ) -> Array:
        """Return the derivative of its row, shape (n, nv + 1, number of points, 3).

        Args:
            points: See `row`.
            radii: See `row`.
            wanted: Indices of the via points that count.
        """
        if not self.wraps:
            return piece_gradient(self._motion, self._straight(points))[:, :, wanted]
        n, nv = len(self._motion.position), self._motion.linear.shape[3]
        out = np.zeros((n, nv + 1, len(wanted), 3))
        for column, k in enumerate(wanted):
            for axis in range(3):
                step = np.zeros_like(points)
                step[k, axis] = POINT_STEP
                change = self.row(points + step, radii) - self.row(points - step, radii)
                out[:, :, column, axis] = change / (2.0 * POINT_STEP)
        return out

    def radius_gradient(self, points: Array, radii: dict[str, float], surface: str) -> Array:
        """Return the derivative of its row with respect to a radius, shape (n, nv + 1).

        Args:
            points: See `row`.
            radii: All radii that are fitted.
            surface: Name of the surface.
        """
        more = {**radii, surface: radii[surface] + POINT_STEP}
        less = {**radii, surface: radii[surface] - POINT_STEP}
        return np.asarray((self.row(points, more) - self.row(points, less)) / (2.0 * POINT_STEP))

    def _straight(self, points: Array) -> Pieces:
        motion = self._motion
        turned = np.einsum("nkij,kj->nki", motion.rotation[:, self._links], points)
        world = turned + motion.position[:, self._links]
        return Pieces(self._links, world, np.arange(len(points) - 1), np.zeros(len(world)))

    def _wrapped(self, points: Array, radii: dict[str, float]) -> Pieces:
        layout, motion = self._layout, self._motion
        assert layout is not None
        if radii:
            layout = replace(layout, contacts=tuple(_resized(c, radii) for c in layout.contacts))
        paths = Paths(layout, self._geodesics)
        via = self._straight(points).points
        n, count = len(via), self._world + len(points)
        found, arcs = np.zeros((n, len(layout.point_frame), 3)), np.zeros(n)
        rotations = np.tile(np.eye(3), (count + 1, 1, 1))
        positions = np.zeros((count + 1, 3))
        poses = np.tile(np.eye(4), (count, 1, 1))
        for i in range(n):
            rotations[: self._world] = motion.rotation[i, :-1]
            positions[: self._world] = motion.position[i, :-1]
            positions[self._world : count] = via[i]
            rows = None
            if self._geodesics is not None:
                poses[:, :3, :3], poses[:, :3, 3] = rotations[:-1], positions[:-1]
                self._geodesics.reset()  # no warm start: a pose has one path, whatever was before
                rows = self._geodesics.solve(poses)
            paths.solve(rotations, positions, rows)
            found[i], arcs[i] = paths.points, paths.arcs.sum()
        return Pieces(self._carrier, found, layout.start, arcs)


def _resized(contact: ContactSpec, radii: dict[str, float]) -> ContactSpec:
    """Return a contact with the radius of its surface, where that is among those given."""
    surface = contact.surface
    if surface is None or surface.name not in radii:
        return contact
    return replace(contact, surface=with_radius(surface, radii[surface.name]))
