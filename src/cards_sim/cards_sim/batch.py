"""Many robots of one kind, stepped together on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice, check_count, check_kind, finite_number, real_array
from cards_core.errors import CardsError, ShapeError
from cards_core.formats.locate import shipped_parameters
from cards_core.formats.sdf.world import AnyWorld, described_world
from cards_core.muscles.batch_steps import BatchSteps, obstacle_to_batches
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import CommandKind
from cards_core.robot.batch_state import BatchRobotState
from cards_core.robot.model import Robot
from cards_core.robot.perturb import perturbed
from cards_core.typing import Array
from cards_sim.build import build_host
from cards_sim.errors import SimulationStoppedError
from cards_sim.host import SimulatorHost
from cards_sim.native_steps import advance_all
from cards_sim.world_simulator import SeveralSteps

Physics: TypeAlias = Literal["auto", "compiled", "mujoco"]

HELD = 3600.0
"""Time without a command after which tensions fall, [s]: the longest that a host takes."""

LEAST_FACTOR = 0.01
"""Minimum factor of masses that is drawn."""


@dataclass(frozen=True, kw_only=True)
class ModelErrors:
    """How far each robot of a batch is from its description, and how noisy its sensors are.

    What robot i gets depends on ``seed`` and i alone.

    Attributes:
        mass: Standard deviation of the factor of all masses of a robot, about 1.
        moment_arm: Share by which the moment arms of every muscle are too great or too small, at
            random, 0 to 1.
        attachment: Distance by which every attachment is displaced in a random direction, [m];
            only with MuJoCo.
        joint_noise: Standard deviation of ``measured_q``, [rad] or [m].
        length_noise: Standard deviation of ``measured_lengths``, [m].
        seed: Of all of them, >= 0.

    Raises:
        CardsError: A number out of its range.
    """

    mass: float = 0.0
    moment_arm: float = 0.0
    attachment: float = 0.0
    joint_noise: float = 0.0
    length_noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "seed":
                check_count(value, "seed", at_least=0)
                continue
            finite_number(value, field.name, at_least=0.0)
        if self.moment_arm >= 1.0:
            raise CardsError(f"moment_arm is {self.moment_arm:g} (expected: a share below 1)")

    def mass_factors(self, count: int) -> Array:
        """Return the factor of all masses of each robot, shape (n,)."""
        drawn = np.random.default_rng([self.seed, 0]).standard_normal(count)
        return np.maximum(1.0 + self.mass * drawn, LEAST_FACTOR)

    def arm_factors(self, count: int, muscles: int) -> Array:
        """Return the factor of the moment arms of each muscle, shape (n, m)."""
        drawn = np.random.default_rng([self.seed, 1]).choice((-1.0, 1.0), (count, muscles))
        return 1.0 + self.moment_arm * drawn


EXACT = ModelErrors()


class Batch:
    """n robots of one kind; every one has its state, its commands, its errors and its noise.

        batch = cards.Batch(robot, 1000)
        batch.command(tensions)                 # (n, m), or (m,) for all
        batch.step(10)
        state = batch.state                     # .q (n, nq), .qd, .tensions ...

    Arms with ideal cables in free air are stepped by generated code, four at a time in one set of
    vector instructions; all others by MuJoCo and the muscle engine, one native call per robot and
    ``step``, with contacts and every kind of muscle. Results are the same to the last bit for any
    number of threads, and robot i of n is robot i of any other n.

    Args:
        robot: A robot with muscles.
        n: How many.
        dt: Time step, [s]; as in ``config/`` for a shipped robot if None, else 1 ms.
        terrain: What each stands on, e.g. ``hills:amplitude=0.02``; as in ``config/`` if None.
        world: A world of objects, each robot in one of its own; see `cards.Simulator`.
        q: Joint coordinates at time zero, shape (nq,) or (n, nq); home if None.
        errors: How far the robots are from their description.
        physics: ``compiled``: generated code; ``mujoco``; ``auto``: the former if it can.
        threads: How many share the work; as many as there are processors if None.
        progress: Called with the numbers of robots that are ready, and of all.

    Attributes:
        robot, n, dt, threads, errors: As given.
        physics: ``compiled`` or ``mujoco``.

    Raises:
        CardsError: The robot cannot be simulated, or an argument is out of its range.
    """

    def __init__(
        self,
        robot: Robot,
        n: int,
        *,
        dt: float | None = None,
        terrain: str | None = None,
        world: AnyWorld | None = None,
        q: npt.ArrayLike | None = None,
        errors: ModelErrors = EXACT,
        physics: Physics = "auto",
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        check_kind(robot, Robot, "the robot", 'a robot with muscles, e.g. cards.load("planar_2r")')
        check_kind(errors, ModelErrors, "errors", "a ModelErrors")
        check_count(n, "n")
        check_choice(physics, "physics", ("auto", "compiled", "mujoco"))
        self.robot, self.n, self.errors = robot, n, errors
        self.threads = (os.cpu_count() or 1) if threads is None else threads
        check_count(self.threads, "threads")
        given = shipped_parameters(robot, "simulator")
        self.dt = float(given.get("dt", 1e-3) if dt is None else dt)
        grounds = ("world", "terrain", "ground")
        free = terrain is None and world is None and not any(given.get(k) for k in grounds)
        reason = "" if free else "it stands on something, or among objects"
        reason = reason or obstacle_to_batches(robot)
        if not reason and errors.attachment:
            reason = "attachments are displaced"
        if physics == "compiled" and reason:
            raise CardsError(
                f"physics compiled for '{robot.name}': {reason} (expected: mujoco, or auto)"
            )
        self._start = self._starts(q)
        self._start_rates: Array = np.zeros((n, robot.tree.nv))
        self.physics: Physics = "mujoco" if reason or physics == "mujoco" else "compiled"
        self._robots: _Compiled | _Hosts
        if self.physics == "compiled":
            self._robots = _Compiled(self)
        else:
            self._robots = _Hosts(self, terrain, world, progress)
        self._looks = 0
        self._state: BatchRobotState | None = None
        self.reset()

    # Time -------------------------------------------------------------------------------------

    def reset(
        self,
        which: Sequence[int] | npt.NDArray[Any] | None = None,
        q: npt.ArrayLike | None = None,
        qd: npt.ArrayLike | None = None,
    ) -> None:
        """Put robots back to time zero; they forget their commands, and what changed their masses.

        Args:
            which: Their numbers, or a mask of shape (n,); all if None.
            q: Where they begin from now on, shape (nq,) or (n, nq); as before if None.
            qd: How they move there, shape (nv,) or (n, nv); as before, first at rest, if None.

        Raises:
            CardsError: There is no such robot, or numbers do not fit.
        """
        rows = self._rows(which)
        start = self._start if q is None else self._starts(q)
        rates = self._start_rates if qd is None else self._rates(qd)
        self._start[rows], self._start_rates[rows] = start[rows], rates[rows]
        self._robots.reset(rows, self._start, self._start_rates)
        self._state = None

    def scale_masses(self, factors: npt.ArrayLike) -> None:
        """Multiply all masses and inertias of each robot from now on, beside its model error.

        A robot keeps its velocities: what it gains or loses moves as it does. `reset` ends it.

        Args:
            factors: Shape () or (n,), > 0; 1 is the robot as it was made.

        Raises:
            ShapeError: A wrong shape, or a factor that is no positive number.
            CardsError: The robots are not stepped by generated code.
        """
        if not isinstance(self._robots, _Compiled):
            raise CardsError(
                f"scale_masses of robots that MuJoCo steps (expected: joints and ideal cables in "
                f"free air, which '{self.robot.name}' has not, or it stands among objects)"
            )
        array = np.asarray(real_array(factors, "factors"), dtype=float)
        if array.shape not in ((), (self.n,)):
            raise ShapeError(f"factors has shape {array.shape}, expected () or ({self.n},)")
        wrong = ~(np.isfinite(array) & (array > 0.0))
        if wrong.any():
            raise ShapeError(f"a factor is {array[wrong][0]} (expected: a finite number > 0)")
        self._robots.scale_masses(array)
        self._state = None

    def step(self, steps: int = 1) -> None:
        """Advance all robots under the commands that they have.

        A robot whose numbers get too large, or not finite, stands still from then on; see
        ``state.diverged``.

        Args:
            steps: >= 1.

        Raises:
            CardsError: No such number of steps.
        """
        check_count(steps, "steps")
        self._robots.advance(steps)
        self._state = None

    @property
    def state(self) -> BatchRobotState:
        """The present state; the arrays are the caller's. Sensors are read once for each."""
        if self._state is None:
            errors, parts = self.errors, self._robots.state()
            deviations = {"q": errors.joint_noise, "muscle_lengths": errors.length_noise}
            noisy = []
            for kind, (name, deviation) in enumerate(deviations.items()):
                true = parts[name]
                # of their own: those of robot i do not depend on how many robots there are
                drawn = np.random.default_rng([errors.seed, 2, kind, self._looks])
                noise = drawn.standard_normal(true.shape) if deviation else 0.0
                noisy.append(true + deviation * noise)
            self._looks += 1
            self._state = BatchRobotState(**parts, measured_q=noisy[0], measured_lengths=noisy[1])
        return self._state.copy()

    # Commands ---------------------------------------------------------------------------------

    def muscles(self, kind: CommandKind = "force") -> list[str]:
        """Return the names of the muscles that take a kind of command, in the robot's order."""
        return [m.name for m in self.robot.muscles if kind in m.actuator.accepted_commands]

    def command(
        self,
        values: npt.ArrayLike,
        *,
        rest_lengths: npt.ArrayLike | None = None,
        rest_rates: npt.ArrayLike | None = None,
        kind: CommandKind | None = None,
        muscles: Sequence[str] | None = None,
    ) -> None:
        """Tell all muscles that take such commands, or some; it holds until the next one.

        Args:
            values: Tensions [N], or what ``kind`` says, shape (m,) or (n, m), m being the muscles
                of `muscles`; of the impedance law T0, [N].
            rest_lengths: Of the impedance law l0, likewise, [m].
            rest_rates: Of the impedance law v0, likewise, [m/s]; 0 if None.
            kind: ``force``, ``length``, ``pressure``, ``excitation`` or ``impedance``; the last if
                rest lengths are given, else the first.
            muscles: Names of those that are told something, in this order; the others keep what
                they were told, or stay as they were built. All of `muscles` if None.

        Raises:
            ShapeError: Shapes do not fit, or a number is not finite; the message names the robot.
            UnknownNameError: One of the muscles does not take such commands.
            CardsError: No muscle takes such commands, or a robot refused its values.
        """
        if kind is None:
            kind = "force" if rest_lengths is None and rest_rates is None else "impedance"
        names = self.muscles(kind)
        if not names:
            raise CardsError(
                f"no muscle of '{self.robot.name}' takes the command '{kind}' (expected: "
                f"{', '.join(self._kinds()) or 'a robot with muscles that take commands'})"
            )
        for name in muscles or ():
            check_choice(name, f"muscle that takes the command '{kind}'", names)
        if muscles is not None:
            if not muscles or len(set(muscles)) < len(muscles):
                raise CardsError(f"muscles is {list(muscles)} (expected: some names, each once)")
            names = list(muscles)
        given = {"values": values}
        if kind == "impedance":
            if rest_lengths is None:
                raise CardsError("the impedance law without rest_lengths (expected: l0 of each)")
            given |= {"rest_lengths": rest_lengths}
            given |= {"rest_rates": np.zeros(len(names)) if rest_rates is None else rest_rates}
        elif rest_lengths is not None or rest_rates is not None:
            raise CardsError(f"rest lengths or rates with '{kind}' (expected: with impedance)")
        arrays = {name: self._matrix(value, name, names) for name, value in given.items()}
        self._robots.command(kind, names, arrays)

    def _kinds(self) -> list[str]:
        taken = [kind for m in self.robot.muscles for kind in m.actuator.accepted_commands]
        return list(dict.fromkeys(taken))

    def _matrix(self, value: npt.ArrayLike, what: str, names: list[str]) -> Array:
        array = np.asarray(real_array(value, what), dtype=float)
        shape = (self.n, len(names))
        if array.shape not in (shape, shape[1:]):
            raise ShapeError(f"{what} has shape {array.shape}, expected {shape[1:]} or {shape}")
        array = np.broadcast_to(array, shape)
        if not np.isfinite(array).all():
            i, j = np.argwhere(~np.isfinite(array))[0]
            raise ShapeError(
                f"{what} of muscle '{names[j]}' of robot {i} is {array[i, j]} (expected: finite)"
            )
        return array

    def _starts(self, q: npt.ArrayLike | None) -> Array:
        tree = self.robot.tree
        array = np.asarray(tree.home if q is None else real_array(q, "q"), dtype=float)
        shape = (self.n, tree.nq)
        if array.shape not in (shape, shape[1:]):
            raise ShapeError(f"q has shape {array.shape}, expected {shape[1:]} or {shape}")
        array = np.array(np.broadcast_to(array, shape))
        if q is not None:
            rows, first = np.unique(array, axis=0, return_index=True)
            for i, row in sorted(zip(first, rows, strict=True), key=lambda pair: int(pair[0])):
                try:
                    tree.check_q(row)
                except CardsError as error:
                    raise ShapeError(f"robot {i}: {error}") from None
            _check_size(array, "q", tree.position_names)
        return array

    def _rates(self, qd: npt.ArrayLike) -> Array:
        array = np.asarray(real_array(qd, "qd"), dtype=float)
        shape = (self.n, self.robot.tree.nv)
        if array.shape not in (shape, shape[1:]):
            raise ShapeError(f"qd has shape {array.shape}, expected {shape[1:]} or {shape}")
        array = np.broadcast_to(array, shape)
        _check_size(array, "qd", self.robot.tree.velocity_names)
        return array

    def _rows(self, which: Sequence[int] | npt.NDArray[Any] | None) -> npt.NDArray[np.intp]:
        if which is None:
            return np.arange(self.n)
        given = np.asarray(which)
        if given.dtype == np.bool_ and given.shape == (self.n,):
            return np.flatnonzero(given)
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise ShapeError(
                f"which has type {given.dtype} and shape {given.shape} (expected: numbers of "
                f"robots, or a mask of shape ({self.n},))"
            )
        wrong = given[(given < 0) | (given >= self.n)]
        if wrong.size:
            raise ShapeError(f"there is no robot {wrong[0]} (expected: 0 to {self.n - 1})")
        return given.astype(np.intp)


