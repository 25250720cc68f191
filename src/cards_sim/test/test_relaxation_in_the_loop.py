"""Muscle relaxation control of an upper body that is simulated: at a desk, and while it learns."""

from dataclasses import replace

import numpy as np
import pytest
from relaxation_loop import HOME, IN_HAND, closed_loop, step, targets

from cards_core.control import ControlStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.robot.actuators import SeriesElastic, Spring
from cards_core.robot.elements import ViaPoint

JUMP = 5.0
"""Most that a tension may change per period of 8 ms where nothing is wanted of the robot, [N]."""

ABOVE = np.radians([-5.0, 8.0, 0.0, -102.0, 0.0]).tolist() * 2
ON_DESK = np.radians([0.0, 8.0, 0.0, -90.0, 0.0]).tolist() * 2
TO_DESK = [(0.0, ABOVE), (2.0, ON_DESK), (20.0, ON_DESK)]
OFF = {"attachment_offset": 0.002}


def live(loop, **values):
    o = loop.controller.options
    names = ("dl_plus", "dl_minus", "dl_max", "dtheta_max")
    given = {name: getattr(o, name) for name in names}
    given |= {"relaxation": loop.controller.relaxation, "learning": loop.controller.learning}
    loop.controller.change(given | values)


@pytest.mark.parametrize(("wrong", "ratio", "relaxed"), [({}, 0.4, 12e-3), (OFF, 0.95, 5e-3)])
def test_hands_on_a_desk_let_go_and_take_hold_again_without_a_jump(wrong, ratio, relaxed):
    """Switched off in contact, muscles take hold again at the speed at which they let go.

    With a wrong model joints rest at the maximum error allowed, and that ends relaxation early.
    """
    host, loop = closed_loop(TO_DESK, world="desk", **wrong)
    while host.state.time < 2.3:
        held = np.linalg.norm(step(host, loop).tensions)
    while host.state.time < 9.0:
        state = step(host, loop)
    assert np.abs(state.contact_forces).sum() > 10.0
    assert np.linalg.norm(state.tensions) < ratio * held
    assert loop.controller.state.dl.sum() > relaxed
    live(loop, relaxation=False)
    last, jumps = state.tensions, []
    while host.state.time < 15.0:
        state = step(host, loop)
        if round(state.time / 1e-3) % 8 == 0:
            jumps.append(np.abs(state.tensions - last).max())
            last = state.tensions
    assert max(jumps) < JUMP
    assert not loop.controller.state.dl.any()
    assert np.linalg.norm(state.tensions) == pytest.approx(held, rel=0.05)


def run(host, loop, until, change=None):
    """Return the tensions of all steps up to a time; `change` changes what the controller sees."""
    rows = [host.state.tensions]
    while host.state.time < until:
        state = host.state.copy()
        if change is not None:
            change(state)
        host.submit(loop.step(state))
        host.step()
        rows.append(host.state.tensions)
    return np.array(rows)


def jump(tensions):
    """Return the maximum change within any 8 ms, [N]."""
    return float(np.abs(tensions[8:] - tensions[:-8]).max())


def lose_pose(state):
    state.q[:] = state.qd[:] = np.nan


def lose_lengths(state):
    state.muscle_lengths[:] = state.muscle_rates[:] = np.nan


LOSSES = {
    "all joint angles": (lose_pose, {}),
    "joint angles and lengths": (lambda state: (lose_pose(state), lose_lengths(state)), {}),
    "lengths without joint sensors": (
        lambda state: (lose_pose(state), lose_lengths(state)),
        {"joint_angles": "estimated"},
    ),
}


@pytest.mark.parametrize("world", ["", "desk"])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_a_robot_whose_pose_is_lost_is_let_go_and_taken_up_again_without_a_jump(loss, world):
    change, parameters = LOSSES[loss]
    wrong = OFF if loss != "lengths without joint sensors" else {}
    host, loop = closed_loop(TO_DESK, world=world, **wrong, **parameters)
    blind = None if loop.controller.needs_joints else lose_pose
    run(host, loop, 3.0, blind)
    before = np.linalg.norm(loop.controller.output.error)
    tensions = run(host, loop, 3.8, change)
    assert loop.controller.output.status is ControlStatus.INVALID_STATE
    # 1.25 N per period; without sensors after the 0.3 s in which the pose becomes unknown
    assert np.linalg.norm(tensions[-1]) < 0.7 * np.linalg.norm(tensions[0])
    back = np.concatenate([tensions[-8:], run(host, loop, 6.8, blind)])
    assert loop.controller.output.status is ControlStatus.OK
    assert max(jump(tensions), jump(back)) < JUMP
    assert np.linalg.norm(loop.controller.output.error) < before + loop.controller.allowance


