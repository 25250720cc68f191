"""The near plane: beyond viser's sheet, unless something is as near as that."""

from unittest.mock import Mock

import numpy as np
import pytest

from cards_core.rods.robots.reader import read_rod_robot
from cards_viz.pages.scene import BEYOND, CLOSE, MARGIN, NearPlane
from cards_viz.rods.page import RodPage


class Camera:
    """A client whose camera can be moved."""

    def __init__(self, position):
        self.camera = self
        self.position, self.near = np.array(position), None

    def on_update(self, called):
        self.moved = called


def test_it_follows_the_camera():
    box = np.array([-1.0, -1.0, 0.0]), np.array([1.0, 1.0, 3.0])
    plane = NearPlane(lambda: box, size=4.0)
    client = Camera([5.0, 0.0, 1.0])
    plane.follow(client)
    assert client.near == BEYOND > 1.0
    reach = BEYOND + 4.0 * MARGIN
    for position, near in (
        ([0.0, 0.0, 1.0], 4.0 * CLOSE),
        ([1.0 + 0.99 * reach, 0.0, 1.0], 4.0 * CLOSE),
        ([1.0 + 1.01 * reach, 0.0, 1.0], BEYOND),
        ([0.0, 0.0, 3.0 + 1.01 * reach], BEYOND),
    ):
        client.position = np.array(position)
        client.moved(client)
        assert client.near == near, position


@pytest.mark.parametrize("name", ["stewart_gough", "stewart_6pfr", "planar_3efr"])
@pytest.mark.parametrize("aspect", [0.6, 1.0, 2.0])
def test_the_first_camera_draws_no_sheet(name, aspect):
    """The robot's size does not matter, nor the shape of the picture."""
    with RodPage(read_rod_robot(name), Mock(), port=0) as page:
        nodes = page._nodes
        plane = NearPlane(nodes.box, nodes.size)
        assert plane.distance(nodes.camera(aspect).position) == BEYOND
        assert (nodes.outline >= nodes.lower).all()
        assert (nodes.outline <= nodes.upper).all()
