"""Where the camera of pictures and films is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """Where the camera is.

    Attributes:
        azimuth: Direction that it looks in, about the vertical axis, [deg].
        elevation: Above the horizontal if negative, [deg].
        distance: From the middle of the robot, relative to the size of the robot.
        follow: The camera goes with the robot.
    """

    azimuth: float = 130.0
    elevation: float = -20.0
    distance: float = 1.0
    follow: bool = True
