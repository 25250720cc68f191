"""Stiff muscles on moving bodies: stable, passive, exact at rest, the same in both backends."""

import dataclasses
import math

import numpy as np
import pytest
from actuator_samples import BRAID, HILL

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import EXCITATION, FORCE, LENGTH, NO_COMMAND, PRESSURE
from cards_core.muscles.implicit import CREDIT, PAUSE, ImplicitTensions, joint_damping
from cards_core.robot.actuators import (
    Cable,
    Hill,
    Ligament,
    Pneumatic,
    SeriesElastic,
    Spring,
)
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from random_robots import random_robot

DT = 1e-3


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


def slide(*actuators, mass=2.0, gravity=0.0, home=0.3, least=0.0):
    """Return a mass on a slide that lengthens its muscles, which start at the origin."""
    link = Link("mass", Inertia(mass, np.zeros(3), 0.01 * np.eye(3)))
    axis = JointAxis(np.array([1.0, 0.0, 0.0]))
    path = (ViaPoint(WORLD, np.zeros(3)), ViaPoint("mass", np.zeros(3)))
    muscles = tuple(
        Muscle(f"m{i}", path, least, math.inf, item) for i, item in enumerate(actuators)
    )
    joint = Joint("slide", "prismatic", WORLD, "mass", axes=(axis,))
    pull = np.array([gravity, 0.0, 0.0])
    return Robot("slide", (link,), (joint,), muscles, home={"slide": (home,)}, gravity=pull)


def hinge(mass=0.05, radius=0.1):
    """Return a rod of a few grams with a wire to its end; at zero it is at dead centre."""
    inertia = mass * radius**2 / 12.0 * np.eye(3)
    link = Link("rod", Inertia(mass, np.array([0.5 * radius, 0.0, 0.0]), inertia))
    joint = Joint("hinge", "revolute", WORLD, "rod", axes=(JointAxis(np.array([0.0, 0.0, 1.0])),))
    path = (
        ViaPoint(WORLD, np.array([0.3, 0.0, 0.0])),
        ViaPoint("rod", np.array([-radius, 0.0, 0.0])),
    )
    wire = Muscle("wire", path, 0.0, math.inf, Cable())
    return Robot("hinge", (link,), (joint,), (wire,), gravity=np.zeros(3))


class Host:
    """Moves a robot by the semi-implicit Euler scheme that simulators use.

    Args:
        stop: Coordinate at which an inelastic stop holds the first joint.
    """

    def __init__(self, robot, dt=DT, backend="numeric", *, stop=math.inf, q=None, qd=None):
        self.robot, self.dt, self.stop = robot, dt, stop
        self.dynamics = make_dynamics(robot, backend)
        self.tree = self.dynamics.tree
        self.bank = ActuatorBank(robot, dt, backend)
        self.implicit = ImplicitTensions(robot, self.bank, dt, backend)
        self.damping = dt * np.diag(joint_damping(self.tree))
        self.q = np.array(self.tree.home if q is None else q, dtype=float)
        self.qd = np.zeros(self.tree.nv) if qd is None else np.array(qd, dtype=float)
        self.bank.reset(self.now().muscle_lengths.copy())
        count = len(robot.muscles)
        self.still = (np.full(count, NO_COMMAND), np.zeros(count))
        self.work = 0.0  # done on the muscles

    def now(self):
        return self.dynamics.update(self.q, self.qd)

    def step(self, kinds=None, values=None):
        told = self.still if kinds is None else (kinds, values)
        state = self.now()
        mass, jacobian = state.mass_matrix.copy(), state.muscle_jacobian.copy()
        bias, lengths = state.coriolis + state.gravity, state.muscle_lengths.copy()
        joints = (self.q, self.qd)
        tensions = self.implicit.step(lengths, jacobian @ self.qd, *told, joints).copy()
        force = mass @ self.qd - self.dt * (bias + jacobian.T @ tensions)
        speed = np.linalg.solve(mass + self.damping, force)
        if self.q[0] + self.dt * speed[0] > self.stop:
            speed[0] = (self.stop - self.q[0]) / self.dt
        self.work += 0.5 * self.dt * tensions @ jacobian @ (self.qd + speed)
        self.qd = speed
        self.q = self.tree.integrate(self.q, self.dt * speed)
        return tensions

    def kinetic(self):
        return 0.5 * self.qd @ self.now().mass_matrix @ self.qd

    def stretched(self):
        """Energy of cables by their lengths alone, [J]."""
        lengths = self.now().muscle_lengths
        rest = np.array([m.actuator.rest_length for m in self.robot.muscles])
        return float(np.sum(0.5 * self.bank.stiffness * np.maximum(lengths - rest, 0.0) ** 2))


