"""Forces and moments that the joints carry.

Newton and Euler for everything beyond a joint j, about the world's origin [Featherstone2008]_:

    W_j = sum over links k beyond j of  (m (a_k - g),  c_k x m (a_k - g) + I al_k + w_k x I w_k)
          - muscle wrenches on k - external wrenches on k

is what the parent of j exerts on its child through the joint. It is linear in the tensions,
``W = W_0 + W_f f``. Seen along the motion of the joint it is what actuates it: zero where no motor
does, if the tensions make the motion. A fixed joint carries all six components.

Muscles are without friction here, as in L. The wrench of a muscle on a link it wraps over is that
of its straight pieces at the tangent points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.analysis.inverse_kinematics import point_problem
from cards_core.analysis.status import PointStatus
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.paths.layout import link_layout
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import WORLD
from cards_core.robot.forward_kinematics import Motion, forward_kinematics
from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class InteractionResult:
    """What the p joints of a robot carry, in the order of ``robot.joints``.

    Attributes:
        status: FEASIBLE, or OUTSIDE_LIMITS, NOT_FINITE, PATH_NOT_FOUND.
        forces: From the parent on the child, in axes of the child link, shape (p, 3), [N].
        moments: The same about the joint's origin (which moves with the child), shape (p, 3),
            [Nm].
        imbalance: M qdd + C + G + w_e + L' f, shape (nv,): what the tensions do not make, and the
            joints therefore have to give along their own motion; zero for tensions that fit.
    """

    status: PointStatus
    forces: Array
    moments: Array
    imbalance: Array


class JointInteraction:
    """Computes joint wrenches of one robot; one object per thread.

    Args:
        dynamics: Of the robot.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        robot, tree = dynamics.robot, dynamics.tree
        self._tree = tree
        self._layout = link_layout(robot)
        self._geodesics = None
        if len(self._layout.geodesics):
            self._geodesics = GeodesicPaths(robot)
        self._paths = Paths(self._layout, self._geodesics)
        index = {link.name: i for i, link in enumerate(robot.links)}
        self._places = [tree.link_node[link.name] for link in robot.links]
        self._children = [index[joint.child] for joint in robot.joints]
        # row j: links beyond joint j
        parents = {index[joint.child]: joint.parent for joint in robot.joints}
        joint_of = {index[joint.child]: j for j, joint in enumerate(robot.joints)}
        self._beyond = np.zeros((len(robot.joints), len(robot.links)))
        for link in range(len(robot.links)):
            at: int | None = link
            while at is not None:
                self._beyond[joint_of[at], link] = 1.0
                above = parents[at]
                at = None if above == WORLD else index[above]
        self._joint_frames = [joint.joint_to_child.inverse() for joint in robot.joints]

    def solve(
        self,
        q: Array,
        qd: Array | None = None,
        qdd: Array | None = None,
        tensions: Array | None = None,
        external: Array | None = None,
    ) -> InteractionResult:
        """Return what the joints carry.

        Args:
            q: Coordinates, shape (nq,).
            qd: Velocities, shape (nv,); zero without them.
            qdd: Accelerations, shape (nv,); zero without them.
            tensions: Of all muscles, shape (m,), [N]; zero without them.
            external: Force and moment on every link, at its origin in world axes, shape
                (n_links, 6), [N] and [Nm]; zero without them.

        Raises:
            ShapeError: An array of the wrong shape.
        """
        tree, robot = self._tree, self._dynamics.robot
        q = np.asarray(q, dtype=float)
        qd = _vector(qd, (tree.nv,), "qd")
        qdd = _vector(qdd, (tree.nv,), "qdd")
        tensions = _vector(tensions, (len(robot.muscles),), "tensions")
        wrenches = _vector(external, (len(robot.links), 6), "external")
        if q.shape != (tree.nq,):
            raise ShapeError(f"q has shape {q.shape}, expected ({tree.nq},)")
        p = len(robot.joints)
        status = point_problem(tree, q, qd, qdd, tensions, wrenches)
        if status is PointStatus.NOT_FINITE:
            nothing = np.full((p, 3), np.nan)
            return InteractionResult(status, nothing, nothing, np.full(tree.nv, np.nan))
        before = self._dynamics.path_failures
        state = self._dynamics.update(q, qd)
        if self._dynamics.path_failures != before:
            status = PointStatus.PATH_NOT_FOUND
        imbalance = state.mass_matrix @ qdd + state.coriolis + state.gravity
        imbalance += state.muscle_jacobian.T @ tensions
        matrix, offset = self.linear(q, qd, qdd, wrenches)
        for i in np.flatnonzero(wrenches.any(axis=1)):
            jacobian = self._dynamics.operational(q, qd, robot.links[i].name).jacobian
            imbalance -= jacobian.T @ wrenches[i]
        joints = (offset + matrix @ tensions).reshape(p, 6)
        return InteractionResult(status, joints[:, :3], joints[:, 3:], imbalance)

    def linear(
        self, q: Array, qd: Array, qdd: Array, external: Array | None = None
    ) -> tuple[Array, Array]:
        """Return W_f, shape (6p, m), and W_0, shape (6p,): joint after joint, force and moment.

        Args:
            q: As in `solve`.
            qd: As in `solve`.
            qdd: As in `solve`.
            external: As in `solve`.
        """
        motion = forward_kinematics(self._tree, q, qd)
        rotations, positions = self._link_frames(motion)
        loads = self._inertial(motion, rotations, positions, qdd)
        if external is not None:
            loads[:, :3] -= external[:, :3]
            loads[:, 3:] -= external[:, 3:] + np.cross(positions[:-1], external[:, :3])
        pulls = self._muscle_wrenches(rotations, positions)
        offset = self._beyond @ loads
        matrix = -np.einsum("jk,kcm->jcm", self._beyond, pulls)
        for j, (child, frame) in enumerate(zip(self._children, self._joint_frames, strict=True)):
            rotation = rotations[child]
            origin = positions[child] + rotation @ frame.translation
            offset[j] = _seen(offset[j][:, None], rotation, origin)[:, 0]
            matrix[j] = _seen(matrix[j], rotation, origin)
        return matrix.reshape(offset.size, -1), offset.ravel()

    def on_links(self, q: Array, wrenches: Sequence[tuple[str, Array]]) -> Array:
        """Return wrenches at frames as wrenches on links, for `solve`.

        Args:
            q: Coordinates, shape (nq,).
            wrenches: Name of a frame or link, and force [N] and moment [Nm] at its origin in
                world axes, shape (6,).

        Returns:
            Shape (n_links, 6).

        Raises:
            UnknownNameError: No frame or link has this name.
        """
        robot = self._dynamics.robot
        names = [link.name for link in robot.links]
        out = np.zeros((len(names), 6))
        poses = self._dynamics.link_poses(q)
        for name, wrench in wrenches:
            frame = robot.frame(name)
            i = names.index(frame.link)
            arm = poses[i, :3, :3] @ frame.pose.translation
            out[i, :3] += wrench[:3]
            out[i, 3:] += wrench[3:] + np.cross(arm, wrench[:3])
        return out

    def _link_frames(self, motion: Motion) -> tuple[Array, Array]:
        """Rotations and origins of all links, and of the world at the end."""
        count = len(self._places)
        rotations, positions = np.zeros((count + 1, 3, 3)), np.zeros((count + 1, 3))
        rotations[count] = np.eye(3)
        for i, (node, offset) in enumerate(self._places):
            rotations[i] = motion.rotation[node] @ offset.rotation
            positions[i] = motion.point(node, offset.translation)
        return rotations, positions

    def _inertial(self, motion: Motion, rotations: Array, positions: Array, qdd: Array) -> Array:
        """Inertial wrench minus weight of every link about the world's origin, (n, 6)."""
        robot = self._dynamics.robot
        out = np.zeros((len(self._places), 6))
        for i, (link, (node, offset)) in enumerate(zip(robot.links, self._places, strict=True)):
            body = link.inertia
            local: Vector3 = offset.apply(body.com)
            acceleration = motion.point_jacobian(node, local) @ qdd + motion.point_bias(
                node, local
            )
            spin = motion.angular_velocity[node]
            turning = motion.angular_jacobian[node] @ qdd + motion.angular_bias[node]
            tensor = rotations[i] @ body.tensor @ rotations[i].T
            force = body.mass * (acceleration - robot.gravity)
            centre = positions[i] + rotations[i] @ body.com
            out[i, :3] = force
            out[i, 3:] = np.cross(centre, force) + tensor @ turning
            out[i, 3:] += np.cross(spin, tensor @ spin)
        return out

    def _muscle_wrenches(self, rotations: Array, positions: Array) -> Array:
        """Wrench per unit tension on every link about the world's origin, (n, 6, m)."""
        layout, paths = self._layout, self._paths
        rows = None
        if self._geodesics is not None:
            poses = np.zeros((len(self._places), 4, 4))
            poses[:, :3, :3], poses[:, :3, 3] = rotations[:-1], positions[:-1]
            poses[:, 3, 3] = 1.0
            rows = self._geodesics.solve(poses)
        paths.solve(rotations, positions, rows)
        start, end = paths.points[layout.start], paths.points[layout.start + 1]
        delta = end - start
        lengths = np.linalg.norm(delta, axis=1, keepdims=True)
        units = np.divide(delta, lengths, out=np.zeros_like(delta), where=lengths > 0.0)
        pull = np.hstack([units, np.cross(start, units)])
        out = np.zeros((len(self._places) + 1, 6, len(layout.bounds) - 1))
        for sign, points in ((1.0, layout.start), (-1.0, layout.start + 1)):
            # both ends have the same line of action, so the same moment about the origin
            ends = zip(layout.point_frame[points], layout.piece_muscle, pull, strict=True)
            for frame, muscle, wrench in ends:
                out[frame, :, muscle] += sign * wrench
        return out[:-1]


def _seen(wrenches: Array, rotation: Array, origin: Vector3) -> Array:
    """Express columns of world wrenches (6, k) about ``origin``, in axes of ``rotation``."""
    forces, moments = wrenches[:3], wrenches[3:]
    moments = moments - np.cross(origin, forces, axisb=0, axisc=0)
    return np.vstack([rotation.T @ forces, rotation.T @ moments])


def _vector(values: Array | None, shape: tuple[int, ...], name: str) -> Array:
    if values is None:
        return np.zeros(shape)
    array = np.asarray(values, dtype=float)
    if array.shape != shape:
        raise ShapeError(f"{name} has shape {array.shape}, expected {shape}")
    return array
