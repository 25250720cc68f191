"""Robots as MuJoCo models of their own: tendons as long as the muscles, actuators that pull."""

import dataclasses
import functools

import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import known_models, load
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_sim.build import build_host
from cards_sim.export import exported_mjcf

ROBOTS = [name for name in known_models() if not has_rods(find_model(name))]


IDEAL = [
    "bm_arm",
    "ipanema_1",
    "musashi_like",
    "planar_2r",
    "planar_xy",
    "roboy_arm",
    "snake_24",
    "spherical_2s",
]
"""Robots of ideal cables: plain MuJoCo does what the embedded simulator does."""


@functools.cache
def exported(name):
    return exported_mjcf(load(name))


@pytest.mark.parametrize("name", ROBOTS)
def test_tendons_and_their_forces_are_those_of_the_muscles(name):
    robot = load(name)
    export = exported(name)
    model = mujoco.MjModel.from_xml_string(export.text)
    data = mujoco.MjData(model)
    tree, dynamics = robot.tree, make_dynamics(robot, "numeric")
    names = [muscle.name for muscle in robot.muscles]
    error, arm_error = np.full(len(names), 1e-9), np.full(len(names), 1e-9)
    for change in export.approximations:
        index = names.index(change.muscle)
        # the stated error is that of other poses
        error[index] = max(1e-9, 2.0 * change.length_error)
        arm_error[index] = max(1e-9, 2.0 * change.jacobian_error)
    assert [model.tendon(i).name for i in range(model.ntendon)] == names
    told = [muscle.name for muscle in robot.muscles if muscle.takes_tension]
    assert [model.actuator(i).name for i in range(len(told))] == told
    pull = np.zeros(len(names))
    for i, muscle in enumerate(robot.muscles):
        if muscle.takes_tension:
            pull[i] = min(muscle.tension_min + 1.0 + i, muscle.tension_max)
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = tree.home + 0.02 * rng.standard_normal(tree.nq)
        state = dynamics.update(q, np.zeros(tree.nv))
        data.qpos[:], data.qvel[:] = q, 0.0
        data.ctrl[: len(told)] = pull[[names.index(muscle) for muscle in told]]
        mujoco.mj_forward(model, data)
        assert np.all(np.abs(data.ten_length - state.muscle_lengths) <= error)
        wanted = -state.muscle_jacobian.T @ pull
        tolerance = max(1e-9 * max(1.0, pull.max(initial=0.0)), float(arm_error @ pull))
        np.testing.assert_allclose(data.qfrc_actuator, wanted, rtol=1e-7, atol=tolerance)


def test_all_muscles_but_one_over_an_ellipsoid_are_native():
    """The triceps of ``wrap_elbow``; of finite cylinders no end is reached."""
    errors = {
        (name, change.muscle): change.length_error
        for name in ROBOTS
        for change in exported(name).approximations
    }
    assert {key for key, error in errors.items() if error > 1e-9} == {("wrap_elbow", "triceps")}
    assert errors["wrap_elbow", "triceps"] < 1e-5


@pytest.mark.parametrize("name", IDEAL)
def test_a_controller_moves_it_in_mujoco_as_in_the_embedded_simulator(name):
    """``ctc_joint`` follows ``wiggle`` in both, each in a loop of its own."""
    robot = load(name)
    model = mujoco.MjModel.from_xml_string(exported(name).text)
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
    wanted = theirs.reference(host.state.time)[0]
    moved = np.abs(wanted - robot.tree.home).max()
    assert moved > 0.01
    assert np.abs(data.qpos - wanted).max() < 0.1 * moved
    np.testing.assert_allclose(data.qpos, host.state.q, atol=1e-6)


@pytest.mark.parametrize("name", ["antagonist_joint", "wrap_elbow"])
def test_a_controller_tracks_robots_of_other_muscles(name):
    """In the file their muscles are ideal sources of tension; one path is an approximation."""
    robot = load(name)
    model = mujoco.MjModel.from_xml_string(exported(name).text)
    data = mujoco.MjData(model)
    host = build_host(ParameterSet({"dt": model.opt.timestep}, "simulator"), robot)
    loop = make_control_loop(
        "ctc_joint", ParameterSet({"reference": "wiggle"}, "ctc_joint"), robot
    )
    data.qpos[:] = robot.tree.home
    moved = worst = 0.0
    for _ in range(1000):
        seen = dataclasses.replace(host.state, q=data.qpos.copy(), qd=data.qvel.copy())
        data.ctrl[:] = np.concatenate([part.values for part in loop.step(seen)])
        host.step()  # the clock
        mujoco.mj_step(model, data)
        wanted = loop.reference(host.state.time)[0]
        moved = max(moved, float(np.abs(wanted - robot.tree.home).max()))
        worst = max(worst, float(np.abs(wanted - data.qpos).max()))
    assert moved > 0.04
    assert worst < 1e-3


def test_actuators_need_tendons():
    with pytest.raises(CardsError, match="without tendons"):
        to_mjcf(load("planar_2r"), actuators=True)
