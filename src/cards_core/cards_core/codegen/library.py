"""C that does not depend on a robot: compiled once, cached, loaded with the GIL released."""

from __future__ import annotations

import ctypes
import hashlib
import tempfile
import warnings
from pathlib import Path

from cards_core.codegen.cache import build_folder, publish, trusted_cache
from cards_core.codegen.toolchain import NO_COMPILER, compile_shared, find_compiler, target
from cards_core.errors import CompilationError

PRODUCT = Path(__file__).with_name("product.c")
"""``add_product``, y += x W, for programs that multiply small matrices."""


def load_library(name: str, source: str) -> ctypes.CDLL:
    """Compile C text unless the cache has it, and load it.

    Args:
        name: Shown in messages.
        source: The whole program text; its hash is the key of the cache.

    Returns:
        The library; its functions run without the GIL.

    Raises:
        CompilationError: There is no C compiler, or it refused the text.
    """
    key = hashlib.sha256(f"library {target()} {source}".encode()).hexdigest()[:32]
    folder, problem = None, ""
    try:
        folder = trusted_cache(key)
    except (OSError, RuntimeError) as error:
        problem = str(error)
    if folder is not None and _good(folder):
        return ctypes.CDLL(str(folder / "model.so"))
    compiler = find_compiler()
    if compiler is None:
        raise CompilationError(
            f"{NO_COMPILER}, and {name} is written in C; install one, e.g. 'apt install gcc'"
        )
    if folder is not None:
        try:
            _build(folder, source, compiler)
            return ctypes.CDLL(str(folder / "model.so"))
        except OSError as error:
            problem = str(error)
    warnings.warn(
        f"the cache of compiled code cannot be used ({problem}): compiling for this process "
        "only. Let CARDS_CACHE name a folder that you can write, and nobody else.",
        RuntimeWarning,
        stacklevel=2,
    )
    with tempfile.TemporaryDirectory(prefix="cards-") as scratch:
        # a loaded library stays mapped when its file is gone
        _build(Path(scratch) / "model", source, compiler)
        return ctypes.CDLL(str(Path(scratch) / "model" / "model.so"))


def _build(folder: Path, source: str, compiler: str) -> None:
    with build_folder(folder.parent) as work:
        compile_shared(work, [source], compiler, level="-O3")
        digest = hashlib.sha256((work / "model.so").read_bytes()).hexdigest()
        (work / "model.sha256").write_text(digest)
        publish(work, folder, _good)


def _good(folder: Path) -> bool:
    try:
        digest = hashlib.sha256((folder / "model.so").read_bytes()).hexdigest()
        return (folder / "model.sha256").read_text() == digest
    except OSError:
        return False
