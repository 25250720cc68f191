"""What the 3-D scenes of all pages share: set-up, camera, light, arrows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import viser

from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera. `position` and `look_at` in the world [m], vertical `fov` [rad]."""

    position: Vector3
    look_at: Vector3
    fov: float


def viewing_direction(lower: Vector3, upper: Vector3) -> Vector3:
    """Return the direction from a box to the eye: from the front (-y), flat robots face-on.

    Robots that are long from front to back, such as spines, are seen from their side. Planar
    robots (extent of one axis below a sixth of the largest) are seen almost along that axis, as
    they are drawn on paper.
    """
    extent = upper - lower
    if extent[1] > 3.0 * max(extent[0], extent[2]):
        return np.array([1.0, -0.62, 0.42])
    thin = int(np.argmin(extent))
    if extent[thin] < extent.max() / 6.0:
        return np.array([(0.85, -0.35, 0.25), (0.12, -1.0, 0.14), (0.0, -0.35, 1.0)][thin])
    return np.array([0.62, -1.0, 0.36])


def frame_points(
    points: Array,
    *,
    aspect: float = 1.2,
    fov: float = 0.7,
    direction: Vector3 | None = None,
    fill: float = 0.76,
) -> Camera:
    """Place a camera so that points fill the picture.

    All points must fall within ``fill`` of the half height and half width: with a camera at
    distance D from the centre along the unit vector e, a point with components s along e, u up
    and r to the right (from the centre) needs ``D >= |u| / (fill tan(fov / 2)) + s`` and the same
    for r with the horizontal angle. The centre is the middle of the extents along u, r and s.

    Args:
        points: Shape (k, 3), [m].
        aspect: Width of the picture by its height.
        fov: Vertical field of view, [rad].
        direction: From the points to the camera; default `viewing_direction`.
        fill: Part of the picture that the points may take.
    """
    lower, upper = points.min(axis=0), points.max(axis=0)
    back = viewing_direction(lower, upper) if direction is None else np.asarray(direction)
    back = back / np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    axes = np.array([right, np.cross(back, right), back])
    seen = points @ axes.T
    middle = 0.5 * (seen.min(axis=0) + seen.max(axis=0))
    seen = seen - middle
    tangent = np.tan(0.5 * fov) * fill
    sideways = np.abs(seen[:, 0]) / (tangent * aspect)
    upwards = np.abs(seen[:, 1]) / tangent
    distance = float(np.max(np.maximum(sideways, upwards) + seen[:, 2]))
    center = middle @ axes
    return Camera(center + max(distance, 1e-3) * back, center, fov)


def set_up(api: viser.SceneApi) -> None:
    """Set up a scene: z upwards, no axes of the world, no fog."""
    api.set_up_direction("+z")
    api.world_axes.visible = False
    # the default fog would fade a robot of some metres, and with it the meaning of colours
    api.configure_fog(1.0, 2.0, enabled=False)


SHADE = (168, 172, 182)
"""Colour of the light from below, where light is plain."""

SKY = 1.6
"""Strength of the light from all sides, likewise."""

SUN = 2.4
"""Strength of the light from one side, likewise."""


def light_plainly(api: viser.SceneApi) -> viser.DirectionalLightHandle:
    """Light a scene by sky and sun alone; return the sun.

    Without a graphics processor, the picture of surroundings in every surface and three layers of
    shadows take five times as long as all the rest.
    """
    api.configure_environment_map(None)
    api.configure_default_lights(enabled=False, cast_shadow=False)
    api.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=SHADE, intensity=SKY)
    return api.add_light_directional(
        "/sun", intensity=SUN, position=(-0.3, -0.5, 1.0), cast_shadow=False
    )


def with_length(arrows: Array) -> Array:
    """Return arrows with those of length zero replaced by the longest one, which hides them.

    A page would draw the head of an arrow of length zero.

    Args:
        arrows: Tails and heads, shape (A, 2, 3), [m].
    """
    lengths = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1)
    if not len(arrows) or lengths.all():
        return arrows
    return np.where(lengths[:, None, None] > 0.0, arrows, arrows[lengths.argmax()])
