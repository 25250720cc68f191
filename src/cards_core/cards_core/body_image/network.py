"""A small multilayer perceptron that is asked often and learns beside: evaluation and Adam in C.

    y = W3 tanh(W2 tanh(W1 x + b1) + b2) + b3
    dy/dx = W3 diag(1 - b^2) W2 diag(1 - a^2) W1

with the outputs a and b of the hidden layers. It begins at y = 0 (W3 = 0, b3 = 0) and is taught by
steps of Adam on the mean square error of a batch [Kingma2015]_.
"""

from __future__ import annotations

import ctypes
import itertools
from functools import cache
from pathlib import Path

import numpy as np

from cards_core.codegen.library import PRODUCT, load_library
from cards_core.typing import Array

DECAYS = (0.9, 0.999)
"""Of Adam's means of the gradient and of its square."""


class Network:
    """See the module.

    Args:
        inputs: Size of x.
        hidden: Neurons of each hidden layer.
        outputs: Size of y.
        varied: Derivatives are those along so many first inputs.
        rng: The weights of hidden layers are drawn from it.

    Attributes:
        weights: W1, W2, W3, shapes (hidden, inputs), (hidden, hidden), (outputs, hidden).
        biases: b1, b2, b3.
        x: Input of `evaluate`, shape (inputs,), to be written.
        y: Output, shape (outputs,); overwritten by the next call.
        slopes: dy/dx of the first inputs, shape (outputs, varied); likewise.
        updates: Steps of Adam so far.

    Raises:
        CompilationError: There is no C compiler.
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, varied: int, rng: np.random.Generator
    ) -> None:
        sizes = (inputs, hidden, hidden, outputs)
        shapes = list(itertools.pairwise(sizes))
        count = sum((a + 1) * b for a, b in shapes)
        # all in one piece, for Adam; weights with a row per input, so that y = x W adds rows
        self._parameters, self._gradient = np.zeros(count), np.zeros(count)
        self._mean, self._square = np.zeros(count), np.zeros(count)
        self._weights, self.biases = _pieces(self._parameters, shapes)
        self._weight_slopes, self._bias_slopes = _pieces(self._gradient, shapes)
        self.weights = [weight.T for weight in self._weights]
        for weight, (a, b) in zip(self.weights, shapes, strict=True):
            weight[:] = rng.normal(0.0, 1.0 / np.sqrt(a), (b, a))
        self.weights[-1][:] = 0.0
        self.x, self.y = np.zeros(inputs), np.zeros(outputs)
        self.slopes = np.zeros((outputs, varied))
        self.updates = 0
        self._work = np.zeros(4 * hidden + outputs)
        pairs = zip(self._weights, self.biases, strict=True)
        arrays = (*itertools.chain(*pairs), self.x, self.y, self.slopes, self._work)
        library = _library()
        self._c = _Network(
            inputs, hidden, outputs, varied, *(array.ctypes.data for array in arrays)
        )
        self._pointer = ctypes.byref(self._c)
        self._call, self._adam = library.network_evaluate, library.network_adam

    def evaluate(self) -> None:
        """Compute `y` and `slopes` at `x`."""
        self._call(self._pointer)

    def learn(self, x: Array, target: Array, rate: float) -> Array:
        """Take one step of Adam; return the errors before it, shape (n, outputs).

        Args:
            x: Batch of inputs, shape (n, inputs).
            target: What y should be there, shape (n, outputs).
            rate: Size of the step.
        """
        first, second, third = self._weights
        a = np.tanh(x @ first + self.biases[0])
        b = np.tanh(a @ second + self.biases[1])
        error: Array = b @ third + self.biases[2] - target
        share = error / len(x)
        back_b = (share @ third.T) * (1.0 - b * b)
        back_a = (back_b @ second.T) * (1.0 - a * a)
        layers = ((x, back_a), (a, back_b), (b, share))
        slopes = zip(layers, self._weight_slopes, self._bias_slopes, strict=True)
        for (before, back), weight_slope, bias_slope in slopes:
            np.matmul(before.T, back, out=weight_slope)
            np.sum(back, axis=0, out=bias_slope)
        self.updates += 1
        one, two = DECAYS
        size = rate * np.sqrt(1.0 - two**self.updates) / (1.0 - one**self.updates)
        arrays = (self._gradient, self._mean, self._square, self._parameters)
        self._adam(
            self._parameters.size,
            size,
            1.0 - one,
            1.0 - two,
            *(array.ctypes.data for array in arrays),
        )
        return error


def _pieces(flat: Array, shapes: list[tuple[int, int]]) -> tuple[list[Array], list[Array]]:
    """Return views of weights, shapes (a, b), and of biases, shapes (b,), one after the other."""
    weights, biases, at = [], [], 0
    for a, b in shapes:
        weights.append(flat[at : at + a * b].reshape(a, b))
        biases.append(flat[at + a * b : at + (a + 1) * b])
        at += (a + 1) * b
    return weights, biases


class _Network(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_long) for name in ("inputs", "hidden", "outputs", "varied")],
        *[
            (name, ctypes.c_void_p)
            for name in ("w1", "b1", "w2", "b2", "w3", "b3", "x", "y", "slopes", "work")
        ],
    ]


@cache
def _library() -> ctypes.CDLL:
    own = Path(__file__).parent / "native" / "network.c"
    source = "\n".join(file.read_text(encoding="utf-8") for file in (PRODUCT, own))
    library = load_library("networks", source)
    library.network_evaluate.argtypes = [ctypes.c_void_p]
    library.network_evaluate.restype = None
    library.network_adam.argtypes = [
        ctypes.c_long,
        *[ctypes.c_double] * 3,
        *[ctypes.c_void_p] * 4,
    ]
    library.network_adam.restype = None
    return library
