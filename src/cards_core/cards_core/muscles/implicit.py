"""Tensions of muscles that are stiff against the step of the host: those at its end.

A host advances by ``v+ = v + dt A^-1 (...)``, ``q+ = q (+) dt v+`` with A = M + dt D, M the mass
matrix at the present pose and D the damping of the joints. Muscles whose tension at the *start*
of the step would make that explode get the tension at its *end* instead. With x = dt v+, and the
laws psi of the actuators over length and mean rate of the path,

    A (x - x_free)/dt^2 + L' T = 0,     T_i = psi_i(l_i(q (+) x), (l_i(q (+) x) - l_i(q))/dt)
    x_free = dt A^-1 (M v - dt (C + G) + dt r)

for all of them together: they pull the same bodies, so that sixty soft cables side by side are as
stiff as one stiff cable. In the limit of a rigid cable this is the SHAKE scheme for constraints;
L' at the start gives the forces, which keeps their balance exact. Damping and stiffness of any
size only take energy away.

The muscles count as stiff if the largest eigenvalue of ``A^-1 L' W L`` is above one, for all of
them together, with ``W_i = max(dt^2 k_i/0.1, dt c_i/0.5)`` and k_i and c_i the largest usual dT/dl
and dT/dl' of muscle i: then ``dt^2 K <= 0.1`` and ``dt C <= 0.5`` where they are soft, K and C
being the largest eigenvalues of stiffness and damping over mass. Power iteration finds it, which
goes on from step to step: it errs by up to a tenth, with the scheme stable up to 4 and 2. Where
it is below `CALM` it is looked for again after `PAUSE` more steps, since it changes only as the
robot moves: finding it, with the mass matrix, takes as long as the muscles themselves. Soft
muscles keep the tension at the start of the step: this is the symplectic Euler scheme, whose
energy oscillates by a share of ``dt/2 sqrt(K) <= 16 %`` and does not drift, while the implicit one
damps every oscillation.

Muscles may be stiff by their damping alone, as by thread friction or a force-velocity curve. Those
that are not springs then take only their rate from the end of the step, psi_i(l_i(q), ...), and
their oscillation stays undamped: if ``sum k_i dt^2 L_i A^-1 L_i' <= 0.1``, which is a bound of
``dt^2 K`` that takes no search.

r is what else acts on the robot: contacts, limits of joints, pushes. The motion of the last step
tells, ``dt r = A v+ - M v + dt (C + G + L' T)``; of it counts the share, 0 .. 1, that balances the
forces known now best. So the tension is exact on a robot at rest, whatever holds it.

Newton's method with a line search on the nonlinear equation. It need not have a solution where
a path turns by a large angle within the step; then l(q (+) x) is replaced by l + L x, which makes
the problem convex. So are muscles with contacts that have no closed form.

What the body's motion over a step adds to a path that turns within it is then not in T: stretch
that no work paid for. The energy of springs is therefore kept account of: with the work
``dt T' L (v + v+)/2`` that they took in since the muscles became stiff, and with that of winches.
Where their stretch stands for more energy than that (by a share `CREDIT` of kinetic and stored
energy), all stretches count less in proportion; where they would give more in this step, their
tensions are cut. So passive muscles never give back more than they were given, however the robot
moves.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.codegen.library import load_library
from cards_core.codegen.model import BoundKernel
from cards_core.dynamics import make_dynamics
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.dynamics.differences import geodesic_muscles
from cards_core.errors import CardsError
from cards_core.muscles.actuators.bank import ActuatorBank
from cards_core.robot.model import Robot, Tree
from cards_core.typing import Array, Backend

STIFF = 0.1
"""Bound of ``dt^2 K`` up to which muscles keep the tension at the start of the step."""

DAMPED = 0.5
"""Bound of ``dt C``."""

FIRST_POWERS, POWERS, FRESH = 20, 2, 0.01
"""Iterations for the largest eigenvalue: in the first step, in the others; and how much of the
first direction is added in every step, so that no direction is lost."""

CALM, PAUSE = 0.8, 7
"""Eigenvalue below which muscles are far from stiff, and steps that then do without it."""

CREDIT = 3e-4
"""Share of kinetic and stored energy by which springs may be in debt: what the account misses is
of the order of the step."""

TOLERANCE = 1e-9
"""Residual at which the equation counts as solved, relative to its parts."""

LOOSE = 1e-4
"""Residual that is accepted where rounding or a kink lets it fall no further."""

ITERATIONS, HALVINGS = 50, 12
CONVEX_ITERATIONS, CONVEX_HALVINGS = 60, 40


@dataclass(frozen=True, eq=False)
class NativeSolve:
    """What a native program calls in place of `ImplicitTensions.step`.

    Attributes:
        state: Kernel of the robot's dynamics now.
        solve: The C function; takes the address of ``setup``.
        setup: Its argument.
        bent: Whether paths may be followed to the end of the step.
        arrays: Lengths and rates that it reads, what it counts paths shorter, the tensions of
            the last step, and for how many steps it need not be asked, by the names of ``steps.c``
            of `cards_sim`.
    """

    state: BoundKernel
    solve: Any
    setup: ctypes.Structure
    bent: bool
    arrays: dict[str, npt.NDArray[Any]]


class ImplicitTensions:
    """Steps the actuators of a robot, stiff ones implicitly.

    Args:
        robot: The description; its joints give the mass matrix.
        bank: Its actuators.
        dt: Time step of the host, [s].
        backend: ``compiled`` or ``numeric``.
        friction: Whether the mobility is wanted of soft muscles, too.

    Attributes:
        mobility: dt by the mass that every muscle feels along its path, ``dt L_i A^-1 L_i'``, at
            the pose of the last step, shape (m,), [s/kg].
        native: How a native program does the same; None where NumPy does it.
        straight: Steps since the last reset in which the lengths at the end had to be taken along
            straight lines because the nonlinear equation has no solution.
    """

    def __init__(
        self,
        robot: Robot,
        bank: ActuatorBank,
        dt: float,
        backend: Backend = "compiled",
        *,
        friction: bool = True,
    ) -> None:
        self._bank = bank
        self._friction = friction
        self._dt = dt
        self._dynamics = make_dynamics(robot, backend)
        self._tree = tree = self._dynamics.tree
        count = len(robot.muscles)
        self._bent = not len(geodesic_muscles(tree))
        self._joint_damping = joint_damping(tree)
        self._lawful = bank.stiffness + bank.damping > 0.0
        self._lawful_rows = self._lawful.astype(np.int_)
        self._last = np.zeros(count)
        self._last_qd, self._last_jacobian = np.zeros(tree.nv), np.zeros((count, tree.nv))
        self._last_a, self._last_momentum = np.zeros((tree.nv, tree.nv)), np.zeros(tree.nv)
        self._paid = np.array([np.nan])
        self._slip = np.zeros(count)
        self._weights = np.maximum(dt**2 * bank.stiffness / STIFF, dt * bank.damping / DAMPED)
        self._length_weights = np.where(bank.is_spring, 0.0, dt * bank.stiffness / STIFF)
        self._first_direction: Array = np.cos(1.0 + np.arange(tree.nv))
        self._direction = np.full(tree.nv, np.nan)
        self._pause = np.zeros(1, dtype=np.int_)  # steps until the eigenvalue is looked at
        self.mobility: Array = np.zeros(count)
        self.straight = 0
        self.native: NativeSolve | None = None
        self.step = self._step_numeric
        if (
            isinstance(self._dynamics, CompiledDynamics)
            and self._dynamics.update_kernel().address
            and (bank.slope_kernel is None or bank.slope_kernel.address)
        ):
            self._bind_native(self._dynamics)

    def reset(self) -> None:
        """Forget the last step."""
        self._last[:] = 0.0
        self._paid[:] = np.nan
        self._direction[:] = np.nan
        self._pause[:] = 0
        self.straight = 0

    @property
    def stiff(self) -> bool:
        """Whether the muscles were stiff in the last step."""
        return not np.isnan(self._paid[0])

    # Native -----------------------------------------------------------------------------------

    def _bind_native(self, dynamics: CompiledDynamics) -> None:
        bank, tree = self._bank, self._tree
        nv, m = tree.nv, len(self._last)
        library = _library()
        now, trial = dynamics.state_kernel, dynamics.update_kernel()
        laws, springs = bank.slope_kernel, bank.spring_kernel
        nodes = tree.nodes
        self._lengths, self._rates = np.zeros(m), np.zeros(m)
        tables = [
            np.array([node.kind == "ball" for node in nodes], dtype=np.int_),
            np.array([node.q for node in nodes], dtype=np.int_),
            np.array([node.v for node in nodes], dtype=np.int_),
            bank.is_spring.astype(np.int_),
        ]
        work = np.zeros(int(library.cards_implicit_work(nv, m)))
        setup = _Setup(
            nv=nv,
            m=m,
            nodes=len(nodes),
            dt=self._dt,
            first_powers=FIRST_POWERS,
            powers=POWERS,
            fresh=FRESH,
            friction=int(self._friction),
            credit=CREDIT,
            calm=CALM,
            pauses=0 if self._friction else PAUSE,
            tolerance=TOLERANCE,
            loose=LOOSE,
            model=trial.address if self._bent else None,
            model_io=trial.buffer.ctypes.data,
            model_q=trial.place("q"),
            model_lengths=trial.place("muscle_lengths"),
            model_jacobian=trial.place("muscle_jacobian"),
        )
        pointers = {
            "quaternion": tables[0],
            "place_q": tables[1],
            "place_v": tables[2],
            "is_spring": tables[3],
            "joint_damping": self._joint_damping,
            "weights": self._weights,
            "length_weights": self._length_weights,
            "lawful_rows": self._lawful_rows,
            "first_direction": self._first_direction,
            "direction": self._direction,
            "q": now.inputs["q"],
            "qd": now.inputs["qd"],
            "mass": now.outputs["mass_matrix"],
            "coriolis": now.outputs["coriolis"],
            "gravity": now.outputs["gravity"],
            "model_now": now.outputs["muscle_lengths"],
            "jacobian": now.outputs["muscle_jacobian"],
            "lengths": self._lengths,
            "rates": self._rates,
            "last": self._last,
            "last_qd": self._last_qd,
            "last_jacobian": self._last_jacobian,
            "last_A": self._last_a,
            "last_momentum": self._last_momentum,
            "paid": self._paid,
            "pause": self._pause,
            "slip": self._slip,
            "mobility": self.mobility,
            "work": work,
        }
        for name, array in pointers.items():
            setattr(setup, name, array.ctypes.data)
        if laws is not None and springs is not None:
            setup.actuators = laws.address
            setup.actuator_io = laws.buffer.ctypes.data
            setup.bank_lengths = laws.place("lengths")
            setup.bank_rates = laws.place("rates")
            setup.bank_tensions = laws.place("tensions")
            setup.bank_slopes = laws.place("slopes")
            setup.bank_state = laws.place("state")
            setup.bank_advanced = laws.place("advanced")
            setup.springs, setup.spring_io = springs.address, springs.buffer.ctypes.data
            setup.spring_state = springs.place("state")
            setup.spring_stretch = springs.place("stretch")
            setup.spring_stored = springs.place("stored")
            setup.states = len(bank.state)
        self._keep = (setup, tables, work, pointers, now, trial, laws)
        self.native = NativeSolve(
            state=now,
            solve=library.cards_implicit,
            setup=setup,
            bent=self._bent,
            arrays={
                "implicit_lengths": self._lengths,
                "implicit_rates": self._rates,
                "slip": self._slip,
                "last": self._last,
                "pause": self._pause,
            },
        )
        self._solve = library.cards_implicit
        self._setup = ctypes.byref(setup)
        self.step = self._step_native

    def _step_native(
        self,
        lengths: Array,
        rates: Array,
        kinds: npt.NDArray[Any],
        values: Array,
        joints: tuple[Array, Array],
    ) -> Array:
        bank = self._bank
        if self._pause[0] > 0:
            return self._soft(lengths, rates, kinds, values)
        self._dynamics.update(*joints)
        self._lengths[:] = lengths
        self._rates[:] = rates
        bank.set_commands(kinds, values)
        found = self._solve(self._setup)
        if found == 0:
            return self._soft(lengths, rates, kinds, values)
        if found < 0:
            raise CardsError(_no_mass(self._tree, joints[0]))
        self.straight += int(found == 2 and self._bent)
        return bank.accept(lengths - self._slip)

    def _soft(self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array) -> Array:
        """Return the tensions at the start of the step; arguments as `_step_numeric`."""
        self._pause -= 1
        tensions = self._bank.step(lengths, rates, kinds, values)
        self._last[:] = tensions
        return tensions

    # NumPy ------------------------------------------------------------------------------------

    def _step_numeric(
        self,
        lengths: Array,
        rates: Array,
        kinds: npt.NDArray[Any],
        values: Array,
        joints: tuple[Array, Array],
    ) -> Array:
        """Return the tensions of this step and advance the actuators by dt.

        Args:
            lengths: Of the paths now, shape (m,), [m].
            rates: Of the paths now, shape (m,), [m/s].
            kinds: What the values command, shape (m,); see `ActuatorBank.step`.
            values: Commands, shape (m,).
            joints: Coordinates q, shape (nq,), and velocities qd, shape (nv,), now.

        Returns:
            Shape (m,), [N], at least 0; overwritten by the next step.

        Raises:
            CardsError: The mass matrix is not positive definite at this pose.
        """
        if self._pause[0] > 0:
            return self._soft(lengths, rates, kinds, values)
        dt, bank, (q, qd) = self._dt, self._bank, joints
        state = self._dynamics.update(q, qd)
        mass, jacobian = state.mass_matrix.copy(), state.muscle_jacobian.copy()
        now, bias = state.muscle_lengths.copy(), state.coriolis + state.gravity
        a = mass + dt * np.diag(self._joint_damping)
        try:
            factor: Array = np.asarray(np.linalg.cholesky(a), dtype=float)
        except np.linalg.LinAlgError:
            raise CardsError(_no_mass(self._tree, q)) from None
        largest = self._largest(a, factor, jacobian)
        stiff = largest > 1.0
        if stiff or self._friction:
            half = np.linalg.solve(factor, jacobian.T)
            self.mobility[:] = dt * np.sum(half * half, axis=0)
        if not stiff:
            self._paid[:] = np.nan
            self._pause[:] = PAUSE + 1 if largest < CALM and not self._friction else 1
            return self._soft(lengths, rates, kinds, values)
        by_rate = float(self._length_weights @ self.mobility) <= 1.0
        known = self.stiff
        slip, stored = self._settle(lengths, mass, qd)
        momentum = mass @ qd - dt * bias
        pull = dt * jacobian.T @ self._last
        others = self._others(factor, -dt * bias - pull, qd) if known else np.zeros(len(qd))
        free = dt * _by(factor, momentum + others)
        problem = _Problem(
            owner=self,
            a=a,
            factor=factor,
            jacobian=jacobian,
            free=free,
            q=np.array(q),
            now=now,
            lengths=lengths - slip,
            rates=rates,
            by_length=self._lawful & (bank.is_spring if by_rate else True),
            told=(kinds, values),
        )
        start = dt * _by(factor, momentum + others - pull)
        end = problem.exact(start) if self._bent else None
        if end is None:
            self.straight += int(self._bent)
            end = problem.convex()
        springs_pull = np.where(bank.is_spring, problem.tensions, 0.0) @ jacobian
        self._paid[0] += float(np.sum(bank.springs(lengths, advanced=True)[1])) - stored
        rise = float(springs_pull @ (dt * qd + end))
        share = self._cut(problem.squared(springs_pull), rise, mass, qd)
        tensions = bank.accept(lengths - slip, share)
        self._last[:], self._last_qd[:], self._last_jacobian[:] = tensions, qd, jacobian
        self._last_a[:] = a
        self._last_momentum[:] = momentum - dt * jacobian.T @ tensions
        return tensions

    def _largest(self, a: Array, factor: Array, jacobian: Array) -> float:
        """Return the largest eigenvalue of A^-1 L' W L, estimated from below."""
        count = POWERS
        if np.isnan(self._direction[0]):
            self._direction[:], count = self._first_direction, FIRST_POWERS
        v, first = self._direction, self._first_direction
        v = v + FRESH * np.sqrt(v @ v / (first @ first)) * first
        size = float(v @ (a @ v))
        found = 0.0
        for _ in range(count):
            b = jacobian.T @ (self._weights * (jacobian @ v))
            x = _by(factor, b)
            square = float(b @ x)
            if not square > 0.0:
                self._direction[:] = np.nan
                return 0.0
            found = float(np.sqrt(square / size))
            v, size = x / np.sqrt(square), 1.0
        self._direction[:] = v
        return found

    def _others(self, factor: Array, forces: Array, qd: Array) -> Array:
        """Return dt times the forces of the last step that the model does not know.

        Only as far as they balance ``forces``, dt times those it knows: an impact does not come
        again. Shapes (nv,).
        """
        found = self._last_a @ qd - self._last_momentum
        half, against = np.linalg.solve(factor, found), np.linalg.solve(factor, forces)
        share = -float(half @ against)
        return np.asarray(found * (min(share / float(half @ half), 1.0) if share > 0.0 else 0.0))

    def _settle(self, lengths: Array, mass: Array, qd: Array) -> tuple[Array, float]:
        """Return by how much every path counts shorter, so that no spring has what it never got.

        The arguments are those of the present state; the result has shape (m,), [m]. Also
        returned: what the springs would have without that, [J].
        """
        stretch, now = self._bank.springs(lengths)
        stored = float(np.sum(now))
        if not self.stiff:
            self._paid[0] = stored
        else:
            speed = self._last_jacobian @ (self._last_qd + qd)
            springs = self._bank.is_spring
            self._paid[0] += 0.5 * self._dt * self._last[springs] @ speed[springs]
        allowed = self._allowed(mass, qd)
        share = 1.0 - np.sqrt(allowed / stored) if stored > allowed else 0.0
        return np.asarray(share * stretch), stored

    def _cut(self, square: float, rise: float, mass: Array, qd: Array) -> float:
        """Return the share of their tension with which springs give no more than they may.

        With a share h they give ``b h + a h^2``.

        Args:
            square: ``dt^2 p' A^-1 p`` of their pull ``p = L' T``.
            rise: ``p' (dt v + x)``.
            mass: M now.
            qd: Velocities now.
        """
        a, allowed = 0.5 * square, self._allowed(mass, qd)
        b = -a - 0.5 * rise
        if not a + b > allowed:
            return 1.0
        return float(2.0 * allowed / (b + np.sqrt(b * b + 4.0 * a * allowed)))

    def _allowed(self, mass: Array, qd: Array) -> float:
        """Return the energy that springs may have, or give, for what they were given, [J]."""
        paid = float(self._paid[0])
        return max(paid + CREDIT * float(0.5 * qd @ mass @ qd + abs(paid)), 0.0)


