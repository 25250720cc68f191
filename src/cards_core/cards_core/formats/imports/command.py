"""What the command lines of importers share: options, progress, errors, exit codes.

The module of an importer's command has ``make_parser()`` and ``main(argv)``;
`cards_bringup.importers` lists them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.formats.imports.model import ImportedModel, write_imported


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add ``-o``, ``--json``, ``--force`` and ``--quiet``.

    Args:
        parser: The importer's.
    """
    parser.add_argument(
        "-o", "--output", type=nonempty, metavar="DIR", help="write DIR/<name>; else check only"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--force", action="store_true", help="replace an earlier import")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no findings")


def nonempty(text: str) -> str:
    """Return the text of an option.

    Raises:
        argparse.ArgumentTypeError: It is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("'' (expected: a text)")
    return text


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

    def action(options: argparse.Namespace) -> int:
        with Progress(
            active=not options.quiet and not options.json and sys.stderr.isatty()
        ) as progress:
            model = read(options, progress)
            target = (
                write_imported(model, options.output, force=options.force)
                if options.output
                else None
            )
        if options.json:
            result: dict[str, Any] = {"output": str(target) if target else None}
            print(json.dumps({**result, **model.to_dict()}, indent=2, allow_nan=False))
            return ExitCode.DONE
        if not options.quiet:
            for item in model.findings:
                print(item)
        print(model.summary())
        print(f"written to {target}" if target else "nothing written (no -o DIR)")
        return ExitCode.DONE

    return run_command(parser.parse_args(argv), action)


class Progress:
    """One line on the terminal that is overwritten; gone when the block ends.

    Args:
        active: Show it.
    """

    def __init__(self, *, active: bool) -> None:
        self._active = active
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
