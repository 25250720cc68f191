"""A compiled function of chosen quantities of a robot, for one state or for many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.codegen.emit import Precision
from cards_core.codegen.kernel import Kernel
from cards_core.codegen.model import BuildReport, Variant
from cards_core.codegen.native import Progress, load_or_build
from cards_core.dynamics.batch import BatchKernels, contact_rows, state_columns
from cards_core.dynamics.differences import geodesic_muscles
from cards_core.dynamics.symbolic import symbolic_kernels
from cards_core.dynamics.variables import DEFAULT, chosen
from cards_core.errors import UnknownNameError
from cards_core.paths.layout import fingerprint
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.model import Robot
from cards_core.typing import Array

NOT_WITH_GEODESICS = ("Ldot_qd", "dL_dq")
"""Derivatives of L, which are not written out where a muscle wraps without a closed form."""


class CompiledModel:
    """Chosen quantities as native code; make one with `compile_model`.

    Attributes:
        robot, tree: What it is of.
        emit: Names of the quantities, see `cards_core.dynamics.variables.VARIABLES`.
        report: How the code came to be.
    """

    def __init__(
        self,
        robot: Robot,
        emit: str | Iterable[str] = DEFAULT,
        *,
        frame: str | None = None,
        precision: Precision = "double",
        simplify: bool = True,
        force: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.robot = robot
        self.tree = robot.tree
        self._variables = chosen(emit)
        self.emit = tuple(variable.name for variable in self._variables)
        self._frame = self._frame_of(frame)
        self._geodesics = None
        if len(geodesic_muscles(self.tree)):
            for name in self.emit:
                if name in NOT_WITH_GEODESICS:
                    known = [n for n in self.emit if n not in NOT_WITH_GEODESICS]
                    raise UnknownNameError("quantity of a robot with geodesic wraps", name, known)
            self._geodesics = GeodesicPaths(robot)
            self._batch_geodesics = GeodesicPaths(robot)
            self._poses = load_or_build(
                fingerprint(self.tree) + b"poses", lambda: [self._kernel("link_poses")]
            ).bind("link_poses")
        content = fingerprint(self.tree) + f"emit {self.emit} {self._frame}".encode()
        variant = Variant(precision, simplify=simplify)
        self._model = load_or_build(
            content, lambda: [self._kernel("update")], variant, force=force, progress=progress
        )
        self._bound = self._model.bind("update")
        self._views = {v.name: self._bound.outputs[v.title] for v in self._variables}
        batch = Variant(precision, batch=True, simplify=simplify)
        self._batch = BatchKernels(content, self._kernel, batch)

    def _frame_of(self, frame: str | None) -> str | None:
        if not any(variable.operational for variable in self._variables):
            return None
        name = self.robot.frame_name(frame)
        self.tree.locate(name)
        return name

    def _kernel(self, name: str) -> Kernel:
        kernels = symbolic_kernels()
        kernel: Kernel
        if name == "link_poses":
            kernel = kernels.robot_kernel(self.robot, name)
        else:
            kernel = kernels.variables_kernel(self.robot, name, self._variables, self._frame)
        return kernel

    @property
    def report(self) -> BuildReport:
        """How the code for one state was obtained."""
        return self._model.report

    @property
    def batch_report(self) -> BuildReport:
        """How the code for batches came to be; compiles it if needed."""
        return self._batch.model("update").report

    def update(self, q: Array, qd: Array) -> dict[str, Array]:
        """Compute the quantities at q, shape (nq,), and qd, shape (nv,).

        Returns:
            Name to array; the same dictionary every time, overwritten by the next call. Rows of
            muscles whose path was not found are NaN.
        """
        inputs = self._bound.inputs
        inputs["q"][:] = q
        inputs["qd"][:] = qd
        if self._geodesics is not None:
            inputs["contacts"][:] = self._geodesics.solve(self._link_poses(q))
        self._bound.call()
        if self._geodesics is not None:
            self._without(self._geodesics.lost_muscles, self._views)
        return self._views

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> dict[str, Array]:
        """Compute the quantities for n states; see `cards_core.dynamics.Dynamics.batch`.

        Returns:
            Name to array of shape (n, ...), with NaN as of `update`.

        Raises:
            ShapeError: The shapes do not fit.
        """
        columns: list[Any] = list(state_columns(self.tree, q, qd))
        if self._geodesics is not None:
            contacts, lost = contact_rows(self._batch_geodesics, self._link_poses, columns[0])
            columns.append(contacts)
        found = self._batch.evaluate("update", columns, threads)
        views = {variable.name: found[variable.title] for variable in self._variables}
        if self._geodesics is not None:
            self._without(lost, views)
        return views

    @property
    def lost_names(self) -> list[str]:
        """Names of the muscles whose path the last `update` did not find."""
        if self._geodesics is None:
            return []
        return [self.robot.muscles[i].name for i in np.flatnonzero(self._geodesics.lost_muscles)]

    def _without(self, lost: npt.NDArray[np.bool_], views: dict[str, Array]) -> None:
        """Write NaN into the rows of muscles whose path was not found."""
        if lost.any():
            for variable in self._variables:
                if variable.shape[0] == "m":
                    views[variable.name][lost] = np.nan

    def _link_poses(self, q: Array) -> Array:
        self._poses.inputs["q"][:] = q
        self._poses.call()
        return self._poses.outputs["link_poses"]


def compile_model(
    robot: Robot,
    emit: str | Iterable[str] = DEFAULT,
    *,
    frame: str | None = None,
    precision: Precision = "double",
    simplify: bool = True,
    force: bool = False,
    progress: Progress | None = None,
) -> CompiledModel:
    """Compile chosen quantities of a robot, or load them from the cache.

    Args:
        robot: The description.
        emit: Names of `VARIABLES`, e.g. ``"M,C,G,l,L"`` or a sequence of names.
        frame: Frame of y, R, J, Jdot_qd; the operational frame if not given.
        precision: ``double``, or ``single`` for twice as many states side by side.
        simplify: Whether common subexpressions are computed once only; False for measurements.
        force: Recompile even if cached.
        progress: Told what is being done and the done fraction.

    Raises:
        UnknownNameError: A quantity or a frame that does not exist.
        CompilationError: The C compiler failed, or a quantity is too large to be written out.
        DescriptionError: The joints do not form a tree.
    """
    return CompiledModel(
        robot,
        emit,
        frame=frame,
        precision=precision,
        simplify=simplify,
        force=force,
        progress=progress,
    )
