"""The ground: a plane, and in slow pages a lattice that follows the robot."""

from unittest.mock import Mock

import numpy as np
import pytest

from cards_viz.pages.ground import REACH, Ground, lattice

SIZE = 1.4


@pytest.fixture
def ground():
    server = Mock()
    server.scene.add_grid.return_value.visible = True
    return Ground(server, "/grid", np.array([0.33, -0.21, -0.05]), SIZE)


def slow_page(number=3):
    return Mock(client_id=number)


def test_lines_of_a_lattice():
    lines = lattice(4)
    assert lines.shape == (10, 2, 3)
    # each of the five lines along each axis has the whole width
    np.testing.assert_array_equal(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1), 4.0)
    np.testing.assert_array_equal(np.unique(lines[:5, :, 0]), np.arange(-2.0, 3.0))


def test_a_slow_page_has_a_lattice_in_place_of_the_plane(ground):
    page = slow_page()
    ground.make_plain(page)
    (name, lines, _), options = page.scene.add_line_segments.call_args
    assert name == "/grid", "the same name hides the plane"
    corner = np.asarray(options["position"])
    assert corner[2] == -0.05
    # its lines are those of the plane: whole cells from the origin
    np.testing.assert_allclose(corner[:2] / 0.1, np.round(corner[:2] / 0.1), atol=1e-9)
    assert np.abs(lines[..., :2]).max() >= REACH * SIZE


def test_it_follows_a_robot_that_walks(ground):
    handle = (page := slow_page()).scene.add_line_segments.return_value
    ground.make_plain(page)
    handle.position = None
    ground.follow(np.array([0.4, -0.2, 0.3]))
    assert handle.position is None, "a step moves nothing"
    for goal in ([1.93, -0.2, 0.3], [4.0, 2.0, 0.3]):
        ground.follow(np.array(goal))
        away = handle.position - goal
        assert np.abs(away[:2]).max() <= 0.05 + 1e-9, "within half a cell"
        assert handle.position[2] == -0.05
    # who comes later finds it there
    ground.make_plain(later := slow_page(4))
    np.testing.assert_allclose(later.scene.add_line_segments.call_args[1]["position"][:2], [4, 2])


def test_it_is_hidden_everywhere(ground):
    ground.make_plain(page := slow_page())
    ground.visible = False
    assert not page.scene.add_line_segments.return_value.visible
    assert not ground.visible
    ground.make_plain(later := slow_page(4))
    assert later.scene.add_line_segments.call_args[1]["visible"] is False
