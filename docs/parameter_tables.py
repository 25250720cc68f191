"""Write the parameter tables of ros_interface.md from the parameters that the nodes declare.

Run ``python docs/parameter_tables.py`` after a change of a parameter; a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from cards_core.description import load
from cards_core.kinematics.tree import Tree
from cards_ros.parameter_spec import parameter_table
from cards_sim.node_parameters import general_parameters, robot_parameters
from controllers.node_parameters import (
    joint_parameters,
    model_parameters,
    operational_parameters,
    run_parameters,
    task_parameters,
)

PAGE = Path(__file__).with_name("ros_interface.md")


def with_tables(text: str) -> str:
    """Return the page with new tables between its ``<!-- parameters of NAME -->`` marks."""
    robot = load("planar_2r")
    tree = Tree(robot)
    tables = {
        "simulator": [*general_parameters(), *robot_parameters(tree)],
        "controllers": [*model_parameters(), *run_parameters()],
        "ctc_joint": joint_parameters(robot, tree),
        "ctc_operational": [
            *task_parameters(robot),
            *operational_parameters(robot, tree, ("x", "y", "z")),
        ],
    }
    for name, specs in tables.items():
        begin, end = f"<!-- parameters of {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        table = "\n".join([begin, "", *parameter_table(specs), "", end])
        text, count = pattern.subn(lambda _match, table=table: table, text)
        if count != 1:
            raise SystemExit(f"{PAGE.name}: {count} tables marked '{begin}', expected one")
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
