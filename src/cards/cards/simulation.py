"""Simulated robots, their controllers, and runs of both."""

from __future__ import annotations

import inspect
import math
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np

from cards.models import Coordinates, coordinates
from cards.robots import AnyRobot, check_robot
from cards.run_log import RodRunLog, RunLog
from cards_core.checks import check_choice, check_count, check_kind, finite_number, shown
from cards_core.control.registry import suited_controllers
from cards_core.errors import CardsError, ParameterError
from cards_core.formats.locate import shipped_parameters
from cards_core.formats.sdf.world import AnyWorld, described_world
from cards_core.loop.closed_loop import REPORT_PERIOD, check_models, run_closed_loops
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.pacing import Pacer
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.stamps import LONGEST_RUN
from cards_core.trajectories import Reference
from cards_core.typing import Array
from cards_rods.rod_simulation import LOG_NAME, RodSimulation
from cards_rods.run_folder import load_log
from cards_rods.summary import RodRun
from cards_sim.build import build_host, build_world_host
from cards_sim.free_bodies import Integration
from cards_sim.host import SimulatorHost, WorldHost


def muscle_simulator(
    robot: Robot,
    dt: float | None = None,
    *,
    q: Coordinates | None = None,
    world: AnyWorld | None = None,
    ground: float | None = None,
    terrain: str | None = None,
    command_timeout: float | None = None,
    decay_time: float | None = None,
    integrator: Integration | None = None,
) -> SimulatorHost:
    """Return a simulated robot with muscles: MuJoCo moves the links, the muscles pull them.

    Step it by hand, or with a controller by `simulate`:

        sim.submit(controller.step(sim.state))
        sim.step()

    Args:
        robot: A robot with muscles.
        dt: Time step, [s].
        q: Joint coordinates at time zero, shape (nq,); or by joint name, the others at home; home
            if None.
        world: What else there is: name of a file in ``worlds/``, path of an SDF, or a
            `cards_core.robot.world.World`, without robots of its own. ``sim.simulator.world`` has
            its objects, contacts and grasps.
        ground: Height of a ground plane, [m]; none if None.
        terrain: What the robot stands on, e.g. ``hills:amplitude=0.02``
            (`cards_core.robot.terrain`).
        command_timeout: Time without a command after which tensions go to their least, [s].
        decay_time: How long they take, [s].
        integrator: MuJoCo's ``Euler``, ``implicit`` or ``implicitfast``, or ``midpoint``: Euler
            with free bodies that keep momentum and energy as they tumble
            (`cards_sim.free_bodies`).

    What is None is as in ``config/`` for a shipped robot, else 1 ms, 0.1 s and 0 s.

    Raises:
        CardsError: The robot cannot be simulated; the message says why.
    """
    given = {
        "dt": dt,
        "initial_positions": None if q is None else coordinates(robot, q).tolist(),
        "ground": None if ground is None else True,
        "ground_height": ground,
        "terrain": terrain,
        "command_timeout": command_timeout,
        "decay_time": decay_time,
        "integrator": integrator,
    }
    chosen = shipped_parameters(robot, "simulator")
    chosen |= {name: value for name, value in given.items() if value is not None}
    return build_host(
        ParameterSet(chosen, "simulator"), robot, None if world is None else described_world(world)
    )


def World(
    world: AnyWorld,
    dt: float = 1e-3,
    *,
    q: Mapping[str, Array | Sequence[float]] | None = None,
    command_timeout: float = 0.1,
    decay_time: float = 0.0,
) -> WorldHost:
    """Return a simulated world that has robots of its own, which step together.

        world = cards.World("two_arms")
        for name, robot in world.robots.items():
            robot.submit(controllers[name].step(robot.state))
        world.step()

    Args:
        world: Name of a file in ``worlds/``, path of an SDF, or a `cards_core.robot.world.World`.
        dt: Time step, [s].
        q: Joint coordinates at time zero by the robots' names; home for the others.
        command_timeout: Time without a command after which tensions go to their least, [s].
        decay_time: How long they take, [s].

    Raises:
        CardsError: The world cannot be simulated, or has no robot; the message says why.
    """
    if q is not None:
        check_kind(q, Mapping, "q of the world", "coordinates by the robots' names")
    places = {name: np.asarray(values, dtype=float) for name, values in (q or {}).items()}
    return build_world_host(
        described_world(world),
        dt,
        initial_positions=places,
        command_timeout=command_timeout,
        decay_time=decay_time,
    )


