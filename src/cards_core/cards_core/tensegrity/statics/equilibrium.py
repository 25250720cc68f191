"""Equilibrium of bodies that cables hold: self-stress and infinitesimal mechanisms.

With L = dl/dq of the cables, shape (m, nv), tensions f act on the bodies with -L' f. Without loads

    A f = 0,    A = -L'    (six rows per free body: three forces, three moments)

The null space of A holds the states of self-stress, that of A' = -L the velocities that leave all
lengths as they are to first order [Pellegrino1986]_. Of these some are no mechanism:

- rigid motions of everything together, six where nothing is held by the world;
- motions that move no end of any cable, such as the spin of a rod about the line of its ends.

What is left, orthogonal to both, are the infinitesimal mechanisms. With r = rank A

    s = m - r,    p = nv - r - (rigid motions) - (motions without effect)

**Units and rank.** Rows of A mix N and N m per N. Velocities about an axis are multiplied by,
moments divided by a length, the one with which both kinds of columns of L are of the same size, in
the mean of squares. A singular value below `tolerance` times the largest counts as zero: what a
structure file says with d digits is an equilibrium to about 10^-d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.robot.elements import ViaPoint, path_links
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.typing import Array

RANK_TOLERANCE = 1e-8
"""Singular value, relative to the largest, that counts as zero."""


class StaticsError(CardsError):
    """A question about the statics of a structure that makes no sense; the message says why."""


class NoPrestressError(StaticsError):
    """Nothing holds the structure as asked: an answer, whose message names the cables."""


class NotConvergedError(StaticsError):
    """An iteration without a result: neither an equilibrium nor a proof that there is none."""


@dataclass(frozen=True, eq=False)
class EquilibriumAnalysis:
    """Self-stress and mechanisms of one shape.

    Attributes:
        robot: Its name.
        cables: Names, in the order of the tensions, m of them.
        q: The shape, shape (nq,).
        lengths: l, shape (m,), [m].
        matrix: A = -L', shape (nv, m): joint force per tension.
        length_scale: What makes moments and forces comparable, [m].
        scale: By which velocities are multiplied and rows of A divided, shape (nv,), [m] or [1].
        singular_values: Of A after scaling, descending, shape (min(nv, m),).
        tolerance: Singular value, relative to the largest, that counts as zero.
        rank: r of A.
        self_stress: Orthonormal states of self-stress, shape (m, s); each has a sum >= 0.
        mechanisms: Infinitesimal mechanisms, shape (nv, p): velocities, orthonormal after
            scaling, and orthogonal to the next two.
        rigid_motions: Of everything together, shape (nv, 0 to 6).
        idle_motions: That move no end of a cable, shape (nv, k).
    """

    robot: str
    cables: tuple[str, ...]
    q: Array
    lengths: Array
    matrix: Array
    length_scale: float
    scale: Array
    singular_values: Array
    tolerance: float
    rank: int
    self_stress: Array
    mechanisms: Array
    rigid_motions: Array
    idle_motions: Array

    def unbalanced(self, tensions: Array) -> float:
        """Return the largest joint force that tensions leave, moments by the length scale, [N]."""
        return float(np.abs((self.matrix @ tensions) / self.scale).max(initial=0.0))


def analyse_equilibrium(
    dynamics: Dynamics, q: Array | None = None, *, tolerance: float = RANK_TOLERANCE
) -> EquilibriumAnalysis:
    """Return the states of self-stress and the infinitesimal mechanisms of a shape.

    Args:
        dynamics: Of the robot: free bodies, or others.
        q: The shape, shape (nq,); home without it.
        tolerance: Singular value, relative to the largest, that counts as zero.

    Raises:
        StaticsError: There are no cables, one has no length, or the tolerance is not between 0
            and 1.
        ShapeError: q has the wrong shape or is not finite.
    """
    robot, tree = dynamics.robot, dynamics.tree
    if not robot.muscles:
        raise StaticsError(f"'{robot.name}' has no cables (expected: bodies that cables hold)")
    if not tree.nv:
        raise StaticsError(f"'{robot.name}' has nothing that moves (expected: free bodies)")
    if not 0.0 < tolerance < 1.0:
        raise StaticsError(f"tolerance {tolerance:g} (expected: > 0 and < 1, such as 1e-8)")
    q = tree.check_q(tree.home if q is None else q)
    state = dynamics.update(q, np.zeros(tree.nv))
    lengths, jacobian = state.muscle_lengths.copy(), state.muscle_jacobian.copy()
    cables = tuple(muscle.name for muscle in robot.muscles)
    # the direction of a cable whose ends are in one place is not defined
    wrong = [n for n, x, row in zip(cables, lengths, jacobian, strict=True)
             if not (x > 0.0 and np.isfinite(row).all())]  # fmt: skip
    if wrong:
        raise StaticsError(
            f"cable '{wrong[0]}' of '{robot.name}' has no length in this shape (expected: ends in "
            "different places)"
        )
    scale, length_scale = velocity_scale(tree, jacobian)
    u, values, vt = np.linalg.svd(-(jacobian / scale).T)
    largest = float(values.max(initial=0.0))
    rank = int(np.sum(values > tolerance * largest))
    stress = vt[rank:].T.copy()
    stress[:, stress.sum(axis=0) < 0.0] *= -1.0
    free = u[:, rank:]
    rigid = _rigid_motions(robot, tree, q, scale)
    idle = _idle_motions(robot, tree, q, scale, length_scale)
    known = _orthonormal(np.hstack([rigid, idle]))
    mechanisms = free @ _null_space((known.T @ free), 0.5)
    return EquilibriumAnalysis(
        robot.name,
        cables,
        q,
        lengths,
        -jacobian.T,
        length_scale,
        scale,
        values,
        tolerance,
        rank,
        stress,
        mechanisms / scale[:, None],
        rigid / scale[:, None],
        idle / scale[:, None],
    )


def velocity_scale(tree: Tree, jacobian: Array) -> tuple[Array, float]:
    """Return the scales of the velocities, shape (nv,), and the length in them, [m].

    Args:
        tree: Has the kinds of the joints.
        jacobian: L, shape (m, nv).
    """
    turning = np.zeros(tree.nv, dtype=bool)
    for node in tree.nodes:
        turning[node.v : node.v + node.nv] = node.kind != "prismatic"
    arms, unit = np.linalg.norm(jacobian[:, turning]), np.linalg.norm(jacobian[:, ~turning])
    length = 1.0
    if arms > 0.0 and unit > 0.0:
        length = float(arms / unit * np.sqrt((~turning).sum() / turning.sum()))
    return np.where(turning, length, 1.0), length


def _null_space(matrix: Array, tolerance: float) -> Array:
    """Return an orthonormal basis of the null space; singular values up to tolerance are zero."""
    _, values, vt = np.linalg.svd(matrix)
    out: Array = vt[int(np.sum(values > tolerance)) :].T
    return out


def _orthonormal(vectors: Array) -> Array:
    u, values, _ = np.linalg.svd(vectors, full_matrices=False)
    out: Array = u[:, values > RANK_TOLERANCE * values.max(initial=1.0)]
    return out


def _rigid_motions(robot: Robot, tree: Tree, q: Array, scale: Array) -> Array:
    """Return scaled velocities of all links as one body, none if a cable ends at a fixed link."""
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    pulled = {link for muscle in robot.muscles for link in path_links(muscle.path, surfaces)}
    if any(tree.link_node[link][0] == WORLD_NODE for link in pulled):
        return np.zeros((tree.nv, 0))
    motion = forward_kinematics(tree, q, np.zeros(tree.nv))
    nodes = sorted({node for node, _ in tree.link_node.values() if node != WORLD_NODE})
    places = motion.position[nodes]
    centre = places.mean(axis=0)
    size = float(scale.max())
    jacobian = np.vstack([
        np.vstack([motion.linear_jacobian[node], size * motion.angular_jacobian[node]])
        for node in nodes
    ]) / scale  # fmt: skip
    twists = np.zeros((6 * len(nodes), 6))
    for k, place in enumerate(places - centre):
        rows = twists[6 * k : 6 * k + 6]
        rows[:3, :3] = np.eye(3)
        rows[:3, 3:] = -np.cross(place, np.eye(3)).T / size
        rows[3:, 3:] = np.eye(3)
    inverse = np.linalg.pinv(jacobian)
    possible = _null_space(twists - jacobian @ (inverse @ twists), RANK_TOLERANCE)
    return _orthonormal(inverse @ twists @ possible)


def _idle_motions(robot: Robot, tree: Tree, q: Array, scale: Array, length_scale: float) -> Array:
    """Return scaled velocities that move no via point and no link with a surface."""
    motion = forward_kinematics(tree, q, np.zeros(tree.nv))
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    rows = []
    for muscle in robot.muscles:
        links = path_links(muscle.path, surfaces)
        for item, link in zip(muscle.path, links, strict=True):
            node, pose = tree.link_node[link]
            if node == WORLD_NODE:
                continue
            if isinstance(item, ViaPoint):
                rows.append(motion.point_jacobian(node, pose.apply(item.position)))
            else:
                turning = length_scale * motion.angular_jacobian[node]
                rows += [motion.linear_jacobian[node], turning]
    stacked = np.vstack(rows) / scale
    return _null_space(stacked, RANK_TOLERANCE * float(np.linalg.norm(stacked)))
