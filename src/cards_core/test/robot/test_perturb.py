import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError
from cards_core.robot.perturb import perturbed
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
