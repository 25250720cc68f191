"""Find and read the references that a controller is told to track."""

from __future__ import annotations

import os
from pathlib import Path

from cards_core.errors import UnknownNameError
from cards_core.robot.model import Robot, Tree
from cards_core.trajectories import Reference, Space, TrajectoryError, load_references


def reference_folders() -> list[Path]:
    """Return the existing folders with trajectory files, in the order of search.

    ``config/trajectories`` of this repository if the code runs from a checkout, then
    ``share/cards_bringup/config/trajectories`` of every prefix in ``AMENT_PREFIX_PATH``.
    """
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    folders = [
        # src/cards_core/cards_core/trajectories/reference_files.py -> the checkout
        Path(__file__).resolve().parents[4] / "config" / "trajectories",
        *(Path(p, "share", "cards_bringup", "config", "trajectories") for p in prefixes if p),
    ]
    return [folder for folder in folders if folder.is_dir()]


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