# Stability -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actuator", "mass", "command", "weight"),
    [
        (Cable(stiffness=1e7, rest_length=0.2999), 0.05, (NO_COMMAND, 0.0), 20.0),
        (Cable(stiffness=1e5, damping=5e3, rest_length=0.2995), 0.2, (NO_COMMAND, 0.0), 20.0),
        (Ligament(stiffness=1e6, slack_length=0.2995), 0.05, (NO_COMMAND, 0.0), 20.0),
        (Hill(**HILL, tendon_strain=0.003), 0.2, (EXCITATION, 0.3), 300.0),
        (Hill(**HILL, tendon="rigid"), 0.2, (EXCITATION, 0.3), 300.0),
        (
            SeriesElastic(spring=Spring(law="polynomial", stiffness=2e6)),
            0.2,
            (FORCE, 100.0),
            100.0,
        ),
        (Pneumatic(**BRAID, tendon_length=0.05, friction=0.2), 0.2, (PRESSURE, 1e5), 150.0),
    ],
    ids=["cable", "damped", "ligament", "tendon", "rigid", "series_elastic", "pneumatic"],
)
def test_light_bodies_on_stiff_muscles_come_to_rest_at_1_khz(actuator, mass, command, weight):
    robot = slide(actuator, mass=mass, gravity=weight / mass, least=weight)
    host = Host(robot, backend="compiled")
    kinds, values = np.array([command[0]]), np.array([command[1]])
    last = []
    for _ in range(1500):
        tension = host.step(kinds, values)[0]
        last.append((host.q[0], host.qd[0], tension))
    length, speed, tension = np.array(last).T
    assert np.all(np.abs(speed[-200:]) < 4e-3)
    assert tension[-1] == pytest.approx(weight, rel=0.02)
    assert np.max(np.abs(length - 0.3)) < 0.1


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
@pytest.mark.parametrize(
    ("actuator", "mass", "command", "weight"),
    [
        (Pneumatic(**BRAID, tendon_length=0.05, friction=0.03), 3.0, (PRESSURE, 2e5), 30.0),
        (Hill(**HILL, tendon="rigid"), 5.0, (EXCITATION, 0.05), 60.0),
    ],
    ids=["pneumatic", "rigid"],
)
def test_muscles_stiff_by_their_damping_alone_err_by_one_constant_times_dt(
    actuator, mass, command, weight, backend
):
    """A scheme that damps their oscillation would err tens of times more."""
    robot = slide(actuator, mass=mass, gravity=weight / mass)
    found, stiff = {}, []
    for dt in (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3):
        host = Host(robot, dt, backend)
        told = (np.array([command[0]]), np.array([command[1]]))
        steps = round(0.2 / dt)
        stiff.append(np.mean([(host.step(*told), host.implicit.stiff)[1] for _ in range(steps)]))
        found[dt] = host.q[0]
    limit = 2.0 * found[1.25e-4] - found[2.5e-4]
    constants = np.array([(place - limit) / dt for dt, place in found.items()])
    assert stiff[0] == 0.0
    assert stiff[-1] == 1.0
    # the rate of the start and that of the end do not err by quite the same constant
    assert np.all(constants / constants[0] > 0.7)
    assert np.all(constants / constants[0] < 1.4)


def test_the_same_cable_with_the_tension_at_the_start_of_the_step_is_unstable():
    robot = slide(Cable(stiffness=1e7, rest_length=0.2999), mass=0.05, gravity=400.0)
    host = Host(robot)
    host.implicit.step = lambda *given: host.bank.step(*given[:4])
    for _ in range(500):
        host.step()
    assert abs(host.qd[0]) > 1.0


