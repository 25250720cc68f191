"""Random arms whose muscles wrap on a side."""

import numpy as np
import pytest
from geodesic_cases import lengths_and_arms, path_robot, pose_matrix
from wrap_ensemble import KINDS, Ensemble, study

from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Torus
from cards_core.spatial import Pose


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_a_path_does_not_turn_back(backend):
    """Over this torus the equations of tangency alone have a solution with a cusp."""
    side = np.array([0.15896937, 0.08804805, -0.08352413])
    start, end = (0.31812849, -0.29620885, 0.15071723), (-0.22276848, 0.18979031, -0.03802438)
    robot = path_robot(start, [(Torus(0.08, 0.02), Pose(), {"side": side})], (0.0, 0.0, 0.0))
    paths = GeodesicPaths(robot, backend)

    def at(x):
        poses = pose_matrix(translation=x)
        return lengths_and_arms(robot, paths.solve(poses), poses)

    arm = at(end)[1][0, :3]
    h = 1e-5 * np.eye(3)
    rates = [(at(end + d)[0] - at(end - d)[0])[0] / 2e-5 for d in h]
    assert arm == pytest.approx(rates, abs=1e-8)
    assert paths.failures == 0


@pytest.mark.parametrize("kind", ["ellipsoid", "torus", "chain"])
def test_no_path_that_was_found_has_a_cusp(kind):
    arms = Ensemble(kind, 150, seed=0)
    for angle in (-0.5, -0.2, 0.0, 0.2, 0.5):
        before = arms.paths.failures
        arms(np.full(150, angle))
        lost = arms.paths.lost_muscles
        assert lost.sum() == arms.paths.failures - before
        assert not (arms.cusps() & ~lost).any()
    # surfaces in a row have poses without a path on all sides
    assert arms.paths.failures <= (10 if kind == "chain" else 0)


@pytest.mark.parametrize("kind", ["ellipsoid", "torus", "chain"])
def test_the_path_follows_from_the_pose_alone(kind):
    """Also where an end got inside, or no guess has a contact of the last solution."""
    arms, fresh = (Ensemble(kind, 150, seed=0) for _ in range(2))
    for angle in np.linspace(-0.6, 0.6, 13):
        fresh.paths.reset()
        warm, cold = (one(np.full(150, angle))[0] for one in (arms, fresh))
        assert warm == pytest.approx(cold, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_arms_along_motions(kind):
    """``helpers/wrap_ensemble.py`` moves thousands; in a row jumps without a reason are left."""
    _, found = study(kind, 12, seed=1, steps=100)
    assert found.touched > 0.3 * found.poses
    assert found.cusps == found.wrong == found.lost == 0
    assert found.unnamed == 0 or kind == "chain"
