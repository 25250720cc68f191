"""Robots of the embedded simulator as hosts: a command gate and a log each.

The node puts topics around `SimulatorHost`; a runner without ROS calls it directly. Both
therefore do the same arithmetic, and a closed loop gives the same trajectory to the last bit.

Several robots of one world share its time: each is a `SimulatorHost`, a `WorldHost` steps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError
from cards_core.loop.host import SteppedHost
from cards_core.robot.state import RobotState
from cards_core.stamps import nanoseconds, seconds
from cards_core.typing import Array
from cards_sim.errors import SimulationStoppedError
from cards_sim.simulator import Simulator
from cards_sim.world_simulator import SeveralSteps, WorldSimulator, WorldState


class SimulatorHost(SteppedHost):
    """A simulated robot that takes commands by name.

    Args:
        simulator: The robot in its world.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].
        initial_positions: Joint coordinates at time zero, shape (nq,); home if None.
        log_path: ``.npz`` to write with one row per step; none if None. A reset
            begins its next part.

    Attributes:
        simulator: The robot in its world.
        dt: Its time step, [s].

    Raises:
        ShapeError: Wrong number of initial positions.
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        simulator: Simulator,
        *,
        command_timeout: float,
        decay_time: float = 0.0,
        initial_positions: Array | None = None,
        log_path: str | Path | None = None,
    ) -> None:
        super().__init__(
            simulator.robot,
            simulator.muscles.state_names,
            command_timeout=command_timeout,
            decay_time=decay_time,
            log_path=log_path,
        )
        self.simulator = simulator
        self.dt = simulator.dt
        simulator.begin_at(initial_positions)
        simulator.world.reset()
        self.begin()

    @property
    def stamp(self) -> int:
        """Time of the present state, [ns]."""
        return self._stamp

    @property
    def _present(self) -> RobotState:
        return self._state

    def reset(self) -> None:
        """Go back to time zero, forget all commands, release the emergency stop.

        Raises:
            CardsError: The world has other robots, which `WorldHost.reset` resets with this one.
        """
        self._check_alone("reset")
        self.simulator.world.reset()
        self.begin()

    def begin(self) -> None:
        """Start again in a world that was put back to time zero."""
        super().reset()
        self.read()

    def advance(self) -> None:
        """Advance by one step with what the command gate says.

        Raises:
            SimulationStoppedError: The physics diverged; `state` is the last good one.
            CardsError: The world has other robots, which `WorldHost.advance` steps with this one.
        """
        self._check_alone("advance")
        self.tell()
        self.simulator.world.step()
        self.read()

    def steps(self, count: int, rows: Array | None = None) -> None:
        """Advance by some steps; those in which nothing but physics happens are taken natively.

        Args:
            count: >= 0.
            rows: Takes what every step led to, shape (count, `Simulator.row_size`); the parts of
                a row are those of `Simulator.row_parts`.

        Raises:
            SimulationStoppedError: The physics diverged; `state` is the last good one.
            CardsError: As `advance`.
        """
        self._check_alone("steps")
        taken = 0
        while taken < count:
            begin, log = self.simulator.steps, self.log
            steady = min(count - taken, self.gate.steady(self.now, self.dt))
            if steady < 2:
                self.step()
                taken += 1
                self._write_row(rows, taken)
                continue
            self.tell()
            passed = None
            if rows is not None:
                passed = rows[taken : taken + steady - 1]
            elif log is not None:
                passed = np.empty((steady - 1, self.simulator.row_size))
            try:
                done = self.simulator.world.advance(steady, passed)
            except SimulationStoppedError:
                self._record_rows(begin, passed, self.simulator.steps - begin)
                self.read()
                raise
            taken += done
            self._record_rows(begin, passed, done - 1)
            self.read()
            self.record()
            self._write_row(rows, taken)

    def _write_row(self, rows: Array | None, taken: int) -> None:
        """Write the present state as the row of the last of the steps taken."""
        if rows is not None:
            rows[taken - 1] = state_row(self._state)

    def begin_steps(self, count: int) -> SeveralSteps | None:
        """Prepare some steps that are to be taken together with those of other robots.

        Contacts of the last one will not be known.

        Returns:
            What takes them (`cards_sim.native_steps.advance_all`); `end_steps` must follow. None
            where they have something else to do: then `steps` takes them.

        Raises:
            SimulationStoppedError: The physics has diverged.
            CardsError: As `advance`.
        """
        self._check_alone("begin_steps")
        if self.log is not None or self.gate.steady(self.now, self.dt) < count:
            return None
        self.tell()
        native = self.simulator.world.native_steps(count)
        if native is not None:
            native.prepare(whole=True)
        return native

    def end_steps(self, native: SeveralSteps, begun: int, count: int) -> None:
        """Take over what some steps led to; `state` is the one before until `read`.

        Args:
            native: What took them.
            begun: How many were begun.
            count: How many were asked for; the others are taken here.

        Raises:
            SimulationStoppedError: The physics diverged; `state` is the last good one.
        """
        native.close(begun)
        try:
            taken = self.simulator.world.end_steps(begun, count, whole=True)
        except SimulationStoppedError:
            self.read()
            raise
        self._stamp = nanoseconds(self.simulator.time)
        self.steps(count - taken)

    def _record_rows(self, begin: int, rows: Array | None, count: int) -> None:
        """Log what the first steps led to, of which no state was made."""
        log = self.log
        if log is None or rows is None:
            return
        tail, ends = self._log_tail(), np.cumsum(self.simulator.row_parts)[:-1]
        for k, row in enumerate(rows[:count]):
            log.append(
                seconds(nanoseconds((begin + k + 1) * self.dt)),
                *np.split(row, ends),
                self.simulator.efforts,
                *tail,
            )

    def tell(self) -> None:
        """Tell muscles and motors what the command gate says for the present time."""
        values = self.gate.values(seconds(self._stamp))
        self.simulator.tell(values, self.gate.kinds, impedance=self.gate.impedance)

    def read(self) -> None:
        """Take over the state of the world."""
        self._state = self.simulator.state
        self._stamp = nanoseconds(self._state.time)
        self._state.time = seconds(self._stamp)

    def _check_alone(self, what: str) -> None:
        if len(self.simulator.world.pullers) > 1:
            raise CardsError(
                f"'{self.simulator.name}' shares its world with other robots (expected: {what} of "
                "the WorldHost of all)"
            )


