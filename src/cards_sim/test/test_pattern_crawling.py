"""The tetrahedral complex crawls by the pattern generator that comes with it."""

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.cpg.files import read_pattern
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_core.shared_files import find_file
from cards_sim.build import build_host

PATTERN = read_pattern(find_file("tetrahedral", folder="config/patterns", suffix=".yaml"))


@pytest.mark.parametrize(
    ("name", "terrain", "way"),
    [
        ("tetrahedral_6", "flat:friction=0.5", 0.2),
        ("tetrahedral_6", "hills:friction=0.5", 0.2),
        ("tetrahedral_12", "flat:friction=0.5", 0.2),
    ],
)
def test_it_crawls(name, terrain, way):
    """Three quarters of a metre and more in 30 s were seen; here are 10 s, with some to spare."""
    robot = load(name)
    controller = make_controller("cpg", ControlModel(robot, "numeric"), pattern=PATTERN)
    host = build_host(
        ParameterSet({"terrain": terrain, "command_timeout": 0.2}, "simulator"), robot
    )
    places = host.simulator.data.xipos[1 : len(robot.links) + 1]
    start = places[:, :2].mean(axis=0)
    for _ in range(1000):
        host.submit(controller.step(host.state))
        host.steps(10)
    assert controller.output.status is ControlStatus.OK
    assert np.linalg.norm(places[:, :2].mean(axis=0) - start) > way
    assert host.state.tensions.max() <= 70.0
