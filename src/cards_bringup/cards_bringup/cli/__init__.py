"""The command line: each command is in a module that is imported when the command is used.

The module has ``add_COMMAND(subparsers)``, which declares the command and sets ``run`` as a
default, a function of the parsed arguments that returns the exit code. Only the module that was
asked for is imported, so ``--help`` is quick and a broken optional package affects its own command
alone.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cards_core.exit_codes import MEANING, ExitCode

COMMANDS = {
    "demo": ("cards_bringup.cli.demo", "move a robot: simulator, controller, view, run folder"),
    "show": ("cards_bringup.cli.show", "a robot, a recorded run or two of them in the browser"),
    "video": ("cards_bringup.cli.video", "a film of a recorded run"),
    "compare": ("cards_bringup.cli.compare", "two runs of one robot in the same figures"),
    "monitor": (
        "cards_bringup.cli.monitor",
        "monitor a real robot: muscles, temperatures, faults",
    ),
    "calibrate": ("cards_bringup.cli.calibrate", "set zero points of a real robot's sensors"),
    "models": ("cards_bringup.cli.models", "list the available robots"),
    "layout": ("cards_bringup.cli.layout", "layout files of Foxglove and PlotJuggler for a robot"),
    "new": ("cards_bringup.cli.new", "create a small robot that moves at once, to edit"),
    "edit": (
        "cards_bringup.cli.edit",
        "draw, wrap and tune the muscles of a robot in the browser",
    ),
    "controllers": (
        "cards_bringup.cli.controllers",
        "list the controllers, or parameters of one",
    ),
    "eval": ("cards_bringup.cli.eval", "M, C, G, l, L, J and tensions of a robot at one state"),
    "analyse": ("cards_bringup.cli.analyse", "kinematics, tensions, stiffness, workspaces"),
    "check": ("cards_bringup.cli.check", "check whether a robot with muscles can be controlled"),
    "compile": ("cards_bringup.cli.conversion", "turn a robot into native code, with a report"),
    "export": ("cards_bringup.cli.conversion", "a robot in another format, or its equations"),
    "build": ("cards_bringup.cli.build", "build a tensegrity from a YAML file"),
    "fit-muscles": (
        "cards_bringup.cli.fit_muscles",
        "move via points so that moment arms, torques, closure are as wanted",
    ),
    "import": ("cards_bringup.cli.conversion", "convert a robot of another program to SDF"),
    "bench": ("cards_bringup.cli.bench", "measure the model update, the QP and the control loop"),
    "learn": ("cards_bringup.cli.learn", "learn a gait by trials in the simulator"),
    "reproduce": (
        "cards_bringup.cli.reproduce",
        "reproduce published experiments",
    ),
    "soak": (
        "cards_bringup.cli.soak",
        "put random faults into running systems, and judge what they do",
    ),
    "doctor": ("cards_bringup.cli.doctor", "check this machine and report what is missing"),
    "docs": ("cards_bringup.cli.docs", "build the documentation as a site"),
    "test": ("cards_bringup.cli.test", "run the tests"),
    "setup": (None, "create the environment now (other commands create it when needed)"),
}
"""Command name to its module and one line of help; ``setup`` is handled before Python packages."""

ALIASES = {"analyze": "analyse"}
"""Other spellings of commands."""

EXAMPLES = """examples:
  ./cards demo roboy_arm            the arm draws a flower; watch it in the browser
  ./cards demo planar_2r --headless --mode lockstep --out run
  ./cards models                    list the robots
  ./cards controllers               what can drive them
  ./cards doctor                    when something does not work
  ./cards COMMAND --help            help on one command

The first command that needs it makes an environment in .venv with everything in it.
Results go to --out, else into runs/ of the current folder.

exit codes:
"""


class UsageError(SystemExit):
    """A command line that was not understood; usage and message are printed already."""

    def __init__(self, message: str) -> None:
        super().__init__(int(ExitCode.ERROR))
        self.message = message


class Parser(argparse.ArgumentParser):
    """Accepts ``--q -0.3,0.5`` and no abbreviations, and reports errors of the right command.

    Argparse takes ``-0.3,0.5`` for an option, ``--q`` for ``--quiet`` where there is no ``--q``,
    and shows the usage of ``./cards`` where an option of a command is unknown.

    Attributes:
        passes_on: Unknown options in front belong to ``rest``, the arguments of another program.
    """

    passes_on = False

    def __init__(self, *args: Any, **settings: Any) -> None:
        # descriptions and examples are broken into lines already
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": layout, **settings})
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse what is left over here, where the usage is that of the command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest and self.passes_on:
            found.rest, rest = [*rest, *found.rest], []
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # an empty text is what a shell makes of a variable that is not set: taken for no option,
        # it would give the answer to another question. Numbers refuse it by themselves
        text = action.option_strings and action.type in (None, str, Path) and not action.choices
        if text and "" in arg_strings:
            raise argparse.ArgumentError(
                action, "'' (expected: a value, or leave the option out for its default)"
            )
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Print usage and message. Raises `UsageError`."""
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        raise UsageError(message)


