"""Compiled backend: the kernels of `symbolic` as native code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.codegen.kernel import Kernel
from cards_core.codegen.model import BoundKernel, BuildReport, NativeModel
from cards_core.codegen.native import load_or_build
from cards_core.dynamics.batch import BatchKernels, BatchState, contact_rows, state_columns
from cards_core.dynamics.differences import (
    bias_by_differences,
    geodesic_muscles,
    gradient_by_differences,
)
from cards_core.dynamics.symbolic import symbolic_kernels
from cards_core.paths.layout import fingerprint
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.model import Robot
from cards_core.typing import Array


class CompiledState:
    """See `cards_core.dynamics.interface.DynamicsState`; views into the kernel's buffer."""

    def __init__(self, outputs: dict[str, Array]) -> None:
        self.mass_matrix = outputs["mass_matrix"]
        self.coriolis = outputs["coriolis"]
        self.gravity = outputs["gravity"]
        self.muscle_lengths = outputs["muscle_lengths"]
        self.muscle_jacobian = outputs["muscle_jacobian"]


class CompiledOperationalState:
    """See `cards_core.dynamics.interface.OperationalState`; views into the kernel's buffer."""

    def __init__(self, outputs: dict[str, Array]) -> None:
        self.position = outputs["position"]
        self.rotation = outputs["rotation"]
        self.jacobian = outputs["jacobian"]
        self.bias = outputs["bias"]


