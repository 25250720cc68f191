"""Tensegrity models in the embedded simulator, beside what NASA's toolkit gives for the same."""

import dataclasses

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.muscles.command import NO_COMMAND
from cards_core.tensegrity import build, write_structure
from cards_core.tensegrity.statics import find_equilibrium, find_modes
from cards_sim.simulator import Simulator

NAMES = (
    "prism_3",
    "tetrahedral_6",
    "tetrahedral_12",
    "octahedral_12",
    "tetraspine",
    "tetraspine_hardware",
    "ribbed_12",
    "superball",
)


def run(robot, seconds, ground=0.0):
    """Return the simulator after a time without commands."""
    sim = Simulator(robot, 1e-3, ground=ground)
    commands = np.zeros(len(robot.muscles))
    kinds = np.full(len(robot.muscles), NO_COMMAND)
    for _ in range(round(1e3 * seconds)):
        sim.step(commands, kinds)
    return sim


def center_of_mass(robot, sim):
    masses = np.array([link.inertia.mass for link in robot.links])
    return masses @ sim.link_poses()[:, :3, 3] / masses.sum()


@pytest.mark.parametrize("name", NAMES)
def test_models_begin_just_above_the_ground_and_stay_there(name):
    robot = load(name)
    sim = Simulator(robot, 1e-3, ground=0.0)
    assert len(sim.world.contacts) == 0
    before = center_of_mass(robot, sim)
    after = center_of_mass(robot, run(robot, 0.3))
    # nothing explodes: the middle moves by what the cables contract, within a third of a second
    assert np.abs(after - before)[:2].max() < 0.03
    assert abs(after - before)[2] < 0.05


def test_tetrahedral_complex_at_rest():
    robot = load("tetrahedral_6")
    sim = run(robot, 3.0)
    assert center_of_mass(robot, sim)[2] == pytest.approx(0.103925, abs=2e-4)
    assert np.all(sim.state.tensions < 0.002)


def test_superball_at_rest():
    robot = load("superball")
    sim = run(robot, 4.0)
    assert center_of_mass(robot, sim)[2] == pytest.approx(0.825812, abs=1e-3)


JOINT = """format: tensegrity/1
units: {length: cm}
up: y
substructures:
  v: {path: vertebra.yaml, repeat: 2, offset: [0, 0, -11.5]}
bond_groups:
  v[*]/node_node:
"""
VERTEBRA = """format: tensegrity/1
units: {length: cm}
up: y
nodes:
  c: [0, 0, 0]
  a1: [10, 10, 10]
  a2: [10, -10, -10]
  a3: [-10, 10, -10]
  a4: [-10, -10, 10]
pair_groups: {rod: [[c, a1], [c, a2], [c, a3], [c, a4]]}
builders: {rod: {class: rod, radius: 0.5, density: 14000}}
"""
PAIRS = ((1, 1), (2, 2), (3, 3), (4, 4), (2, 1), (2, 4), (3, 1), (3, 4))
PRETENSIONS = (20, 16, 22, 18, 10, 13, 9, 12)


def test_a_floating_joint_comes_to_the_toolkits_equilibrium(tmp_path):
    text = JOINT
    for index, (a, b) in enumerate(PAIRS):
        text += f"    cable{index}: [[a{a}, a{b}]]\n"
    text += "builders:\n"
    for index, force in enumerate(PRETENSIONS):
        text += (
            f"  cable{index}: {{class: cable, stiffness: 1000, damping: 10, "
            f"pretension: {force}, anchor: node}}\n"
        )
    (tmp_path / "vertebra.yaml").write_text(VERTEBRA)
    (tmp_path / "joint.yaml").write_text(text)
    robot = load(write_structure(build(tmp_path / "joint.yaml"), tmp_path / "joint"))
    robot = dataclasses.replace(robot, gravity=np.zeros(3))
    sim = run(robot, 6.0, ground=None)
    expected = [
        6.853627, 6.889897, 7.101849, 7.081508, 15.672946, 16.173823, 15.790137, 16.314323
    ]  # fmt: skip
    np.testing.assert_allclose(sim.state.tensions, expected, atol=2e-5)
    first, second = sim.link_poses()
    x, y, z = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
    # the toolkit has y up
    np.testing.assert_allclose([x, z, -y], [0.000578, 0.002219, -0.102933], atol=1e-6)


@pytest.mark.parametrize(("name", "mode"), [("superball", 0), ("superball", 11), ("prism_3", 0)])
def test_free_vibration_has_the_frequency_of_its_mode(name, mode):
    """Released from a mode's shape without damping, the spectrum has its peak at its frequency."""
    robot = load(name)
    muscles = tuple(
        dataclasses.replace(m, actuator=dataclasses.replace(m.actuator, damping=0.0))
        for m in robot.muscles
    )
    robot = dataclasses.replace(robot, gravity=np.zeros(3), muscles=muscles)
    dynamics = make_dynamics(robot)
    shape = find_equilibrium(dynamics)
    modes = find_modes(dynamics, shape.q, shape.tensions)
    frequency, phi = modes.frequencies[mode], modes.shapes[:, mode]
    tree, dt = robot.tree, 2e-4
    sim = Simulator(robot, dt)
    sim.reset(tree.integrate(shape.q, 1e-4 * phi / np.abs(phi).max()))
    commands, kinds = np.zeros(len(muscles)), np.full(len(muscles), NO_COMMAND)
    amplitudes = []
    for _ in range(round(12.0 / frequency / dt)):
        sim.step(commands, kinds)
        amplitudes.append(phi @ modes.mass_matrix @ tree.difference(sim.state.q, shape.q))
    window = np.hanning(len(amplitudes)) * amplitudes
    padded = 32 * len(window)
    spectrum = np.abs(np.fft.rfft(window, padded))
    peak = np.fft.rfftfreq(padded, dt)[np.argmax(spectrum)]
    # bins are 1/384 of the frequency apart
    assert peak == pytest.approx(frequency, rel=3e-3)
