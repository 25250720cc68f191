"""A robot as a MuJoCo model for other programs: tendons and actuators, checked by MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from cards_core.formats.mjcf.approximation import Approximation, with_native_paths
from cards_core.formats.mjcf.scene import tendon_notes
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.robot.model import Robot
from cards_sim.model import accepted, links_in_contact


@dataclass(frozen=True, eq=False)
class MjcfExport:
    """A robot as MJCF.

    Attributes:
        text: The file.
        robot: What the file holds: the robot, with the paths that MuJoCo can have.
        approximations: What became of paths that MuJoCo cannot have, with their error; the same
            stands in the file, as a comment in the tendon.
        notes: All that the file does not do of what the robot does, a line each.
    """

    text: str
    robot: Robot
    approximations: tuple[Approximation, ...]
    notes: tuple[str, ...]


def exported_mjcf(robot: Robot, timestep: float = 1e-3) -> MjcfExport:
    """Return a robot as MJCF with spatial tendons and actuators on them.

    Links that touch at home do not collide, as in the embedded simulator. Paths that MuJoCo cannot
    have become the nearest that it can, see `cards_core.formats.mjcf.approximation`.

    Args:
        robot: The robot.
        timestep: [s].

    Raises:
        DescriptionError: MuJoCo does not accept the robot; the message says why.
    """
    native, changes = with_native_paths(robot)
    comments = {change.muscle: str(change) for change in changes}

    def written(exclude: set[tuple[str, str]]) -> tuple[str, mujoco.MjModel]:
        text = to_mjcf(
            native,
            timestep=timestep,
            exclude=exclude,
            tendons=True,
            actuators=True,
            tendon_comments=comments,
        )
        return text, accepted(text, native)

    text, model = written(set())
    touching = links_in_contact(model, native)
    if touching:
        text = written(touching)[0]
    notes = [f"{muscle}: {comment}" for muscle, comment in comments.items()]
    return MjcfExport(text, native, changes, (*notes, *tendon_notes(native)))