class WorldHost:
    """The robots of one world, which step together; each is commanded through its own host.

        for name, host in world.robots.items():
            host.submit(controllers[name].step(host.state))
        world.step()

    Args:
        simulator: The world.
        robots: A host for each of its robots, by name.

    Attributes:
        simulator: The world: objects, contacts, wrenches, grasps.
        robots: As given.
        dt: Time step, [s].

    Raises:
        CardsError: There is no robot, or one is of another world.
    """

    def __init__(self, simulator: WorldSimulator, robots: Mapping[str, SimulatorHost]) -> None:
        if not robots:
            raise CardsError(
                f"world '{simulator.world.name}' has no robot with muscles (expected: "
                "cards.Simulator(robot, world=...), which puts one into it)"
            )
        for name, host in robots.items():
            if host.simulator.world is not simulator:
                raise CardsError(f"'{name}' is a robot of another world")
        self.simulator = simulator
        self.robots = dict(robots)
        self.dt = simulator.dt

    @property
    def stamp(self) -> int:
        """Time of the present states, [ns]."""
        return next(iter(self.robots.values())).stamp

    def advance(self) -> None:
        """Advance by one step with what the command gates of all robots say.

        Raises:
            SimulationStoppedError: The physics diverged; states are the last good ones.
        """
        hosts = self.robots.values()
        for host in hosts:
            host.tell()
        self.simulator.step()
        for host in hosts:
            host.read()

    def step(self) -> None:
        """Advance by one step and log it. Errors as of `advance` and `SimulatorHost.record`."""
        self.advance()
        for host in self.robots.values():
            host.record()

    def reset(self) -> None:
        """Go back to time zero with everything, forget all commands, release emergency stops."""
        self.simulator.reset()
        for host in self.robots.values():
            host.begin()

    def restore(self, state: WorldState) -> None:
        """Go back to time zero in a saved state, else as `reset`.

        Args:
            state: Of `WorldSimulator.save`.

        Raises:
            CardsError: It is of another world; nothing changes.
        """
        self.simulator.restore(state)
        for host in self.robots.values():
            host.begin()

    def estop(self) -> None:
        """Clear all commands, and refuse new ones until the stop is released."""
        for host in self.robots.values():
            host.estop()

    def close(self) -> None:
        """Write the logs. Raises `OSError` if one cannot be written."""
        for host in self.robots.values():
            host.close()


def state_row(state: RobotState) -> Array:
    """Return a state as a row of `SimulatorHost.steps`."""
    parts = (
        state.q,
        state.qd,
        state.measured("muscle_lengths"),
        state.measured("muscle_rates"),
        state.measured("tensions"),
        state.measured("actuators"),
    )
    return np.concatenate(parts)
