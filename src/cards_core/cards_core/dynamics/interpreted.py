"""The way without a C compiler: CasADi evaluates the same kernels in its virtual machine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cards_core.dynamics.native import (
    BuildReport,
    Layout,
    NativeModel,
    SourceKernel,
    kernel_function,
    layout_of,
)
from cards_core.errors import CompilationError
from cards_core.typing import Array

if TYPE_CHECKING:
    from cards_core.dynamics.symbolic import Kernel


def interpret(kernels: Sequence[Kernel | SourceKernel], start: float) -> NativeModel:
    """Return a model evaluated by CasADi, with one warning.

    Args:
        kernels: What to evaluate.
        start: ``time.perf_counter()`` at the beginning, for the report.

    Raises:
        CompilationError: A kernel is written in C.
    """
    expressions: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel, SourceKernel):
            raise CompilationError(f"'{kernel.name}' is written in C and needs a C compiler")
        expressions.append(kernel)
    warnings.warn(
        "no C compiler found ($CC, cc, gcc, clang): CasADi evaluates the model, about 15 times "
        "slower. Install one, e.g. 'apt install gcc'.",
        RuntimeWarning,
        stacklevel=3,
    )
    layouts: dict[str, Layout] = {}
    binders: dict[str, Callable[[Array], Callable[[], None]]] = {}
    instructions = 0
    for number, kernel in enumerate(expressions):
        function = kernel_function(kernel, f"kernel{number}")
        instructions += function.n_instructions()
        layouts[kernel.name] = layout_of(kernel)
        binders[kernel.name] = _binder(function, layouts[kernel.name])
    report = BuildReport(None, False, time.perf_counter() - start, instructions)
    return NativeModel(layouts, binders, report)


def _binder(function: Any, layout: Layout) -> Callable[[Array], Callable[[], None]]:
    def bind(buffer: Array) -> Callable[[], None]:
        casadi_buffer, evaluate = function.buffer()
        for index, slot in enumerate(layout.inputs):
            casadi_buffer.set_arg(index, buffer[slot.start : slot.stop].data)
        for index, slot in enumerate(layout.outputs):
            casadi_buffer.set_res(index, buffer[slot.start : slot.stop].data)

        def call(keep: Any = (casadi_buffer, buffer)) -> None:
            evaluate()

        return call

    return bind
