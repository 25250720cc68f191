"""The embedded simulator as a host: a world, a command gate and a log.

The node puts topics around `SimulatorHost`; a runner without ROS calls it directly. Both
therefore do the same arithmetic, and a closed loop gives the same trajectory to the last bit.
"""

from __future__ import annotations

from pathlib import Path

from cards_core.loop.host import SteppedHost
from cards_core.robot.state import RobotState
from cards_core.stamps import nanoseconds, seconds
from cards_core.typing import Array
from cards_sim.simulator import Simulator


class SimulatorHost(SteppedHost):
    """A simulated robot that takes commands by name.

    Args:
        simulator: The world.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].
        initial_positions: Joint coordinates at time zero, shape (nq,); home if None.
        log_path: ``.npz`` to write with one row per step; none if None. A reset
            begins its next part.

    Attributes:
        simulator: The world.
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
        self._initial = initial_positions
        self.reset()

    @property
    def stamp(self) -> int:
        """Time of the present state, [ns]."""
        return self._stamp

    @property
    def state(self) -> RobotState:
        """The present state; its arrays are not changed afterwards."""
        return self._state

    def reset(self) -> None:
        """Go back to time zero, forget all commands, release the emergency stop."""
        self.simulator.reset(self._initial)
        super().reset()
        self._read()

    def advance(self) -> None:
        """Advance by one step with what the command gate says.

        Raises:
            SimulationStoppedError: The physics diverged; `state` is the last good one.
        """
        values = self.gate.values(seconds(self._stamp))
        self.simulator.step(values, self.gate.kinds)
        self._read()

    def _read(self) -> None:
        self._state = self.simulator.state
        self._stamp = nanoseconds(self._state.time)
        self._state.time = seconds(self._stamp)
