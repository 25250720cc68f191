"""Simulated robots, their controllers, and runs of both."""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cards.robots import AnyRobot
from cards.run_log import RodRunLog, RunLog
from cards_core.control.registry import suited_controllers
from cards_core.errors import CardsError, UnknownNameError
from cards_core.loop.closed_loop import REPORT_PERIOD, run_closed_loop
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.model_differences import differences
from cards_core.loop.model_identity import identity_of
from cards_core.loop.pacing import Pacer
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import own_parameters
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.shared_files import shared_folders
from cards_core.stamps import LONGEST_RUN
from cards_core.trajectories import Reference
from cards_core.typing import Array
from cards_rods.run_folder import load_log
from cards_rods.session import LOG_NAME, RodSession
from cards_rods.verdict import RodRun
from cards_sim.host import SimulatorHost
from cards_sim.node_parameters import general_parameters, robot_parameters
from cards_sim.simulator import Simulator as World


class MuscleSimulator(SimulatorHost):
    """A simulated robot with muscles: MuJoCo moves the links, the muscles pull them.

    Step it by hand, or with a controller by `simulate`:

        sim.submit(controller.step(sim.state))
        sim.step()

    Args:
        robot: A robot with muscles.
        dt: Time step, [s].
        q: Joint coordinates at time zero, shape (nq,); home if None.
        ground: Height of a ground plane, [m]; none if None.
        command_timeout: Time without a command after which tensions go to their least, [s].
        decay_time: How long they take, [s].

    What is None is as in ``config/`` for a shipped robot, else 1 ms, 0.1 s and 0 s.

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
        dt: float | None = None,
        *,
        q: Array | Sequence[float] | None = None,
        ground: float | None = None,
        command_timeout: float | None = None,
        decay_time: float | None = None,
    ) -> None:
        given = {
            "dt": dt,
            "initial_positions": None if q is None else np.asarray(q, dtype=float).tolist(),
            "command_timeout": command_timeout,
            "decay_time": decay_time,
        }
        chosen = configured(robot, "simulator")
        chosen |= {name: value for name, value in given.items() if value is not None}
        value = ParameterSet(chosen, "simulator")
        value.declare(general_parameters())
        value.declare(robot_parameters(robot.tree))
        super().__init__(
            World(robot, value["dt"], ground=ground),
            command_timeout=value["command_timeout"],
            decay_time=value["decay_time"],
            initial_positions=value["initial_positions"],
        )


class RodSimulator(RodSession):
    """A robot of rods under command: each step goes from equilibrium to equilibrium.

        sim.command_joints((), q)        # or command_pose, set_wrench
        result = sim.step(time)

    `simulate` lets it go through its demo motion, unless it was commanded before.

    Args:
        robot: A robot of rods.
        dt: Time between two steps, [s].
        substeps: Most solves per step.

    Raises:
        CardsError: No equilibrium was found to start from.
    """

    def __init__(self, robot: RodRobot, dt: float = 0.01, *, substeps: int = 8) -> None:
        super().__init__(robot, substeps=substeps)
        self.dt = dt
        self.time = 0.0


AnySimulator: TypeAlias = MuscleSimulator | RodSimulator


def Simulator(robot: AnyRobot, dt: float | None = None, **options: Any) -> AnySimulator:
    """Return a simulated robot.

    Args:
        robot: A robot of `cards.load`.
        dt: Time step, [s]; 1 ms for muscles and 10 ms for rods if None.
        **options: As of `MuscleSimulator` or `RodSimulator`.

    Raises:
        CardsError: The robot cannot be simulated; the message says why.
    """
    kind: Any = RodSimulator if isinstance(robot, RodRobot) else MuscleSimulator
    known = [name for name in inspect.signature(kind).parameters if name not in ("robot", "dt")]
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of {kind.__name__}", name, known)
    if dt is not None:
        options["dt"] = dt
    made: AnySimulator = kind(robot, **options)
    return made


class Controller(ControlLoop):
    """A controller of a robot with what it tracks.

    Args:
        kind: Of `controllers`.
        robot: The robot, with all of its muscles: which of them it commands is its own business.
        reference: What to track: a `cards_core.trajectories.Reference`, or its name in the
            robot's trajectory file; None holds the place of the first step.
        reference_file: Trajectory file, or the name of one; the robot's own if None.
        **parameters: As of the node of this kind, see docs/ros_interface.md. Those that are not
            given are as in ``config/`` for a shipped robot, else the defaults.

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
        if not isinstance(robot, Robot):
            raise CardsError(
                f"{robot.name} is a robot of rods, which has no controllers (expected: "
                "cards.simulate(sim, duration=...), or commands of cards.Simulator(robot): "
                "command_joints, command_pose)"
            )
        named = reference if isinstance(reference, str) else ""
        given = configured(robot, kind) | parameters
        given |= {"reference": named, "reference_file": reference_file, "log_dir": ""}
        made = make_control_loop(kind, ParameterSet(given, kind), robot)
        super().__init__(
            made.controller,
            made.reference if isinstance(reference, str) else reference,
            approach_speed=made.approach_speed,
            robot=robot,
        )


