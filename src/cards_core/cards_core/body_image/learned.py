"""A body image that learns from the robot: geometry plus a small network for what it leaves out.

    l = f_geo(q) + g(q, T) + s N(x),     x = (u(q), T / T_scale)

N is a multilayer perceptron (two hidden layers of tanh) with outputs in units of s = 1 mm. It
begins at zero, so the untrained image is the geometric one, and learns while the robot runs
(Adam on a ring buffer).

Tension is a weak input, T_scale a large one: robots that are held at wrong lengths pull harder the
more wrong they are, and a network that took that for a cause would be lost once it had learned and
the tensions were gone. Samples that were never measured, with the geometric answer, can be mixed
in as published [Kawaharazuka2018]_ (`imagined`). By default they are not: errors of attachments
and moment arms go on where the robot has not been, so that what was learned beside is nearer to
the truth there than the description, to which such samples draw the image back everywhere.

Two kinds of samples: where joints are measured, the pose and the tension with the lengths that
the muscles had there (`LearnedBodyImage.add`); where they are not, at rest, the same pose with the
tensions that it needs, whose lengths follow from the elasticity
(`LearnedBodyImage.add_necessary`).
"""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.errors import CardsError, ShapeError
from cards_core.files import write_atomically
from cards_core.paths.layout import robot_hash
from cards_core.table_files import read_npz
from cards_core.typing import Array

HIDDEN = 64
"""Neurons of each hidden layer."""

OUTPUT_SCALE = 1e-3
"""s, [m]."""

RATE = 2e-3
"""Step size of Adam."""

DECAYS = (0.9, 0.999)
"""Of Adam's means of the gradient and of its square."""


