"""What all actuator models share: groups of muscles of one variant, evaluated together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.muscles.actuators.arithmetic import Arithmetic, Real
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

Parameters: TypeAlias = Any
"""A namespace of numbers: arrays over the muscles of a group, or floats of one muscle."""

LARGEST_FORCE = 1e9
"""Stands for a missing tension limit [N], so that all arithmetic stays finite."""


class Inputs(NamedTuple):
    """What a muscle is given in one step.

    Attributes:
        length: Of the path, [m].
        rate: Of the path, [m/s].
        kind: Code of the command.
        value: Of the command: tension [N], rest length [m], pressure [Pa] or excitation.
    """

    length: Real
    rate: Real
    kind: Real
    value: Real


class Model(ABC):
    """Muscles of one type and variant, which the same equations describe.

    Args:
        muscles: The muscles of the group.
        dt: Step, [s].

    Attributes:
        published: Names of the inner states that users see, in SI units (temperatures in degC).
        hidden: Names of the inner states that only the model needs.
        winder: Names of the published states that are the free length [m] and the winding speed
            [m/s] of a winder behind a spring; None where the path itself is what is wound.
        winch: Name of the published state that is the speed [m/s] at which a motor shortens the
            rest length of a cable, whose path is what the impedance law measures; None without.
        p: Parameters, arrays of shape (n,).
        stiffness: Largest usual dT/dl, shape (n,), [N/m]: with `damping` it decides whether the
            muscle is stiff against the host's step, see `cards_core.muscles.implicit`.
        damping: Largest usual dT/dl', shape (n,), [N s/m].
    """

    published: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[tuple[str, ...]] = ()
    winder: ClassVar[tuple[str, str] | None] = None
    winch: ClassVar[str | None] = None

    def __init__(self, muscles: Sequence[Muscle], dt: float) -> None:
        self.muscles = tuple(muscles)
        self.dt = dt
        values = [self.parameters(muscle, dt) for muscle in muscles]
        self._values = values
        self.p = SimpleNamespace(
            **{name: np.array([item[name] for item in values]) for name in values[0]}
        )
        slopes = np.array([self.steepness(muscle.actuator) for muscle in muscles])
        self.stiffness: Array = slopes[:, 0]
        self.damping: Array = slopes[:, 1]

    def one(self, index: int) -> Parameters:
        """Return the parameters of one muscle of the group, as floats."""
        return SimpleNamespace(**self._values[index])

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """Return what decides which equations apply; muscles that agree form one group."""
        del actuator
        return ()

    @abstractmethod
    def parameters(self, muscle: Muscle, dt: float) -> dict[str, float]:
        """Return the numbers that `step` needs for one muscle."""

    @abstractmethod
    def steepness(self, actuator: Any) -> tuple[float, float]:
        """Return the largest usual dT/dl [N/m] and dT/dl' [N s/m] of an actuator."""

    @abstractmethod
    def step(
        self,
        m: Arithmetic,
        p: Parameters,
        x: Sequence[Real],
        given: Inputs,
    ) -> tuple[Real, list[Real]]:
        """Advance by one step.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            x: Inner states: published, then hidden.
            given: Path and command.

        Returns:
            Tension [N] and new inner states.
        """

    @abstractmethod
    def rest(self, lengths: Array) -> list[Array]:
        """Return the inner states in equilibrium at rest, with the muscles' smallest tension."""

    def stretch(
        self, m: Arithmetic, p: Parameters, x: Sequence[Real], length: Real
    ) -> tuple[Real, Real]:
        """Return the stretch [m] and energy [J] of a muscle that is a spring and nothing else.

        Zeros for muscles with a source of energy of their own.

        Args:
            m: Evaluator.
            p: Parameters, in the same form as the other arguments.
            x: Inner states: published, then hidden.
            length: Of the path, [m].
        """
        del m, p, x
        return 0.0 * length, 0.0 * length

    @abstractmethod
    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """Return the elastic energy that passive parts store, shape (n,), [J]."""


def limits(muscle: Muscle) -> dict[str, float]:
    """Return the tension limits as parameters."""
    return {
        "tension_min": muscle.tension_min,
        "tension_max": min(muscle.tension_max, LARGEST_FORCE),
    }


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def integral(function: Callable[[Array], Array], start: Array, end: Array) -> Array:
    """Integrate an elementwise function from start to end (n,) by Gauss' rule of 64 nodes.

    Args:
        function: Takes and returns shape (64, n).
        start: Lower ends, shape (n,).
        end: Upper ends, shape (n,).

    Returns:
        Shape (n,).
    """
    half = 0.5 * (np.asarray(end, float) - start)
    middle = 0.5 * (np.asarray(end, float) + start)
    values = function(middle + half * _NODES[:, None])
    total: npt.NDArray[np.float64] = half * np.tensordot(_WEIGHTS, values, axes=1)
    return total
