"""Muscle relaxation control of an upper body without joint sensors, with noise on the lengths."""

import numpy as np
import pytest
from relaxation_loop import HOME, closed_loop, step, targets

from cards_core.control import ControlStatus
from cards_core.errors import CardsError
from cards_core.muscles.command import CommandPart
from cards_core.muscles.impedance import SLACK
from cards_core.shared_files import find_file
from cards_core.trajectories import load_references

NOISE, OFFSET = 2e-4, 2e-3
MUSCLES = 20


def blind_run(duration, *, offset=0.0, rng, points, **parameters):
    """Run with lengths only; return errors of the angles [deg], largest of the offsets, and loop.

    The impedance law reads the same sensors, so set-points are compared with the same offsets.
    """
    host, loop = closed_loop(
        points,
        relaxation=True,
        joint_angles="estimated",
        length_noise=NOISE,
        length_offset=offset,
        **parameters,
    )
    b = offset * rng.choice((-1.0, 1.0), MUSCLES)
    angles, offsets, places = [], [], []
    while host.state.time < duration:
        state = host.state.copy()
        state.q[:], state.qd[:] = np.nan, np.nan
        state.muscle_lengths += b + NOISE * rng.standard_normal(MUSCLES)
        (told,) = loop.step(state)
        lengths = told.rest_lengths - b
        host.submit((CommandPart("impedance", told.names, told.values, lengths, told.rest_rates),))
        out = loop.controller.output
        assert out.status is ControlStatus.OK, loop.controller.reason
        angles.append(out.actual - host.state.q)
        offsets.append(np.abs(loop.controller.offsets - b).max())
        places.append(np.linalg.norm(out.desired - host.state.q))
        host.step()
    return np.degrees(angles), np.array(offsets), np.array(places), loop


def offset_motion():
    """Return the points of ``find_offsets``: eight moves of 1.25 s, times relative."""
    path = find_file("musashi_like", folder="config/trajectories", suffix=".yaml")
    reference = load_references(path)["find_offsets"]
    assert reference.duration == 10.0
    return [(1.25, reference(1.25 * k)[0].tolist()) for k in range(9)]


def rms(values):
    return np.sqrt(np.mean(np.square(values), axis=0))


def test_angles_are_known_to_half_a_degree_while_it_moves_without_joint_sensors():
    points = targets(np.random.default_rng(21), 4)
    angles, _, places, loop = blind_run(6.0, rng=np.random.default_rng(1), points=points)
    assert rms(angles).max() < 0.5
    assert places[3000:].mean() < 0.02
    assert not loop.controller.offsets.any()


@pytest.mark.parametrize("seed", range(8))
def test_offsets_of_the_length_sensors_are_found_and_then_the_pose_is_held(seed):
    """By the motion that is made for it within 10 s, to four times the Cramer-Rao bound."""
    points = offset_motion() + targets(np.random.default_rng(21), 2)[1:]
    angles, offsets, places, _ = blind_run(
        13.0, offset=OFFSET, rng=np.random.default_rng(seed), points=points
    )
    assert offsets[0] > 1e-3
    assert offsets[10_000] < 0.3e-3
    assert rms(angles[10_000:]).max() < 0.5
    assert places[10_000:].mean() < 0.02


def test_an_estimate_of_offsets_that_changes_makes_no_jump_of_a_tension():
    host, loop = closed_loop(
        [(0.0, HOME * 2), (9.0, HOME * 2)], joint_angles="estimated", relaxation=False
    )
    controller = loop.controller
    run, shift = controller._angles.step, np.zeros(MUSCLES)

    def estimate(*args, **options):
        found = run(*args, **options)
        controller._angles.offsets = shift
        return found

    controller._angles.step = estimate
    told = []
    while host.state.time < 1.5:
        if host.state.time >= 0.5:
            shift = np.where(np.arange(MUSCLES) % 2, 1e-3, -5e-4)
        step(host, loop)
        told.append(controller.command[0].rest_lengths.copy())
    told = np.array(told)[::8]
    stiffness = np.array([m.control.stiffness for m in controller.image.robot.muscles])
    assert (np.abs(np.diff(told, axis=0)) * stiffness).max() < 1.25 * (1.0 + 1e-6)
    assert np.allclose(told[-1] - told[50], shift, atol=1e-6)


def test_lengths_of_nonsense_let_the_robot_go_and_the_reason_is_said():
    """At once where time begins, else step by step; where lengths are right, so is the pose."""
    points = [(0.0, HOME * 2), (1.0, HOME * 2)]
    host, loop = closed_loop(points, joint_angles="estimated", relaxation=False)
    loop.approach_speed = 0.25
    controller = loop.controller

    def step(wrong=0.0):
        state = host.state.copy()
        state.q[:] = np.nan
        state.muscle_lengths[::2] += wrong
        command = loop.step(state)
        host.submit(command)
        host.step()
        return command

    assert step(wrong=0.03)[0].rest_lengths.tolist() == [SLACK] * MUSCLES
    assert controller.output.status is ControlStatus.INVALID_STATE
    assert "no pose of musashi_like has these muscle lengths" in controller.reason
    while host.state.time < 0.6:
        step()
    assert controller.output.status is ControlStatus.OK
    assert not controller.reason
    # an eighth of a second of nonsense is bridged, more is not
    for _ in range(100):
        step(wrong=0.03)
        assert controller.output.status is ControlStatus.OK
    before = np.linalg.norm(host.state.tensions)
    for _ in range(100):
        step(wrong=0.03)
    assert controller.output.status is ControlStatus.INVALID_STATE
    assert "agree neither with the past nor with each other" in controller.reason
    for _ in range(900):
        step(wrong=0.03)
    assert np.linalg.norm(host.state.tensions) < 0.7 * before


def test_after_a_reset_all_is_as_before():
    points = targets(np.random.default_rng(2), 1)
    host, loop = closed_loop(points, joint_angles="estimated", length_offset=OFFSET)

    def run():
        out = []
        host.reset()
        loop.start()
        while host.state.time < 0.3:
            host.submit(loop.step(host.state))
            host.step()
            out.append((*host.state.q, *loop.controller.output.actual))
        return np.array(out)

    first, again = run(), run()
    assert np.abs(first[:, :10] - first[:, 10:]).max() > 0.0
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"learning": True, "body_image": "learned"},
            "learning is on with joint_angles 'estimated'",
        ),
        ({"length_noise": 0.0}, "length_noise"),
    ],
)
def test_what_does_not_fit_estimated_angles_is_refused(parameters, message):
    with pytest.raises(CardsError, match=message):
        closed_loop([(0.0, HOME * 2), (1.0, HOME * 2)], joint_angles="estimated", **parameters)
