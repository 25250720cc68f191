"""Where a page begins to draw: the near plane of its camera.

viser draws an invisible sheet over the whole picture, one unit of length in front of the camera:
the place of a background image, also without one. A graphics processor does not notice; without
one the sheet costs as much time as all the rods. Nothing before the near plane is drawn, so it is
put just beyond the sheet, as long as nothing else is as near as that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import viser

from cards_core.typing import Array, Vector3

BEYOND = 1.02
"""A near plane beyond the sheet, in units of the page."""

CLOSE = 0.01
"""The near plane while somebody looks at details, relative to the size of what is drawn."""

MARGIN = 0.2
"""How far things may move out of their box, relative to its size; time to zoom in, too."""


class NearPlane:
    """Moves the near planes of all pages of a server with their cameras.

    Args:
        box: Returns the corners, lower and upper, of a box around all that is drawn.
        size: Of what is drawn.
    """

    def __init__(self, box: Callable[[], tuple[Array, Array]], size: float) -> None:
        self._box, self._size = box, size

    def distance(self, position: Vector3) -> float:
        """Return the near plane's distance from a camera at a position."""
        lower, upper = self._box()
        outside = np.maximum(lower - position, position - upper)
        away = float(np.linalg.norm(np.maximum(outside, 0.0)))
        return BEYOND if away > BEYOND + MARGIN * self._size else CLOSE * self._size

    def follow(self, client: viser.ClientHandle) -> None:
        """Keep the near plane of a page where it belongs."""

        def update(camera: viser.CameraHandle) -> None:
            camera.near = self.distance(camera.position)

        update(client.camera)
        client.camera.on_update(update)
