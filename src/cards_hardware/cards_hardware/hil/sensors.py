"""Sensors of the plant: counts of encoders and load cells as the drive bus carries them.

Rounding, zeros, signs and scales are those of `Calibration`; noise is seeded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cards_core.typing import Array
from cards_hardware.hil.design import Calibration, UnitDesign

INVALID_LOAD = -(2**15)
"""What the drive bus carries for a load cell that cannot be read."""

_NOISE_ROWS = 4096


class Sensors:
    """The sensors of all units and joints of a robot.

    Args:
        design: What the units are made of.
        calibration: What differs between them.
        rng: Chance, for the noise.
    """

    def __init__(
        self, design: UnitDesign, calibration: Calibration, rng: np.random.Generator
    ) -> None:
        self._calibration = calibration
        self._per_length = calibration.sign / calibration.wire_per_count
        self._per_force = 1.0 / calibration.load_scale
        # the cell itself saturates, and the bus cannot carry more
        limit = np.floor(design.load_range * self._per_force)
        self._least = np.maximum(calibration.load_zero - limit, 1.0 - 2**15)
        self._most = np.minimum(calibration.load_zero + limit, 2.0**15 - 1.0)
        # drawn in advance: a call of the generator costs more than all the rest
        muscles = len(calibration.sign)
        self._noise = design.load_noise * rng.standard_normal((_NOISE_ROWS, muscles))
        self._row = 0

    def positions(self, lengths: Array) -> npt.NDArray[np.int32]:
        """Return the winders' encoder counts for path lengths, shape (m,), [m]."""
        counts = (lengths - self._calibration.length_offset) * self._per_length
        return np.rint(counts).astype(np.int32)

    def loads(self, tensions: Array) -> npt.NDArray[np.int16]:
        """Return the load cells' counts for tensions, shape (m,), [N]."""
        self._row = (self._row + 1) % _NOISE_ROWS
        counts = (tensions + self._noise[self._row]) * self._per_force
        counts += self._calibration.load_zero
        np.maximum(counts, self._least, out=counts)
        np.minimum(counts, self._most, out=counts)
        return np.rint(counts, out=counts).astype(np.int16)

    def joints(self, angles: Array) -> npt.NDArray[np.int32]:
        """Return the joint encoders' counts for joint positions, shape (k,), [rad] or [m]."""
        calibration = self._calibration
        counts = angles / calibration.joint_scale + calibration.joint_zero
        return np.rint(counts).astype(np.int32)
