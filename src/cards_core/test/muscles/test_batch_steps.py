"""Robots stepped side by side: against plain NumPy, in closed form, and against themselves."""

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.muscles.batch_steps import LIMIT_TIME, BatchSteps, obstacle_to_batches
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

DT = 1e-3


def by_numpy(robot, q, qd, steps, *, tension, mass=1.0, arm=1.0, law=None):
    """Take the steps one by one with the numeric backend; the equations as they are written."""
    dynamics = make_dynamics(robot, "numeric")
    tree = robot.tree
    home = dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths.copy()
    for _ in range(steps):
        state = dynamics.update(q, qd)
        length = home + arm * (state.muscle_lengths - home)
        jacobian = np.reshape(arm, (-1, 1)) * state.muscle_jacobian
        pull = tension.copy()
        if law is not None:
            stiffness, damping, floor, rest, rate = law
            pull = np.maximum(
                floor, pull + stiffness * (length - rest) + damping * (jacobian @ qd - rate)
            )
        pull = np.clip(
            pull, [m.tension_min for m in robot.muscles], [m.tension_max for m in robot.muscles]
        )
        push = mass * (state.coriolis + state.gravity) + jacobian.T @ pull
        matrix = mass * state.mass_matrix
        beyond = np.maximum(0.0, q - tree.upper) - np.maximum(0.0, tree.lower - q)
        inertia = np.where(beyond != 0.0, np.diag(matrix), 0.0)
        left = matrix + np.diag(inertia * (2.0 * DT / LIMIT_TIME + (DT / LIMIT_TIME) ** 2))
        right = matrix @ qd - DT * push - DT * inertia * beyond / LIMIT_TIME**2
        qd = np.linalg.solve(left, right)
        q = q + DT * qd
    return q, qd


@pytest.mark.parametrize("name", ["roboy_arm", "planar_2r"])
def test_a_step_is_that_of_its_equations(name):
    """Four hundred steps, joint limits included."""
    robot = load(name)
    rng = np.random.default_rng(3)
    m, n = len(robot.muscles), 5
    batch = BatchSteps(robot, n, threads=1)
    low = np.array([muscle.tension_min for muscle in robot.muscles])
    tension = low + rng.uniform(0.0, 40.0, (n, m))
    mass, arm = rng.uniform(0.9, 1.1, n), rng.uniform(0.95, 1.05, (n, m))
    batch.inputs["tension"][:], batch.inputs["arm_factor"][:] = tension, arm
    batch.inputs["mass_factor"][:, 0] = mass
    batch.advance(400)
    beyond = False
    for i in range(n):
        q, qd = by_numpy(
            robot, robot.tree.home, np.zeros(robot.tree.nv), 400,
            tension=tension[i], mass=mass[i], arm=arm[i],
        )  # fmt: skip
        assert batch.inputs["q"][i] == pytest.approx(q, abs=1e-9)
        assert batch.inputs["qd"][i] == pytest.approx(qd, abs=1e-7)
        beyond |= bool(((q > robot.tree.upper) | (q < robot.tree.lower)).any())
    assert name != "roboy_arm" or beyond  # the arm falls on a limit
    assert (batch.taken == 400).all()


def test_the_impedance_law():
    robot = load("planar_2r")
    rng = np.random.default_rng(4)
    m = len(robot.muscles)
    batch = BatchSteps(robot, 2, threads=1)
    start = batch.look()["lengths"].copy()
    rest = start + rng.uniform(-0.02, 0.02, (2, m))
    law = (800.0, 20.0, 5.0, rest[1], 0.01)
    inputs = batch.inputs
    inputs["tension"][:], inputs["rest_length"][:], inputs["rest_rate"][:] = 30.0, rest, 0.01
    inputs["stiffness"][:], inputs["damping"][:], inputs["floor"][:] = law[:3]
    batch.advance(200)
    q, qd = by_numpy(robot, robot.tree.home, np.zeros(2), 200, tension=np.full(m, 30.0), law=law)
    assert inputs["q"][1] == pytest.approx(q, abs=1e-10)
    assert inputs["qd"][1] == pytest.approx(qd, abs=1e-9)


def spinning():
    """A free top on a ball joint without gravity, and a cable that pulls through its centre."""
    ball = Joint("ball", "ball", WORLD, "top")
    top = Link("top", Inertia(2.0, np.zeros(3), np.diag([0.02, 0.03, 0.04])))
    ends = (ViaPoint(WORLD, np.array([0.0, 0.0, 1.0])), ViaPoint("top", np.zeros(3)))
    muscle = Muscle("cable", ends, tension_min=1.0, tension_max=10.0)
    return Robot("top", (top,), (ball,), muscles=(muscle,), gravity=np.zeros(3))


