"""Cables with motors in the simulator."""

from dataclasses import replace

import numpy as np

from cards_core.formats import load
from cards_core.robot.actuators import Cable, Motor, Thermal
from cards_sim.simulator import Simulator


def test_motors_within_their_limits_change_no_motion():
    plain = load("planar_2r")
    strong = Motor(voltage=1e4, max_current=1e3, dry_friction=0.002)
    cable = Cable(motor=strong, spool_radius=0.006, thermal=Thermal())
    driven = replace(plain, muscles=tuple(replace(m, actuator=cable) for m in plain.muscles))
    runs = []
    for one in (plain, driven):
        simulator = Simulator(one)
        for i in range(300):
            simulator.step(30.0 + 15.0 * np.sin(0.05 * i + np.arange(4)))
        runs.append(simulator.state)
    assert runs[0].q.tobytes() == runs[1].q.tobytes()
    assert runs[0].tensions.tobytes() == runs[1].tensions.tobytes()
    assert runs[0].temperatures is None
    assert runs[1].temperatures.shape == (4,)
    assert np.all(runs[1].temperatures > 25.0)


def test_a_reset_cools_the_motors():
    plain = load("musashi_like")
    simulator = Simulator(plain)
    for _ in range(200):
        simulator.step([200.0] * 20)
    assert simulator.state.temperatures.max() > 25.1
    simulator.reset()
    assert np.array_equal(simulator.state.temperatures, np.full(20, 25.0))


def test_muscles_without_a_motor_have_temperatures_too():
    """Among others, of whom nothing is known; and no motion changes."""
    plain = load("planar_2r")
    warm = Cable(thermal=Thermal(heat_per_square_force=0.01))
    muscles = (*plain.muscles[:1], *(replace(m, actuator=warm) for m in plain.muscles[1:]))
    runs = []
    for one in (plain, replace(plain, muscles=muscles)):
        simulator = Simulator(one)
        for i in range(300):
            simulator.step(30.0 + 15.0 * np.sin(0.05 * i + np.arange(4)))
        runs.append(simulator.state)
    assert runs[0].q.tobytes() == runs[1].q.tobytes()
    found = runs[1].temperatures
    assert np.isnan(found[0])
    assert np.all(found[1:] > 25.1)