class RodSimulator(RodSimulation):
    """A robot of rods under command: each step goes from equilibrium to equilibrium.

        sim.command_joints((), q)        # or command_pose, set_wrench
        result = sim.step(time)

    `simulate` lets it go through its demo motion, unless it was commanded before.

    Args:
        robot: A robot of rods.
        dt: Time between two steps, [s].
        substeps: Most solves per step.

    Attributes:
        dt: As given.
        time: Of the last step of `simulate`, [s]; 0 before the first.

    Raises:
        CardsError: The time step is no time, or the substeps no number from 1 on; or no
            equilibrium was found to start from.
    """

    def __init__(self, robot: RodRobot, dt: float = 0.01, *, substeps: int = 8) -> None:
        check_kind(dt, (int, float, np.number), "dt [s]", "a number")
        self.dt = finite_number(dt, "dt [s]", at_least=1e-6, at_most=LONGEST_RUN)
        check_count(substeps, "substeps")
        super().__init__(robot, substeps=substeps)
        self.time = 0.0

    def reset(self) -> None:
        """Go back to time zero and to the first equilibrium; forget all commands."""
        self.home()
        self.steps, self.time = 0, 0.0


AnySimulator: TypeAlias = SimulatorHost | RodSimulator


def Simulator(robot: AnyRobot, dt: float | None = None, **options: Any) -> AnySimulator:
    """Return a simulated robot.

    Args:
        robot: A robot of `cards.load`.
        dt: Time step, [s]; 1 ms for muscles and 10 ms for rods if None.
        **options: As of `muscle_simulator` or `RodSimulator`.

    Raises:
        CardsError: The robot cannot be simulated; the message says why.
    """
    check_robot(robot)
    kind: Any = RodSimulator if isinstance(robot, RodRobot) else muscle_simulator
    known = [name for name in inspect.signature(kind).parameters if name not in ("robot", "dt")]
    for name in options:
        check_choice(name, f"option of {kind.__name__}", known)
    if dt is not None:
        options["dt"] = dt
    made: AnySimulator = kind(robot, **options)
    return made


