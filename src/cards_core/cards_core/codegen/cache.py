"""The cache of compiled code: one folder per key, put into place in one step."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from cards_core.codegen.toolchain import target
from cards_core.errors import CompilationError
from cards_core.permissions import check_private

SOURCES = (
    "codegen",
    "dynamics",
    "muscles",
    "parameters",
    "paths",
    "robot",
    "spatial.py",
)
"""Parts of the package that decide what the generated code computes."""


def cache_folder() -> Path:
    """Return the folder of compiled models: ``$CARDS_CACHE``, else the user's cache folder."""
    if folder := os.environ.get("CARDS_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cards"


def trusted_cache(name: str = "") -> Path:
    """Return `cache_folder`, made if there is none, or what has a name in it: for code to load.

    Args:
        name: Of what is looked for there; it need not exist. Who could write the folder once can
            have put it there.

    Raises:
        PermissionError: Others can write it, and so could run code as this user.
        OSError: It cannot be made or looked at.
    """
    check_private(cache_folder(), make=True)
    wanted = there = cache_folder() / name
    while not os.path.lexists(there):
        there = there.parent
    check_private(there)
    return wanted


def source_digest() -> bytes:
    """Return a digest of the modules that decide what the generated code computes."""
    core = Path(__file__).parents[1]
    files = [core / name for name in SOURCES if name.endswith(".py")]
    for name in SOURCES:
        files += [*(core / name).rglob("*.py"), *(core / name).rglob("*.c")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).digest()


def model_key(content: bytes) -> str:
    """Return the cache key of a model: a hash of its content, our sources, the CPU and CFLAGS."""
    digest = hashlib.sha256(content)
    digest.update(source_digest())
    digest.update(target().encode())
    return digest.hexdigest()[:32]


@contextlib.contextmanager
def build_folder(parent: Path) -> Iterator[Path]:
    """Give a folder to build in, beside the results; it is gone afterwards, whatever happens.

    Args:
        parent: Folder of the cache; made if there is none.
    """
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def publish(work: Path, folder: Path, good: Callable[[Path], bool]) -> None:
    """Move a finished build into place, unless somebody was quicker; replace a damaged one.

    Args:
        work: The build.
        folder: Its place.
        good: Tells whether what stands in its place already is sound.

    Raises:
        CompilationError: Other processes keep writing the place.
        OSError: The cache cannot be written.
    """
    for _ in range(10):
        try:
            os.rename(work, folder)
            return
        except OSError:
            if not folder.exists():
                raise
        if good(folder):
            return
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with contextlib.suppress(OSError):
            os.rename(folder, old / "model")
        shutil.rmtree(old, ignore_errors=True)
    raise CompilationError(f"cannot replace {folder}: other processes keep writing it")
