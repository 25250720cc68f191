"""What any host of muscles does with commands, gains, resets and its log, without physics."""

import math
from dataclasses import replace

import numpy as np
import pytest
from control_robots import straight

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.host import (
    ANSWERED_MODES,
    CLOCKED_MODES,
    MODES,
    WATCHED_MODES,
    SteppedHost,
    host_parameters,
    impedance_gains,
    initial_positions,
    kept_by_reset,
)
from cards_core.loop.run_log import part_paths
from cards_core.muscles.command import CommandPart, CommandRefusedError, command_of
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState

ROBOT = load("planar_2r")
NAMES = [muscle.name for muscle in ROBOT.muscles]
MS = 1_000_000


class Numbered(SteppedHost):
    """A host whose state says how many steps were made, in every number of another size."""

    log_columns = ("tenths",)

    def __init__(self, robot=ROBOT, *, dt=1e-3, actuators=("winch",), **options):
        options = {"command_timeout": 0.1} | options
        super().__init__(robot, actuators, **options)
        self.dt = dt
        self._go_to(0)

    def _go_to(self, count):
        self.count, k, m = count, float(count), len(self.robot.muscles)
        self._state = RobotState(
            self.now,
            np.full(self.robot.tree.nq, k),
            np.full(self.robot.tree.nv, 10.0 * k),
            np.full(m, 100.0 * k),
            np.full(m, 1e3 * k),
            np.full(m, 1e4 * k),
            np.empty(0),
            np.full(len(self.actuator_names), 1e5 * k),
        )

    @property
    def stamp(self):
        return round(self.count * self.dt * 1e9)

    @property
    def _present(self):
        return self._state

    def advance(self):
        self.gate.values(self.now)
        self._go_to(self.count + 1)

    def reset(self):
        super().reset()
        self._go_to(0)

    def log_values(self):
        return (0.1 * self.count,)


# Parameters -----------------------------------------------------------------------------------


def test_modes_are_sorted_by_what_they_wait_for():
    assert set(ANSWERED_MODES) == {"lockstep", "paced"}
    assert set(WATCHED_MODES) == {"as_fast_as_possible"}
    assert set(CLOCKED_MODES) == {"realtime", "paced"}
    assert set(MODES) == {*ANSWERED_MODES, *WATCHED_MODES, *CLOCKED_MODES}


def test_a_host_that_is_told_nothing():
    given = ParameterSet({})
    given.declare(host_parameters())
    assert {spec.name: given[spec.name] for spec in given.specs} == {
        "mode": "realtime",
        "publish_rate": 1000.0,
        "clock_rate": 100.0,
        "command_timeout": 0.1,
        "decay_time": 0.0,
        "wait_for_command": True,
        "duration": 0.0,
        "accept_other_model": False,
        "log_dir": "",
    }
    # the gate cannot take over another timeout, nor a log another folder, while a host runs
    assert [spec.name for spec in given.specs if spec.live] == ["accept_other_model"]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("publish_rate", 0.1, 1e6),
        ("clock_rate", 0.1, 1e6),
        ("command_timeout", 1e-3, 3600.0),
        ("decay_time", 0.0, 3600.0),
        ("duration", 0.0, 1e9),
    ],
)
def test_numbers_of_a_host_have_bounds(name, least, most):
    for value in (least, most):
        given = ParameterSet({name: value})
        given.declare(host_parameters())
        assert given[name] == value
    for value in (np.nextafter(least, -1.0), np.nextafter(most, math.inf), math.nan):
        with pytest.raises(ParameterError, match=name):
            ParameterSet({name: value}).declare(host_parameters())


def test_a_host_has_no_other_mode():
    with pytest.raises(ParameterError, match="realtime or as_fast_as_possible or lockstep or"):
        ParameterSet({"mode": "slow"}).declare(host_parameters())


def test_a_robot_begins_at_home_or_where_it_is_told_to():
    tree = load("musashi_like").tree
    spec = initial_positions(tree)
    assert np.array_equal(spec.check(spec.default), tree.home)
    place = np.linspace(-0.1, 0.1, tree.nq)
    assert np.array_equal(spec.check(place), place)
    with pytest.raises(ParameterError, match=f"{tree.nq} numbers, one for each of"):
        spec.check(place[1:])


