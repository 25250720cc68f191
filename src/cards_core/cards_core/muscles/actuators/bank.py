"""All actuator models of a robot, stepped together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.codegen.kernel import RepeatedKernel
from cards_core.codegen.model import BoundKernel
from cards_core.codegen.native import load_or_build
from cards_core.errors import CardsError, ParameterError
from cards_core.muscles.actuators.arithmetic import DUAL, NUMPY, Arithmetic, Dual, clip
from cards_core.muscles.actuators.cable import IdealCable
from cards_core.muscles.actuators.groups import (
    INPUTS,
    LARGEST_INPUT,
    LARGEST_VALUE,
    Group,
    make_groups,
)
from cards_core.muscles.actuators.model import Inputs, Model
from cards_core.muscles.command import FORCE, IMPEDANCE
from cards_core.robot.actuators import check_control
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend


class ActuatorBank:
    """The actuators of a robot: lengths, rates and commands in, tensions out.

    Args:
        robot: The description.
        dt: Time between steps, [s].
        backend: ``compiled`` (native code, cached) or ``numeric`` (NumPy, the reference).

    Attributes:
        dt: As given.
        ideal: True if all muscles are ideal cables: `step` then returns the values it is given.
        state_names: Published states, ``muscle/state``, in the order of the muscles.
        slope_kernel, spring_kernel: Native forms of `linearise`, whose buffer it uses, and of
            `springs`; None without.
        state_values: Their values, in SI units and degC; overwritten by the next step.
        stiffness: Largest usual dT/dl of every muscle, shape (m,), [N/m]; zero for ideal cables.
        damping: Largest usual dT/dl', shape (m,), [N s/m].
        winches: Where in `state` the winding speed of a muscle is if the rate of its impedance
            law is that of its winch, else -1; shape (m,).
        impedance_kinds: Codes by which muscles are told tensions of their impedance law, shape
            (m,): FORCE, or IMPEDANCE for winders behind a spring, whose motors get a current.
        is_spring: Which muscles are springs and nothing else (but for their winches), shape (m,).

    Raises:
        DescriptionError: A parameter out of range; names muscle and attribute.
        CardsError: ``dt`` is not a time > 0.
        UnknownNameError: No such backend, or no model for a kind of actuator.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float,
        backend: Backend = "compiled",
    ) -> None:
        check_choice(backend, "backend", get_args(Backend))
        if not 0.0 < dt < np.inf:
            raise CardsError(f"step of the actuators is {dt} s, expected a time > 0")
        muscles = robot.muscles
        for muscle in muscles:
            try:
                muscle.actuator.check()
                check_control(muscle.actuator, muscle.control)
            except ParameterError as error:
                raise robot.error(muscle, str(error)) from None
        count = len(muscles)
        self._muscles = muscles
        self.dt = float(dt)
        self._groups, self.state_names, size = make_groups(muscles, self.dt)
        self.stiffness: Array = np.zeros(count)
        self.damping: Array = np.zeros(count)
        self.is_spring = np.zeros(count, dtype=np.bool_)
        for group in self._groups:
            self.stiffness[group.rows] = group.model.stiffness
            self.damping[group.rows] = group.model.damping
            self.is_spring[group.rows] = type(group.model).stretch is not Model.stretch
        winders = [
            (group.rows, *(group.places[group.model.published.index(name)] for name in names))
            for group in self._groups
            if (names := group.model.winder) is not None
        ]
        self.impedance_kinds = np.full(count, FORCE)
        for rows, *_ in winders:
            self.impedance_kinds[rows] = IMPEDANCE
        self.winches = np.full(count, -1)
        for group in self._groups:
            if group.model.winch is not None:
                places = group.places[group.model.published.index(group.model.winch)]
                by_winch = [muscles[row].control.rate == "winch" for row in group.rows]
                self.winches[group.rows] = np.where(by_winch, places, -1)
        self._by_winch = np.flatnonzero(self.winches >= 0)
        self._winders = [np.concatenate(parts) for parts in zip(*winders, strict=True)]
        self.winders = bool(self._winders)
        self.ideal = all(type(group.model) is IdealCable for group in self._groups)
        self._state: Array = np.zeros(size)
        self._lengths: Array = np.zeros(count)
        self._tensions: Array = np.zeros(count)
        self._slopes: Array = np.zeros(count)
        self._trial_tensions: Array = np.zeros(count)
        self._advanced: Array = np.zeros(size)
        self.step_kernel: BoundKernel | None = None
        self.slope_kernel: BoundKernel | None = None
        self.spring_kernel: BoundKernel | None = None
        self.step = self._step_ideal if self.ideal else self._step_numeric
        self.linearise = self._linearise_numeric
        if backend == "compiled" and not self.ideal:
            self._bind_native()
        self.state_values = self._state[: len(self.state_names)]

    @property
    def state(self) -> Array:
        """All inner states, the published ones first; a saved copy may be written back."""
        return self._state

    def _bind_native(self) -> None:
        model = load_or_build(self._content(), self._kernels)
        kernel = self.step_kernel = model.bind("actuators")
        self._inputs = tuple(kernel.inputs[name] for name in INPUTS)
        self._lengths = kernel.inputs["lengths"]
        self._state = kernel.inputs["state"]
        self._stepped = kernel.outputs["advanced"]
        self._tensions = kernel.outputs["tensions"]
        self._call = kernel.call
        self.linearise = self._linearise_native
        self.step = self._step_native
        self.slope_kernel = model.bind("actuator_slopes")
        self.spring_kernel = model.bind("springs")
        self._trial_tensions = self.slope_kernel.outputs["tensions"]
        self._advanced = self.slope_kernel.outputs["advanced"]

    def _content(self) -> bytes:
        digest = hashlib.sha256(b"actuator bank 4")
        for muscle in self._muscles:
            limits = (muscle.tension_min, muscle.tension_max)
            digest.update(repr((muscle.actuator, limits)).encode())
        digest.update(np.array([self.dt]).tobytes())
        return digest.digest()

    def _kernels(self) -> Sequence[RepeatedKernel]:
        # casadi takes 0.3 s to import and is not needed when the code is cached
        from cards_core.muscles.actuators.symbolic import actuator_kernels

        return actuator_kernels(self._groups, len(self._muscles), len(self._state), self.dt)

    def reset(self, lengths: Array) -> None:
        """Put all actuators to rest.

        Cables without a rest length of their own are wound, motors and pressures set, and muscles
        activated so that every muscle has its smallest tension, as far as its length allows.

        Args:
            lengths: Of the paths, shape (m,), [m].
        """
        self._lengths[:] = np.clip(lengths, 0.0, LARGEST_INPUT)
        for group in self._groups:
            states = group.model.rest(self._lengths[group.rows])
            for place, values in zip(group.places, states, strict=True):
                self._state[place] = values

    def encoders(self, lengths: Array, rates: Array) -> tuple[Array, Array]:
        """Return length [m] and rate [m/s] of every muscle as the encoder of its motor reads them.

        Those of the path, less the elongation of a spring between motor and path. The rate is that
        of the rest length where the law asks for it.

        Args:
            lengths: Of the paths, shape (m,), [m].
            rates: Of the paths, shape (m,), [m/s].
        """
        if self._by_winch.size:
            rates = rates.copy()
            rates[self._by_winch] = -self._state[self.winches[self._by_winch]]
        if not self._winders:
            return lengths, rates
        rows, wound, speed = self._winders
        lengths, rates = lengths.copy(), rates.copy()
        lengths[rows], rates[rows] = self._state[wound], -self._state[speed]
        return lengths, rates

    def _step_ideal(
        self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array
    ) -> Array:
        del lengths, rates, kinds
        return values

    def _step_native(
        self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array
    ) -> Array:
        own_lengths, own_rates, own_kinds, own_values = self._inputs
        own_lengths[:] = lengths
        own_rates[:] = rates
        own_kinds[:] = kinds
        own_values[:] = values
        self._call()
        self._state[:] = self._stepped
        return self._tensions

    def _linearise_native(
        self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array
    ) -> tuple[Array, Array]:
        kernel = self.slope_kernel
        assert kernel is not None
        for name, given in zip(INPUTS, (lengths, rates, kinds, values), strict=True):
            kernel.inputs[name][:] = given
        kernel.inputs["state"][:] = self._state
        kernel.call()
        return kernel.outputs["tensions"], kernel.outputs["slopes"]

    def springs(self, lengths: Array, *, advanced: bool = False) -> tuple[Array, Array]:
        """Return stretch [m] and energy [J] of the muscles that are springs and nothing else.

        Zeros for the others; each of shape (m,), newly allocated.

        Args:
            lengths: Of the paths, shape (m,), [m].
            advanced: With the states of the last `linearise`.
        """
        state = self._advanced if advanced else self._state
        count = len(self._muscles)
        stretch, stored = np.zeros(count), np.zeros(count)
        lengths = np.clip(lengths, 0.0, LARGEST_INPUT)
        for group in self._groups:
            states = [state[place] for place in group.places]
            found = group.model.stretch(NUMPY, group.model.p, states, lengths[group.rows])
            stretch[group.rows], stored[group.rows] = found
        return stretch, stored

    def set_commands(self, kinds: npt.NDArray[Any], values: Array) -> None:
        """Put commands and states into `slope_kernel`, for callers of its native function."""
        kernel = self.slope_kernel
        if kernel is not None:
            kernel.inputs["kinds"][:] = kinds
            kernel.inputs["values"][:] = values
            kernel.inputs["state"][:] = self._state

    def _linearise_numeric(
        self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array
    ) -> tuple[Array, Array]:
        """Return what `step` would, and its slope; the states wait for `accept`.

        Args:
            lengths: Of the paths, shape (m,), [m].
            rates: Of the paths, shape (m,), [m/s].
            kinds: What the values command, shape (m,).
            values: Commands, shape (m,).

        Returns:
            Tensions T [N] and dT/dl + (1/dt) dT/dl' [N/m], each of shape (m,): the slope over
            the length at the end of a step of dt whose mean rate is (l_end - l)/dt. Overwritten
            by the next call.
        """
        given = Inputs(lengths, rates, kinds, values)
        for group, tension, states in self._evaluate(DUAL, _with_slope, given):
            self._trial_tensions[group.rows] = Dual.of(tension).value
            self._slopes[group.rows] = Dual.of(tension).slope
            for place, new in zip(group.places, states, strict=True):
                self._advanced[place] = Dual.of(new).value
        return self._trial_tensions, self._slopes

    def accept(self, lengths: Array, share: float = 1.0) -> Array:
        """Take over the states of the last `linearise`; return its tensions, shape (m,), [N].

        Args:
            lengths: Of the paths now, to which `energy` refers, shape (m,), [m].
            share: Of their tension that springs have.
        """
        self._lengths[:] = np.clip(lengths, 0.0, LARGEST_INPUT)
        self._state[:] = self._advanced
        self._tensions[:] = self._trial_tensions
        if share != 1.0:
            self._tensions[self.is_spring] *= share
        return self._tensions

    def _step_numeric(
        self, lengths: Array, rates: Array, kinds: npt.NDArray[Any], values: Array
    ) -> Array:
        """Return the tensions at these lengths and advance the states by dt.

        Args:
            lengths: Of the paths, shape (m,), [m].
            rates: Of the paths, shape (m,), [m/s].
            kinds: What the values command, shape (m,): codes of `cards_core.muscles.command`.
                A command that a muscle does not accept counts as none.
            values: Shape (m,), [N], [m], [Pa] or 0..1.

        Returns:
            Shape (m,), [N], at least 0; overwritten by the next step.
        """
        self._lengths[:] = np.clip(lengths, 0.0, LARGEST_INPUT)
        given = Inputs(lengths, rates, kinds, values)
        for group, tension, states in self._evaluate(NUMPY, _without_slope, given):
            self._tensions[group.rows] = tension
            for place, new in zip(group.places, states, strict=True):
                self._state[place] = new
        return self._tensions

    def _evaluate(
        self, arithmetic: Arithmetic, number: Callable[[Array, float], Any], given: Inputs
    ) -> Iterator[tuple[Group, Any, Any]]:
        """Yield every group with its tensions and next states, in the given arithmetic.

        Args:
            arithmetic: That of the laws.
            number: Makes one of its numbers of a value and its slope over the length at the end
                of the step.
            given: Lengths, rates, kinds and values of all muscles, each of shape (m,).
        """
        lengths = np.clip(given.length, 0.0, LARGEST_INPUT)
        rates = np.clip(given.rate, -LARGEST_INPUT, LARGEST_INPUT)
        values = np.clip(given.value, -LARGEST_VALUE, LARGEST_VALUE)
        for group in self._groups:
            rows, model = group.rows, group.model
            inputs = Inputs(
                number(lengths[rows], 1.0),
                number(rates[rows], 1.0 / self.dt),
                given.kind[rows],
                values[rows],
            )
            states = [self._state[place] for place in group.places]
            yield group, *model.step(arithmetic, model.p, states, inputs)

    def energy(self) -> Array:
        """Return the elastic energy that each muscle stores now, shape (m,), [J].

        Springs, tendons, passive fibres, bladders and ligaments at the lengths of the last step.
        """
        total = np.zeros(len(self._muscles))
        lengths = clip(NUMPY, self._lengths, 0.0, LARGEST_INPUT)
        for group in self._groups:
            states = [self._state[place] for place in group.places]
            total[group.rows] = group.model.energy(states, lengths[group.rows])
        return total


def _without_slope(value: Array, _slope: float) -> Array:
    return value


def _with_slope(value: Array, slope: float) -> Dual:
    return Dual(value, np.full(len(value), slope))