def configured(robot: Robot, node: str) -> dict[str, Any]:
    """Return the parameters that the shipped configuration has for a node of a shipped robot.

    Args:
        robot: The robot; one that was read from elsewhere has none.
        node: Name of the node, e.g. ``simulator`` or the kind of a controller.
    """
    for folder in shared_folders():
        file = folder / "config" / f"{robot.name}.yaml"
        models = (folder / "models").resolve()
        if file.is_file() and robot.source and models in Path(robot.source).resolve().parents:
            return own_parameters(file, node)
    return {}


def controllers(robot: AnyRobot) -> list[str]:
    """Return the kinds of controllers that can drive a robot."""
    return suited_controllers(robot) if isinstance(robot, Robot) else []


def simulate(
    sim: AnySimulator,
    controller: ControlLoop | None = None,
    *,
    duration: float,
    real_time: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> RunLog | RodRunLog:
    """Step a simulated robot and its controller for a time; return what happened.

    Args:
        sim: The robot. It is not reset: a second call goes on.
        controller: Answers every state; without one muscles are told nothing, and rods go
            through their demo motion.
        duration: Time to simulate from now on, [s].
        real_time: Simulate no faster than time passes.
        on_time: Called with the simulated time [s] a few times a second.

    Raises:
        CardsError: The models of both differ, or the physics diverged; the message says why.
    """
    if not 0.0 < duration <= LONGEST_RUN:
        raise CardsError(f"duration is {duration} s (expected: 0 < duration <= {LONGEST_RUN:g})")
    if isinstance(sim, RodSimulator):
        if controller is not None:
            raise CardsError(f"{sim.robot.name} is a robot of rods, which has no controllers")
        return _simulate_rods(sim, duration, real_time, on_time)
    return _simulate_muscles(sim, controller, duration, real_time, on_time)


def _simulate_muscles(
    sim: MuscleSimulator,
    controller: ControlLoop | None,
    duration: float,
    real_time: bool,
    on_time: Callable[[float], None] | None,
) -> RunLog:
    if controller is not None and controller.robot is not sim.robot:
        found = differences(identity_of(controller.robot), identity_of(sim.robot))
        if found:
            raise CardsError(
                "controller (here) and simulator (there) have different models: "
                + "; ".join(found)
            )
    with tempfile.TemporaryDirectory(prefix="cards-") as name:
        folder = Path(name)
        sim.open_log(folder / "simulator.npz")
        try:
            if controller is not None:
                controller.open_log(folder / "controller.npz")
            pacer = Pacer(sim.dt) if real_time else None
            end = sim.state.time + duration
            wall = run_closed_loop(sim, controller, end, pacer=pacer, on_time=on_time)
        finally:
            sim.close()
            if controller is not None:
                controller.close()
        return RunLog.load(
            folder,
            sim.robot,
            controller=None if controller is None else controller.controller,
            mode="realtime" if real_time else "lockstep",
            wall_time=wall,
            duration=duration,
        )


def _simulate_rods(
    sim: RodSimulator,
    duration: float,
    real_time: bool,
    on_time: Callable[[float], None] | None,
) -> RodRunLog:
    if not sim.moving and not sim.steps:
        sim.play(True)
    begin = shown = time.perf_counter()
    start, steps = sim.time, round(duration / sim.dt)
    with tempfile.TemporaryDirectory(prefix="cards-") as name:
        sim.open_log(Path(name) / LOG_NAME)
        try:
            for k in range(steps + 1):
                sim.time = start + k * sim.dt
                sim.step(sim.time)
                now = time.perf_counter()
                if real_time:
                    time.sleep(max(0.0, begin + (k + 1) * sim.dt - now))
                if on_time is not None and now - shown > REPORT_PERIOD:
                    shown = now
                    on_time(sim.time)
        finally:
            sim.close()
        arrays = load_log(Path(name))
    wall = time.perf_counter() - begin
    return RodRunLog(sim.robot, arrays, RodRun(sim.playing, start + duration), wall)
