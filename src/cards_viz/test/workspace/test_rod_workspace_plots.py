"""Pictures of slices: of one, two and three axes, with all statuses, the same each time."""

import numpy as np
import pytest

from cards_core.analysis.workspace import Axis, Grid
from cards_core.errors import UnknownNameError
from cards_core.rods.analysis.workspace_slice import (
    METRICS,
    PlateGrid,
    SliceOptions,
    SliceResult,
    SliceStatus,
)
from cards_core.rods.robots.reader import read_rod_robot
from cards_viz.workspace.rod_plots import MARKS, STATUS_COLORS, TEXTS, draw, slice_figure

X, Y, RZ = Axis("x", 0.1, -0.1, 9), Axis("y", -0.1, 0.1, 7), Axis("rz", -0.5, 0.5, 3)


def made_up(*axes):
    """Return a result with every status in it."""
    robot = read_rod_robot("stewart_gough")
    grid = PlateGrid(robot, Grid(axes, {"z": 0.45}), robot.home_pose)
    rng = np.random.default_rng(2)
    status = rng.permutation(np.arange(grid.count) % len(SliceStatus)).astype(np.uint8)
    numbers = rng.uniform(0.5, 2.0, (*grid.shape, len(METRICS) - 1))
    numbers[status.reshape(grid.shape) >= SliceStatus.UNREACHABLE] = np.nan
    return SliceResult(
        robot.name,
        robot.joint_names,
        grid,
        SliceOptions(),
        1.0,
        status.reshape(grid.shape),
        numbers,
        np.zeros((*grid.shape, 6)),
        np.full(grid.shape, np.nan),
    )


@pytest.mark.parametrize("axes", [(X,), (X, Y), (X, Y, RZ), (X, RZ)])
def test_grids_can_be_drawn_and_are_drawn_the_same(axes, tmp_path):
    result = made_up(*axes)
    files = draw(result, tmp_path / "a")
    again = draw(result, tmp_path / "b", metric="margin")
    assert [file.suffix for file in files] == [".svg", ".png"]
    for one, other in zip(files, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_map_has_its_cells_where_the_grid_has_them():
    result = made_up(X, Y)
    axes = slice_figure(result, "curvature").axes[0]
    image = axes.images[0]
    assert image.get_array().shape[:2] == (7, 9)
    left, right, bottom, top = image.get_extent()
    assert left < -0.1 < 0.1 < right
    assert bottom < -0.1 < 0.1 < top
    # x falls along its axis: the first column of the picture is the last of the grid
    unstable = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)]
                         for c in [STATUS_COLORS[SliceStatus.UNSTABLE]]])[0]  # fmt: skip
    drawn = np.round(255 * np.asarray(image.get_array())).astype(int)
    at = (drawn == unstable).all(axis=2).T[::-1]
    np.testing.assert_array_equal(at, result.status == SliceStatus.UNSTABLE)


def test_every_status_has_a_colour_and_a_text():
    assert set(STATUS_COLORS) == set(TEXTS) == set(SliceStatus)
    assert set(MARKS) <= set(SliceStatus)
    with pytest.raises(UnknownNameError, match="metric"):
        slice_figure(made_up(X, Y), "beauty")
