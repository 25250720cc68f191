"""A robot as a MuJoCo model for other programs: tendons and actuators, checked by MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cards_core.formats.mesh_copies import with_meshes
from cards_core.formats.mjcf.approximation import Approximation, with_native_paths
from cards_core.formats.mjcf.mesh_files import without_damaged
from cards_core.formats.mjcf.scene import mesh_notes, tendon_notes
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


def exported_mjcf(robot: Robot, meshes: Callable[[str], str] | None = None) -> MjcfExport:
    """Return a robot as MJCF with spatial tendons and actuators on them.

    Links that touch at home do not collide, as in the embedded simulator. Paths that MuJoCo cannot
    have become the nearest that it can, see `cards_core.formats.mjcf.approximation`.

    Args:
        robot: The robot.
        meshes: What the file calls the mesh with a URI, e.g. by a path relative to the file;
            without it absolute paths are written.

    Raises:
        DescriptionError: MuJoCo does not accept the robot; the message says why.
    """
    whole, damaged = without_damaged(robot)
    native, changes = with_native_paths(whole)
    comments = {change.muscle: str(change) for change in changes}

    def written(robot: Robot, exclude: set[tuple[str, str]]) -> str:
        return to_mjcf(
            robot,
            timestep=1e-3,
            exclude=exclude,
            tendons=True,
            actuators=True,
            tendon_comments=comments,
        )

    text = written(native, set())
    touching = links_in_contact(accepted(text, native), native)
    if meshes is not None:
        named = replace(with_meshes(native, meshes), source=None)
        text = written(named, touching)
    elif touching:
        text = written(native, touching)
    notes = [f"{muscle}: {comment}" for muscle, comment in comments.items()]
    notes += [*tendon_notes(native), *mesh_notes(native), *damaged]
    return MjcfExport(text, native, changes, tuple(notes))