def resolved(arguments: Sequence[str]) -> list[str]:
    """Return a command line whose command is spelled as in `COMMANDS`."""
    out = list(arguments)
    if out:
        out[0] = ALIASES.get(out[0], out[0])
    return out


def exit_codes() -> str:
    """Return the table of exit codes for a terminal."""
    indent = " " * 7
    return "\n".join(
        textwrap.fill(text, 79, initial_indent=f"  {code:>3}  ", subsequent_indent=indent)
        for code, text in MEANING.items()
    )


def version() -> str:
    """Return the version of CARDS."""
    from cards_core import __version__

    return __version__


def make_parser(command: str | None = None, words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of one command, or one that describes all of them.

    Args:
        command: A name in `COMMANDS`.
        words: The command line after the command; ``analyse`` declares the kind in it alone.

    Raises:
        ImportError: The command's module needs a package that is not installed.
    """
    parser = Parser(
        prog="./cards",
        description="Cable-driven robot design and simulation: cables, tendons, muscles, rods.",
        epilog=EXAMPLES + exit_codes(),
    )
    parser.add_argument("--version", action="version", version=f"cards {version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    if command is None:
        for name, (_, text) in COMMANDS.items():
            subparsers.add_parser(name, help=text)
    else:
        module = COMMANDS[command][0]
        assert module is not None
        add = getattr(importlib.import_module(module), f"add_{command.replace('-', '_')}")
        add(subparsers, words) if command == "analyse" else add(subparsers)
        for one in subparsers.choices.values():  # docstrings are marked up, terminals are not
            one.description = (one.description or "").replace("``", "")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code, one of `ExitCode`."""
    argv = resolved(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()  # here, where a full disk can still be told
    except SystemExit as stop:  # argparse: help or a usage error, already printed
        if isinstance(stop, UsageError) and "--json" in argv:
            print(json.dumps({"error": {"type": "UsageError", "message": stop.message}}))
        return stop.code if isinstance(stop.code, int) else ExitCode.ERROR
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # the reader of a pipe is gone, e.g. `| head`
        _drop_output()
        return ExitCode.PIPE_CLOSED
    except Exception as error:
        return report(error, as_json="--json" in argv)


def _run(argv: list[str]) -> int:
    if not argv:
        make_parser().print_help()
        return ExitCode.DONE
    known = argv[0] in COMMANDS and COMMANDS[argv[0]][0] is not None
    args = make_parser(argv[0] if known else None, argv[1:]).parse_args(argv)
    return int(args.run(args))


def report(error: Exception, *, as_json: bool) -> int:
    """Print an expected error in one line, and as a JSON object if asked.

    Raises:
        Exception: The given one, if it is none of these: that is a bug, and its traceback is
            wanted.
    """
    message = _words(error)
    with contextlib.suppress(OSError):  # there may be nowhere to say it
        print(f"error: {message}", file=sys.stderr, flush=True)
    if as_json:
        details: dict[str, Any] = {"type": type(error).__name__, "message": message}
        with contextlib.suppress(OSError):
            print(json.dumps({"error": details}), flush=True)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return ExitCode.ERROR


def _words(error: Exception) -> str:
    """Return what an error says in one line. Raises the error if it is a bug."""
    from cards_bringup.findings import shadowing
    from cards_core.errors import CardsError

    match error:
        case CardsError():
            return str(error)
        case MemoryError():
            what = f": {error}" if str(error) else ""
            return f"out of memory{what} (expected: a smaller task)"
        case ImportError() if error.path and (others := shadowing(Path(error.path).parent)):
            return (
                f"LD_LIBRARY_PATH puts another program's {others[0]} in the place of ours: "
                f"{error} (expected: LD_LIBRARY_PATH unset, or without that folder)"
            )
        case OSError() if error.filename == "standard output":
            return f"{error.filename}: {error.strerror}"
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return (
                f"{error.filename or 'cannot write a file'}: {error.strerror} "
                "(expected: free space where the results go, in CARDS_CACHE or ~/.cache, and in "
                "TMPDIR or /tmp)"
            )
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}"
        case OSError():
            return str(error.strerror or error)
    raise error


def add_output_option(
    parser: argparse.ArgumentParser, metavar: str, text: str, **settings: Any
) -> None:
    """Add ``-o``, which is called ``--out`` and ``--output``, too.

    Args:
        parser: The command's.
        metavar: What is written: ``FILE`` or ``DIR``.
        text: Help.
        settings: More of those of ``add_argument``.
    """
    names = ("-o", "--out", "--output")
    parser.add_argument(*names, dest="output", metavar=metavar, help=text, **settings)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells, the same number in each, in columns as wide as their longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def say(text: str) -> None:
    """Print a note beside the results; ignored if standard error is closed."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def print_result(
    content: Mapping[str, Any], files: Sequence[Path], show: Callable[[], None], *, as_json: bool
) -> None:
    """Print a result and the files that it was written to.

    Args:
        content: The result as JSON holds it.
        files: Where it was written.
        show: Prints it for people.
        as_json: Print one JSON object instead.
    """
    if as_json:
        print(json.dumps({**content, "files": [str(file) for file in files]}))
        return
    show()
    for file in files:
        print(file)


def _drop_output() -> None:
    """Discard output that cannot be written, which Python would report again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
