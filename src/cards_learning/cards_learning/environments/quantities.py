"""What an environment shows of its robots: named numbers with units and ranges.

Learners see numbers between -1 and 1. With the range (low, high) of a number x in SI units

    o = min(max(2 (x - low)/(high - low) - 1, -1), 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError, ShapeError
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class Quantity:
    """Some numbers of one kind.

    Attributes:
        name: Of all of them.
        unit: Likewise, empty without one.
        names: Of each, k.
        low, high: Range of each, shape (k,).
    """

    name: str
    unit: str
    names: tuple[str, ...]
    low: Array
    high: Array

    @classmethod
    def of(
        cls,
        name: str,
        unit: str,
        names: Sequence[str],
        low: npt.ArrayLike,
        high: npt.ArrayLike,
    ) -> Quantity:
        """Return a quantity with one range for all, or one for each.

        Args:
            name: Of all of them.
            unit: Likewise, empty without one.
            names: Of each, k.
            low: Lower end of the range, a number or shape (k,), in the unit.
            high: Upper end of the range, likewise.

        Raises:
            CardsError: A range that is empty or not finite.
        """
        shape = (len(names),)
        lower = np.broadcast_to(np.asarray(low, dtype=float), shape)
        upper = np.broadcast_to(np.asarray(high, dtype=float), shape)
        good = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
        if not good.all():
            i = int(np.argmin(good))
            raise CardsError(
                f"{name} of '{names[i]}' ranges from {lower[i]:g} to {upper[i]:g} {unit} "
                "(expected: a finite range)"
            )
        return cls(name, unit, tuple(names), lower, upper)


class Layout:
    """The quantities of an observation, one after another.

    Args:
        quantities: In this order.

    Attributes:
        quantities: As given.
        size: How many numbers there are, k.
        slices: Where those of a quantity are, by its name.
    """

    def __init__(self, quantities: Sequence[Quantity]) -> None:
        self.quantities = tuple(quantities)
        ends = np.cumsum([len(item.names) for item in quantities]).tolist()
        self.size: int = ends[-1]
        self.slices = {
            item.name: slice(end - len(item.names), end)
            for item, end in zip(quantities, ends, strict=True)
        }
        self._low = np.concatenate([item.low for item in quantities])
        self._range = np.concatenate([item.high for item in quantities]) - self._low

    def observation(self, values: Mapping[str, Array]) -> Array:
        """Return what learners see of values in SI units, shape (n, k), between -1 and 1.

        Args:
            values: By the name of the quantity, each of shape (n, its size).
        """
        rows = np.concatenate([values[item.name] for item in self.quantities], axis=1)
        out: Array = np.clip(2.0 * (rows - self._low) / self._range - 1.0, -1.0, 1.0)
        return out

    def physical(self, observation: npt.ArrayLike) -> dict[str, Array]:
        """Return the values in SI units by the name of the quantity, shape (..., its size).

        Args:
            observation: Shape (..., k). What was cut off at an end of its range is that end.

        Raises:
            ShapeError: Another number of values.
        """
        array = np.asarray(observation, dtype=float)
        if array.shape[-1:] != (self.size,):
            raise ShapeError(
                f"the observation has shape {array.shape}, expected (..., {self.size})"
            )
        values = self._low + 0.5 * (array + 1.0) * self._range
        return {name: values[..., where] for name, where in self.slices.items()}
