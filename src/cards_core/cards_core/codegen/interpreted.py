"""The way without a C compiler: CasADi evaluates the same kernels in its virtual machine."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cards_core.codegen.kernel import Kernel, Layout, SourceKernel, kernel_function, layout_of
from cards_core.codegen.model import BuildReport, NativeModel, Numbers, Variant
from cards_core.codegen.toolchain import NO_COMPILER
from cards_core.errors import CompilationError


def interpret(
    kernels: Sequence[Kernel | SourceKernel], start: float, variant: Variant
) -> NativeModel:
    """Return a model evaluated by CasADi, with one warning.

    Args:
        kernels: What to evaluate.
        start: ``time.perf_counter()`` at the beginning, for the report.
        variant: What was asked for; batches are evaluated one by one.

    Raises:
        CompilationError: A kernel is written in C.
    """
    expressions: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel, SourceKernel):
            raise CompilationError(f"'{kernel.name}' is written in C and needs a C compiler")
        expressions.append(kernel)
    warnings.warn(
        f"{NO_COMPILER}: CasADi evaluates the model, about 15 times "
        "slower. Install one, e.g. 'apt install gcc'.",
        RuntimeWarning,
        stacklevel=3,
    )
    layouts: dict[str, Layout] = {}
    binders: dict[str, Callable[[Numbers], Callable[[], None]]] = {}
    counts: dict[str, int] = {}
    for number, kernel in enumerate(expressions):
        function = kernel_function(kernel, f"kernel{number}", simplify=variant.simplify)
        counts[kernel.name] = function.n_instructions()
        layouts[kernel.name] = layout_of(kernel)
        binders[kernel.name] = _binder(function, layouts[kernel.name])
    seconds = time.perf_counter() - start
    report = BuildReport(None, False, seconds, sum(counts.values()), kernels=counts)
    return NativeModel(layouts, binders, report, variant)


def _binder(function: Any, layout: Layout) -> Callable[[Numbers], Callable[[], None]]:
    """Bind to CasADi's virtual machine, which knows double precision only."""

    def bind(buffer: Numbers) -> Callable[[], None]:
        casadi_buffer, evaluate = function.buffer()
        exact = buffer if buffer.dtype == np.float64 else np.zeros(len(buffer))
        for index, slot in enumerate(layout.inputs):
            casadi_buffer.set_arg(index, exact[slot.start : slot.stop].data)
        for index, slot in enumerate(layout.outputs):
            casadi_buffer.set_res(index, exact[slot.start : slot.stop].data)

        def call(keep: Any = (casadi_buffer, exact)) -> None:
            if exact is not buffer:
                exact[: layout.input_size] = buffer[: layout.input_size]
            evaluate()
            if exact is not buffer:
                buffer[layout.input_size :] = exact[layout.input_size :]

        return call

    return bind
