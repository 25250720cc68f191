"""The calibration of ``./cards calibrate``: instructions, results, and whether to go on."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cards_bringup.vectors import vector
from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.estimation import LengthCalibration
from cards_core.exit_codes import ExitCode
from cards_core.files import RUNS, check_writable, inside
from cards_core.formats import load
from cards_core.typing import Array
from cards_hardware.boards.board import Board
from cards_hardware.boards.layout import BoardLayout, read_layout
from cards_hardware.calibration.check import MuscleCheck, check_motion
from cards_hardware.calibration.procedure import Calibration
from cards_hardware.calibration.recording import ChannelResult, Measurement, Recorder
from cards_hardware.calibration.report import STEPS, CalibrationReport


def calibrate(args: argparse.Namespace) -> int:
    """Calibrate the sensors of a robot.

    Args:
        args: Arguments of ``./cards calibrate``.

    Returns:
        The exit code; calibration has failed if something is not as it should be.

    Raises:
        CardsError: An option is wrong, a board does not answer, or a step cannot be done.
    """
    if args.json and not args.yes:
        raise CardsError("--json without --yes (expected: both; questions need a terminal)")
    if not args.yes and not sys.stdin.isatty():
        raise CardsError("no terminal to ask questions on (expected: one, or --yes)")
    steps = _steps(args.steps, STEPS)
    robot = load(args.robot)
    tree = robot.tree
    given = vector(args.q, "q")
    q = tree.home if given is None else tree.check_q(given)
    date = datetime.now().astimezone()
    name = f"{robot.name}_calibration_{date:%Y%m%d_%H%M%S}.yaml"
    out = args.out or inside(RUNS, name)
    if out.suffix not in {".yaml", ".yml", ".json"}:
        raise CardsError(f"--out {out} (expected: a name that ends on .yaml or .json)")
    layout = read_layout(
        args.layout or args.robot,
        robot,
        port=args.port,
        baudrate=args.baudrate,
        namespace=args.namespace,
    )
    check_writable(out)
    report = CalibrationReport(robot.name, date)
    report.pose = dict(zip(tree.position_names, map(float, q), strict=True))
    recorders = [Recorder() for _ in layout.boards]
    boards = _open(layout.boards, recorders)
    try:
        for board in boards:
            report.add_board(board.layout.name, board.layout.port, board.ident)
        calibration = Calibration(robot, layout.boards, boards, recorders, seconds=args.seconds)
        wizard = Wizard(args, calibration, report, q)
        try:
            wizard.run(steps)
            written = _write(report, out)
        except BaseException as error:  # Ctrl-C, too
            report.aborted = _reason(error)
            wizard.put_back()
            _write(report, out)
            raise
    finally:
        for board in boards:
            board.close()
    wizard.finish(out if written else None)
    return ExitCode.DONE if report.ok and written else ExitCode.FAILED


def _write(report: CalibrationReport, out: Path) -> bool:
    """Write the report; where that cannot be done, print it, and return False."""
    try:
        report.write(out)
    except CardsError as error:
        saved = "was saved to flash" if report.saved else "was not saved"
        text = json.dumps(report.as_dict())
        print(f"error: {error}; the calibration {saved}, its report is\n{text}", file=sys.stderr)
        return False
    return True


def _open(layouts: Sequence[BoardLayout], recorders: list[Recorder]) -> list[Board]:
    boards: list[Board] = []
    try:
        for layout, recorder in zip(layouts, recorders, strict=True):
            board = Board(layout, on_sample=recorder, reconnect=False)
            board.open()
            boards.append(board)
    except BaseException:
        for board in boards:
            board.close()
        raise
    return boards


def _steps(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    wanted = [part.strip() for part in text.split(",")] if text else list(known)
    for name in wanted:
        check_choice(name, "step", known)
    return tuple(name for name in known if name in wanted)


def _reason(error: BaseException) -> str:
    return "by hand" if isinstance(error, KeyboardInterrupt) else str(error)


class Wizard:
    """The steps of the calibration, one after the other.

    Args:
        args: Arguments of the command.
        calibration: Does the work.
        report: Gets the results.
        q: Known pose, shape (nq,).
    """

    def __init__(
        self,
        args: argparse.Namespace,
        calibration: Calibration,
        report: CalibrationReport,
        q: Array,
    ) -> None:
        self._args = args
        self._calibration = calibration
        self._report = report
        self._q = q
        self._told: set[str] = set()
        self._console = Console(quiet=args.json, highlight=False)

    def run(self, steps: tuple[str, ...]) -> None:
        """Perform the steps and save the result."""
        boards = ", ".join(
            f"{name} ({who.get('uid', '?')}) at {who['port']}"
            for name, who in self._report.boards.items()
        )
        self._say(f"[bold]{self._report.robot}[/bold]: {boards}")
        self._say("The drives stay off all the time. Ctrl-C leaves, and puts everything back.")
        for step in steps:
            getattr(self, f"_{step}")()
        self._report.parameters = self._calibration.parameters()
        if not self._calibration.changed:
            return
        if self._args.no_save:
            self._calibration.restore()
            self._report.hints.append("not saved, as asked; the old zero points are back")
        elif (doubt := self._doubt()) and not self._go(
            f"There are {doubt}, see above. Save nevertheless?", "save"
        ):
            self._calibration.restore()
            self._report.hints.append(
                f"not saved because of {doubt}; the old zero points are back"
                + ("; --steps without check saves without" if self._args.yes else "")
            )
        else:
            self._calibration.save()
            self._report.saved = True

    def _doubt(self) -> str:
        """Return what speaks against saving, in words; empty if nothing does."""
        doubts = ["problems"] if self._report.problems else []
        doubts += ["directions that were not checked"] if self._report.unchecked else []
        return " and ".join(doubts)

    def put_back(self) -> None:
        """Restore the old zero points, if the boards still answer and these were not saved."""
        self._report.saved = self._calibration.saved
        if self._report.saved:
            self._report.hints.append("saved to flash before it was ended")
            print(self._report.hints[-1], file=sys.stderr)
        if not self._calibration.changed:
            return
        try:
            self._calibration.restore()
        except CardsError as error:
            self._report.hints.append(f"could not put the old zero points back: {error}")
            self._wrong(self._report.hints[-1])

    def finish(self, out: Path | None) -> None:
        """Print the result, and where the report is; None: it could not be written."""
        if self._args.json:
            print(json.dumps(self._report.as_dict()))
            return
        for problem in self._report.problems:
            self._wrong(problem)
        for hint in self._report.hints:
            if hint not in self._told:
                self._look(hint)
        saved = "saved to flash" if self._report.saved else "not saved"
        verdict = "[green]ok[/green]" if self._report.ok else "[red]look[/red]"
        self._say(f"{verdict}, {saved}{'' if out is None else f' -> {out}'}")

    # The steps --------------------------------------------------------------------------------

    def _tension(self) -> None:
        self._title(
            "1  Tension zero",
            "Make every muscle slack: unhook the wires, or turn the winders until they hang.",
        )
        calibration = self._calibration
        while self._ask("tension"):
            measurement = calibration.measure()
            if self._fits("tension", calibration.tension_problems(measurement)):
                results = calibration.zero_tensions(measurement)
                self._report.add_step("tension", results)
                self._table(results, "N", 1.0, "load cell")
                return

    def _poses(self) -> None:
        count = self._args.poses
        self._title(
            "2  Length offset",
            f"Hold the robot in {count} poses, as different as possible, the first one near\n"
            f"{self._pose()}. Keep every muscle taut by a few newtons, also on the way.",
        )
        calibration = self._calibration
        measured: list[Measurement] = []
        while len(measured) < count:
            self._say(f"pose {len(measured) + 1} of {count}")
            if not self._ask("length"):
                return
            measurement = calibration.measure()
            if self._fits("length", calibration.motion_problems(measurement)):
                measured.append(measurement)
        found = calibration.lengths_from_poses(measured, self._q)
        problem = _problem_of(found)
        if problem:
            raise CardsError(f"step length: {problem}")
        # the robot is still where it was measured last
        self._q = found.q[-1]
        names = calibration.dynamics.tree.position_names
        self._report.pose = dict(zip(names, map(float, self._q), strict=True))
        self._report.hints.append(
            f"lengths from {count} unknown poses: misfit {found.misfit:.2g}, standard deviation "
            f"of the offsets up to {1e3 * float(found.offset_stds.max()):.2g} mm"
        )
        # what the board reads plus the offset, not the model's length of a pose that is estimated
        wanted = calibration.lengths_at(self._q) + found.residuals[-1]
        results = calibration.set_lengths_to(measured[-1], wanted)
        self._report.add_step("length", results)
        self._table(results, "mm", 1e3, "muscle")
        self._hint_slack(measured[-1])

    def _length(self) -> None:
        if self._args.poses:
            self._poses()
            return
        self._title(
            "2  Length offset",
            f"Hold the robot at {self._pose()}; a jig is better than hands.\n"
            "Every muscle taut, by a few newtons: a slack wire is longer than its path.",
        )
        calibration = self._calibration
        while self._ask("length"):
            measurement = calibration.measure()
            if self._fits("length", calibration.motion_problems(measurement)):
                results = calibration.set_lengths(measurement, self._q)
                self._report.add_step("length", results)
                self._table(results, "mm", 1e3, "muscle")
                self._hint_slack(measurement)
                return

    def _joints(self) -> None:
        if not any(len(layout.position_rows) for layout in self._calibration.layouts):
            self._report.skipped["joints"] = "no joint sensors"
            return
        self._title("3  Joint zero", f"The robot still at {self._pose()}.")
        calibration = self._calibration
        while self._ask("joints"):
            measurement = calibration.measure()
            if self._fits("joints", calibration.motion_problems(measurement)):
                results = calibration.zero_joints(measurement, self._q)
                self._report.add_step("joints", results)
                self._table(results, "deg", math.degrees(1.0), "joint")
                return

    def _check(self) -> None:
        seconds = self._args.check_seconds
        self._title(
            "4  Check",
            f"Move every joint by hand, to and fro, for {seconds:g} s; keep the muscles taut.",
        )
        old: list[str] = []
        while self._ask("check"):
            measurement = self._calibration.measure(seconds)
            checks, hints = check_motion(self._calibration, measurement, self._q)
            self._report.add_step("check", checks)
            self._check_table(checks)
            self._report.hints = [hint for hint in self._report.hints if hint not in old] + hints
            old = hints
            for hint in hints:
                self._look(hint)
            if self._args.yes or not any(check.problem for check in checks):
                return

    # Talking ----------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        """Print a text with markup."""
        self._console.print(text)

    def _look(self, hint: str) -> None:
        """Print a hint."""
        self._told.add(hint)
        self._console.print(hint, style="yellow", markup=False)

    def _wrong(self, problem: str) -> None:
        """Print a problem."""
        self._console.print(problem, style="red", markup=False)

    def _title(self, title: str, text: str) -> None:
        self._console.rule(f"[bold]{title}[/bold]", align="left")
        self._say(text)

    def _pose(self) -> str:
        names = self._calibration.dynamics.tree.position_names
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, self._q, strict=True))

    def _ask(self, step: str) -> bool:
        """Return True to go on; False to skip this step."""
        if self._args.yes:
            return True
        answer = self._console.input("[bold]Enter[/bold] go, [bold]s[/bold] skip, a abort: ")
        match answer.strip().lower():
            case "":
                return True
            case "s":
                self._report.skipped.setdefault(step, "as asked")
                return False
            case "a":
                raise KeyboardInterrupt
            case _:
                return self._ask(step)

    def _go(self, question: str, word: str) -> bool:
        """Return True if the word is typed; False without questions (``--yes``)."""
        if self._args.yes:
            return False
        answer = self._console.input(f"{question} Type [bold]{word}[/bold], or Enter for no: ")
        return answer.strip().lower() == word

    def _fits(self, step: str, problems: list[str]) -> bool:
        """Return True without problems; print them, or fail without questions (``--yes``)."""
        if problems and self._args.yes:
            raise CardsError(f"step {step}: {'; '.join(problems)}")
        for problem in problems:
            self._wrong(problem)
        return not problems

    def _hint_slack(self, measurement: Measurement) -> None:
        slack = [
            name
            for layout, tensions in zip(
                self._calibration.layouts, measurement.tensions, strict=True
            )
            for name, mean in zip(layout.muscles, tensions.mean, strict=True)
            if mean < 1.0
        ]
        if slack:
            self._report.hints.append(
                "less than 1 N while the length was set, so it may be too long: "
                f"{', '.join(slack)}"
            )
            self._look(self._report.hints[-1])

    def _table(self, results: list[ChannelResult], unit: str, factor: float, what: str) -> None:
        table = _table(
            what, f"before [{unit}]", f"noise [{unit}]", f"after [{unit}]", "old", "new"
        )
        for one in results:
            numbers = [f"{x * factor:.3f}" for x in (one.before, one.noise, one.after)]
            table.add_row(one.name, *numbers, str(one.old), str(one.new), _mark(one.problem))
        self._console.print(table)

    def _check_table(self, checks: list[MuscleCheck]) -> None:
        table = _table("muscle", "moved [mm]", "slope", "residual [mm]", "[sigma]")
        for one in checks:
            slope, travel = _number(one.slope, 3), _number(one.travel * 1e3, 1)
            mark = _mark(one.problem)
            if slope == "-" and travel != "-" and not one.problem:
                mark = Text("not moved", style="yellow")
            residual = _number(one.residual * 1e3, 2)
            table.add_row(one.name, travel, slope, residual, f"{one.sigma:.1f}", mark)
        self._console.print(table)


def _problem_of(found: LengthCalibration) -> str:
    if found.undetermined:
        return (
            f"these poses do not tell the lengths of {', '.join(found.undetermined)} (expected: "
            "more poses, and poses that differ more; or a known pose, without --poses)"
        )
    if not found:
        return (
            f"the lengths do not fit the robot, misfit {found.misfit:.2g} (expected: below 3; was "
            "the first pose near --q, and is every muscle taut?)"
        )
    return ""


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for column in others:
        table.add_column(escape(column), justify="right")
    table.add_column("")
    return table


def _mark(problem: str) -> Text:
    return Text(problem or "ok", style="red" if problem else "green")


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"