def _check_size(values: Array, what: str, names: Sequence[str]) -> None:
    """Refuse coordinates or velocities (n, k) that are not finite or too large for MuJoCo."""
    wrong = ~(np.abs(values) <= mujoco.mjMAXVAL)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ShapeError(
            f"robot {i}: {what} of '{names[j]}' is {values[i, j]:g} (expected: at most "
            f"{mujoco.mjMAXVAL:g})"
        )


class _Compiled:
    """Robots of `BatchSteps`."""

    def __init__(self, batch: Batch) -> None:
        self._steps = steps = BatchSteps(batch.robot, batch.n, dt=batch.dt, threads=batch.threads)
        muscles = len(batch.robot.muscles)
        self._masses = batch.errors.mass_factors(batch.n)
        steps.inputs["arm_factor"][:] = batch.errors.arm_factors(batch.n, muscles)
        self._told = np.zeros(batch.n, dtype=np.bool_)
        self._dt = batch.dt

    def reset(self, rows: npt.NDArray[np.intp], start: Array, rates: Array) -> None:
        steps, inputs = self._steps, self._steps.inputs
        inputs["q"][rows], inputs["qd"][rows] = start[rows], rates[rows]
        inputs["mass_factor"][rows, 0] = self._masses[rows]
        inputs["tension"][rows] = inputs["least"][rows]
        for name in ("rest_length", "rest_rate", "stiffness", "damping"):
            inputs[name][rows] = 0.0
        inputs["floor"][rows] = inputs["least"][rows]
        steps.alive[rows], steps.taken[rows], steps.tensions[rows] = 1, 0, 0.0

    def scale_masses(self, factors: Array) -> None:
        self._steps.inputs["mass_factor"][:, 0] = self._masses * factors

    def command(self, kind: str, names: list[str], arrays: dict[str, Array]) -> None:
        steps, inputs = self._steps, self._steps.inputs
        order = [muscle.name for muscle in steps.robot.muscles]
        told = [order.index(name) for name in names]
        low, high = inputs["least"][:, told], inputs["most"][:, told]
        values = arrays["values"]
        if kind == "force":
            wrong = (values < low) | (values > high)
            if wrong.any():
                i, j = np.argwhere(wrong)[0]
                raise CardsError(
                    f"robot {i}: tension of muscle '{names[j]}' is {values[i, j]:g} N (expected: "
                    f"{low[i, j]:g} to {high[i, j]:g})"
                )
        law = kind == "impedance"
        inputs["tension"][:, told] = values
        inputs["rest_length"][:, told] = arrays["rest_lengths"] if law else 0.0
        inputs["rest_rate"][:, told] = arrays["rest_rates"] if law else 0.0
        for name in ("stiffness", "damping"):
            inputs[name][:, told] = steps.gains[name][told] if law else 0.0
        inputs["floor"][:, told] = steps.gains["floor"][told] if law else low

    def advance(self, count: int) -> None:
        self._steps.advance(count)

    def state(self) -> dict[str, Any]:
        steps = self._steps
        seen = steps.look()
        return {
            "time": steps.taken * self._dt,
            "q": steps.inputs["q"].copy(),
            "qd": steps.inputs["qd"].copy(),
            "muscle_lengths": seen["lengths"].copy(),
            "muscle_rates": seen["rates"].copy(),
            "tensions": steps.tensions.copy(),
            "diverged": steps.alive == 0,
        }


