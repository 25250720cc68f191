"""Batches: the same bytes as one robot, whatever the company; errors, noise, and mistakes."""

import dataclasses

import numpy as np
import pytest

import cards
from cards_core.errors import CardsError
from cards_core.muscles.command import CommandPart, command_of
from cards_core.robot.perturb import perturbed

FLAT = "flat:friction=0.5"


@pytest.fixture(scope="module")
def spine():
    return cards.load("prism_3")


@pytest.fixture(scope="module")
def arm():
    return cards.load("planar_2r")


def same(a, b, rows=slice(None)):
    for field in dataclasses.fields(a):
        left, right = getattr(a, field.name), getattr(b, field.name)
        assert left[rows].tobytes() == right[rows].tobytes(), field.name


def pulled(batch, scale=0.97):
    names = [muscle.name for muscle in batch.robot.muscles]
    taken = [names.index(name) for name in batch.muscles("impedance")]
    batch.command(np.zeros(len(taken)), rest_lengths=scale * batch.state.muscle_lengths[:, taken])


@pytest.mark.filterwarnings("ignore:'prism_3' has cables with contact:RuntimeWarning")
@pytest.mark.parametrize("contact", [False, True])
def test_one_of_a_batch_is_one_alone(spine, contact):
    """With contact cables too: the same bytes as the simulator's."""
    muscles = tuple(dataclasses.replace(m, contact=contact) for m in spine.muscles)
    robot = dataclasses.replace(spine, muscles=muscles)
    batch = cards.Batch(robot, 3, terrain=FLAT)
    assert batch.physics == "mujoco"
    pulled(batch)
    start = batch.state
    sim = cards.Simulator(robot, terrain=FLAT, command_timeout=3600.0)
    names = batch.muscles("impedance")
    rest = 0.97 * start.muscle_lengths[0]
    zero = np.zeros(len(names))
    sim.submit((CommandPart("impedance", names, zero, rest, zero),))
    for steps in (1, 7, 40):
        batch.step(steps)
        sim.steps(steps)
    state = batch.state
    for name in ("q", "qd", "muscle_lengths", "muscle_rates", "tensions"):
        for row in getattr(state, name):
            assert row.tobytes() == getattr(sim.state, name).tobytes()
    assert state.time == pytest.approx(0.048)


def test_threads_and_company_change_nothing(spine, arm):
    errors = cards.ModelErrors(mass=0.05, moment_arm=0.03, length_noise=1e-3, seed=4)
    for robot, terrain in ((spine, FLAT), (arm, None)):
        states = []
        for n, threads in ((4, 1), (4, 2), (2, 2)):
            batch = cards.Batch(robot, n, terrain=terrain, errors=errors, threads=threads)
            if terrain:
                pulled(batch)
            else:
                batch.command(np.full(len(arm.muscles), 20.0))
            batch.step(30)
            states.append(batch.state)
        same(states[0], states[1])
        for name in ("q", "tensions", "measured_lengths"):
            assert getattr(states[2], name).tobytes() == getattr(states[0], name)[:2].tobytes()
        assert len(np.unique(states[0].q, axis=0)) == 4  # each is another robot
        noise = states[0].measured_lengths - states[0].muscle_lengths
        assert 2e-4 < noise.std() < 2e-3
        assert states[0].measured_q.tobytes() == states[0].q.tobytes()


def test_generated_code_moves_an_arm_as_the_simulator_does(arm):
    """Until a joint limit or something else is touched: to rounding."""
    tensions = np.array([30.0, 22.0, 15.0, 28.0])
    batch = cards.Batch(arm, 2, dt=1e-3)
    assert batch.physics == "compiled"
    other = cards.Batch(arm, 2, dt=1e-3, physics="mujoco")
    sim = cards.Simulator(arm, dt=1e-3, command_timeout=3600.0)
    sim.submit(command_of(batch.muscles(), tensions))
    sim.steps(40)
    for one in (batch, other):
        one.command(tensions)
        one.step(40)
        assert one.state.q[1] == pytest.approx(sim.state.q, abs=1e-12)
        assert one.state.muscle_lengths[1] == pytest.approx(sim.state.muscle_lengths, abs=1e-12)
        assert one.state.tensions[1] == pytest.approx(sim.state.tensions, abs=1e-12)


def test_some_are_reset(spine, arm):
    for robot, terrain in ((spine, FLAT), (arm, None)):
        batch = cards.Batch(robot, 3, terrain=terrain)
        begin = batch.state
        batch.step(20)
        moved = batch.state
        batch.reset([1])
        state = batch.state
        assert state.time.tolist() == [0.02, 0.0, 0.02]
        assert state.q[1].tobytes() == begin.q[1].tobytes()
        assert state.q[[0, 2]].tobytes() == moved.q[[0, 2]].tobytes()
        batch.reset(np.array([True, True, True]))
        batch.step(20)
        assert batch.state.q.tobytes() == moved.q.tobytes()