@dataclass(eq=False)
class _Problem:
    """The equation of one step; ``native/implicit.c`` has the same in C.

    Attributes:
        a, factor: A and its Cholesky factor, shape (nv, nv).
        jacobian: L now, shape (m, nv).
        free: x without muscles, shape (nv,).
        q: Coordinates now, shape (nq,).
        now: Lengths at q by the model, shape (m,), [m].
        lengths: Lengths that count, by the host's paths, shape (m,), [m].
        rates: Rates now, shape (m,), [m/s].
        by_length: Which muscles take their length from the end of the step, shape (m,).
        told: Kinds and values of the commands.
        tensions: Those of the last evaluation, shape (m,), [N].
    """

    owner: ImplicitTensions
    a: Array
    factor: Array
    jacobian: Array
    free: Array
    q: Array
    now: Array
    lengths: Array
    rates: Array
    by_length: npt.NDArray[np.bool_]
    told: tuple[npt.NDArray[Any], Array]
    tensions: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        return self.owner._dt

    def evaluate(self, x: Array, *, linear: bool) -> tuple[Array, Array, Array, Array]:
        """Return F, the tensions, their slopes and the Jacobian at the end of the step."""
        owner = self.owner
        end = self.jacobian
        if linear:
            change = end @ x
        else:
            trial = owner._dynamics.update(owner._tree.integrate(self.q, x), np.zeros(len(x)))
            change, end = trial.muscle_lengths - self.now, trial.muscle_jacobian.copy()
        tensions, slopes = owner._bank.linearise(
            np.where(self.by_length, self.lengths + change, self.lengths),
            np.where(owner._lawful, change / self.dt, self.rates),
            *self.told,
        )
        tensions, slopes = tensions.copy(), np.where(owner._lawful, np.maximum(slopes, 0.0), 0.0)
        self.tensions = tensions
        residual = self.a @ (x - self.free) / self.dt**2 + self.jacobian.T @ tensions
        return residual, tensions, slopes, end

    def squared(self, b: Array) -> float:
        """Return dt^2 b' A^-1 b."""
        half = np.linalg.solve(self.factor, b)
        return float(self.dt**2 * half @ half)

    def scale(self, x: Array, tensions: Array, slopes: Array) -> tuple[float, float]:
        """Return what F is measured against, and what rounding leaves of it."""
        whole = x @ self.a @ x / self.dt**2 + self.squared(self.jacobian.T @ tensions)
        error = 1e-15 * slopes * self.lengths
        return float(whole), float(np.sum(error * error * self.dt * self.owner.mobility))

    def exact(self, x: Array) -> Array | None:
        """Return x with the lengths that the paths have at its end; None if it is not found."""
        residual, tensions, slopes, end = self.evaluate(x, linear=False)
        size = self.squared(residual)
        for _ in range(ITERATIONS):
            whole, rounding = self.scale(x, tensions, slopes)
            if size <= TOLERANCE**2 * whole + rounding:
                return x
            direction = self.direction(residual, slopes, end)
            if direction is None:
                return None
            for halving in range(HALVINGS):
                share = 0.5**halving
                trial = x + share * direction
                found = self.evaluate(trial, linear=False)
                if self.squared(found[0]) < size * (1.0 - 1e-4 * share):
                    break
            else:
                if size > LOOSE**2 * whole:
                    return None
                self.evaluate(x, linear=False)
                return x
            x, (residual, tensions, slopes, end) = trial, found
            size = self.squared(residual)
        return None

    def convex(self) -> Array:
        """Return x with l + L x."""
        x = self.free
        residual, tensions, slopes, end = self.evaluate(x, linear=True)
        for _ in range(CONVEX_ITERATIONS):
            whole, rounding = self.scale(x, tensions, slopes)
            if self.squared(residual) <= TOLERANCE**2 * whole + rounding:
                return x
            direction = self.direction(residual, slopes, end)
            if direction is None:
                return x
            start = abs(float(residual @ direction))
            for halving in range(CONVEX_HALVINGS):
                trial = x + 0.5**halving * direction
                found = self.evaluate(trial, linear=True)
                if float(found[0] @ direction) <= 0.5 * start:
                    break
            x, (residual, tensions, slopes, end) = trial, found
        return x

    def direction(self, residual: Array, slopes: Array, end: Array) -> Array | None:
        """Return Newton's direction, or None if the matrix is singular."""
        matrix = self.a / self.dt**2 + self.jacobian.T @ (slopes[:, None] * end)
        try:
            return np.asarray(-np.linalg.solve(matrix, residual))
        except np.linalg.LinAlgError:
            return None


