"""The launch description of all launch files: the plan as launch actions.

This module imports ``launch`` and ``launch_ros``, which come with ROS 2.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from cards_bringup.nodes import node_list
from cards_bringup.nodes.launch_arguments import ARGUMENTS, NAMES, arguments_for, is_true
from cards_bringup.nodes.node_list import NodeSpec
from cards_bringup.nodes.plan import Plan, make_plan
from cards_core.errors import CardsError


def describe(robot: str) -> LaunchDescription:
    """Return the launch description of a robot."""
    robots = node_list.read(robot)
    arguments = arguments_for(robot, robots.defaults, robots.controllers)
    description = LaunchDescription()
    for argument in arguments:
        description.add_action(
            DeclareLaunchArgument(
                argument.name,
                default_value=str(argument.default),
                description=argument.description,
                choices=argument.choices or None,
            )
        )
    description.add_action(OpaqueFunction(function=_start, kwargs={"robot": robot}))
    return description


def describe_any() -> LaunchDescription:
    """Return the launch description of the robot that the argument ``robot`` names.

    The defaults and choices of the other arguments are known with the robot only: an empty text
    stands for what is the robot's own.
    """
    description = LaunchDescription()
    for argument in ARGUMENTS:
        if argument.name == "robot":
            meaning = "Robot: a name (./cards models), or the path of an SDF file or its folder."
            description.add_action(DeclareLaunchArgument("robot", description=meaning))
            continue
        choices = f" ({', '.join(argument.choices)})" if argument.choices else ""
        meaning = f"{argument.description}{choices} Empty: as in the robot's own launch file."
        description.add_action(
            DeclareLaunchArgument(argument.name, default_value="", description=meaning)
        )
    description.add_action(OpaqueFunction(function=_start, kwargs={"robot": ""}))
    return description


def _start(context: LaunchContext, robot: str) -> list[LaunchDescriptionEntity]:
    values = {name: LaunchConfiguration(name).perform(context) for name in NAMES}
    if not robot:
        values = {name: value for name, value in values.items() if value}
    plan = make_plan(values, robot)
    actions: list[LaunchDescriptionEntity] = [LogInfo(msg=note) for note in plan.notes]
    actions += [_node(node, plan) for node in plan.nodes]
    if is_true(plan.values, "record"):
        actions.append(_recorder())
    return actions


def _node(node: NodeSpec, plan: Plan) -> Node:
    given = plan.parameters(node)
    namespace = "/".join(filter(None, (plan.values["namespace"], node.namespace)))
    ros_arguments = ["--log-level", plan.values["log_level"]]
    ours: Mapping[str, object] = {}
    if node.role == "host" and not namespace:
        # the system's host may have a node in the namespace of each robot: without a namespace,
        # launch_ros would have all nodes of the process leave theirs (__ns:=/)
        ours = {"parameters": [str(plan.parameter_file)]}
        for name, value in given.items():
            ros_arguments += ["-p", f"{node.name}:{name}:={json.dumps(value)}"]
    else:
        ours = {"namespace": namespace}
        parameters = {
            name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
            for name, value in given.items()
        }
        if node.role != "tool":
            ours = {**ours, "parameters": [str(plan.parameter_file), parameters]}
        elif parameters:
            ours = {**ours, "parameters": [parameters]}
    if node.stop_time is not None:
        ours = {**ours, "sigterm_timeout": str(node.stop_time)}
    return Node(
        package=node.package,
        executable=node.executable,
        name=node.name,
        arguments=plan.arguments(node),
        ros_arguments=ros_arguments,
        additional_env=plan.environment(),
        output="screen",
        on_exit=_host_ended if node.role == "host" else None,
        **ours,
    )


def _host_ended(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """End the launch when its host ends; with an error if the host failed."""
    if event.returncode != 0 and not context.is_shutdown:
        raise CardsError(f"{event.process_name} ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} ended")]


def _recorder() -> ExecuteProcess:
    if importlib.util.find_spec("ros2bag") is None:
        raise CardsError(
            "record:=true needs the command `ros2 bag` (package ros2bag, with "
            "rosbag2_storage_mcap), which is not installed"
        )
    return ExecuteProcess(
        cmd=["ros2", "bag", "record", "--storage", "mcap", "--all"], output="screen"
    )
