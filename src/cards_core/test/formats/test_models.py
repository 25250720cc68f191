"""The models that come with CARDS, against published numbers and closed forms."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.imports.inertias import mass_matrix_change
from cards_core.muscles.command import KINDS, NO_COMMAND
from cards_core.muscles.system import MuscleSystem
from cards_core.robot import inertia_problem

FROM_CASPR = ("planar_2r", "roboy_arm")
NAMES = (*FROM_CASPR, "wrap_elbow", "antagonist_joint")


@pytest.mark.parametrize("name", NAMES)
def test_models_are_complete(name):
    robot = load(name)
    assert robot.name == name
    assert all(inertia_problem(link.inertia) is None for link in robot.links)
    assert all(link.visuals for link in robot.links if link.name != "shoulder_2")
    assert robot.joint("base_to_world").parent == "world"
    assert robot.operational_frame
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    assert np.all(tree.lower < tree.home)
    assert np.all(tree.home < tree.upper)
    for muscle in robot.muscles:
        lowest = muscle.tension_min > 0 if muscle.kind == "cable" else muscle.tension_min == 0
        assert lowest
        assert muscle.tension_min < muscle.tension_max


def test_planar_2r_meets_the_reference_numbers():
    """CASPR's Example_2R_planar_XZ at one state, from an implementation of its own."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    state = dynamics.update(np.array([0.3, -0.5]), np.array([0.4, 0.2]))
    np.testing.assert_allclose(
        state.muscle_lengths, [0.75369104, 2.16708168, 1.0202365, 2.3073754], atol=1e-7
    )
    np.testing.assert_allclose(
        state.muscle_jacobian,
        [[-0.487413, 0], [-1.217714, -0.419965], [0.389038, 0], [1.117843, 0.701047]],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        state.mass_matrix, [[0.237758, 0.068879], [0.068879, 0.025]], atol=1e-6
    )
    np.testing.assert_allclose(state.coriolis, [0.00479426, -0.0038354], atol=1e-7)
    np.testing.assert_allclose(state.gravity, [-0.33741068, 0.09744731], atol=1e-7)


def test_planar_2r_repair_changed_the_mass_matrix_as_documented():
    import dataclasses

    robot = load("planar_2r")
    original = dataclasses.replace(
        robot,
        links=tuple(
            link
            if link.name == "base"
            else dataclasses.replace(
                link,
                inertia=dataclasses.replace(
                    link.inertia, tensor=np.diag([0.083333, 0.0, 0.083333])
                ),
            )
            for link in robot.links
        ),
    )
    assert mass_matrix_change(original, robot) == pytest.approx(8.3333e-8 / 0.025, rel=1e-4)


