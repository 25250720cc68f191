"""Euler angles along a turn about a fixed axis, against SciPy's rotations."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from cards_core.trajectories import (
    EulerRotation,
    PointToPoint,
    TrajectoryError,
    rotation_spline,
    spline,
)

# SciPy: capital letters are intrinsic. Rz(g) Ry(b) Rx(a) is the extrinsic x, y, z.
SEQUENCE = {"euler_xyz": "XYZ", "fixed_xyz": "xyz"}
each_convention = pytest.mark.parametrize("convention", SEQUENCE)


def rotation(angles, convention):
    return Rotation.from_euler(SEQUENCE[convention], angles)


def body_rate(angles, rates, convention):
    """Angular velocity in child axes from Euler rates (the S matrices of both conventions)."""
    a, b, g = angles
    ca, sa, cb, sb, cg, sg = (f(x) for x in (a, b, g) for f in (math.cos, math.sin))
    if convention == "euler_xyz":
        s = [[cb * cg, sg, 0], [-cb * sg, cg, 0], [sb, 0, 1]]
    else:
        s = [[1, 0, -sb], [0, ca, sa * cb], [0, -sa, ca * cb]]
    return np.array(s) @ rates


@each_convention
@pytest.mark.parametrize("kind", ["linear", "cubic", "quintic", "parabolic_blend"])
def test_agrees_with_slerp(kind, convention):
    rng = np.random.default_rng(8)
    times, points = [0.0, 1.5, 2.0], rng.uniform(-0.9, 0.9, (3, 3))
    blend = {"blend_times": 0.1} if kind == "parabolic_blend" else {}
    reference = rotation_spline(kind, times, points, [((0, 1, 2), convention)], **blend)
    profile = spline(kind, times, [[0.0], [1.0], [2.0]], **blend)
    slerp = Slerp([0.0, 1.0, 2.0], rotation(points, convention))
    vectors = [
        (rotation(points[i], convention).inv() * rotation(points[i + 1], convention)).as_rotvec()
        for i in range(2)
    ]
    for t in np.linspace(0.0, 1.999, 101):
        sigma, rate, acceleration = (float(x[0]) for x in profile(t))
        angles, rates, accelerations = reference(t)
        error = rotation(angles, convention).inv() * slerp(sigma)
        assert error.magnitude() < 1e-12
        vector = vectors[0 if t < 1.5 else 1]
        np.testing.assert_allclose(body_rate(angles, rates, convention), vector * rate, atol=1e-11)
        # alpha = d/dt of S(q) qd = S qdd + (dS/dt) qd, the latter by differences along qd
        h = 1e-6
        drift = (
            body_rate(angles + h * rates, rates, convention)
            - body_rate(angles - h * rates, rates, convention)
        ) / (2.0 * h)
        np.testing.assert_allclose(
            body_rate(angles, accelerations, convention) + drift, vector * acceleration, atol=1e-7
        )


@each_convention
@settings(max_examples=150, deadline=None, derandomize=True)
@given(start=st.tuples(*[st.floats(-3.0, 3.0)] * 3), vector=st.tuples(*[st.floats(-1.7, 1.7)] * 3))
def test_any_turn_is_followed_continuously(convention, start, vector):
    """From any angles by any turn: on the fixed axis, never a jump, exact at both ends."""
    angle = np.linalg.norm(vector)
    assume(angle < math.pi - 0.01)
    first = rotation(start, convention)
    path = first * Rotation.from_rotvec(np.linspace(0.0, 1.0, 801)[:, None] * np.array(vector))
    sine = path.as_matrix()[:, *((0, 2) if convention == "euler_xyz" else (2, 0))]
    # away from gimbal lock, so that 801 steps resolve the motion
    least_cosine = math.sqrt(1.0 - np.abs(sine).max() ** 2)
    assume(least_cosine > 0.05)
    # a rotation has two triples of angles: follow the one that the path starts with
    a, b, g = path.as_euler(SEQUENCE[convention]).T
    for option in ((a, b, g), (a + math.pi, math.pi - b, g + math.pi)):
        wanted = np.unwrap(np.column_stack(option), axis=0)
        wanted += 2 * math.pi * np.round((start - wanted[0]) / (2 * math.pi))
        if np.allclose(wanted[0], start, atol=1e-6):
            break
    reference = EulerRotation([0.0, 1.0], [start, wanted[-1]], convention=convention)
    np.testing.assert_allclose(reference.start, start, atol=1e-9)
    np.testing.assert_allclose(reference.end, wanted[-1], atol=1e-9)
    y = reference.sample(np.linspace(0.0, 1.0, 101))[0]
    # no Euler rate exceeds the turning rate divided by cos b
    assert np.abs(np.diff(y, axis=0)).max() <= 0.01 * 1.875 * angle / least_cosine * 1.01 + 1e-12
    sigma = float(PointToPoint([0.0], [1.0], 1.0)(0.37)[0][0])
    exact = first * Rotation.from_rotvec(sigma * np.array(vector))
    assert (rotation(reference(0.37)[0], convention).inv() * exact).magnitude() < 1e-9


@each_convention
def test_stays_on_the_branch_of_the_first_knot(convention):
    """Angles with |b| > pi/2 are legal and are kept."""
    knots = np.array([[0.2, 2.4, -0.3], [0.5, 2.2, 0.1]])
    reference = EulerRotation([0.0, 1.0], knots, convention=convention)
    np.testing.assert_allclose(reference.end, knots[1], atol=1e-12)
    assert reference.sample(np.linspace(0, 1, 50))[0][:, 1].min() > math.pi / 2


@each_convention
def test_angles_beyond_pi_are_not_wrapped(convention):
    knots = np.array([[3.0, 0.1, 0.2], [3.4, -0.1, 0.3], [6.0, 0.0, 0.3], [8.5, 0.0, 0.3]])
    reference = EulerRotation([0.0, 1.0, 2.0, 3.0], knots, convention=convention)
    y = reference.sample(np.linspace(0.0, 3.0, 301))[0]
    assert np.abs(np.diff(y, axis=0)).max() < 0.1
    for t, knot in enumerate(knots):
        np.testing.assert_allclose(reference(t)[0], knot, atol=1e-12)


def test_is_not_the_component_wise_spline():
    start, end = [0.0, 0.0, 0.0], [0.9, -0.8, 0.7]
    turn = EulerRotation([0.0, 1.0], [start, end])
    assert np.abs(turn(0.5)[0] - PointToPoint(start, end, 1.0)(0.5)[0]).max() > 0.05
    # about one coordinate axis both are the same
    turn = EulerRotation([0.0, 1.0], [start, [0.0, 0.9, 0.0]])
    for a, b in zip(turn(0.3), PointToPoint(start, [0.0, 0.9, 0.0], 1.0)(0.3), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_equal_knots_are_a_pause():
    y, yd, ydd = EulerRotation([0.0, 1.0], [[0.1, 0.2, 0.3]] * 2)(0.4)
    np.testing.assert_allclose(y, [0.1, 0.2, 0.3], atol=1e-15)
    assert not yd.any()
    assert not ydd.any()


@each_convention
def test_gimbal_lock_is_named(convention):
    half = math.pi / 2
    for knots in (
        [[0.0, 0.3, 0.0], [0.0, half, 0.0]],
        [[0.0, half, 0.0], [0.0, half, 0.0]],
        [[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]],
        [[0.4, -1.2, 0.0], [0.4, -1.9, 0.0]],
    ):
        with pytest.raises(TrajectoryError, match=r"from knot 1 .* gimbal lock"):
            EulerRotation([0.0, 1.0], knots, convention=convention)
    # 0.1 degrees off is far enough
    EulerRotation([0.0, 1.0], [[0, 0.3, 0], [0, half - 0.002, 0]], convention=convention)


@each_convention
def test_ambiguous_turns_are_named(convention):
    with pytest.raises(TrajectoryError, match="half a turn"):
        EulerRotation([0.0, 1.0], [[0, 0, 0], [math.pi, 0, 0]], convention=convention)
    # the short way to 3.5 is backwards and ends at 3.5 - 2 pi
    with pytest.raises(TrajectoryError, match="arrives at"):
        EulerRotation([0.0, 1.0], [[0, 0, 0], [3.5, 0, 0]], convention=convention)
    EulerRotation([0.0, 1.0, 2.0], [[0, 0, 0], [1.75, 0, 0], [3.5, 0, 0]], convention=convention)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EulerRotation([0, 1], [[0, 0], [1, 1]]), r"expected \(2, 3\)"),
        (lambda: EulerRotation([0, 1], [[0, 0, 0], [1e9, 0, 0]]), "radians"),
        (lambda: EulerRotation([0, 1], np.zeros((2, 3)), convention="zyx"), "convention"),
    ],
)
def test_refuses_bad_arguments(call, message):
    with pytest.raises(TrajectoryError, match=message):
        call()


TIMES = [0.0, 1.0, 3.0]
POSES = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 6))


def test_rotation_spline_splits_the_coordinates():
    """The rest is the component-wise spline, also where the angles come in another order."""
    blocks = [((5, 4, 3), "fixed_xyz")]
    mixed = rotation_spline("quintic", TIMES, POSES, blocks)
    plain = spline("quintic", TIMES, POSES)
    turn = EulerRotation(TIMES, POSES[:, [5, 4, 3]], convention="fixed_xyz")
    for got, a, b in zip(mixed(1.7), plain(1.7), turn(1.7), strict=True):
        np.testing.assert_allclose(got[:3], a[:3], atol=1e-12)
        np.testing.assert_allclose(got[[5, 4, 3]], b, atol=1e-12)
    two = rotation_spline("cubic", TIMES, POSES, [((0, 1, 2), "euler_xyz"), *blocks])
    np.testing.assert_allclose(two(3.0)[0], POSES[2], atol=1e-12)
    assert type(rotation_spline("linear", TIMES, POSES, [])) is type(plain)


def test_rotation_spline_in_caspr_sampling_reaches_the_knots_at_the_last_samples():
    mixed = rotation_spline(
        "quintic", TIMES, POSES, [((3, 4, 5), "euler_xyz")], caspr_time_step=0.3
    )
    assert mixed.duration == pytest.approx(2.8)
    for t, pose in ((0.9, POSES[1]), (0.95, POSES[1]), (1.0, POSES[1]), (2.8, POSES[2])):
        np.testing.assert_allclose(mixed(t)[0], pose, atol=1e-12)
    np.testing.assert_allclose(
        mixed(0.45)[0][3:], EulerRotation([0, 0.9], POSES[:2, 3:])(0.45)[0], atol=1e-12
    )


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("quintic", {"velocities": np.eye(6)[[3, 3, 3]]}, "velocity of the rotation"),
        ("quintic", {"accelerations": np.eye(6)[[3, 3, 3]]}, "acceleration of the rotation"),
        ("cubic", {"velocities": np.eye(6)[[5, 5, 5]]}, "velocity of the rotation"),
        ("cubic_average_velocity", {}, "average velocities"),
    ],
)
def test_rotation_spline_refuses_rates_at_knots(kind, options, message):
    with pytest.raises(TrajectoryError, match=message):
        rotation_spline(kind, TIMES, POSES, [((3, 4, 5), "euler_xyz")], **options)


def test_rotation_spline_lets_other_coordinates_move_at_knots():
    velocities = np.zeros((3, 6))
    velocities[:, 0] = 0.3
    mixed = rotation_spline(
        "quintic", TIMES, POSES, [((3, 4, 5), "euler_xyz")], velocities=velocities
    )
    np.testing.assert_allclose(mixed(1.0)[1], [0.3, 0, 0, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    "blocks",
    [
        [((0, 1), "euler_xyz")],
        [((0, 1, 1), "euler_xyz")],
        [((4, 5, 6), "euler_xyz")],
        [((0, 1, 2), "euler_xyz"), ((2, 3, 4), "euler_xyz")],
    ],
)
def test_rotation_spline_refuses_bad_indices(blocks):
    with pytest.raises(TrajectoryError, match="rotation indices"):
        rotation_spline("quintic", TIMES, POSES, blocks)
