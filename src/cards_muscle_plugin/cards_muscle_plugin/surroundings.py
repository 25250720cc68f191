"""What is around a robot, for cables with ``contact``; from whoever started Gazebo.

Gazebo has the shapes as it needs them: terrains are meshes there, and cables slide over the height
fields these came from. So `cards_bringup.gazebo.simulator`, which makes the world, leaves what is
around each robot in a file, as the embedded simulator would have it.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path

from cards_core.permissions import check_private
from cards_core.robot.elements import Collision, Link

VARIABLE = "CARDS_GAZEBO_SURROUNDINGS"
"""Environment variable with the path of that file, a pickle of a dict: the robot's name in the
world to its `Surroundings`. It is written and read by the same version of this code."""


@dataclass(frozen=True)
class Surroundings:
    """What a robot's cables may touch besides the robot.

    Attributes:
        fixed: Shapes of what stands still, in the world.
        moving: Links with shapes of other models that move, each with the name of its model in
            the world.
    """

    fixed: tuple[Collision, ...] = ()
    moving: tuple[tuple[str, Link], ...] = ()


def surroundings_of(robot: str) -> Surroundings | None:
    """Return what is around a robot; None if nobody said.

    Args:
        robot: Its name in the world.

    Raises:
        PermissionError: Others can write the file: what is unpickled must be ours.
        OSError: The file cannot be read.
    """
    file = os.environ.get(VARIABLE, "")
    if not file:
        return None
    check_private(Path(file))
    known: dict[str, Surroundings] = pickle.loads(Path(file).read_bytes())
    return known.get(robot)


def leave_surroundings(file: Path, known: dict[str, Surroundings]) -> dict[str, str]:
    """Write the file; return the variable that names it."""
    file.touch(mode=0o600)
    file.write_bytes(pickle.dumps(known))
    return {VARIABLE: str(file)}
