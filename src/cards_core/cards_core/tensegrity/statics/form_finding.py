"""Form finding: from rest lengths to the shape in which a structure holds itself.

Elastic cables that only pull store ``E(q) = sum_i k_i/2 max(0, l_i(q) - L0_i)^2``, with gravity
also the potential of the weights. An equilibrium is a minimum: with v in the tangent space of the
poses, rotations moved by ``R exp(v)``, the gradient is ``L' f (+ G)`` and the Hessian along the
geodesics is the symmetric part of the joint stiffness, exactly (`cards_core.analysis.stiffness`).

Newton's method within a trust region [Nocedal2006]_, chapter 4: each step minimises

    g' v + v' H v / 2    subject to  |v| <= radius

through the eigenvalues of H, so that it also leaves saddle points. Rigid motions and those that
move no cable are left out: the pose of the whole stays about where it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.analysis.stiffness import joint_stiffness
from cards_core.analysis.tangent import TangentSpace
from cards_core.checks import finite_number
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.robot.actuators import Cable
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.tensegrity.statics.equilibrium import (
    NoPrestressError,
    NotConvergedError,
    StaticsError,
    analyse_equilibrium,
)
from cards_core.tensegrity.statics.prestress import cable_stiffness
from cards_core.typing import Array

TOLERANCE = 1e-10
"""Unbalanced force, relative to the largest tension, at which the search ends."""

CURVATURE = 1e-9
"""Negative eigenvalue, relative to the largest, that counts as zero."""

FIRST_RADIUS = 0.2
"""Of the trust region, relative to the mean length of the cables; also its largest."""

LEAST_RADIUS = 1e-15
"""Relative likewise: steps this short change nothing."""

LOOSE = 1e-9
"""Stretch, relative to the rest length, that counts as none."""

ROUNDING = 1e-12
"""Change of energy, relative to the energy, that is lost in rounding."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A shape in which a structure is in equilibrium.

    Attributes:
        q: shape (nq,).
        lengths: l, shape (m,), [m].
        tensions: f, shape (m,), [N].
        rest_lengths: L0, shape (m,), [m].
        energy: E, [J].
        unbalanced: Largest force that is left, moments by the length scale, [N].
        iterations: Of Newton's method.
        slack: Names of the cables without tension.
    """

    q: Array
    lengths: Array
    tensions: Array
    rest_lengths: Array
    energy: float
    unbalanced: float
    iterations: int
    slack: tuple[str, ...]


def find_equilibrium(
    dynamics: Dynamics,
    rest_lengths: Array | None = None,
    *,
    q: Array | None = None,
    gravity: bool = False,
    tolerance: float = TOLERANCE,
    max_iterations: int = 200,
) -> Equilibrium:
    """Return the equilibrium that a structure settles in.

    Args:
        dynamics: Of the robot: free bodies with elastic cables.
        rest_lengths: L0, shape (m,), [m]; those of the robot without it.
        q: Where the search begins, shape (nq,); home without it.
        gravity: With the weights; something must hold the structure then.
        tolerance: Unbalanced force, relative to the largest tension or weight.
        max_iterations: Of Newton's method.

    Raises:
        NoPrestressError: No cable is taut in the end.
        NotConvergedError: No equilibrium was found; with the reason.
        StaticsError: A cable without stiffness or rest length, gravity where nothing holds the
            structure, or a joint limit that is passed.
        ShapeError: Arrays of the wrong shape, or numbers that make no sense.
    """
    finite_number(tolerance, "tolerance", above=0.0, error=ShapeError)
    if max_iterations < 1:
        raise ShapeError(f"max_iterations {max_iterations} (expected: >= 1)")
    search = _Search(dynamics, rest_lengths, q, gravity)
    radius = largest = FIRST_RADIUS * search.size
    for iteration in range(max_iterations + 1):
        if search.loose and not gravity:
            raise NoPrestressError(
                f"'{search.name}': no cable is taut: the rest lengths leave the structure loose "
                "(expected: shorter ones)"
            )
        limit = tolerance * search.force
        values, vectors, slope = search.model()
        curved = values.size and values[0] < -CURVATURE * np.abs(values).max()
        if search.unbalanced <= limit and not curved:
            return search.result(iteration)
        while True:
            step = _trust_region_step(values, slope, radius)
            predicted = -(slope @ step + 0.5 * values @ step**2)
            gained, closer = search.attempt(vectors @ step)
            trusted = predicted > ROUNDING * max(search.energy, 0.0)
            ratio = gained / predicted if trusted else (1.0 if closer else 0.0)
            if ratio > 1e-4:
                search.accept()
                break
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius < LEAST_RADIUS * search.size:
                raise NotConvergedError(
                    f"'{search.name}': no step lowers the energy after {iteration} iterations, "
                    f"unbalanced force {search.unbalanced:.3g} N (expected: <= {limit:.3g} N; "
                    "another start, or a larger tolerance)"
                )
        if ratio < 0.25:
            radius *= 0.5
        elif ratio > 0.75 and np.linalg.norm(step) > 0.9 * radius:
            radius = min(2.0 * radius, largest)
    raise NotConvergedError(
        f"'{search.name}': no equilibrium in {max_iterations} iterations, unbalanced force "
        f"{search.unbalanced:.3g} N (expected: <= {limit:.3g} N; another start, more iterations)"
    )


class _Search:
    """The energy at a pose, its model in scaled coordinates, and a pose that is tried."""

    def __init__(
        self, dynamics: Dynamics, rest_lengths: Array | None, q: Array | None, gravity: bool
    ) -> None:
        self.dynamics, self.gravity = dynamics, gravity
        robot = dynamics.robot
        self.name = robot.name
        start = analyse_equilibrium(dynamics, q)
        if gravity and start.rigid_motions.shape[1]:
            raise StaticsError(
                f"'{robot.name}' falls: no cable is held by the world (expected: without gravity)"
            )
        self.stiffness = cable_stiffness(robot)
        self.rest_lengths = _rest_lengths(dynamics, rest_lengths)
        self.scale = start.scale
        self.length_scale = start.length_scale
        self.size = float(start.lengths.mean())
        self.tangent = TangentSpace(dynamics.tree)
        self.q = start.q
        self._set(*self._evaluate(self.q))

    def _set(self, energy: float, gradient: Array, tensions: Array, lengths: Array) -> None:
        self.energy, self.gradient, self.tensions, self.lengths = (
            energy,
            gradient,
            tensions,
            lengths,
        )

    @property
    def unbalanced(self) -> float:
        return float(np.abs(self.gradient).max(initial=0.0))

    @property
    def loose(self) -> bool:
        return not (self.tensions > LOOSE * self.stiffness * self.rest_lengths).any()

    @property
    def force(self) -> float:
        """Largest tension, and with gravity at least the largest weight, [N]."""
        out = float(self.tensions.max())
        if self.gravity:
            g = float(np.linalg.norm(self.dynamics.robot.gravity))
            out = max(out, g * max(link.inertia.mass for link in self.dynamics.robot.links))
        return out

    def _evaluate(self, q: Array) -> tuple[float, Array, Array, Array]:
        dynamics = self.dynamics
        state = dynamics.update(q, np.zeros(dynamics.tree.nv))
        stretch = np.maximum(state.muscle_lengths - self.rest_lengths, 0.0)
        tensions = self.stiffness * stretch
        energy = 0.5 * float(tensions @ stretch)
        gradient = state.muscle_jacobian.T @ tensions
        if self.gravity:
            gradient += state.gravity
            energy += self._potential(q)
        return energy, gradient / self.scale, tensions, state.muscle_lengths.copy()

    def _potential(self, q: Array) -> float:
        tree = self.dynamics.tree
        motion = forward_kinematics(tree, q, np.zeros(tree.nv))
        return -sum(
            float(self.dynamics.robot.gravity @ motion.point(i, node.inertia.com))
            * node.inertia.mass
            for i, node in enumerate(tree.nodes)
        )

    def model(self) -> tuple[Array, Array, Array]:
        """Return eigenvalues of the Hessian, directions in scaled coordinates, and slopes."""
        found = joint_stiffness(self.dynamics, self.q, self.tensions, gravity=self.gravity)
        hessian = 0.5 * (found.matrix + found.matrix.T) / np.outer(self.scale, self.scale)
        # no force acts along motions of the whole, and along those that move no cable
        now = analyse_equilibrium(self.dynamics, self.q)
        without = np.hstack([now.rigid_motions, now.idle_motions]) * self.scale[:, None]
        basis = _complement(without)
        values, vectors = np.linalg.eigh(basis.T @ hessian @ basis)
        directions = basis @ vectors
        return values, directions, directions.T @ self.gradient

    def attempt(self, step: Array) -> tuple[float, bool]:
        """Evaluate a step; return the energy gained and whether less force is unbalanced."""
        q = self.tangent.integrate(self.q, step / self.scale)
        found = self._evaluate(q)
        if not (np.isfinite(found[0]) and np.isfinite(found[1]).all()):
            return -np.inf, False
        self._tried = (q, found)
        return self.energy - found[0], bool(np.abs(found[1]).max() < self.unbalanced)

    def accept(self) -> None:
        self.q, found = self._tried
        self._set(*found)

    def result(self, iterations: int) -> Equilibrium:
        if not self.tangent.inside(self.q, 1e-9):
            raise StaticsError(
                f"'{self.name}': the equilibrium is beyond a joint limit (expected: free bodies)"
            )
        names = (muscle.name for muscle in self.dynamics.robot.muscles)
        slack = tuple(n for n, f in zip(names, self.tensions, strict=True) if f <= 0.0)
        return Equilibrium(
            self.q,
            self.lengths,
            self.tensions,
            self.rest_lengths,
            self.energy,
            self.unbalanced,
            iterations,
            slack,
        )


def _complement(vectors: Array) -> Array:
    n, k = vectors.shape
    if not k:
        return np.eye(n)
    u, values, _ = np.linalg.svd(vectors)
    out: Array = u[:, int(np.sum(values > 1e-9 * values.max())) :]
    return out


def _trust_region_step(values: Array, slope: Array, radius: float) -> Array:
    """Minimise ``slope' p + p' diag(values) p / 2`` with |p| <= radius; values ascend."""
    if not values.size:
        return np.zeros(0)
    top = float(np.abs(values).max()) or 1.0
    floor = CURVATURE * top
    least = max(0.0, floor - float(values[0]))
    step = -slope / (values + least)
    norm = float(np.linalg.norm(step))
    if norm <= radius:
        if least > floor:  # hard case: nothing pulls off the saddle, so go along its axis
            step[0] += np.copysign(np.sqrt(radius**2 - norm**2), step[0])
        return step
    low, high = least, least + float(np.linalg.norm(slope)) / radius
    for _ in range(100):
        shift = 0.5 * (low + high)
        norm = float(np.linalg.norm(slope / (values + shift)))
        low, high = (shift, high) if norm > radius else (low, shift)
        if abs(norm - radius) < 1e-3 * radius:
            break
    return -slope / (values + high)


def _rest_lengths(dynamics: Dynamics, given: Array | None) -> Array:
    muscles = dynamics.robot.muscles
    if given is None:
        out = []
        for muscle in muscles:
            rest = muscle.actuator.rest_length if isinstance(muscle.actuator, Cable) else None
            if rest is None:
                raise StaticsError(
                    f"cable '{muscle.name}' of '{dynamics.robot.name}' has no rest length "
                    "(expected: rest_length in its actuator, or rest lengths that are given)"
                )
            out.append(rest)
        return np.array(out)
    found = np.array(given, dtype=float)
    if found.shape != (len(muscles),) or not (np.isfinite(found).all() and (found > 0.0).all()):
        raise ShapeError(
            f"rest lengths of shape {found.shape} (expected: {len(muscles)} numbers > 0 m)"
        )
    return found
