"""Forces on a robot under computed-torque control: what they move it by, and compensated."""

import numpy as np
import pytest
from control_robots import Plant, Run, fixed_point, model_of, planar_2r, roboy_arm, step

from cards_core.control import ControlModel, ControlStatus, CtcJoint, CtcOperational
from cards_core.dynamics import make_dynamics
from cards_core.errors import UnknownNameError

TIP = "tip"
Q = np.array([-0.4, 0.6])
PUSH = np.array([0.5, 0.0, -0.6])
FULL = np.array([[900.0, 300.0], [300.0, 400.0]])


class Pushed(Plant):
    """A plant with a force on the tip, in world axes, [N]; damped so that it comes to rest."""

    def __init__(self, robot, q, force, point=(0.0, 0.0, 0.0)):
        super().__init__(robot, q)
        self.force, self.point = np.array(force), np.array(point)

    def acceleration(self, q, qd, tensions):
        place = self.dynamics.operational(q, np.zeros_like(qd), TIP)
        lever = place.rotation @ self.point
        pull = self.force @ place.jacobian[:3] + np.cross(lever, self.force) @ place.jacobian[3:]
        mass = self.dynamics.update(q, qd).mass_matrix
        return super().acceleration(q, qd, tensions) + np.linalg.solve(mass, pull)


def controllers(kp, **others):
    """Both controllers, holding the place of Q."""
    robot = planar_2r()
    joint = CtcJoint(ControlModel(robot), kp=kp, **others)
    joint.set_reference(fixed_point(Q, 2))
    hand = CtcOperational(ControlModel(robot), axes="xz", kp=kp, **others)
    hand.set_reference(fixed_point(hand.place(Q, np.zeros(2)), 2))
    return {"joint": joint, "operational": hand}


def closed_form(kind, q, kp):
    """The error at rest: Kp^-1 M^-1 J_p' F, in an operational space Kp^-1 J M^-1 J_p' F."""
    dynamics = make_dynamics(planar_2r(), "numeric")
    jacobian = dynamics.operational(q, np.zeros(2), TIP).jacobian[:3]
    moved = np.linalg.solve(dynamics.update(q, np.zeros(2)).mass_matrix, jacobian.T @ -PUSH)
    if kind == "operational":
        moved = jacobian[[0, 2]] @ moved
    return np.linalg.solve(np.diag(kp) if np.ndim(kp) == 1 else kp, moved)


@pytest.mark.parametrize("kind", ["joint", "operational"])
@pytest.mark.parametrize("kp", [np.array([900.0, 400.0]), FULL], ids=["diagonal", "full"])
def test_a_force_moves_the_robot_by_what_the_gains_say(kind, kp):
    item = controllers(kp)[kind]
    plant = Pushed(planar_2r(), Q, PUSH)
    run = Run(item, plant, 1.5)
    assert run.count(ControlStatus.OK) == run.status.size
    assert np.abs(plant.qd).max() < 1e-3
    found = run.error[-1]
    np.testing.assert_allclose(found, closed_form(kind, plant.q, kp), rtol=0.02, atol=1e-5)
    assert np.linalg.norm(found) > 1e-3


@pytest.mark.parametrize("kind", ["joint", "operational"])
def test_a_known_force_does_not_move_it(kind):
    errors = {}
    for told in (False, True):
        item = controllers(400.0)[kind]
        if told:
            item.set_contact_force(TIP, -PUSH)
        errors[told] = Run(item, Pushed(planar_2r(), Q, PUSH), 1.0).distance.max()
    assert errors[False] > 2e-3
    assert errors[True] < 1e-3 * errors[False]


def test_forces_act_at_points_and_end():
    """At a point beside the link, which is a force and a moment; zero ends it."""
    point = [0.05, 0.0, 0.1]
    item = controllers(400.0)["joint"]
    item.set_contact_force(TIP, -PUSH, point)
    run = Run(item, Pushed(planar_2r(), Q, PUSH, point), 0.3)
    assert run.distance.max() < 1e-4
    item.set_contact_force(TIP, np.zeros(3))
    assert Run(item, Pushed(planar_2r(), Q, PUSH, point), 0.3).distance.max() > 3e-4


def test_demanded_torques_grow_by_the_jacobian_times_the_force():
    """-L' f = M a_c + C + G + J' F at one instant, several links at once."""
    robot = roboy_arm()
    dynamics = make_dynamics(robot)
    item = CtcJoint(model_of(dynamics))
    q, qd = robot.tree.home, 0.1 * np.ones(robot.tree.nv)
    item.set_reference(fixed_point(q, q.size))
    forces = {
        robot.links[-1].name: np.array([3.0, -2.0, 4.0]),
        robot.operational_frame: np.array([0, 1.0, 2]),
    }
    for link, force in forces.items():
        item.set_contact_force(link, force, moment=0.1 * force)
    out = step(item, 0.0, q, qd)
    assert out.status is ControlStatus.OK
    other = make_dynamics(robot, "numeric")
    state = other.update(q, qd)
    wanted = state.mass_matrix @ out.acceleration + state.coriolis + state.gravity
    for link, force in forces.items():
        wrench = np.concatenate([force, 0.1 * force])
        wanted = wanted + other.operational(q, qd, link).jacobian.T @ wrench
    np.testing.assert_allclose(-state.muscle_jacobian.T @ out.tensions, wanted, atol=1e-6)


def test_unknown_links_are_refused():
    item = controllers(400.0)["joint"]
    with pytest.raises(UnknownNameError, match="tip"):
        item.set_contact_force("hand", PUSH)