def Controller(
    kind: str,
    robot: Robot,
    reference: str | Reference | None = None,
    *,
    reference_file: str = "",
    **parameters: Any,
) -> ControlLoop:
    """Return a controller of a robot with what it tracks.

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
    check_robot(robot)
    if not isinstance(robot, Robot):
        raise CardsError(
            f"{robot.name} is a robot of rods, which has no controllers (expected: "
            "cards.simulate(sim, duration=...), or commands of cards.Simulator(robot): "
            "command_joints, command_pose)"
        )
    check_kind(kind, str, "the kind of the controller", "one of cards.controllers(robot)")
    for name in parameters:
        if name in OF_THE_NODE:
            raise ParameterError(
                f"parameter '{name}' is one of the node of {kind}, which has topics and time of "
                "its own (expected: a parameter of the controller or its reference)"
            )
    if reference_file and not isinstance(reference, str):
        raise ParameterError(
            f"reference_file is {shown(reference_file)}, but no name of a reference in it is given"
        )
    named, made = (reference, None) if isinstance(reference, str) else ("", reference)
    given = shipped_parameters(robot, kind) | parameters
    given |= {"reference": named, "reference_file": reference_file, "log_dir": ""}
    return make_control_loop(kind, ParameterSet(given, kind), robot, made)


OF_THE_NODE = (
    "model",
    "log_dir",
    "autostart",
    "accept_other_model",
    "state_rate",
    "state_timeout",
    "reference_speed",
)
"""Parameters of a controller's node that mean nothing to a controller in Python: it is given its
robot, whoever steps it logs, and there are no topics."""


def controllers(robot: AnyRobot) -> list[str]:
    """Return the kinds of controllers that can drive a robot.

    A controller of another package that fails is left out, with a warning.

    Raises:
        CardsError: It is no robot.
    """
    check_robot(robot)
    return suited_controllers(robot) if isinstance(robot, Robot) else []


@overload
def simulate(
    sim: AnySimulator,
    controller: ControlLoop | None = None,
    *,
    duration: float,
    real_time: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> RunLog | RodRunLog: ...


@overload
def simulate(
    sim: WorldHost,
    controller: Mapping[str, ControlLoop] | None = None,
    *,
    duration: float,
    real_time: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> dict[str, RunLog]: ...


def simulate(
    sim: AnySimulator | WorldHost,
    controller: ControlLoop | Mapping[str, ControlLoop] | None = None,
    *,
    duration: float,
    real_time: bool = False,
    on_time: Callable[[float], None] | None = None,
) -> RunLog | RodRunLog | dict[str, RunLog]:
    """Step a simulated robot and its controller for a time; return what happened.

    Args:
        sim: The robot, or a world of several. It is not reset: a second call goes on. Its state
            before the first step is recorded for rods only.
        controller: Answers every state; without one muscles get no command, and rods go
            through their demo motion. At time zero it restarts: its reference begins, and what
            it remembers of an earlier run is forgotten. For a world: controllers by the robots'
            names, and what is returned are runs by these names.
        duration: Time to simulate from now on, [s].
        real_time: Simulate no faster than time passes.
        on_time: Called with the simulated time [s] a few times a second.

    Raises:
        CardsError: The models of both differ, one of them runs already, or the physics diverged;
            the message says why.

    Warns:
        UserWarning: Commands were refused. If they were at least half of them, the verdict of the
            run is failed.
    """
    check_kind(
        sim,
        (SimulatorHost, RodSimulator, WorldHost),
        "the simulator",
        "a simulator: cards.Simulator(robot)",
    )
    check_kind(duration, (int, float, np.number), "duration [s]", "a number")
    if not 0.0 < duration <= LONGEST_RUN:
        raise CardsError(f"duration is {duration} s (expected: 0 < duration <= {LONGEST_RUN:g})")
    if on_time is not None and not callable(on_time):
        raise CardsError(f"on_time is {shown(on_time)} (expected: a function of the time)")
    if isinstance(sim, RodSimulator):
        if controller is not None:
            raise CardsError(f"{sim.robot.name} is a robot of rods, which has no controllers")
        with _alone(sim):
            return _simulate_rods(sim, duration, real_time, on_time)
    expected = "a controller: cards.Controller(kind, robot)"
    if isinstance(sim, WorldHost):
        if isinstance(controller, ControlLoop):
            raise CardsError(
                f"one controller for a world (expected: a controller for each of "
                f"{', '.join(sim.robots)}, by name)"
            )
        given = dict(controller or {})
    else:
        if isinstance(controller, Mapping):
            raise CardsError(f"several controllers for '{sim.robot.name}' alone (expected: one)")
        given = {} if controller is None else {"": controller}
    for each in given.values():
        check_kind(each, ControlLoop, "the controller", expected)
    with _alone(sim, *given.values()):
        runs = _simulate_muscles(sim, given, duration, real_time, on_time)
    return runs if isinstance(sim, WorldHost) else runs[""]


_RUNNING: list[int] = []
_RUNNING_LOCK = threading.Lock()


@contextmanager
def _alone(*things: object) -> Iterator[None]:
    """Lock these simulators and controllers for one run. Raises `CardsError` if one runs."""
    keys = [id(thing) for thing in things if thing is not None]
    with _RUNNING_LOCK:
        if set(keys) & set(_RUNNING):
            raise CardsError(
                "the simulator or the controller is already running (expected: one of its own "
                "for each thread)"
            )
        _RUNNING.extend(keys)
    try:
        yield
    finally:
        with _RUNNING_LOCK:
            for key in keys:
                _RUNNING.remove(key)


def _simulate_muscles(
    stepped: SimulatorHost | WorldHost,
    controllers: Mapping[str, ControlLoop],
    duration: float,
    real_time: bool,
    on_time: Callable[[float], None] | None,
) -> dict[str, RunLog]:
    robots = stepped.robots if isinstance(stepped, WorldHost) else {"": stepped}
    for name, controller in controllers.items():
        check_choice(name, "robot", robots)
        check_models(controller, robots[name], "make both from the same robot")
        if robots[name].stamp == 0 and controller.steps:
            controller.start()
    refused = {name: host.gate.refused for name, host in robots.items()}
    with ExitStack() as stack:
        folders = {
            name: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cards-")))
            for name in robots
        }
        try:
            for name, host in robots.items():
                host.open_log(folders[name] / SIMULATOR_LOG)
            for name, controller in controllers.items():
                controller.open_log(folders[name] / CONTROLLER_LOG)
            pacer = Pacer(stepped.dt) if real_time else None
            pairs = [(host, controllers.get(name)) for name, host in robots.items()]
            end = pairs[0][0].state.time + duration
            wall = run_closed_loops(
                pairs, stepped.step, end, period=stepped.dt, pacer=pacer, on_time=on_time
            )
        finally:
            for host in robots.values():
                host.close()
            for controller in controllers.values():
                controller.close()
        refusals = dict.fromkeys(robots, "")
        for name, host in robots.items():
            if count := host.gate.refused - refused[name]:
                refusals[name] = host.gate.last_refusal or ""
                who = f" of '{name}'" if name else ""
                warnings.warn(
                    f"{count} commands{who} were refused, the last: {refusals[name]}",
                    stacklevel=3,
                )
        return {
            name: RunLog.load(
                folders[name],
                host.robot,
                controller=controllers[name].controller if name in controllers else None,
                mode="paced" if real_time else "lockstep",
                wall_time=wall,
                duration=duration,
                refusal=refusals[name],
            )
            for name, host in robots.items()
        }


def _simulate_rods(
    sim: RodSimulator,
    duration: float,
    real_time: bool,
    on_time: Callable[[float], None] | None,
) -> RodRunLog:
    first = not sim.steps
    if not sim.moving and first:
        sim.play(True)
    begin = told = time.perf_counter()
    # a product of whole numbers of steps does not collect rounding errors as a sum does
    done = sim.time / sim.dt
    done = round(done) if math.isclose(done, round(done), rel_tol=1e-9) else done
    # time zero is a row of its own; a later run begins after the last row
    steps = math.ceil(duration / sim.dt * (1.0 - 1e-9))
    with tempfile.TemporaryDirectory(prefix="cards-") as name:
        sim.open_log(Path(name) / LOG_NAME)
        try:
            for k in range(0 if first else 1, steps + 1):
                sim.time = (done + k) * sim.dt
                sim.step(sim.time)
                now = time.perf_counter()
                if real_time:
                    time.sleep(max(0.0, begin + (k + 1) * sim.dt - now))
                if on_time is not None and now - told > REPORT_PERIOD:
                    told = now
                    on_time(sim.time)
        finally:
            sim.close()
        arrays = load_log(Path(name))
    wall = time.perf_counter() - begin
    return RodRunLog(sim.robot, arrays, RodRun(sim.playing, done * sim.dt + duration), wall)
