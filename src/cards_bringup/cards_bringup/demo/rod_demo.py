"""``./cards demo`` of a robot of rods: solver, browser view, run folder.

With a view the robot is moved with sliders; headless it follows the demo motion once. There is no
simulated time: a step is a sequence of equilibria in real time; without ROS the motion is solved
as fast as possible. In Gazebo a step is one of the world.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cards_bringup.demo.run_end import (
    RunInterrupts,
    Start,
    conclude,
    instead,
    nothing_recorded,
    say,
    simulate,
    tell_network,
)
from cards_bringup.demo.settings import merge
from cards_bringup.demo.settings import settings as settings_of
from cards_bringup.nodes.node_run import Clock, NodeRun
from cards_bringup.nodes.plan import make_plan
from cards_core.errors import CardsError
from cards_core.foreign_files import read_arrays
from cards_core.loop.verdict import verdict_line
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import load_parameters, read_file

SOLVER = "rod_solver"
VIEW = "rod_view"

_LOG = "rod_solver.npz"

# option of ./cards demo: its value where it was not given
_FOR_MUSCLES = {
    "terrain": None,
    "controller": None,
    "reference": None,
    "controller_model": None,
    "hil": False,
    "firmware": None,
    "boards": None,
    "no_wait": False,
    "video": None,
}

_FOR_GAZEBO: dict[str, Any] = {"world": None, "physics_engine": None}

_MODES = ("realtime", "as_fast_as_possible")
"""How the time of a world passes in which nobody answers."""


def is_rod_robot(robot: str) -> bool:
    """Return True for a robot of rods; False for names that do not exist."""
    from cards_core.formats.locate import find_model, has_rods

    try:
        return has_rods(find_model(robot))
    except CardsError:
        return False


def run(args: argparse.Namespace, prepare: Callable[[Path], None], folder: Path) -> int:
    """Run the demo.

    Args:
        args: Arguments of ``./cards demo``.
        prepare: Makes a run folder, and refuses one that holds a run.
        folder: Run folder, where none was asked for.

    Returns:
        The exit code.

    Raises:
        CardsError: An option does not go with a robot of rods, or a node failed.
    """
    _check(args)
    from cards_core.rods.native_library import rod_library
    from cards_core.rods.robots.reader import read_rod_robot

    robot = read_rod_robot(args.robot)
    rod_library()  # compiles it where it is not in the cache, before other nodes wait for this one
    use_ros = not args.no_ros
    if use_ros and importlib.util.find_spec("rclpy") is None:
        if args.simulator == "gazebo":
            raise CardsError("--simulator gazebo needs rclpy, which is not installed")
        say(args, "rclpy is not installed: running in one process, as with --no-ros")
        use_ros = False
    view = not args.headless
    given = {
        "simulator": args.simulator if args.simulator and use_ros else "rods",
        "mode": args.mode or "realtime",
        "use_sim_time": "false",
        "rviz": "false",
        "view": "true" if view else "false",
        "headless": "true" if args.headless else "false",
    }
    for name in ("params_file", *_FOR_GAZEBO):
        if getattr(args, name) is not None:
            given[name] = str(getattr(args, name))
    plan = make_plan(given, args.robot)
    in_gazebo = plan.values["simulator"] == "gazebo"
    if not in_gazebo:
        _check_mode_alone(args)
    for note in (*plan.notes, *robot.notes):
        say(args, note)
    settings = load_parameters(plan.parameter_file, SOLVER)
    duration = _duration(args, settings, view)
    out = args.out or folder
    prepare(out)
    model = robot.source or args.robot
    overrides: dict[str, dict[str, Any]] = {
        SOLVER: {
            "model": model,
            "log_dir": str(out.resolve()),
            "duration": duration,
            "play": not view,
        }
    }
    if not view and args.duration:
        overrides[SOLVER]["motion_duration"] = max(duration, 1.0)  # one round, whatever the time
    if view:
        from cards_viz.pages.access import page_url
        from cards_viz.pages.page import reserved_port

        port = reserved_port(args.host, args.port)
        overrides[VIEW] = {"model": model, "host": args.host, "port": port}
        tell_network(args, port)
        say(args, f"watch at {page_url(args.host, port)}{instead(args.port, port)}")
    merge(overrides, settings_of(args.settings, [node.full_name for node in plan.nodes]))
    how = f"{duration:g} s" if duration else "until Ctrl-C"
    where = ", in Gazebo" if in_gazebo else ""
    say(args, f"{robot.name}, {robot.n_limbs} limbs{where}, {how} -> {out}")
    with RunInterrupts(lambda note: say(args, note)) as interrupts:
        if use_ros:
            nodes = NodeRun(plan, overrides, duration, out, may_pause=view, clock=StepClock)
            start: Start = nodes.run
        else:
            sections = read_file(plan.parameter_file)
            here = ParameterSet({**settings, **overrides[SOLVER]}, SOLVER, sections)
            page = (args.host, overrides[VIEW]["port"]) if view else None
            start = lambda on_time, _note: _run_here(here, on_time, page)  # noqa: E731
        end = simulate(args, start, duration, out)
        interrupts.saving()
        if not _has_rows(out / _LOG):
            return nothing_recorded(args, end, out, SOLVER)
        from cards_rods.run_folder import write_results
        from cards_rods.summary import RodRun

        metadata = {
            "simulator": plan.values["simulator"],
            "transport": "ROS topics" if use_ros else "in process",
            "wall_time_s": round(end.wall, 3),
            "real_time_factor": end.real_time_factor,
        }
        how_it_was = RodRun(not view, duration, end.stopped, end.failure)

        def write() -> dict[str, Any]:
            say(args, "plots ...")
            return write_results(out, robot, metadata, how_it_was)

        return conclude(args, interrupts, end, out, write=write, show=_print_summary)


def _has_rows(log: Path) -> bool:
    if not log.exists():
        return False
    return len(read_arrays(log, "time".__eq__)["time"]) > 0


def _check(args: argparse.Namespace) -> None:
    wrong = [name for name, value in _FOR_MUSCLES.items() if getattr(args, name) != value]
    if wrong:
        raise CardsError(
            f"--{wrong[0].replace('_', '-')} is for robots with muscles; {args.robot} has rods "
            "(expected: --headless, --duration, --no-ros, --out, --port, --params-file, "
            "--simulator gazebo, --json)"
        )
    if args.simulator == "mujoco":
        raise CardsError(
            f"--simulator mujoco: {args.robot} has rods, which MuJoCo does not solve (expected: "
            "gazebo, or without this option: the solver alone)"
        )
    in_gazebo = args.simulator in ("gazebo", "auto")
    if args.no_ros and args.simulator == "gazebo":
        raise CardsError("--simulator gazebo without ROS (expected: without --no-ros)")
    alone = [name for name, value in _FOR_GAZEBO.items() if getattr(args, name) != value]
    if alone and not in_gazebo:
        raise CardsError(
            f"--{alone[0].replace('_', '-')}: {args.robot} has a world in Gazebo only (expected: "
            "--simulator gazebo beside it)"
        )
    if in_gazebo and args.mode not in (None, *_MODES):
        raise CardsError(
            f"--mode {args.mode}: a robot of rods has no controller to wait for (expected: "
            f"{' or '.join(_MODES)})"
        )
    if args.duration is not None and not 0 <= args.duration < float("inf"):
        raise CardsError(f"--duration is {args.duration} (expected: seconds, 0 or more)")


def _check_mode_alone(args: argparse.Namespace) -> None:
    if args.mode not in (None, "realtime"):
        raise CardsError(
            f"--mode {args.mode}: rods are quasi-static, there is no simulated time "
            "(expected: realtime; --no-ros is as fast as possible)"
        )


def _duration(args: argparse.Namespace, settings: dict[str, Any], view: bool) -> float:
    """Return the duration of the run, [s]: as requested, else one period of motion; 0: no end."""
    if args.duration is not None:
        return float(args.duration)
    return 0.0 if view else float(settings.get("motion_duration", 20.0))


def _run_here(
    values: ParameterSet, on_time: Callable[[float], None], page: tuple[str, int] | None
) -> None:
    """Solve in this process: the motion, fast as can be; with a page, in real time.

    Args:
        values: Parameters of the solver.
        on_time: Called with the time [s].
        page: Address and port to listen on.
    """
    from cards_rods.node_parameters import parameters
    from cards_rods.rod_simulation import make_simulation

    values.declare(parameters())
    values.refuse_others()
    simulation = make_simulation(values)
    period, duration = 1.0 / values["rate"], values["duration"]
    try:
        if values["play"]:
            simulation.play(True)
        if page is not None:
            from cards_bringup.nodes.rod_session import RodSession

            host, port = page
            session = RodSession(simulation, period, values["points"], port, host=host)
            session.run(duration, on_time)
            return
        while not duration or simulation.steps * period <= duration:
            simulation.step(simulation.steps * period)
            if simulation.steps % 50 == 0:
                on_time(simulation.steps * period)
    finally:
        simulation.close()


class StepClock(Clock):
    """Time since the first ``joint_states``. Context manager."""

    def _subscribe(self) -> None:
        from cards_ros import topics

        message = importlib.import_module("sensor_msgs.msg").JointState
        self._first: float | None = None
        self._time = 0.0
        self._node.create_subscription(
            message, topics.JOINT_STATES, self._on_state, topics.DRAWING_QOS
        )

    def _on_state(self, message: Any) -> None:
        now = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        if self._first is None:
            self._first = now
        self._time = now - self._first


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    def show(label: str, key: str, unit: str, scale: float = 1.0) -> None:
        if (value := summary.get(key)) is not None:
            print(f"  {label:<30} {scale * value:10.4g} {unit}")

    print(f"{summary['robot']}, {summary['transport']}")
    show("time", "time_s", "s")
    show("steps", "steps", "")
    show("rate", "rate_hz", "Hz")
    show("real-time factor", "real_time_factor", "without the start")
    show("plate to its pose, max", "position_error_max_m", "mm", 1e3)
    show("turn to its pose, max", "rotation_error_max_rad", "mrad", 1e3)
    show("maximum residual, scaled", "residual_max", "")
    show("smallest eigenvalue, least", "min_eigenvalue", "N/m, Nm")
    show("of that at the start", "margin_min", "%", 100.0)
    show("maximum force on a base", "base_force_max_N", "N")
    show("steps held", "held_steps", "")
    others = [f"{name} {count}" for name, count in summary["status"].items() if name != "OK"]
    if others:
        print(f"  {'steps not OK':<30} {', '.join(others)}")
    show("step, median", "step_p50_us", "us")
    show("step, 99 %", "step_p99_us", "us")
    show("solves per step", "solves_per_step", "")
    for warning in summary["warnings"]:
        print(f"  {'warning':<30} {warning}")
    print(f"  {'verdict':<30} {verdict_line(summary)}")
    print(f"  {out}")
