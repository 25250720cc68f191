"""``~/shapes``: centre lines as an organised point cloud, a row of points for each rod."""

from __future__ import annotations

from array import array

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2, PointField

from cards_core.rods.robots.solution import RobotShapes

FRAME = "world"

COLUMNS = ("x", "y", "z", "curvature", "stress", "strain")
"""Fields of a point: world position [m], curvature of bending [1/m], greatest stress [Pa] and
strain along the fibres."""


def shapes_message(shapes: RobotShapes, stamp: Time) -> PointCloud2:
    """Return the message: height = rods, width = points, little-endian float64 `COLUMNS`.

    ``numpy.frombuffer(message.data, "<f8").reshape(message.height, message.width, 6)`` reads it.
    """
    rods, points, columns = shapes.table.shape
    message = PointCloud2(height=rods, width=points, is_dense=True)
    message.header.frame_id = FRAME
    message.header.stamp = stamp
    message.fields = [
        PointField(name=name, offset=8 * i, datatype=PointField.FLOAT64, count=1)
        for i, name in enumerate(COLUMNS)
    ]
    message.point_step = 8 * columns
    message.row_step = 8 * columns * points
    message.data = array("B", np.ascontiguousarray(shapes.table, dtype="<f8").tobytes())
    return message
