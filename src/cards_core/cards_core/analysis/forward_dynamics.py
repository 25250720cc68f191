"""Forward dynamics: how a robot moves under given tensions.

    qdd = M^-1 (-L' f - C - G - w_e)

by Cholesky factorisation of M, which also tells whether M is a mass matrix at all. A motion is
integrated with an explicit Runge-Kutta method on the group of rotations [MuntheKaas1999]_, or by a
method of SciPy. The work of the tensions is integrated along with it, so that the energy balance

    T + U - (T + U)(0) = integral of qd' (-L' f - w_e) dt,   T = qd' M qd/2

is an independent check of every motion. Joint damping, friction and limits are a simulator's
business; this integrates the equations of motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import lapack

from cards_core.analysis.inverse_kinematics import point_problem
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import TangentSpace
from cards_core.checks import finite_number
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.typing import Array

Forcing: TypeAlias = Callable[[float, Array, Array], Array]
"""Tensions (m,), or loads (nv,), of time [s], q and qd."""

Solver = Literal["rk4", "RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]
"""Integrators: ``rk4`` has a fixed step, the others are SciPy's with error control."""

SOLVERS: tuple[Solver, ...] = get_args(Solver)

MOST_STEPS = 100_000_000
"""Longest integration with a fixed step: some hours."""

PIVOT_TOLERANCE = 1e-13
"""Pivot of the factorisation, relative to the diagonal of M, that is no inertia any more."""


@dataclass(frozen=True, eq=False, slots=True)
class ForwardDynamicsResult:
    """Acceleration at one instant.

    Attributes:
        status: FEASIBLE, OUTSIDE_LIMITS (the numbers are right, no joint goes there),
            UNPHYSICAL_INERTIA (M is not positive definite), NOT_FINITE, PATH_NOT_FOUND.
        qdd: shape (nv,); NaN unless FEASIBLE or OUTSIDE_LIMITS.
    """

    status: PointStatus
    qdd: Array


@dataclass(frozen=True, eq=False)
class SimulatedMotion:
    """A motion at k instants.

    Attributes:
        status: FEASIBLE if the end was reached, else why not; the arrays end before that.
        time: shape (k,), [s].
        q: shape (k, nq).
        qd: shape (k, nv).
        work: Done by tensions and loads since the start, shape (k,), [J].
        energy: Kinetic and potential, shape (k,), [J].
    """

    status: PointStatus
    time: Array
    q: Array
    qd: Array
    work: Array
    energy: Array

    @property
    def energy_error(self) -> float:
        """Largest difference between the change of energy and the work, [J]."""
        return float(np.abs(self.energy - self.energy[0] - self.work).max(initial=0.0))


