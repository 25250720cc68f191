"""From parameters to simulated robots; the node and the runner without ROS build them here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.loop.run_log import SIMULATOR_LOG
from cards_core.parameters.declaration import ParameterStore
from cards_core.robot.model import Robot
from cards_core.robot.world import World
from cards_core.typing import Array
from cards_sim.host import SimulatorHost, WorldHost
from cards_sim.node_parameters import general_parameters, robot_parameters
from cards_sim.simulator import Simulator, robots_within
from cards_sim.world_simulator import WorldSimulator


def build_host(
    parameters: ParameterStore, robot: Robot | None = None, world: World | None = None
) -> SimulatorHost:
    """Declare all parameters of the simulator and build world, command gate and log.

    Args:
        parameters: Where the values come from.
        robot: Replaces the parameter ``model``, for tests.
        world: Replaces the parameter ``world``.

    Raises:
        CardsError: A parameter or the model is not usable; the message says why.
    """
    parameters.declare(general_parameters())
    robot = robot or load(parameters["model"])
    own = robot_parameters(robot)
    parameters.declare(own)
    parameters.refuse_others()
    if world is None and parameters["world"]:
        world = load_world(parameters["world"])
    if world is not None and world.driven:
        names = ", ".join(model.name for model in world.driven)
        raise CardsError(
            f"world '{world.name}' has robots of its own: {names} (expected: a world of objects, "
            "or cards.World in Python)"
        )
    ground = parameters["ground_height"] if parameters["ground"] else None
    log_dir: str = parameters["log_dir"]
    host = SimulatorHost(
        Simulator(robot, parameters["dt"], world=world, ground=ground),
        command_timeout=parameters["command_timeout"],
        decay_time=parameters["decay_time"],
        initial_positions=parameters["initial_positions"],
        log_path=Path(log_dir) / SIMULATOR_LOG if log_dir else None,
    )
    host.change({spec.name: parameters[spec.name] for spec in own})
    return host


def build_world_host(
    world: World,
    dt: float = 1e-3,
    *,
    initial_positions: Mapping[str, Array] | None = None,
    command_timeout: float = 0.1,
    decay_time: float = 0.0,
) -> WorldHost:
    """Return the robots of a world as hosts that step together.

    Args:
        world: With robots.
        dt: Time step, [s].
        initial_positions: Joint coordinates at time zero by the robots' names, shape (nq,) each;
            the others are at home.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].

    Raises:
        CardsError: A robot cannot be simulated, or there is none; the message says why.
    """
    given = dict(initial_positions or {})
    for name in given:
        world.model(name)
    simulator = WorldSimulator(world, dt)
    robots = robots_within(simulator)
    hosts = {
        name: SimulatorHost(
            robot,
            command_timeout=command_timeout,
            decay_time=decay_time,
            initial_positions=given.get(name),
        )
        for name, robot in robots.items()
    }
    return WorldHost(simulator, hosts)