class CompiledDynamics:
    """Native backend; see `cards_core.dynamics.interface.Dynamics`.

    Args:
        robot: The description.

    Attributes:
        report: Where the code is cached and how long it took to make.

    Raises:
        DescriptionError: The joints do not form a tree.
        CompilationError: The C compiler failed.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.tree = robot.tree
        self._model = load_or_build(fingerprint(self.tree), self._kernels)
        self._update = self._model.bind("update")
        self._bias = self._model.bind("muscle_bias")
        self._poses = self._model.bind("link_poses")
        self._state = CompiledState(self._update.outputs)
        self._frames: dict[str, tuple[BoundKernel, CompiledOperationalState]] = {}
        self._geodesics = None
        self._indirect = geodesic_muscles(self.tree)
        if len(self._indirect):
            self._geodesics = GeodesicPaths(robot)
            self._batch_geodesics = GeodesicPaths(robot)
            # of `muscle_bias`, which must not overwrite what `update` returned
            self._moved = self._model.bind("update")
        self._batch = BatchKernels(fingerprint(self.tree), self._kernel)
        self._q, self._qd = self._update.inputs["q"], self._update.inputs["qd"]
        self._call_update = self._update.call

    @property
    def report(self) -> BuildReport:
        """How the native code came to be."""
        return self._model.report

    @property
    def state_kernel(self) -> BoundKernel:
        """The kernel that `update` calls, with the buffer of its last state."""
        return self._update

    def update_kernel(self) -> BoundKernel:
        """Return the kernel of `update` with a buffer of its own."""
        return self._model.bind("update")

    def pose_kernel(self) -> BoundKernel:
        """Return the kernel of `link_poses` with a buffer of its own."""
        return self._model.bind("link_poses")

    def _kernels(self) -> Sequence[Kernel]:
        kernels: list[Kernel] = symbolic_kernels().robot_kernels(self.robot)
        return kernels

    def _kernel(self, name: str) -> Kernel:
        kernel: Kernel = symbolic_kernels().robot_kernel(self.robot, name)
        return kernel

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

    def update(self, q: Array, qd: Array) -> CompiledState:
        """Compute M, C, G, l, L; see `Dynamics.update`."""
        self.set_state(q, qd)
        self._call_update()
        return self._state

    def set_state(self, q: Array, qd: Array) -> None:
        """Write the inputs of `state_kernel`, for native programs that call it themselves.

        Args:
            q: Shape (nq,), [rad] or [m].
            qd: Shape (nv,), [rad/s] or [m/s].
        """
        self._q[:] = q
        self._qd[:] = qd
        if self._geodesics is not None:
            self._update.inputs["contacts"][:] = self._geodesics.solve(self.link_poses(q))

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """Compute M, C, G, l, L for many states; see `Dynamics.batch`."""
        columns = list(state_columns(self.tree, q, qd))
        if self._geodesics is None:
            return BatchState(**self._batch.evaluate("update", columns, threads))
        contacts, lost = contact_rows(self._batch_geodesics, self.link_poses, columns[0])
        state = BatchState(**self._batch.evaluate("update", [*columns, contacts], threads))
        state.muscle_lengths[lost] = state.muscle_jacobian[lost] = np.nan
        return state

    def batch_operational(
        self, q: Array, qd: Array | None = None, frame: str | None = None, threads: int = 1
    ) -> dict[str, Array]:
        """Compute `operational` for many states.

        Returns:
            ``position`` (n, 3), ``rotation`` (n, 3, 3), ``jacobian`` (n, 6, nv), ``bias`` (n, 6).

        Raises:
            UnknownNameError: No frame or link has this name.
            ShapeError: See `batch`.
        """
        name = self.robot.frame_name(frame)
        self.tree.locate(name)
        columns = state_columns(self.tree, q, qd)
        return self._batch.evaluate(f"frame_{name}", columns, threads)

    def batch_link_poses(self, q: Array, threads: int = 1) -> Array:
        """Return `link_poses` for many coordinates (n, nq), shape (n, n_links, 4, 4)."""
        columns = state_columns(self.tree, q, None)[:1]
        poses: Array = self._batch.evaluate("link_poses", columns, threads)["link_poses"]
        return poses

    def jacobian_gradient(self, q: Array) -> Array:
        """Return dL/dq, shape (m, nv, nv); see `Dynamics.jacobian_gradient`.

        The derivative of L along qd is compiled; unit vectors go through it side by side.
        """
        q = np.asarray(q, dtype=float)
        columns = [np.tile(q, (self.tree.nv, 1)), np.eye(self.tree.nv)]
        if self._geodesics is not None:
            columns.append(contact_rows(self._batch_geodesics, self.link_poses, q[None])[0])
        rates = self._batch.evaluate("jacobian_rate", columns)["jacobian_rate"]
        gradient = np.ascontiguousarray(np.moveaxis(rates, 0, 2))
        if len(self._indirect):
            # how tangent points of geodesics move is not written out
            differences = gradient_by_differences(self.tree, self._moved_jacobian, q)
            gradient[self._indirect] = differences[self._indirect]
        return gradient

    def operational(
        self, q: Array, qd: Array, frame: str | None = None
    ) -> CompiledOperationalState:
        """Compute pose, Jacobian and bias of a frame; see `Dynamics.operational`."""
        kernel, state = self._frame_of(frame)
        kernel.inputs["q"][:] = q
        kernel.inputs["qd"][:] = qd
        kernel.call()
        return state

    def frame_kernel(self, frame: str | None = None) -> BoundKernel:
        """Return the kernel that `operational` calls for a frame.

        Raises:
            UnknownNameError: No frame or link has this name.
        """
        return self._frame_of(frame)[0]

    def _frame_of(self, frame: str | None) -> tuple[BoundKernel, CompiledOperationalState]:
        name = self.robot.frame_name(frame)
        if name not in self._frames:
            self._add_frame(name)
        return self._frames[name]

    def _add_frame(self, name: str) -> None:
        self.tree.locate(name)
        model: NativeModel = self._model
        if f"frame_{name}" not in model.layouts:
            model = load_or_build(
                fingerprint(self.tree) + b"frame:" + name.encode(), lambda: self._frame(name)
            )
        kernel = model.bind(f"frame_{name}")
        self._frames[name] = (kernel, CompiledOperationalState(kernel.outputs))

    def _frame(self, name: str) -> Sequence[Kernel]:
        return [symbolic_kernels().frame_kernel(self.robot, name)]

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """Return dL/dt qd, shape (m,); overwritten by the next call."""
        self._bias.inputs["q"][:] = q
        self._bias.inputs["qd"][:] = qd
        if self._geodesics is not None:
            self._bias.inputs["contacts"][:] = self._geodesics.solve(self.link_poses(q))
        self._bias.call()
        bias = self._bias.outputs["muscle_bias"]
        if len(self._indirect):
            # how tangent points of geodesics move is not written out
            differences = bias_by_differences(self.tree, self._moved_jacobian, q, qd)
            bias[self._indirect] = differences[self._indirect]
        return bias

    def _moved_jacobian(self, q: Array) -> Array:
        inputs = self._moved.inputs
        inputs["q"][:] = q
        if self._geodesics is not None:
            inputs["contacts"][:] = self._geodesics.solve(self.link_poses(q))
        self._moved.call()
        return self._moved.outputs["muscle_jacobian"]

    def link_poses(self, q: Array) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4); overwritten by the next call."""
        self._poses.inputs["q"][:] = q
        self._poses.call()
        return np.asarray(self._poses.outputs["link_poses"])
