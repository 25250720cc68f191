"""Lengths and moment arms of single muscles at many poses at once, without compiled code.

An editor changes one muscle at a time, and the poses stay. So the motion of the joints is computed
once, and then, for each muscle that changed, with the straight pieces A -> B of its path, u the
unit vector along the piece, and for each velocity v the axis a through o in the world:

    L_v = sum over the pieces of (m_Bv - m_Av) s_v,   s_v = a . (A x u) + u . (o x a)  (turning)
                                                      s_v = a . u                     (sliding)

with m_Xv = 1 where v moves the body of X, else 0: the wrench of a force of 1 N along the piece,
times the twist of the joint [Siciliano2009]_. Tangent points count as fixed to their body, as in
`cards_core.muscles.engine`. Cables with ``contact`` count as straight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cards_core.paths.drawing import drawn_paths
from cards_core.paths.layout import PathLayout, layout_of
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Muscle
from cards_core.robot.model import WORLD_NODE, Node, Robot, Tree
from cards_core.spatial import Pose
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class MuscleRows:
    """A muscle at P poses.

    Attributes:
        lengths: shape (P,), [m]; NaN where no path is found.
        jacobian: Its row of L = dl/dq, shape (P, nv), [m/rad] or [1]; NaN likewise.
    """

    lengths: Array
    jacobian: Array


class PoseSet:
    """The motion of a robot's joints at P poses.

    Args:
        tree: Coordinates of the robot, k nodes.
        q: Poses, shape (P, nq).

    Attributes:
        q: As given.
        rotation: Node to world, the world last, shape (P, k + 1, 3, 3).
        position: Of the nodes' origins, shape (P, k + 1, 3), [m].
    """

    def __init__(self, tree: Tree, q: Array) -> None:
        self.tree, self.q = tree, np.asarray(q, dtype=float)
        count, k, nv = len(self.q), len(tree.nodes), tree.nv
        self.rotation: Array = np.zeros((count, k + 1, 3, 3))
        self.position: Array = np.zeros((count, k + 1, 3))
        self.rotation[:, WORLD_NODE] = np.eye(3)
        self._axis = np.zeros((count, nv, 3))
        self._moment = np.zeros((count, nv, 3))  # o x a of axes that turn
        self._turns = np.zeros(nv, dtype=bool)
        self._moves = np.zeros((k + 1, nv))
        for i, node in enumerate(tree.nodes):
            self._add(i, node)

    def _add(self, i: int, item: Node) -> None:
        p, columns = item.parent, slice(item.v, item.v + item.nv)
        outer = self.rotation[:, p] @ item.placement.rotation
        origin = self.position[:, p] + self.rotation[:, p] @ item.placement.translation
        values = self.q[:, item.q : item.q + item.nq]
        if item.kind == "prismatic":
            axis = outer @ item.axis
            origin = origin + axis * values
            self.rotation[:, i] = outer
            self._axis[:, item.v] = axis
        elif item.kind == "revolute":
            axis = outer @ item.axis
            self.rotation[:, i] = outer @ _rotations(item.axis, values[:, 0])
            self._axis[:, item.v] = axis
        else:
            self.rotation[:, i] = outer @ _of_quaternions(values)
            self._axis[:, columns] = self.rotation[:, i].transpose(0, 2, 1)
        self.position[:, i] = origin
        if item.kind != "prismatic":
            self._turns[columns] = True
            self._moment[:, columns] = np.cross(origin[:, None], self._axis[:, columns])
        self._moves[i] = self._moves[p]
        self._moves[i, columns] = 1.0

    def __len__(self) -> int:
        return len(self.q)

    def link_poses(self, index: int) -> Array:
        """Return link-to-world matrices at one pose, shape (n, 4, 4), in the robot's order."""
        links = self.tree.robot.links
        out = np.tile(np.eye(4), (len(links), 1, 1))
        for row, link in zip(out, links, strict=True):
            node, pose = self.tree.link_node[link.name]
            rotation = self.rotation[index, node]
            row[:3, :3] = rotation @ pose.rotation
            row[:3, 3] = rotation @ pose.translation + self.position[index, node]
        return out

    def point_jacobian(self, frame: str) -> Array:
        """Return the Jacobian of the origin of a frame or link, shape (P, 3, nv)."""
        node, pose = self.tree.locate(frame)
        point = self.rotation[:, node] @ pose.translation + self.position[:, node]
        # a x (x - o) = a x x + o x a
        turning = np.cross(self._axis, point[:, None]) + self._moment
        columns = np.where(self._turns[:, None], turning, self._axis) * self._moves[node][:, None]
        return np.asarray(columns.transpose(0, 2, 1))

    def rows(self, robot: Robot, muscle: Muscle) -> MuscleRows:
        """Return length and Jacobian of a muscle at all poses.

        Args:
            robot: Has the wrap surfaces; its links and joints are those of the tree.
            muscle: The muscle, at least two points.

        Raises:
            DescriptionError: A path that cannot be.
        """
        path = MusclePath(self.tree, robot, muscle)
        layout = path.layout
        if not layout.contacts:
            points = path.straight(self)
            lengths = np.zeros(len(self))
        else:
            points = np.empty((len(self), len(layout.point_frame), 3))
            lengths = np.empty(len(self))
            for index in range(len(self)):
                found = path.solve(self, index)
                points[index], lengths[index] = found.points, found.arcs.sum()
                if path.lost:
                    points[index] = lengths[index] = np.nan
        a, b = layout.start, layout.start + 1
        along = points[:, b] - points[:, a]
        size = np.linalg.norm(along, axis=2)
        u = np.divide(
            along, size[..., None], out=np.zeros_like(along), where=size[..., None] != 0.0
        )
        arm = np.cross(points[:, a], u)
        turning = arm @ self._axis.transpose(0, 2, 1) + u @ self._moment.transpose(0, 2, 1)
        sliding = u @ self._axis.transpose(0, 2, 1)
        share = self._moves[layout.point_frame[b]] - self._moves[layout.point_frame[a]]
        both = np.where(self._turns, turning, sliding)
        return MuscleRows(lengths + size.sum(axis=1), np.einsum("psv,sv->pv", both, share))

    def drawn(self, robot: Robot, muscle: Muscle, index: int) -> Array:
        """Return the path of a muscle at one pose with arcs sampled, shape (k, 3), [m].

        Args:
            robot: As of `rows`.
            muscle: The muscle.
            index: Of the pose.
        """
        path = MusclePath(self.tree, robot, muscle)
        found = path.solve(self, index)
        frames = np.tile(np.eye(4), (self.rotation.shape[1], 1, 1))
        frames[:, :3, :3], frames[:, :3, 3] = self.rotation[index], self.position[index]
        (points,) = drawn_paths(found, frames)
        return points


