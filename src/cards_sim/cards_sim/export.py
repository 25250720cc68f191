"""A robot as a MuJoCo model for other programs: tendons and actuators, checked by MuJoCo."""

from __future__ import annotations

import mujoco

from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.robot.model import Robot
from cards_sim.model import accepted, links_in_contact


def exported_mjcf(robot: Robot, timestep: float = 1e-3) -> str:
    """Return a robot as MJCF with spatial tendons and actuators on them.

    Links that touch at home do not collide, as in the embedded simulator. What tendons of MuJoCo
    cannot do says `cards_core.formats.mjcf.scene.tendon_notes`.

    Args:
        robot: The robot.
        timestep: [s].

    Raises:
        DescriptionError: MuJoCo does not accept the robot; the message says why.
    """

    def written(exclude: set[tuple[str, str]]) -> tuple[str, mujoco.MjModel]:
        text = to_mjcf(robot, timestep=timestep, exclude=exclude, tendons=True, actuators=True)
        return text, accepted(text, robot)

    text, model = written(set())
    touching = links_in_contact(model, robot)
    return written(touching)[0] if touching else text
