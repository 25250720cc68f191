"""Find and read the references that a controller is told to track."""

from __future__ import annotations

from pathlib import Path

from cards_core.errors import UnknownNameError
from cards_core.robot.model import Robot, Tree
from cards_core.shared_files import shared_folders
from cards_core.trajectories import Reference, Space, TrajectoryError, load_references


def reference_folders() -> list[Path]:
    """Return the existing folders with trajectory files, in the order of search."""
    return shared_folders("config", "trajectories")


def find_reference_file(name_or_path: str, robot: Robot) -> Path:
    """Return a trajectory file.

    Args:
        name_or_path: A file, or the name of one (without ``.yaml``) in `reference_folders`; empty
            means the one with the robot's name.
        robot: The robot.

    Raises:
        UnknownNameError: There is no such file; the message lists those there are.
    """
    text = name_or_path or robot.name
    if Path(text).is_file():
        return Path(text)
    folders = reference_folders()
    if Path(text).name == text:
        for folder in folders:
            file = folder / f"{text.removesuffix('.yaml')}.yaml"
            if file.is_file():
                return file
    known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
    raise UnknownNameError("trajectory file", text, known)


def read_reference(
    name: str,
    name_or_path: str,
    robot: Robot,
    tree: Tree,
    *,
    space: Space,
    operational_size: int | None = None,
) -> Reference:
    """Return a reference by name.

    Args:
        name: Name in the file.
        name_or_path: See `find_reference_file`.
        robot: The robot.
        tree: Its coordinates.
        space: The space that the controller works in.
        operational_size: Number of its operational coordinates.

    Raises:
        DescriptionError: Something is wrong in the file; the message names file and line.
        UnknownNameError: No such file or reference; the message lists those there are.
        TrajectoryError: The reference is of the other space.
    """
    file = find_reference_file(name_or_path, robot)
    references = load_references(
        file, names=tree.position_names, operational_size=operational_size
    )
    if name not in references:
        raise UnknownNameError(f"trajectory in {file}", name, references)
    reference = references[name]
    if reference.space != space:
        fitting = ", ".join(n for n, r in references.items() if r.space == space) or "none here"
        raise TrajectoryError(
            f"{file}: trajectory '{name}' is in {reference.space} space, expected one in {space} "
            f"space: {fitting}"
        )
    return reference
