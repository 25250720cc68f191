"""What there is to see of a robot: topics to draw, and numbers to plot.

Names of joints, muscles and controllers come from the robot and its node list, so that every topic
and every curve of a layout exists as soon as the robot runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cards_bringup.nodes import node_list
from cards_bringup.nodes.node_list import NodeList
from cards_core.control.registry import controller_class
from cards_core.formats.locate import find_model
from cards_core.parameters.parameter_file import load_parameters

JOINT_STATE = "sensor_msgs/msg/JointState"
POSE = "geometry_msgs/msg/PoseStamped"

MOST_CURVES = 40
"""Curves of one plot; of more, only the first are shown."""

_OPERATIONAL = ("x", "y", "z")


@dataclass(frozen=True)
class Curve:
    """Numbers over time.

    Attributes:
        topic: Absolute name.
        type_name: `JOINT_STATE` or `POSE`.
        field: Of the message, e.g. ``position`` or ``pose.position.x``.
        name: Name of the entry of a JointState; empty for a pose.
        index: Of this entry in the message.
    """

    topic: str
    type_name: str
    field: str
    name: str = ""
    index: int = 0


@dataclass(frozen=True)
class Plot:
    """Curves over one axis."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Content:
    """What a layout shows.

    Attributes:
        robot: Its name.
        drawn: Topics with markers.
        description: Topic with the URDF, empty without one.
        plots: In this order.
    """

    robot: str
    drawn: tuple[str, ...]
    description: str
    plots: tuple[Plot, ...]


def content_of(robot: str) -> Content:
    """Return what there is to see of a robot.

    Args:
        robot: As of `cards_bringup.nodes.node_list.read`.

    Raises:
        CardsError: There is no such robot, or a file of it is wrong.
    """
    nodes = node_list.read(robot)
    return _rods(nodes, robot) if nodes.rods else _muscles(nodes, robot)


def _muscles(nodes: NodeList, robot: str) -> Content:
    from cards_core.formats import load

    described = load(_model(nodes, robot))
    tree = described.tree
    muscles = [muscle.name for muscle in described.muscles]
    drawn: list[str] = []
    plots: list[Plot] = []
    spaces = dict.fromkeys(node.namespace for node in nodes.nodes if node.role == "controller")
    for space in spaces or ("",):
        prefix = f"/{space}/" if space else "/"
        whose = f"{space}: " if space else ""
        if not drawn:  # markers are in the axes of their robot: those of one
            drawn = [f"{prefix}muscle_markers", f"{prefix}end_effector_path"]
        plots += [
            _plot(f"{whose}joints [rad, m]", f"{prefix}joint_states", tree.position_names),
            _plot(f"{whose}tensions [N]", f"{prefix}muscle_states", muscles, "effort"),
            _plot(f"{whose}lengths [m]", f"{prefix}muscle_states", muscles),
        ]
        for name in nodes.controllers:
            names: Sequence[str] = tree.velocity_names
            if controller_class(name).space == "operational":
                names = str(load_parameters(nodes.parameter_file, name).get("axes") or "xyz")
            title = f"{whose}error of {name} [rad, m]"
            plots.append(_plot(title, f"{prefix}{name}/error", names))
    first = next(iter(spaces), "")
    description = f"/{first}/robot_description" if first else "/robot_description"
    return Content(nodes.robot, tuple(drawn), description, tuple(plots))


def _rods(nodes: NodeList, robot: str) -> Content:
    from cards_core.rods.robots.reader import read_rod_robot
    from cards_rods.messages import state_names

    described = read_rod_robot(_model(nodes, robot))
    state = "/rod_solver/state"
    order = list(state_names(described))

    def of_state(title: str, names: Iterable[str]) -> Plot:
        return Plot(
            title,
            tuple(Curve(state, JOINT_STATE, "position", one, order.index(one)) for one in names),
        )

    place = tuple(
        Curve("/rod_solver/pose", POSE, f"pose.position.{axis}") for axis in _OPERATIONAL
    )
    plots = (
        _plot("joints [m, rad]", "/joint_states", described.joint_names),
        Plot("plate [m]", place),
        of_state("smallest eigenvalue of the stiffness [N/m, Nm]", ["min_eigenvalue"]),
        of_state("curvature [1/m]", [f"curvature/{limb.name}" for limb in described.limbs]),
        _plot(
            "efforts of the actuators [N, Nm]", "/joint_states", described.joint_names, "effort"
        ),
    )
    return Content(nodes.robot, ("/rod_solver/rods",), "", plots)


def _model(nodes: NodeList, robot: str) -> str:
    """Return the file of the robot; of a world with several of one kind, of that kind."""
    for node in nodes.nodes:
        if "model" in node.parameters:
            return str(node.parameters["model"])
    given = load_parameters(nodes.parameter_file, nodes.nodes[0].name)
    return str(given.get("model") or find_model(Path(robot).name))


def _plot(title: str, topic: str, names: Sequence[str], field: str = "position") -> Plot:
    shown = enumerate(names[:MOST_CURVES])
    return Plot(title, tuple(Curve(topic, JOINT_STATE, field, name, i) for i, name in shown))
