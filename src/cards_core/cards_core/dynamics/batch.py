"""Many states at once: the kernels of the compiled backend, several states side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import real_array
from cards_core.codegen.kernel import Kernel
from cards_core.codegen.model import NativeModel, Variant
from cards_core.codegen.native import load_or_build
from cards_core.errors import ShapeError
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class BatchState:
    """Results for n states; see `cards_core.dynamics.interface.DynamicsState`.

    All arrays are views into one buffer with one state per row: the inner axes are contiguous,
    the step from state to state is that of the buffer.

    Attributes:
        mass_matrix: shape (n, nv, nv).
        coriolis: shape (n, nv).
        gravity: shape (n, nv).
        muscle_lengths: shape (n, m), [m].
        muscle_jacobian: shape (n, m, nv).
    """

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    muscle_lengths: Array
    muscle_jacobian: Array


BATCH = Variant(batch=True)


class BatchKernels:
    """Kernels for batches, each compiled when it is used for the first time.

    Args:
        content: Bytes that identify the robot.
        kernel: Makes a kernel by its name.
        variant: Precision and so on; always for batches.
    """

    def __init__(
        self,
        content: bytes,
        kernel: Callable[[str], Kernel],
        variant: Variant = BATCH,
    ) -> None:
        self._content = content
        self._kernel = kernel
        self._variant = variant
        self._models: dict[str, NativeModel] = {}

    def model(self, name: str) -> NativeModel:
        """Return the model with this kernel alone, compiled if needed."""
        if name not in self._models:
            self._models[name] = load_or_build(
                self._content + b"batch:" + name.encode(),
                lambda: [self._kernel(name)],
                self._variant,
            )
        return self._models[name]

    def evaluate(self, name: str, columns: Sequence[Any], threads: int = 1) -> dict[str, Any]:
        """Evaluate a kernel for many states.

        Args:
            name: Of the kernel.
            columns: Its inputs, each of shape (n, ...), or one state for all.
            threads: How many share the work.

        Returns:
            Views of shape (n, ...) by name of the output, into one buffer. Rows of which an input
            is not finite are NaN throughout.
        """
        model = self.model(name)
        layout = model.layouts[name]
        count = len(columns[0])
        rows = np.empty((count, layout.input_size), self._variant.dtype)
        for slot, values in zip(layout.inputs, columns, strict=True):
            rows[:, slot.start : slot.stop] = np.reshape(values, (-1, slot.stop - slot.start))
        out = model.rows(name, rows, threads)
        # a maximum or a decision could turn NaN into a number
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            out[~finite] = np.nan
        first = layout.input_size
        return {
            slot.name: out[:, slot.start - first : slot.stop - first].reshape(count, *slot.shape)
            for slot in layout.outputs
        }


def contact_rows(
    geodesics: GeodesicPaths, poses: Callable[[Array], Array], q: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the contacts of wraps without a closed form for n states, shape (n, 8 k).

    Every state is solved for itself, without a warm start, so that what is found does not depend,
    to the last digit, on the states before it. Also returns for which muscles no path was found,
    shape (n, m): their contacts are guesses, and what depends on them must become NaN.

    Args:
        geodesics: The solver; its memory is overwritten.
        poses: Gives link-to-world matrices of one q.
        q: Coordinates, shape (n, nq).
    """
    rows, lost = [], []
    for row in q:
        geodesics.reset()
        rows.append(geodesics.solve(poses(row)).ravel().copy())
        lost.append(geodesics.lost_muscles)
    return np.array(rows).reshape(len(q), -1), np.array(lost, dtype=bool).reshape(len(q), -1)


def state_columns(tree: Any, q: Array, qd: Array | None) -> tuple[Array, Array]:
    """Return q and qd as arrays of shape (n, nq) and (n, nv).

    Args:
        tree: Kinematic tree.
        q: Coordinates, shape (n, nq).
        qd: Velocities, shape (n, nv), or None for zero.

    Raises:
        ShapeError: The shapes do not fit the robot or each other.
    """
    q = real_array(q, "q")
    if q.ndim != 2 or q.shape[1] != tree.nq:
        raise ShapeError(f"q has shape {q.shape}, expected (n, {tree.nq})")
    if qd is None:
        return q, np.zeros((len(q), tree.nv))
    qd = real_array(qd, "qd")
    if qd.shape != (len(q), tree.nv):
        raise ShapeError(f"qd has shape {qd.shape}, expected ({len(q)}, {tree.nv})")
    return q, qd
