import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError, UnknownNameError
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


@pytest.mark.parametrize(
    "options", [{"mass_factor": 0.0}, {"mass_factor": np.nan}, {"attachment_offset": -1.0}]
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
