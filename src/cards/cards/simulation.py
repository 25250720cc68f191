"""Simulated robots, their controllers, and runs of both."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cards.run_log import RunLog
from cards_core.control.registry import suited_controllers
from cards_core.errors import CardsError
from cards_core.loop.closed_loop import run_closed_loop
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.host import SteppedHost
from cards_core.loop.model_differences import differences
from cards_core.loop.model_identity import identity_of
from cards_core.loop.pacing import Pacer
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.model import Robot
from cards_core.trajectories import Reference
from cards_core.typing import Array
from cards_sim.host import SimulatorHost
from cards_sim.simulator import Simulator as World


class Simulator(SimulatorHost):
    """A simulated robot: MuJoCo moves the links, the muscles pull them.

    Step it by hand, or with a controller by `simulate`:

        sim.submit(controller.step(sim.state))
        sim.step()

    Args:
        robot: A robot with muscles.
        dt: Time step, [s].
        q: Joint coordinates at time zero, shape (nq,); home if None.
        ground: Height of a ground plane, [m]; none if None.
        command_timeout: Time without a command after which tensions go to their least, [s].

    Attributes:
        robot, dt: As given.
        state: The present `cards_core.robot.state.RobotState`.
        gate: What commands have to pass: limits, watchdog, emergency stop.
        simulator: The world, for pushes (`apply_wrench`), link poses, and MuJoCo's own objects.

    Raises:
        CardsError: The robot cannot be simulated; the message says why.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float = 1e-3,
        *,
        q: Array | None = None,
        ground: float | None = None,
        command_timeout: float = 0.1,
    ) -> None:
        if not isinstance(robot, Robot):
            raise CardsError(
                f"{getattr(robot, 'name', robot)!s} is no robot with muscles (expected: for "
                "robots of rods, cards.compile(robot), which solves for their equilibrium)"
            )
        super().__init__(
            World(robot, dt, ground=ground), command_timeout=command_timeout, initial_positions=q
        )


class Controller(ControlLoop):
    """A controller of a robot with what it tracks.

    Args:
        kind: Of `controllers`.
        robot: The robot, with all of its muscles: which of them it commands is its own business.
        reference: What to track: a `cards_core.trajectories.Reference`, or its name in the
            robot's trajectory file; None holds the place of the first step.
        reference_file: Trajectory file, or the name of one; the robot's own if None.
        **parameters: As of the node of this kind, see docs/ros_interface.md.

    Raises:
        CardsError: No such controller or reference, or a parameter does not fit; the message
            says what would be right.
    """

    def __init__(
        self,
        kind: str,
        robot: Robot,
        reference: str | Reference | None = None,
        *,
        reference_file: str = "",
        **parameters: Any,
    ) -> None:
        named = reference if isinstance(reference, str) else ""
        given = {**parameters, "reference": named, "reference_file": reference_file}
        made = make_control_loop(kind, ParameterSet(given, kind), robot)
        super().__init__(
            made.controller,
            made.reference if isinstance(reference, str) else reference,
            approach_speed=made.approach_speed,
            robot=robot,
        )


def controllers(robot: Robot) -> list[str]:
    """Return the kinds of controllers that can drive a robot."""
    return suited_controllers(robot)


def simulate(
    sim: SteppedHost,
    controller: ControlLoop | None = None,
    *,
    duration: float,
    real_time: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> RunLog:
    """Step a simulated robot and its controller until a time; return what happened.

    Args:
        sim: The robot. It is not reset: a second call goes on.
        controller: Answers every state; without one the muscles are told nothing.
        duration: Time to simulate from now on, [s].
        real_time: Simulate no faster than time passes.
        on_time: Called with the simulated time [s] a few times a second.

    Raises:
        CardsError: The models of both differ, or the physics diverged; the message says why.
    """
    if not duration > 0.0:
        raise CardsError(f"duration is {duration} s (expected: a time > 0)")
    if controller is not None:
        found = differences(identity_of(controller.robot), identity_of(sim.robot))
        if found:
            raise CardsError(
                f"controller (here) and simulator (there) have different models: "
                f"{'; '.join(found)}"
            )
    with tempfile.TemporaryDirectory(prefix="cards-") as folder:
        sim.open_log(Path(folder) / "simulator.npz")
        try:
            if controller is not None:
                controller.open_log(Path(folder) / "controller.npz")
            pacer = Pacer(sim.dt) if real_time else None
            end = sim.state.time + duration
            wall = run_closed_loop(sim, controller, end, pacer=pacer, on_time=on_time)
        finally:
            sim.close()
            if controller is not None:
                controller.close()
        return RunLog.load(
            Path(folder),
            sim.robot,
            controller=None if controller is None else controller.controller,
            wall_time=wall,
            duration=duration,
            mode="realtime" if real_time else "lockstep",
        )
