"""The tetraspine crawls by its sine gait as [Mirletz2016] says (Figs 6.2, 6.3, 6.5)."""

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import load_parameters
from cards_core.shared_files import shared_folder
from cards_sim.build import build_host

ROBOT = load("tetraspine")
MODEL = ControlModel(ROBOT, "numeric")
PERIOD = 2.5  # [s]


def crawl(duration, terrain="flat:friction=0.5", **changes):
    """Return the places of the segments' centres of mass, every 10 ms, shape (n, 12, 3)."""
    file = shared_folder() / "config" / "tetraspine.yaml"
    given = load_parameters(file, "impedance")
    names = ("gait", "tension", "amplitude", "frequency", "body_waves", "inside_factor")
    settings = {name: given[name] for name in names} | changes
    controller = make_controller("impedance", MODEL, **settings)
    host = build_host(ParameterSet({"terrain": terrain}, "simulator"), ROBOT)
    data = host.simulator.world.data
    model = host.simulator.world.model
    bodies = [i for i in range(1, model.nbody) if model.body_mass[i] > 0.1]
    assert len(bodies) == 12
    places = []
    for step in range(round(1000 * duration)):
        host.submit(controller.step(host.state))
        host.step()
        if step % 10 == 9:
            places.append(data.xipos[bodies].copy())
    return np.array(places)


def test_speed_oscillation_and_steps_are_those_published():
    places = crawl(15.0)
    last = places[-round(300 * PERIOD) :]
    axis = last[0, 0] - last[0, -1]
    middle = last.mean(axis=1)
    speed = (middle[-1] - middle[0]) @ (axis / np.linalg.norm(axis)) / (3.0 * PERIOD)
    assert 0.0079 / 1.5 < speed < 0.0079 * 1.5  # forward
    length = np.linalg.norm(last[:, 0] - last[:, -1], axis=1)
    assert np.ptp(length) == pytest.approx(0.065, rel=0.15)
    assert np.ptp(last[:, 0, 2]) == pytest.approx(0.01, rel=0.2)
    # symmetric, so straight on
    assert np.abs(middle[:, 0]).max() < 1e-3


def test_it_bends_to_the_side_that_pulls_harder():
    """Its head points along -y, so +x is on its left."""
    left, right = (crawl(3.0, turn=turn)[-1] for turn in (15.0, -15.0))
    for places, sign in ((left, 1.0), (right, -1.0)):
        ends = 0.5 * (places[0, 0] + places[-1, 0])
        assert sign * (ends - places[5:7, 0].mean()) > 0.03