class LearnedBodyImage(BodyImage):
    """Geometry plus network; see the module.

    Args:
        geometric: What it starts from.
        tension_scale: T_scale, [N].
        buffer: Samples that are kept; the oldest goes first.
        batch: Samples per update.
        imagined: Share of a batch that is geometry instead of measurement.
        seed: Of weights and of choices.

    Attributes:
        samples: Number of samples in the buffer.
        updates: Steps of Adam so far.
    """

    kind = "learned"

    def __init__(
        self,
        geometric: GeometricBodyImage,
        *,
        tension_scale: float = 1000.0,
        buffer: int = 4096,
        batch: int = 32,
        imagined: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(geometric.robot)
        self.geometric = geometric
        self.samples = 0
        self.updates = 0
        tree, m = self.robot.tree, len(self.robot.muscles)
        self._rng = np.random.default_rng(seed)
        bounded = np.isfinite(tree.lower) & np.isfinite(tree.upper) & (tree.upper > tree.lower)
        low, high = np.where(bounded, tree.lower, -1.0), np.where(bounded, tree.upper, 1.0)
        self._middle, self._scale = 0.5 * (low + high), 2.0 / (high - low)
        self._tension_scale = float(tension_scale)
        inputs = tree.nq + m
        sizes = (inputs, HIDDEN, HIDDEN, m)
        self._weights = [
            self._rng.normal(0.0, 1.0 / np.sqrt(a), (b, a)) for a, b in itertools.pairwise(sizes)
        ]
        self._weights[-1][:] = 0.0
        self._biases = [np.zeros(size) for size in sizes[1:]]
        self._means = [np.zeros_like(w) for w in (*self._weights, *self._biases)]
        self._squares = [np.zeros_like(w) for w in (*self._weights, *self._biases)]
        self._inputs = np.zeros((buffer, inputs))
        self._targets = np.zeros((buffer, m))
        self._next = 0
        self._batch = batch
        self._imagined = round(batch * imagined)
        self._layers = (np.zeros(HIDDEN), np.zeros(HIDDEN))
        self._features_buffer = np.zeros(inputs)
        self._lengths, self._slopes = np.zeros(m), np.zeros((m, tree.nq))
        self._inner, self._outer = np.zeros((HIDDEN, tree.nq)), np.zeros((HIDDEN, tree.nq))
        self._balls = [node for node in tree.nodes if node.kind == "ball"]
        self._others = [node for node in tree.nodes if node.kind != "ball"]

    def evaluate(self, q: Array, tensions: Array) -> tuple[Array, Array]:
        """Return l and dl/dq; see `BodyImage.evaluate`."""
        first, second, third = self._weights
        x, (a, b), lengths = self._features(q, tensions), self._layers, self._lengths
        np.dot(first, x, out=a)
        a += self._biases[0]
        np.tanh(a, out=a)
        np.dot(second, a, out=b)
        b += self._biases[1]
        np.tanh(b, out=b)
        np.dot(third, b, out=lengths)
        lengths += self._biases[2]
        lengths *= OUTPUT_SCALE
        # of tanh; in place, for whoever asks 125 times a second beside much else
        a *= a
        b *= b
        np.subtract(OUTPUT_SCALE, OUTPUT_SCALE * b, out=b)
        slopes = self._slopes
        np.multiply(first[:, : slopes.shape[1]], self._scale, out=self._inner)
        self._inner *= (1.0 - a)[:, None]
        np.dot(second, self._inner, out=self._outer)
        self._outer *= b[:, None]
        np.dot(third, self._outer, out=slopes)
        known, jacobian = self.geometric.evaluate(q, tensions)
        lengths += known
        return lengths, jacobian + self._tangent(slopes, q)

    def add(self, q: Array, tensions: Array, lengths: Array) -> None:
        """Remember the lengths that the muscles had in a measured pose.

        Args:
            q: Shape (nq,).
            tensions: Shape (m,), [N].
            lengths: Shape (m,), [m].

        Raises:
            ShapeError: A number is not finite, or there are not as many as expected.
        """
        if (q.shape, tensions.shape, lengths.shape) != (
            self._q_shape,
            self._t_shape,
            self._t_shape,
        ):
            raise ShapeError(
                f"q, tensions, lengths have shapes {q.shape}, {tensions.shape}, {lengths.shape}; "
                f"expected {self._q_shape}, {self._t_shape}, {self._t_shape}"
            )
        if not all(np.isfinite(values).all() for values in (q, tensions, lengths)):
            raise ShapeError("a sample of the body image is not finite")
        error = lengths - self.geometric.evaluate(q, tensions)[0]
        self._inputs[self._next] = self._features(q, tensions)
        self._targets[self._next] = error / OUTPUT_SCALE
        self._next = (self._next + 1) % len(self._inputs)
        self.samples = min(self.samples + 1, len(self._inputs))

    def add_necessary(self, q: Array, tensions: Array, lengths: Array, necessary: Array) -> None:
        """Remember which lengths the necessary tensions would have had in a pose at rest.

        A robot that rests at q with tensions T and lengths l would, if it pulled T_nec instead,
        have the same pose with l + g(q, T_nec) - g(q, T): that is what to ask for next time.

        Args:
            q: Shape (nq,).
            tensions: T, shape (m,), [N].
            lengths: l, shape (m,), [m].
            necessary: T_nec, shape (m,), [N].

        Raises:
            ShapeError: As `add`.
        """
        before = self.geometric.evaluate(q, tensions)[0].copy()
        after = self.geometric.evaluate(q, necessary)[0]
        self.add(q, necessary, lengths + after - before)

    def update(self) -> float:
        """Take one step of Adam; return the RMS error of the batch before it, [m].

        Without samples nothing changes and the error is zero.
        """
        if not self.samples:
            return 0.0
        rows = self._rng.integers(self.samples, size=self._batch)
        x, target = self._inputs[rows], self._targets[rows]
        if self._imagined:
            tree = self.robot.tree
            # anywhere, under tensions that the robot has had
            for row in range(self._imagined):
                x[row, : tree.nq] = (tree.random(self._rng) - self._middle) * self._scale
            target[: self._imagined] = 0.0
        first, second, third = self._weights
        a = np.tanh(x @ first.T + self._biases[0])
        b = np.tanh(a @ second.T + self._biases[1])
        error = b @ third.T + self._biases[2] - target
        back_b = (error @ third) * (1.0 - b * b)
        back_a = (back_b @ second) * (1.0 - a * a)
        n = len(x)
        gradients = [
            back_a.T @ x / n,
            back_b.T @ a / n,
            error.T @ b / n,
            back_a.mean(axis=0),
            back_b.mean(axis=0),
            error.mean(axis=0),
        ]
        self.updates += 1
        first_decay, second_decay = DECAYS
        size = RATE * np.sqrt(1.0 - second_decay**self.updates) / (1.0 - first_decay**self.updates)
        parameters = (*self._weights, *self._biases)
        for i, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            self._means[i] += (1.0 - first_decay) * (gradient - self._means[i])
            self._squares[i] += (1.0 - second_decay) * (gradient**2 - self._squares[i])
            np.subtract(
                parameter,
                size * self._means[i] / (np.sqrt(self._squares[i]) + 1e-8),
                out=parameter,
            )
        return float(OUTPUT_SCALE * np.sqrt(np.mean(error[self._imagined :] ** 2)))

    def save(self, path: str | Path) -> None:
        """Write the network as an NPZ archive, all or nothing. Raises `OSError`."""
        content: dict[str, Array] = {}
        for i, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            content |= {f"weight_{i}": weight, f"bias_{i}": bias}
        content["model"] = _code(self._model())
        content["tension_scale"] = np.array([self._tension_scale])
        data = io.BytesIO()
        np.savez(data, allow_pickle=False, **content)
        write_atomically(Path(path), data.getvalue())

    def load(self, path: str | Path) -> None:
        """Take over a network that `save` wrote for this robot.

        Nothing changes if it does not fit.

        Raises:
            CardsError: No such file, or one of another robot or another model of this robot.
        """
        found = read_npz(Path(path))
        names = [f"{kind}_{i}" for i in range(3) for kind in ("weight", "bias")]
        missing = [n for n in (*names, "model", "tension_scale") if n not in found]
        if missing:
            raise CardsError(f"{path} is no body image: it has no '{missing[0]}'")
        if not np.array_equal(found["model"], _code(self._model())):
            made_for = bytes(found["model"].astype(np.uint8)).decode("utf-8", "replace")
            raise CardsError(
                f"{path} is the body image of {made_for.split(' ')[0]!r}, made for the model "
                f"{made_for.split(' ')[-1]} (expected: {self.robot.name!r}, model "
                f"{self._model().split(' ')[-1]})"
            )
        for i, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            a, b = found[f"weight_{i}"], found[f"bias_{i}"]
            if a.shape != weight.shape or b.shape != bias.shape:
                raise CardsError(f"{path}: layer {i} has shape {a.shape}, expected {weight.shape}")
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise CardsError(f"{path}: layer {i} has numbers that are not finite")
        for i in range(3):
            self._weights[i][:] = found[f"weight_{i}"]
            self._biases[i][:] = found[f"bias_{i}"]
        self._tension_scale = float(found["tension_scale"][0])

    def _model(self) -> str:
        # the network corrects this geometry and no other
        return f"{self.robot.name} {robot_hash(self.robot.tree)}"

    def _features(self, q: Array, tensions: Array) -> Array:
        x, n = self._features_buffer, q.size
        np.subtract(q, self._middle, out=x[:n])
        x[:n] *= self._scale
        np.divide(tensions, self._tension_scale, out=x[n:])
        return x

    def _tangent(self, slopes: Array, q: Array) -> Array:
        """Return derivatives along velocities from those along coordinates, shape (m, nv)."""
        if not self._balls:
            return slopes
        out = np.zeros((slopes.shape[0], self.robot.tree.nv))
        for node in self._others:
            out[:, node.v] = slopes[:, node.q]
        for node in self._balls:
            w, x, y, z = q[node.q : node.q + 4]
            # d quaternion / dt = 1/2 quaternion * (0, angular velocity)
            rate = 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
            out[:, node.v : node.v + 3] = slopes[:, node.q : node.q + 4] @ rate
        return out


def _code(text: str) -> Array:
    """Return a text as numbers, which NPZ archives of this project are made of."""
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(float)
