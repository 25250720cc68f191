"""A feedforward network of one hidden layer, sigmoid everywhere.

h = s(W1 (x, -1)),    y = s(W2 (h, -1)),    s(z) = 1/(1 + exp(-z))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.checks import real_array
from cards_core.errors import ShapeError
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class Network:
    """A network of i inputs, h hidden neurons and o outputs.

    Attributes:
        hidden: W1, shape (h, i + 1); the last column belongs to the constant input -1.
        output: W2, shape (o, h + 1); likewise.

    Raises:
        ShapeError: The shapes do not fit each other, or a weight is not finite.
    """

    hidden: Array
    output: Array

    def __post_init__(self) -> None:
        for name in ("hidden", "output"):
            weights = real_array(getattr(self, name), f"weights of the {name} layer")
            if weights.ndim != 2 or weights.shape[1] < 2 or not np.isfinite(weights).all():
                raise ShapeError(
                    f"weights of the {name} layer have shape {weights.shape}; expected finite "
                    "numbers, a row per neuron and a column per input and one more"
                )
            object.__setattr__(self, name, weights)
        if self.output.shape[1] != len(self.hidden) + 1:
            raise ShapeError(
                f"weights of the output layer have {self.output.shape[1]} columns; expected "
                f"{len(self.hidden) + 1}, one more than there are hidden neurons"
            )

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.hidden.shape[1]) - 1

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.output.shape[0])

    @classmethod
    def random(
        cls, inputs: int, hidden: int, outputs: int, generator: np.random.Generator
    ) -> Network:
        """Return a network of uniform weights within +-1/sqrt(inputs of the layer).

        Args:
            inputs: i.
            hidden: h.
            outputs: o.
            generator: Source of the random numbers.
        """
        layers = [
            generator.uniform(-1.0, 1.0, (rows, columns + 1)) / np.sqrt(columns)
            for rows, columns in ((hidden, inputs), (outputs, hidden))
        ]
        return cls(*layers)

    def __call__(self, values: npt.ArrayLike) -> Array:
        """Return outputs within 0 .. 1, shape (..., o), of inputs of shape (..., i)."""
        x = np.asarray(values, dtype=float)
        return _layer(self.output, _layer(self.hidden, x))


def _layer(weights: Array, x: Array) -> Array:
    z = x @ weights[:, :-1].T - weights[:, -1]
    # tanh does not overflow
    out: Array = 0.5 + 0.5 * np.tanh(0.5 * z)
    return out