class ForwardDynamics:
    """Accelerations and motions of one robot; one object per thread.

    Args:
        dynamics: Of the robot.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        self._tree = dynamics.tree
        self.space = TangentSpace(dynamics.tree)
        self._still = np.zeros(dynamics.tree.nv)

    def step(
        self, q: Array, qd: Array, tensions: Array, external: Array | None = None
    ) -> ForwardDynamicsResult:
        """Return the acceleration.

        Args:
            q: Coordinates, shape (nq,), with unit quaternions.
            qd: Velocities, shape (nv,).
            tensions: f, shape (m,), [N].
            external: w_e, shape (nv,), as in `InverseDynamics.step`.
        """
        problem = point_problem(self._tree, q)
        if problem is PointStatus.NOT_FINITE:
            return ForwardDynamicsResult(problem, np.full(self._tree.nv, np.nan))
        result = self._step(q, qd, tensions, external)[0]
        if result.status is PointStatus.FEASIBLE:
            result = replace(result, status=problem)
        return result

    def _step(
        self, q: Array, qd: Array, tensions: Array, external: Array | None
    ) -> tuple[ForwardDynamicsResult, float]:
        """Return the acceleration, and the power of tensions and loads [W]."""
        before = self._dynamics.path_failures
        state = self._dynamics.update(q, qd)
        pull = -(state.muscle_jacobian.T @ tensions)
        if external is not None:
            pull -= external
        right = pull - state.coriolis
        right -= state.gravity
        with np.errstate(over="ignore"):  # too large for squares counts as not finite
            squares = right @ right + np.vdot(state.mass_matrix, state.mass_matrix)
        bad = None
        if self._dynamics.path_failures != before:
            bad = PointStatus.PATH_NOT_FOUND
        elif not np.isfinite(squares):
            bad = PointStatus.NOT_FINITE
        elif not right.size:
            return ForwardDynamicsResult(PointStatus.FEASIBLE, right), 0.0
        else:
            factor, qdd, info = lapack.dposv(state.mass_matrix, right)
            pivots = factor.diagonal()
            diagonal = state.mass_matrix.diagonal()
            if info != 0 or (pivots * pivots <= PIVOT_TOLERANCE * diagonal).any():
                bad = PointStatus.UNPHYSICAL_INERTIA
        if bad is not None:
            return ForwardDynamicsResult(bad, np.full(len(right), np.nan)), np.nan
        return ForwardDynamicsResult(PointStatus.FEASIBLE, qdd), float(pull @ qd)

    def energy(self, q: Array, qd: Array) -> float:
        """Return kinetic plus potential energy [J]; the world's origin has no potential."""
        robot = self._dynamics.robot
        kinetic = 0.5 * float(qd @ self._dynamics.update(q, qd).mass_matrix @ qd)
        poses = self._dynamics.link_poses(q)
        centres = [
            pose[:3, :3] @ link.inertia.com + pose[:3, 3]
            for pose, link in zip(poses, robot.links, strict=True)
        ]
        masses = [link.inertia.mass for link in robot.links]
        return kinetic - sum(
            mass * float(robot.gravity @ c) for mass, c in zip(masses, centres, strict=True)
        )

    def simulate(
        self,
        q: Array,
        qd: Array,
        times: Array,
        tensions: Array | Forcing,
        *,
        external: Array | Forcing | None = None,
        solver: Solver = "rk4",
        max_step: float = 1e-3,
        tolerance: float = 1e-8,
    ) -> SimulatedMotion:
        """Integrate a motion.

        Args:
            q: Coordinates at ``times[0]``, shape (nq,).
            qd: Velocities there, shape (nv,).
            times: When the motion is wanted, increasing, shape (k,), [s].
            tensions: Constant, shape (m,), [N], or a function of time, q and qd.
            external: w_e likewise, shape (nv,).
            solver: Of `SOLVERS`.
            max_step: ``rk4``: longest step, [s]; the times are met exactly.
            tolerance: Relative error of SciPy's solvers; the absolute one is a hundredth.

        Raises:
            ShapeError: q, qd or times make no sense.
            UnknownNameError: No such solver.
            CardsError: ``max_step`` or ``tolerance`` is not finite and > 0, or more than
                `MOST_STEPS` steps of ``rk4``.
        """
        q, qd = self._tree.check_q(q), self._tree.check_qd(qd)
        times = np.asarray(times, dtype=float)
        good = times.ndim == 1 and times.size and np.isfinite(times).all()
        if not good or not np.all(np.diff(times) > 0.0):
            raise ShapeError("times must be increasing finite numbers, shape (k,), k >= 1")
        max_step = finite_number(max_step, "max_step [s]", above=0.0)
        tolerance = finite_number(tolerance, "tolerance", above=0.0)
        if solver == "rk4":
            check_steps(float(times[-1] - times[0]), max_step)
        pull, load = _forcing(tensions), None if external is None else _forcing(external)

        def rate(t: float, x: Array, v: Array) -> tuple[Array, float, PointStatus]:
            result, power = self._step(
                x, v, pull(t, x, v), None if load is None else load(t, x, v)
            )
            return result.qdd, power, result.status

        if solver == "rk4":
            status, rows = self._rk4(q, qd, times, rate, max_step)
        elif solver in SOLVERS:
            status, rows = self._scipy((q, qd), times, rate, solver, tolerance)
        else:
            raise UnknownNameError("integrator", solver, SOLVERS)
        nq = self._tree.nq
        table = np.array(rows)
        positions, velocities = table[:, :nq], table[:, nq:-1]
        energy = np.array([self.energy(x, v) for x, v in zip(positions, velocities, strict=True)])
        return SimulatedMotion(
            status, times[: len(table)], positions, velocities, table[:, -1], energy
        )

    def _rk4(
        self, q: Array, qd: Array, times: Array, rate: _Rate, max_step: float
    ) -> tuple[PointStatus, list[Array]]:
        """Classical Runge-Kutta in the chart of every step's first point."""
        space, work = self.space, 0.0
        rows = [np.concatenate([q, qd, [work]])]
        for t0, t1 in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
            count = max(1, int(np.ceil((t1 - t0) / max_step * (1.0 - 1e-12))))
            h = (t1 - t0) / count
            for k in range(count):
                t = t0 + k * h
                slopes: list[tuple[Array, Array, float]] = []
                for share in (0.0, 0.5, 0.5, 1.0):
                    theta, v = self._still, qd
                    if slopes:
                        theta, v = share * h * slopes[-1][0], qd + share * h * slopes[-1][1]
                    a, power, status = rate(t + share * h, space.integrate(q, theta), v)
                    if status is not PointStatus.FEASIBLE:
                        return status, rows
                    slopes.append((space.chart_rate(theta, v), a, power))
                q = space.integrate(q, h / 6.0 * _weighted([s[0] for s in slopes]))
                qd = qd + h / 6.0 * _weighted([s[1] for s in slopes])
                work += h / 6.0 * float(_weighted([np.array(s[2]) for s in slopes]))
            rows.append(np.concatenate([q, qd, [work]]))
        return PointStatus.FEASIBLE, rows

    def _scipy(
        self, start: tuple[Array, Array], times: Array, rate: _Rate, solver: str, tolerance: float
    ) -> tuple[PointStatus, list[Array]]:
        """SciPy on (q, qd, work); quaternions as four numbers whose length stays 1 by itself."""
        # scipy.integrate takes long to import, and the usual integrator is our own
        from scipy.integrate import solve_ivp

        nq, space = self._tree.nq, self.space
        trouble: list[PointStatus] = []

        def derivative(t: float, y: Array) -> Array:
            x, v = space.unit(y[:nq]), y[nq:-1]
            a, power, status = rate(t, x, v)
            if status is not PointStatus.FEASIBLE:
                trouble.append(status)
                raise _StopIntegrationError
            return np.concatenate([space.coordinate_rate(x, v), a, [power]])

        y = np.concatenate([*start, [0.0]])
        rows = [y]
        # piecewise, so that what was reached is kept if a later piece has no answer
        for piece in range(0, len(times) - 1, 100):
            instants = times[piece : piece + 101]
            try:
                found = solve_ivp(
                    derivative,
                    (instants[0], instants[-1]),
                    y,
                    method=solver,
                    t_eval=instants[1:],
                    rtol=tolerance,
                    atol=0.01 * tolerance,
                )
            except _StopIntegrationError:
                return trouble[-1], rows
            for column in found.y.T:
                y = column.copy()
                y[:nq] = space.unit(y[:nq])
                rows.append(y)
            if not found.success:
                return PointStatus.NOT_CONVERGED, rows
        return PointStatus.FEASIBLE, rows


def check_steps(duration: float, max_step: float) -> None:
    """Refuse an integration by ``rk4`` that would not come to its end.

    Args:
        duration: [s].
        max_step: [s].

    Raises:
        CardsError: It has more than `MOST_STEPS` steps.
    """
    if not duration / max_step <= MOST_STEPS:
        raise CardsError(
            f"{duration / max_step:.4g} steps of {max_step:g} s for a motion of {duration:g} s "
            f"(expected: at most {MOST_STEPS:g}, that is at most {MOST_STEPS * max_step:g} s, or "
            f"steps of at least {duration / MOST_STEPS:g} s)"
        )


class _StopIntegrationError(Exception):
    """Leaves SciPy's integrator where the model has no answer."""


_Rate: TypeAlias = Callable[[float, Array, Array], tuple[Array, float, PointStatus]]


def _forcing(values: Array | Forcing) -> Forcing:
    if callable(values):
        return values
    constant = np.asarray(values, dtype=float)
    return lambda t, q, qd: constant


def _weighted(slopes: list[Array]) -> Array:
    out: Array = slopes[0] + 2.0 * slopes[1] + 2.0 * slopes[2] + slopes[3]
    return out
