"""What all actuator models share: groups of muscles of one variant, and the implicit coupling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.description.model import Muscle
from cards_core.muscles.actuators.arithmetic import Arithmetic, Real
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
        masses: What each muscle feels along its path, [kg]; infinite where unknown.

    Attributes:
        published: Names of the inner states that users see, in SI units (temperatures in degC).
        hidden: Names of the inner states that only the model needs.
        p: Parameters, arrays of shape (n,).
    """

    published: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[tuple[str, ...]] = ()

    def __init__(self, muscles: Sequence[Muscle], dt: float, masses: Array) -> None:
        self.muscles = tuple(muscles)
        self.dt = dt
        values = [
            self.parameters(muscle, dt, float(mass))
            for muscle, mass in zip(muscles, masses, strict=True)
        ]
        self._values = values
        self.p = SimpleNamespace(
            **{name: np.array([item[name] for item in values]) for name in values[0]}
        )

    def one(self, index: int) -> Parameters:
        """Return the parameters of one muscle of the group, as floats."""
        return SimpleNamespace(**self._values[index])

    @classmethod
    def variant(cls, actuator: Any) -> tuple[Any, ...]:
        """Return what decides which equations apply; muscles that agree form one group."""
        del actuator
        return ()

    @abstractmethod
    def parameters(self, muscle: Muscle, dt: float, mass: float) -> dict[str, float]:
        """Return the numbers that `step` needs for one muscle."""

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

    @abstractmethod
    def energy(self, x: Sequence[Array], lengths: Array) -> Array:
        """Return the elastic energy that passive parts store, shape (n,), [J]."""


def limits(muscle: Muscle) -> dict[str, float]:
    """Return the tension limits as parameters."""
    return {
        "tension_min": muscle.tension_min,
        "tension_max": min(muscle.tension_max, LARGEST_FORCE),
    }


def implicit_terms(stiffness: float, damping: float, dt: float, mass: float) -> dict[str, float]:
    """Return the terms of a linearly implicit force, or zeros where a plain one is stable.

    The body that a muscle pulls advances by ``v+ = v - dt T / m``, so that at the end of the step
    the path has the length ``l + dt v - (dt^2/m) T``. Where the element is stiff against the step,
    ``k dt^2/m > 0.1`` or ``c dt/m > 0.5``, its tension is therefore taken at the length
    ``l + ahead l'`` behind a series compliance ``dt^2/m``; for a linear element

        T = (k (l + dt l' - L0) + c l') / (1 + dt c/m + dt^2 k/m)

    which is stable for any k and c, and only takes energy away. The price is that the element is
    softer than it was told, by that compliance.

    Args:
        stiffness: Largest usual one, [N/m].
        damping: [N s/m].
        dt: [s].
        mass: That the muscle feels along its path, [kg].

    Returns:
        ``ahead`` [s], ``compliance`` dt^2/m [m/N] and ``mobility`` dt/m [s/kg].
    """
    if stiffness * dt**2 / mass > 0.1 or damping * dt / mass > 0.5:
        return {"ahead": dt, "compliance": dt**2 / mass, "mobility": dt / mass}
    return {"ahead": 0.0, "compliance": 0.0, "mobility": 0.0}


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def integral(function: Callable[[Array], Array], start: Array, end: Array) -> Array:
    """Integrate an elementwise function from start to end (n,) by Gauss' rule of 64 nodes."""
    half = 0.5 * (np.asarray(end, float) - start)
    middle = 0.5 * (np.asarray(end, float) + start)
    values = np.stack([function(middle + half * node) for node in _NODES])
    total: npt.NDArray[np.float64] = half * np.tensordot(_WEIGHTS, values, axes=1)
    return total
