"""Read the text files (``.traj``) in which CASPR stores sampled joint trajectories.

The first line is ``time_step,dt``. The other lines hold a sample each: ``t,<time>,p,<q>,v,<qd>,
a,<qdd>``, or without the time, ``q,<q>,v,<qd>,a,<qdd>``, as older files have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.typing import Array

MAX_BYTES = 100_000_000
"""Largest file that is read."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A sampled trajectory of n coordinates.

    Attributes:
        time_step: [s].
        times: From 0, shape (k,), [s].
        positions, velocities, accelerations: Shape (k, n).
    """

    time_step: float
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array


def read_sampled_file(path: Path, size: int) -> Samples:
    """Read a ``.traj`` file with ``size`` coordinates.

    Raises:
        DescriptionError: The file cannot be read or a line is not as above.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DescriptionError("file too large", source=str(path), expected="< 100 MB")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", source=str(path)) from None
    words = lines[0].split(",") if lines else []
    step = _float(words[1]) if len(words) == 2 and words[0].strip() == "time_step" else math.nan
    if not (math.isfinite(step) and step > 0.0):
        raise DescriptionError(
            "no time step", source=str(path), line=1, expected="time_step,<seconds>"
        )
    rows: list[Array] = []
    for number, text in enumerate(lines[1:], start=2):
        if text.strip():
            rows.append(_sample(text, path, number, size, step * len(rows)))
    if len(rows) < 2:
        raise DescriptionError(f"{len(rows)} samples", source=str(path), expected="at least two")
    table: Array = np.vstack(rows)
    times: Array = step * np.arange(len(rows), dtype=float)
    return Samples(
        step,
        times,
        table[:, :size],
        table[:, size : 2 * size],
        table[:, 2 * size :],
    )


def _sample(text: str, path: Path, line: int, size: int, time: float) -> Array:
    words = [word.strip() for word in text.split(",")]
    if words[0] == "t" and len(words) > 1:
        stated = _float(words[1])
        if not abs(stated - time) <= 1e-6 + 1e-9 * time:
            raise DescriptionError(
                f"time {words[1]} of sample {line - 1}",
                source=str(path),
                line=line,
                expected=f"{time:g}, a multiple of the time step",
            )
        words = words[2:]
    labels = words[:: size + 1]
    numbers = [word for i, word in enumerate(words) if i % (size + 1)]
    if len(words) != 3 * (size + 1) or labels[0] not in ("p", "q") or labels[1:] != ["v", "a"]:
        raise DescriptionError(
            "not a sample of this robot",
            source=str(path),
            line=line,
            expected=f"p,v,a each followed by {size} numbers",
        )
    values = np.array([_float(word) for word in numbers])
    if not np.all(np.isfinite(values)):
        raise DescriptionError(
            "a value is not a finite number", source=str(path), line=line, expected="numbers"
        )
    return values


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
