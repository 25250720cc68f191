"""What the command lines of importers share: options, progress, errors, exit codes.

The module of an importer's command has ``make_parser()`` and ``main(argv)``;
`cards_bringup.importers` lists them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.folder import check_folder
from cards_core.formats.imports.model import FIT_TARGETS, ImportedModel, write_imported
from cards_core.named_files import is_folder

Model = TypeVar("Model")
Value = TypeVar("Value", int, float)

EXIT_CODES = """\
exit codes: 0 done (warnings are in the report), 2 it cannot be imported, 130 Ctrl-C
"""


class Report(Protocol):
    """What a command says about an imported robot."""

    @property
    def findings(self) -> FindingList:
        """Warnings and notes."""

    def summary(self) -> str:
        """Return one line for a terminal."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""


def importer_parser(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Return the parser of an importer, without arguments.

    Args:
        name: Of the format.
        description: What is imported, and what comes of it.
        examples: What follows the options.
    """
    return argparse.ArgumentParser(
        prog=f"cards import {name}",
        description=description,
        epilog=examples + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_output_options(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    """Add ``-o``, ``--json``, ``--force``, ``--quiet`` and ``--name``.

    Args:
        parser: The importer's.
        named: With ``--name``.
    """
    parser.add_argument(
        "-o", "--output", type=nonempty, metavar="DIR", help="write DIR/<name>; else check only"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace an earlier import; files that were changed are kept as NAME.~1~",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no findings")
    if named:
        parser.add_argument(
            "--name",
            type=nonempty,
            metavar="NAME",
            help="name of the robot and of its folder (default: that in the file)",
        )


def nonempty(text: str) -> str:
    """Return the text of an option.

    Raises:
        argparse.ArgumentTypeError: It is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("'' (expected: a text)")
    return text


def number_type(
    convert: Callable[[str], Value], accepts: Callable[[Value], bool], expected: str
) -> Callable[[str], Value]:
    """Return the type of an option with a number.

    Args:
        convert: ``int`` or ``float``.
        accepts: Whether a number is within the range.
        expected: End of the error message, behind the text that was given.
    """

    def number(text: str) -> Value:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if accepts(value):
                return value
        raise argparse.ArgumentTypeError(f"'{text}'{expected}")

    return number


def add_package_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--package``, for what lies outside of the source's own package.

    Args:
        parser: The importer's.
    """
    parser.add_argument(
        "--package",
        type=_package,
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="folder of a package whose meshes are used; without it they come from the package "
        "or checkout of the file, and from ROS_PACKAGE_PATH and AMENT_PREFIX_PATH; repeatable",
    )


def _package(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not (name and folder and is_folder(Path(folder))):
        raise argparse.ArgumentTypeError(f"'{text}' (expected: NAME=DIR with an existing folder)")
    return name, Path(folder)


def run_command(options: argparse.Namespace, action: Callable[[argparse.Namespace], int]) -> int:
    """Run an importer and return its exit code; errors and Ctrl-C are said, not raised.

    Args:
        options: With ``json``.
        action: What to do with them; returns the exit code.
    """
    try:
        return action(options)
    except CardsError as error:
        if options.json:
            details = {"type": type(error).__name__, "message": str(error)}
            print(json.dumps({"error": details}))
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.ERROR
    except KeyboardInterrupt:
        print("interrupted, nothing was written", file=sys.stderr)
        return ExitCode.INTERRUPTED


def import_command(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    read: Callable[[argparse.Namespace, Progress], ImportedModel],
) -> int:
    """Run the command of an importer that makes an `ImportedModel`; return its exit code.

    Args:
        parser: With `add_output_options`.
        argv: Arguments after ``import FORMAT``; default those of the process.
        read: Reads the robot that the options name.
    """
    return run_command(
        parser.parse_args(argv),
        lambda options: import_robot(options, read, write_imported, lambda model: model),
    )


def import_robot(
    options: argparse.Namespace,
    read: Callable[[argparse.Namespace, Progress], Model],
    write: Callable[..., Path],
    report_of: Callable[[Model], Report],
) -> int:
    """Import the robot that options name, say what was found, and return the exit code.

    Args:
        options: Those of `add_output_options` and the importer's own.
        read: Reads the robot.
        write: Called with it, the folder of the options, ``force`` and ``on_kept``; returns where
            it is.
        report_of: What there is to say about it.
    """
    if options.output:
        check_folder(Path(options.output))
    kept: list[Path] = []
    target = None
    with Progress(options) as progress:
        model = read(options, progress)
        if options.output:
            target = write(model, options.output, force=options.force, on_kept=kept.append)
        else:  # what cannot be written is said as early
            with tempfile.TemporaryDirectory(prefix="cards-import-") as folder:
                write(model, folder, force=False, on_kept=kept.append)
    report = report_of(model)
    if options.json:
        result: dict[str, Any] = {
            "output": str(target) if target else None,
            "kept": [str(path) for path in kept],
        }
        print(json.dumps({**result, **report.to_dict()}, indent=2, allow_nan=False))
        return ExitCode.DONE
    if not options.quiet:
        for item in report.findings:
            print(item)
    print(report.summary())
    for path in kept:
        print(f"kept, as it was changed since the earlier import: {path}")
    print(f"written to {target}" if target else "nothing written (no -o DIR)")
    if target is not None:
        has_muscles = bool(getattr(getattr(model, "robot", None), "muscles", True))
        what = "./cards demo" if has_muscles else "./cards edit"
        place = shlex.quote(str(target))
        print(f"next: {what} {place}")
        if (target / FIT_TARGETS).is_file():
            targets = shlex.quote(str(target / FIT_TARGETS))
            print(f"or:   ./cards fit-muscles {place} {targets} -o fitted    nearer to the file")
    return ExitCode.DONE


class Progress:
    """One line on the terminal that is overwritten; gone when the block ends.

    Args:
        options: Those of `add_output_options`; quiet ones and ``--json`` show nothing.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._active = not options.quiet and not options.json and sys.stderr.isatty()
        self._length = 0

    def __call__(self, what: str, fraction: float) -> None:
        """Show what is being done and how much of it is done.

        Args:
            what: A few words.
            fraction: 0 to 1.
        """
        if self._active:
            text = f"{100 * fraction:3.0f} %  {what}"[:100]
            print("\r" + text.ljust(self._length), end="", file=sys.stderr, flush=True)
            self._length = len(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._active and self._length:
            print("\r" + " " * self._length + "\r", end="", file=sys.stderr, flush=True)
