"""A step of a computed-torque controller as one call of compiled code.

What NumPy does in some fifty calls, ``native/control_step.c`` does in one: error and feedback, the
kernels of the model, the rows of the program, DAQP on it (warm-started in place), and the test
whether all goals are met. It settles the usual step, in which they are. Whatever else happens
(requests out of reach, goals that are damped, numbers that are not finite, a solver that fails) it
leaves to the NumPy form of the same step, so that statuses and substitutes are decided in one
place only.

Operations are those of the NumPy form, in the same order, and DAQP's code is the same: tensions
are equal to the last bit. Only after a step that is not settled here the two forms start DAQP from
different active sets, until the next `reset`; tensions then agree to 1e-12 of their size.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.codegen.model import BoundKernel
from cards_core.control.interface import ControlOutput, Gains
from cards_core.control.native_program import (
    NATIVE,
    NotNativeError,
    callable_kernel,
    compiled,
    members,
    place,
    program,
)
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.dynamics.interface import Dynamics
from cards_core.optimize.active_set import DOT, REAL, ROWS
from cards_core.optimize.daqp_library import SOURCE as DAQP_SOURCE
from cards_core.optimize.daqp_library import DaqpProgram, LibraryUnknownError
from cards_core.optimize.goal_program import GoalProgram
from cards_core.optimize.qp_backends import DaqpSolver
from cards_core.typing import Array

COMPUTED_TORQUE = NATIVE / "computed_torque.c"
"""What the compiled step and exported controllers have in common."""

SOURCES = (DAQP_SOURCE, REAL, DOT, ROWS, COMPUTED_TORQUE, NATIVE / "control_step.c")
"""Parts of the program text."""

LOADS = 2
"""Joint forces beside M, C and G: of passive muscles, and of contact forces."""


@dataclass(frozen=True, eq=False)
class TaskParts:
    """What only a controller of a frame has; see `CtcOperational`.

    Attributes:
        frame: Its name.
        rows: Rows of its Jacobian that are controlled, k of them.
        positions: Those of its position, the first of these rows.
        posture: q_p, shape (nq,).
        posture_gains: Of the posture; diagonal.
        pull_weight: Of the posture in the gradient, shape (nv,).
        barrier_q, barrier_v: Coordinates and velocities of the limited joints.
        barrier_low, barrier_up: Constant parts of their bounds.
        barrier_rate, barrier_square: Factors of qd and q in them.
        acceleration_unit: Of the program.
        inertia: Factor of M in the rows of the equation of motion.
    """

    frame: str
    rows: Sequence[int]
    positions: Sequence[int]
    posture: Array
    posture_gains: Gains
    pull_weight: Array
    barrier_q: Sequence[int]
    barrier_v: Sequence[int]
    barrier_low: Array
    barrier_up: Array
    barrier_rate: float
    barrier_square: float
    acceleration_unit: float
    inertia: float


@dataclass(frozen=True, eq=False)
class StepParts:
    """Of what a step is made.

    Attributes:
        dynamics: Of the model.
        output: Where the step writes; its arrays stay the same.
        gains: Of the error; the arrays may be replaced at any time.
        program: Whose arrays the step writes, as its NumPy form does.
        motors: Number of joint motors.
        units: Of force, torque and goals.
        lever: Factor of L' in the rows of the equation of motion.
        loads: Joint forces beside M, C and G at q, qd, each shape (nv,), at most `LOADS`.
        task: None: all joints are the task.
        prepare: Where rotations are among coordinates or task: writes ``actual`` and ``error`` of
            the output at q, qd, with a task calls `Dynamics.operational`, and writes ``q - q_p``
            into the gradient if coordinates are no numbers to subtract; takes and returns the
            reference's velocity (of the output) and acceleration, in the axes of the error.
    """

    dynamics: Dynamics
    output: ControlOutput
    gains: Gains
    program: GoalProgram
    motors: int
    units: tuple[float, float, float]
    lever: float
    loads: Callable[[Array, Array], Sequence[Array]]
    task: TaskParts | None
    prepare: Callable[[Array, Array, Array], tuple[Array, Array]] | None = None


class NativeStep:
    """Does the steps of one controller.

    Args:
        parts: Of the controller.

    Raises:
        NotNativeError: This step is none for compiled code.
    """

    def __init__(self, parts: StepParts) -> None:
        kernels = _kernels(parts)
        exact = parts.program.exact
        if not isinstance(exact, DaqpSolver):
            raise NotNativeError("only the solver daqp is called from C")
        if exact.n == 0:
            raise NotNativeError("there is nothing to command")
        try:
            library = _library()
            program, solution, kept = exact.in_c()
        except LibraryUnknownError as error:
            raise NotNativeError(str(error)) from None
        self._parts, self._prepare = parts, parts.prepare
        self._dynamics = kernels.dynamics
        tree, out = kernels.dynamics.tree, parts.output
        self._shapes = ((tree.nq,), (tree.nv,))
        self._velocity, self._acceleration = np.zeros(out.error.size), np.zeros(out.error.size)
        self._loads = np.zeros((LOADS, tree.nv))
        self._count = 0
        setup = _Setup(program=program)
        self._keep: list[Any] = [solution, kept, kernels]
        self._setup, self._gains = setup, parts.gains
        self._place_sizes(setup, parts, kernels)
        self._place_program(setup, parts)
        if parts.task is not None:
            self._place_task(setup, parts.task, kernels)
        self._kp = self._kd = self._posture_kp = self._posture_kd = np.empty(0)
        self._bind_gains()
        self._step = library.cards_control_step
        self._release = library.cards_daqp_release
        self._reference = ctypes.byref(setup)
        finalizer = weakref.finalize(self, library.cards_daqp_release, self._reference)
        finalizer.atexit = False  # the process gives back its memory anyhow

    def reset(self) -> None:
        """Forget the solver's warm start."""
        self._release(self._reference)

    def step(self, q: Array, qd: Array, acceleration: Array) -> bool:
        """Do the step whose reference is in the output; return whether it is settled.

        If not, arrays of program and output may be overwritten, but not tensions and efforts.

        Args:
            q: Shape (nq,), finite.
            qd: Shape (nv,), finite.
            acceleration: Of the reference, shape (k,).
        """
        if (q.shape, qd.shape) != self._shapes:
            return False
        gains, setup = self._gains, self._setup
        if gains.kp is not self._kp or gains.kd is not self._kd:
            self._bind_gains()
        task = self._parts.task
        if task is not None and (
            task.posture_gains.kp is not self._posture_kp
            or task.posture_gains.kd is not self._posture_kd
        ):
            self._bind_gains()
        loads = self._parts.loads(q, qd)
        for i, load in enumerate(loads):
            self._loads[i] = load
        if len(loads) != self._count:
            self._count = setup.loads = len(loads)
        # after the loads: contact forces at the frame of the task call its kernel, at rest
        if self._prepare is None:
            self._velocity[:] = self._parts.output.desired_dot
            self._acceleration[:] = acceleration
        else:
            self._velocity[:], self._acceleration[:] = self._prepare(q, qd, acceleration)
        self._dynamics.set_state(q, qd)
        if not self._step(self._reference):
            return False
        out = self._parts.output
        out.residual, out.solve_time = setup.residual, setup.solve_time
        out.iterations = setup.program.iterations
        return True

    def _place(self, **arrays: npt.NDArray[Any]) -> None:
        place(self._setup, self._keep, **arrays)

    def _place_sizes(self, setup: _Setup, parts: StepParts, kernels: _Kernels) -> None:
        out, tree, model = parts.output, kernels.dynamics.tree, kernels.model
        setup.nq, setup.nv, setup.m = tree.nq, tree.nv, out.tensions.size
        setup.motors, setup.k = parts.motors, out.error.size
        setup.operational = int(parts.task is not None)
        setup.error_given = int(parts.prepare is not None)
        setup.posture_given = int(tree.nq != tree.nv)
        setup.force_unit, setup.torque_unit, setup.goal_unit = parts.units
        setup.lever = parts.lever
        setup.model, setup.model_io = model.address, model.buffer.ctypes.data
        self._place(
            q=model.inputs["q"],
            qd=model.inputs["qd"],
            mass=model.outputs["mass_matrix"],
            coriolis=model.outputs["coriolis"],
            gravity=model.outputs["gravity"],
            lever_arms=model.outputs["muscle_jacobian"],
            desired=out.desired,
            reference_velocity=self._velocity,
            reference_acceleration=self._acceleration,
            actual=out.actual,
            actual_dot=out.actual_dot,
            error=out.error,
            acceleration=out.acceleration,
            tensions=out.tensions,
            efforts=out.efforts,
            load=self._loads,
            term=np.zeros(max(out.error.size, tree.nv)),
        )

    def _place_program(self, setup: _Setup, parts: StepParts) -> None:
        program, exact = parts.program, parts.program.exact
        setup.hard, setup.columns = program.hard, exact.n
        setup.data_size, setup.rounding = exact.data.size, program.rounding
        setup.tolerance, setup.regular = program.tolerance, program.regular
        self._place(
            data=exact.data,
            matrix=exact.matrix,
            gradient=exact.gradient,
            low=exact.lower_bounds,
            up=exact.upper_bounds,
            right=exact.row_lower,
            right_up=exact.row_upper,
            solution=exact.result.x,
            missing=exact.result.residual,
            row_sizes=np.zeros(exact.rows),
            changes=np.zeros(exact.n),
            root=np.sqrt(program.hessian),
            slackness=1.0 / np.sqrt(program.shares),
            products=np.zeros(program.weights.size**2),
        )

    def _place_task(self, setup: _Setup, task: TaskParts, kernels: _Kernels) -> None:
        frame = kernels.frame
        assert frame is not None
        setup.frame, setup.frame_io = frame.address, frame.buffer.ctypes.data
        setup.barriers, setup.positions = len(task.barrier_v), len(task.positions)
        setup.barrier_rate, setup.barrier_square = task.barrier_rate, task.barrier_square
        setup.acceleration_unit, setup.inertia = task.acceleration_unit, task.inertia
        self._place(
            frame_q=frame.inputs["q"],
            frame_qd=frame.inputs["qd"],
            position=frame.outputs["position"],
            frame_jacobian=frame.outputs["jacobian"],
            frame_bias=frame.outputs["bias"],
            task_rows=np.array(task.rows, dtype=np.int_),
            position_rows=np.array(task.positions, dtype=np.int_),
            barrier_q=np.array(task.barrier_q, dtype=np.int_),
            barrier_v=np.array(task.barrier_v, dtype=np.int_),
            posture=task.posture,
            pull_weight=task.pull_weight,
            barrier_low=task.barrier_low,
            barrier_up=task.barrier_up,
        )

    def _bind_gains(self) -> None:
        """Point at the present gains, which are new arrays whenever they were set."""
        setup, gains, task = self._setup, self._gains, self._parts.task
        # held, so that neither the addresses nor the identities are used again
        self._kp, self._kd = gains.kp, gains.kd
        full = [np.ascontiguousarray(array, dtype=float) for array in (gains.kp, gains.kd)]
        self._held = full
        setup.kp, setup.kd = (array.ctypes.data for array in full)
        setup.kp_full, setup.kd_full = (int(array.ndim == 2) for array in full)
        if task is not None:
            posture = task.posture_gains
            self._posture_kp, self._posture_kd = posture.kp, posture.kd
            setup.posture_kp = posture.kp.ctypes.data
            setup.posture_kd = posture.kd.ctypes.data


