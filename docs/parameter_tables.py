"""Write the documentation's tables of parameters, topics, launch arguments and options.

Run ``python docs/parameter_tables.py`` after a change of a declaration; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cards_bringup.nodes.launch_arguments import argument_table
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.control import CtcOperational, controller_parameters
from cards_core.formats import load
from cards_core.loop.control_setup import (
    model_parameters,
    reference_parameters,
    run_parameters,
)
from cards_core.loop.host import host_parameters, impedance_gains, initial_positions
from cards_core.parameters.declaration import (
    Parameter,
    attribute_table,
    groups_of,
    parameter_table,
    parameters_of,
)
from cards_core.robot.actuators import ACTUATORS, ImpedanceControl
from cards_core.robot.terrain import TERRAINS, Terrain
from cards_core.tensegrity.builders import OWN
from cards_core.tensegrity.kinds import Winch
from cards_hardware.bridge.node_parameters import parameters as hardware_parameters
from cards_hardware.bridge.node_parameters import robot_parameters as hardware_robot_parameters
from cards_model_compiler.job import parameters as model_compiler_parameters
from cards_model_compiler.live_analysis.parameters import parameters as live_analysis_parameters
from cards_muscle_plugin.simulation_time import pace
from cards_rod_plugin.node_parameters import parameters as rod_plugin_parameters
from cards_rods.node_parameters import parameters as rod_parameters
from cards_ros.interface import ROD_SERVICES, ROD_TOPICS, SERVICES, TOPICS, Service, Topic
from cards_sim.node_parameters import general_parameters, robot_parameters
from controllers.joint_estimator import parameters as joint_estimator_parameters
from controllers.trajectory_action import parameters as trajectory_action_parameters

HERE = Path(__file__).parent


def tables() -> dict[str, dict[str, list[Parameter]]]:
    """Return the parameters of each table, by page and by the name in its mark."""
    robot = load("planar_2r")
    return {
        "ros_interface.md": {
            "simulator": [*general_parameters(), *robot_parameters(robot)],
            "hardware": [
                *hardware_parameters(),
                *hardware_robot_parameters(robot),
            ],
            "controllers": [*model_parameters(), *run_parameters()],
            "ctc_joint": controller_parameters("ctc_joint", robot),
            "ctc_operational": [
                *controller_parameters("ctc_operational", robot),
                *reference_parameters(CtcOperational),
            ],
            "mrc": controller_parameters("mrc", load("musashi_like")),
            "impedance": controller_parameters("impedance", load("tetraspine_hardware")),
            "cpg": controller_parameters("cpg", load("tetrahedral_6")),
            "joint_estimator": joint_estimator_parameters(),
            "trajectory_action": trajectory_action_parameters(),
            "model_compiler": model_compiler_parameters(),
            "live_analysis": live_analysis_parameters(),
            "rod_solver": rod_parameters(),
        },
        "gazebo.md": {
            "simulator in Gazebo": [
                *host_parameters(),
                pace(),
                initial_positions(robot.tree),
                *impedance_gains(robot),
            ],
            "rod_solver in Gazebo": rod_plugin_parameters(),
        },
    }


def muscle_parameters() -> dict[str, list[Parameter]]:
    """Return the parameters of muscles: of their impedance law, types, and groups in these."""
    out: dict[str, list[Parameter]] = {"control": list(parameters_of(ImpedanceControl))}
    for kind, actuator in ACTUATORS.items():
        out[kind] = list(parameters_of(actuator))
        out |= {group.name: list(parameters_of(group.kind)) for group in groups_of(actuator)}
    return out


def structure_parameters() -> dict[str, list[Parameter]]:
    """Return the parameters of the classes of structure files, and of actuators in these."""
    return {name: list(parameters_of(kind)) for name, kind in {**OWN, "actuator": Winch}.items()}


def option_tables() -> dict[str, dict[str, list[Parameter]]]:
    """Return the options of conditions of each table, by page and by the name in its mark."""
    dexterity = ("manipulability", "unilateral_dexterity", "force_amplification")
    return {
        "conditions.md": {
            "wrench_closure": _options_of("wrench_closure"),
            "tension_factor": _options_of("tension_factor"),
            "wrench_feasible": _options_of("wrench_feasible"),
            "capacity_margin": _options_of("capacity_margin", beyond="wrench_feasible"),
            "dynamic": _options_of("dynamic", beyond="wrench_feasible"),
            "acceleration_margin": _options_of("acceleration_margin"),
            "static": _options_of("static"),
            "dexterity": [
                *_options_of("condition_number"),
                *(o for name in dexterity for o in _options_of(name, beyond="condition_number")),
            ],
            "modified_tension_factor": _options_of("modified_tension_factor"),
            "joint_limits": _options_of("joint_limits"),
        },
        "interference.md": {"interference": _options_of("interference")},
    }


def _options_of(condition: str, *, beyond: str | None = None) -> list[Parameter]:
    """Return the options of a condition that another one does not have in the same way."""
    others = () if beyond is None else CONDITIONS[beyond].options.parameters()
    return [item for item in CONDITIONS[condition].options.parameters() if item not in others]


def rows() -> dict[str, dict[str, list[str]]]:
    """Return the rows of each table, by page and by its mark."""
    out = {
        page: {f"parameters of {name}": parameter_table(specs) for name, specs in named.items()}
        for page, named in tables().items()
    }
    out["ros_interface.md"] |= topic_tables()
    out["bringup.md"] = {"launch arguments": argument_table()}
    for page, options in option_tables().items():
        out[page] = {
            f"options of {name}": parameter_table(specs, live=False)
            for name, specs in options.items()
        }
    out["muscles.md"] = {
        f"parameters of {name}": attribute_table(specs)
        for name, specs in muscle_parameters().items()
    }
    out["tensegrity.md"] = {
        f"parameters of {name}": attribute_table(specs)
        for name, specs in structure_parameters().items()
    }
    common = parameters_of(Terrain)
    out["terrain.md"] = {"parameters of all terrains": attribute_table(common)}
    for name, cls in TERRAINS.items():
        if own := [spec for spec in parameters_of(cls) if spec not in common]:
            out["terrain.md"][f"parameters of {name}"] = attribute_table(own)
    return out


def topic_tables() -> dict[str, list[str]]:
    """Return the rows of the tables of topics and services, by mark."""
    out = {"topics": topic_table(TOPICS), "topics of rod_solver": topic_table(ROD_TOPICS)}
    for service in (*SERVICES, *ROD_SERVICES):
        of_node = [one for one in (*SERVICES, *ROD_SERVICES) if one.node == service.node]
        out[f"services of {service.node}"] = service_table(of_node)
    return out


def topic_table(topics: Sequence[Topic]) -> list[str]:
    """Return the rows of a table of topics."""
    rows = ["| topic | type | content | from -> to | QoS |", "|---|---|---|---|---|"]
    for one in topics:
        kinds = ", ".join(one.type)
        rows.append(f"| `{one.full_name}` | {kinds} | {one.content} | {one.route} | {one.qos} |")
    return rows


def service_table(services: Sequence[Service]) -> list[str]:
    """Return the rows of a table of services."""
    rows = ["| service | type | action |", "|---|---|---|"]
    return rows + [f"| `{one.full_name}` | {one.type} | {one.action} |" for one in services]


def with_tables(page: str, text: str) -> str:
    """Return a page with new tables between its ``<!-- MARK -->`` and ``<!-- end -->``."""
    for mark, lines in rows()[page].items():
        begin, end = f"<!-- {mark} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        table = "\n".join([begin, "", *lines, "", end])
        text, count = pattern.subn(lambda _match, table=table: table, text)
        if count != 1:
            raise SystemExit(f"{page}: {count} tables marked '{begin}', expected one")
    return text


if __name__ == "__main__":
    for page in rows():
        file = HERE / page
        file.write_text(with_tables(page, file.read_text()))