def test_gains_are_those_of_the_muscles_and_change_while_a_host_runs():
    specs = {spec.name: spec for spec in impedance_gains(ROBOT)}
    law = Numbered().gate.impedance
    units = {"impedance_stiffness": "N/m", "impedance_damping": "N s/m"}
    units["impedance_tension_floor"] = "N"
    assert {name: spec.unit for name, spec in specs.items()} == units
    for name, spec in specs.items():
        assert np.array_equal(spec.check(spec.default), getattr(law, name[len("impedance_") :]))
        assert spec.live
        assert spec.check(0.0).tolist() == [0.0] * len(NAMES)
        assert spec.check(spec.upper).tolist() == [spec.upper] * len(NAMES)
        for bad in (-1e-9, np.nextafter(spec.upper, math.inf)):
            with pytest.raises(ParameterError, match=name):
                spec.check(bad)
        with pytest.raises(ParameterError, match="4 numbers, one for each of cable_1"):
            spec.check([1.0, 2.0])
    assert "the muscle's <control>" in specs["impedance_damping"].shown_default
    assert impedance_gains(ROBOT, default="zero")[0].shown_default == "zero"


# Commands -------------------------------------------------------------------------------------


def test_parts_of_a_command_are_taken_or_refused_one_by_one():
    host = Numbered()
    good = CommandPart("force", NAMES[:2], np.array([20.0, 30.0]))
    bad = CommandPart("length", NAMES[2:], np.array([-1.0, 1.0]))
    worse = CommandPart("pressure", NAMES[:1], np.array([1.0]))
    with pytest.raises(CommandRefusedError, match=r"^rest length command refused: "):
        host.submit((bad, good, worse))
    assert (host.gate.accepted, host.gate.refused) == (1, 2)
    assert host.gate.values(0.0)[:2].tolist() == [20.0, 30.0]
    with pytest.raises(CardsError, match="the command"):
        host.submit("force")
    assert (host.gate.accepted, host.gate.refused) == (1, 2)


def test_set_points_of_the_law_reach_the_gate_whole():
    host = Numbered()
    lengths, rates = np.array([1.1, 1.2, 1.3, 1.4]), np.array([0.1, 0.2, 0.3, 0.4])
    host.submit((CommandPart("impedance", NAMES, np.full(4, 20.0), lengths, rates),))
    law = host.gate.impedance
    assert np.array_equal(law.rest_length, lengths)
    assert np.array_equal(law.rest_rate, rates)


def test_commands_arrive_at_the_time_of_the_state():
    host = Numbered(command_timeout=0.0035)
    host.steps(3)
    assert host.now == 3e-3
    assert host.unanswered == ("muscles",)
    host.submit(command_of(NAMES, [50.0] * 4))
    assert host.unanswered == ()
    assert host.gate.values(host.now + 0.0034).tolist() == [50.0] * 4
    assert host.gate.values(host.now + 0.0036).tolist() == [10.0] * 4
    host.step()
    assert host.unanswered == ("muscles",)


def test_tensions_decay_as_the_host_was_told():
    host = Numbered(command_timeout=0.01, decay_time=0.02)
    host.submit(command_of(NAMES, [50.0] * 4))
    assert host.gate.values(0.02) == pytest.approx([30.0] * 4)  # half of the way to 10 N
    sudden = Numbered(command_timeout=0.01)
    sudden.submit(command_of(NAMES, [50.0] * 4))
    assert sudden.gate.values(0.0101).tolist() == [10.0] * 4


def test_a_stop_lasts_until_the_reset():
    host = Numbered()
    host.submit(command_of(NAMES, [50.0] * 4))
    host.estop()
    assert host.gate.values(0.0).tolist() == [10.0] * 4
    with pytest.raises(CommandRefusedError):
        host.submit(command_of(NAMES, [50.0] * 4))
    host.behind = 3.0
    host.reset()
    assert host.behind == 0.0
    host.submit(command_of(NAMES, [50.0] * 4))
    assert host.gate.values(0.0).tolist() == [50.0] * 4


def test_a_state_belongs_to_its_reader():
    host = Numbered()
    host.step()
    state = host.state
    state.q[:] = state.tensions[:] = 7.0
    host.step()
    assert state.q.tolist() == [7.0, 7.0]
    assert host.state.q.tolist() == [2.0, 2.0]
    host.state.q[:] = 7.0
    assert host.state.q.tolist() == [2.0, 2.0]


# Gains ----------------------------------------------------------------------------------------


