"""Joint motors beside muscles: names, the command gate, both controllers, the analyses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from control_robots import Motion, fixed_point, model_of, step
from hybrid_robots import LIMITS, MOTORS, platform_arm, without_motors
from scipy.optimize import minimize

from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.status import PointStatus
from cards_core.control import ControlModel, ControlStatus, CtcJoint, CtcOperational
from cards_core.dynamics import make_dynamics
from cards_core.formats import read_sdf, to_sdf
from cards_core.muscles.command import (
    EFFORT,
    FORCE,
    NO_COMMAND,
    CommandRefusedError,
    MuscleCommand,
)
from cards_core.robot import Tree
from cards_core.robot.elements import WORLD, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from random_robots import random_inertia

ROBOT = platform_arm()
ROPES = [muscle.name for muscle in ROBOT.muscles]
HOME = np.array([0.0, 0.0, 0.0, 0.4, 0.8])


# Names, order, limits -------------------------------------------------------------------------


def test_motors_are_where_their_joints_are():
    motors = motors_of(ROBOT.tree)
    assert motors.names == MOTORS
    assert motors.rows.tolist() == [3, 4]
    assert motors.efforts.tolist() == list(LIMITS)
    assert len(motors_of(without_motors(ROBOT).tree)) == 0


def test_a_joint_of_several_axes_has_a_motor_for_each():
    rng = np.random.default_rng(1)
    x, y, z = np.eye(3)
    links = tuple(Link(name, random_inertia(rng)) for name in "abc")
    plane = (JointAxis(x, effort=3.0), JointAxis(y), JointAxis(z))
    cross = (JointAxis(x, effort=1.0), JointAxis(y, effort=2.0))
    joints = (
        Joint("first", "revolute", WORLD, "a", axes=(JointAxis(x),)),
        Joint("base", "planar", WORLD, "b", axes=plane, motor=True),
        Joint("wrist", "universal", "a", "c", axes=cross, motor=True),
    )
    tree = Tree(Robot("odd", links, joints))
    motors = motors_of(tree)
    # in the order of qd: depth first, the wrist before the base
    assert motors.names == ("wrist_1", "wrist_2", "base_1", "base_2", "base_3")
    assert [tree.velocity_names[i] for i in motors.rows] == list(motors.names)
    assert motors.efforts.tolist() == [1, 2, 3, math.inf, math.inf]


def test_sdf_keeps_motors_and_their_limits():
    back = read_sdf(to_sdf(ROBOT))
    motors = motors_of(back.tree)
    assert (motors.names, motors.efforts.tolist()) == (MOTORS, list(LIMITS))
    free = to_sdf(platform_arm((math.inf, 5.0)))
    assert motors_of(read_sdf(free).tree).efforts.tolist() == [math.inf, 5.0]


# Command gate ---------------------------------------------------------------------------------


def gate(robot=ROBOT, timeout=0.125, decay_time=0.0):
    return MuscleCommand(robot, timeout=timeout, decay_time=decay_time)


def test_tensions_and_efforts_stand_side_by_side():
    command = gate()
    assert command.values(0.0).tolist() == [2.0] * 4 + [0.0] * 2
    assert command.kinds.tolist() == [NO_COMMAND] * 6
    command.submit(["elbow", "shoulder"], [-5.0, 12.0], 0.0, kind="effort")
    assert command.values(0.0).tolist() == [2.0] * 4 + [12.0, -5.0]
    command.submit(ROPES, [10.0, 20.0, 30.0, 40.0], 0.0)
    assert command.values(0.0).tolist() == [10.0, 20.0, 30.0, 40.0, 12.0, -5.0]
    assert command.kinds.tolist() == [FORCE] * 4 + [EFFORT] * 2
    command.submit(list(MOTORS), [1.0, 2.0], 0.0, kind="effort")
    assert command.values(0.0).tolist()[4:] == [1.0, 2.0]
    assert command.accepted == 3


REFUSED = [
    (["elbow"], [5.0001], "effort of motor 'elbow' is 5.0001 Nm or N, expected -5 .. 5 Nm or N"),
    (["elbow"], [-6.0], "expected -5 .. 5"),
    (["elbow"], [math.nan], "is nan"),
    (MOTORS, [math.inf, 0.0], "is inf"),
    (["x"], [1.0], "no motor named 'x'"),
    (["elbw"], [1.0], "did you mean 'elbow'"),
    (["top_left"], [3.0], "no motor named 'top_left'"),
    ([], [], "no motor is named"),
    (MOTORS, [1.0], "1 values for 2 names"),
    (["elbow", "elbow"], [1.0, 1.0], "motor 'elbow' is named more than once"),
]


@pytest.mark.parametrize(("names", "values", "words"), REFUSED)
def test_efforts_are_checked_and_nothing_is_applied(names, values, words):
    command = gate()
    command.submit(list(MOTORS), [1.0, 2.0], 0.0, kind="effort")
    with pytest.raises(CommandRefusedError, match="effort command refused") as error:
        command.submit(names, values, 0.0, kind="effort")
    assert words in str(error.value)
    assert command.values(0.0).tolist()[4:] == [1.0, 2.0]
    assert command.refused == 1


def test_a_motor_takes_no_tension_and_a_muscle_no_effort():
    for kind, name in (("force", "elbow"), ("effort", "top_left")):
        with pytest.raises(CommandRefusedError, match=f"named '{name}'"):
            gate().submit([name], [3.0], 0.0, kind=kind)
    with pytest.raises(CommandRefusedError, match="no motor named 'elbow'"):
        gate(without_motors(ROBOT)).submit(["elbow"], [1.0], 0.0, kind="effort")


def test_a_motor_without_limit_takes_all_that_is_finite():
    command = gate(platform_arm((math.inf, 5.0)))
    command.submit(["shoulder"], [-1e300], 0.0, kind="effort")
    assert command.values(0.0)[4] == -1e300
    with pytest.raises(CommandRefusedError, match=r"expected -inf \.\. inf"):
        command.submit(["shoulder"], [math.inf], 0.0, kind="effort")


def test_the_watchdog_lets_motors_go_along_a_line_and_muscles_by_themselves():
    command = gate(decay_time=0.5)
    command.submit(list(MOTORS), [8.0, -4.0], 0.0, kind="effort")
    for time in (0.0, 0.125, 0.25):
        command.submit(ROPES, [50.0] * 4, time)
    assert command.values(0.125)[4:].tolist() == [8.0, -4.0]
    assert command.values(0.375)[:4].tolist() == [50.0] * 4
    assert command.values(0.375)[4:].tolist() == [4.0, -2.0]  # to zero, not to the lower limit
    assert command.stale
    assert (command.stale_muscles, command.stale_motors) == ((), MOTORS)
    assert command.values(9.0).tolist() == [2.0] * 4 + [0.0] * 2
    command.submit(["elbow"], [1.0], 9.0, kind="effort")
    assert command.values(9.0)[4:].tolist() == [0.0, 1.0]
    assert command.stale_motors == ("shoulder",)


def test_emergency_stop_takes_the_efforts_away():
    command = gate()
    command.submit(list(MOTORS), [8.0, -4.0], 0.0, kind="effort")
    command.estop()
    assert command.values(0.0).tolist() == [2.0] * 4 + [0.0] * 2
    assert command.kinds.tolist() == [NO_COMMAND] * 4 + [EFFORT] * 2
    with pytest.raises(CommandRefusedError, match="emergency stop"):
        command.submit(list(MOTORS), [0.0, 0.0], 0.0, kind="effort")
    command.reset()
    assert command.values(0.0).tolist() == [2.0] * 4 + [0.0] * 2
    assert command.kinds.tolist() == [NO_COMMAND] * 6
    assert command.at_rest == "tensions at their minimum, motors without effort"
    assert gate(without_motors(ROBOT)).at_rest == "tensions at their minimum"


def test_a_state_is_answered_when_muscles_and_motors_were_told():
    command = gate()
    assert command.unanswered(0.0) == ("muscles", "motors")
    command.submit(["top_left"], [3.0], 0.0)
    assert command.unanswered(0.0) == ("motors",)
    command.submit(["elbow"], [1.0], 0.0, kind="effort")
    assert command.unanswered(0.0) == ()
    assert command.unanswered(0.001) == ("muscles", "motors")
    only = gate(replace(ROBOT, muscles=()))
    only.submit(["elbow"], [1.0], 0.0, kind="effort")
    assert only.unanswered(0.0) == ()
    assert gate(without_motors(ROBOT)).unanswered(0.0) == ("muscles",)
    assert command.addressees == ("muscles", "motors")
    assert only.addressees == ("motors",)


# Controllers ----------------------------------------------------------------------------------


def state_at(robot, q, qd):
    return make_dynamics(robot, "numeric").update(q, qd)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", ["daqp", "osqp"])
def test_joint_space_effort_is_that_of_least_cost(seed, solver):
    """Against SciPy's SLSQP on the torque that the acceleration needs."""
    rng = np.random.default_rng(seed)
    q = HOME + 0.1 * rng.normal(size=5)
    qd, qdd = 0.3 * rng.normal(size=5), rng.normal(size=5)
    weight = np.array([2.0, 0.5])
    item = CtcJoint(ControlModel(ROBOT, "numeric"), solver=solver, effort_weight=weight)
    item.set_reference(Motion(5, lambda t: (q, qd, qdd)))
    out = step(item, 0.0, q, qd)
    assert out.status is ControlStatus.OK
    state = state_at(ROBOT, q, qd)
    needed = state.mass_matrix @ qdd + state.coriolis + state.gravity
    drive = np.zeros((5, 2))
    drive[[3, 4], [0, 1]] = 1.0
    matrix = np.hstack([-state.muscle_jacobian.T, drive])
    x = np.concatenate([out.tensions, out.efforts])
    np.testing.assert_allclose(matrix @ x, needed, atol=1e-4 if solver == "osqp" else 1e-6)
    cost = np.concatenate([np.ones(4), weight])
    bounds = [(2.0, 400.0)] * 4 + [(-limit, limit) for limit in LIMITS]
    best = minimize(
        lambda x: 0.5 * cost @ x**2, x, jac=lambda x: cost * x, bounds=bounds, method="SLSQP",
        constraints={"type": "eq", "fun": lambda x: matrix @ x - needed, "jac": lambda x: matrix},
    )  # fmt: skip
    assert best.success
    # SLSQP stops at 1e-6 of the cost
    assert 0.5 * cost @ x**2 <= best.fun * (1 + 1e-5)