def test_a_robot_whose_pose_stays_lost_becomes_slack_where_it_lies_and_sinks_where_it_hangs():
    host, loop = closed_loop(TO_DESK, world="desk", **OFF)
    run(host, loop, 3.0)
    most = host.state.tensions.max()
    periods = np.ceil((most - 10.0) / 1.25)
    tensions = run(host, loop, 3.0 + periods * 8e-3, lose_pose)
    # forearms still turn, which hang in two muscles each
    assert np.linalg.norm(tensions[-1]) < 0.2 * np.linalg.norm(tensions[0])
    tensions = np.concatenate([tensions, run(host, loop, 8.0, lose_pose)])
    assert jump(tensions) < JUMP
    assert np.linalg.norm(tensions[-1]) < 1.2 * np.linalg.norm(np.full(20, 10.0))
    host, loop = closed_loop(TO_DESK, **OFF)
    run(host, loop, 3.0)
    heights = []
    for until in (5.0, 7.0, 9.0):
        tensions = run(host, loop, until, lose_pose)
        assert jump(tensions) < JUMP
        assert np.abs(host.state.qd).max() < 0.5
        heights.append(host.state.q[3])
    assert heights == sorted(heights)
    assert heights[-1] - heights[0] > 0.1


@pytest.mark.parametrize("reference", [None, TO_DESK])
@pytest.mark.parametrize(("begin", "pause"), [(3.0, 0.0), (6.0, 0.0), (3.0, 2.0)])
def test_a_controller_that_is_started_again_while_hands_lie_on_a_desk_makes_no_jump(
    begin, pause, reference
):
    """It finds the robot held by the last command, or slack after the host's watchdog acted."""
    host, loop = closed_loop(TO_DESK, world="desk", **OFF)
    run(host, loop, begin)
    while host.state.time < begin + pause:
        host.step()
    assert np.abs(host.state.contact_forces).sum() > 10.0
    _, again = closed_loop(TO_DESK, **OFF)
    if reference is None:
        again.reference = None
    again.approach_speed = 0.25
    tensions = run(host, again, begin + pause + 3.0)
    # with a reference the hands are then lifted, and slide and come off the desk after 0.5 s
    assert jump(tensions if reference is None else tensions[:500]) < JUMP
    assert jump(tensions) < 2.0 * JUMP
    # and in the end it holds them as it would have
    assert np.linalg.norm(tensions[-1]) > 150.0


WIRE = Spring(law="exponential", force_scale=15.0, growth=350.0)


def elastic(winder_friction, route_friction):
    """Return the upper body with wires that stretch.

    Args:
        winder_friction: Force at the wire, [N].
        route_friction: Share of the tension that a guide takes: the wire comes along the link of
            the origin and turns there by a right angle in the home pose.
    """
    plain = load("musashi_like")
    muscles = []
    home = make_dynamics(plain).link_poses(plain.tree.home).copy()
    links = {link.name: pose for link, pose in zip(plain.links, home, strict=True)}
    for muscle in plain.muscles:
        unit = muscle.actuator
        turns = unit.motor.gear_ratio / unit.spool_radius
        motor = replace(unit.motor, dry_friction=winder_friction / turns)
        path = muscle.path
        if route_friction:
            here, there = (links[p.link] @ np.array([*p.position, 1.0]) for p in path[:2])
            along = links[path[0].link][:3, :3].T @ (there - here)[:3]
            across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
            winder = path[0].position + 0.05 * across / np.linalg.norm(across)
            guide = replace(path[0], friction=route_friction / (0.5 * np.pi))
            path = (ViaPoint(path[0].link, winder), guide, *path[1:])
        driven = SeriesElastic(
            spool_radius=unit.spool_radius, motor=motor, spring=WIRE, thermal=unit.thermal
        )
        muscles.append(replace(muscle, path=path, actuator=driven))
    return replace(plain, muscles=tuple(muscles))