class _Hosts:
    """Robots of the embedded simulator, each in a world of its own."""

    def __init__(
        self,
        batch: Batch,
        terrain: str | None,
        world: AnyWorld | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        errors, n = batch.errors, batch.n
        values = shipped_parameters(batch.robot, "simulator")
        values |= {"dt": batch.dt, "command_timeout": HELD}
        if terrain is not None:
            values["terrain"] = terrain
        around = None if world is None else described_world(world)
        masses = errors.mass_factors(n)
        self._hosts: list[SimulatorHost] = []
        for i in range(n):
            robot = batch.robot
            if errors.mass or errors.moment_arm or errors.attachment:
                robot = perturbed(
                    robot,
                    mass_factor=float(masses[i]),
                    attachment_offset=errors.attachment,
                    moment_arm_error=errors.moment_arm,
                    seed=int(np.random.SeedSequence([errors.seed, 3, i]).generate_state(1)[0]),
                )
            self._hosts.append(build_host(ParameterSet(values, "simulator"), robot, around))
            if progress is not None:
                progress(i + 1, n)
        self._diverged = np.zeros(n, dtype=np.bool_)
        self._pool = ThreadPoolExecutor(batch.threads) if batch.threads > 1 and n > 1 else None
        self._threads = batch.threads

    def reset(self, rows: npt.NDArray[np.intp], start: Array, rates: Array) -> None:
        for i in rows:
            self._hosts[i].simulator.begin_at(start[i], rates[i])
            self._hosts[i].reset()
        self._diverged[rows] = False

    def command(self, kind: CommandKind, names: list[str], arrays: dict[str, Array]) -> None:
        for i, host in enumerate(self._hosts):
            part = CommandPart(kind, names, **{name: row[i] for name, row in arrays.items()})
            try:
                host.submit((part,))
            except CardsError as error:
                raise CardsError(f"robot {i}: {error}") from None

    def advance(self, count: int) -> None:
        together: list[tuple[int, SeveralSteps]] = []
        for i, host in enumerate(self._hosts):
            if self._diverged[i]:
                continue
            with self._watched(i):
                native = host.begin_steps(count)
                if native is None:
                    host.steps(count)
                else:
                    together.append((i, native))
        begun = advance_all([one for _, one in together], count, self._pool, self._threads)
        for (i, native), steps in zip(together, begun, strict=True):
            with self._watched(i):
                self._hosts[i].end_steps(native, int(steps), count)

    @contextmanager
    def _watched(self, i: int) -> Iterator[None]:
        try:
            yield
        except SimulationStoppedError:
            self._diverged[i] = True

    def state(self) -> dict[str, Any]:
        for host in self._hosts:
            host.read()
        states = [host.state for host in self._hosts]
        names = ("q", "qd", "muscle_lengths", "muscle_rates", "tensions")
        return {
            "time": np.array([state.time for state in states]),
            **{name: np.array([getattr(state, name) for state in states]) for name in names},
            "diverged": self._diverged.copy(),
        }
