"""Chunks of a result as bytes, with a sum that tells whether they are what was written.

Layout: ``CARDSCH1``, sha256 of everything after it, length of the head as 8 bytes, the head
(JSON: job, chunk, columns with type and length), the columns as little-endian arrays.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"CARDSCH1"
_START = len(MAGIC) + 32

Columns = dict[str, npt.NDArray[Any]]
"""Name to array; all of the same length."""


class DamagedChunkError(Exception):
    """A chunk whose bytes are not what was written; it is computed again."""


@dataclass(frozen=True)
class Chunk:
    """A chunk that was read.

    Attributes:
        job: Key of the job it belongs to.
        index: Which chunk of the job.
        columns: Name to array.
    """

    job: str
    index: int
    columns: Columns


def pack(job: str, index: int, columns: Columns) -> bytes:
    """Return a chunk as bytes; equal columns give equal bytes (every NaN becomes the same)."""
    arrays = []
    layout = []
    for name, column in columns.items():
        array = np.ascontiguousarray(column)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        layout.append([name, array.dtype.str, len(array)])
        arrays.append(array.tobytes())
    head = json.dumps({"job": job, "chunk": index, "columns": layout}).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(arrays)
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Chunk:
    """Read what `pack` returned.

    Raises:
        DamagedChunkError: The bytes are not complete or not the same.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < _START + 8:
        raise DamagedChunkError("no chunk, or cut off")
    body = memoryview(data)[_START:]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : _START]:
        raise DamagedChunkError("checksum differs")
    size = int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8 : 8 + size]))
    columns: Columns = {}
    position = 8 + size
    for name, dtype, length in head["columns"]:
        columns[name] = np.frombuffer(body, np.dtype(dtype), length, position)
        position += columns[name].nbytes
    return Chunk(head["job"], head["chunk"], columns)


def read_chunk(path: Path, job: str, index: int) -> Columns:
    """Return the columns of a chunk's file.

    Raises:
        DamagedChunkError: It is damaged, or belongs to something else.
        OSError: It cannot be read.
    """
    chunk = unpack(path.read_bytes())
    if (chunk.job, chunk.index) != (job, index):
        raise DamagedChunkError(f"chunk {chunk.index} of job {chunk.job[:12]}")
    return chunk.columns