def test_planar_2r_data():
    robot = load("planar_2r")
    tip = make_dynamics(robot, "numeric").operational(np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(tip.position, [0, 0, 2], atol=1e-15)
    joint = robot.joint("joint_1").axes[0]
    assert (joint.lower, joint.upper) == (-3.1416, 3.1416)
    np.testing.assert_array_equal(joint.axis, [0, 1, 0])
    assert {(m.tension_min, m.tension_max) for m in robot.muscles} == {(10, 100)}


# CASPR's RoboyLeftArm, cable set DEFAULT: attachments as there, from the centre of mass.
UPPER, LOWER = (-0.05912, -0.006673, -0.1688), (-0.03277, 0.004782, -0.1547)
MUSCLES = {
    "motor0": ((0.2889, -0.01069, 0.5763), (0.05492, -0.01783, 0.1084)),
    "motor1": ((0.24, -0.02551, 0.4673), (0.0205, -0.01411, 0.1232)),
    "motor2": ((0.2512, -0.02867, 0.5146), (0.04424, -0.01015, 0.1094)),
    "motor3": ((0.2806, -0.02853, 0.558), (0.04607, -0.01201, 0.1274)),
    "motor4": ((0.3034, 7.361e-16, 0.5961), (0.06348, 0.005441, 0.1036)),
    "motor5": ((0.277, 0.0429, 0.5564), (0.04433, 0.02206, 0.1266)),
    "motor6": ((0.2476, 0.04291, 0.513), (0.04274, 0.01923, 0.1088)),
    "motor7": ((0.2362, 0.05006, 0.4656), (0.01999, 0.02368, 0.1228)),
    "motor8": ((0.2865, 0.02608, 0.5761), (0.05329, 0.02726, 0.1071)),
    "motor10": ((-0.04628, -0.04114, -0.06775), (0.03859, -0.02109, 0.1267)),
    "motor9": ((-0.05341, 0.02757, -0.09094), (0.0406, 0.03544, 0.1295)),
}


def test_roboy_arm_data():
    robot = load("roboy_arm")
    assert [m.name for m in robot.muscles] == list(MUSCLES)
    for muscle in robot.muscles:
        assert (muscle.tension_min, muscle.tension_max) == (10, 5000)
        start, end = (np.array(p) for p in MUSCLES[muscle.name])
        if muscle.path[0].link == "base":
            np.testing.assert_allclose(muscle.path[0].position, start, atol=1e-15)
            np.testing.assert_allclose(muscle.path[1].position, UPPER + end, atol=1e-16)
            assert muscle.path[1].link == "upper_arm"
        else:
            np.testing.assert_allclose(muscle.path[0].position, UPPER + start, atol=1e-16)
            np.testing.assert_allclose(muscle.path[1].position, LOWER + end, atol=1e-16)
            assert [p.link for p in muscle.path] == ["upper_arm", "lower_arm"]
    joints = [robot.joint(f"shoulder_axis_{i}") for i in (1, 2, 3)] + [robot.joint("elbow")]
    limits = [(j.axes[0].lower, j.axes[0].upper) for j in joints]
    assert limits == [(1.2, 1.7), (-3.142, 3.142), (-0.5, 0.5), (-1.57, 0)]
    axes = [(0.05101, -0.9984, 0.02231), (-0.9157, -0.03784, 0.4001),
            (-0.3986, -0.04084, -0.9162), (0.9171, -0.01288, -0.3984)]  # fmt: skip
    for joint, axis in zip(joints, axes, strict=True):
        np.testing.assert_allclose(
            joint.axes[0].axis, np.array(axis) / np.linalg.norm(axis), atol=1e-15
        )
    assert [robot.link(n).inertia.mass for n in ("shoulder_1", "upper_arm")] == [0.001, 1]
    np.testing.assert_array_equal(robot.link("lower_arm").inertia.com, LOWER)
    assert robot.operational_frame == "hand"


def test_roboy_arm_hand():
    robot = load("roboy_arm")
    dynamics = make_dynamics(robot, "numeric")
    still = np.zeros(4)
    home = dynamics.operational(dynamics.tree.home, still).position
    np.testing.assert_allclose(home, [0.45, -0.45, 0.45], atol=1e-6)
    # at CASPR's q_initial the marker of its first trajectory is near
    initial = dynamics.operational(np.array([1.2, 0, 0, -0.5]), still).position
    np.testing.assert_allclose(initial, [0.711, -0.398, 0.129], atol=5e-4)


# Models with wrapping muscles: one joint each, q is an angle ---------------------------------


def at(dynamics, q):
    return dynamics.update(np.array([q]), np.zeros(1))


def resting_torque(robot, q, kind, values):
    """Return the torque of muscles and gravity after the actuators have settled at an angle."""
    dynamics = make_dynamics(robot, "numeric")
    # without joints the bodies are held: nothing moves within a step
    system = MuscleSystem(dataclasses.replace(robot, joints=(), home={}), 0.02, "numeric")
    poses = dynamics.link_poses(np.array([q]))
    system.reset(poses)
    told = [KINDS.index(kind) if m.actuator.commands else NO_COMMAND for m in robot.muscles]
    for _ in range(40):
        state = system.step(
            poses,
            np.zeros((len(robot.links), 6)),
            (np.array([q]), np.zeros(1)),
            np.array(values),
            np.array(told),
        )
    found = at(dynamics, q)
    return float(-found.muscle_jacobian[:, 0] @ state.tensions - found.gravity[0])


def test_wrap_elbow_moment_arms():
    dynamics = make_dynamics(load("wrap_elbow"), "numeric")
    arms = {q: -at(dynamics, q).muscle_jacobian[:, 0] for q in (0.0, 0.1, 0.6, 1.0, 1.4, 2.0)}
    for biceps, triceps, capsule in arms.values():
        assert 0.019 < biceps < 0.05
        assert -0.035 < triceps < -0.02
        assert capsule > 0.0
    # on the trochlea the moment arm is its radius
    assert arms[0.0][0] == pytest.approx(0.02, abs=1e-9)
    assert arms[0.1][0] == pytest.approx(0.02, abs=1e-9)
    assert arms[0.6][0] > 0.03
    # free, the triceps' arm is the distance of its line from the elbow
    start, end = np.array([-0.02, 0.25]), np.array([-0.028, 0.012])
    line = (end - start) / np.linalg.norm(end - start)
    distance = abs(start[0] * line[1] - start[1] * line[0])
    assert arms[0.0][1] == pytest.approx(-distance, abs=1e-9)
    # on the ellipsoid it is between its semi-axes in the plane, and straight it would be less
    assert -0.024 < arms[2.0][1] < -0.022


def test_wrap_elbow_fibres_are_near_their_optimal_length():
    robot = load("wrap_elbow")
    dynamics = make_dynamics(robot, "numeric")
    for q in (0.0, 1.0, 2.0):
        lengths = at(dynamics, q).muscle_lengths
        for muscle, length in zip(robot.muscles[:2], lengths, strict=False):
            fibre = length - muscle.actuator.tendon_slack_length
            assert 0.6 < fibre / muscle.actuator.optimal_fiber_length < 1.3
    capsule = robot.muscle("capsule").actuator
    strains = [at(dynamics, q).muscle_lengths[2] / capsule.slack_length - 1 for q in (0.0, 0.1)]
    assert 0.0 < strains[0] < capsule.toe_strain
    assert strains[1] < 0.0


def test_wrap_elbow_holds_still_where_the_model_says():
    robot = load("wrap_elbow")
    for low, high, excitations in ((0.3, 0.6, [0.05, 0, 0]), (1.0, 1.16, [0.1, 0, 0])):
        below = resting_torque(robot, low, "excitation", excitations)
        above = resting_torque(robot, high, "excitation", excitations)
        assert below > above  # stable
        assert below > 0.0
    assert resting_torque(robot, 0.6, "excitation", [0.05, 0, 0]) < 0.0
    assert resting_torque(robot, 0.6, "excitation", [0.1, 0.3, 0]) < 0.0  # the triceps extends


def test_antagonist_joint_is_turned_by_the_difference_and_stiffened_by_the_mean():
    robot = load("antagonist_joint")
    dynamics = make_dynamics(robot, "numeric")
    for q in (-1.0, -0.4, 0.0, 0.7, 1.0):
        arms = -at(dynamics, q).muscle_jacobian[:, 0]
        np.testing.assert_allclose(arms, [0.03, -0.03], atol=1e-9)
    right, left = at(dynamics, 0.0).muscle_lengths
    assert right == pytest.approx(left, abs=1e-15)
    braid = right - robot.muscle("right").actuator.tendon_length
    assert 0.169 < braid < 0.172
    # Chou and Hannaford: F = p b^2 / (4 pi n^2) (3 L^2/b^2 - 1), dF/dL = 6 p L / (4 pi n^2)
    for pressure in (1.5e5, 3e5):
        h = 1e-3
        up, down = (resting_torque(robot, q, "pressure", [pressure, pressure]) for q in (h, -h))
        stiffness = -(up - down) / (2 * h)
        weight = 1.2 * 9.81 * 0.2
        expected = 2 * 0.03**2 * 6 * pressure * braid / (4 * np.pi * 1.35**2)
        assert stiffness - weight == pytest.approx(expected, rel=1e-3)
    assert resting_torque(robot, 0.35, "pressure", [4e5, 2e5]) > 0.0
    assert resting_torque(robot, 0.45, "pressure", [4e5, 2e5]) < 0.0


@pytest.mark.parametrize("name", NAMES)
def test_links_do_not_touch_each_other_within_the_limits(name):
    mujoco = pytest.importorskip("mujoco")
    from cards_core.formats.mjcf.writer import to_mjcf

    robot = load(name)
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT  # neighbours too
    data = mujoco.MjData(model)
    tree = make_dynamics(robot, "numeric").tree
    rng = np.random.default_rng(0)
    assert model.ngeom > (2 if name in FROM_CASPR else 0)
    for q in (tree.home, *(tree.random(rng) for _ in range(300))):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        assert data.ncon == 0, q


@pytest.mark.parametrize("name", FROM_CASPR)
def test_models_agree_with_the_import_of_caspr(name):
    shared = Path(__file__).resolve().parents[5] / "shared" / "caspr_models"
    if not shared.is_dir():
        pytest.skip(f"no CASPR models at {shared}")
    from cards_core.formats.caspr.importer import import_caspr

    folder = {"planar_2r": "Example_2R_planar_XZ", "roboy_arm": "RoboyLeftArm"}[name]
    found = next(shared.rglob(folder))
    ours = make_dynamics(load(name), "numeric")
    theirs = make_dynamics(import_caspr(found, feasibility=False).robot, "numeric")
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, qd = ours.tree.random(rng), rng.normal(size=ours.tree.nv)
        a, b = ours.update(q, qd), theirs.update(q, qd)
        np.testing.assert_allclose(a.muscle_lengths, b.muscle_lengths, atol=1e-14)
        np.testing.assert_allclose(a.muscle_jacobian, b.muscle_jacobian, atol=1e-14)
        np.testing.assert_allclose(a.mass_matrix, b.mass_matrix, atol=1e-6)
        np.testing.assert_allclose(a.coriolis, b.coriolis, atol=1e-6)
        np.testing.assert_allclose(a.gravity, b.gravity, atol=1e-13)
