"""Workspace slices of rod robots: one branch, all statuses, whole files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cards_core.analysis.workspace import Axis, Grid, PointSetError
from cards_core.errors import UnknownNameError
from cards_core.rods.analysis.workspace import SliceError, solve_slice
from cards_core.rods.analysis.workspace_slice import METRICS, SliceOptions, SliceStatus
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver

MAP = Grid((Axis("x", -0.18, 0.18, 13), Axis("y", -0.18, 0.18, 13)))


@pytest.fixture(scope="module")
def robot():
    return read_rod_robot("stewart_gough")


@pytest.fixture(scope="module")
def slice_(robot):
    return solve_slice(robot, MAP)


def test_a_symmetric_robot_has_a_symmetric_workspace(slice_):
    # the robot is its own mirror image in the plane xz: so is what it reaches
    np.testing.assert_array_equal(slice_.good, slice_.good[:, ::-1])
    values = slice_.metric("min_eigenvalue")
    np.testing.assert_allclose(values[slice_.good], values[:, ::-1][slice_.good], rtol=1e-5)
    assert slice_.status[6, 6] == SliceStatus.OK
    assert 20 < slice_.good.sum() < 100


def test_a_third_of_a_turn_leaves_the_workspace_as_it_is(robot):
    # three legs of the same kind: the directions 0, 120 and 240 degrees are the same, so along x
    # and along a line that crosses the mirrored lobe the robot comes equally far
    radius = np.linspace(0.0, 0.18, 37)
    line = solve_slice(robot, Grid((Axis("x", 0.0, 0.18, 37),)))
    far = radius[line.good].max()
    for angle in (120.0, 240.0):
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        for share, good in ((1.0, True), (1.1, False)):
            x, y = share * far * c, share * far * s
            assert solve_slice(robot, Grid((Axis("x", 0.0, x, 2),), {"y": y})).good[-1] == good


def test_good_points_are_equilibria_of_their_joints(robot, slice_):
    solver = RodRobotSolver(robot)
    for index in np.flatnonzero(slice_.good)[::7]:
        pose = slice_.grid.pose(int(index))
        q = slice_.q.reshape(-1, robot.n_limbs)[index]
        again = solver.igm(pose, start=solver.igm(pose))
        if np.abs(again.q - q).max() > 1e-3:
            continue  # from nowhere the solver may find another branch
        back = solver.dgm(q, start=again)
        np.testing.assert_allclose(back.pose, pose, atol=1e-5)
        stiffness = slice_.metric("min_eigenvalue").ravel()[index]
        assert back.min_eigenvalue == pytest.approx(stiffness, rel=1e-3)


def test_beyond_collapse_nothing_is_good(slice_):
    # at z = 0.4 m the rods collapse at x = 0.107 m, though K is positive again at 0.108 m
    x = slice_.grid.axis_values[0]
    assert slice_.good[x < 0.1, 6].sum() > 7
    assert not slice_.good[x > 0.107].any()


def test_limits_and_reach_are_told_apart(robot):
    line = solve_slice(robot, Grid((Axis("z", 0.1, 1.1, 41),)))
    z, status = line.grid.axis_values[0], line.status
    lengths = np.nanmax(line.q, axis=1)
    low = line.q.min(axis=1) < robot.q_lower[0]
    assert (status[low & (line.numbers[:, 0] > 0)] != SliceStatus.OK).all()
    assert (status == SliceStatus.JOINT_LIMIT).any()
    assert (lengths[line.good] <= 0.8).all()
    assert line.good[np.argmin(np.abs(z - 0.4))]
    # rods of fixed length cannot be stretched: out of reach for certain
    other = read_rod_robot("planar_3rfr")
    far = solve_slice(other, Grid((Axis("x", -0.4, 0.4, 9),)))
    assert far.status[0] == SliceStatus.UNREACHABLE
    assert far.missing[0] > 0.0


def test_the_wrench_moves_the_border(robot):
    line = Grid((Axis("x", 0.0, -0.2, 21),))
    free = solve_slice(robot, line)
    heavy = SliceOptions(wrench=np.array([0.0, 0.0, -30.0, 0.0, 0.0, 0.0]))
    loaded = solve_slice(robot, line, heavy)
    assert loaded.good.sum() < free.good.sum()
    assert loaded.reference < free.reference


def test_rotations_and_the_order_of_values(robot):
    up = solve_slice(robot, Grid((Axis("rz", -0.4, 0.4, 9),)))
    down = solve_slice(robot, Grid((Axis("rz", 0.4, -0.4, 9),)))
    np.testing.assert_array_equal(up.status, down.status[::-1])
    np.testing.assert_allclose(up.numbers, down.numbers[::-1], rtol=1e-5)


def test_workers_do_not_change_the_result(robot):
    grid = Grid((Axis("x", -0.1, 0.1, 5), Axis("y", -0.15, 0.15, 5)))
    one, two = (solve_slice(robot, grid, workers=n) for n in (1, 2))
    np.testing.assert_array_equal(one.status, two.status)
    np.testing.assert_array_equal(one.numbers, two.numbers)
    np.testing.assert_array_equal(one.q, two.q)


def test_what_cannot_be_meant_is_refused(robot):
    with pytest.raises(UnknownNameError, match="plate coordinate"):
        solve_slice(robot, Grid((Axis("w", 0.0, 1.0, 3),)))
    with pytest.raises(PointSetError, match="twice"):
        solve_slice(robot, Grid((Axis("x", 0.0, 0.1, 3),), {"x": 0.1}))
    with pytest.raises(PointSetError, match="follows from equilibrium"):
        solve_slice(read_rod_robot("spatial_3pfr"), Grid((Axis("x", 0.0, 0.1, 3),)))
    down = SliceOptions(wrench=np.array([0.0, 0.0, -1e3, 0.0, 0.0, 0.0]))
    with pytest.raises(SliceError, match="at home under this wrench"):
        solve_slice(robot, Grid((Axis("x", 0.0, 0.1, 3),)), down)


def test_files_are_whole_or_not_there(slice_, tmp_path, monkeypatch):
    folder = tmp_path / "slice"
    files = slice_.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted(f.name for f in files)
    with np.load(folder / "result.npz") as data:
        np.testing.assert_array_equal(data["status"], slice_.status)
        assert data["q"].shape == (13, 13, 6)
        assert set(METRICS) <= set(data)
    lines = (folder / "result.csv").read_text().splitlines()
    assert len(lines) == 1 + 169
    assert lines[0].startswith("x,y,status,min_eigenvalue,")
    summary = json.loads((folder / "summary.json").read_text())
    assert sum(summary["statuses"].values()) == 169
    assert summary["size"]["unit"] == "m^2"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    other = replace(slice_, robot="other")
    monkeypatch.setattr(type(other), "_write_csv", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        other.save(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def _interrupted(*_):
    raise KeyboardInterrupt
