"""References given by samples, and CASPR's text format ``.traj`` for them.

The format is one header line ``time_step,0.01`` and then one line per sample,
``t,<t>,p,<y...>,v,<yd...>,a,<ydd...>``, with times 0, dt, 2 dt, ...
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.errors import DescriptionError
from cards_core.files import write_atomically
from cards_core.foreign_files import read_text
from cards_core.trajectories.base import (
    Reference,
    Sample,
    TrajectoryError,
    check_number,
    check_times,
)
from cards_core.trajectories.splines import MIN_SEGMENT
from cards_core.typing import Array

_LINE = "t,<time>,p,<values>,v,<velocities>,a,<accelerations>"


class SampledReference(Reference):
    """Equidistant samples of y, yd, ydd with interpolation between them.

    y is the cubic through y and yd of the two neighbours, yd the cubic through their yd and ydd,
    ydd the straight line through their ydd. Each output thus has the error of its own samples; a
    quintic through all three would divide the rounding of y in a text file by dt^2. yd is the
    derivative of y, and ydd that of yd, up to what the samples themselves disagree.

    Args:
        time_step: dt, [s], > 0.
        values: y, shape (k, n), k >= 2.
        velocities: yd, shape (k, n).
        accelerations: ydd, shape (k, n).

    Raises:
        TrajectoryError: Shapes do not fit or a number is not finite.
    """

    def __init__(
        self,
        time_step: float,
        values: npt.ArrayLike,
        velocities: npt.ArrayLike,
        accelerations: npt.ArrayLike,
    ) -> None:
        dt = check_number(time_step, "time step")
        if dt < MIN_SEGMENT:
            raise TrajectoryError(f"time step is {dt:g} s, expected at least {MIN_SEGMENT:g} s")
        y, yd, ydd = (np.asarray(x, dtype=float) for x in (values, velocities, accelerations))
        if y.ndim != 2 or y.shape[0] < 2 or y.shape[1] < 1 or not y.shape == yd.shape == ydd.shape:
            raise TrajectoryError(
                f"samples have shapes {y.shape}, {yd.shape}, {ydd.shape}, expected three times "
                "(k, n) with k >= 2"
            )
        # rows y0 yd0 ydd0 y1 yd1 ydd1 ...: six neighbours in a row are what one call needs
        self._rows = np.stack([y, yd, ydd], axis=1).reshape(-1, y.shape[1])
        if not np.isfinite(self._rows).all():
            raise TrajectoryError("a sample is not finite")
        self._count = y.shape[0]
        self.time_step = dt
        self._rate = 1.0 / dt
        duration = (self._count - 1) * dt
        super().__init__(y.shape[1], duration, [i * dt for i in range(self._count)])

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd as fresh arrays of shape (size,)."""
        n = self.size
        if t < 0.0:
            return self._rows[0].copy(), np.zeros(n), np.zeros(n)
        if t > self.duration:
            return self._rows[-3].copy(), np.zeros(n), np.zeros(n)
        x = t * self._rate
        i = min(int(x), self._count - 2)
        out = np.array(_weights(x - i, self.time_step)).dot(self._rows[3 * i : 3 * i + 6])
        return out[0], out[1], out[2]

    def sample(self, times: Sequence[float] | Array) -> Sample:
        """Return y, yd, ydd at ``times`` [s], shape (k,), as arrays of shape (k, size)."""
        instants = check_times(times)
        inside = np.clip(instants, 0.0, self.duration)
        i = np.minimum((inside * self._rate).astype(int), self._count - 2)
        weights = np.array(
            [_weights(x, self.time_step) for x in (inside * self._rate - i).tolist()]
        ).reshape(-1, 3, 6)
        rows = self._rows[3 * i[:, None] + np.arange(6)]
        out = np.einsum("kaj,kjn->akn", weights, rows)
        out[1:, instants != inside] = 0.0
        return out[0], out[1], out[2]

    def select(self, indices: Sequence[int]) -> SampledReference:
        """Return the samples of some of the coordinates, in the order of ``indices``."""
        y, yd, ydd = self._rows.reshape(-1, 3, self.size)[:, :, list(indices)].transpose(1, 0, 2)
        return SampledReference(self.time_step, y, yd, ydd)


_Row = tuple[float, float, float, float, float, float]


