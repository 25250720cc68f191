"""The browser view of a robot of rods in one process."""

import time
import urllib.request

import numpy as np
import pytest

from cards_bringup.nodes.rod_session import RodSession
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_rods.rod_simulation import RodSimulation

pytestmark = pytest.mark.serial


@pytest.fixture
def session():
    made = RodSession(RodSimulation(read_rod_robot("stewart_gough")), 0.005, 21, 0)
    yield made
    made.page.stop()


def test_the_page_answers_and_shows_the_state(session):
    with urllib.request.urlopen(session.page.url, timeout=10.0) as answer:
        assert answer.status == 200
    simulation = session._simulation
    simulation.step(0.0)
    shown = session.snapshot(1.5)
    assert shown.finite
    assert (shown.time, shown.status, shown.mode) == (1.5, RodStatus.OK, simulation.mode)
    assert shown.lines.shape == (6, 21, 6)
    np.testing.assert_array_equal(shown.q, simulation.solution.q)
    np.testing.assert_allclose(shown.pose, simulation.solution.pose, atol=1e-15)
    assert 0.0 < shown.margin <= 1.0 + 1e-9


def test_sliders_and_buttons_act_between_two_steps(session):
    simulation = session._simulation
    start = np.array(simulation.solution.q)

    def steps(count=30):
        session.serve()
        for _ in range(count):
            simulation.step(0.0)

    session.joints(start + 0.005)
    assert simulation.target_q == pytest.approx(start)
    steps()
    assert simulation.solution.q == pytest.approx(start + 0.005)
    session.save("there")
    pose = np.array(simulation.solution.pose)
    pose[2, 3] -= 0.002
    session.pose(pose)
    steps()
    assert simulation.mode == "igm"
    np.testing.assert_allclose(simulation.solution.pose, pose, atol=1e-6)
    session.wrench(np.array([0.1, 0, 0, 0, 0, 0]), "plate")
    steps()
    assert simulation.wrench_frame == "plate"
    session.load("there")
    steps()
    assert simulation.solution.q == pytest.approx(start + 0.005)
    session.delete("there")
    session.play(True)
    steps(1)
    assert simulation.playing
    session.hold()
    steps(1)
    assert not simulation.playing
    session.load("nowhere")  # told on the page, and the run goes on
    session.home()
    steps(1)
    assert simulation.solution.q == pytest.approx(start)


def test_a_run_takes_its_time_and_shows_it(session):
    times = []
    begin = time.monotonic()
    session.run(0.3, times.append)
    assert time.monotonic() - begin >= 0.29
    assert times[0] == 0.0
    assert 0 < session._simulation.steps <= 61
