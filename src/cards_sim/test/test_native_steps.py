"""Several steps in one native call give what single steps give, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.formats import load
from cards_core.muscles.command import CommandPart, CommandRefusedError
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import ImpedanceControl, Motor
from cards_core.robot.motors import motors_of
from cards_sim.build import build_host
from cards_sim.errors import SimulationStoppedError

TIMEOUT = 0.05


def host_of(robot, log=None, **parameters):
    given = {"command_timeout": TIMEOUT, **parameters}
    if log is not None:
        given["log_dir"] = str(log)
    return build_host(ParameterSet(given, "simulator"), robot)


def spine(contact, friction=0.0):
    robot = load("tetrahedral_6")
    muscles = (replace(m, contact=contact, friction=friction) for m in robot.muscles)
    return replace(robot, muscles=tuple(muscles))


def wound_spine():
    """Return the spine with motors, whose law is by the rate of the winch."""
    robot = load("tetrahedral_6")
    motor = Motor(backdrivable=False, envelope="symmetric", gear_efficiency=1.0)
    control = ImpedanceControl(stiffness=1000.0, damping=200.0, tension_floor=0.0, rate="winch")

    def wound(muscle):
        cable = replace(muscle.actuator, winch_speed=None, motor=motor)
        return replace(muscle, actuator=cable, control=control, contact=False)

    return replace(robot, muscles=tuple(wound(m) for m in robot.muscles))


CASES = {
    "soft springs on the ground": (lambda: spine(False), {"terrain": "flat:friction=0.5"}),
    "cables that touch on hills": (lambda: spine(True), {"terrain": "hills:friction=0.5"}),
    "cables that rub on hills": (lambda: spine(True, 0.3), {"terrain": "hills:friction=0.5"}),
    "ideal cables": (lambda: load("planar_2r"), {}),
    "wrapping": (lambda: load("roboy_arm"), {}),
    "motors and temperatures": (lambda: load("musashi_like"), {"world": "desk"}),
    "stiff springs": (lambda: load("superball"), {"terrain": "flat:friction=0.5"}),
    "motors that wind springs": (wound_spine, {"terrain": "flat:friction=0.5"}),
    "no native form": (lambda: load("wrap_elbow"), {}),
}


def command_of(robot, time):
    """Return tensions that change over time, about a fifth of the largest."""
    muscles = [m for m in robot.muscles if m.takes_tension]
    most = np.array([m.tension_max for m in muscles])
    phase = np.arange(len(muscles)) + 3.0 * time
    values = np.minimum(0.1 * (1.2 + np.sin(phase)) * most, 40.0)
    least = np.array([m.tension_min for m in muscles])
    parts = [CommandPart("force", tuple(m.name for m in muscles), np.maximum(values, least))]
    motors = motors_of(robot.tree)
    if len(motors):
        parts.append(CommandPart("effort", motors.names, np.zeros(len(motors))))
    return tuple(parts)


def everything(host):
    s = host.state
    measured = (s.q, s.qd, s.muscle_lengths, s.muscle_rates, s.tensions, s.actuators)
    return [s.time, *(a.tobytes() for a in (*measured, s.contact_forces))]


def advance(host, count, whole):
    if whole:
        host.steps(count)
    else:
        for _ in range(count):
            host.step()


@pytest.mark.parametrize("case", ["cables that touch on hills", "no native form"])
def test_rows_hold_what_every_step_led_to(case):
    make, parameters = CASES[case]
    pieces, single = (host_of(make(), **parameters) for _ in range(2))
    for count in (1, 7, 60):  # the last piece is longer than the timeout of commands
        rows = np.full((count, pieces.simulator.row_size), np.nan)
        command = command_of(pieces.robot, pieces.now)
        pieces.submit(command)
        single.submit(command)
        pieces.steps(count, rows)
        for row in rows:
            single.step()
            s = single.state
            parts = (s.q, s.qd, s.muscle_lengths, s.muscle_rates, s.tensions, s.actuators)
            assert row.tobytes() == np.concatenate(parts).tobytes()
    assert everything(pieces) == everything(single)


def both(make, parameters, tmp_path, before, pieces=(1, 7, 10, 2, 30)):
    """Run a host by single steps and one by pieces; return what each saw after every piece."""
    seen = []
    for name in ("single", "pieces"):
        robot = make()
        host = host_of(robot, tmp_path / name, **parameters)
        rows = []
        for turn in range(40):
            count = pieces[turn % len(pieces)]
            before(host, robot, turn)
            advance(host, count, name == "pieces")
            rows.append(everything(host))
        host.close()
        with np.load(tmp_path / name / "simulator.npz") as log:
            rows.append({key: log[key].tobytes() for key in log})
        seen.append(rows)
    return seen


@pytest.mark.parametrize("case", list(CASES))
def test_states_and_logs_are_the_same(case, tmp_path):
    make, parameters = CASES[case]

    def before(host, robot, turn):
        del turn
        host.submit(command_of(robot, host.state.time))

    single, pieces = both(make, parameters, tmp_path, before)
    for turn, (one, other) in enumerate(zip(single, pieces, strict=True)):
        assert one == other, turn


def test_under_the_impedance_law_with_gains_that_change_and_a_push(tmp_path):
    make, parameters = CASES["soft springs on the ground"]
    model = ControlModel(make(), "numeric")
    controllers = {}

    def before(host, robot, turn):
        controller = controllers.setdefault(
            host, make_controller("impedance", model, gait="sine", amplitude=0.1, frequency=2.0)
        )
        if turn == 0:
            controller.reset()
        host.submit(controller.step(host.state))
        if turn == 10:
            host.change({"impedance_stiffness": [1500.0] * len(robot.muscles)})
        if turn == 20:
            host.simulator.apply_wrench("v2", [3.0, 0.0, 1.0], duration=0.012)

    single, pieces = both(make, parameters, tmp_path, before)
    assert single == pieces


def test_under_the_impedance_law_by_the_rate_of_the_winch(tmp_path):
    make, parameters = CASES["motors that wind springs"]
    model = ControlModel(make(), "numeric")
    controllers = {}

    def before(host, robot, turn):
        del robot
        gait = {"gait": "sine", "amplitude": 0.1, "frequency": 2.0}
        controller = controllers.setdefault(host, make_controller("impedance", model, **gait))
        if turn == 0:
            controller.reset()
        host.submit(controller.step(host.state))

    single, pieces = both(make, parameters, tmp_path, before)
    assert single == pieces
    host = host_of(make(), **parameters)  # and it is taken natively
    host.submit(command_of(host.robot, 0.0))
    assert host.simulator.native_steps() is not None
    host.close()


def test_when_commands_stop_the_watchdog_lets_go_at_the_same_step(tmp_path):
    make, parameters = CASES["soft springs on the ground"]

    def before(host, robot, turn):
        if turn < 8:
            host.submit(command_of(robot, host.state.time))

    single, pieces = both(make, {**parameters, "decay_time": 0.02}, tmp_path, before)
    assert single == pieces


def test_a_run_that_diverges_stops_at_the_same_step_in_the_same_state(tmp_path):
    """Faster by 1e9 m/s in every step; the log has all steps before the last one."""
    seen = []
    for name in ("single", "pieces"):
        host = host_of(spine(False), tmp_path / name, terrain="flat:friction=0.5")
        robot = host.robot
        host.submit(command_of(robot, 0.0))
        host.steps(5)
        host.submit(command_of(robot, 0.0))
        host.simulator.model.opt.gravity[2] = 1e12
        with pytest.raises(SimulationStoppedError) as caught:
            advance(host, 40, name == "pieces")
        error = caught.value
        host.close()
        with np.load(tmp_path / name / "simulator.npz") as log:
            rows = {key: log[key].tobytes() for key in log}
        seen.append((str(error), error.time, everything(host), rows))
    assert seen[0] == seen[1]


def test_a_world_of_several_robots_is_no_place_for_it():
    host = host_of(load("planar_2r"))
    host.steps(0)
    assert host.stamp == 0
    with pytest.raises(CommandRefusedError):
        host.submit((CommandPart("force", ("no_muscle",), np.array([1.0])),))
    host.steps(3)  # never told: single steps
    assert host.stamp == 3_000_000