def test_stiff_tendon_at_1_khz_against_a_fine_step():
    robot = slide(Hill(**HILL, tendon_strain=0.01), mass=2.0, gravity=100.0)
    paths = {}
    for dt in (1e-3, 5e-5):
        host = Host(robot, dt)
        told = (np.array([EXCITATION]), np.array([0.5]))
        paths[dt] = np.array([(host.step(*told), host.q[0])[1] for _ in range(round(0.12 / dt))])
    coarse, fine = paths[1e-3], paths[5e-5][np.arange(1, 121) * 20 - 1]
    assert np.max(np.abs(fine - 0.3)) > 5e-3  # it moves
    assert np.max(np.abs(coarse - fine)) < 1.5e-3


@pytest.mark.parametrize(("stiffness", "home"), [(1e5, 0.0), (1e6, 0.3), (1e7, 1e-3)])
def test_a_wire_that_is_stretched_at_dead_centre_gives_back_what_it_holds(stiffness, home):
    """At dead centre the wire feels no mass at all, and much less than at home where it ends."""
    robot = hinge()
    length = make_dynamics(robot, "numeric").update(np.array([home]), np.zeros(1)).muscle_lengths
    wire = Cable(stiffness=stiffness, rest_length=float(length[0]) - 0.0118)
    muscles = (dataclasses.replace(robot.muscles[0], actuator=wire),)
    robot = dataclasses.replace(robot, muscles=muscles)
    host = Host(robot, backend="compiled", q=[home or 1e-6])
    start = host.stretched()
    most = 0.0
    for _ in range(3000):
        host.step()
        most = max(most, host.kinetic() + host.stretched())
    assert start > 5.0
    assert most < start * 1.001
    assert host.kinetic() < 0.9 * start
    assert host.stretched() < 0.01 * start  # it left dead centre


def test_many_soft_cables_side_by_side_are_as_stiff_as_one():
    """With k dt^2/m = 0.09 each: alone stable with the tension at the start, sixty of them not."""
    mass, count = 0.5, 60
    each = 0.09 * mass / DT**2
    hosts = [
        Host(slide(*[Cable(stiffness=k, rest_length=0.3)] * n, mass=mass), qd=[0.5])
        for k, n in ((each, count), (count * each, 1))
    ]
    for _ in range(400):
        tensions = [host.step() for host in hosts]
        assert np.sum(tensions[0]) == pytest.approx(tensions[1][0], rel=1e-6, abs=1e-6)
        assert hosts[0].kinetic() + hosts[0].stretched() < 0.5 * mass * 0.25 * (1.0 + 1e-9)
    assert hosts[0].q[0] == pytest.approx(hosts[1].q[0], abs=1e-9)
    assert hosts[0].qd[0] < 0.0  # it came back


def test_antagonists_keep_their_tension():
    """Wires that pull against each other have the tension of their stretch, whatever k."""
    robot = slide(Cable(stiffness=1e7, rest_length=0.299))
    path = (ViaPoint(WORLD, np.array([0.6, 0.0, 0.0])), ViaPoint("mass", np.zeros(3)))
    other = Muscle("other", path, 0.0, math.inf, Cable(stiffness=1e7, rest_length=0.299))
    host = Host(dataclasses.replace(robot, muscles=(*robot.muscles, other)))
    for _ in range(5):
        assert host.step() == pytest.approx([1e4, 1e4], rel=1e-9)
    assert host.q[0] == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("actuator", [Cable(stiffness=1e6), Hill(**HILL, tendon="rigid")])
def test_the_tension_is_exact_on_a_body_that_a_stop_holds(actuator):
    """What holds it is not in the model: its motion tells."""
    weight, mass = 150.0, 0.2
    host = Host(slide(actuator, mass=mass, gravity=weight / mass), stop=0.3)
    told = (np.array([EXCITATION]), np.array([0.05]))
    if actuator.kind == "cable":
        host.bank.state[:] = 0.3 - 100.0 / 1e6
        told = host.still
    for _ in range(2000):
        tension = host.step(*told)[0]
    # the law, told that nothing moves
    held = host.bank.linearise(np.array([0.3]), np.zeros(1), *told)[0][0]
    assert 20.0 < held < 0.9 * weight
    assert host.q[0] == pytest.approx(0.3, abs=1e-9)
    assert tension == pytest.approx(held, rel=1e-4)


