"""``./cards demo``: simulate a robot under control, watch it, keep the results."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from cards_bringup.hil import options as hil_options
from cards_core.errors import CardsError

EXAMPLES = """examples:
  ./cards demo roboy_arm                          watch the arm draw at http://127.0.0.1:8080
  ./cards demo roboy_arm --headless --mode lockstep
  ./cards demo planar_2r --headless --mode lockstep --out run
  ./cards demo roboy_arm --headless --no-ros      one process, no ROS: the fastest
  ./cards demo roboy_arm --simulator gazebo       the same in Gazebo, where that is installed
  ./cards demo roboy_arm --headless --controller-model mass_factor=1.1,attachment_offset=0.002
  ./cards demo roboy_arm --hil                    the nodes of the real robot on emulated boards
  ./cards demo stewart_gough                      a plate on six elastic rods, moved by sliders

The run folder has summary.json, plots, recording.mcap (Foxglove, PlotJuggler) and the logs."""

MODES = ("lockstep", "realtime", "as_fast_as_possible")
SIMULATORS = ("mujoco", "gazebo", "auto")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "demo",
        help="move a robot: simulator, controller, view, run folder",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("robot", nargs="?", default="roboy_arm", help="see ./cards models (default: %(default)s)")
    add(
        "--simulator",
        choices=SIMULATORS,
        help=f"auto: gazebo if it can be used, else mujoco ({SIMULATORS[0]}); robots of rods run "
        "beside none",
    )
    add("--world", help="world for Gazebo: a file in worlds/, or a path (default: empty)")
    add("--mode", choices=MODES, default="realtime", help="how time advances (%(default)s)")
    add("--duration", type=float, metavar="S", help="simulated time [s]; 0: until Ctrl-C")
    add("--controller", help="controller node, or none (default: the robot's own)")
    add("--reference", help="what to track, a name in config/trajectories/ROBOT.yaml")
    add("--headless", action="store_true", help="no window, no browser view; stop at the end")
    add("--port", type=int, default=8080, help="of the browser view (%(default)s)")
    add("--no-ros", action="store_true", help="one process and no topics instead of ROS nodes")
    add("--out", type=Path, metavar="DIR", help="run folder (default: runs/ROBOT_CONTROLLER_TIME)")
    add("--params-file", metavar="FILE", help="parameters (default: config/ROBOT.yaml)")
    add(
        "--controller-model",
        metavar="K=V,..",
        help="make the controller's model wrong: mass_factor, attachment_offset [m]",
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
    add("--json", action="store_true", help="print summary.json at the end, nothing else")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup import node_list, rod_demo
    from cards_bringup.plan import make_plan
    from cards_core.description import load

    if rod_demo.is_rod_robot(args.robot):
        name = Path(args.robot).stem if args.robot.endswith(".sdf") else Path(args.robot).name
        return rod_demo.run(args, _prepare, _run_folder(name, "demo"))
    args.simulator = args.simulator or SIMULATORS[0]  # none given: only rods tell the difference
    if any(node.namespace for node in node_list.load(args.robot)):
        raise CardsError(
            f"{args.robot} has several robots, a run folder is of one "
            f"(expected: ros2 launch cards_bringup {args.robot}.launch.py)"
        )
    if args.duration is not None and not 0 <= args.duration < float("inf"):
        raise CardsError(f"--duration is {args.duration} (expected: seconds, 0 or more)")
    use_ros = not args.no_ros
    if use_ros and importlib.util.find_spec("rclpy") is None:
        _say(args, "rclpy is not installed: running in one process, as with --no-ros")
        use_ros = False
    if not use_ros and args.simulator != "mujoco":
        raise CardsError(f"--simulator {args.simulator} without ROS (expected: mujoco)")
    firmware = hil_options.firmware(args, lambda note: _say(args, note))
    view = use_ros and not args.headless
    given = {
        "simulator": args.simulator,
        "mode": args.mode,
        "rviz": "false",
        "view": "true" if view else "false",
        "headless": "true" if args.headless else "false",
    }
    for name in ("controller", "reference", "params_file", "world"):
        if getattr(args, name):
            given[name] = str(getattr(args, name))
    if firmware:
        given["sim"] = "false"
    plan = make_plan(given, args.robot)
    for note in plan.notes:
        _say(args, note)
    controller = plan.values["controller"]
    if controller == "none" and args.mode == "lockstep" and use_ros:
        raise CardsError(
            "--mode lockstep waits for a controller (expected: not --controller none)"
        )
    model = _text_parameter(plan, "simulator", "model") or args.robot
    robot = load(model)
    duration = _duration(args, plan, robot)
    out = args.out or _run_folder(robot.name, controller)
    _prepare(out)
    overrides = _overrides(args, plan, duration, {"log_dir": str(out.resolve()), "model": model})
    if view:
        from cards_viz.browser import free_port

        overrides["browser_view"] = {"port": free_port("127.0.0.1", args.port)}

    _say(args, f"{robot.name} under {controller}, {args.mode}, {duration:g} s -> {out}")
    if firmware:
        from cards_bringup.hil.demo import HilDemo

        boards = str(args.boards.resolve()) if args.boards else ""
        hil = HilDemo(given, args.robot, model, overrides, duration, out, firmware, boards=boards)
        wall = _simulate(args, hil.run, overrides, duration, out)
        _say(args, "comparing with the plant's truth ...")
        extra = hil.results()
    else:
        start = _runner(plan, overrides, duration, out, use_ros=use_ros, may_pause=view)
        wall = _simulate(args, start, overrides, duration, out)
        extra = {}
    summary = _write_results(args, plan, robot, {"wall_time_s": wall, **extra}, out)
    if args.json:
        print(json.dumps(summary))
    else:
        _print_summary(summary, out)
    return 0


Start = Callable[[Callable[[float], None], Callable[[str], None]], float]


def _runner(
    plan: Any,
    overrides: dict[str, dict[str, Any]],
    duration: float,
    out: Path,
    *,
    use_ros: bool,
    may_pause: bool,
) -> Start:
    """Return what starts the run in simulation."""
    if use_ros:
        from cards_bringup.node_run import NodeRun

        return NodeRun(plan, overrides, duration, out, may_pause=may_pause).run
    from cards_bringup.in_process import InProcessRun

    run = InProcessRun(plan, overrides, duration, out)
    return lambda on_time, _note: run.run(on_time)


def _simulate(
    args: argparse.Namespace,
    start: Start,
    overrides: dict[str, dict[str, Any]],
    duration: float,
    out: Path,
) -> float:
    from cards_bringup.progress import RunProgress
    from cards_bringup.supervisor import ProcessFailedError

    begin = time.monotonic()
    with RunProgress(args.robot, duration, quiet=args.json) as progress:
        try:
            if "browser_view" in overrides:
                _say(args, f"watch at http://127.0.0.1:{overrides['browser_view']['port']}")
            wall = start(progress.update, lambda note: _say(args, note))
            if not (out / "simulator.npz").exists():
                # Gazebo ends well when it cannot read a world; its output says why
                raise ProcessFailedError("simulator", 0, out / "logs" / "simulator.log")
            return wall
        except KeyboardInterrupt:
            # what has been simulated so far is a result too
            if not _has_rows(out / "simulator.npz"):
                _remove_logs(out)
                raise
            _say(args, "stopped")
            return time.monotonic() - begin


def _overrides(
    args: argparse.Namespace, plan: Any, duration: float, common: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return node name to parameters; ``common`` are those of host and controller."""
    overrides: dict[str, dict[str, Any]] = {}
    for node in plan.nodes:
        if node.role == "host":
            overrides[node.name] = dict(common)
            if args.hil:
                continue  # a real robot has no end
            overrides[node.name]["duration"] = duration
            if plan.values["controller"] == "none":
                overrides[node.name]["wait_for_command"] = False
        elif node.role == "controller":
            overrides[node.name] = {**common, **_controller_model(args)}
    return overrides


