"""Muscle relaxation control [Kawaharazuka2025]_: muscles held at lengths, released at rest.

Blocks, each at a rate of its own on the time of the states:

     40 Hz  joint angles        measured, or estimated from muscle lengths,
                                `cards_core.control.mrc.joint_angles`
    125 Hz  self-body image     l_ff = f(q_d, T_ff) - (T_ff - T0)/K
     40 Hz  geometric model     tau = what the pose needs against gravity and for wanted forces,
                                `cards_core.control.contact_force`
     40 Hz  necessary tensions  `cards_core.control.mrc.necessary_tension`
    125 Hz  relaxation          dl,  `cards_core.control.mrc.relaxation`
    125 Hz  safety              s,   `cards_core.control.mrc.temperature_safety`
    125 Hz  command             l0 = l_ff + dl + s + b,  T0 = bias

The muscles' own law, T = max(T_floor, T0 + K (l - l0) + B l') of the host or the board, makes
tensions of that (`cards_core.muscles.impedance`); b are the offsets of the length sensors that it
reads too, zero unless they are estimated. T_ff are the tensions that the wanted pose
needs: held at f alone, a muscle would pull with its bias only where the robot should be, and sag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.body_image.learned import LearnedBodyImage
from cards_core.control.contact_force import ContactForces
from cards_core.control.interface import (
    Controller,
    ControlOutput,
    ControlStatus,
    HoldPoint,
    Signal,
    check_reference,
    is_finite,
    number,
)
from cards_core.control.model import ControlModel
from cards_core.control.mrc.hand_over import HandOver
from cards_core.control.mrc.joint_angles import (
    JOINT_ANGLES,
    EstimatedAngles,
    EstimationNoise,
    noise_from,
)
from cards_core.control.mrc.native_blocks import BlockParts, NativeBlocks, frozen
from cards_core.control.mrc.necessary_tension import NecessaryTension
from cards_core.control.mrc.parameters import made_image, mrc_parameters
from cards_core.control.mrc.relaxation import (
    Relaxation,
    RelaxationOptions,
    relax,
    withdraw_all,
    within_bound,
)
from cards_core.control.mrc.temperature_safety import Protection, TemperatureLimits, protect
from cards_core.control.native_program import NotNativeError, own_methods
from cards_core.errors import ParameterError
from cards_core.muscles.actuators.springs import Elongations
from cards_core.muscles.command import Command, CommandPart
from cards_core.muscles.impedance import SLACK
from cards_core.parameters.declaration import ParameterStore
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.stamps import is_due, next_due
from cards_core.trajectories.base import Reference
from cards_core.typing import Array

LARGEST_STEP = 5.0
"""What a release or withdrawal may change a tension by per period, [N]."""

LETTING_GO = 2e-3
"""How fast all muscles lengthen once one of them was too hot, [m/s]: 0.5 N per period of 8 ms at
30 N/mm."""

IN_FORCE = 0.1
"""How long a command counts as obeyed if no further state comes, [s]; hosts' watchdogs are of that
order."""


_COMPILED = ("_update_model", "_torque", "_tick", "_begin")
"""Methods that the compiled blocks repeat, or that they need as they are."""


_RELAXED = ("dl_plus", "dl_minus", "dl_max", "dtheta_max")
"""Parameters of `RelaxationOptions` that can change while it runs."""

_ARGUMENTS = (
    "tension_min", "bias", "relaxation", "estimation_rate", "learning", "force_ramp", "force_max",
    "moment_max", "joint_angles",
)  # fmt: skip
"""Arguments of the controller that are parameters as they are."""


class MuscleRelaxationControl(Controller):
    """Hold a posture by muscle lengths, and let go at rest of what it does not need.

    Args:
        model: What the controller knows of the robot. Every muscle that takes a tension needs a
            stiffness in its ``<control>``.
        options: Of the relaxation.
        limits: Of temperature and tension.
        tension_min: T_min of the necessary tensions, [N].
        bias: T0 of every muscle, [N], below `tension_min`.
        relaxation: Whether muscles are released at all.
        estimation_rate: Of model and necessary tensions, [Hz].
        image: Replaces the geometric body image of the commanded muscles.
        learning: Whether a learned body image learns from every pose that is measured, once per
            period of estimation.
        force_ramp: Time in which a force of `set_contact_force` is reached, [s].
        force_max, moment_max: Largest force [N] and moment [Nm] there.
        joint_angles: ``measured``: q of the states; ``estimated``: from the muscle lengths, once
            per period of estimation. The search for the first pose begins where the reference
            does, or at home.
        noise: Of the sensors that angles are estimated from, and of the motion.

    Attributes:
        image: What it believes the muscles' lengths to be.
        state: Of the relaxation; `Relaxation.dl` is what was released.
        protection: How far muscles have given way to heat.
        necessary: Tensions that the present pose needs, shape (m,), [N].
        block_parts: Of what the blocks are made.
        native: See `Controller`; `cards_core.control.mrc.native_blocks` has the compiled form. The
            pose, where it is estimated, and joint forces of passive muscles and of forces to exert
            are computed before, the same for both forms.

    Raises:
        ParameterError: A value does not fit, or a muscle has no stiffness.
    """

    kind = "mrc"
    summary = "muscle relaxation control: muscles held at lengths, released at rest"
    space = "joint"
    needs = ("muscle_lengths", "tensions")
    commands = ("impedance",)
    contact_forces: ContactForces
    _native: NativeBlocks | None

    def __init__(
        self,
        model: ControlModel,
        *,
        options: RelaxationOptions | None = None,
        limits: TemperatureLimits | None = None,
        tension_min: float = 30.0,
        bias: float = 10.0,
        relaxation: bool = True,
        estimation_rate: float = 40.0,
        image: BodyImage | None = None,
        learning: bool = False,
        force_ramp: float = 1.5,
        force_max: float = 200.0,
        moment_max: float = 50.0,
        joint_angles: str = "measured",
        noise: EstimationNoise | None = None,
    ) -> None:
        super().__init__(model)
        robot, tree = model.commanded, model.dynamics.tree
        self.options = options or RelaxationOptions()
        self.options = replace(self.options, tension_min=tension_min)
        self.limits = limits or TemperatureLimits()
        self.relaxation = relaxation
        self.image = image or GeometricBodyImage(robot)
        seen = [muscle.name for muscle in self.image.robot.muscles]
        wanted = [muscle.name for muscle in robot.muscles]
        if seen != wanted or self.image.robot.tree.nv != tree.nv:
            raise ParameterError(
                f"the body image has the muscles {', '.join(seen)} and "
                f"{self.image.robot.tree.nv} degrees of freedom (expected: "
                f"{', '.join(wanted)} and {tree.nv}, those that are commanded)"
            )
        if joint_angles not in JOINT_ANGLES:
            raise ParameterError(
                f"joint_angles is '{joint_angles}'; expected one of: {', '.join(JOINT_ANGLES)}"
            )
        self.needs_joints = joint_angles == "measured"
        self._springs = Elongations(robot.muscles)
        self._angles: EstimatedAngles | None = None
        if not self.needs_joints:
            self._refuse_springs("joint_angles is 'estimated'")
            self._angles = EstimatedAngles(model.dynamics, self.image, noise or EstimationNoise())
            self.reason = self._angles.problem
        self._check_learning(learning)
        self.learning = learning
        if not number(bias, "bias") < tension_min:
            raise ParameterError(
                f"bias is {bias:g} N; expected less than tension_min {tension_min:g} N, without "
                "which every muscle always counts as tense"
            )
        self._stiffness = np.array([muscle.control.stiffness for muscle in robot.muscles])
        names = tuple(muscle.name for muscle in robot.muscles)
        self._most: Array = np.array([muscle.tension_max for muscle in robot.muscles])
        self._dynamics = model.dynamics
        self._load = model.load
        self.contact_forces = ContactForces(
            model.dynamics,
            number(force_ramp, "force_ramp"),
            force_max=number(force_max, "force_max", strict=True),
            moment_max=number(moment_max, "moment_max", strict=True),
        )
        least = np.full(len(names), float(tension_min))
        if np.any(least >= self._most):
            bad = int(np.argmax(least >= self._most))
            raise ParameterError(
                f"tension_min is {tension_min:g} N, not below the largest tension "
                f"{self._most[bad]:g} N of muscle '{names[bad]}'"
            )
        self._least = least
        self._solver = NecessaryTension(least, self._most, tree.nv)
        self._forward = NecessaryTension(least, self._most, tree.nv)
        self.reference_names = tree.position_names
        self.error_names = tree.velocity_names
        m = len(names)
        self.output = ControlOutput.empty(m, 0, tree.nq, tree.nv)
        self.output.tensions[:] = least
        self._bias = np.full(m, float(bias))
        self._hand_over = HandOver(robot.muscles, self._bias)
        self._rest_lengths = np.full(m, SLACK)
        self._told = self._next_release = -np.inf
        still = np.zeros(m)
        self.command = (CommandPart("impedance", names, self._bias, self._rest_lengths, still),)
        self._check_steps(self.options)
        slack = CommandPart("impedance", names, self._bias, np.full(m, SLACK), still)
        self.relaxed: Command = (slack,)
        self._columns = np.array(
            [i for i, muscle in enumerate(model.robot.muscles) if muscle.name in set(names)],
            dtype=np.intp,
        )
        self.signals = (
            Signal("relaxation", "position", names, lambda: self.state.dl),
            Signal("necessary_tension", "effort", names, lambda: self.necessary),
        )
        if self._angles is not None:
            self.signals += (
                Signal(
                    "joint_states", "position", tree.position_names, lambda: self.output.actual
                ),
                Signal("length_offset", "position", names, lambda: self.offsets),
            )
        self._period = self.options.period
        self._model_period = 1.0 / number(estimation_rate, "estimation_rate", strict=True)
        self._reference: Reference | None = None
        self._guess: Array | None = None
        self._start = 0.0
        self._still = np.zeros(tree.nv)
        self._held_offsets = np.zeros(m)
        # None: the compiled blocks have the present one, which differs from what they were given
        self._state: Relaxation | None = None
        self._protection: Protection | None = Protection.none(m)
        self._given: tuple[Relaxation | None, Protection | None, Array | None] = (None, None, None)
        self._compile()
        self.reset()

    def _compile(self) -> None:
        arrays = {
            "bias": self._bias,
            "stiffness": self._stiffness,
            "most": self._most,
            "rest_lengths": self._rest_lengths,
            "held_offsets": self._held_offsets,
        }
        self.block_parts = BlockParts(
            dynamics=self._dynamics,
            image=self.image,
            present=self._solver,
            wanted=self._forward,
            output=self.output,
            hand_over=self._hand_over,
            arrays=arrays,
            period=self._period,
            model_period=self._model_period,
            letting_go=LETTING_GO,
        )
        try:
            own_methods(self, MuscleRelaxationControl, _COMPILED)
            self._native, self.native = NativeBlocks(self.block_parts), "yes"
        except NotNativeError as error:
            self._not_native(str(error))

    @property
    def state(self) -> Relaxation:
        """What was released."""
        if self._state is None:
            assert self._native is not None
            self._state = self._native.relaxation()
            self._given = (self._state, *self._given[1:])
        return self._state

    @state.setter
    def state(self, value: Relaxation) -> None:
        self._state = value

    @property
    def protection(self) -> Protection:
        """How far muscles have given way."""
        if self._protection is None:
            assert self._native is not None
            self._protection = self._native.protection()
            self._given = (self._given[0], self._protection, self._given[2])
        return self._protection

    @protection.setter
    def protection(self, value: Protection) -> None:
        self._protection = value

    def step_in_python(self) -> None:
        """Compute all steps from now on in Python; see `Controller.step_in_python`."""
        _ = self.state, self.protection  # taken back from the compiled blocks
        super().step_in_python()

    @property
    def offsets(self) -> Array:
        """Estimated offsets of the length sensors, shape (m,), [m]; zero without an estimate."""
        return np.zeros(self._most.size) if self._angles is None else self._angles.offsets

    @property
    def allowance(self) -> float:  # type: ignore[override]
        """Motion that the relaxation may cause, `RelaxationOptions.dtheta_max`."""
        return self.options.dtheta_max if self.relaxation else 0.0

    @classmethod
    def unsuited(cls, robot: Robot) -> str:
        """Return why this controller cannot drive a robot; see `Controller.unsuited`."""
        reason = super().unsuited(robot)
        soft = [
            muscle.name
            for muscle in robot.muscles
            if muscle.takes_tension and not muscle.control.stiffness > 0.0
        ]
        if not reason and soft:
            reason = (
                f"muscle '{soft[0]}' of {robot.name} has no stiffness to be held by (expected: "
                '<control stiffness="..."/> in every muscle that takes a tension)'
            )
        if not reason and any(joint.motor for joint in robot.joints):
            reason = f"joints of {robot.name} have motors, which this controller does not drive"
        return reason

    @classmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters and return a controller; see `Controller.from_parameters`."""
        parameters.declare(mrc_parameters())
        value = parameters
        return cls(
            model,
            options=RelaxationOptions(
                **{name: value[name] for name in (*_RELAXED, "resume", "hold", "ties")},
                period=1.0 / value["rate"],
            ),
            limits=TemperatureLimits(
                soft=value["soft_temperature"],
                hard=value["hard_temperature"],
                heat_rate=value["heat_rate"],
            ),
            image=made_image(model.commanded, value["body_image"], value["body_image_file"]),
            noise=noise_from(value),
            **{name: value[name] for name in _ARGUMENTS},
        )

    def change(self, values: Mapping[str, Any]) -> None:
        """Take over the switch and the numbers of the relaxation; see `Controller.change`."""
        self._check_learning(values["learning"])
        options = replace(self.options, **{name: values[name] for name in _RELAXED})
        self._check_steps(options)
        self.options = options
        self.relaxation = values["relaxation"]
        self.learning = values["learning"]

    def _check_steps(self, options: RelaxationOptions) -> None:
        """Refuse lengths that would change a tension by more than `LARGEST_STEP` per period.

        Raises:
            ParameterError: One of them is too large for the stiffest muscle.
        """
        stiffest = int(np.argmax(self._stiffness))
        stiffness = self._stiffness[stiffest]
        most = LARGEST_STEP / stiffness
        for name in ("dl_plus", "dl_minus"):
            value = getattr(options, name)
            if value > most:
                raise ParameterError(
                    f"{name} is {value:g} m, which is {value * stiffness:.3g} N per period in "
                    f"muscle '{self.command[0].names[stiffest]}' (expected: at most {most:.3g} "
                    f"m, {LARGEST_STEP:g} N)"
                )

    def place(self, q: Array, qd: Array) -> Array:
        """Return the y of a state; see `Controller.place`."""
        return q.copy()

    def set_reference(self, reference: Reference | None, start: float = 0.0) -> None:
        """Track a reference; see `Controller.set_reference`."""
        if reference is not None:
            check_reference(reference, self.reference_names, self.output.error.size)
            if self._guess is None and not isinstance(reference, HoldPoint):
                # of the first one: after a reset all is as before
                self._guess = reference(0.0)[0].copy()
        self._start = start
        self._reference = reference

    def reset(self) -> None:
        """Forget what was released and how far muscles gave way; see `Controller.reset`.

        A muscle that was too hot stays latched: the motor is not cooler for it.
        """
        m = self._most.size
        self.state = Relaxation.none(m)
        self.protection = replace(Protection.none(m), latched=self.protection.latched)
        self.necessary = self._least.copy()
        self._held_offsets[:] = 0.0
        self._let_go = 0.0
        self._hand_over.lead[:] = 0.0
        self._begun = False
        self._next_tick = self._next_model = -np.inf
        if isinstance(self._reference, HoldPoint):
            self._reference = None

    def step(self, state: RobotState) -> Command:
        """Return the set-points of the muscles' law for a state; see `Controller.step`.

        While the pose is not known, muscles are let go of (`_release`), and held again as soon as
        it is, both without a jump. A state without a time is none: what was told last stays.
        """
        out, t = self.output, state.time
        out.time = t
        tensions = state.measured("tensions")[self._columns]
        if not np.isfinite(t):
            self._note_invalid()
            return self.command if np.isfinite(self._told) else self.relaxed
        q, qd = state.q, state.qd
        if self._angles is not None:
            lengths = state.measured("muscle_lengths")[self._columns]
            found = self._angles.step(
                t, lengths, tensions, q, guess=self._guess, period=self._model_period
            )
            self.reason = self._angles.problem
            if found is None:
                out.actual[:] = np.nan
                return self._release(state)
            q, qd = found.q, found.qd
        if not is_finite(q, qd):
            return self._release(state)
        if self._reference is None:
            self.set_reference(HoldPoint(q, len(self.error_names)), t)
        reference = self._reference
        assert reference is not None
        desired, rate, _ = reference(t - self._start)
        if not is_finite(desired, rate):
            return self._release(state)
        if not self._in_force(t):  # muscles may have been told anything meanwhile
            self._begin_anew()
        tree = self._dynamics.tree
        out.desired[:], out.desired_dot[:] = desired, rate
        out.actual[:], out.actual_dot[:] = q, qd
        out.error[:] = tree.difference(desired, q)
        due = (
            bool(is_due(t, self._next_model, self._model_period)),
            bool(is_due(t, self._next_tick, self._period)),
        )
        if any(due):
            self._blocks(state, tensions, due)
        self._told = t
        return self.command

    def _blocks(self, state: RobotState, tensions: Array, due: tuple[bool, bool]) -> None:
        """Do the blocks that are due: the model's, and those of relaxation and safety.

        Args:
            state: As it came; the poses are those of the output.
            tensions: As measured, shape (m,), [N]; NaN where a sensor is lost.
            due: Which.
        """
        t, out = state.time, self.output
        q, desired = out.actual, out.desired
        model, tick = due
        present = self._loads(q) if model else ()
        if tick:
            self.contact_forces.advance(self._period)
        wanted = self._loads(desired) if tick else ()
        if self._native is not None and self._do_natively(state, tensions, due, (present, wanted)):
            if model:
                self._next_model = next_due(t, self._next_model, self._model_period)
            if tick:
                self._next_tick = next_due(t, self._next_tick, self._period)
            return
        pulled = np.where(np.isfinite(tensions), tensions, 0.0)
        if model:
            self._next_model = next_due(t, self._next_model, self._model_period)
            self._update_model(q, pulled, present)
            if self.learning:
                self._learn(state, tensions)
        if tick:
            self._next_tick = next_due(t, self._next_tick, self._period)
            self._tick(state, tensions, pulled, wanted)

    def _do_natively(
        self,
        state: RobotState,
        tensions: Array,
        due: tuple[bool, bool],
        loads: tuple[Sequence[Array], Sequence[Array]],
    ) -> bool:
        """Do the blocks by compiled code; return whether they are settled."""
        native, out = self._native, self.output
        assert native is not None
        model, tick = due
        if self._solver.failed and not model:
            return False  # the status comes from there
        native.tensions[:] = tensions
        if state.temperatures is not None:
            native.temperatures[:] = state.temperatures[self._columns]
        if self._angles is not None:
            native.offsets[:] = self._angles.offsets
        self._give(native)
        moved, tree = 0.0, self._dynamics.tree
        if tree.nq != tree.nv and self.state.rest is not None:
            moved = float(np.linalg.norm(tree.difference(out.actual, self.state.rest)))
        before = None if self._begun or not tick else self._rest_lengths.copy()
        if not native.step(
            due,
            loads,
            self.options,
            self.limits,
            relaxation=self.relaxation,
            begun=before is None,
            let_go=self._let_go,
            with_temperatures=state.temperatures is not None,
            with_offsets=self._angles is not None,
            moved=moved,
        ):
            return False
        if model:
            self.necessary, self._solver.failed = frozen(native.necessary), False
            self._given = (*self._given[:2], self.necessary)
            out.residual = native.residual
        if tick:
            self._state = self._protection = None
            self._given = (None, None, self.necessary)
            self._let_go, self._forward.failed = native.let_go, False
            if before is not None:
                self._begin(state, before)
                self._hand_over.take_over(self._rest_lengths)
            out.status = ControlStatus.INFEASIBLE if native.latched else ControlStatus.OK
        return True

    def _give(self, native: NativeBlocks) -> None:
        """Give the compiled blocks what is not from themselves."""
        state, protection, necessary = self._given
        if self._state not in (None, state) or self._protection not in (None, protection):
            native.take(self.state, self.protection)
        if self.necessary is not necessary:
            native.necessary[:] = self.necessary
        self._given = (self._state, self._protection, self.necessary)

    def _update_model(self, q: Array, tensions: Array, loads: Sequence[Array]) -> None:
        """Find the tensions that the present pose needs; NaN must not be among `tensions`."""
        jacobian = self.image.evaluate(q, tensions)[1]
        self.necessary = self._solver.solve(jacobian, self._torque(q, loads)).copy()
        self.output.residual = float(np.linalg.norm(self._solver.missing))

    def _check_learning(self, learning: bool) -> None:
        if learning and not self.needs_joints:
            raise ParameterError(
                "learning is on with joint_angles 'estimated': angles that come from the lengths "
                "teach nothing about them (expected: joint_angles 'measured')"
            )
        if learning and not isinstance(self.image, LearnedBodyImage):
            raise ParameterError(
                f"learning is on with a {self.image.kind} body image (expected: body_image "
                "'learned')"
            )
        if learning:
            self._refuse_springs("learning is on")

    def _refuse_springs(self, what: str) -> None:
        sprung = self._springs.rows
        if sprung:
            raise ParameterError(
                f"{what}, and muscle '{self.image.robot.muscles[sprung[0]].name}' has a spring "
                "(expected: muscles without; the lengths of a state are those of paths, which do "
                "not tell what a winder has paid out)"
            )

    def _learn(self, state: RobotState, tensions: Array) -> None:
        """Take over the lengths at this pose, and make one step of learning."""
        image = self.image
        assert isinstance(image, LearnedBodyImage)
        lengths = state.measured("muscle_lengths")[self._columns]
        if is_finite(lengths, tensions):
            image.add(state.q, tensions, lengths)
            image.update()

    def _loads(self, q: Array) -> Sequence[Array]:
        """Return the joint forces beside gravity that there are at rest, shape (nv,) each."""
        wanted = self.contact_forces.torque(q)
        loads = () if self._load is None else (self._load(q, self._still),)
        return loads if wanted is None else (*loads, wanted)

    def _torque(self, q: Array, loads: Sequence[Array]) -> Array:
        """Return what muscles have to hold at rest, ``-G' T``, shape (nv,)."""
        torque = self._dynamics.update(q, self._still).gravity.copy()
        for load in loads:
            torque += load
        return torque

    def _tick(
        self, state: RobotState, tensions: Array, pulled: Array, loads: Sequence[Array]
    ) -> None:
        """One period of relaxation and safety; writes the command.

        Args:
            state: As it came; the poses are those of the output.
            tensions: As measured, shape (m,), [N]; NaN where a sensor is lost.
            pulled: The same with 0 there.
            loads: Joint forces beside gravity at the wanted pose.
        """
        out = self.output
        q, desired = out.actual, out.desired
        guess = self.image.evaluate(desired, self._least)[1]
        needed = self._forward.solve(guess, self._torque(desired, loads))
        wanted = self.image.evaluate(desired, needed)[0] - (needed - self._bias) / self._stiffness
        out.tensions[:] = needed
        if self.relaxation:
            self.state = relax(
                self.state,
                wanted,
                pulled,
                self.necessary,
                q,
                options=self.options,
                difference=self._dynamics.tree.difference,
            )
            self.state = within_bound(self.state, self.options)
        else:
            self.state = withdraw_all(self.state, self.options)
        temperatures = None if state.temperatures is None else state.temperatures[self._columns]
        self.protection = protect(
            self.protection,
            tensions,
            temperatures,
            largest=self._most,
            limits=self.limits,
            dt=self._period,
        )
        if self.protection.latched.any():
            self._let_go = min(self._let_go + LETTING_GO * self._period, SLACK)
        before = self._rest_lengths.copy()
        np.add(wanted, self.state.dl, out=self._rest_lengths)
        self._rest_lengths += self.protection.given
        self._rest_lengths += self._let_go
        if self._angles is not None:
            # the law compares with what the sensor reads
            offsets = self._angles.offsets
            self._rest_lengths += offsets
            # an estimate that becomes another one must not make muscles jerk
            self._hand_over.lead += self._held_offsets - offsets
            self._held_offsets[:] = offsets
        if not self._begun:
            self._begin(state, before)
        self._hand_over.take_over(self._rest_lengths)
        out.status = ControlStatus.OK
        if self._solver.failed or self._forward.failed:
            out.status = ControlStatus.FALLBACK
        elif self.protection.latched.any():
            out.status = ControlStatus.INFEASIBLE

    def _begin(self, state: RobotState, before: Array) -> None:
        """Let the lead begin where tensions are as before.

        Args:
            state: As it came.
            before: l0 of the last command, shape (m,), [m].
        """
        self._begun = True
        self._hand_over.lead[:] = 0.0
        # where time itself has just begun nothing holds the robot, and it is held at once
        if state.time > self._period:
            present = self._present(state, before, self.output.actual)
            self._hand_over.lead[:] = present - self._rest_lengths

    def _present(self, state: RobotState, before: Array, q: Array | None = None) -> Array:
        """Return l0 with which every muscle goes on with the tension that it has, shape (m,).

        Args:
            state: With what is measured.
            before: l0 of the last command, which counts if it may still be obeyed.
            q: The pose, which tells lengths that are not measured; None: not known.
        """
        tensions = state.measured("tensions")[self._columns]
        lengths = state.measured("muscle_lengths")[self._columns].copy()
        if self._springs.rows:
            lengths -= self._springs(np.nan_to_num(tensions))
        lost = ~np.isfinite(lengths)
        if q is not None and lost.any():
            believed = self.image.evaluate(q, np.nan_to_num(tensions))[0] + self.offsets
            lengths[lost] = believed[lost]
        rates = np.zeros_like(lengths)
        if state.muscle_rates is not None:
            rates = np.nan_to_num(state.muscle_rates[self._columns], posinf=0.0, neginf=0.0)
        if self._in_force(state.time):
            return self._hand_over.kept(before, lengths, rates)
        return self._hand_over.lengths_for(tensions, lengths, rates)

    def _in_force(self, time: float) -> bool:
        """Tell whether the last command may still be what muscles are told."""
        return 0.0 <= time - self._told <= max(IN_FORCE, 2.0 * self._period)

    def _release(self, state: RobotState) -> Command:
        """Let all muscles go by a step per period, for the pose is not known."""
        self._note_invalid()
        t = state.time
        if not self._in_force(t):
            self._rest_lengths[:] = SLACK
            # where time itself has just begun nothing holds the robot
            if t > self._period:
                self._rest_lengths[:] = self._present(state, self._rest_lengths)
            self._next_release = t + self._period
        elif is_due(t, self._next_release, self._period):
            tensions = state.measured("tensions")[self._columns]
            self._hand_over.let_go(self._rest_lengths, tensions)
            self._next_release = next_due(t, self._next_release, self._period)
        self._told = t
        return self.command

    def _note_invalid(self) -> None:
        out = self.output
        out.status = ControlStatus.INVALID_STATE
        out.residual = np.nan
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Take what comes next for motion, which begins with the tensions that there are."""
        self.state = Relaxation(self.state.dl)
        self._begun = False
        self._next_tick = self._next_model = -np.inf
