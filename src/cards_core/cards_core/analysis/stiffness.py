"""Joint stiffness: how the muscles resist a displacement of the joints.

The muscles' joint force is tau(q) = -L(q)' f(l(q)), with the commands held. Displaced by dq,

    K = -d tau/dq = L' K_m L + sum_i f_i dL_i/dq  (+ dG/dq),    K_m = diag(df_i/dl_i)

The first part is what elastic muscles contribute, the second what the tensions themselves do: it
stiffens or softens, however stiff the cables. With gravity it is -d(tau - G)/dq. In [Lau2016]_ the
sign is the same. Entry [j, k] is the force against coordinate j for a displacement along tangent
direction k, [Nm/rad], [N/m] or mixed.

With ball joints dL/dq is not symmetric, because tangent directions do not commute: the
antisymmetric part is half the commutator times the joint force. It vanishes where the total joint
force does, as it must at an equilibrium of a potential, and what decides about stability is the
symmetric part.

Of a single muscle, along its path, df/dl with the command held is

================ ============================================== ==============================
muscle           what is held                                   df/dl
================ ============================================== ==============================
ideal cable      the tension                                    0, or as given
elastic cable    the rest length                                k while taut, 0 while slack
series elastic   the motor                                      slope of its spring at f
pneumatic        the pressure that gives f at this length       by differences of its static law
hill             the activation that gives f at this length     by differences of its model
ligament         nothing                                        slope of its law at l
================ ============================================== ==============================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TypeAlias, cast

import numpy as np
from scipy.linalg import lapack

from cards_core.analysis.inverse_kinematics import point_problem
from cards_core.analysis.status import PointStatus
from cards_core.checks import finite_number
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.muscles.actuators import ActuatorBank, springs
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.model import Inputs
from cards_core.muscles.actuators.pneumatic import McKibbenMuscle
from cards_core.muscles.command import EXCITATION, FORCE
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic, SeriesElastic
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot
from cards_core.typing import Array

PerMuscle: TypeAlias = float | Sequence[float | None] | Array
"""A number for all muscles, or one for each; None where there is none for a muscle."""

GRAVITY_STEP = 1e-5
"""Step of the central differences of G, [rad] or [m]."""

MARGINAL = 1e-9
"""Eigenvalue, relative to the largest, that counts as zero."""


@dataclass(frozen=True, eq=False)
class StiffnessResult:
    """Stiffness at one pose.

    Attributes:
        status: FEASIBLE, OUTSIDE_LIMITS (the numbers are right), NOT_FINITE, PATH_NOT_FOUND.
        matrix: K, shape (nv, nv).
        elastic: L' K_m L, shape (nv, nv).
        tension: sum_i f_i dL_i/dq, shape (nv, nv).
        gravity: dG/dq, shape (nv, nv); zero if it was not asked for.
        muscle_stiffness: df_i/dl_i, shape (m,), [N/m].
        eigenvalues: Of the symmetric part of K, ascending, shape (nv,). With rotations and
            displacements mixed only their signs mean something.
        frequencies: Undamped natural frequencies from K and M, ascending, shape (nv,), [Hz]; NaN
            for unstable modes, and if M is not positive definite.
        verdict: ``stable`` (K is positive definite), ``marginal`` or ``unstable``.
    """

    status: PointStatus
    matrix: Array
    elastic: Array
    tension: Array
    gravity: Array
    muscle_stiffness: Array
    eigenvalues: Array
    frequencies: Array
    verdict: str


def joint_stiffness(
    dynamics: Dynamics,
    q: Array,
    tensions: Array,
    *,
    stiffness: PerMuscle | None = None,
    axial_stiffness: PerMuscle | None = None,
    gravity: bool = False,
) -> StiffnessResult:
    """Return the joint stiffness of a pose at rest.

    Args:
        dynamics: Of the robot.
        q: Coordinates, shape (nq,).
        tensions: f, shape (m,), [N].
        stiffness: df/dl of all muscles or each, shape (m,), [N/m], instead of what their
            actuators say (`muscle_stiffness`); None for a muscle: the
            actuator's.
        axial_stiffness: EA of all muscles or each, likewise, [N]: df/dl = EA/l.
        gravity: Add dG/dq.

    Raises:
        ShapeError: An array of the wrong shape, both kinds of stiffness, or one that is negative,
            NaN or infinite.
    """
    tree, robot = dynamics.tree, dynamics.robot
    m, nv = len(robot.muscles), tree.nv
    q, tensions = np.asarray(q, dtype=float), np.asarray(tensions, dtype=float)
    if q.shape != (tree.nq,) or tensions.shape != (m,):
        raise ShapeError(
            f"q and tensions have shapes {q.shape} and {tensions.shape}, expected ({tree.nq},) "
            f"and ({m},)"
        )
    if stiffness is not None and axial_stiffness is not None:
        raise ShapeError("both stiffness [N/m] and axial_stiffness [N] are given, expected one")
    status = point_problem(tree, q, tensions)
    if status is PointStatus.NOT_FINITE:
        return _nothing(status, nv, m)
    still = np.zeros(nv)
    before = dynamics.path_failures
    state = dynamics.update(q, still)
    if dynamics.path_failures != before:
        return _nothing(PointStatus.PATH_NOT_FOUND, nv, m)
    lengths, jacobian = state.muscle_lengths.copy(), state.muscle_jacobian.copy()
    mass_matrix = state.mass_matrix.copy()
    own = _stiffness_of_muscles(dynamics, lengths, tensions, stiffness, axial_stiffness)
    elastic = jacobian.T @ (own[:, None] * jacobian)
    active = np.einsum("i,ijk->jk", tensions, dynamics.jacobian_gradient(q))
    weight = gravity_gradient(dynamics, q) if gravity else np.zeros((nv, nv))
    matrix = elastic + active + weight
    symmetric = 0.5 * (matrix + matrix.T)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    size = float(np.abs(eigenvalues).max(initial=0.0))
    smallest = float(eigenvalues.min(initial=np.inf))
    verdict = "stable" if smallest > MARGINAL * size else "marginal"
    if smallest < -MARGINAL * size:
        verdict = "unstable"
    return StiffnessResult(
        status,
        matrix,
        elastic,
        active,
        weight,
        own,
        eigenvalues,
        _frequencies(symmetric, mass_matrix),
        verdict,
    )


def gravity_gradient(dynamics: Dynamics, q: Array) -> Array:
    """Return dG/dq, shape (nv, nv), by central differences; [j, k] = dG_j along direction k."""
    nv = dynamics.tree.nv
    still = np.zeros(nv)
    out = np.zeros((nv, nv))
    for k, direction in enumerate(GRAVITY_STEP * np.eye(nv)):
        above = dynamics.update(dynamics.tree.integrate(q, direction), still).gravity.copy()
        below = dynamics.update(dynamics.tree.integrate(q, -direction), still).gravity
        out[:, k] = (above - below) / (2.0 * GRAVITY_STEP)
    return out


def _stiffness_of_muscles(
    dynamics: Dynamics,
    lengths: Array,
    tensions: Array,
    stiffness: PerMuscle | None,
    axial_stiffness: PerMuscle | None,
) -> Array:
    m = len(lengths)
    given: list[float | None] = [None] * m
    for values, unit, divisor in (
        (stiffness, "N/m", np.ones(m)),
        (axial_stiffness, "N", lengths),
    ):
        if values is None:
            continue
        each = list(values) if isinstance(values, Sequence | np.ndarray) else [values] * m
        if len(each) != m:
            raise ShapeError(
                f"muscle stiffness has {len(each)} values, expected one number >= 0 {unit}, or {m}"
            )
        what = f"muscle stiffness [{unit}]"
        given = [
            None
            if value is None
            else finite_number(value, what, at_least=0.0, error=ShapeError) / by
            for value, by in zip(each, divisor, strict=True)
        ]
    if None in given:
        own = muscle_stiffness(dynamics.robot, lengths, tensions)
        return np.array([o if g is None else g for g, o in zip(given, own, strict=True)])
    return np.array(given, dtype=float)


def _frequencies(stiffness: Array, mass_matrix: Array) -> Array:
    """Solve K v = (2 pi f)^2 M v."""
    nv = len(stiffness)
    if not nv:
        return np.zeros(0)
    squares, _, info = lapack.dsygv(stiffness, mass_matrix, jobz="N")
    if info != 0:
        return np.full(nv, np.nan)
    roots = np.sqrt(np.where(squares >= 0.0, squares, np.nan))
    return np.asarray(roots / (2.0 * np.pi))


def _nothing(status: PointStatus, nv: int, m: int) -> StiffnessResult:
    square = np.full((nv, nv), np.nan)
    row = np.full(nv, np.nan)
    return StiffnessResult(
        status, square, square, square, square, np.full(m, np.nan), row, row, "unknown"
    )


SETTLING_STEP = 0.05
"""Time step in which activations settle, [s]."""

SETTLING_STEPS = 60
"""Steps until everything is at rest: 3 s, a hundred time constants."""

DIFFERENCE = 1e-5
"""Change of length of the central differences, [m]."""


def muscle_stiffness(robot: Robot, lengths: Array, tensions: Array) -> Array:
    """Return dT/dl of every muscle at rest, shape (m,), [N/m].

    Args:
        robot: The description.
        lengths: shape (m,), [m].
        tensions: shape (m,), [N]; ligaments have that of their law instead.

    Raises:
        UnknownNameError: An actuator of a kind whose stiffness is not known.
    """
    out = np.zeros(len(robot.muscles))
    settled: list[int] = []
    for i, muscle in enumerate(robot.muscles):
        if muscle.kind in SETTLED:
            settled.append(i)
        elif muscle.kind in SLOPES:
            out[i] = SLOPES[muscle.kind](muscle, float(lengths[i]), float(tensions[i]))
        else:
            raise UnknownNameError("stiffness of an actuator", muscle.kind, (*SLOPES, *SETTLED))
    if settled:
        muscles = [robot.muscles[i] for i in settled]
        out[settled] = _held(robot, muscles, lengths[settled], tensions[settled])
    return out


def _cable_slope(muscle: Muscle, _length: float, tension: float) -> float:
    stiffness = cast(Cable, muscle.actuator).stiffness
    return stiffness if stiffness is not None and tension > 0.0 else 0.0


def _ligament_slope(muscle: Muscle, length: float, _tension: float) -> float:
    ligament = cast(Ligament, muscle.actuator)
    strain = length / ligament.slack_length - 1.0
    share = min(max(strain / ligament.toe_strain, 0.0), 1.0)
    return ligament.stiffness * share / ligament.slack_length


def _spring_slope(muscle: Muscle, _length: float, tension: float) -> float:
    spring = cast(SeriesElastic, muscle.actuator).spring
    if tension <= 0.0:
        return 0.0
    p = SimpleNamespace(**springs.parameters(spring))
    d = springs.coordinate_of_tension(NUMPY, spring.law, p, np.array(tension))
    slope = springs.tension(NUMPY, spring.law, p, d)[1]
    return float(slope / springs.elongation(NUMPY, spring.law, p, d)[1])


def _braid_slope(muscle: Muscle, length: float, tension: float) -> float:
    model = McKibbenMuscle([muscle], SETTLING_STEP)
    p = model.one(0)
    braid = length - p.tendon
    given = Inputs(length, 0.0, FORCE, tension)
    pressure = model.commanded_pressure(NUMPY, p, braid, given)
    above = model.static(NUMPY, p, pressure, braid + DIFFERENCE)
    below = model.static(NUMPY, p, pressure, braid - DIFFERENCE)
    return float((above - below) / (2.0 * DIFFERENCE))


SLOPES: Mapping[str, Callable[[Muscle, float, float], float]] = {
    Cable.kind: _cable_slope,
    SeriesElastic.kind: _spring_slope,
    Ligament.kind: _ligament_slope,
    Pneumatic.kind: _braid_slope,
}
"""By kind of actuator, dT/dl of a muscle from its length and tension."""

SETTLED = (Hill.kind,)
"""Kinds whose models are run until they are at rest, all muscles together."""


def _held(robot: Robot, muscles: Sequence[Muscle], lengths: Array, tensions: Array) -> Array:
    """Let Hill muscles reach their tensions, then move them with the activation held."""
    only = dataclasses.replace(robot, muscles=tuple(muscles))
    bank = ActuatorBank(only, SETTLING_STEP, "numeric")
    still = np.zeros(len(muscles))
    bank.reset(lengths)

    def settle(at: Array, kinds: Array, values: Array) -> Array:
        for _ in range(SETTLING_STEPS):
            out = bank.step(at, still, kinds.astype(np.intp), values)
        return np.array(out)

    settle(lengths, np.full(len(muscles), FORCE), tensions)
    states = dict(zip(bank.state_names, bank.state_values.tolist(), strict=True))
    values = np.array([states[f"{muscle.name}/activation"] for muscle in muscles])
    kinds = np.full(len(muscles), EXCITATION)
    above = settle(lengths + DIFFERENCE, kinds, values)
    below = settle(lengths - DIFFERENCE, kinds, values)
    return (above - below) / (2.0 * DIFFERENCE)
