"""The C compiler: which one, with which flags, on which CPU."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cards_core.errors import CompilationError

COMPILE_TIMEOUT = 1800.0
"""Longest time [s] the C compiler may take."""

LARGE = 15_000
"""Statements above which -O1 is used: GCC's time grows faster than the code."""

WALK = "--param=sccvn-max-alias-queries-per-access=100"
"""How far GCC looks back for what a value read from memory may be, in stores; its own 1000 stores
take half its time on a long model, whose functions store all they compute. Clang ignores it."""

NO_COMPILER = "no C compiler found ($CC, cc, gcc, clang)"


def find_compiler() -> str | None:
    """Return the C compiler: ``$CC``, else cc, gcc or clang on PATH, else None."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    return None


def target() -> str:
    """Return what decides about the machine code: the CPU and ``$CFLAGS``.

    The compiler does not count: a machine that has none can use what another one compiled.
    """
    return f"{platform.machine()} {_cpu_flags()} {os.environ.get('CFLAGS', '')}"


def _cpu_flags() -> str:
    """CPU features, because -march=native code must not move to a lesser machine."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return hashlib.sha256(line.encode()).hexdigest()
    except OSError:
        pass
    return platform.processor()


def compile_shared(
    work: Path,
    sources: Sequence[str],
    compiler: str,
    *,
    statements: int = 0,
    level: str | None = None,
) -> None:
    """Compile C texts into ``model.so`` in the folder ``work``.

    Args:
        work: Folder; the texts are written there too.
        sources: One or more files, compiled at the same time.
        compiler: Path of the compiler.
        statements: How many statements the model has; many get less optimisation.
        level: Optimisation instead of the one chosen by size, e.g. ``-O2``.

    Raises:
        CompilationError: The compiler refused it or took too long; with its words.
        OSError: The folder cannot be written.
    """
    level = level or ("-O1" if statements > LARGE else "-O2")
    # no -ffast-math: NaN must stay NaN, and results must not depend on the compiler's mood
    flags = [level, WALK, "-march=native", "-fno-math-errno", "-fPIC", "-w"]
    flags += os.environ.get("CFLAGS", "").split()
    names = [f"model{number or ''}.c" for number in range(len(sources))]
    for name, source in zip(names, sources, strict=True):
        (work / name).write_text(source)
    if len(names) == 1:
        run_tool([compiler, *flags, "-shared", "-o", "model.so", names[0], "-lm"], work)
        return
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: run_tool([compiler, *flags, "-c", name], work), names))
    objects = [name.replace(".c", ".o") for name in names]
    run_tool([compiler, *flags, "-shared", "-o", "model.so", *objects, "-lm"], work)
    for name in objects:
        (work / name).unlink()


def run_tool(command: Sequence[str], work: Path) -> str:
    """Run a compiler or another tool in a folder and return what it printed.

    Args:
        command: Program and arguments.
        work: The folder.

    Raises:
        CompilationError: It cannot be run, took too long or failed; with its words.
    """
    try:
        result = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=COMPILE_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationError(f"{' '.join(command)}: {error}") from error
    if result.returncode:
        raise CompilationError(f"{' '.join(command)} failed:\n{result.stderr.strip()[:2000]}")
    return result.stdout
