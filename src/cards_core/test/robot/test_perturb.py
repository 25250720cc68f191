import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.robot.perturb import perturbed, with_payload
from random_robots import random_robot


def test_masses_scale_the_equations_and_points_move_by_the_offset():
    robot = random_robot(3)
    other = perturbed(robot, mass_factor=1.1, attachment_offset=0.002, seed=4)
    a, b = make_dynamics(robot, "numeric"), make_dynamics(other, "numeric")
    q, qd = a.tree.random(np.random.default_rng(0)), np.ones(a.tree.nv)
    x, y = a.update(q, qd), b.update(q, qd)
    np.testing.assert_allclose(1.1 * x.mass_matrix, y.mass_matrix, atol=1e-12)
    np.testing.assert_allclose(1.1 * x.gravity, y.gravity, atol=1e-12)
    for m, n in zip(robot.muscles, other.muscles, strict=True):
        for p, r in zip(m.path, n.path, strict=True):
            assert np.linalg.norm(p.position - r.position) == pytest.approx(0.002)


def test_moment_arms_are_off_by_their_share():
    """A pulley joint of known radius; attachments keep what an offset of that seed makes them."""
    robot = load("antagonist_joint")
    other = perturbed(robot, moment_arm_error=0.05, seed=1)
    arms = [
        make_dynamics(one, "numeric").update(np.array([0.2]), np.zeros(1)).muscle_jacobian.copy()
        for one in (robot, other)
    ]
    ratio = np.abs(arms[1] / arms[0])
    assert np.abs(ratio - 1.0) == pytest.approx(np.full_like(ratio, 0.05))
    arm = load("musashi_like")
    moved = perturbed(arm, attachment_offset=0.002, moment_arm_error=0.05, seed=3)
    only = perturbed(arm, attachment_offset=0.002, seed=3)
    shares = []
    for m, n in zip(only.muscles, moved.muscles, strict=True):
        for p, r in zip(m.path, n.path, strict=True):
            if p.link == "left_forearm":  # turns about the z axis of the elbow's yaw
                away = np.hypot(*r.position[:2]) / np.hypot(*p.position[:2])
                assert r.position[2] == p.position[2]
                shares.append(away - 1.0)
    assert np.abs(shares) == pytest.approx(np.full(len(shares), 0.05))
    assert len({s > 0.0 for s in shares}) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"mass_factor": 0.0},
        {"mass_factor": np.nan},
        {"attachment_offset": -1.0},
        {"moment_arm_error": -0.1},
        {"moment_arm_error": 1.0},
        {"moment_arm_error": np.nan},
    ],
)
def test_nonsense_is_refused(options):
    with pytest.raises(ShapeError, match="expected"):
        perturbed(random_robot(1), **options)


def test_a_payload_is_a_point_mass_of_its_link():
    """Energies are those of the robot and of a point that moves with the link."""
    robot = random_robot(5)
    link, mass, place = robot.links[-1].name, 2.5, np.array([0.1, -0.2, 0.3])
    loaded = with_payload(robot, link, mass, place)
    assert loaded.link(link).inertia.mass == pytest.approx(robot.link(link).inertia.mass + mass)
    a, b = make_dynamics(robot, "numeric"), make_dynamics(loaded, "numeric")
    q, qd = a.tree.random(np.random.default_rng(1)), np.linspace(-1.0, 1.0, a.tree.nv)
    row = [one.name for one in robot.links].index(link)

    def point(coordinates):
        pose = a.link_poses(coordinates)[row]
        return pose[:3, :3] @ place + pose[:3, 3]

    step = 1e-6
    jacobian = np.stack(
        [
            (point(a.tree.integrate(q, step * e)) - point(a.tree.integrate(q, -step * e)))
            / (2.0 * step)
            for e in np.eye(a.tree.nv)
        ],
        axis=1,
    )
    x, y = a.update(q, qd), b.update(q, qd)
    added = mass * jacobian.T @ jacobian
    np.testing.assert_allclose(y.mass_matrix - x.mass_matrix, added, atol=1e-6)
    weight = -mass * jacobian.T @ robot.gravity
    np.testing.assert_allclose(y.gravity - x.gravity, weight, atol=1e-5)


@pytest.mark.parametrize(
    ("link", "mass", "place", "error"),
    [
        (None, 0.0, (0, 0, 0), ShapeError),
        (None, np.nan, (0, 0, 0), ShapeError),
        (None, 1.0, (0, 0), ShapeError),
        (None, 1.0, (0, 0, np.inf), ShapeError),
        ("no such link", 1.0, (0, 0, 0), UnknownNameError),
    ],
)
def test_a_payload_without_sense_is_refused(link, mass, place, error):
    robot = random_robot(5)
    with pytest.raises(error):
        with_payload(robot, link or robot.links[0].name, mass, place)
