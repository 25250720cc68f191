"""Gains at and beyond their bounds on a robot that moves: computed torque, impedance law."""

import contextlib
import math

import numpy as np
import pytest
from closed_loops import run_closed_loop

from cards_core.control import make_controller
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import ParameterSet
from cards_sim.build import build_host

DT = 1e-3
ROBOT = load("planar_2r")
NAMES = tuple(muscle.name for muscle in ROBOT.muscles)


def host_of(**parameters):
    return build_host(ParameterSet({"dt": DT} | parameters, "simulator"), ROBOT)


# Computed torque ------------------------------------------------------------------------------


def last_speed(kp, kd, *, steps=400, offset=1e-4):
    """Largest joint speed of the last steps of a robot that holds a place near its own, [rad/s].

    The steps are those of a loop of its own, so that gains are used that a loop would refuse.
    """
    host = host_of()
    controller = make_controller("ctc_joint", ROBOT, kp=kp, kd=kd)
    start = host.state.q
    held = controller.place(start + offset, np.zeros(2))
    controller.set_reference(_Still(held))
    speeds = []
    for _ in range(steps):
        with contextlib.suppress(CardsError):
            host.submit(controller.step(host.state))
        host.step()
        speeds.append(np.abs(host.state.qd).max())
    return max(speeds[-50:])


class _Still:
    duration = 0.0

    def __init__(self, place):
        self.place, self.size = place, place.size

    def __call__(self, _t):
        return self.place, np.zeros(2), np.zeros(2)


@pytest.mark.parametrize(("kp", "kd"), [(2000.0, 90.0), (2e5, 700.0), (1e3, 990.0), (4e3, 7.0)])
def test_gains_just_within_the_bounds_bring_the_robot_to_rest(kp, kd):
    controller = make_controller("ctc_joint", ROBOT, kp=kp, kd=kd)
    controller.set_period(DT)
    assert last_speed(kp, kd) < 0.05


@pytest.mark.parametrize(("kp", "kd"), [(1e3, 2.2e3), (4e6, 990.0), (1e8, 2e4), (1e10, 2e5)])
def test_refused_gains_shake_the_robot(kp, kd):
    """Without delay, as here, at twice the bound of kd."""
    controller = make_controller("ctc_joint", ROBOT, kp=kp, kd=kd)
    with pytest.raises(ParameterError, match="period of 1 ms"):
        controller.set_period(DT)
    assert last_speed(kp, kd) > 0.2


def test_a_run_with_gains_that_its_step_does_not_allow_does_not_begin():
    host = host_of()
    loop = ControlLoop(make_controller("ctc_joint", ROBOT, kp=2000.0, kd=1100.0))
    with pytest.raises(ParameterError, match=r"kd 1100 .* period of 1 ms"):
        run_closed_loop(host, loop, 0.1)
    assert host.stamp == 0
    assert host.gate.accepted == 0
    # with another step they are as good as others
    run_closed_loop(host_of(dt=5e-4), loop, 0.01)
    assert loop.controller.period == 5e-4


@pytest.mark.parametrize("value", [1e308, 1e12, 1e6, math.inf, math.nan])
@pytest.mark.parametrize("name", ["kp", "kd"])
def test_a_run_goes_on_with_the_gains_it_had(name, value):
    """The motion is that of a run that nobody touched, to the last bit."""
    ends = []
    for touched in (False, True):
        host = host_of()
        loop = ControlLoop(make_controller("ctc_joint", ROBOT, kp=2000.0, kd=90.0))
        run_closed_loop(host, loop, 0.02)
        if touched:
            gains = {"kp": np.full(2, 2000.0), "kd": np.full(2, 90.0)} | {name: np.full(2, value)}
            with pytest.raises(ParameterError, match=name):
                loop.controller.change(gains)
        run_closed_loop(host, loop, 0.05)
        ends.append(host.state.q)
    np.testing.assert_array_equal(*ends)


# Impedance law --------------------------------------------------------------------------------


def bound_of(stiffness, damping):
    """dt^2 K + 2 dt B over the mass that moves, at home: the largest eigenvalue."""
    dynamics = make_dynamics(ROBOT, "numeric")
    at = dynamics.update(dynamics.tree.home, np.zeros(2))
    lever = at.muscle_jacobian
    both = DT**2 * stiffness + 2.0 * DT * damping
    return np.linalg.eigvals(np.linalg.solve(at.mass_matrix, lever.T * both @ lever)).real.max()


def shaking(stiffness, damping):
    """Largest speed of a robot in balance, whose muscles hold their lengths, [rad/s]."""
    host = host_of()
    law = host.gate.impedance
    law.change({"stiffness": _all(stiffness), "damping": _all(damping)})
    balance = make_controller("ctc_joint", ROBOT, tension_min=15.0).step(host.state)[0].values
    length = host.state.muscle_lengths
    for _ in range(200):
        host.submit((CommandPart("impedance", NAMES, balance, length, np.zeros(4)),))
        host.step()
    return np.abs(host.state.qd).max()


@pytest.mark.parametrize("damped", [False, True], ids=["stiffness", "damping"])
def test_gains_of_the_law_are_refused_where_the_simulated_robot_begins_to_shake(damped):
    unit = bound_of(0.0, 1.0) if damped else bound_of(1.0, 0.0)
    limit = 4.0 / unit

    def gains(share):
        values = (500.0, share * limit) if damped else (share * limit, 0.0)
        return dict(
            zip(("impedance_stiffness", "impedance_damping"), map(_all, values), strict=True)
        )

    host = host_of()
    host.change(gains(0.9))
    for share in (1.05, 3.0):
        with pytest.raises(ParameterError, match=r"make the robot swing up at home .* 1 ms"):
            host.change(gains(share))
        with pytest.raises(ParameterError, match="swing up"):
            host_of(**gains(share))
    law = host.gate.impedance
    kept = law.damping if damped else law.stiffness
    np.testing.assert_allclose(kept, 0.9 * limit)
    calm, wild = (shaking(*(v[0] for v in gains(share).values())) for share in (0.9, 1.2))
    assert calm < 1e-3
    assert wild > 0.1


def _all(value):
    return np.full(4, value)


@pytest.mark.parametrize("value", [1e308, 1e12, math.inf, math.nan])
@pytest.mark.parametrize("gain", ["stiffness", "damping", "tension_floor"])
def test_gains_of_the_law_have_bounds(gain, value):
    host = host_of()
    with pytest.raises(ParameterError, match=f"{gain} of muscle"):
        host.change({"impedance_stiffness": _all(10.0), f"impedance_{gain}": _all(value)})
    law = host.gate.impedance
    assert law.stiffness.tolist() == [0.0] * 4
    assert law.tension_floor.tolist() == [muscle.tension_min for muscle in ROBOT.muscles]
    with pytest.raises(ParameterError, match=f"impedance_{gain}"):
        host_of(**{f"impedance_{gain}": [value] * 4})


def test_a_floor_above_what_a_muscle_can_pull_is_refused():
    host = host_of()
    most = ROBOT.muscles[0].tension_max
    host.change({"impedance_tension_floor": _all(most)})
    with pytest.raises(ParameterError, match=f"and <= {most:g}"):
        host.change({"impedance_tension_floor": _all(most + 1.0)})
