"""Numeric backend: M, C, G, l and L by plain NumPy, straight from the definitions.

With J_v, J_w the Jacobians of each body's centre of mass and rotation, a_0, al_0 its bias
accelerations and I its inertia in world axes [Siciliano2009]_:

    M = sum m J_v' J_v + J_w' I J_w
    C = sum J_v' m a_0 + J_w' (I al_0 + w x I w)
    G = -sum J_v' m g
    L_i = sum over straight pieces A->B of u' (J_B - J_A),  u = (B - A) / |B - A|

where A and B are via points or tangent points of wrap surfaces, taken as fixed to their links.
Other quantities have the names of `cards_core.dynamics.variables`, by closed forms instead of the
automatic differentiation of compiled code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.dynamics.batch import BatchState, state_columns
from cards_core.dynamics.differences import bias_by_differences, gradient_by_differences
from cards_core.dynamics.variables import body_nodes, chosen
from cards_core.paths.layout import tree_layout
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.forward_kinematics import (
    Motion,
    forward_kinematics,
    node_poses,
    point_gradient,
)
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.typing import Array, Vector3

_Anchor = tuple[int, Vector3]


@dataclass(eq=False)
class NumericState:
    """See `cards_core.dynamics.interface.DynamicsState`."""

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    muscle_lengths: Array
    muscle_jacobian: Array


@dataclass(eq=False)
class NumericOperationalState:
    """See `cards_core.dynamics.interface.OperationalState`."""

    position: Array
    rotation: Array
    jacobian: Array
    bias: Array


class NumericDynamics:
    """Reference backend; see `cards_core.dynamics.interface.Dynamics`.

    Args:
        robot: The description.

    Raises:
        DescriptionError: The joints do not form a tree.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.tree = robot.tree
        self._layout = tree_layout(self.tree)
        self._geodesics = None
        if len(self._layout.geodesics):
            self._geodesics = GeodesicPaths(robot, "numeric")
        self._paths = Paths(self._layout, self._geodesics)

    @property
    def path_failures(self) -> int:
        """See `Dynamics.path_failures`."""
        return 0 if self._geodesics is None else self._geodesics.failures

    @property
    def lost_muscles(self) -> npt.NDArray[np.bool_]:
        """See `Dynamics.lost_muscles`."""
        if self._geodesics is None:
            return np.zeros(len(self.robot.muscles), dtype=bool)
        return self._geodesics.lost_muscles

    def update(self, q: Array, qd: Array) -> NumericState:
        """Compute M, C, G, l, L; see `Dynamics.update`."""
        motion = forward_kinematics(self.tree, q, qd)
        nv = self.tree.nv
        mass_matrix = np.zeros((nv, nv))
        coriolis = np.zeros(nv)
        gravity = np.zeros(nv)
        for i, node in enumerate(self.tree.nodes):
            body = node.inertia
            jv = motion.point_jacobian(i, body.com)
            jw = motion.angular_jacobian[i]
            tensor = motion.rotation[i] @ body.tensor @ motion.rotation[i].T
            omega = motion.angular_velocity[i]
            force = body.mass * motion.point_bias(i, body.com)
            moment = tensor @ motion.angular_bias[i] + np.cross(omega, tensor @ omega)
            mass_matrix += body.mass * jv.T @ jv + jw.T @ tensor @ jw
            coriolis += jv.T @ force + jw.T @ moment
            gravity -= body.mass * jv.T @ self.robot.gravity
        lengths = np.zeros(len(self.robot.muscles))
        jacobian = np.zeros((len(lengths), nv))
        for row, start, end in self._pieces(motion):
            direction, length = _segment(motion, start, end)
            lengths[row] += length
            relative = motion.point_jacobian(*end) - motion.point_jacobian(*start)
            jacobian[row] += direction @ relative
        for contact, arc in zip(self._layout.contacts, self._paths.arcs, strict=True):
            lengths[contact.muscle] += arc
        return NumericState(mass_matrix, coriolis, gravity, lengths, jacobian)

    def operational(
        self, q: Array, qd: Array, frame: str | None = None
    ) -> NumericOperationalState:
        """Compute pose, Jacobian and bias of a frame; see `Dynamics.operational`."""
        node, pose = self.tree.locate(self.robot.frame_name(frame))
        motion = forward_kinematics(self.tree, q, qd)
        return NumericOperationalState(
            position=motion.point(node, pose.translation),
            rotation=motion.rotation[node] @ pose.rotation,
            jacobian=np.vstack(
                [motion.point_jacobian(node, pose.translation), motion.angular_jacobian[node]]
            ),
            bias=np.concatenate(
                [motion.point_bias(node, pose.translation), motion.angular_bias[node]]
            ),
        )

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """Compute M, C, G, l, L for many states, one by one; see `Dynamics.batch`."""
        columns = state_columns(self.tree, q, qd)
        n, nv, m = len(columns[0]), self.tree.nv, len(self.robot.muscles)
        out = BatchState(
            *(np.full(s, np.nan) for s in ((n, nv, nv), (n, nv), (n, nv), (n, m), (n, m, nv)))
        )
        for i, (row, rate) in enumerate(zip(*columns, strict=True)):
            if np.isfinite(row).all() and np.isfinite(rate).all():
                if self._geodesics is not None:
                    self._geodesics.reset()  # no warm start: see contact_rows
                for name, values in vars(self.update(row, rate)).items():
                    getattr(out, name)[i] = values
                lost = self.lost_muscles
                out.muscle_lengths[i, lost] = out.muscle_jacobian[i, lost] = np.nan
        return out

    def batch_link_poses(self, q: Array, threads: int = 1) -> Array:
        """Return the poses of many states, one by one; see `Dynamics.batch_link_poses`."""
        rows = state_columns(self.tree, q, None)[0]
        out = np.full((len(rows), len(self.robot.links), 4, 4), np.nan)
        for i, row in enumerate(rows):
            if np.isfinite(row).all():
                out[i] = self.link_poses(row)
        return out

    def jacobian_gradient(self, q: Array) -> Array:
        """Return dL/dq, shape (m, nv, nv); see `Dynamics.jacobian_gradient`.

        Per straight piece with D = J_B - J_A ``u' dD/dq + D' (E - u u') D / |B - A|``; by
        differences where a muscle wraps.
        """
        nv = self.tree.nv
        motion = forward_kinematics(self.tree, q, np.zeros(nv))
        gradient = np.zeros((len(self.robot.muscles), nv, nv))
        for row, start, end in self._pieces(motion):
            u, length = _segment(motion, start, end)
            if length > 0.0:
                d = motion.point_jacobian(*end) - motion.point_jacobian(*start)
                across = d - np.outer(u, u @ d)
                gradient[row] += across.T @ across / length
                turned = point_gradient(self.tree, motion, *end)
                turned -= point_gradient(self.tree, motion, *start)
                gradient[row] += np.einsum("i,ijk->jk", u, turned)
        wrapped = [contact.muscle for contact in self._layout.contacts]
        if wrapped:
            still = np.zeros(nv)
            gradient[wrapped] = gradient_by_differences(
                self.tree, lambda x: self.update(x, still).muscle_jacobian, q
            )[wrapped]
        return gradient

    def muscle_body_jacobian(self, q: Array) -> Array:
        """Return V, shape (m, 6p): ld = V xd with the twists xd of the bodies."""
        motion = forward_kinematics(self.tree, q, np.zeros(self.tree.nv))
        column = {node: 6 * k for k, node in enumerate(body_nodes(self.tree))}
        jacobian = np.zeros((len(self.robot.muscles), 6 * len(column)))
        world = len(self.tree.nodes)
        for row, start, end in self._pieces(motion):
            u, _ = _segment(motion, start, end)
            for sign, (node, local) in ((-1.0, start), (1.0, end)):
                if node not in (world, WORLD_NODE):
                    part = _piece_body_rows(self.tree, motion, node, local, sign * u)
                    jacobian[row, column[node] : column[node] + 6] += part
        return jacobian

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """Return dL/dt qd, shape (m,).

        Per straight piece ``u' (a_B - a_A) + (|v|^2 - (u' v)^2) / |B - A|`` with v the relative
        velocity and a the bias accelerations of its ends; by differences where a muscle wraps.
        """
        motion = forward_kinematics(self.tree, q, qd)
        bias = np.zeros(len(self.robot.muscles))
        for row, start, end in self._pieces(motion):
            u, length = _segment(motion, start, end)
            v = (motion.point_jacobian(*end) - motion.point_jacobian(*start)) @ qd
            a = motion.point_bias(*end) - motion.point_bias(*start)
            bias[row] += u @ a
            if length > 0.0:
                bias[row] += (v @ v - (u @ v) ** 2) / length
        if self._layout.contacts:
            wrapped = [contact.muscle for contact in self._layout.contacts]
            still = np.zeros(self.tree.nv)
            differences = bias_by_differences(
                self.tree, lambda x: self.update(x, still).muscle_jacobian, q, qd
            )
            bias[wrapped] = differences[wrapped]
        return bias

    def _pieces(self, motion: Motion) -> Iterator[tuple[int, _Anchor, _Anchor]]:
        """Yield muscle and ends (node and position in node coordinates) of straight pieces."""
        layout, paths = self._layout, self._paths
        rows = None
        if self._geodesics is not None:
            rows = self._geodesics.solve(self._poses(motion.rotation, motion.position))
        paths.solve(motion.rotation, motion.position, rows)
        for row, k in zip(layout.piece_muscle, layout.start, strict=True):
            yield (
                int(row),
                (int(layout.point_frame[k]), paths.local[k]),
                (int(layout.point_frame[k + 1]), paths.local[k + 1]),
            )

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4)."""
        return self._poses(*node_poses(self.tree, q))

    def _poses(self, rotation: Array, position: Array) -> Array:
        poses = np.zeros((len(self.robot.links), 4, 4))
        for row, link in enumerate(self.robot.links):
            node, offset = self.tree.link_node[link.name]
            poses[row, :3, :3] = rotation[node] @ offset.rotation
            poses[row, :3, 3] = position[node] + rotation[node] @ offset.translation
            poses[row, 3, 3] = 1.0
        return poses


def _segment(
    motion: Motion, start: tuple[int, Vector3], end: tuple[int, Vector3]
) -> tuple[Vector3, float]:
    """Return unit direction and length of a straight segment; a point has no direction (zero)."""
    delta = motion.point(*end) - motion.point(*start)
    length = float(np.linalg.norm(delta))
    return (delta / length if length > 0.0 else np.zeros(3)), length


def _piece_body_rows(tree: Tree, motion: Motion, node: int, local: Vector3, u: Vector3) -> Array:
    """Return the share of one end of a straight piece in a row of V, shape (6,).

    Args:
        tree: Kinematic tree.
        motion: Of its nodes.
        node: The node that carries the end; not the world.
        local: The end in node coordinates.
        u: Unit vector of the piece in the world, away from the end's neighbour.
    """
    pull = motion.rotation[node].T @ u
    return np.concatenate([pull, np.cross(local - tree.nodes[node].inertia.com, pull)])


def evaluate(
    dynamics: NumericDynamics,
    emit: str | Iterable[str],
    q: Array,
    qd: Array,
    frame: str | None = None,
) -> dict[str, Array]:
    """Return quantities by name, newly allocated.

    Args:
        dynamics: Of the robot.
        emit: Names of `cards_core.dynamics.variables.VARIABLES`.
        q: Coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
        frame: Frame of y, R, J, Jdot_qd; the operational frame if not given.

    Raises:
        UnknownNameError: A quantity or a frame that does not exist.
    """
    variables = chosen(emit)
    state = dynamics.update(q, qd)
    bodies = body_quantities(dynamics.tree, forward_kinematics(dynamics.tree, q, qd))
    out: dict[str, Array] = {
        "M": state.mass_matrix,
        "C": state.coriolis,
        "G": state.gravity,
        "l": state.muscle_lengths,
        "L": state.muscle_jacobian,
        **bodies,
    }
    names = {variable.name for variable in variables}
    if "V" in names:
        out["V"] = dynamics.muscle_body_jacobian(q)
    if "Ldot_qd" in names:
        out["Ldot_qd"] = dynamics.muscle_bias(q, qd)
    if "dL_dq" in names:
        out["dL_dq"] = dynamics.jacobian_gradient(q)
    if "M_inv" in names:
        out["M_inv"] = np.asarray(np.linalg.inv(state.mass_matrix), dtype=float)
    if any(variable.operational for variable in variables):
        pose = dynamics.operational(q, qd, frame)
        out |= {"y": pose.position, "R": pose.rotation, "J": pose.jacobian, "Jdot_qd": pose.bias}
    return {variable.name: out[variable.name] for variable in variables}


def body_quantities(tree: Tree, motion: Motion) -> dict[str, Array]:
    """Return W, M_b, C_b and G_b at one state."""
    nodes = body_nodes(tree)
    rows = 6 * len(nodes)
    jacobian, mass = np.zeros((rows, tree.nv)), np.zeros((rows, tree.nv))
    coriolis, gravity = np.zeros(rows), np.zeros(rows)
    for k, i in enumerate(nodes):
        body, back = tree.nodes[i].inertia, motion.rotation[i].T
        linear, angular = slice(6 * k, 6 * k + 3), slice(6 * k + 3, 6 * k + 6)
        jacobian[linear] = back @ motion.point_jacobian(i, body.com)
        jacobian[angular] = back @ motion.angular_jacobian[i]
        mass[linear] = body.mass * jacobian[linear]
        mass[angular] = body.tensor @ jacobian[angular]
        omega = back @ motion.angular_velocity[i]
        coriolis[linear] = body.mass * back @ motion.point_bias(i, body.com)
        coriolis[angular] = body.tensor @ (back @ motion.angular_bias[i]) + np.cross(
            omega, body.tensor @ omega
        )
        gravity[linear] = body.mass * back @ tree.robot.gravity
    return {"W": jacobian, "M_b": mass, "C_b": coriolis, "G_b": gravity}
