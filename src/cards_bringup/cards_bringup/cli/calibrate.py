"""``./cards calibrate``: zero points of a real robot's load cells, lengths and joint sensors.

Step by step, with the boards DISARMED all the time: tensions of slack muscles, lengths at a known
pose, joint angles at the same pose, then a check of directions while you move the robot by hand.
Nothing is kept until the end; leaving before brings back what was there.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cards_bringup.cli.numbers import COUNT, Number, numbers
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode

if TYPE_CHECKING:
    from cards_hardware.boards.board import Board
    from cards_hardware.calibration.recording import Recorder

EXAMPLES = """examples:
  ./cards calibrate roboy_arm --port /dev/ttyACM0            all of it, the arm held at home
  ./cards calibrate roboy_arm --port /dev/ttyACM0 --steps tension
  ./cards calibrate planar_2r --port /dev/ttyUSB0 --q=0.3,-0.5
  ./cards calibrate roboy_arm --layout two_arms --namespace left_arm --port /dev/ttyACM0
  ./cards calibrate roboy_arm --port runs/hil/port --yes --json      no questions, for programs

End the bridge before: a port has one user. The report goes to runs/ROBOT_calibration_TIME.yaml.
The procedure in full: docs/hardware.md."""


SECONDS, CHECK_SECONDS = Number(at_least=0.2, at_most=60.0), Number(at_least=0.2, at_most=600.0)


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "calibrate",
        help="set zero points of a real robot's sensors",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("robot", help="see ./cards models")
    add("--port", default="", help="serial port; several boards: A,B (default: of the layout)")
    add("--baudrate", type=COUNT, help="[baud] (default: of the layout)")
    add("--layout", metavar="NAME", help="boards, a file or config/NAME.boards.yaml (ROBOT)")
    add("--namespace", default="", help="only the boards of this namespace of the layout")
    add("--steps", help="some of tension,length,joints,check (default: all)")
    add("--q", help="where the robot is held in steps 2 and 3 (default: home)")
    add("--seconds", type=SECONDS, default=1.0, help="how long to average [s] (%(default)s)")
    add("--check-seconds", type=CHECK_SECONDS, default=10.0, help="of step 4 [s] (%(default)s)")
    add("--no-save", action="store_true", help="not to the boards' flash, put back at the end")
    add("--out", type=Path, metavar="FILE", help="report, .yaml or .json")
    add("--yes", action="store_true", help="no questions: everything is in place")
    add("--json", action="store_true", help="print the report, nothing else; with --yes")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; it fails if something is not as it should be."""
    from cards_bringup.calibration_wizard import Wizard
    from cards_bringup.resources import runs_folder
    from cards_core.files import inside
    from cards_core.formats import load
    from cards_hardware.boards.layout import read_layout
    from cards_hardware.calibration.procedure import Calibration
    from cards_hardware.calibration.recording import Recorder
    from cards_hardware.calibration.report import STEPS, CalibrationReport

    if args.json and not args.yes:
        raise CardsError("--json without --yes (expected: both; questions need a terminal)")
    if not args.yes and not sys.stdin.isatty():
        raise CardsError("no terminal to ask questions on (expected: one, or --yes)")
    steps = _steps(args.steps, STEPS)
    robot = load(args.robot)
    tree = robot.tree
    given = numbers(args.q, "q")
    q = tree.home if given is None else tree.check_q(given)
    date = datetime.now().astimezone()
    name = f"{robot.name}_calibration_{date:%Y%m%d_%H%M%S}.yaml"
    out = args.out or inside(runs_folder(), name)
    if out.suffix not in {".yaml", ".yml", ".json"}:
        raise CardsError(f"--out {out} (expected: a name that ends on .yaml or .json)")
    layout = read_layout(
        args.layout or args.robot,
        robot,
        port=args.port,
        baudrate=args.baudrate,
        namespace=args.namespace,
    )
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
        except BaseException as error:
            report.aborted = _words(error)
            wizard.put_back()
            report.write(out)
            raise
        report.write(out)
    finally:
        for board in boards:
            board.close()
    wizard.finish(out)
    return ExitCode.DONE if report.ok else ExitCode.FAILED


def _open(layouts: Any, recorders: list[Recorder]) -> list[Board]:
    from cards_hardware.boards.board import Board

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
    from cards_core.errors import UnknownNameError

    wanted = [part.strip() for part in text.split(",")] if text else list(known)
    for name in wanted:
        if name not in known:
            raise UnknownNameError("step", name, known)
    return tuple(name for name in known if name in wanted)


def _words(error: BaseException) -> str:
    return "by hand" if isinstance(error, KeyboardInterrupt) else str(error)
