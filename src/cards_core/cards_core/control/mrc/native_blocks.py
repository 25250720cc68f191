"""The blocks of muscle relaxation control that are due at a state, as one call of compiled code.

Kernels of body image and model at the present and the wanted pose, the two programs of necessary
tensions (DAQP's, warm-started in place), relaxation, safety, hand-over and command:
``native/relaxation.c``. Operations are those of the Python form in the same order, so commands are
equal to the last bit; after blocks that were left to Python the solvers start from other active
sets, and tensions agree to 1e-12 of the largest.

What lasts (`Relaxation`, `Protection`) lies in arrays here, and is read as objects only by who
asks.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.codegen.model import BoundKernel
from cards_core.control.interface import ControlOutput
from cards_core.control.mrc.hand_over import STEP, HandOver
from cards_core.control.mrc.necessary_tension import NecessaryTension
from cards_core.control.mrc.relaxation import TIES, Relaxation, RelaxationOptions
from cards_core.control.mrc.temperature_safety import Protection, TemperatureLimits
from cards_core.control.native_program import (
    NotNativeError,
    callable_kernel,
    compiled,
    members,
    place,
    program,
)
from cards_core.control.native_step import LOADS
from cards_core.dynamics.differences import geodesic_muscles
from cards_core.dynamics.interface import Dynamics
from cards_core.muscles.impedance import SLACK
from cards_core.optimize.active_set import DOT, REAL
from cards_core.optimize.daqp_library import SOURCE as DAQP_SOURCE
from cards_core.optimize.daqp_library import DaqpProgram, LibraryUnknownError
from cards_core.optimize.qp_backends import DaqpSolver
from cards_core.typing import Array

_LIMITS = "soft", "hard", "heat_rate", "tension_share", "tension_rate", "recovery_rate", "largest"

RELAXATION = Path(__file__).parent / "native" / "relaxation.c"
"""Follows `DOT` and a text with ``daqp_t``."""

SOURCES = (DAQP_SOURCE, REAL, DOT, RELAXATION)
"""Parts of the program text."""


@dataclass(frozen=True, eq=False)
class BlockParts:
    """Of what the blocks are made.

    Attributes:
        dynamics: Of the model.
        image: Body image of the commanded muscles.
        present, wanted: Programs of the present and of the wanted pose.
        output: Has both poses and takes the tensions; its arrays stay the same.
        hand_over: Whose lead is used.
        arrays: ``bias``, ``stiffness``, ``most``, ``rest_lengths``, ``held_offsets`` of every
            muscle, shape (m,); they stay the same.
        period: Of relaxation and safety, [s].
        model_period: Of the model's block, [s].
        letting_go: How fast muscles lengthen once one was too hot, [m/s].
    """

    dynamics: Dynamics
    image: BodyImage
    present: NecessaryTension
    wanted: NecessaryTension
    output: ControlOutput
    hand_over: HandOver
    arrays: Mapping[str, Array]
    period: float
    model_period: float
    letting_go: float


class NativeBlocks:
    """Does the blocks of one controller.

    Args:
        parts: Of the controller.

    Raises:
        NotNativeError: These blocks are none for compiled code.

    Attributes:
        tensions, temperatures, offsets: Where measurements are written, shape (m,); tensions are
            NaN where a sensor is lost.
        necessary: Tensions that the present pose needs, shape (m,), [N].
    """

    def __init__(self, parts: BlockParts) -> None:
        image = _geometric(parts.image)
        dynamics = compiled(parts.dynamics)
        own = compiled(image.dynamics)
        tree, m = dynamics.tree, parts.output.tensions.size
        if len(geodesic_muscles(tree)) or len(geodesic_muscles(own.tree)):
            raise NotNativeError("paths of muscles over surfaces have no closed form")
        self._parts, self._shape = parts, (tree.nq,)
        self._keep: list[Any] = [dynamics, own]
        self._setup = setup = _Setup(nq=tree.nq, nv=tree.nv, m=m)
        self._loads = [np.zeros((LOADS, tree.nv)) for _ in range(2)]
        poses = (setup.present, setup.wanted)
        for pose, solver, loads in zip(
            poses, (parts.present, parts.wanted), self._loads, strict=True
        ):
            kernels = [callable_kernel(item.update_kernel()) for item in (own, dynamics)]
            self._place_pose(pose, kernels, solver, loads)
        self._plain = tree.nq == tree.nv
        setup.moved_given = int(not self._plain)
        self.necessary: Array = np.zeros(m)
        self.tensions: Array = np.full(m, np.nan)
        self.temperatures: Array = np.zeros(m)
        self.offsets: Array = np.zeros(m)
        self._dl, self._targets, self._given = np.zeros((3, m))
        self._rest = np.zeros(tree.nq)
        self._flags = np.zeros((4, m), dtype=np.bool_)
        hot, tense, unknown, latched = self._flags
        place(
            setup,
            self._keep,
            q=parts.output.actual,
            desired=parts.output.desired,
            measured=self.tensions,
            temperatures=self.temperatures,
            pulled=np.zeros(2 * m),
            dl=self._dl,
            targets=self._targets,
            rest=self._rest,
            necessary=self.necessary,
            given=self._given,
            hot=hot,
            tense=tense,
            unknown=unknown,
            latched=latched,
            offsets=self.offsets,
            lead=parts.hand_over.lead,
            tensions=parts.output.tensions,
            **parts.arrays,
        )
        setup.period, setup.slack, setup.hand_over_step = parts.period, SLACK, STEP
        setup.letting_go = parts.letting_go
        self._options: RelaxationOptions | None = None
        self._limits: TemperatureLimits | None = None
        library = program("muscle relaxation control", SOURCES)
        self._call, self._release = library.cards_relaxation_step, library.cards_daqp_release
        self._release.restype = None
        self._reference = ctypes.byref(setup)
        for pose in poses:
            finalizer = weakref.finalize(self, self._release, ctypes.byref(pose.program))
            finalizer.atexit = False  # the process gives back its memory anyhow

    def _place_pose(
        self,
        pose: _Pose,
        kernels: Sequence[BoundKernel],
        solver: NecessaryTension,
        loads: Array,
    ) -> None:
        image, model = kernels
        if image.address == model.address:
            image = model  # one call gives all
        exact = solver.solver
        if not isinstance(exact, DaqpSolver):
            raise NotNativeError("only the solver daqp is called from C")
        try:
            pose.program, solution, kept = exact.in_c()
        except LibraryUnknownError as error:
            raise NotNativeError(str(error)) from None
        self._keep += [image, model, solution, kept]
        pose.image, pose.model = image.address, model.address
        pose.image_io, pose.model_io = image.buffer.ctypes.data, model.buffer.ctypes.data
        pose.data_size = exact.data.size
        pose.matrix = exact.matrix.ctypes.data  # with the columns of the slacks
        place(
            pose,
            self._keep,
            image_q=image.inputs["q"],
            model_q=model.inputs["q"],
            lengths=image.outputs["muscle_lengths"],
            lever_arms=image.outputs["muscle_jacobian"],
            gravity=model.outputs["gravity"],
            load=loads,
            torque=np.zeros(solver.missing.size),
            data=exact.data,
            right=exact.row_lower,
            right_up=exact.row_upper,
            low=exact.lower_bounds,
            up=exact.upper_bounds,
            tensions=solver.tensions,
            missing=solver.missing,
        )

    def step(
        self,
        due: tuple[bool, bool],
        loads: tuple[Sequence[Array], Sequence[Array]],
        options: RelaxationOptions,
        limits: TemperatureLimits,
        *,
        relaxation: bool,
        begun: bool,
        let_go: float,
        with_temperatures: bool,
        with_offsets: bool,
        moved: float,
    ) -> bool:
        """Do the blocks that are due; return whether they are settled.

        If not, nothing is changed that lasts. The poses are those of the output; what is measured
        lies in `tensions`, `temperatures` and `offsets`.

        Args:
            due: Whether the model's block and the one of relaxation and safety are.
            loads: Joint forces beside gravity at the present and at the wanted pose, [Nm] or [N],
                each shape (nv,), at most `LOADS`.
            options: Of the relaxation.
            limits: Of temperature and tension.
            relaxation: Whether muscles are released at all.
            begun: False where the caller adds the lead itself.
            let_go: By how much muscles were lengthened since one was too hot, [m].
            with_temperatures: Whether temperatures are known.
            with_offsets: Whether offsets of length sensors are.
            moved: |q - rest| where some coordinates are no numbers to subtract.
        """
        setup = self._setup
        if options is not self._options:
            self._bind(options)
        if limits is not self._limits:
            self._limits = limits
            for name in _LIMITS:
                setattr(setup, name, getattr(limits, name))
        for pose, rows, given in zip(
            (setup.present, setup.wanted), self._loads, loads, strict=True
        ):
            if len(given) > LOADS:
                return False
            pose.loads = len(given)
            for i, load in enumerate(given):
                rows[i] = load
        setup.model_due, setup.tick_due = due
        setup.relaxation, setup.begun, setup.let_go = relaxation, begun, let_go
        setup.with_temperatures, setup.with_offsets = with_temperatures, with_offsets
        setup.moved = moved
        return bool(self._call(self._reference))

    @property
    def let_go(self) -> float:
        """By how much muscles were lengthened since one was too hot, [m]."""
        found: float = self._setup.let_go
        return found

    @property
    def residual(self) -> float:
        """|G' x + tau| of the present pose, after its block was done, [Nm]."""
        found: float = self._setup.residual
        return found

    @property
    def latched(self) -> bool:
        """Whether a muscle has been too hot."""
        return bool(self._setup.any_latched)

    def relaxation(self) -> Relaxation:
        """Return what was released, as an object whose arrays cannot be changed."""
        s = self._setup
        return Relaxation(
            frozen(self._dl),
            frozen(self._targets) if s.has_targets else None,
            frozen(self._rest) if s.has_rest else None,
            int(s.still),
            bool(s.moving),
            bool(s.stopped),
            int(s.chosen),
        )

    def protection(self) -> Protection:
        """Return how far muscles have given way, as an object whose arrays cannot be changed."""
        return Protection(frozen(self._given), *frozen(self._flags))

    def take(self, state: Relaxation, protection: Protection) -> None:
        """Go on from these.

        Args:
            state: Of the relaxation.
            protection: Of the safety.
        """
        s = self._setup
        self._dl[:], self._given[:] = state.dl, protection.given
        s.has_targets, s.has_rest = state.targets is not None, state.rest is not None
        if state.targets is not None:
            self._targets[:] = state.targets
        if state.rest is not None:
            self._rest[:] = state.rest
        s.still, s.moving = state.still, state.moving
        s.stopped, s.chosen = state.stopped, state.chosen
        p = protection
        self._flags[:] = p.hot, p.tense, p.unknown, p.latched

    def _bind(self, options: RelaxationOptions) -> None:
        setup, self._options = self._setup, options
        for name in ("dl_plus", "dl_minus", "dl_max", "dtheta_max", "resume", "tension_min"):
            setattr(setup, name, getattr(options, name))
        setup.still_change, setup.ties = options.still, TIES.index(options.ties)
        setup.hold = round(options.hold / options.period)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that cannot be written: a change of it would not reach the compiled blocks."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _geometric(image: BodyImage) -> GeometricBodyImage:
    if type(image) is not GeometricBodyImage:
        raise NotNativeError(f"a {image.kind} body image is computed by Python")
    if not image.rigid:
        raise NotNativeError("springs and stretch of muscles are computed by Python")
    return image


