"""The status of a step is that of a linear program: attainable requests are met, others named.

Requests lie on rays from the middle of what is attainable, at known distances from its border.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from attainable_requests import State
from caspr_samples import SHARED, needs_caspr_models
from control_robots import Motion, hanging_platform, model_of, step

from cards_core.control import ControlStatus, CtcJoint, CtcOperational, ctc_operational
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.caspr import import_caspr
from cards_core.spatial import matrix_quaternion

STATES = 16
BORDER = 1e-5
"""Distance from the border, relative to the ray, within which requests are not judged."""

FACTORS = (0.4, 0.9, 1 - 1e-2, 1 - 1e-3, 1 - BORDER, 1 + BORDER, 1 + 1e-3, 1 + 1e-2, 2.0, 20.0)

SHIPPED = {
    "spherical_2s": ("xyz", False),  # the tip stays on a sphere: rank two of three
    "bm_arm": ("xyz", False),
    "roboy_arm": ("xyz", False),
    "ipanema_1": ("xyz", False),
    "ipanema_1 pose": ("xyz", True),
    "planar_2r": ("xz", False),
    "planar_2r x": ("x", False),
    "wrap_elbow": ("xz", False),  # one joint, two axes
    "snake_24": ("xyz", False),
    "planar_xy": ("xy", False),
    "antagonist_joint": ("x", False),
    "hanging_platform": ("xyz", True),
}
"""Axes and orientation of the task, by robot; redundant and not, with and without limits."""

CASPR = {
    "BMArm": ("xy", False),
    "RoboyLeftArm": ("xyz", False),
    "4U_modular_units_arm": ("xyz", False),
    "BioBiped": ("xz", False),
    "CAREX": ("xyz", False),
    "CAROCA": ("xyz", True),
    "Myorob_shoulder": ("", True),
    "Example_2S": ("xyz", False),
    "test_MCDM": ("xyz", False),
}


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """Not damped near singular poses, where what is attainable is not all done."""
    monkeypatch.setattr(ctc_operational, "NEAR_SINGULAR", 0.0)


@cache
def dynamics_of(name):
    name = name.split()[0]
    if name == "hanging_platform":
        return make_dynamics(hanging_platform(), "numeric")
    if name in CASPR:
        folder = next(SHARED.rglob(f"{name}_bodies.xml")).parent
        return make_dynamics(import_caspr(folder).robot, "numeric")
    return make_dynamics(load(name).commanded(), "numeric")


def frame_of(robot):
    return robot.operational_frame or robot.links[-1].name


def random_state(tree, rng, speed):
    """A state about the home, within the limits."""
    q = tree.integrate(tree.home, rng.uniform(-0.3, 0.3, tree.nv))
    for node in tree.nodes:
        if node.kind != "ball":
            low, up = tree.lower[node.q], tree.upper[node.q]
            if np.isfinite(up - low):
                q[node.q] = np.clip(q[node.q], low + 0.15 * (up - low), up - 0.15 * (up - low))
    return q, speed * rng.normal(size=tree.nv)


def ask(item, state, command, rows):
    """One step whose commanded acceleration is ``command``: no error, no rate of error."""
    at = state.position[[i for i in rows if i < 3]]
    if 3 in rows:
        at = np.concatenate([at, matrix_quaternion(state.rotation)])
    size = len(item.reference_names)
    item.set_reference(Motion(size, lambda t: (at, state.rates, command)))
    return step(item, 0.0, state.q, state.qd)


def missing(state, out, command):
    return np.linalg.norm(state.B @ out.tensions + state.d - command)


def check_operational(name, axes, orientation):
    dynamics = dynamics_of(name)
    tree, frame = dynamics.tree, frame_of(dynamics.robot)
    rows = ["xyz".index(c) for c in axes] + ([3, 4, 5] if orientation else [])
    item = CtcOperational(model_of(dynamics), frame=frame, axes=axes, orientation=orientation)
    rng = np.random.default_rng(5)
    done = 0
    for _ in range(4 * STATES):
        q, qd = random_state(tree, rng, 0.1)
        state = State(dynamics, q, qd, frame, rows)
        inside = state.inside()
        if inside is None:
            continue
        other = rng.uniform(state.low_f, state.reach)
        direction = state.B @ (other - inside)
        far = state.border(inside, direction)
        free = state.border(inside, direction, limits=False)
        assert 0.0 < far < np.inf
        middle = state.B @ inside + state.d
        for factor in rng.permutation(FACTORS):
            reach = factor * far
            command = middle + reach * direction
            out = ask(item, state, command, rows)
            lacks = missing(state, out, command)
            if factor < 1.0:
                assert out.status is ControlStatus.OK
                assert lacks <= 1e-6 * np.linalg.norm(command)
            elif reach < free * (1 - BORDER):
                assert out.status is ControlStatus.JOINT_LIMIT
            elif reach > free * (1 + BORDER):
                assert out.status is ControlStatus.INFEASIBLE
            else:  # the joints' limits and the tensions' end at the same place
                assert out.status in (ControlStatus.JOINT_LIMIT, ControlStatus.INFEASIBLE)
            assert out.residual == pytest.approx(lacks, rel=1e-4, abs=1e-6 * abs(command).max())
            assert np.all((out.tensions >= state.low_f) & (out.tensions <= state.up_f))
        done += 1
        if done == STATES:
            return
    raise AssertionError(f"{done} states of {name} have room within their limits")


@pytest.mark.parametrize("name", SHIPPED)
def test_status_of_a_task_is_that_of_a_linear_program(name):
    check_operational(name, *SHIPPED[name])


@needs_caspr_models
@pytest.mark.parametrize("name", CASPR)
def test_status_of_a_task_is_that_of_a_linear_program_for_caspr_robots(name):
    check_operational(name, *CASPR[name])


@pytest.mark.parametrize("name", [name for name in SHIPPED if " " not in name])
def test_status_of_joint_accelerations_is_that_of_a_linear_program(name):
    dynamics = dynamics_of(name)
    tree = dynamics.tree
    item = CtcJoint(model_of(dynamics))
    rng = np.random.default_rng(6)
    for _ in range(STATES):
        q, qd = random_state(tree, rng, 0.1)
        state = State(dynamics, q, qd)
        inside = state.inside()
        direction = state.B @ (rng.uniform(state.low_f, state.reach) - inside)
        far = state.border(inside, direction)
        # muscles without an upper limit may do any amount of it
        endless = far == np.inf
        far = 1.0 if endless else far
        for factor in rng.permutation(FACTORS):
            command = state.B @ inside + state.d + factor * far * direction
            item.set_reference(Motion(tree.nq, lambda t, s=(q, qd, command): s))
            out = step(item, 0.0, q, qd)
            good = factor < 1.0 or endless
            assert out.status is (ControlStatus.OK if good else ControlStatus.INFEASIBLE)
            if good:
                assert missing(state, out, command) <= 1e-6 * np.linalg.norm(command)


@pytest.mark.parametrize("name", ["bm_arm", "planar_2r", "spherical_2s", "roboy_arm"])
def test_joint_limits_that_cannot_be_kept_yield_least_and_the_task_after_them(name):
    """Fast towards a limit: what the muscles can do is known from SciPy's least squares."""
    axes, orientation = SHIPPED[name]
    dynamics = dynamics_of(name)
    tree, frame = dynamics.tree, frame_of(dynamics.robot)
    rows = ["xyz".index(c) for c in axes]
    item = CtcOperational(model_of(dynamics), axes=axes, orientation=orientation)
    rng = np.random.default_rng(7)
    count = 0
    for _ in range(200):
        q, qd = random_state(tree, rng, 10.0 ** rng.uniform(0.5, 1.5))
        state = State(dynamics, q, qd, frame, rows)
        if state.solve(np.zeros(state.low_f.size)) is not None:
            continue  # the limits can be kept
        z = state.exceeded()
        least = np.linalg.norm(z - np.clip(z, state.low, state.up))
        if least < 1e-3 * np.linalg.norm(z):
            continue
        limits = state.low.copy(), state.up.copy()
        state.low, state.up = np.minimum(state.low, z), np.maximum(state.up, z)
        spare = 1e-6 * np.abs(z).max()  # least squares and linear programs round differently
        cost = rng.normal(size=state.low_f.size) / state.unit
        ends = [state.solve(c, spare=spare) * state.unit for c in (cost, -cost)]
        middle = state.B @ (0.5 * (ends[0] + ends[1])) + state.d
        direction = state.B @ (ends[1] - ends[0])
        room = np.linalg.norm(direction) > 1e-2 * np.linalg.norm(middle)
        if room:
            command = middle + 0.3 * direction
        else:  # what slows the joints most leaves the task no choice
            command = middle + rng.normal(size=len(rows)) * np.linalg.norm(middle)
        out = ask(item, state, command, rows)
        if room:
            assert out.status is ControlStatus.OK
        else:
            assert out.status in (ControlStatus.JOINT_LIMIT, ControlStatus.INFEASIBLE)
        # whatever the task wants, the limits are exceeded by the least amount
        reached = state.C @ out.tensions + state.e
        excess = np.linalg.norm(reached - np.clip(reached, *limits))
        assert excess <= least + 1e-4 * np.linalg.norm(z)
        count += 1
        if count == 10:
            break
    assert count > 0


