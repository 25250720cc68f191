"""The muscle engine: link motion and tensions in, lengths, rates and one wrench per link out.

The same engine serves every host (embedded simulator, Gazebo, hardware estimation): the host
fetches link poses and twists, calls `MuscleEngine.update` and applies the wrenches.

Per straight segment from A to B with unit vector ``u`` and tension ``f``:

    length += |B - A|,   rate += u . (v_B - v_A),   force on A's link: f u, on B's link: -f u

so that the forces and moments of every muscle sum to zero and ``tau = -L' f``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from cards_core.description.model import WORLD, Robot
from cards_core.typing import Array

if TYPE_CHECKING:
    from cards_core.dynamics.symbolic import Kernel


class MuscleState:
    """Result of `MuscleEngine.update`. The arrays are overwritten by the next update.

    With m muscles and n links in the order of ``robot.links``:

    Attributes:
        lengths: shape (m,), [m].
        rates: shape (m,), [m/s].
        wrenches: On every link, shape (n, 6): force [N], then torque [Nm] about the link's
            origin, both in world axes.
        world_wrench: On the world, about its origin, shape (6,): closes the balance.
    """

    def __init__(self, n_links: int, n_muscles: int) -> None:
        self.lengths: Array = np.zeros(n_muscles)
        self.rates: Array = np.zeros(n_muscles)
        self.wrenches: Array = np.zeros((n_links, 6))
        self.world_wrench: Array = np.zeros(6)


class MuscleEngine:
    """Muscle paths of a robot.

    Args:
        robot: The description.
        backend: ``compiled`` (native code, cached) or ``numeric`` (NumPy, the reference).
    """

    def __init__(self, robot: Robot, backend: Literal["compiled", "numeric"] = "compiled") -> None:
        self.robot = robot
        index = {link.name: i for i, link in enumerate(robot.links)} | {WORLD: len(robot.links)}
        self._point_link = np.array([index[p.link] for m in robot.muscles for p in m.path], int)
        positions = [p.position for m in robot.muscles for p in m.path]
        self._point_position = np.array(positions, dtype=float).reshape(-1, 3)
        sizes = [len(muscle.path) for muscle in robot.muscles]
        self._bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        starts = [
            np.arange(a, b - 1) for a, b in zip(self._bounds, self._bounds[1:], strict=False)
        ]
        self._start = np.concatenate([*starts, np.zeros(0, int)]).astype(int)
        self._muscle = np.repeat(np.arange(len(sizes)), [s - 1 for s in sizes])
        n_links, n_muscles = len(robot.links), len(robot.muscles)
        self._poses = np.zeros((n_links + 1, 4, 4))
        self._poses[-1] = np.eye(4)
        self._twists = np.zeros((n_links + 1, 6))
        self._wrenches = np.zeros((n_links + 1, 6))
        self._state = MuscleState(n_links, n_muscles)
        self.update = self._update_numeric
        if backend == "compiled":
            self._bind_native()

    def _bind_native(self) -> None:
        from cards_core.dynamics.native import load_or_build

        kernel = load_or_build(self._content(), self._kernels).bind("muscles")
        self._inputs = tuple(kernel.inputs[name] for name in ("poses", "twists", "tensions"))
        self._call = kernel.call
        state = self._state
        state.lengths = kernel.outputs["lengths"]
        state.rates = kernel.outputs["rates"]
        wrenches = kernel.outputs["wrenches"]
        state.wrenches, state.world_wrench = wrenches[:-1], wrenches[-1]
        self.update = self._update_native

    def _content(self) -> bytes:
        arrays = (self._point_link, self._point_position + 0.0, self._bounds)
        digest = hashlib.sha256(b"muscle engine 1")
        digest.update(str(len(self.robot.links)).encode())
        for array in arrays:
            digest.update(array.tobytes())
        return digest.digest()

    def _kernels(self) -> Sequence[Kernel]:
        from cards_core.muscles.symbolic import muscle_kernel

        return [
            muscle_kernel(
                len(self.robot.links), self._point_link, self._point_position, self._bounds
            )
        ]

    def _update_native(
        self, link_poses: Array, link_twists: Array, tensions: Array
    ) -> MuscleState:
        poses, twists, forces = self._inputs
        poses[:] = link_poses
        twists[:] = link_twists
        forces[:] = tensions
        self._call()
        return self._state

    def _update_numeric(
        self, link_poses: Array, link_twists: Array, tensions: Array
    ) -> MuscleState:
        """Compute lengths, rates and wrenches.

        Args:
            link_poses: Link-to-world matrices, shape (n, 4, 4).
            link_twists: World velocity of each link's origin, then angular velocity in world
                axes, shape (n, 6), [m/s] and [rad/s].
            tensions: shape (m,), [N].
        """
        self._twists[:-1] = link_twists
        points, arms = self._points(link_poses)
        twists = self._twists[self._point_link]
        velocities = twists[:, :3] + np.cross(twists[:, 3:], arms)
        start, end = self._start, self._start + 1
        delta = points[end] - points[start]
        length = np.linalg.norm(delta, axis=1)
        u = np.divide(delta, length[:, None], out=np.zeros_like(delta), where=length[:, None] > 0)
        count = len(self.robot.muscles)
        state = self._state
        state.lengths[:] = np.bincount(self._muscle, length, count)
        rate = np.einsum("ij,ij->i", u, velocities[end] - velocities[start])
        state.rates[:] = np.bincount(self._muscle, rate, count)
        pull = u * np.asarray(tensions)[self._muscle, None]
        force = np.zeros_like(points)
        np.add.at(force, start, pull)
        np.subtract.at(force, end, pull)
        self._wrenches[:] = 0.0
        np.add.at(self._wrenches[:, :3], self._point_link, force)
        np.add.at(self._wrenches[:, 3:], self._point_link, np.cross(arms, force))
        state.wrenches[:] = self._wrenches[:-1]
        state.world_wrench[:] = self._wrenches[-1]
        return state

    def _points(self, link_poses: Array) -> tuple[Array, Array]:
        """World positions of all path points, and their arms from the link origins."""
        self._poses[:-1] = link_poses
        poses = self._poses[self._point_link]
        arms = np.einsum("kij,kj->ki", poses[:, :3, :3], self._point_position)
        return poses[:, :3, 3] + arms, arms

    def path_points(self, link_poses: Array) -> list[Array]:
        """Return the drawn path of every muscle, arrays of shape (k, 3) in the world, [m]."""
        points, _ = self._points(link_poses)
        return [points[a:b] for a, b in zip(self._bounds, self._bounds[1:], strict=False)]