class _Pose(ctypes.Structure):
    """``pose_t`` of the C text."""

    _fields_ = [
        ("program", DaqpProgram),
        *members(ctypes.c_void_p, "image", "model", "image_io", "model_io", "image_q", "model_q"),
        *members(ctypes.c_void_p, "lengths", "lever_arms", "gravity", "load"),
        *members(ctypes.c_long, "loads"),
        *members(ctypes.c_void_p, "torque", "data", "matrix", "right", "right_up"),
        *members(ctypes.c_long, "data_size"),
        *members(ctypes.c_void_p, "low", "up", "tensions", "missing"),
    ]


class _Setup(ctypes.Structure):
    """``relaxation_t`` of the C text."""

    _fields_ = [
        *members(_Pose, "present", "wanted"),
        *members(ctypes.c_long, "nq", "nv", "m", "model_due", "tick_due"),
        *members(ctypes.c_void_p, "q", "desired", "measured", "temperatures"),
        *members(ctypes.c_long, "with_temperatures"),
        *members(ctypes.c_void_p, "pulled", "bias", "stiffness", "most"),
        *members(ctypes.c_long, "relaxation", "ties", "hold"),
        *members(ctypes.c_double, "dl_plus", "dl_minus", "dl_max", "dtheta_max", "resume"),
        *members(ctypes.c_double, "tension_min", "still_change"),
        *members(ctypes.c_long, "has_targets", "has_rest", "still", "moving", "stopped"),
        *members(ctypes.c_long, "chosen", "moved_given"),
        *members(ctypes.c_double, "moved"),
        *members(ctypes.c_void_p, "dl", "targets", "rest", "necessary"),
        *members(ctypes.c_double, "soft", "hard", "heat_rate", "tension_share", "tension_rate"),
        *members(ctypes.c_double, "recovery_rate", "largest", "period"),
        *members(ctypes.c_void_p, "given", "hot", "tense", "unknown", "latched"),
        *members(ctypes.c_long, "any_latched"),
        *members(ctypes.c_double, "letting_go", "let_go", "slack"),
        *members(ctypes.c_long, "with_offsets", "begun"),
        *members(ctypes.c_void_p, "offsets", "held_offsets", "lead", "rest_lengths", "tensions"),
        *members(ctypes.c_double, "hand_over_step", "residual"),
    ]
