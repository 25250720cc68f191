"""Muscles under their impedance law in the embedded simulator."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import ParameterError
from cards_core.formats import load
from cards_core.muscles.command import CommandPart, command_of
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import ImpedanceControl
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost
from cards_sim.simulator import Simulator

STIFFNESS, DAMPING, BIAS = 2e4, 300.0, 30.0


def host_of(control, name="roboy_arm"):
    robot = load(name)
    muscles = tuple(replace(muscle, control=control) for muscle in robot.muscles)
    simulator = Simulator(replace(robot, muscles=muscles), 1e-3)
    return SimulatorHost(simulator, command_timeout=0.1)


def hold(host, lengths, tension=BIAS):
    names = [muscle.name for muscle in host.robot.muscles]
    m = len(names)
    part = CommandPart("impedance", names, np.full(m, tension), lengths, np.zeros(m))
    host.submit((part,))


def test_the_host_does_what_a_controller_of_tensions_would():
    """The law in the host, and the same law in a loop that commands tensions: same bytes."""
    control = ImpedanceControl(stiffness=STIFFNESS, damping=DAMPING, tension_floor=BIAS)
    inside, outside = host_of(control), host_of(control)
    names = [muscle.name for muscle in inside.robot.muscles]
    low = np.array([muscle.tension_min for muscle in inside.robot.muscles])
    high = np.array([muscle.tension_max for muscle in inside.robot.muscles])
    held = inside.state.muscle_lengths - 2e-3
    for _ in range(500):
        hold(inside, held)
        state = outside.state
        tension = BIAS + STIFFNESS * (state.muscle_lengths - held) + DAMPING * state.muscle_rates
        outside.submit(command_of(names, np.clip(np.maximum(BIAS, tension), low, high)))
        inside.step()
        outside.step()
        assert inside.state.tensions.tolist() == outside.state.tensions.tolist()
    assert inside.state.q.tobytes() == outside.state.q.tobytes()
    assert np.abs(inside.state.q - inside.robot.tree.home).max() > 1e-3


def test_without_stiffness_it_is_tension_control_to_the_last_bit():
    law, tension = host_of(ImpedanceControl()), host_of(ImpedanceControl())
    names = [muscle.name for muscle in law.robot.muscles]
    for step in range(200):
        told = 40.0 + 20.0 * np.sin(0.01 * step + np.arange(len(names)))
        law.submit((CommandPart("impedance", names, told),))
        tension.submit(command_of(names, told))
        law.step()
        tension.step()
    assert law.state.q.tobytes() == tension.state.q.tobytes()


def test_held_lengths_hold_the_arm_against_its_weight():
    host = host_of(ImpedanceControl(stiffness=5e4, damping=500.0, tension_floor=10.0))
    home = host.robot.tree.home
    held = host.state.muscle_lengths - 1e-3
    for _ in range(10_000):
        hold(host, held, 100.0)
        host.step()
    assert np.abs(host.state.q - home).max() < 0.1
    assert np.abs(host.state.qd).max() < 2e-3
    # the law is what pulls, at rest too
    expected = np.maximum(10.0, 100.0 + 5e4 * (host.state.muscle_lengths - held))
    assert host.state.tensions == pytest.approx(expected, rel=1e-3)


def test_without_commands_the_arm_is_let_go():
    host = host_of(ImpedanceControl(stiffness=STIFFNESS, damping=DAMPING))
    hold(host, host.state.muscle_lengths - 2e-3)
    for _ in range(150):
        host.step()
    low = [muscle.tension_min for muscle in host.robot.muscles]
    assert host.state.tensions.tolist() == low


def test_gains_are_parameters_of_the_host_and_change_while_it_runs():
    """Of the muscles of `planar_2r`, which have none: then 20 N/mm for all, then for the first."""
    robot = load("planar_2r")
    m = len(robot.muscles)
    host = build_host(ParameterSet({"impedance_stiffness": [STIFFNESS] * m}, "simulator"), robot)
    short = host.state.muscle_lengths - 1e-3
    bias = 20.0

    def tensions():
        hold(host, short, bias)
        state = host.state
        host.step()
        return host.state.tensions, STIFFNESS * (state.muscle_lengths - short)

    told, pulls = tensions()
    np.testing.assert_allclose(told, bias + pulls, rtol=1e-12)
    host.change({"impedance_stiffness": [STIFFNESS, *[0.0] * (m - 1)], "speed": 2.0})
    for _ in range(6):  # 4 N per step, while the arm begins to move
        told, pulls = tensions()
    assert told[0] == pytest.approx(min(bias + pulls[0], 100.0))
    assert told[1:].tolist() == [bias] * (m - 1)
    with pytest.raises(ParameterError, match="damping of muscle"):
        host.change({"impedance_stiffness": [1.0] * m, "impedance_damping": [0.0, -1.0, 0.0, 0.0]})
    assert host.gate.impedance.stiffness.tolist() == [STIFFNESS, *[0.0] * (m - 1)]
    host.reset()
    assert host.gate.impedance.stiffness[0] == STIFFNESS  # gains are not commands


def test_gains_of_a_wrong_number_are_refused_at_the_start():
    with pytest.raises(ParameterError, match="impedance_damping"):
        build_host(ParameterSet({"impedance_damping": [1.0]}, "simulator"), load("planar_2r"))