def test_a_weak_motor_gives_all_it_has_and_the_step_says_infeasible():
    weak = platform_arm((0.5, 5.0))
    item = CtcJoint(ControlModel(weak, "numeric"))
    item.set_reference(fixed_point(HOME, 5))
    out = step(item, 0.0, HOME, np.zeros(5))
    gravity = state_at(weak, HOME, np.zeros(5)).gravity
    assert abs(gravity[3]) > 0.5
    assert out.status is ControlStatus.INFEASIBLE
    # row by row the motor is the only one that moves the shoulder
    assert abs(out.efforts[0]) == pytest.approx(0.5)
    assert math.copysign(1.0, out.efforts[0]) == math.copysign(1.0, gravity[3])
    assert out.efforts[1] == pytest.approx(gravity[4], abs=1e-4)
    assert out.residual >= abs(gravity[3]) - 0.5 - 1e-6


def test_without_motors_the_arm_cannot_be_held():
    bare = without_motors(ROBOT)
    item = CtcJoint(ControlModel(bare, "numeric"))
    item.set_reference(fixed_point(HOME, 5))
    assert step(item, 0.0, HOME, np.zeros(5)).status is ControlStatus.INFEASIBLE
    assert [part.kind for part in item.command] == ["force"]


@pytest.mark.parametrize("seed", range(5))
def test_operational_space_motion_is_that_of_tensions_and_efforts(seed):
    rng = np.random.default_rng(seed)
    q, qd = HOME + 0.1 * rng.normal(size=5), 0.3 * rng.normal(size=5)
    dynamics = make_dynamics(ROBOT, "numeric")
    item = CtcOperational(model_of(dynamics), axes="xz", posture="home")
    place = dynamics.operational(q, qd, "hand").position[[0, 2]].copy()
    item.set_reference(Motion(2, lambda t: (place, np.zeros(2), np.zeros(2))))
    out = step(item, 0.0, q, qd)
    assert out.status is ControlStatus.OK
    assert np.all((out.tensions >= 2.0) & (out.tensions <= 400.0))
    assert np.all(np.abs(out.efforts) <= LIMITS)
    state = state_at(ROBOT, q, qd)
    force = -state.muscle_jacobian.T @ out.tensions - state.coriolis - state.gravity
    force[3:] += out.efforts
    qdd = np.linalg.solve(state.mass_matrix, force)
    task = make_dynamics(ROBOT, "numeric").operational(q, qd, "hand")
    made = (task.jacobian @ qdd + task.bias)[[0, 2]]
    np.testing.assert_allclose(
        made, out.acceleration, atol=1e-5 * (1 + np.abs(out.acceleration).max())
    )


