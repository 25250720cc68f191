"""What stands still around a robot, for cables with ``contact``; from whoever started Gazebo.

Gazebo has the shapes as it needs them: terrains are meshes there, and cables slide over the height
fields these came from. So `cards_bringup.gazebo.simulator`, which makes the world, leaves the
shapes of each robot's surroundings in a file, as the embedded simulator would have them.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from cards_core.robot.elements import Collision

VARIABLE = "CARDS_GAZEBO_SURROUNDINGS"
"""Environment variable with the path of that file, a pickle of a dict: the robot's name in the
world to its shapes. It is written and read by the same version of this code."""


def surroundings_of(robot: str) -> tuple[Collision, ...] | None:
    """Return what stands still around a robot, in the world; None if nobody said.

    Args:
        robot: Its name in the world.

    Raises:
        OSError: The file cannot be read.
    """
    file = os.environ.get(VARIABLE, "")
    if not file:
        return None
    known: dict[str, tuple[Collision, ...]] = pickle.loads(Path(file).read_bytes())
    return known.get(robot)


def leave_surroundings(file: Path, known: dict[str, tuple[Collision, ...]]) -> dict[str, str]:
    """Write the file; return the variable that names it."""
    file.write_bytes(pickle.dumps(known))
    return {VARIABLE: str(file)}