def test_an_impact_is_not_expected_again():
    """A mass that hits a stop is not thrown back by a wire that just becomes taut there."""
    host = Host(slide(Cable(stiffness=1e7, rest_length=0.3), mass=1.0, home=0.29), stop=0.3)
    host.qd[:] = 2.0
    for _ in range(30):
        host.step()
        assert host.kinetic() <= 2.0 + 1e-12
    assert abs(host.qd[0]) < 1e-3


# Passivity -----------------------------------------------------------------------------------


JOINTS = ("revolute", "prismatic", "universal", "ball", "free", "planar")


def random_stiff_robot(seed, kinds=JOINTS):
    """Return a random tree of light links on stiff cables, slack and taut, and a velocity."""
    rng = np.random.default_rng([7, seed])
    robot = random_robot(
        seed, n_links=int(rng.integers(1, 4)), n_muscles=int(rng.integers(1, 9)), kinds=kinds
    )
    scale = 10.0 ** rng.uniform(-1.5, 0.3)
    links = tuple(
        dataclasses.replace(
            link,
            inertia=Inertia(
                scale * link.inertia.mass, link.inertia.com, scale * link.inertia.tensor
            ),
        )
        for link in robot.links
    )
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    lengths = dynamics.update(np.array(tree.home), np.zeros(tree.nv)).muscle_lengths.copy()
    muscles = []
    for muscle, length in zip(robot.muscles, lengths, strict=True):
        stiffness = 10.0 ** rng.uniform(4.0, 7.0)
        damping = stiffness * 10.0 ** rng.uniform(-5.0, -1.0) if rng.random() < 0.5 else 0.0
        stretch = 10.0 ** rng.uniform(-5.0, -2.0) if rng.random() < 0.5 else rng.uniform(-0.02, 0)
        cable = Cable(
            stiffness=stiffness, damping=damping, rest_length=max(float(length) - stretch, 1e-3)
        )
        muscles.append(
            dataclasses.replace(muscle, actuator=cable, tension_min=0.0, tension_max=math.inf)
        )
    robot = dataclasses.replace(
        robot, links=links, muscles=tuple(muscles), gravity=np.array([0.0, 0.0, -9.81])
    )
    return robot, 0.5 * rng.normal(size=tree.nv)


@pytest.mark.parametrize(("seed", "steps"), [*((seed, 300) for seed in range(20)), (158, 700)])
def test_stiff_cables_of_random_robots_never_give_more_than_they_were_given(seed, steps):
    """The energy that they hold, as they report it, is covered by the work done on them.

    The host's own error of the step, which robots without muscles have too, is not in this.
    """
    robot, qd = random_stiff_robot(seed)
    host = Host(robot, backend="compiled", qd=qd)
    start = host.bank.energy().sum()
    paid, kinetic = 0.0, 0.0
    for _ in range(steps):
        tensions = host.step()
        assert np.all(np.isfinite(tensions))
        assert np.all(tensions >= 0.0)
        before, paid = paid, host.work
        kinetic = max(kinetic, host.kinetic())
        if host.implicit.stiff:
            held = host.bank.energy().sum()
            given = start + before
            debt = CREDIT * (kinetic + abs(given)) + 1e-12
            assert held <= max(given + debt, 0.0)
            assert start + paid >= -debt
        else:  # soft ones hold what the symplectic scheme leaves them
            start = host.bank.energy().sum() - before


@pytest.mark.parametrize("seed", [3, 16, 19])
def test_backends_agree_on_random_robots(seed):
    robot, qd = random_stiff_robot(seed)
    hosts = [Host(robot, backend=backend, qd=qd) for backend in ("compiled", "numeric")]
    for _ in range(40):
        tensions = [host.step() for host in hosts]
        scale = 1.0 + np.abs(tensions[1])
        assert np.max(np.abs(tensions[0] - tensions[1]) / scale) < 1e-5
        for host in hosts[1:]:
            host.q, host.qd = hosts[0].q.copy(), hosts[0].qd.copy()