def test_a_ball_joint_turns_as_a_free_top():
    """Angular momentum and energy are those of the start up to the order of the step."""
    robot, drift = spinning(), []
    for dt in (1e-3, 5e-4):
        batch = BatchSteps(robot, 1, dt=dt, threads=1)
        batch.inputs["qd"][:] = start = np.array([1.0, 2.0, -1.5])
        tensor = np.array([0.02, 0.03, 0.04])
        energy = 0.5 * np.sum(tensor * start**2)
        batch.advance(round(0.5 / dt))
        quaternion, spin = batch.inputs["q"][0], batch.inputs["qd"][0]
        assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-12)
        w, x = quaternion[0], quaternion[1:]
        own = tensor * spin
        world = own + 2.0 * np.cross(x, np.cross(x, own) + w * own)
        drift.append(np.abs(world - tensor * start).max())
        assert 0.5 * np.sum(tensor * spin**2) == pytest.approx(energy, rel=2e-3)
    assert drift[0] < 1e-3
    assert drift[1] == pytest.approx(0.5 * drift[0], rel=0.1)  # first order


@pytest.mark.parametrize("count", [1, 3, 64, 131])
def test_results_do_not_depend_on_threads_or_company(count):
    robot = load("roboy_arm")
    tension = np.random.default_rng(5).uniform(10.0, 100.0, (131, len(robot.muscles)))

    def run(n, threads, parts):
        batch = BatchSteps(robot, n, threads=threads)
        batch.inputs["tension"][:] = tension[:n]
        for steps in parts:
            batch.advance(steps)
        return batch.inputs["q"].copy(), batch.tensions.copy()

    q, pull = run(131, 1, [50])
    for threads, parts in ((1, [50]), (2, [50]), (3, [20, 30])):
        other = run(count, threads, parts)
        assert other[0].tobytes() == q[:count].tobytes()
        assert other[1].tobytes() == pull[:count].tobytes()


def test_one_that_diverges_stands_still_and_the_others_go_on():
    robot = load("planar_2r")
    batch = BatchSteps(robot, 3, threads=1)
    batch.inputs["most"][1] = batch.inputs["tension"][1] = 1e14
    batch.advance(20)
    assert batch.alive.tolist() == [1, 0, 1]
    assert batch.taken[1] < 20
    assert np.isfinite(batch.inputs["q"]).all()
    assert batch.inputs["q"][0].tobytes() == batch.inputs["q"][2].tobytes()
    # and stays where it is whatever it is told then
    place, taken = batch.inputs["q"][1].copy(), batch.taken[1]
    batch.inputs["most"][1], batch.inputs["tension"][1] = 100.0, 20.0
    batch.advance(20)
    assert batch.alive.tolist() == [1, 0, 1]
    assert (batch.inputs["q"][1] == place).all()
    assert batch.taken.tolist() == [40, taken, 40]


def slider(**more):
    link = Link("cart", Inertia(2.0, np.zeros(3), np.eye(3)))
    axis = JointAxis(np.array([1.0, 0.0, 0.0]), -0.5, 0.5, **more)
    joint = Joint("slide", "prismatic", WORLD, "cart", axes=(axis,))
    ends = (ViaPoint(WORLD, np.array([1.0, 0.0, 0.0])), ViaPoint("cart", np.zeros(3)))
    return Robot("slider", (link,), (joint,), muscles=(Muscle("rope", ends, 0.0, 50.0),))


def test_damping_and_limits_of_a_joint_in_closed_form():
    batch = BatchSteps(slider(damping=4.0), 1, threads=1)
    batch.inputs["tension"][:] = 8.0
    batch.advance(100)
    # v+ = (m v + dt F)/(m + dt d)
    shrink = 2.0 / (2.0 + DT * 4.0)
    assert batch.inputs["qd"][0, 0] == pytest.approx(2.0 * (1.0 - shrink**100), rel=1e-12)
    batch.advance(5000)
    # F = K d with K = m/t^2
    assert batch.inputs["q"][0, 0] - 0.5 == pytest.approx(8.0 * LIMIT_TIME**2 / 2.0, rel=1e-9)
    assert batch.inputs["qd"][0, 0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("robot", "why"),
    [
        (lambda: load("wrap_elbow"), "muscle 'biceps' is no ideal cable"),
        (lambda: load("musashi_like"), "has a motor"),
        (lambda: slider(friction=1.0), "joints have dry friction"),
    ],
)
def test_what_cannot_be_stepped_here_says_why(robot, why):
    assert why in obstacle_to_batches(robot())
    with pytest.raises(DescriptionError, match=why):
        BatchSteps(robot(), 2)


def test_arguments_out_of_range():
    robot = slider()
    for bad in ({"count": 0}, {"count": 2, "dt": np.nan}, {"count": 2, "threads": -1}):
        with pytest.raises(CardsError):
            BatchSteps(robot, **bad)
