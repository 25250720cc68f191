"""Cables that touch slide over ground from a file: heights of a table, the surface of a mesh."""

import math

import numpy as np
import pytest

from cards_core.muscles.command import NO_COMMAND
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_sim.build import build_host

HEIGHT, HALF, EXTENT = 0.2, 0.5, 2.0
"""A ridge along y: z = HEIGHT (1 - |x|/HALF), [m]."""

FIRST, SECOND = np.array([-0.4, -0.3, 0.15]), np.array([0.35, -0.3, 0.12])
"""Ends of the cable, lower than the ridge, higher than its sides."""


def table(folder):
    """Return a terrain of heights in a table, 41 by 41."""
    x = np.linspace(-0.5 * EXTENT, 0.5 * EXTENT, 41)
    row = np.maximum(HEIGHT * (1.0 - np.abs(x) / HALF), 0.0)
    np.savetxt(folder / "ridge.csv", np.tile(row, (41, 1)), delimiter=",")
    return f"heightmap:file={folder / 'ridge.csv'},extent={EXTENT}"


def mesh(folder):
    """Return a terrain of a mesh of four quadrangles."""
    half = 0.5 * EXTENT
    profile = ((-half, 0.0), (-HALF, 0.0), (0.0, HEIGHT), (HALF, 0.0), (half, 0.0))
    lines = [f"v {x} {y} {z}" for x, z in profile for y in (-half, half)]
    for i in range(4):
        a, b, c, d = (2 * i + k for k in (1, 2, 3, 4))
        lines += [f"f {a} {c} {b}", f"f {b} {c} {d}"]
    (folder / "ridge.obj").write_text("\n".join(lines) + "\n")
    return f"mesh:file={folder / 'ridge.obj'},resolution=0.05"


def robot():
    """Return two carriages on rails along y, with a cable between them over the ridge."""
    links = tuple(Link(name, Inertia(1.0, np.zeros(3), 1e-3 * np.eye(3))) for name in "ab")
    rail = (JointAxis(np.array([0.0, 1.0, 0.0])),)
    joints = tuple(
        Joint(f"{name}_rail", "prismatic", WORLD, name, Pose(translation=place), axes=rail)
        for name, place in (("a", FIRST), ("b", SECOND))
    )
    path = tuple(ViaPoint(name, np.zeros(3)) for name in "ab")
    cable = Cable(stiffness=50.0, damping=0.0, rest_length=0.5)
    muscle = Muscle("cable", path, 0.0, 100.0, cable, contact=True)
    return Robot("carriages", links, joints, (muscle,), gravity=np.zeros(3))


@pytest.mark.parametrize("ground", [table, mesh])
def test_it_is_the_shortest_over_the_ridge_while_it_slides(ground, tmp_path):
    """Unfolded about the ridge, the cable is straight.

    One carriage moves off with 0.8 m/s and draws the other after itself.
    """
    host = build_host(ParameterSet({"terrain": ground(tmp_path)}, "simulator"), robot())
    sim = host.simulator
    sim.reset(None, np.array([0.8, 0.0]))
    across = sum(math.hypot(end[0], HEIGHT - end[2]) for end in (FIRST, SECOND))
    energy = None
    travelled = []
    for _ in range(800):
        state = sim.state
        offset = state.q[0] - state.q[1]
        expected = math.hypot(across, offset)
        assert state.muscle_lengths[0] == pytest.approx(expected, abs=1e-9)
        rate = offset * (state.qd[0] - state.qd[1]) / expected
        assert state.muscle_rates[0] == pytest.approx(rate, abs=1e-4)
        now = 0.5 * state.qd @ state.qd + 0.5 * 50.0 * (expected - 0.5) ** 2
        energy = now if energy is None else energy
        assert now == pytest.approx(energy, rel=2e-3)
        assert state.qd.sum() == pytest.approx(0.8, abs=1e-6)  # momentum along the ridge
        travelled.append(state.q.mean())
        sim.step([0.0], np.array([NO_COMMAND]))
    # the place where it bends went along with them
    assert travelled[-1] - travelled[0] == pytest.approx(0.32, abs=1e-3)