def _controller_model(args: argparse.Namespace) -> dict[str, Any]:
    """Read ``mass_factor=1.1,attachment_offset=0.002``."""
    known = ("mass_factor", "attachment_offset", "perturbation_seed")
    out: dict[str, Any] = {}
    for part in filter(None, (args.controller_model or "").split(",")):
        name, _, value = part.partition("=")
        try:
            if name not in known:
                raise ValueError
            out[name] = int(value) if name == "perturbation_seed" else float(value)
        except ValueError:
            raise CardsError(
                f"--controller-model '{part}' (expected: {'=, '.join(known)}= and a number)"
            ) from None
    return out


def _text_parameter(plan: Any, node: str, name: str) -> str:
    """Return a text from the parameter file, empty if it is not there."""
    from cards_bringup.parameters import load_parameters

    value = load_parameters(plan.parameter_file, node).get(name, "")
    if not isinstance(value, str):
        raise CardsError(
            f"{plan.parameter_file}: parameter '{name}' of {node} is {value!r} (expected: a text)"
        )
    return value


def _duration(args: argparse.Namespace, plan: Any, robot: Any) -> float:
    """Return the simulated time: as asked, else as long as the reference takes."""
    if args.duration is not None:
        return float(args.duration)
    controller = plan.values["controller"]
    if controller == "none":
        return 0.0 if not args.headless else 5.0
    from cards_core.kinematics import Tree
    from cards_core.trajectories import load_references
    from controllers.references import find_reference_file

    name = plan.values["reference"] or _text_parameter(plan, controller, "reference")
    if not name:
        return 10.0
    file = find_reference_file(_text_parameter(plan, controller, "reference_file"), robot)
    reference = load_references(file, names=Tree(robot).position_names).get(name)
    return 10.0 if reference is None else float(reference.duration)


