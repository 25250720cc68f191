"""``./cards calibrate``: zero points of a real robot's load cells, lengths and joint sensors.

Step by step, with the boards DISARMED all the time: tensions of slack muscles, lengths at a known
pose, joint angles at the same pose, then a check of directions while you move the robot by hand.
Nothing is kept until the end; leaving before brings back what was there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cards_bringup.bootstrap.process import ended_by_signals
from cards_bringup.option_types import COUNT, Number, WholeNumber

EXAMPLES = """examples:
  ./cards calibrate roboy_arm --port /dev/ttyACM0            all of it, the arm held at home
  ./cards calibrate roboy_arm --port /dev/ttyACM0 --steps tension
  ./cards calibrate planar_2r --port /dev/ttyUSB0 --q=0.3,-0.5
  ./cards calibrate roboy_arm --port /dev/ttyACM0 --poses 12   lengths without a known pose
  ./cards calibrate roboy_arm --layout two_arms --namespace left_arm --port /dev/ttyACM0
  ./cards calibrate roboy_arm --port runs/hil/port --yes --json      no questions, for programs

End the bridge before: a port has one user. The report goes to runs/ROBOT_calibration_TIME.yaml.
The procedure in full: docs/hardware.md."""


POSES = WholeNumber(at_least=3, at_most=200)

SECONDS, CHECK_SECONDS = Number(at_least=0.2, at_most=60.0), Number(at_least=0.2, at_most=600.0)


def add_calibrate(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("calibrate", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("robot", help="see ./cards models")
    add("--port", default="", help="serial port; several boards: A,B (default: of the layout)")
    add("--baudrate", type=COUNT, help="[baud] (default: of the layout)")
    add("--layout", metavar="NAME", help="boards, a file or config/NAME.boards.yaml (ROBOT)")
    add("--namespace", default="", help="only the boards of this namespace of the layout")
    add("--steps", help="subset of tension,length,joints,check (default: all)")
    add("--q", help="pose in which the robot is held in steps 2 and 3 (default: home)")
    text = "incremental encoders: step 2 from N unknown poses, the first one near --q"
    add("--poses", type=POSES, metavar="N", help=text)
    add("--seconds", type=SECONDS, default=1.0, help="averaging time [s] (%(default)s)")
    add("--check-seconds", type=CHECK_SECONDS, default=10.0, help="of step 4 [s] (%(default)s)")
    add(
        "--no-save",
        action="store_true",
        help="do not write to the boards' flash; restore the old values at the end",
    )
    add("--out", type=Path, metavar="FILE", help="report, .yaml or .json")
    text = "ask nothing: all preparations are done; saves if every direction was checked"
    add("--yes", action="store_true", help=text)
    add("--json", action="store_true", help="print the report, nothing else; with --yes")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; it fails if something is not as it should be."""
    from cards_bringup.real_robot.calibration import calibrate

    with ended_by_signals(once=True):  # the old zero points are put back
        return calibrate(args)
