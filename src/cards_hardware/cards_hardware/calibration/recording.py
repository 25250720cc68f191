"""Recordings of boards at rest, their statistics, and results per channel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from cards_core.typing import Array
from cards_hardware.boards.events import state_word
from cards_hardware.boards.handshake import Ident
from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.enums import ParameterId, State

LEAST_SAMPLES = 50
"""Fewer in a second say too little about noise; a board sends 125 or more."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Samples of one board.

    Attributes:
        times: Times of sampling, host monotonic, shape (n,), [s].
        lengths, tensions: Values of its muscles, shape (n, m), [m] and [N]; NaN where invalid.
        positions: Values of its joint sensors, shape (n, j), [rad] or [m].
        states: `State`, shape (n,).
    """

    times: Array
    lengths: Array
    tensions: Array
    positions: Array
    states: Array

    @classmethod
    def of(cls, samples: Sequence[BoardSample]) -> Recording:
        """Put samples together."""
        return cls(
            np.array([s.time for s in samples]),
            np.array([s.lengths for s in samples]),
            np.array([s.tensions for s in samples]),
            np.array([s.positions for s in samples]),
            np.array([s.state for s in samples], dtype=float),
        )


class Recorder:
    """Records samples of a board while active; pass it to the board as ``on_sample``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: list[BoardSample] | None = None

    def __call__(self, sample: BoardSample) -> None:
        """Take a sample."""
        with self._lock:
            if self._samples is not None:
                self._samples.append(sample)

    def start(self) -> None:
        """Forget what there was and begin."""
        with self._lock:
            self._samples = []

    def stop(self) -> list[BoardSample]:
        """End, and return the samples."""
        with self._lock:
            samples, self._samples = self._samples or [], None
        return samples


def record(
    recorders: Sequence[Recorder],
    names: Sequence[str],
    seconds: float,
    wait: Callable[[float], None] | None = None,
) -> list[Recording]:
    """Return what boards measure for a while, all at the same time.

    Args:
        recorders: One per board.
        names: Names of the boards.
        seconds: How long.
        wait: Waits; another one where time is not real.

    Raises:
        HardwareError: A board sends too little, or is not disarmed.
    """
    for recorder in recorders:
        recorder.start()
    try:
        (wait or time.sleep)(seconds)
    finally:
        found = [recorder.stop() for recorder in recorders]
    out = []
    for name, samples in zip(names, found, strict=True):
        if len(samples) < min(LEAST_SAMPLES, LEAST_SAMPLES * seconds):
            raise HardwareError(
                f"board '{name}' sent {len(samples)} samples in {seconds:g} s (expected: "
                f"{LEAST_SAMPLES} or more; is it powered, is the line good? ./cards monitor)"
            )
        recording = Recording.of(samples)
        wrong = recording.states[recording.states != State.DISARMED]
        if len(wrong):
            raise HardwareError(
                f"board '{name}' is {state_word(int(wrong[0]))} (expected: DISARMED while it is "
                "calibrated; end the bridge, clear faults first)"
            )
        out.append(recording)
    return out


@dataclass(frozen=True, eq=False)
class RestStatistics:
    """Mean, noise and motion of something that should stand still.

    Attributes:
        mean: shape (k,); NaN where any sample was invalid.
        noise: Standard deviation about a straight line, shape (k,).
        drift: Change along that line from first to last, shape (k,).
    """

    mean: Array
    noise: Array
    drift: Array

    @classmethod
    def of(cls, times: Array, values: Array) -> RestStatistics:
        """Fit a line to each column of values, shape (n, k)."""
        n = len(times)
        t = times - times.mean()
        mean = values.mean(axis=0)
        square = float(t @ t)
        slope = t @ (values - mean) / square if square > 0.0 else np.zeros(values.shape[1])
        left = values - mean - t[:, None] * slope
        noise = np.sqrt(np.sum(left**2, axis=0) / max(1, n - 2))
        return cls(mean, noise, slope * (times[-1] - times[0]))


class CalibratedBoard(Protocol):
    """What calibration needs of `cards_hardware.boards.board.Board`."""

    @property
    def ident(self) -> Ident | None:
        """Who it is."""
        ...

    def open(self) -> None:
        """Begin a new session. Raises `HardwareError`, `BoardError`."""
        ...

    def get_parameter(self, parameter: ParameterId | int, index: int = 0) -> int:
        """Return a parameter in wire units."""
        ...

    def set_parameter(self, parameter: ParameterId | int, index: int, value: int) -> None:
        """Set a parameter in wire units.

        Args:
            parameter: Which one.
            index: Entry of the parameter, from 0: a muscle or joint, or 0.
            value: In wire units.
        """
        ...

    def save_parameters(self) -> None:
        """Write the parameters to flash."""
        ...

    def calibrate(
        self, action: int, channels: Sequence[int], values: Sequence[int] | None = None
    ) -> None:
        """Have the board set its zero points.

        Args:
            action: `CalibrateAction`.
            channels: Channels of muscles or joints, as the action says.
            values: What is true there, in the unit that the action says; None where it needs none.
        """
        ...


@dataclass(frozen=True)
class ChannelResult:
    """What happened to one muscle or joint.

    Attributes:
        name: Name of the muscle or of the joint's coordinate.
        board: Where it is.
        channel: Channel of the board.
        before: Measured before, [N], [m] or [rad].
        noise: Standard deviation of one measurement.
        after: Measured after.
        wanted: What it should be after.
        parameter: Name of the parameter that was set.
        old, new: Its value in wire units.
        problem: What is wrong; empty if it went well.
    """

    name: str
    board: str
    channel: int
    before: float
    noise: float
    after: float
    wanted: float
    parameter: str
    old: int
    new: int
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Measurement:
    """Simultaneous recordings of all boards.

    Attributes:
        recordings: One per board.
        tensions, lengths, joints: Statistics of the channels, one per board.
    """

    recordings: tuple[Recording, ...]
    tensions: tuple[RestStatistics, ...]
    lengths: tuple[RestStatistics, ...]
    joints: tuple[RestStatistics, ...]
