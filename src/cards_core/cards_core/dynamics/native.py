"""Native code: generate C from kernels, compile it, cache it, load it, call it through ctypes.

A compiled model is a folder of the user's cache, named by a hash of everything it depends on
(robot, generator sources, CPU, flags), with ``model.so`` and ``model.json`` (layout of the
buffers and a checksum of the library). Loading needs neither CasADi nor a compiler.

Each kernel becomes ``void cards_<name>(double *io)`` on one contiguous buffer of inputs and then
outputs: the caller keeps NumPy views into the buffer, so a call costs one C function call.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cards_core.errors import CompilationError
from cards_core.typing import Array

if TYPE_CHECKING:
    from cards_core.dynamics.symbolic import Kernel

COMPILE_TIMEOUT = 1800.0
"""Longest time [s] the C compiler may take."""

LARGE_SOURCE = 400_000
"""Characters of C above which -O1 is used: gcc's time grows faster than the code."""


@dataclass(frozen=True)
class Slot:
    """One input or output of a kernel: its place in the buffer and its shape."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """Buffer layout of a kernel."""

    kernel: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @property
    def size(self) -> int:
        """Length of the buffer in doubles."""
        slots = self.inputs + self.outputs
        return max((slot.stop for slot in slots), default=0)


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


class BoundKernel:
    """A kernel with its own buffer.

    Attributes:
        inputs, outputs: Name to NumPy view into the buffer; write inputs, call, read outputs.
    """

    def __init__(self, layout: Layout, bind: Callable[[Array], Callable[[], None]]) -> None:
        self._buffer = np.zeros(max(layout.size, 1))
        self.inputs = {s.name: self._view(s) for s in layout.inputs}
        self.outputs = {s.name: self._view(s) for s in layout.outputs}
        self.call: Callable[[], None] = bind(self._buffer)

    def _view(self, slot: Slot) -> Array:
        return self._buffer[slot.start : slot.stop].reshape(slot.shape)


@dataclass(frozen=True)
class BuildReport:
    """How a compiled model came to be.

    Attributes:
        path: Folder in the cache; None when CasADi evaluates instead.
        cached: True if nothing had to be compiled.
        seconds: Time for generation, compilation and loading, [s].
        instructions: Number of scalar operations of all kernels (0 if loaded from the cache).
    """

    path: Path | None
    cached: bool
    seconds: float
    instructions: int = 0


class NativeModel:
    """A loaded set of kernels.

    Attributes:
        layouts: Kernel name to buffer layout.
        report: How it was made.
    """

    def __init__(
        self,
        layouts: dict[str, Layout],
        binders: dict[str, Callable[[Array], Callable[[], None]]],
        report: BuildReport,
    ) -> None:
        self.layouts = layouts
        self._binders = binders
        self.report = report

    def bind(self, kernel: str) -> BoundKernel:
        """Return a kernel with a buffer of its own."""
        return BoundKernel(self.layouts[kernel], self._binders[kernel])


def cache_folder() -> Path:
    """Return the folder of compiled models: ``$CARDS_CACHE``, else the user's cache folder."""
    if folder := os.environ.get("CARDS_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cards"


def find_compiler() -> str | None:
    """Return the C compiler: ``$CC``, else cc, gcc or clang on PATH, else None."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    return None


def _source_digest() -> bytes:
    """Digest of the modules that decide what the generated code computes."""
    core = Path(__file__).parents[1]
    names = (
        "dynamics/native.py",
        "dynamics/symbolic.py",
        "kinematics/fingerprint.py",
        "kinematics/paths.py",
        "kinematics/tree.py",
        "muscles/actuators/arithmetic.py",
        "muscles/actuators/bank.py",
        "muscles/actuators/cable.py",
        "muscles/actuators/hill.py",
        "muscles/actuators/hill_curves.py",
        "muscles/actuators/model.py",
        "muscles/actuators/pneumatic.py",
        "muscles/actuators/series_elastic.py",
        "muscles/actuators/springs.py",
        "muscles/actuators/symbolic.py",
        "muscles/actuators/thermal.py",
        "muscles/command.py",
        "muscles/layout.py",
        "muscles/symbolic.py",
        "muscles/wrapping/circle.py",
        "muscles/wrapping/closed_symbolic.py",
        "muscles/wrapping/contact.py",
        "muscles/wrapping/cylinder.py",
        "muscles/wrapping/geodesic.py",
        "muscles/wrapping/mesh_file.py",
        "muscles/wrapping/mesh_hull.py",
        "muscles/wrapping/mesh_surface.py",
        "muscles/wrapping/native/chains.c",
        "muscles/wrapping/native/geodesics.c",
        "muscles/wrapping/native/surfaces.c",
        "muscles/wrapping/native/ways.c",
        "muscles/wrapping/native_source.py",
        "muscles/wrapping/problem.py",
        "muscles/wrapping/pulley.py",
        "muscles/wrapping/sphere.py",
        "muscles/wrapping/surfaces.py",
        "muscles/wrapping/ways.py",
        "spatial.py",
    )
    return hashlib.sha256(b"".join((core / name).read_bytes() for name in names)).digest()


def model_key(content: bytes) -> str:
    """Return the cache key of a model: a hash of its content, our sources, the CPU and CFLAGS.

    The compiler does not count: a machine that has none can use what another one compiled.
    """
    digest = hashlib.sha256(content)
    digest.update(_source_digest())
    digest.update(f"{platform.machine()} {_cpu_flags()} {os.environ.get('CFLAGS', '')}".encode())
    return digest.hexdigest()[:32]


def _cpu_flags() -> str:
    """CPU features, because -march=native code must not move to a lesser machine."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return hashlib.sha256(line.encode()).hexdigest()
    except OSError:
        pass
    return platform.processor()


def load_or_build(
    content: bytes, kernels: Callable[[], Sequence[Kernel | SourceKernel]]
) -> NativeModel:
    """Load a model from the cache, or generate, compile and store it.

    Several processes may do this at once: each builds in its own folder and the rename is atomic.
    A cached model whose checksums are wrong is built again. Where the cache cannot be written the
    model is built in a temporary folder, with a warning; where there is no compiler CasADi
    evaluates it, with a warning.

    Args:
        content: Bytes that identify the model, e.g. a canonical form of the robot.
        kernels: Makes the expressions; only called when something must be compiled.

    Raises:
        CompilationError: The compiler refused the code, with its message, or the library cannot
            be loaded, with the reason.
    """
    start = time.perf_counter()
    problem = ""
    try:
        folder = cache_folder() / model_key(content)
        if isinstance(loaded := _load(folder, start), NativeModel):
            return loaded
    except (OSError, RuntimeError) as error:
        problem = str(error)
    compiler = find_compiler()
    if compiler is None:
        from cards_core.dynamics.interpreted import interpret

        return interpret(kernels(), start)
    expressions = kernels()
    if not problem:
        try:
            return _build_and_load(folder, expressions, compiler, start)
        except OSError as error:
            problem = str(error)
    warnings.warn(
        f"the cache of compiled models cannot be used ({problem}): compiling for this process "
        "only. Let CARDS_CACHE name a folder that can be written.",
        RuntimeWarning,
        stacklevel=3,
    )
    with tempfile.TemporaryDirectory(prefix="cards-") as scratch:
        # a loaded library stays mapped when its file is gone
        return _build_and_load(Path(scratch) / "model", expressions, compiler, start)


def _build_and_load(
    folder: Path, kernels: Sequence[Kernel | SourceKernel], compiler: str, start: float
) -> NativeModel:
    """Build a model into ``folder`` and load it.

    Raises:
        CompilationError: See `load_or_build`.
        OSError: The folder cannot be written.
    """
    reason = ""
    for _ in range(3):  # another process may be replacing the folder just now
        instructions = _build(folder, kernels, compiler)
        loaded = _load(folder, start, instructions)
        if isinstance(loaded, NativeModel):
            return loaded
        reason = loaded
    raise CompilationError(
        f"the model just compiled in {folder} cannot be loaded: {reason} (if programs may not run "
        "from there, let CARDS_CACHE name another folder)"
    )


def _load(folder: Path, start: float, instructions: int | None = None) -> NativeModel | str:
    """Load a cached model; return the reason if it is absent or damaged."""
    try:
        meta = json.loads((folder / "model.json").read_text())
        if meta["layout_sha256"] != _layout_digest(meta["kernels"]):
            return "model.json is damaged"
        library_bytes = (folder / "model.so").read_bytes()
        if hashlib.sha256(library_bytes).hexdigest() != meta["sha256"]:
            return "model.so is damaged"
        # PyDLL keeps the GIL: releasing and taking it costs more than a call
        library = ctypes.PyDLL(str(folder / "model.so"))
        layouts = {name: _layout(name, entry) for name, entry in meta["kernels"].items()}
        binders = {
            name: _native_binder(library, entry["symbol"])
            for name, entry in meta["kernels"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return str(error)
    seconds = time.perf_counter() - start
    report = BuildReport(folder, instructions is None, seconds, instructions or 0)
    return NativeModel(layouts, binders, report)


def _layout_digest(kernels: dict[str, Any]) -> str:
    """Checksum of the layouts: a wrong one would let the library write past a buffer."""
    return hashlib.sha256(json.dumps(kernels, sort_keys=True).encode()).hexdigest()


def _native_binder(library: Any, symbol: str) -> Callable[[Array], Callable[[], None]]:
    function = library[symbol]
    function.restype = None

    def bind(buffer: Array) -> Callable[[], None]:
        pointer = ctypes.c_void_p(buffer.ctypes.data)

        def call(function: Any = function, pointer: Any = pointer, keep: Array = buffer) -> None:
            function(pointer)

        return call

    return bind


def _layout(name: str, entry: dict[str, Any]) -> Layout:
    slots: list[list[Slot]] = [[], []]
    position = 0
    for side, key in enumerate(("inputs", "outputs")):
        for slot, shape in entry[key]:
            size = int(np.prod(shape, dtype=int))
            slots[side].append(Slot(slot, tuple(shape), position, position + size))
            position += size
    return Layout(name, tuple(slots[0]), tuple(slots[1]))


def describe(kernel: Kernel | SourceKernel, symbol: str) -> dict[str, Any]:
    """Return the JSON form of a kernel's layout."""
    return {
        "symbol": symbol,
        "inputs": [[slot[0], list(slot[1])] for slot in kernel.inputs],
        "outputs": [[slot[0], list(slot[1])] for slot in kernel.outputs],
    }


def layout_of(kernel: Kernel | SourceKernel) -> Layout:
    """Return the buffer layout of a kernel."""
    return _layout(kernel.name, describe(kernel, ""))


def kernel_function(kernel: Kernel, symbol: str) -> Any:
    """Return a CasADi function with dense, common-subexpression-free outputs."""
    import casadi as ca

    outputs = [ca.densify(ca.vec(expr)) for _, _, expr in kernel.outputs]
    return ca.Function(symbol, [expr for _, _, expr in kernel.inputs], ca.cse(outputs))


def _build(folder: Path, kernels: Sequence[Kernel | SourceKernel], compiler: str) -> int:
    """Compile kernels into ``folder``; return the number of scalar operations."""
    import casadi as ca

    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
    try:
        generator = ca.CodeGenerator("model.c", {"with_header": False})
        wrappers = ["#include <string.h>"]
        meta: dict[str, Any] = {"kernels": {}}
        instructions = 0
        for number, kernel in enumerate(kernels):
            if isinstance(kernel, SourceKernel):
                wrappers.append(kernel.source.replace("{symbol}", f"kernel{number}"))
            else:
                function = kernel_function(kernel, f"kernel{number}")
                instructions += function.n_instructions()
                generator.add(function)
            wrappers.append(_wrapper(layout_of(kernel), f"kernel{number}"))
            meta["kernels"][kernel.name] = describe(kernel, f"cards_kernel{number}")
        source = generator.dump() + "\n" + "\n".join(wrappers)
        (work / "model.c").write_text(source)
        _compile(work, source, compiler)
        library = (work / "model.so").read_bytes()
        meta["sha256"] = hashlib.sha256(library).hexdigest()
        meta["layout_sha256"] = _layout_digest(meta["kernels"])
        (work / "model.json").write_text(json.dumps(meta))
        _publish(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return instructions


def _wrapper(layout: Layout, symbol: str) -> str:
    """C function that points CasADi's argument lists into the buffer."""
    arguments = ", ".join(f"io + {slot.start}" for slot in layout.inputs) or "0"
    results = ", ".join(f"io + {slot.start}" for slot in layout.outputs) or "0"
    return (
        f"void cards_{symbol}(double *io) {{\n"
        f"  const casadi_real *arg[] = {{{arguments}}};\n"
        f"  casadi_real *res[] = {{{results}}};\n"
        f"  {symbol}(arg, res, 0, 0, 0);\n}}\n"
    )


def _compile(work: Path, source: str, compiler: str) -> None:
    level = "-O1" if len(source) > LARGE_SOURCE else "-O3"
    # no -ffast-math: NaN must stay NaN, and results must not depend on the compiler's mood
    flags = [level, "-march=native", "-fno-math-errno", "-fPIC", "-shared", "-w"]
    command = [compiler, *flags, *os.environ.get("CFLAGS", "").split()]
    command += ["-o", "model.so", "model.c", "-lm"]
    try:
        result = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=COMPILE_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationError(f"{' '.join(command)}: {error}") from error
    if result.returncode:
        raise CompilationError(f"{' '.join(command)} failed:\n{result.stderr.strip()[:2000]}")


def _publish(work: Path, folder: Path) -> None:
    """Move a finished build into place, unless somebody was quicker; replace a damaged one."""
    for _ in range(10):
        try:
            os.rename(work, folder)
            return
        except OSError:
            if not folder.exists():
                raise
        if isinstance(_load(folder, 0.0), NativeModel):
            return
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with contextlib.suppress(OSError):
            os.rename(folder, old / "model")
        shutil.rmtree(old, ignore_errors=True)
    raise CompilationError(f"cannot replace {folder}: other processes keep writing it")
