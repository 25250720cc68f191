"""Coupled phase oscillators: with a fixed rhythm, or shaped by feedback.

In the open loop [Ijspeert2007]_, with frequency v, amplitude R and a > 0,

    theta_i' = 2 pi v_i + sum_j r_j w_ij sin(theta_j - theta_i - phi_ij)
    r_i''    = a (a/4 (R_i - r_i) - r_i')

and with feedback [Righetti2006]_ [Mirletz2016]_

    theta_i' = omega_i + k_theta F_theta,i + sum_j r_j w_ij sin(theta_j - theta_i - phi_ij)
    r_i'     = gamma (R_i + k_r F_r,i - r_i^2) r_i
    omega_i' = k_omega F_omega,i sin(theta_i)

The output is r_i cos(theta_i). F is held over a call of `advance`. Dormand and Prince's method of
order 5 with step control integrates, compiled.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_array, finite_number
from cards_core.codegen.library import load_library
from cards_core.errors import CardsError, ParameterError, ShapeError
from cards_core.typing import Array

OSCILLATORS = Path(__file__).parent / "native" / "oscillators.c"

TOLERANCE = 1e-10
"""Error of a step, in radians and relative to amplitudes and rates where they exceed one."""

LIMIT = 20_000
"""Most evaluations of the equations in one call of `advance`."""


class OscillatorError(CardsError):
    """The equations of oscillators could not be integrated; their state is as before."""


@dataclass(frozen=True, eq=False)
class Couplings:
    """Who influences whom: oscillator ``sources[e]`` pulls at the phase of ``targets[e]``.

    Attributes:
        targets, sources: Indices of oscillators, shape (e,).
        weights: w, shape (e,).
        phases: phi, shape (e,), [rad]; a positive one lets the target lag behind the source.

    Raises:
        ShapeError: The arrays have different sizes, or hold what is not finite.
        ParameterError: An oscillator is coupled with itself, or an index is negative.
    """

    targets: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]
    weights: Array
    phases: Array

    def __post_init__(self) -> None:
        shape = np.shape(self.targets)
        for name in ("targets", "sources"):
            index = np.asarray(getattr(self, name), dtype=np.int64)
            if index.ndim != 1 or index.shape != shape:
                raise ShapeError(f"{name} of couplings has shape {index.shape}; expected one list")
            object.__setattr__(self, name, index)
            if index.size and index.min() < 0:
                raise ParameterError(f"{name} of couplings holds {index.min()}; expected >= 0")
        for name in ("weights", "phases"):
            values = finite_array(getattr(self, name), f"{name} of couplings", shape)
            object.__setattr__(self, name, values)
        same = self.targets == self.sources
        if same.any():
            bad = int(self.targets[np.argmax(same)])
            raise ParameterError(
                f"oscillator {bad} is coupled with itself; expected two different ones"
            )

    @classmethod
    def none(cls) -> Couplings:
        """Return no couplings."""
        nobody = np.zeros(0, dtype=np.int64)
        return cls(nobody, nobody, np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class OpenLoop:
    """Parameters of oscillators without feedback.

    Frequency and amplitude may follow a descending command d: ``c0 + c1 d``.

    Attributes:
        frequency: c0 of v, [Hz].
        amplitude: c0 of R.
        frequency_gain, amplitude_gain: c1 of each.
        convergence: a, [1/s].

    Raises:
        ParameterError: A value is not finite, or a is not positive.
    """

    frequency: float
    amplitude: float
    frequency_gain: float = 0.0
    amplitude_gain: float = 0.0
    convergence: float = 20.0

    def __post_init__(self) -> None:
        for name in ("frequency", "amplitude", "frequency_gain", "amplitude_gain"):
            finite_number(getattr(self, name), name, error=ParameterError)
        finite_number(self.convergence, "convergence", above=0.0, error=ParameterError)


@dataclass(frozen=True)
class Feedback:
    """Parameters of oscillators with feedback.

    Attributes:
        frequency: omega at the beginning, [rad/s].
        amplitude: R, the square of the amplitude without feedback.
        frequency_gain: k_omega, [rad/s^2].
        amplitude_gain: k_r.
        phase_gain: k_theta, [rad/s].
        convergence: gamma, [1/s].

    Raises:
        ParameterError: A value is not finite, gamma is not positive or R negative.
    """

    frequency: float
    amplitude: float
    frequency_gain: float = 0.0
    amplitude_gain: float = 0.0
    phase_gain: float = 0.0
    convergence: float = 1.0

    def __post_init__(self) -> None:
        for name in ("frequency", "frequency_gain", "amplitude_gain", "phase_gain"):
            finite_number(getattr(self, name), name, error=ParameterError)
        finite_number(self.amplitude, "amplitude", at_least=0.0, error=ParameterError)
        finite_number(self.convergence, "convergence", above=0.0, error=ParameterError)


class Oscillators:
    """A network of n oscillators.

    Args:
        count: n.
        parameters: The same for all; says whether there is feedback.
        couplings: Between them.
        tolerance: See `TOLERANCE`.
        limit: See `LIMIT`.

    Attributes:
        state: theta, r, and r' or omega with feedback, shape (n, 3).
        kind: ``open_loop`` or ``feedback``.
        feedback: F of the last `advance`, shape (n, 3).
        tolerance, limit: As given.

    Raises:
        ParameterError: A coupling names an oscillator that there is not.
        CompilationError: There is no C compiler.
    """

    def __init__(
        self,
        count: int,
        parameters: OpenLoop | Feedback,
        couplings: Couplings,
        *,
        tolerance: float = TOLERANCE,
        limit: int = LIMIT,
    ) -> None:
        self.parameters, self.couplings = parameters, couplings
        self.tolerance, self.limit = tolerance, limit
        self.kind = "open_loop" if isinstance(parameters, OpenLoop) else "feedback"
        highest = max(
            (int(a.max()) for a in (couplings.targets, couplings.sources) if a.size), default=-1
        )
        if highest >= count:
            raise ParameterError(
                f"a coupling names oscillator {highest}; expected at most {count - 1}"
            )
        self._library = _library()
        order = np.argsort(couplings.targets, kind="stable")
        weights, phases = couplings.weights[order], couplings.phases[order]
        starts = np.searchsorted(couplings.targets[order], np.arange(count + 1))
        if isinstance(parameters, OpenLoop):
            gains = [parameters.convergence]
        else:
            p = parameters
            gains = [p.convergence, p.frequency_gain, p.amplitude_gain, p.phase_gain]
        self.state: Array = np.zeros((count, 3))
        self.feedback: Array = np.zeros((count, 3))
        self._rate, self._amplitude = np.zeros(count), np.zeros(count)
        self._step = np.zeros(1)
        self._arrays = {
            "start": starts.astype(np.int64),
            "source": couplings.sources[order],
            "weight_cos": weights * np.cos(phases),
            "weight_sin": weights * np.sin(phases),
            "rate": self._rate,
            "amplitude": self._amplitude,
            "gains": np.array(gains),
            "feedback": self.feedback,
            "state": self.state,
            "step": self._step,
            "work": np.zeros(31 * count),
        }
        pointers = {name: array.ctypes.data for name, array in self._arrays.items()}
        kind = 0 if self.kind == "open_loop" else 1
        self._c = _Oscillators(n=count, kind=kind, limit=limit, tolerance=tolerance, **pointers)
        self.command(0.0)
        self.reset()

    def in_c(self) -> tuple[int, int]:
        """Return the addresses of the function behind `advance` and of its first argument.

        It returns less than zero where `advance` raises, and reads `feedback`.
        """
        function = ctypes.cast(self._library.oscillators_advance, ctypes.c_void_p)
        return int(function.value or 0), ctypes.addressof(self._c)

    @property
    def arrays(self) -> dict[str, Array]:
        """What the C text computes with, by the names of its structure; state and work apart."""
        names = ("start", "source", "weight_cos", "weight_sin", "rate", "amplitude", "gains")
        return {name: self._arrays[name].copy() for name in names}

    def command(self, value: float) -> None:
        """Set the descending command d of the open loop; with feedback there is none."""
        p = self.parameters
        if isinstance(p, OpenLoop):
            self._rate[:] = 2.0 * math.pi * (p.frequency + p.frequency_gain * value)
            self._amplitude[:] = p.amplitude + p.amplitude_gain * value
        else:
            self._amplitude[:] = p.amplitude

    def reset(self) -> None:
        """Return to the beginning.

        theta = 0; in the open loop r = r' = 0, with feedback r = sqrt(R), where F = 0 keeps it.
        """
        self.state[:] = 0.0
        self._step[0] = 0.0
        if isinstance(self.parameters, Feedback):
            self.state[:, 1] = math.sqrt(self.parameters.amplitude)
            self.state[:, 2] = self.parameters.frequency

    def advance(self, duration: float, feedback: Array | None = None) -> int:
        """Integrate over a time.

        Args:
            duration: [s], >= 0.
            feedback: F_omega, F_r, F_theta of every oscillator, shape (n, 3); None: zero.

        Returns:
            How often the equations were evaluated.

        Raises:
            OscillatorError: More than ``limit`` evaluations, or what is not finite.
        """
        if not (math.isfinite(duration) and duration >= 0.0):
            raise OscillatorError(f"the time to integrate is {duration} s; expected >= 0")
        if feedback is None:
            self.feedback[:] = 0.0
        else:
            self.feedback[:] = feedback
        if duration == 0.0:
            return 0
        count = int(self._library.oscillators_advance(self._c, duration))
        if count == -1:
            raise OscillatorError(
                f"oscillators: more than {self._c.limit} evaluations for {duration:g} s "
                "(expected: lower frequencies, gains or weights)"
            )
        if count < 0:
            raise OscillatorError(
                "oscillators: the state or its derivative is not finite (expected: finite "
                "feedback, lower gains or weights)"
            )
        return count

    @property
    def output(self) -> Array:
        """R cos(theta), shape (n,)."""
        return self.state[:, 1] * np.cos(self.state[:, 0])


class _Oscillators(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_long) for name in ("n", "kind", "limit")],
        *[
            (name, ctypes.c_void_p)
            for name in (
                *("start", "source", "weight_cos", "weight_sin"),
                *("rate", "amplitude", "gains", "feedback"),
            )
        ],
        ("tolerance", ctypes.c_double),
        *[(name, ctypes.c_void_p) for name in ("state", "step", "work")],
    ]


@cache
def _library() -> ctypes.CDLL:
    library = load_library("oscillators", OSCILLATORS.read_text(encoding="utf-8"))
    library.oscillators_advance.argtypes = [ctypes.POINTER(_Oscillators), ctypes.c_double]
    library.oscillators_advance.restype = ctypes.c_long
    return library