def test_soft_robots_have_the_tension_at_the_start_of_the_step():
    host = Host(slide(Cable(stiffness=1e4, rest_length=0.29), mass=1.0), qd=[0.3])
    for _ in range(50):
        stretch = host.q[0] - 0.29
        assert host.step()[0] == pytest.approx(max(1e4 * stretch, 0.0), abs=1e-9)
        assert not host.implicit.stiff


def test_a_winch_gives_the_energy_that_its_cable_holds():
    """A length command shortens a stiff cable of a body that a stop holds: it is no debt."""
    host = Host(slide(Cable(stiffness=1e6, rest_length=0.3), gravity=200.0, mass=1.0), stop=0.3)
    host.step()
    told = (np.array([LENGTH]), np.array([0.2999]))
    for _ in range(200):
        tension = host.step(*told)[0]
    assert host.q[0] == pytest.approx(0.3, abs=1e-9)
    assert tension == pytest.approx(100.0, rel=1e-4)
    assert host.bank.energy()[0] == pytest.approx(0.5 * 1e6 * 1e-8, rel=1e-3)


def test_a_mass_matrix_that_is_none_is_refused():
    robot = slide(Cable(stiffness=1e6, rest_length=0.3), mass=0.0)
    for backend in ("numeric", "compiled"):
        host = Host(robot, backend=backend)
        with pytest.raises(CardsError, match=r"not positive definite at slide=0\.3"):
            host.step()


@pytest.mark.parametrize("name", ["tetrahedral_6", "superball", "prism_3", "planar_2r"])
def test_power_iteration_finds_the_largest_eigenvalue(name):
    """Up to a tenth below that of A^-1 L' W L, at the first pose and while the robot moves."""
    robot = load(name)
    muscles = tuple(dataclasses.replace(m, contact=False) for m in robot.muscles)
    robot = dataclasses.replace(robot, muscles=muscles)
    bank = ActuatorBank(robot, DT, "numeric")
    implicit = ImplicitTensions(robot, bank, DT, "numeric")
    implicit._weights[:] = np.linspace(1.0, 2.0, len(muscles))  # cables without springs have none
    tree, dynamics = robot.tree, make_dynamics(robot, "numeric")
    rng = np.random.default_rng(2)
    q, velocity = tree.home.copy(), rng.normal(size=tree.nv)
    for _ in range(50):
        state = dynamics.update(q, np.zeros(tree.nv))
        a, jacobian = state.mass_matrix.copy(), state.muscle_jacobian.copy()
        factor = np.linalg.cholesky(a)
        half = np.sqrt(implicit._weights)[:, None] * np.linalg.solve(factor, jacobian.T).T
        exact = np.linalg.norm(half, 2) ** 2
        found = implicit._largest(a, factor, jacobian)
        assert 0.9 * exact < found < exact * (1.0 + 1e-9)
        q = tree.integrate(q, DT * velocity)  # about 1 m/s and 1 rad/s


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_muscles_that_become_stiff_are_found_within_a_pause(backend):
    """At dead centre the wire moves nothing; it is looked at again at most `PAUSE` steps later."""
    robot = hinge()
    wire = dataclasses.replace(robot.muscles[0], actuator=Cable(stiffness=1e5, rest_length=0.35))
    robot = dataclasses.replace(robot, muscles=(wire,))
    bank = ActuatorBank(robot, DT, backend)
    implicit = ImplicitTensions(robot, bank, DT, backend, friction=False)
    dynamics = make_dynamics(robot, "numeric")
    told = np.array([NO_COMMAND]), np.zeros(1)

    def look(q):
        q, qd = np.array([q]), np.zeros(1)
        lengths = dynamics.update(q, qd).muscle_lengths.copy()
        implicit.step(lengths, np.zeros(1), *told, (q, qd))
        return implicit.stiff

    for first in range(PAUSE + 1):  # wherever in a pause it is
        bank.reset(np.array([0.4]))
        implicit.reset()
        assert not any(look(0.0) for _ in range(first + 1))
        found = [look(0.6) for _ in range(PAUSE + 1)]
        assert sum(not stiff for stiff in found) == PAUSE - first
        assert found == sorted(found)
        assert not look(0.0)  # it is looked at in every step while they are stiff