def _by(factor: Array, b: Array) -> Array:
    """Return A^-1 b for the Cholesky factor of A."""
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, b)))


def joint_damping(tree: Tree) -> Array:
    """Return the viscous coefficient of every joint velocity, shape (nv,), [Nms/rad], [Ns/m]."""
    values = np.zeros(tree.nv)
    by_name = {name: index for index, name in enumerate(tree.velocity_names)}
    for joint in tree.robot.joints:
        names = [joint.name]
        if len(joint.axes) > 1:
            names = [f"{joint.name}_{i + 1}" for i in range(len(joint.axes))]
        for name, axis in zip(names, joint.axes, strict=False):
            values[by_name[name]] = axis.damping
    return values


def _no_mass(tree: Tree, q: Array) -> str:
    pose = ", ".join(f"{n}={x:g}" for n, x in zip(tree.position_names, q, strict=True))
    return (
        f"the mass matrix of '{tree.robot.name}' is not positive definite at {pose} (expected: "
        "every joint moves something with mass or inertia)"
    )


class _Setup(ctypes.Structure):
    """``step_t`` of ``native/implicit.c``."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("nv", "m", "nodes")),
        *((n, ctypes.c_void_p) for n in ("quaternion", "place_q", "place_v", "is_spring")),
        *((name, ctypes.c_long) for name in ("first_powers", "powers")),
        *((name, ctypes.c_double) for name in ("dt", "fresh")),
        *((name, ctypes.c_double) for name in ("tolerance", "loose", "credit", "calm")),
        ("pauses", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("joint_damping", "weights")),
        *((name, ctypes.c_void_p) for name in ("length_weights", "lawful_rows")),
        *((name, ctypes.c_void_p) for name in ("first_direction", "direction")),
        *((name, ctypes.c_void_p) for name in ("model", "actuators", "springs")),
        *((f"{name}_io", ctypes.c_void_p) for name in ("model", "actuator", "spring")),
        *((name, ctypes.c_long) for name in ("model_q", "model_lengths", "model_jacobian")),
        *(
            (f"bank_{n}", ctypes.c_long)
            for n in ("lengths", "rates", "tensions", "slopes", "state", "advanced")
        ),
        *((f"spring_{name}", ctypes.c_long) for name in ("state", "stretch", "stored")),
        ("states", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("q", "qd", "mass", "coriolis", "gravity")),
        *((name, ctypes.c_void_p) for name in ("model_now", "jacobian", "lengths", "rates")),
        *((name, ctypes.c_void_p) for name in ("last", "last_qd", "last_jacobian")),
        *((f"last_{name}", ctypes.c_void_p) for name in ("A", "momentum")),
        *((name, ctypes.c_void_p) for name in ("paid", "pause", "slip")),
        ("friction", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("mobility", "work")),
    ]


@cache
def _library() -> ctypes.PyDLL:
    source = (Path(__file__).parent / "native" / "implicit.c").read_text(encoding="utf-8")
    loaded = load_library("the implicit step of muscles", source)
    # PyDLL keeps the GIL: releasing and taking it costs more than a call
    library = ctypes.PyDLL(loaded._name)
    library.cards_implicit.restype = ctypes.c_long
    library.cards_implicit_work.restype = ctypes.c_long
    library.cards_implicit_work.argtypes = (ctypes.c_long, ctypes.c_long)
    return library
