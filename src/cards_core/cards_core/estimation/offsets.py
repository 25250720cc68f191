"""Which constant offsets of length sensors the lengths of a moving robot tell.

A sensor reads ``l(q) + b`` with an offset b that stays. A small error dq of the pose and db of the
offsets go unseen at one pose if ``L dq + db = 0``, so that one pose tells of b only what no motion
can explain: the part outside the range of L, ``P b`` with

    P = E - L L^+           of rank m - rank L: the redundancy

The pose of every instant is free, the offsets are the same at all of them. K samples with
independent noise sigma therefore give offsets the information

    1/sigma^2 sum_k P(q_k) = K/sigma^2 S,    S = mean of P(q_k),  eigenvalues 0 to 1

A direction db is *unobservable* if ``S db = 0``: at every pose it lies in the range of L, so that
another motion, with dq = -L^+ db beside the true one, has the same readings. That is so

- for all directions without redundancy, m = rank L;
- for ``db = L dq`` with one dq for all poses, where the moment arms of a coordinate are the same
  at all poses: muscles on pulleys, or a prismatic joint that muscles pull along its axis;
- for the muscles of a part of the robot for which either is true.

Where moment arms change with the pose, no direction is left if the robot moves far enough. What is
left uncertain of a direction with the eigenvalue s after K samples is ``sigma / sqrt(K s)``. With
what is known of the offsets before, N(0, s_b^2), that is the Cramer-Rao bound (`offset_bound`)

    C = (E/s_b^2 + 1/sigma^2 sum_k P(q_k))^-1                        [BarShalom2001]_

which no estimator from lengths undercuts on average. That a robot moves smoothly hardly lowers it:
the motion that explains wrong offsets, -L^+ db, is as smooth as the true one.

A coordinate with a joint sensor is known, up to noise: its column of L explains nothing and is
left out. With a sensor at every joint, all offsets are observable at any pose. Only derivatives of
first order count here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.errors import ShapeError
from cards_core.estimation.initial_guess import RANK_TOLERANCE, SHARE
from cards_core.typing import Array

LEAST_INFORMATION = 1e-6
"""Eigenvalue of S that counts as zero: a million samples of such a direction are worth one length
sensor at a known pose, which is hours of motion."""


@dataclass(frozen=True, eq=False, slots=True)
class OffsetObservability:
    """What a set of poses tells of the offsets.

    Attributes:
        information: Eigenvalues of S, increasing, shape (m',), 0 to 1; m' muscles have an offset.
        directions: Their eigenvectors, one in each row, shape (m', m').
        unobservable: Names of the muscles that have a part in a direction that is unobservable.
    """

    information: Array
    directions: Array
    unobservable: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return True if all offsets can be told."""
        return not self.unobservable

    @property
    def rank(self) -> int:
        """Number of directions that can be told."""
        return int(np.count_nonzero(self.information > LEAST_INFORMATION))


def offset_observability(
    jacobians: Array,
    names: tuple[str, ...] | list[str],
    *,
    uncertain: npt.NDArray[np.bool_] | None = None,
    measured: npt.NDArray[np.bool_] | None = None,
) -> OffsetObservability:
    """Return what lengths at some poses tell of the offsets of their sensors.

    Args:
        jacobians: L at each pose, shape (k, m, nv); rows of muscles without a sensor left out.
        names: Of the muscles, m of them.
        uncertain: Muscles whose sensors have an offset, m' of them, shape (m,); all without it.
        measured: Coordinates that have a joint sensor, shape (nv,); none without it.

    Raises:
        ShapeError: No pose, or shapes that do not fit.
    """
    jacobians = np.asarray(jacobians, dtype=float)
    if jacobians.ndim != 3 or not len(jacobians) or jacobians.shape[1] != len(names):
        raise ShapeError(
            f"L has shape {jacobians.shape}, expected (k, {len(names)}, nv) with k >= 1"
        )
    free = jacobians if measured is None else jacobians[:, :, ~measured]
    left_over = unexplained(free).mean(axis=0)
    if uncertain is not None:
        left_over = left_over[np.ix_(uncertain, uncertain)]
        names = [name for name, there in zip(names, uncertain, strict=True) if there]
    information, vectors = np.linalg.eigh(left_over)
    hidden = vectors[:, information <= LEAST_INFORMATION]
    parts = np.linalg.norm(hidden, axis=1) > SHARE
    return OffsetObservability(
        information=np.clip(information, 0.0, 1.0),
        directions=vectors.T,
        unobservable=tuple(n for n, part in zip(names, parts, strict=True) if part),
    )


def offset_bound(jacobians: Array, length_noise: float, offset_std: float) -> Array:
    """Return the Cramer-Rao bound of the offsets, the matrix C, shape (m, m), [m^2].

    The square roots of its diagonal are the standard deviations of the offsets of an estimator
    that makes of the lengths all that can be made.

    Args:
        jacobians: L where the lengths were read, one for every reading, shape (K, m, nv).
        length_noise: Standard deviation of a reading, sigma, [m].
        offset_std: Of the offsets before the first one, s_b, [m].

    Raises:
        ShapeError: ``jacobians`` has another number of dimensions.
    """
    jacobians = np.asarray(jacobians, dtype=float)
    if jacobians.ndim != 3:
        raise ShapeError(f"L has shape {jacobians.shape}, expected (K, m, nv)")
    information = unexplained(jacobians).sum(axis=0) / length_noise**2
    information.flat[:: len(information) + 1] += 1.0 / offset_std**2
    bound: Array = np.linalg.inv(information)
    return bound


def unexplained(jacobians: Array) -> Array:
    """Return the part of lengths that no motion explains, P = E - L L^+, shape (k, m, m).

    Args:
        jacobians: L at each pose, shape (k, m, nv).
    """
    norms = np.linalg.norm(jacobians, axis=1, keepdims=True)
    unit = jacobians / np.where(norms > 0.0, norms, 1.0)
    left, values, _ = np.linalg.svd(unit, full_matrices=False)
    kept = values > RANK_TOLERANCE * values.max(axis=1, initial=1e-300, keepdims=True)
    basis = left * kept[:, None, :]
    out: Array = np.eye(jacobians.shape[1]) - basis @ basis.transpose(0, 2, 1)
    return out
