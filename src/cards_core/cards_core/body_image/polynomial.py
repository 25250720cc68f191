"""A body image of polynomials: every muscle's length over the coordinates that it spans.

    f_i(q) = sum_a c_ia prod_j u_j^a_j,     |a| <= degree,     u_j in [-1, 1] over the fitted range

with dl/dq in closed form. It takes no path solver, so it suits small computers, and identification
by measured lengths. Outside the range in which it was fitted it is not to be trusted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.body_image.interface import BodyImage
from cards_core.errors import CardsError, ParameterError, ShapeError
from cards_core.robot.model import Robot
from cards_core.typing import Array

SPANS = 1e-9
"""Largest dl/dq of a coordinate that a muscle does not span, [m/rad] or [1]."""


class PolynomialBodyImage(BodyImage):
    """Polynomials fitted to lengths.

    Args:
        robot: Whose muscles they are.
        q: Poses, shape (n, nq).
        lengths: Measured or computed there, shape (n, m), [m].
        spanned: For every muscle the coordinates that its length depends on, shape (m, nv).
        degree: Of the polynomials, >= 1.

    Attributes:
        degree: As given.
        lower, upper: Fitted range of every coordinate, shape (nv,).
        rms: Of the residuals of every muscle, shape (m,), [m].

    Raises:
        CardsError: The robot has ball joints, whose coordinates are no numbers of their own.
        ParameterError: The degree is no whole number >= 1, or there are fewer poses than terms.
        ShapeError: The arrays do not fit.
    """

    kind = "polynomial"

    def __init__(
        self,
        robot: Robot,
        q: Array,
        lengths: Array,
        spanned: npt.NDArray[np.bool_],
        degree: int = 5,
    ) -> None:
        super().__init__(robot)
        tree, m = robot.tree, len(robot.muscles)
        _refuse_balls(robot)
        if degree != int(degree) or degree < 1:
            raise ParameterError(f"degree is {degree}; expected a whole number >= 1")
        wanted = (len(q), tree.nq), (len(q), m), (m, tree.nv)
        if (q.shape, lengths.shape, spanned.shape) != wanted:
            raise ShapeError(
                f"q, lengths, spanned have shapes {q.shape}, {lengths.shape}, {spanned.shape}; "
                f"expected {wanted[0]}, {wanted[1]}, {wanted[2]}"
            )
        if not (np.isfinite(q).all() and np.isfinite(lengths).all()):
            raise ShapeError("a pose or a length is not finite")
        self.degree = int(degree)
        self.lower, self.upper = q.min(axis=0), q.max(axis=0)
        half = 0.5 * (self.upper - self.lower)
        self._middle = 0.5 * (self.upper + self.lower)
        self._scale = 1.0 / np.where(half > 0.0, half, 1.0)
        # one table of terms for all muscles; a muscle has coefficients for those it may use
        rows: dict[tuple[int, ...], int] = {}
        own: list[list[int]] = []
        for muscle in range(m):
            joints = np.flatnonzero(spanned[muscle])
            own.append([rows.setdefault(a, len(rows)) for a in _terms(joints, tree.nv, degree)])
        self._exponents = np.array(list(rows), dtype=np.intp).reshape(len(rows), tree.nv)
        self._coefficients = np.zeros((m, len(rows)))
        self.rms = np.zeros(m)
        basis = self._basis(self._powers((q - self._middle) * self._scale))
        for muscle, terms in enumerate(own):
            if len(q) < len(terms):
                raise ParameterError(
                    f"{len(q)} poses for the {len(terms)} terms of muscle "
                    f"'{robot.muscles[muscle].name}'; expected more poses or a lower degree than "
                    f"{degree}"
                )
            found = np.linalg.lstsq(basis[:, terms], lengths[:, muscle], rcond=None)[0]
            self._coefficients[muscle, terms] = found
            left = basis[:, terms] @ found - lengths[:, muscle]
            self.rms[muscle] = float(np.sqrt(np.mean(left**2)))

    @classmethod
    def fitted(
        cls,
        image: BodyImage,
        degree: int = 5,
        *,
        lower: Sequence[float] | Array | None = None,
        upper: Sequence[float] | Array | None = None,
        samples: int = 2000,
        seed: int = 0,
    ) -> PolynomialBodyImage:
        """Return polynomials fitted to another body image, without tension.

        Args:
            image: The other one, e.g. geometric.
            degree: Of the polynomials.
            lower: Of the range of the coordinates, shape (nq,); the joint limits if None.
            upper: Likewise.
            samples: Number of random poses.
            seed: Of their generator.

        Raises:
            ParameterError: A coordinate has no limits and no range was given, or see the class.
        """
        _refuse_balls(image.robot)
        tree = image.robot.tree
        low = np.array(tree.lower if lower is None else lower, dtype=float)
        high = np.array(tree.upper if upper is None else upper, dtype=float)
        for name, a, b in zip(tree.position_names, low, high, strict=True):
            if not (np.isfinite(a) and np.isfinite(b) and a <= b):
                raise ParameterError(
                    f"range of '{name}' is {a:g} .. {b:g}; expected finite numbers (a coordinate "
                    "without joint limits needs lower and upper)"
                )
        rng = np.random.default_rng(seed)
        q = rng.uniform(low, high, (samples, tree.nq))
        rest = np.zeros(len(image.robot.muscles))
        found = np.zeros((samples, rest.size))
        largest = np.zeros((rest.size, tree.nv))
        for row, pose in enumerate(q):
            length, jacobian = image.evaluate(pose, rest)
            found[row] = length
            np.maximum(largest, np.abs(jacobian), out=largest)
        return cls(image.robot, q, found, largest > SPANS, degree)

    def evaluate(self, q: Array, tensions: Array) -> tuple[Array, Array]:
        """Return l and dl/dq; the tensions do not matter. See `BodyImage.evaluate`."""
        del tensions
        powers = self._powers(((q - self._middle) * self._scale)[None])[0]
        columns = np.arange(self._exponents.shape[1])
        factors = powers[columns, self._exponents]
        lengths = self._coefficients @ np.prod(factors, axis=1)
        # d u^a / dq = a u^(a-1) scale, times the product of the factors before and behind
        slopes = powers[columns, np.maximum(self._exponents - 1, 0)]
        slopes *= self._exponents * self._scale
        slopes[:, 1:] *= np.cumprod(factors[:, :-1], axis=1)
        slopes[:, :-1] *= np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
        return lengths, self._coefficients @ slopes

    def _powers(self, u: Array) -> Array:
        """Return u_j^k, shape (n, nv, degree + 1)."""
        return u[:, :, None] ** np.arange(self.degree + 1)

    def _basis(self, powers: Array) -> Array:
        """Return all terms, shape (n, number of terms)."""
        columns = np.arange(self._exponents.shape[1])
        out: Array = np.prod(powers[:, columns, self._exponents], axis=2)
        return out


def _refuse_balls(robot: Robot) -> None:
    balls = [node.name for node in robot.tree.nodes if node.kind == "ball"]
    if balls:
        raise CardsError(
            f"robot '{robot.name}' has the ball joint '{balls[0]}' (expected for a polynomial "
            "body image: revolute and prismatic joints; a geometric or learned one takes all)"
        )


def _terms(joints: npt.NDArray[np.intp], size: int, degree: int) -> list[tuple[int, ...]]:
    """Return all exponents over some coordinates whose sum is at most the degree."""
    out = []
    for exponents in itertools.product(range(degree + 1), repeat=len(joints)):
        if sum(exponents) <= degree:
            full = [0] * size
            for joint, exponent in zip(joints, exponents, strict=True):
                full[int(joint)] = exponent
            out.append(tuple(full))
    return out