def linked(name, *, stiffness=3e5, damping=0.0, joint_damping=0.0):
    """A robot of models/ with stiff, taut cables, and viscous joints."""
    robot = load(name)
    tree = robot.tree
    lengths = make_dynamics(robot, "numeric").update(tree.home, np.zeros(tree.nv)).muscle_lengths
    muscles = tuple(
        dataclasses.replace(
            muscle,
            contact=False,
            tension_min=0.0,
            tension_max=math.inf,
            actuator=Cable(
                stiffness=stiffness, damping=damping, rest_length=float(length) * share
            ),
        )
        for muscle, length, share in zip(
            robot.muscles, lengths.copy(), np.linspace(0.99, 1.005, len(lengths)), strict=True
        )
    )
    joints = tuple(
        dataclasses.replace(
            joint,
            axes=tuple(dataclasses.replace(axis, damping=joint_damping) for axis in joint.axes),
        )
        for joint in robot.joints
    )
    return dataclasses.replace(robot, muscles=muscles, joints=joints)


HOSTS = {
    "bars that fly": lambda backend: Host(linked("superball"), backend=backend),
    "damped cables": lambda backend: Host(linked("prism_3", damping=30.0), backend=backend),
    "viscous joints": lambda backend: Host(
        linked("planar_2r", joint_damping=0.5), backend=backend, qd=[1.0, -2.0]
    ),
    "a stop": lambda backend: Host(
        slide(Cable(stiffness=1e6, rest_length=0.2999), mass=0.2, gravity=500.0),
        stop=0.3, backend=backend,
    ),
    "over dead centre": lambda backend: Host(
        dataclasses.replace(hinge(), muscles=(dataclasses.replace(
            hinge().muscles[0], actuator=Cable(stiffness=1e6, rest_length=0.39)),)),
        q=[0.4], qd=[-1000.0], backend=backend,
    ),
    "soft": lambda backend: Host(
        slide(Cable(stiffness=1e4, rest_length=0.29), mass=1.0), qd=[0.3], backend=backend
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_all_that_both_backends_keep_of_a_step_agrees(name):
    """Not the tensions alone: what the next steps are judged by."""
    one, two = (HOSTS[name](backend) for backend in ("compiled", "numeric"))
    rng = np.random.default_rng(8)
    if not one.qd.any():
        one.qd[:] = 0.3 * rng.normal(size=one.qd.size)
    stiff = 0
    for _ in range(40):
        two.q, two.qd = one.q.copy(), one.qd.copy()
        tensions = [host.step() for host in (one, two)]
        a, b = one.implicit, two.implicit
        largest = 1.0 + np.abs(tensions[1]).max()
        np.testing.assert_allclose(*tensions, rtol=1e-5, atol=1e-6 * largest)
        np.testing.assert_allclose(a.mobility, b.mobility, rtol=1e-9, atol=1e-15)
        assert (a.stiff, a.straight, a._pause[0]) == (b.stiff, b.straight, b._pause[0])
        energy = 1e-3 + abs(b._paid[0]) if b.stiff else 1.0
        np.testing.assert_allclose(a._paid, b._paid, rtol=1e-5, atol=1e-6 * energy)
        np.testing.assert_allclose(a._direction, b._direction, rtol=1e-6, atol=1e-9)
        if b.stiff:
            stiff += 1
            momentum = 1e-4 + np.abs(b._last_momentum).max()
            np.testing.assert_allclose(
                a._last_momentum, b._last_momentum, rtol=1e-5, atol=1e-5 * momentum
            )
            np.testing.assert_allclose(a._last_a, b._last_a, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(a._last_jacobian, b._last_jacobian, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(a._last_qd, b._last_qd)
        # the same history for both
        for mine, other in ((b._last, a._last), (b._paid, a._paid), (b._last_a, a._last_a),
                            (b._last_momentum, a._last_momentum)):  # fmt: skip
            mine[:] = other
        two.bank.state[:] = one.bank.state
    assert (stiff > 0) == (name != "soft")
    if name == "over dead centre":
        assert one.implicit.straight > 0
