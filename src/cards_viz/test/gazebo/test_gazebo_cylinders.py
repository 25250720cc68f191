import numpy as np
import pytest

from cards_core.spatial import Pose, quaternion_matrix
from cards_viz.colors import TensionScale
from cards_viz.gazebo.markers import MuscleCylinders
from cards_viz.muscles.scene import Scene

SCALE = TensionScale(0.0, 80.0)
TENSIONS = np.array([10.0, 20.0, 40.0, 80.0])


def ends(cylinder):
    half = 0.5 * cylinder.length * quaternion_matrix(cylinder.quaternion)[:, 2]
    return np.array([cylinder.position - half, cylinder.position + half])


def test_rods_lie_on_the_muscles(planar_2r):
    scene = Scene(planar_2r, with_shapes=False, backend="numeric")
    frame = scene.frame(np.array([0.4, -0.7]), TENSIONS, 80.0)
    cylinders, gone = MuscleCylinders(scene).update(frame, TENSIONS, SCALE)
    assert gone == []
    assert [cylinder.number for cylinder in cylinders] == [1, 2, 3, 4]
    for cylinder, path, rgb in zip(cylinders, frame.paths, SCALE.colors(TENSIONS), strict=True):
        np.testing.assert_allclose(ends(cylinder), path, atol=1e-12)
        np.testing.assert_allclose(cylinder.rgb, rgb / 255.0)
        assert cylinder.diameter == pytest.approx(2.2 * scene.radius)


def test_arcs_come_and_go(wrap_arm):
    scene = Scene(wrap_arm, with_shapes=False, backend="numeric")
    maker = MuscleCylinders(scene)
    bent = scene.frame(np.array([0.3, -1.2]), TENSIONS, 80.0)
    straight = scene.frame(np.array([0.5, 1.0]), TENSIONS, 80.0)
    first, gone = maker.update(bent, TENSIONS, SCALE)
    assert gone == []
    for cylinder in first:
        np.testing.assert_allclose(ends(cylinder), bent.segments[cylinder.number - 1], atol=1e-12)
    # the extensor leaves the elbow: of its ten segments the two at the ends are left
    second, gone = maker.update(straight, TENSIONS, SCALE)
    shown = {cylinder.number for cylinder in second}
    assert {1, 10} <= shown
    assert shown.isdisjoint(range(2, 10))
    assert set(gone) == {cylinder.number for cylinder in first} - shown
    assert set(range(2, 10)) <= set(gone)
    # they are told once; and a viewer that shows nothing is told nothing
    assert maker.update(straight, TENSIONS, SCALE)[1] == []
    maker.update(bent, TENSIONS, SCALE)
    maker.forget()
    assert maker.update(straight, TENSIONS, SCALE)[1] == []


def test_origin_moves_everything(planar_2r):
    scene = Scene(planar_2r, with_shapes=False, backend="numeric")
    frame = scene.frame(np.array([0.4, -0.7]), TENSIONS, 80.0)
    origin = Pose.from_xyz_rpy([1.0, 2.0, 3.0], [0.3, -0.4, 0.5])
    cylinders, _ = MuscleCylinders(scene, origin).update(frame, TENSIONS, SCALE)
    for cylinder, path in zip(cylinders, frame.paths, strict=True):
        np.testing.assert_allclose(ends(cylinder), origin.apply(path), atol=1e-12)


def test_nothing_to_draw(planar_2r):
    from cards_core.robot.model import Robot

    robot = Robot("bare", planar_2r.links, planar_2r.joints)
    scene = Scene(robot, with_shapes=False, backend="numeric")
    frame = scene.frame(np.zeros(2), np.zeros(0), 1.0)
    assert MuscleCylinders(scene).update(frame, np.zeros(0), SCALE) == ([], [])
