"""From parameters to a simulated robot; the node and the runner without ROS build it here."""

from __future__ import annotations

from pathlib import Path

from cards_core.formats import load
from cards_core.loop.host_log import NAME
from cards_core.parameters.declaration import ParameterStore
from cards_core.robot.model import Robot
from cards_sim.host import SimulatorHost
from cards_sim.node_parameters import general_parameters, robot_parameters
from cards_sim.simulator import Simulator


def build_host(parameters: ParameterStore, robot: Robot | None = None) -> SimulatorHost:
    """Declare all parameters of the simulator and build world, command gate and log.

    Args:
        parameters: Where the values come from.
        robot: Replaces the parameter ``model``, for tests.

    Raises:
        CardsError: A parameter or the model is not usable; the message says why.
    """
    parameters.declare(general_parameters())
    robot = robot or load(parameters["model"])
    parameters.declare(robot_parameters(robot.tree))
    parameters.refuse_others()
    ground = parameters["ground_height"] if parameters["ground"] else None
    log_dir: str = parameters["log_dir"]
    return SimulatorHost(
        Simulator(robot, parameters["dt"], ground=ground),
        command_timeout=parameters["command_timeout"],
        decay_time=parameters["decay_time"],
        initial_positions=parameters["initial_positions"],
        log_path=Path(log_dir) / NAME if log_dir else None,
    )