class MusclePath:
    """The path of one muscle; frames are the nodes of a tree.

    Args:
        tree: Of the robot's joints.
        robot: Has the wrap surfaces.
        muscle: The muscle.

    Attributes:
        layout: Its tables.

    Raises:
        DescriptionError: A path that cannot be.
    """

    def __init__(self, tree: Tree, robot: Robot, muscle: Muscle) -> None:
        alone = replace(robot, muscles=(muscle,))
        count = len(tree.nodes)

        def place(link: str) -> tuple[int, Pose]:
            node, pose = tree.link_node[link]
            return (count if node == WORLD_NODE else node), pose

        self.layout: PathLayout = layout_of(alone, place, count)
        self._geodesics = None
        if len(self.layout.geodesics):
            self._geodesics = GeodesicPaths(alone, "numeric")
        self._paths = Paths(self.layout, self._geodesics)

    @property
    def lost(self) -> bool:
        """Whether no path was found at the pose that was solved last."""
        return self._geodesics is not None and self._geodesics.failures > 0

    def straight(self, poses: PoseSet) -> Array:
        """Return the points of a path without contacts at all poses, shape (P, points, 3)."""
        frame = self.layout.point_frame
        local = self.layout.point_position
        turned = poses.rotation[:, frame] @ local[:, :, None]
        return np.asarray(turned[..., 0] + poses.position[:, frame])

    def solve(self, poses: PoseSet, index: int) -> Paths:
        """Find the contacts at one pose, from nothing: what is found depends on it alone."""
        rows = None
        if self._geodesics is not None:
            self._geodesics.reset()
            rows = self._geodesics.solve(poses.link_poses(index))
        self._paths.solve(poses.rotation[index], poses.position[index], rows)
        return self._paths


def _rotations(axis: Array, angles: Array) -> Array:
    """Return rotations about a unit axis, shape (P, 3, 3)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versine = np.sin(angles)[:, None, None], (1.0 - np.cos(angles))[:, None, None]
    return np.asarray(np.eye(3) + sine * cross + versine * (cross @ cross))


def _of_quaternions(quaternions: Array) -> Array:
    """Return rotations of unit quaternions (w, x, y, z), shape (P, 4), as (P, 3, 3)."""
    w, x, y, z = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows, dtype=float).transpose(2, 0, 1)
