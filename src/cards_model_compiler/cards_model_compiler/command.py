"""Executable ``compile``, and the command ``./cards compile``: robots into native code."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Self

from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  {prog} roboy_arm                               M, C, G, l, L for one state at a time
  {prog} models/planar_2r/model.sdf --force      again, although the cache has it
  {prog} roboy_arm --emit M,G,L,dL_dq --batch    chosen quantities, also for many states at once
  {prog} roboy_arm planar_2r --json              several; a report for another program

quantities:
{quantities}
Code goes to $CARDS_CACHE, or ~/.cache/cards; a robot that has not changed is loaded from there.
The hash is that of the equations: nodes with different ones do not command each other."""


def add_arguments(parser: argparse.ArgumentParser, prog: str) -> None:
    """Declare the arguments and the text behind the help.

    Args:
        parser: Where.
        prog: How the command is called, for the examples.
    """
    from cards_core.dynamics.variables import DEFAULT, VARIABLES

    lines = [f"  {v.name:8} {v.text}" for v in VARIABLES.values()]
    parser.epilog = EXAMPLES.format(prog=prog, quantities="\n".join(lines) + "\n")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "robots", nargs="+", metavar="ROBOT", help="name under models/, or the path of an SDF file"
    )
    parser.add_argument(
        "--emit",
        metavar="NAMES",
        help=f"quantities, comma separated (default: {','.join(DEFAULT)})",
    )
    parser.add_argument("--frame", help="frame of y, R, J (default: the operational frame)")
    parser.add_argument("--precision", choices=("double", "single"), default="double")
    parser.add_argument("--batch", action="store_true", help="also code for many states at once")
    parser.add_argument(
        "--no-simplify",
        action="store_true",
        help="do not eliminate common subexpressions",
    )
    parser.add_argument(
        "--nodes",
        action="store_true",
        help="also compile what simulators and controllers load, for a fast start",
    )
    parser.add_argument("--force", action="store_true", help="recompile even if cached")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile what the arguments say; return the exit code.

    Raises:
        CardsError: The only robot could not be compiled; of several, the others still are.
        KeyboardInterrupt: Ctrl-C or SIGTERM.
    """
    from cards_core.dynamics.variables import DEFAULT, VARIABLES, chosen
    from cards_core.errors import CardsError
    from cards_model_compiler.compiling import CompileOptions

    emit = DEFAULT if args.emit is None else tuple(v.name for v in chosen(args.emit))
    framed = [name for name, variable in VARIABLES.items() if variable.operational]
    if args.frame is not None and not set(framed) & set(emit):
        raise CardsError(
            f"--frame {args.frame} has no use (expected: one of {', '.join(framed)} in --emit)"
        )
    options = CompileOptions(
        emit=emit,
        frame=args.frame,
        precision=args.precision,
        batch=args.batch,
        simplify=not args.no_simplify,
        nodes=args.nodes,
        force=args.force,
    )
    progress = CompileProgress(len(args.robots), quiet=args.json)
    with _terminable():
        reports = [_compile(name, options, progress, args) for name in args.robots]
    if args.json:
        print(json.dumps({"models": reports}))
    return ExitCode.ERROR if any("error" in report for report in reports) else ExitCode.DONE


def _compile(
    name: str, options: Any, progress: CompileProgress, args: argparse.Namespace
) -> dict[str, Any]:
    """Compile one robot and print the outcome, unless it is for JSON."""
    from cards_core.errors import CardsError
    from cards_model_compiler.compiling import compile_robot

    try:
        with progress.start(name):
            report = compile_robot(name, options, progress)
    except CardsError as error:
        if len(args.robots) == 1:
            raise
        print(f"error: {error}", file=sys.stderr)
        return {"robot": name, "error": {"type": type(error).__name__, "message": str(error)}}
    for warning in report["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    if not args.json:
        print(table(report), flush=True)
    return report


def table(report: dict[str, Any]) -> str:
    """Return a report as text."""
    joints, muscles = len(report["joint_names"]), len(report["muscle_names"])
    rows = [
        ("hash", f"{report['hash']}  ({joints} joint coordinates, {muscles} muscles)"),
        ("quantities", f"{', '.join(report['emit'])}, {report['precision']} precision"),
        *_code_rows(report),
    ]
    if report["batch"] is not None:
        rows += [(f"batch {name}", text) for name, text in _code_rows(report["batch"])]
    width = max(len(name) for name, _ in rows)
    return "\n".join([report["robot"], *(f"  {name:{width}}  {text}" for name, text in rows)])


def _code_rows(code: dict[str, Any]) -> list[tuple[str, str]]:
    made = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in code["phases"].items())
    took = f"{code['seconds']:.2f} s"
    took += f", from the cache (made in: {made})" if code["cached"] else f" ({made})"
    path = code["path"] or "none: there is no C compiler, CasADi evaluates"
    return [
        ("operations", f"{code['instructions']:,}"),
        ("time", took),
        ("library", path if code["path"] is None else f"{path}, {code['bytes'] / 1000:,.0f} kB"),
    ]


class CompileProgress:
    """Shows phases on standard error; call it with phase and done fraction.

    Context manager around one robot, after `start`.

    Args:
        robots: How many robots will be compiled.
        quiet: Show nothing.
    """

    def __init__(self, robots: int, *, quiet: bool = False) -> None:
        self._robots = robots
        self._quiet = quiet
        self._number = 0
        self._name = ""
        self._begin = time.monotonic()
        self._bar: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,  # which rich would send to standard error, too
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=1.0)

    def start(self, name: str) -> Self:
        """Begin with the next robot; returns itself, to be entered."""
        self._number += 1
        self._name = name if self._robots == 1 else f"[{self._number}/{self._robots}] {name}"
        self._begin = time.monotonic()
        if self._bar is not None:
            self._bar.reset(self._task, description=self._name)
        return self

    def __call__(self, what: str, done: float) -> None:
        """Show that a phase begins."""
        if self._bar is not None:
            from rich.markup import escape

            text = escape(f"{self._name}: {what}")
            self._bar.update(self._task, description=text, completed=done)
        elif not self._quiet:
            seconds = time.monotonic() - self._begin
            print(f"{self._name}: {what} ({seconds:.1f} s)", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the compilation as Ctrl-C does, with nothing left behind."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def main(args: Sequence[str] | None = None) -> int:
    """Run the executable ``compile``; return one of `ExitCode`."""
    from cards_core.errors import CardsError

    argv = list(sys.argv[1:] if args is None else args)
    prog = "ros2 run cards_model_compiler compile"
    parser = argparse.ArgumentParser(prog=prog, description="Turn robots into native code.")
    add_arguments(parser, prog)
    try:
        return run(parser.parse_args(argv))
    except SystemExit as stop:  # argparse: help or a usage error, already printed
        return stop.code if isinstance(stop.code, int) else ExitCode.ERROR
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # the reader of a pipe is gone, e.g. `| head`; Python would complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PIPE_CLOSED
    except CardsError as error:
        if "--json" in argv:
            details = {"type": type(error).__name__, "message": str(error)}
            print(json.dumps({"error": details}))
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.ERROR


if __name__ == "__main__":
    sys.exit(main())
