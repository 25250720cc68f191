"""NPZ archives of real numbers, as all commands read them.

What would be converted with a loss, or into something that nobody meant (the imaginary part of a
complex number, a date, a record), is an error, and so is whatever NumPy finds wrong with a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from cards_core.errors import CardsError
from cards_core.typing import Array

_EXPECTED = "(expected: an NPZ file of numbers)"

_REAL = "biuf"
"""Kinds of `numpy.dtype` that are real numbers: boolean, integers, floating point."""

_UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, TypeError, MemoryError, RuntimeError, BadZipFile,
    zlib.error,
)  # fmt: skip
"""What NumPy and zipfile raise for damaged, cut, encrypted and absurdly large archives."""


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, Array]:
    """Read arrays of an NPZ archive.

    Args:
        path: The file.
        names: Those that are wanted; the others are not looked at, and may be missing. None: all.

    Raises:
        CardsError: No such archive, or a wanted array is not one of real numbers.
    """
    if path.is_dir():
        raise CardsError(f"{path} is a folder {_EXPECTED}")
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, NpzFile):
            raise CardsError(f"{path} is a single NumPy array {_EXPECTED}")
        with archive:
            wanted = [name for name in archive.files if names is None or name in names]
            found = {name: archive[name] for name in wanted}
    except _UNREADABLE as error:
        # NumPy takes what is no archive for a pickle, and says how to load objects in spite of all
        reason: object = error
        if "pickled (object)" in str(error):
            reason = "no NumPy archive"
        elif "allow_pickle" in str(error):
            reason = "Python objects"
        raise CardsError(f"{path}: {reason} {_EXPECTED}") from error
    for name, values in found.items():
        if values.dtype.kind not in _REAL:
            raise CardsError(f"{path}: '{name}' has elements of type {values.dtype} {_EXPECTED}")
    return {name: values.astype(float) for name, values in found.items()}
