"""``./cards export`` to SDF, URDF, MJCF and CASPR: a robot in another format, with its meshes."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cards_core.errors import CardsError

if TYPE_CHECKING:
    from cards_core.formats.mesh_copies import MeshCopies
    from cards_core.robot.model import Robot

FORMATS = ("mjcf", "urdf", "sdf", "caspr")
"""Formats that hold a robot, not its equations."""


def run(args: argparse.Namespace) -> int:
    """Write the robot.

    Raises:
        CardsError: A file cannot be written, or its name not be read by others.
        DescriptionError: The format cannot have this robot.
    """
    from cards_core.formats import load

    if args.json and args.output is None:
        raise CardsError("--json without -o (expected: -o and what is written)")
    output = None if args.output is None else Path(args.output)
    if args.format == "mjcf" and output is not None:
        _check_ending(output)
    robot = load(args.robot)
    if args.format == "caspr":
        files, notes = _write_caspr(args, robot)
    else:
        files, notes = _write_file(args.format, robot, output)
    if not args.quiet:
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    if args.json:
        report = {
            "format": args.format,
            "robot": robot.name,
            "output": str(files[0]),
            "files": [str(file) for file in files],
            "notes": notes,
        }
        print(json.dumps(report, indent=2))
    elif not args.quiet and files:
        _say_written(args.format, files)
    return 0


def _check_ending(output: Path) -> None:
    if output.suffix != ".xml" and not _is_special(output):
        raise CardsError(
            f"{output}: MuJoCo reads files that end on .xml (expected: "
            f"{output.with_name((output.stem or output.name) + '.xml')})"
        )


def _say_written(kind: str, files: list[Path]) -> None:
    from cards_core.formats.mesh_copies import FOLDER

    first, *others = files
    if kind == "caspr":
        print(f"wrote {first} and {first}_list.csv", file=sys.stderr)
        return
    meshes = ""
    if others:
        folder = _beside(first) / FOLDER
        meshes = f" and {len(others)} mesh{'' if len(others) == 1 else 'es'} in {folder}"
    size = f" ({first.stat().st_size / 1000:.0f} kB)" if first.is_file() else ""
    print(f"wrote {first}{size}{meshes}", file=sys.stderr)


def _is_special(output: Path) -> bool:
    """Return whether a path is no place beside which there could be meshes, a pipe say."""
    return output.exists() and not output.is_file()


def _beside(output: Path) -> Path:
    """Return the folder of a file, that of its target if it is a link."""
    return output.resolve().parent if output.is_symlink() else output.parent


def _write_file(kind: str, robot: Robot, output: Path | None) -> tuple[list[Path], list[str]]:
    """Write a robot and the meshes that it needs; return the files, and what to say."""
    from cards_core.formats.mesh_copies import mesh_files, place_meshes
    from cards_core.formats.mjcf.mesh_files import converted, without_damaged
    from cards_core.formats.mjcf.scene import MESH_SUFFIXES

    # links alone: neither format has the meshes that muscles wrap over
    drawn = robot if kind == "sdf" else replace(robot, wrap_surfaces=(), muscles=())
    if kind == "mjcf":
        drawn, _ = without_damaged(drawn)  # which the text notes
    meshes = mesh_files(drawn)
    if kind == "mjcf":
        meshes = [file for file in meshes if file.suffix.lower() in MESH_SUFFIXES]
    if output is None or _is_special(output):
        text, notes = _text(kind, robot, None)
        if meshes:
            notes.append(
                "meshes have their paths on this machine, which nothing else can read "
                "(expected: -o FILE, which copies them beside it)"
            )
        ascii_files = [file.name for file in meshes if kind == "mjcf" and converted(file)]
        if ascii_files:
            notes.append(
                f"MuJoCo does not read ASCII STL: {', '.join(ascii_files)} (expected: -o FILE, "
                "which writes binary copies)"
            )
        if output is None:
            print(text, end="")
            return [], notes
        write_text(output, text)
        return [output], notes
    try:
        change = converted if kind == "mjcf" else None
        copies = place_meshes(meshes, output.resolve().parent, change)
    except OSError as error:
        raise CardsError(f"a mesh cannot be read: {error}") from None
    text, notes = _text(kind, robot, copies)
    write_text(output, text, copies)
    return [output, *(_beside(output) / name for name in copies.listed)], notes


def _text(kind: str, robot: Robot, copies: MeshCopies | None) -> tuple[str, list[str]]:
    """Return a robot as text that names the copies of its meshes, and what to say about it."""
    from cards_core.formats import to_sdf
    from cards_core.formats.mesh_copies import elsewhere, with_meshes
    from cards_core.formats.urdf.writer import left_out, to_urdf

    if kind == "mjcf":
        from cards_sim.export import exported_mjcf

        export = exported_mjcf(robot, meshes=None if copies is None else copies.uri)
        return export.text, list(export.notes)
    notes = [f"mesh '{uri}' is not copied: it is no file here" for uri in elsewhere(robot)]
    if copies is not None:
        robot = with_meshes(robot, copies.uri)
    if kind == "sdf":
        return to_sdf(robot), notes
    notes = [*left_out(robot), *notes]
    # without a source relative paths stay as they are
    return to_urdf(robot if copies is None else replace(robot, source=None)), notes


def _write_caspr(args: argparse.Namespace, robot: Robot) -> tuple[list[Path], list[str]]:
    """Write the folder of a robot for CASPR; return it with the list beside it, and notes.

    Raises:
        CardsError: No folder was named, or it cannot be written.
        DescriptionError: CASPR cannot have this robot.
    """
    from cards_core.formats.caspr import to_caspr, write_caspr

    if args.output is None:
        raise CardsError("a robot of CASPR has several files (expected: -o and a folder)")
    export = to_caspr(robot)
    folder = Path(write_caspr(export, args.output, force=args.force))
    return [folder, folder.with_name(f"{folder.name}_list.csv")], list(export.notes)


def write_text(file: Path, text: str, copies: MeshCopies | None = None) -> None:
    """Write a file, and before it the meshes that it names.

    Args:
        file: The file.
        text: Its text.
        copies: Of its meshes.

    Raises:
        CardsError: It cannot be written; no new mesh is left then.
    """
    from cards_core.files import write_atomically

    try:
        with contextlib.nullcontext() if copies is None else copies.made():
            write_atomically(file, text)
    except OSError as error:
        reason = error.strerror or error
        raise CardsError(
            f"cannot write '{file}': {reason} (expected: -o and a file in a folder that exists)"
        ) from error
