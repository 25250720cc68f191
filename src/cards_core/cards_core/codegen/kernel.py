"""What is compiled: kernels, functions with named arrays as inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Expr = Any
"""A CasADi SX expression (casadi has no type information)."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function to generate: named inputs and outputs, each with its NumPy shape.

    Attributes:
        inputs, outputs: (name, shape, expression); matrices are given transposed, because CasADi
            stores columns first and NumPy rows first.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...], Expr], ...]
    outputs: tuple[tuple[str, tuple[int, ...], Expr], ...]


@dataclass(frozen=True, eq=False)
class SourceKernel:
    """One function that is written in C, for what is no expression: loops and decisions.

    Attributes:
        inputs, outputs: (name, shape). Outputs keep their values from call to call.
        source: Defines ``int {symbol}(const double **arg, double **res, long long *iw, double *w,
            int mem)``, with ``{symbol}`` as it stands here; names of kernels of the same model
            share one file.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    source: str


@dataclass(frozen=True, eq=False)
class Repeated:
    """A function that a kernel applies to each of n elements, in a loop.

    Attributes:
        inputs, constants, outputs: Expressions of one element: vectors of k and c symbols, and of
            r results.
        reads: Which of the kernel's input numbers are an element's inputs, shape (n, k).
        values: Its constants, shape (n, c).
        writes: Which of the kernel's output numbers its outputs are, shape (n, r).
    """

    inputs: Expr
    constants: Expr
    outputs: Expr
    reads: npt.NDArray[np.intp]
    values: npt.NDArray[np.float64]
    writes: npt.NDArray[np.intp]

    def kernel(self, name: str) -> Kernel:
        """Return the function of one element: inputs, then constants, in one vector."""
        symbols = casadi_module().vertcat(self.inputs, self.constants)
        inputs = (("x", symbols.shape[:1], symbols),)
        return Kernel(name, inputs, (("y", self.outputs.shape[:1], self.outputs),))


@dataclass(frozen=True, eq=False)
class RepeatedKernel:
    """One function that does the same for many elements: its code does not grow with them.

    Attributes:
        inputs, outputs: (name, shape).
        parts: Together they write every output.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    parts: tuple[Repeated, ...]

    def unrolled(self) -> Kernel:
        """Return the same element by element, for CasADi's virtual machine."""
        ca = casadi_module()
        inputs = [(name, shape, ca.SX.sym(name, *shape)) for name, shape in self.inputs]
        given = ca.vertcat(*(symbols for _, _, symbols in inputs))
        sizes = [int(np.prod(shape, dtype=int)) for _, shape in self.outputs]
        found = ca.SX.zeros(sum(sizes))
        for part in self.parts:
            function = kernel_function(part.kernel(self.name), "part")
            for reads, values, writes in zip(part.reads, part.values, part.writes, strict=True):
                result = function(ca.vertcat(given[reads.tolist()], values))
                for i, place in enumerate(writes.tolist()):
                    found[place] = result[i]
        ends = np.cumsum(sizes)
        outputs = [
            (name, shape, found[int(end) - size : int(end)])
            for (name, shape), size, end in zip(self.outputs, sizes, ends, strict=True)
        ]
        return Kernel(self.name, tuple(inputs), tuple(outputs))


AnyKernel: TypeAlias = Kernel | SourceKernel | RepeatedKernel


@dataclass(frozen=True)
class Slot:
    """One input or output of a kernel: its place in the buffer and its shape."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """Buffer layout of a kernel: inputs, then outputs, without gaps."""

    kernel: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @property
    def input_size(self) -> int:
        """Number of values that go in."""
        return sum(slot.stop - slot.start for slot in self.inputs)

    @property
    def size(self) -> int:
        """Length of the buffer in numbers."""
        return self.input_size + sum(slot.stop - slot.start for slot in self.outputs)


def make_layout(name: str, entry: dict[str, Any]) -> Layout:
    """Return the layout that `describe` put into JSON."""
    slots: list[list[Slot]] = [[], []]
    position = 0
    for side, key in enumerate(("inputs", "outputs")):
        for slot, shape in entry[key]:
            size = int(np.prod(shape, dtype=int))
            slots[side].append(Slot(slot, tuple(shape), position, position + size))
            position += size
    return Layout(name, tuple(slots[0]), tuple(slots[1]))


def describe(kernel: AnyKernel, symbol: str) -> dict[str, Any]:
    """Return the JSON form of a kernel's layout."""
    return {
        "symbol": symbol,
        "inputs": [[slot[0], list(slot[1])] for slot in kernel.inputs],
        "outputs": [[slot[0], list(slot[1])] for slot in kernel.outputs],
    }


def layout_of(kernel: AnyKernel) -> Layout:
    """Return the buffer layout of a kernel."""
    return make_layout(kernel.name, describe(kernel, ""))


def casadi_module() -> ModuleType:
    """Return the package ``casadi``."""
    # it takes 0.3 s to import and is not needed when the code is cached
    import casadi

    module: ModuleType = casadi
    return module


def kernel_function(kernel: Kernel, symbol: str, *, simplify: bool = True) -> Any:
    """Return a CasADi function with dense outputs.

    Args:
        kernel: The expressions.
        symbol: Name of the function.
        simplify: Whether common subexpressions are computed once only.
    """
    ca = casadi_module()
    outputs: Any = [ca.densify(ca.vec(expr)) for _, _, expr in kernel.outputs]
    if simplify:
        outputs = ca.cse(outputs)
    return ca.Function(symbol, [expr for _, _, expr in kernel.inputs], outputs)
