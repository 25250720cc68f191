"""From parameters to simulated robots; the node and the runner without ROS build them here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.loop.run_log import SIMULATOR_LOG
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.model import Robot
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_core.robot.world import World
from cards_core.typing import Array
from cards_ros.namespaces import namespaces_in
from cards_sim.host import SimulatorHost, WorldHost
from cards_sim.node_parameters import SEVERAL, general_parameters, robot_parameters
from cards_sim.simulator import Simulator, robots_within
from cards_sim.world_simulator import WorldSimulator


@dataclass(frozen=True)
class PlacedRobot:
    """A robot of a simulation.

    Attributes:
        namespace: Of its topics; empty: that of the simulator's node.
        host: The robot.
        parameters: Its parameters.
    """

    namespace: str
    host: SimulatorHost
    parameters: ParameterStore


@dataclass(frozen=True)
class Simulation:
    """A world and its robots.

    Attributes:
        world: All robots, which step together.
        robots: The same with what belongs to them, in the order of the world.
    """

    world: WorldHost
    robots: tuple[PlacedRobot, ...]


StoreFactory: TypeAlias = Callable[[str, Collection[str]], ParameterStore]
"""Returns the store of a robot with a namespace of its own; told the namespace, and which values
of the simulator's node are passed on to it."""


def build_simulation(
    parameters: ParameterStore, store_of: StoreFactory, robot: Robot | None = None
) -> Simulation:
    """Declare all parameters of the simulator and build the world, or the robot alone.

    A world without robots gets the one of the parameter ``model``; one with robots stays as it
    is.

    Args:
        parameters: Those of the simulator's node, and of the robot without a namespace.
        store_of: Makes the stores of the others.
        robot: Replaces the parameter ``model``, for tests.

    Raises:
        CardsError: A parameter, the world or a robot is not usable; the message says why.
    """
    general = general_parameters()
    parameters.declare(general)
    world = load_world(parameters["world"]) if parameters["world"] else None
    if world is not None and world.driven and parameters["terrain"]:
        raise CardsError(
            f"terrain {parameters['terrain']} for world '{world.name}', which has robots of its "
            "own (expected: a world of objects, or none)"
        )
    if world is None or not world.driven:
        host = _build_alone(parameters, robot, world)
        alone = WorldHost(host.simulator.world, {host.simulator.name: host})
        return Simulation(alone, (PlacedRobot("", host, parameters),))
    spaces = namespaces_in(world)
    simulator = WorldSimulator(world, parameters["dt"], **_physics(parameters))
    shared = [spec for spec in general if spec.name in SEVERAL]
    passed: set[str] = set()
    placed = []
    for name, one in robots_within(simulator).items():
        space, store = spaces[name], parameters
        own = robot_parameters(one.robot)
        if space:
            # lists are of the robot whose node it is, if it is one's
            passable = shared if "" in spaces.values() else [*shared, *own]
            names = {spec.name for spec in passable}
            passed |= names
            store = store_of(space, names)
            store.declare(shared)
        store.declare(own)
        if space:
            store.refuse_others([spec.name for spec in general])
            if store["speed"] != parameters["speed"]:
                raise CardsError(
                    f"speed of {space} is {store['speed']:g}, of the simulator "
                    f"{parameters['speed']:g} (expected: one for all robots of a world)"
                )
        host = _build_host(one, store, own, _log_path(parameters, space))
        placed.append((name, PlacedRobot(space, host, store)))
    parameters.refuse_others(passed)
    hosts = {name: item.host for name, item in placed}
    return Simulation(WorldHost(simulator, hosts), tuple(item for _, item in placed))


def build_host(
    parameters: ParameterStore, robot: Robot | None = None, world: World | None = None
) -> SimulatorHost:
    """Declare all parameters of the simulator and build world, command gate and log of one robot.

    Args:
        parameters: Where the values come from.
        robot: Replaces the parameter ``model``, for tests.
        world: Replaces the parameter ``world``.

    Raises:
        CardsError: A parameter or the model is not usable; the message says why.
    """
    parameters.declare(general_parameters())
    if world is None and parameters["world"]:
        world = load_world(parameters["world"])
    if world is not None:
        check_without_robots(world)
    return _build_alone(parameters, robot, world)


def check_without_robots(world: World) -> None:
    """Raise `CardsError` if a world, which one robot is to be put into, has robots already."""
    if world.driven:
        names = ", ".join(model.name for model in world.driven)
        raise CardsError(
            f"world '{world.name}' has robots of its own: {names} (expected: a world of objects, "
            "or cards.World in Python)"
        )


def _build_alone(
    parameters: ParameterStore, robot: Robot | None, world: World | None
) -> SimulatorHost:
    robot = robot or load(parameters["model"])
    own = robot_parameters(robot)
    parameters.declare(own)
    parameters.refuse_others()
    if parameters["terrain"]:
        if parameters["ground"]:
            raise CardsError(
                f"ground and terrain {parameters['terrain']} (expected: one of them; terrain "
                "flat is a plane)"
            )
        world = on_terrain(read_terrain(parameters["terrain"]), robot, world)
    simulator = Simulator(robot, parameters["dt"], world=world, **_physics(parameters))
    return _build_host(simulator, parameters, own, _log_path(parameters, ""))


def _build_host(
    simulator: Simulator, parameters: ParameterStore, own: list[Parameter], log_path: Path | None
) -> SimulatorHost:
    host = SimulatorHost(
        simulator,
        command_timeout=parameters["command_timeout"],
        decay_time=parameters["decay_time"],
        initial_positions=parameters["initial_positions"],
        log_path=log_path,
    )
    host.change({spec.name: parameters[spec.name] for spec in own})
    return host


def _physics(parameters: ParameterStore) -> dict[str, Any]:
    ground = parameters["ground_height"] if parameters["ground"] else None
    return {"ground": ground, "integrator": parameters["integrator"]}


def _log_path(parameters: ParameterStore, namespace: str) -> Path | None:
    folder: str = parameters["log_dir"]
    return Path(folder, namespace, SIMULATOR_LOG) if folder else None


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
