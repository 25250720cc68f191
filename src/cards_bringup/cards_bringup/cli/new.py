"""``./cards new``: create a small robot that moves at once, to edit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cards_bringup.cli import add_output_option
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards new my_robot                   my_robot/: model, parameters, trajectory, and what to edit
  ./cards demo my_robot                  it moves
  ./cards new crane -o robots            robots/crane/

Nothing is overwritten. Step by step: docs/tutorial_own_robot.md
"""

TEMPLATE = ("config", "standard", "new_robot")
"""Folder with the files, in the shared folder."""

NAME = "NAME"
"""What stands for the robot's name in them."""


def add_new(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("new", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("name", help="of the robot, and of its folder")
    text = "folder that gets the robot's folder (default: the current one)"
    add_output_option(parser, "DIR", text, type=Path, default=Path())
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    folder = write_new(args.name, args.output)
    print(f"wrote {folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}")
    where = args.name if args.output == Path() else str(folder / "model.sdf")
    print(f"it moves: ./cards demo {where}\nwhat to edit: {folder / 'README.md'}")
    return ExitCode.DONE


def write_new(name: str, parent: Path) -> Path:
    """Write the folder of a new robot; return it.

    Args:
        name: Of the robot, and of its folder.
        parent: Where the folder goes; made if it is missing.

    Raises:
        CardsError: The name cannot be one, is that of a shipped robot, or the folder exists.
        OSError: The files cannot be written.
    """
    from cards_core.errors import CardsError
    from cards_core.files import writing_together
    from cards_core.formats.locate import known_models
    from cards_core.names import LONGEST
    from cards_core.shared_files import shared_folder

    if not (name.isascii() and name.isidentifier() and len(name) <= LONGEST):
        raise CardsError(
            f"'{name}' is not a valid robot name (expected: at most {LONGEST} letters, digits and "
            "_, no digit first, e.g. my_robot)"
        )
    if name in known_models():
        raise CardsError(
            f"there is a robot '{name}' (expected: another name than those of ./cards models)"
        )
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise CardsError(f"{folder} exists, and nothing is overwritten (expected: a new name)")
    template = shared_folder().joinpath(*TEMPLATE)
    with writing_together(folder) as work:
        for file in sorted(template.iterdir()):
            text = file.read_text(encoding="utf-8")
            (work / file.name).write_text(text.replace(NAME, name), encoding="utf-8")
    return folder