def _run_folder(robot: str, controller: str) -> Path:
    from cards_bringup.resources import checkout

    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = (checkout() or Path.cwd()) / "runs"
    name = f"{robot}_{controller}_{stamp}"
    count = 1
    while (folder / name).exists():
        count += 1
        name = f"{robot}_{controller}_{stamp}_{count}"
    return folder / name


RESULTS = (
    "summary.json",
    "simulator.npz",
    "controller.npz",
    "hardware.npz",
    "hil.npz",
    "rod_solver.npz",
)


def _prepare(out: Path) -> None:
    """Make the run folder; refuse one that holds a run, or parts of one."""
    for name in RESULTS:
        if (out / name).exists():
            raise CardsError(
                f"--out {out} holds a run already: {name} (expected: a new or empty folder)"
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CardsError(f"--out {out} cannot be written: {error}") from error


def _has_rows(log: Path) -> bool:
    from cards_viz.run_log import RunLogError, SimulatorLog

    try:
        SimulatorLog.load(log)
    except RunLogError:
        return False
    return True


def _remove_logs(out: Path) -> None:
    for name in RESULTS:
        (out / name).unlink(missing_ok=True)


def _write_results(
    args: argparse.Namespace, plan: Any, robot: Any, more: dict[str, Any], out: Path
) -> dict[str, Any]:
    from cards_core.description.urdf import to_urdf
    from cards_viz.run_folder import write_run_folder

    _say(args, "plots and recording ...")
    metadata = {
        "controller": plan.values["controller"],
        "mode": plan.values["mode"],
        "simulator": plan.values["simulator"],
        "transport": "in process" if args.no_ros else "ROS topics",
        "controller_model": _controller_model(args),
        **more,
    }
    return write_run_folder(out, robot, metadata, robot_description=to_urdf(robot))


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    def show(label: str, key: str, unit: str, scale: float = 1.0) -> None:
        if (value := summary.get(key)) is not None:
            print(f"  {label:<26} {scale * value:10.4g} {unit}")

    print(f"{summary['robot']}, {summary['controller']}, {summary['mode']}")
    show("simulated", "sim_time_s", "s")
    show("wall time", "wall_time_s", "s")
    show("joint error, max", "joint_error_max_rad", "mrad", 1e3)
    show("joint error, RMS", "joint_error_rms_rad", "mrad", 1e3)
    show("hand error, RMS", "op_error_rms_m", "mm", 1e3)
    show("hand error, max", "op_error_max_m", "mm", 1e3)
    show("least tension", "tension_min_N", "N")
    show("greatest tension", "tension_max_N", "N")
    show("infeasible steps", "qp_infeasible_steps", "")
    show("control rate", "control_rate_hz", "Hz")
    show("control step, median", "loop_p50_us", "us")
    show("control step, 99 %", "loop_p99_us", "us")
    show("missed deadlines", "missed_deadlines", "")
    if "hil" in summary:
        from cards_bringup.hil.results import lines

        print("\n".join(f"  {text}" for text in lines(summary["hil"])))
    print(f"  {out}")


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.json:
        print(text, file=sys.stderr)
