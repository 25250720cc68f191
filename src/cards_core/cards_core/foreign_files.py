"""Files that come from outside: read within bounds, whatever they are and hold.

What lies under the name of a file may be a pipe or a device that never ends, some megabytes of an
archive may unpack to more than the memory holds, and a text may be nested more deeply than a
program can follow. Here only regular files are opened, of a bounded size; texts are UTF-8 and JSON
is of a bounded depth. What is wrong with a file is one `DescriptionError` that names it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from cards_core.checks import brief, check_fits, size_text
from cards_core.errors import CardsError, DescriptionError
from cards_core.files import file_problem

Kind = TypeVar("Kind")

MOST_BYTES = 64_000_000
"""Largest file that is read whole, unless its reader says otherwise."""

MOST_DEPTH = 50
"""How deep lists and objects of JSON may be nested."""


@contextmanager
def opened(path: str | Path, expected: str = "a regular file") -> Iterator[BinaryIO]:
    """Open a regular file to read its bytes.

    Args:
        path: The file.
        expected: What would be right, for messages.

    Raises:
        DescriptionError: It is not one, or cannot be read; reading within the block too.
    """
    try:
        if problem := file_problem(Path(path)):
            raise DescriptionError(problem, source=str(path), expected=expected)
        with open(path, "rb") as stream:
            yield stream
    except OSError as error:
        reason = error.strerror or error
        raise DescriptionError(
            f"cannot be read: {reason}", source=str(path), expected=expected
        ) from None


def read_bytes(
    path: str | Path, expected: str = "a regular file", *, most: int = MOST_BYTES
) -> bytes:
    """Return the content of a file.

    Args:
        path: The file.
        expected: What would be right, for messages.
        most: Largest size, [bytes].

    Raises:
        DescriptionError: It is not a regular file, is too large, or cannot be read.
    """
    with opened(path, expected) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise DescriptionError(
                "is too large", source=str(path), expected=f"at most {size_text(most)}"
            )
        return stream.read(size)


def read_text(
    path: str | Path, expected: str = "a text file in UTF-8", *, most: int = MOST_BYTES
) -> str:
    """Return the text of a file without its byte order mark.

    Args:
        path: The file.
        expected: What would be right, for messages.
        most: Largest size, [bytes].

    Raises:
        DescriptionError: See `read_bytes`; or it is not UTF-8.
    """
    data = read_bytes(path, expected, most=most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DescriptionError(
            f"cannot be read: byte {data[error.start]:#04x} is not UTF-8",
            source=str(path),
            line=data.count(b"\n", 0, error.start) + 1,
            expected=expected,
        ) from None


def read_json(path: str | Path, expected: str = "JSON") -> Any:
    """Return the data of a JSON file.

    Args:
        path: The file.
        expected: What would be right, for messages.

    Raises:
        DescriptionError: See `read_text` and `parse_json`.
    """
    return parse_json(read_text(path, expected), str(path), expected)


def parse_json(text: str | bytes, source: str, expected: str = "JSON") -> Any:
    """Return the data of a JSON text.

    Args:
        text: The text.
        source: Where it is from, for messages.
        expected: What would be right, for messages.

    Raises:
        DescriptionError: It is not JSON, is nested more than `MOST_DEPTH` deep, or has a number or
            text that nothing could work with: a whole number beyond the range of floating point,
            half of a character.
    """
    try:
        data = json.loads(text, parse_int=_whole_number)
        level, depth = [data], 0
        while level:
            if depth > MOST_DEPTH:
                raise RecursionError
            for item in level:
                if isinstance(item, str):
                    item.encode()
                elif isinstance(item, dict):
                    "".join(item).encode()
            level = [
                child
                for item in level
                if isinstance(item, dict | list)
                for child in (item.values() if isinstance(item, dict) else item)
            ]
            depth += 1
    except RecursionError:
        raise DescriptionError(
            "cannot be read: nested too deeply",
            source=source,
            expected=f"{expected}, at most {MOST_DEPTH} levels deep",
        ) from None
    except ValueError as error:
        raise DescriptionError(
            f"cannot be read: {error}", source=source, expected=expected
        ) from None
    return data


def typed(data: Any, kind: type[Kind], source: str, expected: str) -> Kind:
    """Return plain data, as JSON has it, as an object of a dataclass.

    Args:
        data: The data; entries that the class does not have are left out.
        kind: The class; its annotations say of which types its entries are.
        source: Where the data are from, for messages.
        expected: What would be right, for messages.

    Raises:
        DescriptionError: An entry is missing, or of another type; names its place.
    """
    import msgspec  # here: Gazebo's Python has none, and reads no such files

    try:
        return msgspec.convert(data, kind)
    except (ValueError, OverflowError) as error:
        what, _, place = str(error).partition(" - at `$")
        raise DescriptionError(
            what, source=source, element=place.strip(".`") or None, expected=expected
        ) from None


def _whole_number(text: str) -> int:
    if math.isinf(float(text)):
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def read_arrays(
    path: str | Path,
    wanted: Callable[[str], bool] = lambda _: True,
    expected: str = "an undamaged NPZ file",
) -> dict[str, npt.NDArray[Any]]:
    """Return arrays of an NPZ archive; one that is not wanted is not unpacked.

    Args:
        path: The file.
        wanted: Tells by its name whether an array is.
        expected: What would be right, for messages.

    Raises:
        DescriptionError: It is not such an archive or is damaged; what is wanted is more than the
            memory holds, is not an array, or is an array of Python objects.
    """

    def wrong(problem: object) -> DescriptionError:
        said = f"cannot be read: {brief(problem)}"
        return DescriptionError(said, source=str(path), expected=expected)

    try:
        with opened(path, expected) as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, NpzFile):
                raise wrong("a single NumPy array")
            with archive:
                sizes = {
                    info.filename.removesuffix(".npy"): info.file_size
                    for info in (archive.zip.infolist() if archive.zip else ())
                }
                names = [name for name in archive.files if wanted(name)]
                size = sum(sizes.get(name, 0) for name in names)
                check_fits(size, 1.0, "bytes of arrays", "less")
                found = {name: archive[name] for name in names}
    except CardsError as error:
        raise error if isinstance(error, DescriptionError) else wrong(error) from None
    except MemoryError:
        raise wrong("its arrays do not fit into the memory") from None
    except Exception as error:  # NumPy, zipfile and each compression raise exceptions of their own
        reason: object = error or type(error).__name__
        # NumPy takes what is not an archive for a pickle, and tells how to load objects anyway
        if "pickled (object)" in str(error):
            reason = "not a NumPy archive"
        elif "allow_pickle" in str(error):
            reason = "Python objects"
        raise wrong(reason) from error
    for name, values in found.items():
        if not isinstance(values, np.ndarray):  # the bytes of a file that is not an array
            raise wrong(f"'{name}' is not an array")
    return found
