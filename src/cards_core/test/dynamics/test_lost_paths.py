"""A muscle whose path over its surface is not found: it alone has no numbers, everywhere."""

import numpy as np
import pytest

from cards_core.analysis.inverse_kinematics import inverse_kinematics
from cards_core.analysis.robot_check import check_robot
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.points import Samples
from cards_core.dynamics import compile_model, make_dynamics
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import (
    Ellipsoid,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot

POSES = np.array([[0.1], [0.2], [0.3]])


@pytest.fixture
def robot(monkeypatch):
    """An arm of which the path of one of two muscles is never found."""
    monkeypatch.setattr(GeodesicPaths, "lost_muscles", np.array([True, False]))
    arm = Link("arm", Inertia(1.0, np.array([0.0, 0.0, -0.1]), np.diag([0.01, 0.01, 0.01])))
    axis = JointAxis(np.array([0.0, 1.0, 0.0]), -1.0, 1.0)
    start, end = np.array([0.05, 0.0, 0.2]), np.array([0.05, 0.0, -0.2])
    muscles = (
        Muscle("wrapped", (ViaPoint("world", start), Wrap("s"), ViaPoint("arm", end)), 0, 100),
        Muscle("plain", (ViaPoint("world", -start), ViaPoint("arm", end)), 0, 100),
    )
    surface = WrapSurface("s", "world", Ellipsoid(np.array([0.06, 0.07, 0.08])))
    hinge = Joint("h", "revolute", "world", "arm", axes=(axis,))
    return Robot("r", (arm,), (hinge,), muscles, wrap_surfaces=(surface,))


def plain_lengths():
    angle = POSES[:, 0]
    end = np.array([0.05 * np.cos(angle) - 0.2 * np.sin(angle), 0 * angle])
    end[1] = -0.05 * np.sin(angle) - 0.2 * np.cos(angle)
    return np.hypot(end[0] + 0.05, end[1] + 0.2)


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_the_others_keep_their_numbers(robot, backend):
    dynamics = make_dynamics(robot, backend)
    state = dynamics.batch(POSES)
    assert np.isnan(state.muscle_lengths[:, 0]).all()
    assert np.isnan(state.muscle_jacobian[:, 0]).all()
    assert state.muscle_lengths[:, 1] == pytest.approx(plain_lengths(), abs=1e-12)
    assert np.isfinite(state.mass_matrix).all()
    motion = inverse_kinematics(dynamics, POSES, np.ones((3, 1)))
    assert (motion.status == PointStatus.PATH_NOT_FOUND).all()
    for values in (motion.lengths, motion.rates, motion.accelerations):
        assert np.isnan(values[:, 0]).all()
        assert np.isfinite(values[:, 1]).all()
    dynamics.update(POSES[0], np.zeros(1))
    assert dynamics.lost_muscles.tolist() == [True, False]


def test_a_compiled_model_has_no_numbers_for_it(robot):
    model = compile_model(robot, "M,l,L")
    one, many = model.update(POSES[1], np.zeros(1)), model.batch(POSES)
    assert model.lost_names == ["wrapped"]
    assert np.isnan(one["l"]).tolist() == [True, False]
    assert np.isnan(one["L"]).tolist() == [[True], [False]]
    assert np.isnan(many["l"]).tolist() == [[True, False]] * 3
    assert many["l"][:, 1] == pytest.approx(plain_lengths(), abs=1e-12)
    assert np.isfinite(many["M"]).all()


def test_a_check_blames_it_alone(robot):
    found = check_robot(make_dynamics(robot), Samples(5))
    assert [x.subject for x in found.findings if x.part == "paths"] == ["wrapped"]