def _weights(s: float, dt: float) -> tuple[_Row, _Row, _Row]:
    """Weights of the six neighbours in y, yd, ydd at the fraction ``s`` of a time step."""
    s2 = s * s
    h1 = s2 * (3.0 - 2.0 * s)
    h0 = 1.0 - h1
    g0 = dt * s * (1.0 - s) * (1.0 - s)
    g1 = dt * s2 * (s - 1.0)
    return (
        (h0, g0, 0.0, h1, g1, 0.0),
        (0.0, h0, g0, 0.0, h1, g1),
        (0.0, 0.0, 1.0 - s, 0.0, 0.0, s),
    )


def read_traj(path: str | Path, *, size: int | None = None) -> SampledReference:
    """Read a ``.traj`` file.

    Args:
        path: The file.
        size: Number of coordinates it must have, if known.

    Raises:
        DescriptionError: The file cannot be read or a line is not as it should be; the message
            names file and line.
    """
    source = str(path)
    text = read_text(path)
    lines = [(i, line.strip()) for i, line in enumerate(text.split("\n"), start=1)]
    lines = [(i, line) for i, line in lines if line]
    if len(lines) < 3:
        raise DescriptionError(
            f"{len(lines)} lines", source=source, expected="a header and at least two samples"
        )
    number, header = lines[0]
    name, _, value = header.partition(",")
    if name.strip() != "time_step":
        raise DescriptionError(
            f"starts with {header[:40]!r}", source=source, line=number, expected="time_step,<dt>"
        )
    dt = _numbers([value], source, number)[0]
    if dt < MIN_SEGMENT:
        raise DescriptionError(
            f"time_step is {dt:g} s", source=source, line=number, expected=">= 1e-6"
        )
    samples: list[list[list[float]]] = []
    for number, line in lines[1:]:
        sample = _parse_line(line, source, number)
        wanted = size or len(sample[1])
        if samples:
            wanted = len(samples[0][0])
        for what, block in zip(("p", "v", "a"), sample[1:], strict=True):
            if len(block) != wanted or wanted == 0:
                raise DescriptionError(
                    f"{len(block)} values after {what}",
                    source=source,
                    line=number,
                    expected=f"{wanted or 'at least 1'}",
                )
        t = len(samples) * dt
        # the times carry six decimals
        if abs(sample[0][0] - t) > 1e-6 + 1e-9 * t:
            raise DescriptionError(
                f"time is {sample[0][0]:g} s", source=source, line=number, expected=f"{t:g} s"
            )
        samples.append(sample[1:])
    y, yd, ydd = np.array(samples).transpose(1, 0, 2)
    return SampledReference(dt, y, yd, ydd)


def write_traj(path: str | Path, reference: Reference, time_step: float) -> None:
    """Write a reference, sampled from 0 to its duration, as a ``.traj`` file.

    Numbers carry 17 digits, so nothing is lost between the samples' values and the file.

    Args:
        path: The file, overwritten.
        reference: What to write; finite duration.
        time_step: [s]; the last sample is the last multiple within the duration.

    Raises:
        TrajectoryError: The duration is infinite or shorter than the time step.
    """
    dt = check_number(time_step, "time step")
    duration = check_number(reference.duration, "duration")
    if dt < MIN_SEGMENT or duration < dt:
        raise TrajectoryError(f"time step is {dt:g} s, expected 1e-6 .. {duration:g} s")
    times = dt * np.arange(math.floor(duration / dt + 1e-9) + 1)
    lines = [f"time_step,{dt!r}"]
    blocks = reference.sample(np.minimum(times, duration))
    for t, y, yd, ydd in zip(times.tolist(), *(b.tolist() for b in blocks), strict=True):
        groups = ("p", *map(repr, y), "v", *map(repr, yd), "a", *map(repr, ydd))
        lines.append(",".join(("t", repr(t), *groups)))
    write_atomically(path, "\n".join(lines) + "\n")


def _parse_line(line: str, source: str, number: int) -> list[list[float]]:
    """Split ``t,..,p,..,v,..,a,..`` into its four lists of numbers."""
    words = [word.strip() for word in line.split(",")]
    places = [i for i, word in enumerate(words) if word in ("t", "p", "v", "a")]
    if [words[i] for i in places] != ["t", "p", "v", "a"] or places[:2] != [0, 2]:
        raise DescriptionError(
            f"{line[:60]!r}", source=source, line=number, expected=f"a line {_LINE}"
        )
    ends = [*places[1:], len(words)]
    return [
        _numbers(words[i + 1 : end], source, number) for i, end in zip(places, ends, strict=True)
    ]


def _numbers(words: Sequence[str], source: str, line: int) -> list[float]:
    out: list[float] = []
    for word in words:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DescriptionError(
                f"{word[:40]!r} is not a number",
                source=source,
                line=line,
                expected="finite numbers",
            )
        out.append(value)
    return out
