"""Native code: generate C from kernels, compile it, cache it, load it, call it through ctypes.

A compiled model is a folder of the user's cache, named by a hash of everything it depends on
(robot, generator sources, CPU, flags), with ``model.so`` and ``model.json`` (layout of the
buffers and a checksum of the library). Loading needs neither CasADi nor a compiler.

A kernel is compiled in one of two forms. For one state at a time it is ``void f(double *io)`` on
one contiguous buffer of inputs and then outputs: the caller keeps NumPy views into the buffer, so
a call costs one C function call. For batches it works on rows of states, several side by side.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.codegen.cache import build_folder, model_key, publish, trusted_cache
from cards_core.codegen.emit import emit_function, emit_repeated, entry_point, preamble
from cards_core.codegen.kernel import (
    AnyKernel,
    Kernel,
    Layout,
    RepeatedKernel,
    SourceKernel,
    describe,
    kernel_function,
    layout_of,
    make_layout,
)
from cards_core.codegen.model import (
    ONE_STATE,
    BuildReport,
    NativeModel,
    Numbers,
    Variant,
)
from cards_core.codegen.toolchain import NO_COMPILER, compile_shared, find_compiler
from cards_core.errors import CompilationError


def interpret(kernels: Sequence[AnyKernel], start: float, variant: Variant) -> NativeModel:
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
        expressions.append(kernel.unrolled() if isinstance(kernel, RepeatedKernel) else kernel)
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


Progress = Callable[[str, float], None]
"""Called with what is being done and the done fraction, 0..1."""


def load_or_build(
    content: bytes,
    kernels: Callable[[], Sequence[AnyKernel]],
    variant: Variant = ONE_STATE,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> NativeModel:
    """Load a model from the cache, or generate, compile and store it.

    Several processes may do this at once: each builds in its own folder and the rename is atomic.
    A cached model whose checksums are wrong is built again. Where the cache cannot be written the
    model is built in a temporary folder, with a warning; where there is no compiler CasADi
    evaluates it, with a warning.

    Args:
        content: Bytes that identify the model, e.g. a canonical form of the robot.
        kernels: Makes the expressions; only called when something must be compiled.
        variant: Form of the code.
        force: Build although the cache has it.
        progress: Told what is being done.

    Raises:
        CompilationError: The compiler refused the code, with its message, or the library cannot
            be loaded, with the reason.
    """
    start = time.perf_counter()
    tell = progress or (lambda what, done: None)
    problem = ""
    try:
        folder = trusted_cache(model_key(content + variant.key()))
        if not force and isinstance(loaded := _load(folder, start, variant), NativeModel):
            tell("loaded from the cache", 1.0)
            return loaded
    except (OSError, RuntimeError) as error:
        problem = str(error)
    compiler = find_compiler()
    tell("expressions", 0.0)
    if compiler is None:
        return interpret(kernels(), start, variant)
    expressions = kernels()
    phases = {"expressions": time.perf_counter() - start}
    build = _Builder(expressions, compiler, variant, phases, tell)
    if not problem:
        try:
            return build.into(folder, start, force=force)
        except OSError as error:
            problem = str(error)
    warnings.warn(
        f"the cache of compiled models cannot be used ({problem}): compiling for this process "
        "only. Let CARDS_CACHE name a folder that you can write, and nobody else.",
        RuntimeWarning,
        stacklevel=3,
    )
    with tempfile.TemporaryDirectory(prefix="cards-") as scratch:
        # a loaded library stays mapped when its file is gone
        return build.into(Path(scratch) / "model", start)


class _Builder:
    """Turns kernels into a folder of the cache."""

    def __init__(
        self,
        kernels: Sequence[AnyKernel],
        compiler: str,
        variant: Variant,
        phases: dict[str, float],
        tell: Progress,
    ) -> None:
        self._kernels = kernels
        self._compiler = compiler
        self._variant = variant
        self._phases = phases
        self._tell = tell

    def into(self, folder: Path, start: float, *, force: bool = False) -> NativeModel:
        """Build a model into ``folder`` and load it.

        Raises:
            CompilationError: See `load_or_build`.
            OSError: The folder cannot be written.
        """
        reason = ""
        for _ in range(3):  # another process may be replacing the folder just now
            self._build(folder, force=force)
            loaded = _load(folder, start, self._variant, built=True)
            if isinstance(loaded, NativeModel):
                self._tell("done", 1.0)
                return loaded
            reason = loaded
        raise CompilationError(
            f"the model just compiled in {folder} cannot be loaded: {reason} (if programs may not "
            "run from there, let CARDS_CACHE name another folder)"
        )

    def _build(self, folder: Path, *, force: bool) -> None:
        with build_folder(folder.parent) as work:
            begin = time.perf_counter()
            self._tell("generating C", 0.2)
            sources, meta, longest = self._generate()
            self._phases["generate"] = time.perf_counter() - begin
            self._tell("compiling", 0.4)
            begin = time.perf_counter()
            # C written by hand has loops, which gain from more; straight expressions do not, and
            # large ones gain from less than usual only where they are computed side by side
            loops = any(isinstance(kernel, SourceKernel) for kernel in self._kernels)
            level = "-O3" if loops else "-O2" if self._variant.batch else None
            compile_shared(work, sources, self._compiler, statements=longest, level=level)
            self._phases["compile"] = time.perf_counter() - begin
            library = (work / "model.so").read_bytes()
            meta["sha256"] = hashlib.sha256(library).hexdigest()
            meta["layout_sha256"] = _layout_digest(meta["kernels"])
            meta["phases"] = self._phases
            (work / "model.json").write_text(json.dumps(meta))

            def good(place: Path) -> bool:
                return not force and isinstance(_load(place, 0.0, self._variant), NativeModel)

            publish(work, folder, good)

    def _generate(self) -> tuple[list[str], dict[str, Any], int]:
        """Return C files, the description for ``model.json``, and the size of the model."""
        variant = self._variant
        head = "#include <string.h>\n"
        if not all(isinstance(kernel, SourceKernel) for kernel in self._kernels):
            head += preamble(variant.lanes, variant.precision)
        main: list[str] = [head]
        parts: list[str] = []
        meta: dict[str, Any] = {"kernels": {}, "instructions": {}}
        for number, kernel in enumerate(self._kernels):
            symbol, layout = f"kernel{number}", layout_of(kernel)
            meta["kernels"][kernel.name] = describe(kernel, f"cards_{symbol}")
            meta["instructions"][kernel.name] = 0
            if isinstance(kernel, SourceKernel):
                main.append(kernel.source.replace("{symbol}", symbol))
                main.append(_source_entry(layout, symbol))
                continue
            if isinstance(kernel, RepeatedKernel):
                emitted, size = emit_repeated(kernel, symbol, simplify=variant.simplify)
            else:
                function = kernel_function(kernel, symbol, simplify=variant.simplify)
                emitted, size = emit_function(function, symbol, layout), function.n_instructions()
            meta["instructions"][kernel.name] = size
            parts += emitted.parts
            main += [emitted.main, entry_point(symbol, layout, variant.lanes)]
        # as many files as can be compiled at once, each with its share of the parts
        files = ["\n".join(main)]
        count = min(os.cpu_count() or 1, len(parts))
        files += ["\n".join([head, *parts[i::count]]) for i in range(count)]
        return files, meta, sum(meta["instructions"].values())


def _source_entry(layout: Layout, symbol: str) -> str:
    """C function that points the argument lists of a kernel written in C into the buffer."""
    arguments = ", ".join(f"io + {slot.start}" for slot in layout.inputs) or "0"
    results = ", ".join(f"io + {slot.start}" for slot in layout.outputs) or "0"
    return (
        f"void cards_{symbol}(double *io) {{\n"
        f"  const double *arg[] = {{{arguments}}};\n"
        f"  double *res[] = {{{results}}};\n"
        f"  {symbol}(arg, res, 0, 0, 0);\n}}\n"
    )


def _load(
    folder: Path, start: float, variant: Variant, *, built: bool = False
) -> NativeModel | str:
    """Load a cached model; return the reason if it is absent or damaged."""
    try:
        meta = json.loads((folder / "model.json").read_text())
        if meta["layout_sha256"] != _layout_digest(meta["kernels"]):
            return "model.json is damaged"
        library_bytes = (folder / "model.so").read_bytes()
        if hashlib.sha256(library_bytes).hexdigest() != meta["sha256"]:
            return "model.so is damaged"
        # PyDLL keeps the GIL: releasing and taking it costs more than a call with one state
        loader = ctypes.CDLL if variant.batch else ctypes.PyDLL
        library = loader(str(folder / "model.so"))
        layouts = {name: make_layout(name, entry) for name, entry in meta["kernels"].items()}
        functions = {name: library[entry["symbol"]] for name, entry in meta["kernels"].items()}
        kernels = {name: int(count) for name, count in meta["instructions"].items()}
        phases = {name: float(seconds) for name, seconds in meta["phases"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return str(error)
    for function in functions.values():
        function.restype = None
    report = BuildReport(
        path=folder,
        cached=not built,
        seconds=time.perf_counter() - start,
        instructions=sum(kernels.values()),
        phases=phases,
        bytes=len(library_bytes),
        kernels=kernels,
    )
    if variant.batch:
        return NativeModel(layouts, {}, report, variant, functions)
    binders = {name: _native_binder(function) for name, function in functions.items()}
    addresses = {
        name: int(ctypes.cast(function, ctypes.c_void_p).value or 0)
        for name, function in functions.items()
    }
    return NativeModel(layouts, binders, report, variant, addresses=addresses)


def _layout_digest(kernels: dict[str, Any]) -> str:
    """Checksum of the layouts: a wrong one would let the library write past a buffer."""
    return hashlib.sha256(json.dumps(kernels, sort_keys=True).encode()).hexdigest()


def _native_binder(function: Any) -> Callable[[Numbers], Callable[[], None]]:
    def bind(buffer: Numbers) -> Callable[[], None]:
        pointer = ctypes.c_void_p(buffer.ctypes.data)

        def call(function: Any = function, pointer: Any = pointer, keep: Any = buffer) -> None:
            function(pointer)

        return call

    return bind
