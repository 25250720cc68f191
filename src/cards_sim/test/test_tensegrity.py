"""Tensegrity models in the embedded simulator, beside what NASA's toolkit gives for the same."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
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


def mass_on_a_spring(damping, rest):
    """Return half a kilogramme that hangs in a spring of 200 N/m, 0.2 m long at home."""
    cable = Cable(stiffness=200.0, damping=damping, rest_length=rest)
    path = (ViaPoint(WORLD, np.array([0.0, 0.0, 0.2])), ViaPoint("mass", np.zeros(3)))
    return Robot(
        "spring",
        (Link("mass", Inertia(0.5, np.zeros(3), 1e-3 * np.eye(3))),),
        (Joint("mass_free", "free", WORLD, "mass"),),
        (Muscle("cable", path, actuator=cable),),
    )


def fall(robot, start, steps):
    """Return height and velocity after some steps, the latter after the next pull of the cable.

    NASA's toolkit tells it then: it moves first and pulls afterwards, with the same numbers.
    """
    sim = Simulator(robot, 1e-3)
    height, velocity = start
    sim.reset([0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0], np.array([0, 0, velocity, 0, 0, 0]))
    for _ in range(steps + 1):
        before = sim.state
        sim.step([0.0], np.array([NO_COMMAND]))
    return before.q[2], sim.state.qd[2] + 9.81e-3


def test_a_mass_on_a_spring_as_in_the_toolkit():
    """NTRTsim 0443cbd5 with Bullet 2.82 at 1 ms; nothing damps, nothing drifts."""
    robot = mass_on_a_spring(0.0, 0.2)
    for steps, height, velocity in (
        (100, -0.0349547575, -0.432043982),
        (1000, -0.0147481428, -0.441989006),
        (10_000, -0.0122920585, None),
    ):
        found = fall(robot, (0.0, 0.0), steps)
        assert found[0] == pytest.approx(height, abs=2e-10)
        if velocity is not None:
            assert found[1] == pytest.approx(velocity, abs=1e-8)


def test_a_mass_on_a_damped_spring_as_in_the_toolkit():
    """The same; its first pull of a cable with pretension is doubled, so ours begins after it."""
    robot = mass_on_a_spring(5.0, 0.185)
    first = 0.0021978480  # its velocity after one step
    height = -9.81e-6
    tension = 200.0 * (0.2 - height - 0.185)
    velocity = (first - 1e-3 * tension / 0.5) / (1.0 - 1e-3 * 5.0 / 0.5)
    found = fall(robot, (height, velocity), 99)
    assert found[0] == pytest.approx(-0.0102757098, abs=2e-10)
    assert found[1] == pytest.approx(-0.0999642870, abs=1e-8)
    sim = run(robot, 5.0, ground=None)
    assert sim.state.q[2] == pytest.approx(-0.009525, abs=1e-6)
    assert sim.state.tensions == pytest.approx([4.905], abs=1e-4)


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


INERTIA = np.diag([5.6406e-3, 5.6406e-3, 5.5992e-3])
"""Of a vertebra in the toolkit, from its bounding box; our z is its y."""


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    """Return two vertebrae with eight pretensioned cables, without gravity."""
    folder = tmp_path_factory.mktemp("joint")
    text = JOINT
    for index, (a, b) in enumerate(PAIRS):
        text += f"    cable{index}: [[a{a}, a{b}]]\n"
    text += "builders:\n"
    for index, force in enumerate(PRETENSIONS):
        text += (
            f"  cable{index}: {{class: cable, stiffness: 1000, damping: 10, "
            f"pretension: {force}, anchor: node}}\n"
        )
    (folder / "vertebra.yaml").write_text(VERTEBRA)
    (folder / "joint.yaml").write_text(text)
    robot = load(write_structure(build(folder / "joint.yaml"), folder / "joint"))
    links = tuple(
        dataclasses.replace(link, inertia=dataclasses.replace(link.inertia, tensor=INERTIA))
        for link in robot.links
    )
    return dataclasses.replace(robot, gravity=np.zeros(3), links=links)


def test_a_floating_joint_after_twenty_steps_as_in_the_toolkit(joint):
    """Its first pull of cables with pretension is doubled, so ours begins after it, at x1, v1."""
    assert joint.links[0].inertia.mass == pytest.approx(0.761796, abs=1e-6)
    dt, tree = 1e-3, joint.tree
    at = make_dynamics(joint).update(tree.home, np.zeros(tree.nv))
    impulse = -2.0 * dt * at.muscle_jacobian.T @ np.array(PRETENSIONS, dtype=float)
    first = np.linalg.solve(at.mass_matrix, impulse)
    sim = Simulator(joint, dt)
    sim.reset(tree.integrate(tree.home, dt * first), first)
    for _ in range(18):
        sim.step(np.zeros(8), np.full(8, NO_COMMAND))
    found = 1000.0 * (sim.state.muscle_lengths - sim.state.actuators)
    expected = [
        7.430237, 7.327095, 7.812946, 7.668154, 15.255144, 15.996191, 15.476876, 16.207098
    ]  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=3e-3)


def test_a_floating_joint_comes_to_the_toolkits_equilibrium(joint):
    sim = run(joint, 6.0, ground=None)
    expected = [
        6.853627, 6.889897, 7.101849, 7.081508, 15.672946, 16.173823, 15.790137, 16.314323
    ]  # fmt: skip
    np.testing.assert_allclose(sim.state.tensions, expected, atol=2e-5)
    first, second = sim.link_poses()
    x, y, z = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
    # the toolkit has y up
    np.testing.assert_allclose([x, z, -y], [0.000578, 0.002219, -0.102933], atol=1e-6)
    x, y, z = Rotation.from_matrix(first[:3, :3].T @ second[:3, :3]).as_rotvec()
    np.testing.assert_allclose([x, z, -y], [0.02005, 0.00891, 0.00011], atol=1e-5)


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
