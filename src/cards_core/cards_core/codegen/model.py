"""A compiled model in memory: kernels with their buffers, for one state or for many."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.codegen.emit import BYTES, Precision
from cards_core.codegen.kernel import Layout, Slot
from cards_core.codegen.toolchain import NO_COMPILER
from cards_core.errors import CompilationError
from cards_core.typing import Array

Numbers = npt.NDArray[np.floating[Any]]
"""An array of the precision that the model was compiled for."""

BATCH_BYTES = 32
"""Width of the vectors that batches are computed with: what every x86-64 since 2013 has."""

DOUBLE: np.dtype[Any] = np.dtype(np.float64)


@dataclass(frozen=True)
class Variant:
    """Form of the compiled code.

    Attributes:
        precision: Of all numbers.
        batch: Whether the code is for many states at once.
        simplify: Whether common subexpressions are computed once only.

    Raises:
        UnknownNameError: No such precision.
    """

    precision: Precision = "double"
    batch: bool = False
    simplify: bool = True

    def __post_init__(self) -> None:
        check_choice(self.precision, "precision", get_args(Precision))

    @property
    def lanes(self) -> int:
        """How many states are computed side by side."""
        return BATCH_BYTES // BYTES[self.precision] if self.batch else 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the numbers."""
        return np.dtype(np.float64 if self.precision == "double" else np.float32)

    def key(self) -> bytes:
        """Bytes that tell variants apart."""
        return f"variant {self.precision} {self.batch} {self.simplify}".encode()


ONE_STATE = Variant()
"""Double precision, one state at a time."""


class BoundKernel:
    """A kernel with its own buffer.

    Attributes:
        inputs, outputs: Name to NumPy view into the buffer; write inputs, call, read outputs.
        buffer: All inputs, then all outputs.
        address: Of the C function, ``void f(double *buffer)``; 0 if there is none.
    """

    def __init__(
        self,
        layout: Layout,
        bind: Callable[[Numbers], Callable[[], None]],
        dtype: np.dtype[Any] = DOUBLE,
        address: int = 0,
    ) -> None:
        self._layout = layout
        self.address = address
        self.buffer = np.zeros(max(layout.size, 1), dtype)
        self.inputs = {s.name: self._view(s) for s in layout.inputs}
        self.outputs = {s.name: self._view(s) for s in layout.outputs}
        self.call: Callable[[], None] = bind(self.buffer)

    def place(self, name: str) -> int:
        """Return where an input or output starts in the buffer."""
        slots = (*self._layout.inputs, *self._layout.outputs)
        return next(slot.start for slot in slots if slot.name == name)

    def _view(self, slot: Slot) -> Array:
        view: Array = self.buffer[slot.start : slot.stop].reshape(slot.shape)
        return view


@dataclass(frozen=True)
class BuildReport:
    """How a compiled model came to be.

    Attributes:
        path: Folder in the cache; None when CasADi evaluates instead.
        cached: True if nothing had to be compiled.
        seconds: Time until the model could be called, in this process, [s].
        instructions: Number of scalar operations of all kernels.
        phases: What took how long when it was compiled, [s]: ``expressions``, ``generate``,
            ``compile``.
        bytes: Size of the library.
        kernels: Operations of every kernel; 0 for those written in C.
    """

    path: Path | None
    cached: bool
    seconds: float
    instructions: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    bytes: int = 0
    kernels: dict[str, int] = field(default_factory=dict)


class NativeModel:
    """A loaded set of kernels.

    Attributes:
        layouts: Kernel name to buffer layout.
        report: How it was made.
        variant: Its form.
    """

    def __init__(
        self,
        layouts: dict[str, Layout],
        binders: dict[str, Callable[[Numbers], Callable[[], None]]],
        report: BuildReport,
        variant: Variant = ONE_STATE,
        functions: dict[str, Any] | None = None,
        *,
        addresses: dict[str, int] | None = None,
    ) -> None:
        self.layouts = layouts
        self._binders = binders
        self.report = report
        self.variant = variant
        self._functions = functions or {}
        self._addresses = addresses or {}

    def bind(self, kernel: str) -> BoundKernel:
        """Return a kernel with a buffer of its own; not for batches."""
        return BoundKernel(
            self.layouts[kernel],
            self._binders[kernel],
            self.variant.dtype,
            self._addresses.get(kernel, 0),
        )

    def address(self, kernel: str) -> int:
        """Return the address of a kernel for batches, ``void f(in, out, long long count)``.

        Raises:
            CompilationError: There is no C compiler, and the code is not in the cache.
        """
        if kernel not in self._functions:
            raise CompilationError(f"{NO_COMPILER}, which '{kernel}' needs to be native code")
        return int(ctypes.cast(self._functions[kernel], ctypes.c_void_p).value or 0)

    def rows(self, kernel: str, inputs: Numbers, threads: int = 1) -> Numbers:
        """Evaluate a kernel for many states.

        Args:
            kernel: Its name.
            inputs: All inputs of one state per row, in the order of the layout, shape (n, k).
            threads: How many share the work; the GIL is released.

        Returns:
            All outputs of one state per row, shape (n, size), newly allocated.
        """
        layout = self.layouts[kernel]
        data = np.ascontiguousarray(inputs, self.variant.dtype)
        count = len(data)
        out = np.empty((count, layout.size - layout.input_size), self.variant.dtype)
        if not self._functions:  # without a compiler: one by one
            bound = self.bind(kernel)
            for row, result in zip(data, out, strict=True):
                bound.buffer[: layout.input_size] = row
                bound.call()
                result[:] = bound.buffer[layout.input_size :]
            return out
        function = self._functions[kernel]
        # whole blocks of lanes, so that the result does not depend on the number of threads
        lanes = self.variant.lanes
        blocks = -(-count // lanes)
        share = -(-blocks // max(threads, 1)) * lanes
        starts = range(0, count, share) if count else range(0)

        def work(start: int) -> None:
            stop = min(start + share, count)
            function(
                ctypes.c_void_p(data[start:stop].ctypes.data),
                ctypes.c_void_p(out[start:stop].ctypes.data),
                ctypes.c_longlong(stop - start),
            )

        if len(starts) > 1:
            with ThreadPoolExecutor(len(starts)) as pool:
                list(pool.map(work, starts))
        elif count:
            work(0)
        return out
