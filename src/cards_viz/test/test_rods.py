import numpy as np
import pytest

from cards_core.spatial import Pose, quaternion_matrix
from cards_viz.colormap import TensionScale
from cards_viz.rods import MuscleRods
from cards_viz.scene import Scene

SCALE = TensionScale(0.0, 80.0)
TENSIONS = np.array([10.0, 20.0, 40.0, 80.0])


def ends(rod):
    half = 0.5 * rod.length * quaternion_matrix(rod.quaternion)[:, 2]
    return np.array([rod.position - half, rod.position + half])


def test_rods_lie_on_the_muscles(planar_2r):
    scene = Scene(planar_2r, with_shapes=False, backend="numeric")
    frame = scene.frame(np.array([0.4, -0.7]), TENSIONS, 80.0)
    rods, gone = MuscleRods(scene).update(frame, TENSIONS, SCALE)
    assert gone == []
    assert [rod.number for rod in rods] == [1, 2, 3, 4]
    for rod, path, rgb in zip(rods, frame.paths, SCALE.colors(TENSIONS), strict=True):
        np.testing.assert_allclose(ends(rod), path, atol=1e-12)
        np.testing.assert_allclose(rod.rgb, rgb / 255.0)
        assert rod.diameter == pytest.approx(2.2 * scene.radius)


def test_arcs_come_and_go(wrap_arm):
    scene = Scene(wrap_arm, with_shapes=False, backend="numeric")
    maker = MuscleRods(scene)
    bent = scene.frame(np.array([0.3, -1.2]), TENSIONS, 80.0)
    straight = scene.frame(np.array([0.5, 1.0]), TENSIONS, 80.0)
    first, gone = maker.update(bent, TENSIONS, SCALE)
    assert gone == []
    for rod in first:
        np.testing.assert_allclose(ends(rod), bent.segments[rod.number - 1], atol=1e-12)
    # the extensor leaves the elbow: of its ten segments the two at the ends are left
    second, gone = maker.update(straight, TENSIONS, SCALE)
    shown = {rod.number for rod in second}
    assert {1, 10} <= shown
    assert shown.isdisjoint(range(2, 10))
    assert set(gone) == {rod.number for rod in first} - shown
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
    rods, _ = MuscleRods(scene, origin).update(frame, TENSIONS, SCALE)
    for rod, path in zip(rods, frame.paths, strict=True):
        np.testing.assert_allclose(ends(rod), origin.apply(path), atol=1e-12)


def test_nothing_to_draw(planar_2r):
    from cards_core.robot.model import Robot

    robot = Robot("bare", planar_2r.links, planar_2r.joints)
    scene = Scene(robot, with_shapes=False, backend="numeric")
    frame = scene.frame(np.zeros(2), np.zeros(0), 1.0)
    assert MuscleRods(scene).update(frame, np.zeros(0), SCALE) == ([], [])
