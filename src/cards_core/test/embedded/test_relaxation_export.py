"""Exported muscle relaxation control: commands of the Python form, over whole runs."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from control_robots import Motion, ball_arm, planar_2r, roboy_arm
from exported_controller import FLAGS, ExportedRelaxation, compiler

from cards_core.body_image.geometric import GeometricBodyImage, Stretch
from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.control.mrc.relaxation import RelaxationOptions
from cards_core.embedded import NotExportableError, export_controller, write_controller
from cards_core.embedded.folder import ARM, microcontroller_report
from cards_core.formats import load
from cards_core.robot.actuators import ImpedanceControl
from cards_core.robot.state import RobotState

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

TOLERANCE = 1e-12
"""Relative to the largest."""


def held(robot, stiffness=2e4):
    """The same robot with muscles that are held by lengths."""
    law = ImpedanceControl(stiffness=stiffness, damping=50.0, tension_floor=10.0)
    return replace(robot, muscles=tuple(replace(m, control=law) for m in robot.muscles))


CASES = {
    "arm": (lambda: held(roboy_arm()), {}),
    "planar": (lambda: held(planar_2r()), {}),
    "musashi": (lambda: load("musashi_like"), {}),
    "ties": (
        lambda: held(roboy_arm()),
        {"options": RelaxationOptions(ties="tension", hold=0.05, resume=0.5, dtheta_max=0.02)},
    ),
    "held": (lambda: held(roboy_arm()), {"relaxation": False}),
}

STATUS = {
    0: ControlStatus.OK,
    1: ControlStatus.INFEASIBLE,
    2: ControlStatus.FALLBACK,
    3: ControlStatus.INVALID_STATE,
}


def pair(name, folder, extra=()):
    make, parameters = CASES[name]
    theirs = make_controller("mrc", make(), **parameters)
    theirs.step_in_python()
    return ExportedRelaxation(theirs, folder, extra), theirs


def same(a, b):
    atol = TOLERANCE * float(np.nanmax(np.abs(b), initial=0.0))
    np.testing.assert_allclose(a, b, rtol=0.0, atol=atol)


def compare(ours, theirs, state, pose=None):
    """Step both and compare all that is told; return the status."""
    (told,) = theirs.step(state)
    status = STATUS[ours.step(state, pose)]
    assert status is theirs.output.status
    found = ours.command
    same(found["tensions"], told.values)
    same(found["lengths"], told.rest_lengths)
    same(found["wanted"], theirs.output.tensions)
    same(found["necessary"], theirs.necessary)
    same(found["released"], theirs.state.dl)
    residual = float(theirs.output.residual)
    np.testing.assert_allclose(found["residual"], residual, rtol=1e-9, atol=1e-9)
    return status


def measured(controller, time, q, rng, temperatures=True):
    """A state whose tensions are anything, with lengths of the pose."""
    tree, m = controller.block_parts.dynamics.tree, controller.output.tensions.size
    lengths = controller.image.evaluate(q, np.zeros(m))[0].copy()
    return RobotState(
        time,
        q.copy(),
        0.1 * rng.standard_normal(tree.nv),
        muscle_lengths=lengths + 1e-4 * rng.standard_normal(m),
        muscle_rates=0.01 * rng.standard_normal(m),
        tensions=rng.uniform(0.0, 200.0, m),
        temperatures=rng.uniform(30.0, 65.0, m) if temperatures else None,
    )


@pytest.mark.parametrize("name", CASES)
def test_commands_are_those_of_python_at_rest_and_in_motion(name, tmp_path):
    ours, theirs = pair(name, tmp_path)
    tree, rng = theirs.block_parts.dynamics.tree, np.random.default_rng(1)
    pose, time, released = tree.home.copy(), 0.0, 0.0
    theirs.set_reference(Motion(tree.nq, lambda t: (pose, 0.0 * pose, 0.0 * pose)))
    for k in range(1200):
        time += float(rng.choice([0.001, 0.002, 0.008]))
        if 500 <= k < 600:  # it moves, and comes to rest elsewhere
            pose += 1e-3 * rng.standard_normal(tree.nv)
        q = tree.integrate(pose, 2e-3 * rng.standard_normal(tree.nv))
        status = compare(ours, theirs, measured(theirs, time, q, rng, k % 7 > 0), pose)
        assert status is ControlStatus.OK
        released = max(released, float(ours.command["released"].sum()))
        if k == 900:
            theirs.reset()
            ours.library.cards_reset()
    assert (released > 1e-3) == (name != "held")


def test_sensors_that_are_lost_poses_and_times_that_are_none(tmp_path):
    ours, theirs = pair("arm", tmp_path)
    tree, rng = theirs.block_parts.dynamics.tree, np.random.default_rng(2)
    pose = tree.home.copy()
    theirs.set_reference(Motion(tree.nq, lambda t: (pose, 0.0 * pose, 0.0 * pose)))
    time, seen = 0.0, set()
    for k in range(1500):
        time += 0.002 if k % 300 != 299 else 0.5  # and once in a while none comes for long
        if k % 410 == 409:
            time -= 0.3  # its clock was set back
        q = tree.integrate(pose, 2e-3 * rng.standard_normal(tree.nv))
        state = measured(theirs, time, q, rng)
        lost = rng.integers(0, 11, 3)
        state.tensions[lost[0]] = math.nan
        state.muscle_lengths[lost[1]] = math.nan
        state.muscle_rates[lost[2]] = [math.nan, math.inf, -math.inf][k % 3]
        if k % 5 == 0:
            state.temperatures[lost[0]] = math.nan
        if 400 <= k < 500 or k % 97 == 5:
            state.q[1] = math.nan
        if k % 131 == 7:
            state.qd[0] = math.inf
        if k % 151 == 9:
            state.time = [math.nan, math.inf, -math.inf][k % 3]
        seen.add(compare(ours, theirs, state, pose))
    assert seen == {ControlStatus.OK, ControlStatus.INVALID_STATE}


def test_a_motor_that_was_too_hot_lets_all_go_even_after_a_reset(tmp_path):
    ours, theirs = pair("musashi", tmp_path)
    tree, rng = theirs.block_parts.dynamics.tree, np.random.default_rng(3)
    for k in range(300):
        state = measured(theirs, 0.008 * k, tree.home, rng)
        if k == 100:
            state.temperatures[4] = 85.0
        status = compare(ours, theirs, state)
        assert (status is ControlStatus.INFEASIBLE) == (k >= 100)
        if k == 200:
            theirs.reset()
            ours.library.cards_reset()


@pytest.mark.parametrize("gap", [0.0, 0.5, -100.0])
def test_after_a_gap_or_a_release_muscles_are_taken_up_step_by_step(gap, tmp_path):
    ours, theirs = pair("musashi", tmp_path)
    tree = theirs.block_parts.dynamics.tree
    lengths = theirs.image.evaluate(tree.home, np.zeros(20))[0]
    still = {"muscle_lengths": lengths, "muscle_rates": np.zeros(20)}

    def pull(tensions):
        command, law = ours.command, theirs._hand_over
        wanted = command["tensions"] + law._stiffness * (lengths - command["lengths"])
        return np.maximum(law._floor, wanted) - tensions

    tensions = np.full(20, 100.0)
    for k in range(300):
        state = RobotState(1000.0 + 0.008 * k, tree.home, np.zeros(10), tensions=tensions, **still)
        ours.step(state, tree.home)
        tensions = tensions + pull(tensions)
    before = tensions.copy()
    tensions = np.full(20, 10.0)
    if gap == 0.0:  # let go of, and the next state comes at once
        ours.library.cards_relax(ours.command.ctypes.data_as(ctypes.c_void_p))
        assert ours.command["status"] == 0
    now = state.time + 0.008 + gap
    ours.step(RobotState(now, tree.home, np.zeros(10), tensions=tensions, **still), tree.home)
    assert np.abs(pull(tensions)).max() < 2.0
    for k in range(1000):
        state = RobotState(now + 0.008 * k, tree.home, np.zeros(10), tensions=tensions, **still)
        assert ours.step(state, tree.home) == 0
        change = pull(tensions)
        assert np.abs(change).max() < 5.0
        tensions = tensions + change
    assert tensions.sum() > 0.5 * before.sum()


def test_without_a_pose_the_first_one_is_held(tmp_path):
    ours, theirs = pair("planar", tmp_path)
    tree, rng = theirs.block_parts.dynamics.tree, np.random.default_rng(4)
    for k in range(50):
        q = tree.integrate(tree.home, 0.05 * rng.standard_normal(tree.nv))
        compare(ours, theirs, measured(theirs, 0.004 * k, q, rng))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_the_example_holds_the_robot_and_releases_its_muscles(tmp_path):
    controller = make_controller("mrc", load("musashi_like"))
    folder = write_controller(export_controller(controller), tmp_path / "arm")
    done = subprocess.run(
        ["make", "-s", "run", "RUN_SECONDS=6.0"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(
        r"at most (\S+) rad.*released (\S+) m.*tensions (\S+) N, (\S+) N", done.stdout
    )
    moved, released, before, after = map(float, found.groups())
    assert moved < 0.1
    assert released > 0.01
    assert after < 0.7 * before
    assert "not OK: 0" in done.stdout


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_compilers_find_nothing_to_warn_of(name, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    for case, (make, parameters) in CASES.items():
        export = export_controller(make_controller("mrc", make(), **parameters))
        folder = write_controller(export, tmp_path / case)
        sources = ["-fsyntax-only", "controller.c", "model.c", "main.c"]
        subprocess.run([name, *FLAGS[:-1], *sources], cwd=folder, check=True)
        subprocess.run([name, "-std=gnu11", "-Wall", "-Werror", *sources], cwd=folder, check=True)
    fast = [name, "-ffast-math", *sources]
    refused = subprocess.run(fast, cwd=folder, capture_output=True, text=True, check=False)
    assert "compile without -ffast-math" in refused.stderr


def test_sanitizers_find_nothing(tmp_path):
    checks = ("-fsanitize=undefined,bounds", "-fno-sanitize-recover=all")
    try:
        ours, theirs = pair("arm", tmp_path, checks)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no sanitizers")
    tree, rng = theirs.block_parts.dynamics.tree, np.random.default_rng(5)
    for k in range(200):
        q = tree.integrate(tree.home, 0.5 * rng.standard_normal(tree.nv))
        if k % 20 == 7:
            q[0] = math.nan
        compare(ours, theirs, measured(theirs, 0.008 * k, q, rng))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: make_controller("mrc", held(ball_arm())), "ball joints or free links"),
        (
            lambda: make_controller("mrc", held(roboy_arm()), joint_angles="estimated"),
            "joint_angles: measured",
        ),
        (
            lambda: MuscleRelaxationControl(
                ControlModel(held(roboy_arm())),
                image=GeometricBodyImage(
                    held(roboy_arm()), Stretch(np.full(11, 1e-5), np.zeros(11))
                ),
            ),
            "body_image: geometric",
        ),
    ],
)
def test_what_has_no_form_in_c_is_refused(made, reason):
    with pytest.raises(NotExportableError, match=reason):
        export_controller(made())
    with pytest.raises(NotExportableError, match="expected: --precision double"):
        export_controller(make_controller("mrc", held(planar_2r())), precision="single")


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"no {ARM}")
def test_an_upper_body_fits_into_an_stm32f405():
    report = microcontroller_report(
        export_controller(make_controller("mrc", load("musashi_like")))
    )
    assert report["fits"]
    assert report["ram"] < 128 << 10
