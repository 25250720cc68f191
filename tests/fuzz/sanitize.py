"""Run tests with all C of CARDS compiled with the compiler's sanitizers; see README.md.

    python tests/fuzz/sanitize.py [--threads] [--cache FOLDER] [TEST ...]

Without tests: those of every library that is written in C. Ends as pytest does; what a sanitizer
finds ends the process at once, with its report.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

CORE = "src/cards_core/test"

TESTS = (
    f"{CORE}/analysis",
    f"{CORE}/body_image",
    f"{CORE}/codegen",
    f"{CORE}/control",
    f"{CORE}/embedded",
    f"{CORE}/estimation",
    f"{CORE}/muscles",
    f"{CORE}/optimize",
    f"{CORE}/paths",
    f"{CORE}/rods",
    f"{CORE}/tensegrity/test_obstruction.py",
    "src/cards_sim/test/test_native_steps.py",
    "src/cards_hardware/test/boards/test_serial_link.py",
    "src/cards_hardware/test/firmware_check",
)
"""Tests of what is written in C.

The threads of lines and the firmware have programs of their own under sanitizers:
``test_line_thread.py``, TSan too, and ``make -C firmware sanitize``.
"""

COMPILER = "gcc"
"""Its sanitizers are shared libraries that a Python that knows nothing of them can load first."""

KINDS = {
    False: ("-fsanitize=address,undefined,float-cast-overflow", ("asan",)),
    True: ("-fsanitize=thread", ("tsan",)),
}
"""By whether threads are looked at: option of the compiler, libraries to load first."""


def sanitizer_library(name: str) -> Path | None:
    """Return the compiler's library of a sanitizer; None if there is none."""
    if shutil.which(COMPILER) is None:
        return None
    done = subprocess.run(
        [COMPILER, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
    )
    path = Path(done.stdout.strip())
    return path.resolve() if path.is_absolute() and path.exists() else None


def environment(cache: Path, *, threads: bool = False) -> dict[str, str]:
    """Return the variables under which Python loads code with sanitizers.

    Args:
        cache: Folder for compiled code: it is of no use to others.
        threads: Look at threads, instead of memory and undefined behaviour.

    Raises:
        LookupError: There is no compiler, or it has no such library.
    """
    option, names = KINDS[threads]
    libraries = [sanitizer_library(name) for name in (*names, "stdc++")]
    if None in libraries:
        raise LookupError(f"{COMPILER} with lib{names[0]} is not on this machine")
    return {
        **os.environ,
        "CC": COMPILER,
        # -O0: of long expressions, more takes the sanitizers minutes
        # -Wno-error: of code with sanitizers, GCC warns where it has nothing to say otherwise
        "CFLAGS": f"-O0 -g1 -Wno-error -fno-omit-frame-pointer -fno-sanitize-recover=all {option}",
        "CARDS_CACHE": str(cache),
        # the second one is there for the exceptions of libraries that are loaded later
        "LD_PRELOAD": ":".join(map(str, libraries)),
        "PYTHONMALLOC": "malloc",  # else small objects are parts of blocks that nobody looks at
        # Python itself leaves memory behind at its end
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:report_bugs=1:ignore_noninstrumented_modules=1",
    }


def command(arguments: list[str], *, threads: bool = False) -> list[str]:
    """Return the command that runs Python with arguments."""
    python = [sys.executable, *arguments]
    # its place for shadow memory collides with addresses at random of newer kernels
    return ["setarch", "-R", *python] if threads else python


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(
        prog="tests/fuzz/sanitize.py",
        description="Run tests with all C compiled with the compiler's sanitizers.",
        epilog="example: python tests/fuzz/sanitize.py src/cards_core/test/rods -x",
    )
    parser.add_argument("--threads", action="store_true",
                        help="look at threads, not at memory and undefined behaviour")  # fmt: skip
    parser.add_argument("--cache", type=Path, help="folder for compiled code (default: none)")
    given, tests = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="cards-sanitize-") as scratch:
        try:
            variables = environment(given.cache or Path(scratch), threads=given.threads)
        except LookupError as error:
            print(f"sanitize.py: error: {error} (apt install gcc)", file=sys.stderr)
            return 2
        # pytest must leave file descriptors alone: a report ends the process before it shows any
        pytest = ("-m", "pytest", "-p", "no:cacheprovider", "--capture=sys")
        arguments = [*pytest, *(tests or TESTS)]
        line = command(arguments, threads=given.threads)
        return subprocess.run(line, cwd=CHECKOUT, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
