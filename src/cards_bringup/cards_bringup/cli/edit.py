"""``./cards edit``: draw, wrap and tune the muscles of a robot in the browser."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

from cards_bringup.bootstrap.process import ended_by_signals
from cards_bringup.cli import add_output_option
from cards_bringup.option_types import WholeNumber

EXAMPLES = """examples:
  ./cards edit my_robot                   its muscles, or the first ones of a robot without any
  ./cards edit path/to/model.sdf
  ./cards edit arm.urdf                   imported into a folder beside it, once
  ./cards edit roboy_arm -o arm.sdf       Save writes arm.sdf; the robot's own file stays
  ./cards edit my_robot --recover         go on with what was not saved
  ./cards edit my_robot --discard         delete what was not saved
  ./cards edit my_robot --host 0.0.0.0    from a tablet, with the link that is printed

Save changes the muscles in the text of the SDF file and nothing else: comments and elements of
other programs stay. What was there is kept as model.sdf.~1~, ~2~, ... What is not saved is kept
in model.sdf.unsaved, also when the program is killed. With -o in another folder the robot takes
its meshes along, into a folder meshes/ there.

exit code: 0 ended by Ctrl-C with everything saved; 130 ended with unsaved changes, which are kept;
2 it could not be opened. Step by step: docs/muscle_editor.md
"""


def add_edit(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "edit",
        description="Draw, wrap and tune the muscles of a robot in the browser.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add(
        "robot",
        help="name under models/, or the path of an SDF file, or of a URDF, which is imported "
        "into a folder beside it",
    )
    add_output_option(parser, "FILE", "SDF file that Save writes (the robot's own)", type=Path)
    add("--force", action="store_true", help="Save may replace that file; a copy is kept")
    add("--model", metavar="NAME", help="which model of a world with several")
    kept = parser.add_mutually_exclusive_group().add_argument
    kept("--recover", action="store_true", help="go on with what was not saved")
    kept("--discard", action="store_true", help="delete what was not saved, then open the robot")
    add(
        "--port",
        type=WholeNumber(at_most=65535),
        default=8080,
        help="port of the page (%(default)s)",
    )
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 opens the page to the network (%(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_core.editing.block_checks import drafts
    from cards_core.editing.editor import MuscleEditor, discard
    from cards_core.errors import CardsError
    from cards_core.exit_codes import ExitCode
    from cards_core.files import check_new
    from cards_viz.editor.page import EditorPage
    from cards_viz.pages.access import network_note

    if args.output is not None and not args.output.resolve().parent.is_dir():
        raise CardsError(f"{args.output.parent} is no folder (expected: one that exists)")
    robot = sdf_of(args.robot)
    if args.output is not None and not _is_own(robot, args.output):
        check_new(args.output, force=args.force or args.recover or args.discard)
    if args.discard:
        print(f"deleted {discard(robot, args.output)}")
    editor = MuscleEditor(robot, model=args.model, output=args.output, recover=args.recover)
    print(f"opening {editor.base.name} ...", file=sys.stderr, flush=True)
    if editor.foreign:
        print(
            f"note: {editor.file} is not what these changes were made to: another program has "
            "changed it; Save keeps that as a copy beside it and writes what is open here",
            flush=True,
        )
    with ended_by_signals(once=True):
        with contextlib.suppress(KeyboardInterrupt):
            page = EditorPage(editor, host=args.host, port=args.port)
            try:
                if note := network_note(args.host):
                    print(f"{note}{page.spectator_url}", flush=True)
                print(f"{page.url} (Save writes {editor.file}; Ctrl-C ends)", flush=True)
                page.wait()
            finally:
                page.stop()
        kept = editor.keep_unsaved()
    if kept is None:
        if editor.file.is_file() and editor.block.muscles:
            print(f"next: ./cards demo {shlex.quote(str(editor.file))}", flush=True)
        return ExitCode.DONE
    print(f"unsaved changes are kept in {kept}", flush=True)
    print(f"next: {_again(args)} --recover", flush=True)
    if left_out := drafts(editor.block):
        print(f"left out, not finished: muscle {', '.join(left_out)}", flush=True)
    return ExitCode.INTERRUPTED


def _is_own(robot: str | Path, output: Path) -> bool:
    """Whether a file is the robot's own."""
    from cards_core.formats import find_model

    return output.is_file() and output.samefile(find_model(robot))


def _again(args: argparse.Namespace) -> str:
    """Return the command that opens the same robot again."""
    words = ["./cards", "edit", args.robot]
    if args.output is not None:
        words += ["-o", str(args.output)]
    if args.model is not None:
        words += ["--model", args.model]
    return shlex.join(words)


def sdf_of(robot: str) -> str | Path:
    """Return what the editor opens; of a URDF the SDF of its import, made once beside it.

    Args:
        robot: Name, or path of an SDF or URDF.

    Raises:
        CardsError: The URDF cannot be imported, or the folder is something else: an import of
            what the URDF was before, or of another file.
    """
    from cards_core.formats.imports.model import write_imported
    from cards_core.formats.imports.source_file import REPORT
    from cards_core.formats.urdf.importer import import_urdf, is_urdf

    path = Path(robot)
    if not is_urdf(path):
        return robot
    model = import_urdf(path)
    folder = path.resolve().parent / model.name
    if (folder / f"{REPORT}.json").is_file():
        _check_import(folder, path)
    else:
        print(f"imported to {write_imported(model, folder.parent)}: {model.summary()}", flush=True)
    return folder / "model.sdf"


def _check_import(folder: Path, urdf: Path) -> None:
    """Refuse to open the import of something else in the place of a URDF."""
    from cards_core.errors import CardsError
    from cards_core.formats.imports.source_file import relation_to, source_name

    relation = relation_to(folder, urdf)
    if relation == "same":
        return
    file, parent = shlex.quote(str(urdf)), shlex.quote(str(folder.parent))
    again = f"./cards import urdf {file} -o {parent} --force, which keeps a changed model.sdf as "
    again += "model.sdf.~1~"
    problem = {
        "changed": f"was imported from {urdf.name} before that was changed",
        "unknown": f"was imported from {source_name(folder)}, by a version that has not kept "
        "its content",
        "other": f"was imported from another file, {source_name(folder)}",
    }[relation]
    if relation == "other":
        again = f"./cards import urdf {file} -o {parent} --name NAME"
    raise CardsError(
        f"{folder} {problem} (expected: {again}; or ./cards edit "
        f"{shlex.quote(str(folder / 'model.sdf'))} as it is)"
    )
