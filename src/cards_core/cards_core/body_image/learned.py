"""A body image that learns from the robot: geometry plus a small network for what it leaves out.

    l = f_geo(q) + g(q, T) + s N(x),     x = (u(q), T / T_scale)

N is a multilayer perceptron (two hidden layers of tanh) with outputs in units of s = 1 mm. It
begins at zero, so the untrained image is the geometric one, and learns while the robot runs
(Adam on a ring buffer).

Tension is a weak input, T_scale a large one: robots that are held at wrong lengths pull harder the
more wrong they are, and a network that took that for a cause would be lost once it had learned and
the tensions were gone. Samples that were never measured, with the geometric answer, are not mixed
in as published [Kawaharazuka2018]_: errors of attachments and moment arms go on where the robot
has not been, so that what was learned beside is nearer to the truth there than the description, to
which such samples draw the image back everywhere.

A sample is the pose and the tension with the lengths that the muscles had there
(`LearnedBodyImage.add`).
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.body_image.network import Network
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


class LearnedBodyImage(BodyImage):
    """Geometry plus network; see the module.

    Args:
        geometric: What it starts from.
        tension_scale: T_scale, [N].
        buffer: Samples that are kept; the oldest goes first.
        batch: Samples per update.
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
        seed: int = 0,
    ) -> None:
        super().__init__(geometric.robot)
        self.geometric = geometric
        self.samples = 0
        tree, m = self.robot.tree, len(self.robot.muscles)
        self._rng = np.random.default_rng(seed)
        bounded = np.isfinite(tree.lower) & np.isfinite(tree.upper) & (tree.upper > tree.lower)
        low, high = np.where(bounded, tree.lower, -1.0), np.where(bounded, tree.upper, 1.0)
        self._middle, self._scale = 0.5 * (low + high), 2.0 / (high - low)
        self._tension_scale = float(tension_scale)
        inputs = tree.nq + m
        self._network = Network(inputs, HIDDEN, m, tree.nq, self._rng)
        self._slope_scale = OUTPUT_SCALE * self._scale
        self._inputs = np.zeros((buffer, inputs))
        self._targets = np.zeros((buffer, m))
        self._next = 0
        self._batch = batch
        self._lengths, self._jacobian = np.zeros(m), np.zeros((m, tree.nv))
        self._balls = [node for node in tree.nodes if node.kind == "ball"]
        self._others = [node for node in tree.nodes if node.kind != "ball"]

    def evaluate(self, q: Array, tensions: Array) -> tuple[Array, Array]:
        """Return l and dl/dq; see `BodyImage.evaluate`."""
        network, lengths = self._network, self._lengths
        self._write_features(q, tensions)
        network.evaluate()
        known, jacobian = self.geometric.evaluate(q, tensions)
        np.multiply(network.y, OUTPUT_SCALE, out=lengths)
        lengths += known
        slopes = network.slopes
        slopes *= self._slope_scale
        np.add(jacobian, self._tangent(slopes, q), out=self._jacobian)
        return lengths, self._jacobian

    @property
    def updates(self) -> int:
        """Steps of Adam so far."""
        return self._network.updates

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
        self._write_features(q, tensions)
        self._inputs[self._next] = self._network.x
        self._targets[self._next] = error / OUTPUT_SCALE
        self._next = (self._next + 1) % len(self._inputs)
        self.samples = min(self.samples + 1, len(self._inputs))

    def update(self) -> float:
        """Take one step of Adam; return the RMS error of the batch before it, [m].

        Without samples nothing changes and the error is zero.
        """
        if not self.samples:
            return 0.0
        rows = self._rng.integers(self.samples, size=self._batch)
        error = self._network.learn(self._inputs[rows], self._targets[rows], RATE)
        return float(OUTPUT_SCALE * np.sqrt(np.mean(error**2)))

    def save(self, path: str | Path) -> None:
        """Write the network as an NPZ archive, all or nothing. Raises `OSError`."""
        content: dict[str, Array] = {}
        for i, (weight, bias) in enumerate(self._layers()):
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
            code = found["model"]
            if code.ndim != 1 or not np.all((code >= 0.0) & (code < 256.0)):
                raise CardsError(f"{path} is no body image: its 'model' is no text")
            made_for = bytes(code.astype(np.uint8)).decode("utf-8", "replace")
            raise CardsError(
                f"{path} is the body image of {made_for.split(' ')[0]!r}, made for the model "
                f"{made_for.split(' ')[-1]} (expected: {self.robot.name!r}, model "
                f"{self._model().split(' ')[-1]})"
            )
        for i, (weight, bias) in enumerate(self._layers()):
            a, b = found[f"weight_{i}"], found[f"bias_{i}"]
            if a.shape != weight.shape or b.shape != bias.shape:
                raise CardsError(f"{path}: layer {i} has shape {a.shape}, expected {weight.shape}")
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise CardsError(f"{path}: layer {i} has numbers that are not finite")
        scale = found["tension_scale"]
        if scale.shape != (1,) or not (np.isfinite(scale[0]) and scale[0] > 0.0):
            raise CardsError(f"{path}: tension_scale is {scale}, expected one number > 0 in N")
        for i, (weight, bias) in enumerate(self._layers()):
            weight[:], bias[:] = found[f"weight_{i}"], found[f"bias_{i}"]
        self._tension_scale = float(scale[0])

    def _model(self) -> str:
        # the network corrects this geometry and no other
        return f"{self.robot.name} {robot_hash(self.robot.tree)}"

    def _layers(self) -> list[tuple[Array, Array]]:
        """Return weight and bias of each layer of the network."""
        return list(zip(self._network.weights, self._network.biases, strict=True))

    def _write_features(self, q: Array, tensions: Array) -> None:
        """Write x of the network."""
        x, n = self._network.x, q.size
        np.subtract(q, self._middle, out=x[:n])
        x[:n] *= self._scale
        np.divide(tensions, self._tension_scale, out=x[n:])

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