@pytest.mark.parametrize("factor", [2.0**-20, 1e-3, 1e3, 2.0**20])
@pytest.mark.parametrize("name", ["spherical_2s", "roboy_arm", "ipanema_1"])
def test_the_unit_of_force_decides_nothing(name, factor):
    """Masses and tension limits times a number: the same accelerations, the same statuses."""
    dynamics = dynamics_of(name)
    robot, tree = dynamics.robot, dynamics.tree
    links = tuple(
        replace(
            link,
            inertia=replace(
                link.inertia,
                mass=factor * link.inertia.mass,
                tensor=factor * link.inertia.tensor,
            ),
        )
        for link in robot.links
    )
    muscles = tuple(
        replace(m, tension_min=factor * m.tension_min, tension_max=factor * m.tension_max)
        for m in robot.muscles
    )
    scaled = make_dynamics(replace(robot, links=links, muscles=muscles), "numeric")
    axes = SHIPPED[name][0]
    rows, frame = ["xyz".index(c) for c in axes], frame_of(robot)
    items = [
        CtcOperational(model_of(dynamics), axes=axes),
        CtcOperational(model_of(scaled), axes=axes, force_weight=1e-4 / factor**2),
    ]
    joints = [CtcJoint(model_of(dynamics)), CtcJoint(model_of(scaled))]
    rng = np.random.default_rng(8)
    for _ in range(5):
        q, qd = random_state(tree, rng, 0.1)
        state = State(dynamics, q, qd, frame, rows)
        inside = state.inside()
        direction = state.B @ (rng.uniform(state.low_f, state.reach) - inside)
        far = state.border(inside, direction)
        for part in (0.9, 1 - 1e-4, 1 + 1e-4, 2.0):
            command = state.B @ inside + state.d + part * far * direction
            one, two = (ask(item, state, command, rows) for item in items)
            assert two.status is one.status
            assert two.residual == pytest.approx(one.residual, rel=1e-3, abs=1e-6)
            if part == 0.9:
                np.testing.assert_allclose(
                    two.tensions, factor * one.tensions, rtol=1e-6, atol=1e-6 * factor
                )
            qdd = 10.0 * part * rng.normal(size=tree.nv)
            for item in joints:
                item.set_reference(Motion(tree.nq, lambda t, s=(q, qd, qdd): s))
            one, two = (step(item, 0.0, q, qd) for item in joints)
            assert two.status is one.status


def test_a_limit_that_stands_for_none_changes_no_status_of_a_robot_without_weight():
    robot = load("planar_xy")  # its gravity is normal to its plane
    found = []
    for limit in (1e5, 1e10):
        muscles = tuple(replace(m, tension_min=0.0, tension_max=limit) for m in robot.muscles)
        dynamics = make_dynamics(replace(robot, muscles=muscles), "numeric")
        item = CtcOperational(model_of(dynamics), axes="xy", kp=0.0, kd=1.0)
        rng = np.random.default_rng(0)
        statuses = []
        for _ in range(200):
            q, qd = dynamics.tree.random(rng), 0.1 * rng.normal(size=dynamics.tree.nv)
            statuses.append(step(item, 0.0, q, qd).status)
            item.reset()
        found.append(statuses)
    assert found[0] == found[1]