def test_each_has_its_commands_and_its_start(arm):
    q = np.array([[0.3, 0.4], [0.1, 0.2], [0.3, 0.4]])
    batch = cards.Batch(arm, 3, q=q)
    assert batch.state.q.tobytes() == q.tobytes()
    tensions = np.tile([20.0, 20.0, 20.0, 20.0], (3, 1))
    tensions[1, 0] = 60.0
    batch.command(tensions)
    batch.step(10)
    state = batch.state
    assert state.tensions == pytest.approx(tensions)
    assert state.q[0].tobytes() == state.q[2].tobytes()


@pytest.mark.parametrize("physics", ["compiled", "mujoco"])
def test_one_that_diverges_is_told_and_left_alone(physics):
    robot = cards.load("planar_2r")
    strong = tuple(dataclasses.replace(m, tension_max=1e15) for m in robot.muscles)
    batch = cards.Batch(dataclasses.replace(robot, muscles=strong), 3, physics=physics)
    tensions = np.full((3, len(strong)), 20.0)
    tensions[1, 0] = 1e14
    batch.command(tensions)
    batch.step(10)
    batch.step(10)
    state = batch.state
    assert state.diverged.tolist() == [False, True, False]
    assert np.isfinite(state.q).all()
    assert state.time[0] == pytest.approx(0.02)
    assert state.time[1] < 0.02
    batch.reset(state.diverged)
    assert not batch.state.diverged.any()


def test_muscles_of_other_kinds():
    """Excitations, one for each muscle that takes them; passive ones take none."""
    robot = cards.load("wrap_elbow")
    batch = cards.Batch(robot, 2)
    names = batch.muscles("excitation")
    assert 0 < len(names) < len(robot.muscles)
    batch.command(np.array([[0.1] * len(names), [0.6] * len(names)]), kind="excitation")
    batch.step(50)
    pull = batch.state.tensions
    assert pull[1].sum() > pull[0].sum()


def test_mistakes_are_named(arm, spine):
    batch = cards.Batch(arm, 3)
    good = np.full(4, 20.0)
    nan = np.tile(good, (3, 1))
    nan[2, 1] = np.nan
    low = np.tile(good, (3, 1))
    low[1, 3] = -1.0
    name = arm.muscles
    for call, message in (
        (lambda: cards.Batch(arm, 0), "n is 0"),
        (lambda: cards.Batch(arm, 2, q=[0.1]), r"q has shape \(1,\)"),
        (lambda: cards.Batch(arm, 2, q=[0.1, np.nan]), "robot 0: q of .* is not finite"),
        (lambda: cards.Batch(arm, 2, physics="x"), "physics"),
        (lambda: cards.Batch(arm, 2, threads=0), "threads is 0"),
        (lambda: cards.Batch(spine, 2, physics="compiled"), "physics compiled for 'prism_3'"),
        (lambda: cards.Batch(arm, 2, terrain="nowhere"), "nowhere"),
        (lambda: cards.ModelErrors(mass=-0.1), "mass"),
        (lambda: cards.ModelErrors(moment_arm=1.0), "moment_arm is 1"),
        (lambda: cards.ModelErrors(seed=-1), "seed is -1"),
        (lambda: batch.command(good[:2]), r"values has shape \(2,\)"),
        (lambda: batch.command(nan), f"muscle '{name[1].name}' of robot 2 is nan"),
        (lambda: batch.command(low), f"robot 1: tension of muscle '{name[3].name}' is -1"),
        (lambda: batch.command(good, kind="excitation"), "takes the command 'excitation'"),
        (lambda: batch.command(good, rest_rates=good), "without rest_lengths"),
        (lambda: batch.command(good, kind="force", rest_lengths=good), "with 'force'"),
        (lambda: batch.step(0), "steps is 0"),
        (lambda: batch.reset([3]), "there is no robot 3"),
        (lambda: batch.reset([0.5]), "which has type float64"),
    ):
        with pytest.raises(CardsError, match=message):
            call()
    assert (batch.state.tensions == 0.0).all()  # nothing of it was applied
    batch.step(1)
    assert batch.state.tensions == pytest.approx(
        np.tile([m.tension_min for m in arm.muscles], (3, 1))
    )