def largest(gains, dt):
    """Largest eigenvalue of dt^2 K + 2 dt B over mass, at home; explicit steps need it < 4."""
    dynamics = make_dynamics(ROBOT, "numeric")
    at = dynamics.update(dynamics.tree.home, np.zeros(2))
    lever = at.muscle_jacobian
    both = dt**2 * gains["stiffness"] + 2.0 * dt * gains["damping"]
    on_q = lever.T @ (both[:, None] * lever)
    return float(np.linalg.eigvals(np.linalg.solve(at.mass_matrix, on_q)).real.max())


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
@pytest.mark.parametrize("kind", ["stiffness", "damping"])
def test_gains_are_bounded_by_the_period_of_the_host(kind, dt):
    unit = {"stiffness": np.zeros(4), "damping": np.zeros(4), kind: np.arange(1.0, 5.0)}
    limit = 4.0 / largest(unit, dt)
    still = {"impedance_stiffness": np.zeros(4), "impedance_damping": np.zeros(4)}
    host = Numbered(dt=dt)
    host.change(still)
    host.change(still | {f"impedance_{kind}": 0.999 * limit * unit[kind]})
    kept = getattr(host.gate.impedance, kind).copy()
    assert kept == pytest.approx(0.999 * limit * unit[kind])
    with pytest.raises(ParameterError) as caught:
        host.change(still | {f"impedance_{kind}": 1.001 * limit * unit[kind]})
    said = str(caught.value)
    assert "below 4, and not 4.004" in said
    assert f"for a period dt of {1e3 * dt:g} ms" in said
    assert np.array_equal(getattr(host.gate.impedance, kind), kept)


def cart(mass, actuator=None):
    """A cart and a cable along its rail."""
    inertia = Inertia(mass, np.zeros(3), mass * np.eye(3))
    axis = (JointAxis(np.array([1.0, 0.0, 0.0]), -1.0, 1.0),)
    rail = Joint("rail", "prismatic", WORLD, "cart", axes=axis)
    cable = straight("cable", (WORLD, (-2, 0, 0)), ("cart", (0, 0, 0)), 0.0, 100.0)
    cable = replace(cable, actuator=actuator or cable.actuator)
    return Robot("cart", (Link("cart", inertia),), (rail,), (cable,), (), None)


def test_elastic_cables_may_have_any_gains_however_light_their_load():
    gains = {"impedance_stiffness": np.array([1e6]), "impedance_damping": np.array([1e4])}
    Numbered(cart(1e-5, Cable(stiffness=1e4))).change(gains)
    with pytest.raises(ParameterError, match="swing up"):
        Numbered(cart(1e-5)).change(gains)


def test_gains_at_the_very_bound_are_refused():
    """Of a cart of 1 kg: dt^2 K / m is 4 without rounding."""
    host = Numbered(cart(1.0), dt=0.0625)
    gains = {"impedance_stiffness": np.array([1023.0]), "impedance_damping": np.zeros(1)}
    host.change(gains)
    with pytest.raises(ParameterError, match=r"not 4, for a period dt of 62\.5 ms"):
        host.change(gains | {"impedance_stiffness": np.array([1024.0])})


def test_gains_are_judged_with_those_that_stay():
    """K and B that are good alone shake the robot together."""
    unit = {"stiffness": np.ones(4), "damping": np.zeros(4)}
    stiff = 4.0 / largest(unit, 1e-3)
    damped = 4.0 / largest({"stiffness": np.zeros(4), "damping": np.ones(4)}, 1e-3)
    for first, second in (("stiffness", "damping"), ("damping", "stiffness")):
        gains = {"stiffness": np.full(4, 0.6 * stiff), "damping": np.full(4, 0.6 * damped)}
        host = Numbered()
        host.change({"impedance_stiffness": np.zeros(4), "impedance_damping": np.zeros(4)})
        host.change({f"impedance_{first}": gains[first]})
        with pytest.raises(ParameterError, match=r"not 4\.8"):
            host.change({f"impedance_{second}": gains[second]})


def test_the_muscle_that_shakes_most_is_named():
    gains = {"stiffness": np.zeros(4), "damping": np.zeros(4)}
    gains["stiffness"][1] = 1.0
    too_much = 1.5 * 4.0 / largest(gains, 1e-3)
    values = np.array([1.0, too_much, 2.0, 3.0])
    with pytest.raises(ParameterError, match=rf"stiffness {too_much:g} N/m .* 'cable_2'"):
        Numbered().change({"impedance_stiffness": values, "impedance_damping": np.zeros(4)})


def test_a_host_without_a_period_of_its_own_ticks_every_millisecond():
    class Board(Numbered):
        def __init__(self):
            super().__init__()
            del self.dt

        stamp = 0

    unit = {"stiffness": np.ones(4), "damping": np.zeros(4)}
    limit = 4.0 / largest(unit, 1e-3)
    gains = {"impedance_damping": np.zeros(4)}
    Board().change(gains | {"impedance_stiffness": np.full(4, 0.99 * limit)})
    with pytest.raises(ParameterError, match="a period dt of 1 ms"):
        Board().change(gains | {"impedance_stiffness": np.full(4, 1.01 * limit)})


