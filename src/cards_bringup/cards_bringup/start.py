"""What ``./cards`` runs: makes the environment if necessary, then becomes CARDS in it.

It runs in a bare Python, before anything is installed: what is imported here needs the standard
library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from cards_bringup import cli
from cards_bringup.bootstrap import Environment, SetupError, ros
from cards_bringup.bootstrap.process import CommandInterrupts, open_streams
from cards_bringup.cli.test import check_paths
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode

SETUP_USAGE = """usage: ./cards setup [--test] [--recreate]

Makes the environment that every other command makes when it is needed: .venv in the checkout,
or the folder that CARDS_VENV names.

options:
  --test       add what testing, developing and building the documentation need
  --recreate   remove an environment that ./cards made, and rebuild it

examples:
  ./cards setup
  CARDS_VENV=/scratch/cards-venv ./cards setup --test
"""


def main(checkout: str | Path, arguments: Sequence[str]) -> int:
    """Set up what the arguments need, then run CARDS in place of this process.

    Args:
        checkout: Top folder of the repository.
        arguments: The command line without the program's name.
    """
    try:
        CommandInterrupts().accept()
        open_streams()
        return _main(Path(checkout), cli.resolved(arguments))
    except SetupError as error:
        print(f"cards: error: {error}", file=sys.stderr)
        return ExitCode.ERROR
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        print(f"cards: error: {error.strerror or error}{place}", file=sys.stderr)
        return ExitCode.ERROR
    except KeyboardInterrupt:
        print("\ncards: interrupted; the next run takes it up again", file=sys.stderr)
        return ExitCode.INTERRUPTED


def _main(checkout: Path, arguments: list[str]) -> int:
    if wants_help(arguments):
        if arguments and arguments[0] == "setup":
            print(SETUP_USAGE, end="")
            return 0
        status = _run_here(arguments)
        if status is not None:
            return status
    _check_command(arguments)
    command = arguments[0]
    environment = Environment(checkout, ros.in_shell(os.environ))
    if command == "setup":
        return _setup(environment, arguments[1:])
    if command == "doctor" and not _usable(environment):
        # a diagnosis must not start an installation, which may be what fails
        status = _run_here(arguments)
        return ExitCode.ERROR if status is None else status
    if command == "test":
        _check_tests(arguments[1:], checkout)
    environment.ensure(
        environment.sets(
            cad=arguments[:2] == ["import", "cad"],
            docs=command == "docs",
            test=command == "test",
        )
    )
    environment.become("cards_bringup", arguments)
    return ExitCode.ERROR


def wants_help(arguments: Sequence[str]) -> bool:
    """Return True if the arguments only ask what there is; that needs no environment."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return not arguments or any(item in ("-h", "--help", "--version") for item in before)


def _usable(environment: Environment) -> bool:
    try:
        return environment.is_ready(environment.sets())
    except SetupError:
        return False


def _check_command(arguments: list[str]) -> None:
    """Refuse a mistyped command before an installation starts for it."""
    if arguments[0] not in cli.COMMANDS:
        close = get_close_matches(arguments[0], cli.COMMANDS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise SetupError(f"no command '{arguments[0]}'{hint} Known: {', '.join(cli.COMMANDS)}")


def _check_tests(arguments: list[str], checkout: Path) -> None:
    """Refuse paths of tests that there are not, before an installation starts for them."""
    try:
        check_paths(arguments, checkout)
    except CardsError as error:
        raise SetupError(str(error)) from None


def _run_here(arguments: list[str]) -> int | None:
    """Run a command in this Python; None if it needs a package that is not there."""
    try:
        return cli.main(arguments)
    except ImportError:
        return None


def _setup(environment: Environment, options: list[str]) -> int:
    unknown = sorted(set(options) - {"--test", "--recreate"})
    if unknown:
        raise SetupError(f"setup has no option '{unknown[0]}' (expected: --test or --recreate)")
    if "--recreate" in options:
        environment.remove()
    sets = environment.sets(test="--test" in options)
    if not environment.ensure(sets):
        print(f"cards: {environment.path} is up to date", file=sys.stderr)
    return 0