def test_robots_begin_with_velocities(arm, spine):
    """As the simulator that begins so; those that are not named begin as before."""
    for robot, terrain in ((arm, None), (spine, FLAT)):
        rates = np.random.default_rng(0).uniform(-0.2, 0.2, (3, robot.tree.nv))
        batch = cards.Batch(robot, 3, terrain=terrain)
        batch.reset(qd=rates)
        batch.step(5)
        assert batch.state.time == pytest.approx(0.005)
        batch.reset([2], qd=np.zeros(robot.tree.nv))
        assert batch.state.qd[2].tolist() == [0.0] * robot.tree.nv
        batch.reset()
        assert batch.state.qd == pytest.approx(np.array([*rates[:2], 0.0 * rates[2]]))
        sim = cards.Simulator(robot, terrain=terrain, command_timeout=3600.0)
        sim.simulator.begin_at(robot.tree.home, rates[1])
        sim.reset()
        batch.step(20)
        sim.steps(20)
        assert batch.state.q[1] == pytest.approx(sim.state.q, abs=1e-12)


def test_masses_change_while_robots_move(arm):
    """A robot of twice the mass is that of a description with twice the mass."""
    heavy = perturbed(arm, mass_factor=2.0)
    q = np.array([0.4, -0.3])
    batch = cards.Batch(arm, 3, q=q)
    other = cards.Batch(heavy, 1, q=q)
    batch.scale_masses([1.0, 2.0, 1.0])
    for one in (batch, other):
        one.command([20.0, 30.0, 20.0, 25.0])
        one.step(30)
    assert batch.state.q[1] == pytest.approx(other.state.q[0], abs=1e-12)
    assert abs(batch.state.q[1] - batch.state.q[0]).max() > 1e-3
    before = batch.state
    batch.scale_masses(1.5)  # nothing jumps
    assert batch.state.qd.tobytes() == before.qd.tobytes()
    alone = cards.Batch(arm, 1, q=q)
    for one in (batch, alone):
        one.reset()
        one.command([20.0, 30.0, 20.0, 25.0])
        one.step(30)
    assert batch.state.q[1].tobytes() == alone.state.q[0].tobytes()  # a reset ends it


def test_some_muscles_are_told(arm):
    """The others keep what they were told, whoever steps the robots."""
    names = [muscle.name for muscle in arm.muscles]
    pulls = []
    for physics in ("compiled", "mujoco"):
        batch = cards.Batch(arm, 2, physics=physics)
        batch.command([20.0, 30.0, 40.0, 50.0])
        batch.command([[60.0, 70.0], [80.0, 90.0]], muscles=[names[3], names[1]])
        batch.step(3)
        pulls.append(batch.state.tensions)
    expected = [[20.0, 70.0, 40.0, 60.0], [20.0, 90.0, 40.0, 80.0]]
    assert pulls[0] == pytest.approx(np.array(expected))
    assert pulls[1] == pytest.approx(pulls[0])
    with pytest.raises(CardsError, match="no muscle that takes the command 'force' named 'tail'"):
        batch.command([1.0], muscles=["tail"])
    with pytest.raises(CardsError, match=f"values of muscle '{names[2]}' of robot 0 is nan"):
        batch.command([np.nan], muscles=[names[2]])
    for wrong in ([], [names[0], names[0]]):
        with pytest.raises(CardsError, match="each once"):
            batch.command(np.full(len(wrong), 20.0), muscles=wrong)
    low = [[20.0], [-1.0]]
    other = cards.Batch(arm, 2)
    with pytest.raises(CardsError, match=f"robot 1: tension of muscle '{names[2]}' is -1"):
        other.command(low, muscles=[names[2]])


def test_bad_velocities_and_masses_are_refused(arm, spine):
    batch = cards.Batch(arm, 3)
    standing = cards.Batch(spine, 1, terrain=FLAT)
    for call, message in (
        (lambda: batch.reset(qd=[0.0]), r"qd has shape \(1,\)"),
        (lambda: batch.reset(qd=[0.0, np.inf]), "robot 0: qd of '.*' is inf"),
        (lambda: batch.reset(qd=[[0.0, 0.0], [0.0, 1e12], [0.0, 0.0]]), "robot 1: qd of .* is 1e"),
        (lambda: batch.reset(q=[[0.1, 0.1], [0.1, 0.1], [np.nan, 0.1]]), "robot 2: q of"),
        (lambda: batch.scale_masses([1.0, 2.0]), r"factors has shape \(2,\)"),
        (lambda: batch.scale_masses([1.0, 0.0, 1.0]), "a factor is 0"),
        (lambda: batch.scale_masses(np.nan), "a factor is nan"),
        (lambda: standing.scale_masses(2.0), "that MuJoCo steps"),
    ):
        with pytest.raises(CardsError, match=message):
            call()