@dataclass(frozen=True, eq=False)
class _Kernels:
    dynamics: CompiledDynamics
    model: BoundKernel
    frame: BoundKernel | None


def _kernels(parts: StepParts) -> _Kernels:
    dynamics, task = compiled(parts.dynamics), parts.task
    model = callable_kernel(dynamics.state_kernel)
    frame = None if task is None else callable_kernel(dynamics.frame_kernel(task.frame))
    return _Kernels(dynamics, model, frame)


def _library() -> ctypes.CDLL:
    """Return the compiled text."""
    library = program("the step of a controller", SOURCES)
    library.cards_daqp_release.restype = None
    return library


class _Setup(ctypes.Structure):
    """``control_step_t`` of the C text."""

    _fields_ = [
        ("program", DaqpProgram),
        *members(ctypes.c_long, "nq", "nv", "m", "motors", "k", "operational", "loads", "hard"),
        *members(ctypes.c_long, "barriers", "positions", "error_given", "posture_given"),
        *members(ctypes.c_void_p, "model", "frame", "model_io", "frame_io", "frame_q", "frame_qd"),
        *members(ctypes.c_void_p, "q", "qd", "mass", "coriolis", "gravity", "lever_arms"),
        *members(ctypes.c_void_p, "position", "frame_jacobian", "frame_bias", "desired"),
        *members(ctypes.c_void_p, "reference_velocity", "reference_acceleration", "actual"),
        *members(ctypes.c_void_p, "actual_dot", "error", "acceleration", "tensions", "efforts"),
        *members(ctypes.c_void_p, "kp", "kd"),
        *members(ctypes.c_long, "kp_full", "kd_full"),
        *members(ctypes.c_void_p, "data", "matrix", "gradient", "low", "up", "right", "right_up"),
        *members(ctypes.c_void_p, "solution", "missing"),
        *members(ctypes.c_long, "data_size", "columns"),
        *members(ctypes.c_void_p, "load", "task_rows", "position_rows", "barrier_q", "barrier_v"),
        *members(ctypes.c_void_p, "posture", "posture_kp", "posture_kd", "pull_weight"),
        *members(ctypes.c_void_p, "barrier_low", "barrier_up"),
        *members(ctypes.c_double, "barrier_rate", "barrier_square", "force_unit", "torque_unit"),
        *members(ctypes.c_double, "acceleration_unit", "goal_unit", "lever", "inertia"),
        *members(ctypes.c_double, "rounding", "tolerance"),
        *members(ctypes.c_void_p, "term", "row_sizes", "changes", "root", "slackness", "products"),
        *members(ctypes.c_double, "regular", "residual", "solve_time"),
    ]