@pytest.mark.parametrize("friction", [(0.0, 0.0), (2.0, 0.06)])
def test_wires_that_stretch_and_rub_are_held_and_let_go(friction):
    """Stable at 1 kHz, also without any friction that damps; relaxation takes tension away."""
    place = [-0.5, 0.25, -0.1, -1.2, 0.05] * 2
    points = [(0.0, HOME * 2), (1.5, place), (4.0, place)]
    host, loop = closed_loop(points, robot=elastic(*friction), attachment_offset=0.002)
    live(loop, relaxation=False)
    while host.state.time < 2.5:
        state = step(host, loop)
    held, before = np.linalg.norm(state.tensions), state.q
    assert np.abs(state.qd).max() < 5e-3
    assert np.linalg.norm(loop.controller.output.error) < 0.25
    live(loop, relaxation=True)
    while host.state.time < 5.5:
        state = step(host, loop)
    assert np.linalg.norm(state.tensions) < 0.97 * held
    assert np.linalg.norm(state.q - before) < 0.15
    assert state.tensions.max() < 540.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"body_image": "learned", "learning": True}, "has a spring .expected: muscles without"),
        ({"body_image": "polynomial"}, "has a spring .expected: 'geometric'"),
        ({"joint_angles": "estimated"}, "has a spring .expected: muscles without"),
    ],
)
def test_body_images_that_know_no_springs_are_refused(parameters, message):
    with pytest.raises(CardsError, match=message):
        closed_loop([(0.0, HOME * 2), (1.0, HOME * 2)], robot=elastic(0.0, 0.0), **parameters)


def test_a_dumbbell_is_held_where_it_should_be_by_the_force_that_carries_it():
    """3.6 kg: without the force the arm sags, with it the error is several times smaller."""
    lifted = [-0.2, 0.3, 0.0, -1.4, 0.0]

    def error(force, point=None):
        host, loop = closed_loop(
            [(0.0, HOME * 2), (1.5, lifted + HOME), (2.0, lifted + HOME)],
            payload=3.6,
            relaxation=False,
        )
        loop.controller.set_contact_force("left_hand", force, point)
        while host.state.time < 3.5:
            step(host, loop)
        return float(np.linalg.norm(loop.controller.output.error))

    without = error([0.0, 0.0, 0.0])
    assert without > 0.05
    assert error([0.0, 0.0, 3.6 * 9.81], IN_HAND) < 0.2 * without
    assert error([0.0, 0.0, -3.6 * 9.81], IN_HAND) > 1.5 * without


@pytest.mark.parametrize(("moment_arm_error", "seed"), [(0.0, 3), (0.05, 3), (0.05, 7)])
def test_an_arm_that_learns_its_lengths_goes_where_it_should(tmp_path, moment_arm_error, seed):
    """Attachments off by 2 mm, moment arms by 5 %; at poses it never saw, it errs a fifth as much.

    The published bound is 40 % after five minutes; here are 21 s.
    """
    wrong = {"attachment_offset": 0.002, "moment_arm_error": moment_arm_error}
    wrong["perturbation_seed"] = seed

    def mean_error(points, **parameters):
        host, loop = closed_loop(points, relaxation=False, **wrong, **parameters)
        errors = []
        while host.state.time < loop.reference.duration:
            step(host, loop)
            errors.append(np.linalg.norm(loop.controller.output.error))
        return float(np.mean(errors[500:])), loop.controller

    others = targets(np.random.default_rng(99), 4)
    before, _ = mean_error(others)
    lessons = targets(np.random.default_rng(11), 14)
    _, pupil = mean_error(lessons, body_image="learned", learning=True)
    assert pupil.image.samples > 700
    file = tmp_path / "image.npz"
    pupil.image.save(file)
    after, _ = mean_error(others, body_image="learned", body_image_file=str(file))
    assert before > 0.05
    assert after <= 0.2 * before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning": True}, "learning is on with a geometric body image"),
        ({"body_image_file": "x.npz"}, "body_image_file is 'x.npz' with body_image 'geometric'"),
        ({"body_image": "learned", "body_image_file": "/no/such.npz"}, "such.npz"),
    ],
)
def test_body_images_that_do_not_fit_are_refused(parameters, message):
    with pytest.raises(CardsError, match=message):
        closed_loop([(0.0, HOME * 2), (1.0, HOME * 2)], **parameters)


def test_learning_cannot_be_switched_on_where_nothing_learns():
    _, loop = closed_loop([(0.0, HOME * 2), (1.0, HOME * 2)])
    with pytest.raises(CardsError, match="expected: body_image 'learned'"):
        live(loop, learning=True, relaxation=False)
    assert loop.controller.relaxation  # nothing was taken over