def test_other_parameters_are_passed_over():
    host = Numbered()
    before = host.gate.impedance.damping.copy()
    host.change({"mode": "realtime", "damping": np.full(4, 3.0)})
    assert np.array_equal(host.gate.impedance.damping, before)
    host.change({"impedance_tension_floor": np.full(4, 12.0)})
    assert host.gate.impedance.tension_floor.tolist() == [12.0] * 4
    with pytest.raises(ParameterError, match="tension_floor"):
        host.change({"impedance_tension_floor": np.full(4, 101.0)})  # above the largest tension


def test_gains_of_muscles_with_dynamics_of_their_own_are_not_bounded():
    """Their tension does not follow the law at once; the stiffness is a spring's in series."""
    robot = load("tetraspine")
    host = Numbered(robot)
    m = len(robot.muscles)
    host.change({"impedance_stiffness": np.full(m, 1e6), "impedance_damping": np.full(m, 1e4)})
    assert host.gate.impedance.stiffness.tolist() == [1e6] * m


# Log ------------------------------------------------------------------------------------------


def test_every_number_has_its_column(tmp_path):
    host = Numbered(log_path=tmp_path / "simulator.npz")
    host.submit(command_of(NAMES, [50.0] * 4))
    host.steps(2)
    with pytest.raises(CommandRefusedError):
        host.submit(command_of(NAMES, [5000.0] * 4))
    host.behind = 0.25
    host.step()
    host.close()
    assert host.log is None
    host.close()  # nothing is left to do
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["time"].tolist() == [1e-3, 2e-3, 3e-3]
        columns = ("q", "qd", "muscle_lengths", "muscle_rates", "tensions", "actuators")
        for power, name in enumerate(columns):
            assert log[name][:, 0].tolist() == [10.0**power * k for k in (1, 2, 3)]
        assert log["q"].shape == log["qd"].shape == (3, 2)
        assert log["tensions"].shape == (3, 4)
        assert log["efforts"].shape == (3, 0)
        assert log["accepted"].tolist() == [1.0, 1.0, 1.0]
        assert log["refused"].tolist() == [0.0, 0.0, 1.0]
        assert log["behind"].tolist() == [0.0, 0.0, 0.25]
        assert log["gate"].tolist() == [0.0] * 3
        assert log["tenths"] == pytest.approx([0.1, 0.2, 0.3])
        assert log["position_names"].tolist() == ["joint_1", "joint_2"]
        assert log["muscle_names"].tolist() == NAMES
        assert log["actuator_names"].tolist() == ["winch"]
        assert log["motor_names"].tolist() == []


def test_commands_are_counted_from_the_beginning_of_the_log(tmp_path):
    host = Numbered()
    host.record()  # nowhere
    for _ in range(3):
        host.submit(command_of(NAMES, [50.0] * 4))
    for _ in range(2):
        with pytest.raises(CommandRefusedError):
            host.submit(command_of(NAMES, [5000.0] * 4))
    host.open_log(tmp_path / "simulator.npz")
    host.submit(command_of(NAMES, [50.0] * 4))
    host.step()
    host.close()
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["accepted"].tolist() == [1.0]
        assert log["refused"].tolist() == [0.0]


def test_the_log_tells_who_let_go(tmp_path):
    host = Numbered(command_timeout=0.0015, log_path=tmp_path / "simulator.npz")
    host.step()
    host.submit(command_of(NAMES, [50.0] * 4))
    host.steps(3)
    host.estop()
    host.step()
    host.close()
    with np.load(tmp_path / "simulator.npz") as log:
        # obeys until 2.5 ms; the third step after the command begins at 3 ms
        assert log["gate"].tolist() == [0.0, 0.0, 0.0, 1.0, 2.0]


def test_a_reset_tells_what_is_kept(tmp_path):
    path = tmp_path / "simulator.npz"
    host = Numbered(log_path=path)
    assert kept_by_reset(None) == kept_by_reset(host.log) == ""
    host.steps(3)
    assert kept_by_reset(host.log) == "; the 3 steps before are kept as part 1 of the log"
    host.reset()
    assert kept_by_reset(host.log) == ""
    host.step()
    assert kept_by_reset(host.log) == "; the 1 steps before are kept as part 2 of the log"
    host.close()
    assert [file.name for file in part_paths(path)] == [
        "simulator.before_reset_1.npz",
        "simulator.npz",
    ]
    with np.load(part_paths(path)[0]) as first:
        assert first["time"].tolist() == [1e-3, 2e-3, 3e-3]


def test_a_number_that_the_host_does_not_know_is_told(tmp_path):
    class Blind(Numbered):
        @property
        def _present(self):
            return RobotState(0.0, np.zeros(2), np.zeros(2))

    host = Blind(log_path=tmp_path / "simulator.npz")
    with pytest.raises(CardsError, match="muscle_lengths of the robot is not known"):
        host.record()
    host.close()
