"""``./cards demo``: simulate a robot under control, watch it, keep the results."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from cards_bringup.gazebo.engines import PHYSICS_ENGINES
from cards_bringup.hil import options as hil_options
from cards_bringup.option_types import Number, WholeNumber
from cards_core.loop.host import MODES
from cards_core.stamps import LONGEST_RUN

EXAMPLES = """examples:
  ./cards demo roboy_arm                          watch the arm draw in the browser
  ./cards demo roboy_arm --headless --mode lockstep         as fast as possible
  ./cards demo planar_2r --headless --mode lockstep --out run
  ./cards demo roboy_arm --headless --no-ros      one process, no ROS: the fastest
  ./cards demo roboy_arm --world table --reference carry    the arm takes a box aside
  ./cards demo roboy_arm --headless --video arm.mp4         and a film of it
  ./cards demo roboy_arm --host 0.0.0.0 --read-only         for others to look at
  ./cards demo two_arms                           two arms in one world
  ./cards demo roboy_arm --simulator gazebo       the same in Gazebo, where that is installed
  ./cards demo planar_2r --controller examples/springs.py        a controller of your own
  ./cards demo roboy_arm --headless --controller-model mass_factor=1.1,attachment_offset=0.002
  ./cards demo tetrahedral_6 --controller cpg --set cpg.feedback=false --set simulator.dt=0.0005
  ./cards demo roboy_arm --hil                    the nodes of the real robot on emulated boards
  ./cards demo stewart_gough                      a plate on six elastic rods, moved by sliders
  ./cards demo planar_3rfr --simulator gazebo --headless    rods in Gazebo, along the demo motion

The run folder has summary.json, plots, recording.mcap (Foxglove, PlotJuggler) and the logs.
Exit code: 0 the task was done, 1 the run failed (the verdict says why), 130 stopped by Ctrl-C."""

SIMULATORS = ("mujoco", "gazebo", "auto")


def add_demo(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("demo", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("robot", nargs="?", default="roboy_arm", help="see ./cards models (default: %(default)s)")
    add(
        "--simulator",
        choices=SIMULATORS,
        help=f"auto: gazebo if it can be used, else mujoco ({SIMULATORS[0]}); robots of rods: "
        "gazebo, or their solver alone (the solver)",
    )
    add(
        "--physics-engine",
        choices=PHYSICS_ENGINES,
        help="of Gazebo; world: the one that the world names, else dartsim (world)",
    )
    add("--terrain", help="what the robot stands on, e.g. hills:amplitude=0.02")
    add("--world", help="a file in worlds/, or a path (default: the robot's own, mostly none)")
    add(
        "--mode",
        choices=MODES,
        help="how time advances: paced waits for each answer of the controller and is not faster "
        "than real time; lockstep waits too, as fast as possible; realtime never waits "
        "(paced; realtime with --hil or without a controller)",
    )
    add(
        "--duration",
        type=Number(at_least=0.0, at_most=LONGEST_RUN),
        metavar="S",
        help="simulated time [s]; 0: until Ctrl-C, where a browser watches with the reference "
        "over and over",
    )
    add(
        "--controller",
        help="controller node, a Python file with one, or none (default: the robot's own)",
    )
    add("--reference", help="what to track, a name in config/trajectories/ROBOT.yaml")
    add("--headless", action="store_true", help="no window, no browser view; stop at the end")
    add(
        "--no-wait",
        action="store_true",
        help="start before the page is open, and end with the run (default: the run begins when a "
        "browser shows the page, or 10 s after it can; then the page replays it until Ctrl-C)",
    )
    port = WholeNumber(at_most=65535)
    add("--port", type=port, default=8080, help="port of the browser view (%(default)s)")
    add(
        "--host",
        default="127.0.0.1",
        help="address that the view listens on; 0.0.0.0 opens it to the network, for those who "
        "have its link (%(default)s)",
    )
    add(
        "--read-only",
        action="store_true",
        help="print the link of spectators alone: they see everything and command nothing",
    )
    add("--no-ros", action="store_true", help="one process and no topics instead of ROS nodes")
    add("--out", type=Path, metavar="DIR", help="run folder (default: runs/ROBOT_CONTROLLER_TIME)")
    add("--params-file", metavar="FILE", help="parameters (default: config/ROBOT.yaml)")
    add(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NODE.NAME=VALUE",
        help="one parameter in place of the file's, in YAML; as often as needed",
    )
    add(
        "--controller-model",
        metavar="K=V,..",
        help="errors of the controller's model: mass_factor, attachment_offset [m], "
        "moment_arm_error",
    )
    add(
        "--hil",
        action="store_true",
        help="hardware in the loop: sim:=false on the emulated firmware of the muscle boards; "
        "what it needs is in docs/hardware.md",
    )
    add(
        "--firmware",
        choices=hil_options.FIRMWARES,
        help="with --hil: the flashed binary in QEMU, or a build for this machine (default: the "
        "former where its tools are installed)",
    )
    add(
        "--boards",
        type=Path,
        metavar="FILE",
        help="with --hil: another ROBOT.boards.yaml than the one in config/, "
        "e.g. without joint sensors",
    )
    add(
        "--video",
        type=Path,
        metavar="FILE",
        help="film of the run afterwards: .mp4, .webm or .gif",
    )
    add("--json", action="store_true", help="print summary.json at the end, nothing else")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.demo import muscle_demo, rod_demo
    from cards_bringup.demo.run_folder import preparing
    from cards_core.files import new_run_folder
    from cards_viz.pages.access import READ_ONLY

    if args.read_only:
        os.environ[READ_ONLY] = "1"  # of the nodes too
    with preparing() as prepare:
        if rod_demo.is_rod_robot(args.robot):
            name = Path(args.robot).stem if args.robot.endswith(".sdf") else Path(args.robot).name
            return rod_demo.run(args, prepare, new_run_folder(f"{name}_demo"))
        args.simulator = args.simulator or SIMULATORS[0]  # for robots of rods None is different
        return muscle_demo.run(args, prepare)
