"""A session from parameters: of the node, or of a run without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cards_core.parameters.declaration import ParameterStore
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_rods.rod_log import LOG_NAME
from cards_rods.saved_states import SavedStates
from cards_rods.session import RodSession


def build_session(
    value: ParameterStore,
    robot: RodRobot | None = None,
    tracker: Any = None,
    *,
    kind: type[RodSession] = RodSession,
    namespace: str = "",
) -> RodSession:
    """Return the session of a robot, at its start state.

    Args:
        value: The parameters of `cards_rods.node_parameters`.
        robot: Replaces the parameter ``model``.
        tracker: Replaces the robot's tracker.
        kind: Class of the session.
        namespace: Folder within ``log_dir``, where several robots share their parameters.

    Raises:
        CardsError: The robot cannot be read, has no equilibrium to start from, or the file with
            states is not one.
        OSError: The log cannot be written.
    """
    robot = robot or read_rod_robot(value["model"])
    states = Path(value["states_file"]).expanduser() if value["states_file"] else None
    log = Path(value["log_dir"], namespace, LOG_NAME) if value["log_dir"] else None
    return kind(
        robot,
        tracker,
        substeps=value["substeps"],
        motion_duration=value["motion_duration"],
        states=SavedStates(robot.name, states),
        log_path=log,
    )