def test_the_command_has_a_part_for_each_kind_and_follows_the_output():
    item = CtcJoint(ControlModel(ROBOT, "numeric"))
    force, effort = item.command
    assert (force.kind, list(force.names)) == ("force", ROPES)
    assert (effort.kind, effort.names) == ("effort", MOTORS)
    out = step(item, 0.0, HOME, np.zeros(5))
    assert effort.values is out.efforts
    assert force.values is out.tensions
    assert np.any(effort.values != 0.0)
    assert [part.values.tolist() for part in item.relaxed] == [[2.0] * 4, [0.0] * 2]
    step(item, 0.001, np.full(5, np.nan), np.zeros(5))
    assert [part.values.tolist() for part in item.command] == [[2.0] * 4, [0.0] * 2]
    only = CtcJoint(ControlModel(replace(ROBOT, muscles=()), "numeric"))
    assert [part.kind for part in only.command] == ["effort"]


def test_effort_weights_are_checked():
    model = ControlModel(ROBOT, "numeric")
    for make in (CtcJoint, CtcOperational):
        with pytest.raises(Exception, match=r"effort_weight has 3 values; .* shoulder, elbow"):
            make(model, effort_weight=[1.0, 1.0, 1.0])
        with pytest.raises(Exception, match="effort_weight of 'elbow' is 0"):
            make(model, effort_weight=[1.0, 0.0])


# Analyses -------------------------------------------------------------------------------------


def test_inverse_dynamics_says_what_the_motors_give_and_when_it_is_too_much():
    found = InverseDynamics(make_dynamics(ROBOT, "numeric")).step(HOME)
    gravity = state_at(ROBOT, HOME, np.zeros(5)).gravity
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(found.motor_forces, [0, 0, 0, *gravity[3:]], atol=1e-6)
    weak = make_dynamics(platform_arm((0.5, 5.0)), "numeric")
    # the arm's weight asks 2.7 Nm of the shoulder, which only its motor drives
    assert InverseDynamics(weak).step(HOME).status is PointStatus.INFEASIBLE
