"""The perceptron in C against its formulas in NumPy, and its derivatives against differences."""

import numpy as np
import pytest

from cards_core.body_image.network import DECAYS, Network

INPUTS, HIDDEN, OUTPUTS, VARIED = 7, 13, 5, 3


def network(seed=0):
    rng = np.random.default_rng(seed)
    made = Network(INPUTS, HIDDEN, OUTPUTS, VARIED, rng)
    assert not made.weights[-1].any()
    made.weights[-1][:] = rng.standard_normal((OUTPUTS, HIDDEN))
    for bias in made.biases:
        bias[:] = rng.standard_normal(bias.size)
    return made, rng


def output(weights, biases, x):
    a = np.tanh(weights[0] @ x + biases[0])
    b = np.tanh(weights[1] @ a + biases[1])
    return weights[2] @ b + biases[2]


def test_output_and_derivatives():
    made, rng = network()
    for _ in range(20):
        made.x[:] = rng.standard_normal(INPUTS)
        made.evaluate()
        y, slopes, x = made.y.copy(), made.slopes.copy(), made.x.copy()
        assert np.allclose(y, output(made.weights, made.biases, x), rtol=1e-13, atol=1e-13)
        for k in range(VARIED):
            step = np.zeros(INPUTS)
            step[k] = 1e-6
            ends = [output(made.weights, made.biases, x + s * step) for s in (1.0, -1.0)]
            assert np.allclose(slopes[:, k], (ends[0] - ends[1]) / 2e-6, atol=1e-8)


def test_learning_is_adam_on_the_mean_square_error():
    """Gradient by differences of half the mean square; Adam as published, step by step."""
    made, rng = network(1)
    parameters = [*made.weights, *made.biases]
    mine = [p.copy() for p in parameters]
    means, squares = [np.zeros_like(p) for p in mine], [np.zeros_like(p) for p in mine]
    one, two = DECAYS
    for count in range(1, 4):
        x, target = rng.standard_normal((6, INPUTS)), rng.standard_normal((6, OUTPUTS))

        def loss(x=x, target=target):
            errors = [output(mine[:3], mine[3:], a) - b for a, b in zip(x, target, strict=True)]
            return 0.5 * np.mean(np.sum(np.square(errors), axis=1))

        gradients = []
        for p in mine:
            g = np.zeros_like(p)
            for i in np.ndindex(p.shape):
                kept = p[i]
                p[i] = kept + 1e-5
                above = loss()
                p[i] = kept - 1e-5
                g[i] = (above - loss()) / 2e-5
                p[i] = kept
            gradients.append(g)
        error = made.learn(x, target, 1e-3)
        assert 0.5 * np.mean(np.sum(error**2, axis=1)) == pytest.approx(loss(), rel=1e-6)
        for p, g, mean, square in zip(mine, gradients, means, squares, strict=True):
            mean[:] = one * mean + (1.0 - one) * g
            square[:] = two * square + (1.0 - two) * g**2
            p -= 1e-3 * (mean / (1.0 - one**count)) / np.sqrt(square / (1.0 - two**count))
        for theirs, p in zip(parameters, mine, strict=True):
            assert np.allclose(theirs, p, atol=2e-6)
    assert made.updates == 3
