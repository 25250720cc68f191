"""Compiled refreshes of controllers that tell set-points of the impedance law by themselves.

Operations are those of the Python forms in the same order. Sines, cosines and hyperbolic tangents
are those of the C library, while NumPy has its own, which differ in the last bit: rates agree to
1e-12 of the largest, tensions and lengths of `ImpedanceController` to the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.control.native_program import NATIVE, NotNativeError, members, place, program
from cards_core.control.recorded_commands import QUANTITIES, RecordedCommands
from cards_core.optimize.active_set import REAL
from cards_core.typing import Array

SET_POINTS = NATIVE / "set_points.c"
"""Follows `REAL`."""

GAIT = NATIVE / "gait.c"
"""Follows `SET_POINTS`."""


class SetPoints(ctypes.Structure):
    """``set_points_t`` of the C text."""

    _fields_ = [
        *members(ctypes.c_long, "n"),
        *members(ctypes.c_void_p, "columns", "tension", "rest_length"),
        *members(ctypes.c_void_p, "told_tension", "told_length", "told_rate", "tensions"),
    ]


def place_set_points(
    setup: SetPoints,
    keep: list[Any],
    columns: npt.NDArray[np.intp],
    *,
    parameters: Sequence[Array],
    told: Sequence[Array],
    tensions: Array,
) -> None:
    """Let a setup point at the arrays of a controller.

    Args:
        setup: The setup.
        keep: See `place`.
        columns: Of the told muscles in the output, shape (n,).
        parameters: T0 and l0, shape (n,) each, [N] and [m].
        told: T0, l0 and v0 of the command, likewise, [m/s].
        tensions: Of the output, [N].
    """
    setup.n = columns.size
    tension, length = parameters
    told_tension, told_length, told_rate = told
    place(
        setup,
        keep,
        columns=columns.astype(np.int_),
        tension=tension,
        rest_length=length,
        told_tension=told_tension,
        told_length=told_length,
        told_rate=told_rate,
        tensions=tensions,
    )


class NativeGait:
    """Writes the set-points of an `ImpedanceController`.

    Args:
        muscles: n, how many are told something.
        wave: Whether v0 is a sine wave.
        recorded: Set-points to be replayed; None: none.
        repeat: Whether they start again at their end.

    Raises:
        NotNativeError: There is no C compiler, or the recorded set-points are not of n muscles.
    """

    def __init__(
        self, muscles: int, *, wave: bool, recorded: RecordedCommands | None, repeat: bool
    ) -> None:
        library = program("set-points of the impedance law", (REAL, SET_POINTS, GAIT))
        self._call = library.cards_gait
        self._call.restype = None
        self._setup = setup = _Gait(wave=wave, repeat=repeat)
        self.keep: list[Any] = []
        self._reference = ctypes.byref(setup)
        if recorded is None:
            return
        setup.rows = rows = recorded.times.size
        place(setup, self.keep, times=np.ascontiguousarray(recorded.times, dtype=float))
        for k, name in enumerate(QUANTITIES):
            if (array := recorded.values.get(name)) is None:
                continue
            if array.shape != (rows, muscles):
                raise NotNativeError(f"{name} has shape {array.shape}, not ({rows}, {muscles})")
            self.keep.append(kept := np.ascontiguousarray(array, dtype=float))
            setup.recorded[k] = kept.ctypes.data

    @property
    def told(self) -> SetPoints:
        """Where the set-points come from and go to."""
        found: SetPoints = self._setup.told
        return found

    def place_wave(self, factor: Array, phase: Array) -> None:
        """Take the arrays of the wave: factors of v0 and phases [rad], shape (n,) each."""
        place(self._setup, self.keep, factor=factor, phase=phase)

    def refresh(self, amplitude: float, angle: float, time: float) -> None:
        """Write set-points.

        Args:
            amplitude: Of v0, [m/s].
            angle: Of the wave, [rad].
            time: Since the gait began, [s].
        """
        setup = self._setup
        setup.amplitude, setup.angle, setup.time = amplitude, angle, time
        self._call(self._reference)


class _Gait(ctypes.Structure):
    """``gait_t`` of the C text."""

    _fields_ = [
        ("told", SetPoints),
        *members(ctypes.c_long, "wave"),
        *members(ctypes.c_void_p, "factor", "phase"),
        *members(ctypes.c_double, "amplitude", "angle"),
        *members(ctypes.c_long, "rows", "repeat"),
        *members(ctypes.c_void_p, "times"),
        ("recorded", ctypes.c_void_p * len(QUANTITIES)),
        *members(ctypes.c_double, "time"),
    ]
