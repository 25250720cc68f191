"""Robots as MuJoCo models of their own: tendons as long as the muscles, actuators that pull."""

import dataclasses

import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import known_models, load
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.mjcf.scene import tendon_notes
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_sim.build import build_host
from cards_sim.export import exported_mjcf

ROBOTS = [name for name in known_models() if not has_rods(find_model(name))]


def compiled(robot):
    return mujoco.MjModel.from_xml_string(exported_mjcf(robot))


@pytest.mark.parametrize("name", ROBOTS)
def test_tendons_and_their_forces_are_those_of_the_muscles(name):
    robot = load(name)
    model = compiled(robot)
    data = mujoco.MjData(model)
    tree, dynamics = robot.tree, make_dynamics(robot, "numeric")
    changed = {note.partition(":")[0] for note in tendon_notes(robot)}
    names = [muscle.name for muscle in robot.muscles]
    exact = [i for i, muscle in enumerate(robot.muscles) if muscle.name not in changed]
    assert [model.tendon(i).name for i in range(model.ntendon)] == names
    told = [muscle.name for muscle in robot.muscles if muscle.takes_tension]
    assert [model.actuator(i).name for i in range(len(told))] == told
    pull = np.zeros(len(names))
    for i in exact:
        muscle = robot.muscles[i]
        if muscle.takes_tension:
            pull[i] = min(muscle.tension_min + 1.0 + i, muscle.tension_max)
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = tree.home + 0.02 * rng.standard_normal(tree.nq)
        state = dynamics.update(q, np.zeros(tree.nv))
        data.qpos[:], data.qvel[:] = q, 0.0
        data.ctrl[: len(told)] = pull[[names.index(muscle) for muscle in told]]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.ten_length[exact], state.muscle_lengths[exact], atol=1e-9)
        wanted = -state.muscle_jacobian.T @ pull
        tolerance = 1e-9 * max(1.0, pull.max(initial=0.0))
        np.testing.assert_allclose(data.qfrc_actuator, wanted, rtol=1e-7, atol=tolerance)


@pytest.mark.parametrize("name", ["planar_2r", "roboy_arm"])
def test_a_controller_moves_it_in_mujoco_as_in_the_embedded_simulator(name):
    """``ctc_joint`` follows ``wiggle`` in both, each in a loop of its own."""
    robot = load(name)
    model = compiled(robot)
    data = mujoco.MjData(model)
    host = build_host(ParameterSet({"dt": model.opt.timestep}, "simulator"), robot)
    ours, theirs = (
        make_control_loop("ctc_joint", ParameterSet({"reference": "wiggle"}, "ctc_joint"), robot)
        for _ in range(2)
    )
    data.qpos[:] = robot.tree.home
    for _ in range(1000):
        seen = dataclasses.replace(host.state, q=data.qpos.copy(), qd=data.qvel.copy())
        data.ctrl[:] = np.concatenate([part.values for part in theirs.step(seen)])
        host.submit(ours.step(host.state))
        host.step()
        mujoco.mj_step(model, data)
    assert np.abs(host.state.q - robot.tree.home).max() > 0.01
    np.testing.assert_allclose(data.qpos, host.state.q, atol=1e-6)


def test_actuators_need_tendons():
    with pytest.raises(CardsError, match="without tendons"):
        to_mjcf(load("planar_2r"), actuators=True)
