"""``./cards demo`` of a robot with muscles: simulator, controller, view, run folder."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cards_bringup.demo.demo_robots import DemoRobot, demo_robots, summary_of_all
from cards_bringup.demo.result_page import show_until_stopped
from cards_bringup.demo.run_end import (
    RunEnd,
    RunInterrupts,
    Start,
    conclude,
    instead,
    nothing_recorded,
    say,
    simulate,
    tell_network,
)
from cards_bringup.demo.run_folder import RunPart, arrange
from cards_bringup.demo.settings import merge, settings
from cards_bringup.hil import options as hil_options
from cards_bringup.nodes.audience import Audience
from cards_bringup.nodes.node_run import NodeRun
from cards_bringup.nodes.plan import Plan, make_plan
from cards_bringup.option_types import number_in
from cards_core.control.registry import controller_class
from cards_core.errors import CardsError
from cards_core.files import new_run_folder
from cards_core.formats.urdf.writer import to_urdf
from cards_core.loop.host import ANSWERED_MODES, initial_positions
from cards_core.loop.verdict import verdict_line
from cards_core.parameters.parameter_file import load_parameters
from cards_core.robot.state import RobotState
from cards_core.trajectories.library import read_reference

if TYPE_CHECKING:
    from cards_core.loop.control_loop import ControlLoop

Extras: TypeAlias = Callable[[RunEnd], dict[str, Any]]
"""Returns more entries of ``summary.json``, ``failures`` and ``warnings`` among them."""

LOG_LAG = 0.5
"""Simulated time by which the end of a log may lie before the end of the run, [s]."""


def run(args: argparse.Namespace, prepare: Callable[[Path], None]) -> int:
    """Run the demo.

    Args:
        args: Arguments of ``./cards demo``, with a ``simulator``.
        prepare: Creates a run folder, and refuses one that holds a run.

    Returns:
        The exit code.

    Raises:
        CardsError: Options do not go together or with the robot, or a node failed.
    """
    use_ros = not args.no_ros
    if use_ros and importlib.util.find_spec("rclpy") is None:
        say(args, "rclpy is not installed: running in one process, as with --no-ros")
        use_ros = False
    if not use_ros and args.simulator != "mujoco":
        raise CardsError(f"--simulator {args.simulator} without ROS (expected: mujoco)")
    firmware = hil_options.firmware(args, lambda note: say(args, note))
    view = not args.headless
    given = {
        "simulator": args.simulator,
        "mode": args.mode or _default_mode(args),
        "rviz": "false",
        "view": "true" if view else "false",
        "headless": "true" if args.headless else "false",
    }
    names = ["controller", "reference", "params_file", "world", "terrain", "physics_engine"]
    if firmware:
        given["sim"] = "false"
        names = names[:3]  # the nodes of a real robot have none, what stands in for it does
    for name in names:
        if getattr(args, name) is not None:
            given[name] = str(getattr(args, name))
    plan = make_plan(given, args.robot)
    if plan.values["controller"] == "none" and args.mode is None:
        plan = make_plan({**given, "mode": "realtime"}, args.robot)  # nobody answers
    for note in plan.notes:
        say(args, note)
    controller = plan.values["controller"]
    if controller == "none" and args.mode in ANSWERED_MODES and use_ros:
        raise CardsError(
            f"--mode {args.mode} waits for a controller (expected: not --controller none)"
        )
    model = _text_parameter(plan, "simulator", "model") or args.robot
    robots = demo_robots(plan, args.robot, model)
    _check_references(plan, robots)
    several = len(robots) > 1
    if several and args.hil:
        raise CardsError(f"--hil with {args.robot}, which is several robots (expected: one)")
    if args.video is not None:
        _check_video(args.video, several=several)
    name = plan.values["robot"] if several else robots[0].robot.name
    _controller_model(args)  # refused before there is a folder for the run
    chosen = settings(args.settings, [node.full_name for node in plan.nodes])
    of_views = {
        node.full_name: chosen.pop(node.full_name)
        for node in plan.nodes
        if node.role == "view" and node.full_name in chosen
    }
    out = args.out or new_run_folder(f"{name}_{controller}")
    prepare(out)
    for robot in robots:
        if robot.namespace:
            prepare(robot.folder(out))
    overrides: dict[str, dict[str, Any]] = {}
    # in one process the page is there when the run begins
    waits = view and use_ros and not args.no_wait and not args.hil
    pages = _show(args, plan, overrides, tell=not waits) if view else {}
    merge(overrides, of_views)  # views start first
    waits = waits and bool(pages)
    controllers = [node.full_name for node in plan.nodes if node.role == "controller"]
    nodes = NodeRun(plan, overrides, 0.0, out, may_pause=view)
    # robots of a world have models of their own
    common = {} if several else {"model": model}
    with contextlib.ExitStack() as views:
        if waits:
            # the first picture is what takes longest to come
            nodes.views = views
            nodes.start_views(lambda note: say(args, note))
        try:
            trackings = _trackings(plan, common)
            nodes.duration = duration = _duration(args, plan, trackings)
        except BaseException:
            nodes.give_up()
            raise
        overrides |= _overrides(args, plan, duration, out.resolve(), common)
        for one in controllers:
            if waits:
                overrides[one]["autostart"] = False
            if view and not duration and not args.hil:
                overrides[one]["repeat_reference"] = True  # there is always something to see
        merge(overrides, chosen)

        mode = plan.values["mode"]
        how_long = f"{duration:g} s" if duration else "until Ctrl-C"
        say(args, f"{name} under {controller}, {mode}, {how_long} -> {out}")
        with RunInterrupts(lambda note: say(args, note)) as interrupts:
            start: Start
            extras: Extras
            foreseen: dict[str, list[str]] = {}

            def look_ahead() -> None:
                foreseen.update(_look_ahead(args, trackings, duration))

            if not waits:
                look_ahead()
            if firmware:
                from cards_bringup.hil.results import demo_entries
                from cards_bringup.hil.run import HilRun

                boards = str(args.boards.resolve()) if args.boards else ""
                hil = HilRun(
                    given,
                    args.robot,
                    model,
                    overrides,
                    duration,
                    out,
                    firmware,
                    boards=boards,
                    world=plan.values["world"] if args.world is None else args.world,
                )
                start = hil.run
                extras = lambda end: demo_entries(hil, stopped=end.stopped)  # noqa: E731
            else:
                extras = lambda _end: {}  # noqa: E731
                if use_ros:
                    if waits:
                        nodes.audience = Audience(pages, controllers, meanwhile=look_ahead)
                    start = nodes.run
                else:
                    from cards_bringup.nodes.in_process import InProcessRun

                    in_process = InProcessRun(plan, overrides, duration, out)
                    start = lambda on_time, _note: in_process.run(on_time)  # noqa: E731
            demo = _Demo(args, plan, name, robots, duration, out, foreseen)
            code, end = _record(demo, start, extras, interrupts)
            if args.video is not None and end.error is None:
                _film(args, out)
            stays = bool(pages) and not args.no_wait and not args.hil
            if stays and end.error is None and not end.stopped:
                show_until_stopped(
                    nodes if use_ros else None,
                    pages,
                    views,
                    robots,
                    out,
                    host=args.host,
                    stopped=interrupts.saved(),
                    note=lambda text: say(args, text),
                )
            return code


def _check_video(file: Path, *, several: bool) -> None:
    from cards_viz.film.film import check_name

    check_name(file)
    if several:
        raise CardsError(
            "--video of several robots (expected: ./cards video OUT/ROBOT for each of them)"
        )
    if not file.absolute().parent.is_dir():
        raise CardsError(f"--video {file}: there is no folder {file.parent} (expected: one)")


def _film(args: argparse.Namespace, out: Path) -> None:
    """Film the run; what was recorded stays if that fails."""
    from cards_bringup.progress import ShareProgress
    from cards_viz.film.film import film_run
    from cards_viz.runs.recorded import RecordedRun

    with ShareProgress(args.video.name, quiet=args.json) as bar:
        count = film_run(RecordedRun.read(out), args.video, progress=bar.update)
    say(args, f"{args.video}: {count} pictures")


def _default_mode(args: argparse.Namespace) -> str:
    """Return how time advances if nobody says: correct on any machine, where that can be."""
    # boards keep their own time, and nobody answers where there is no controller
    return "realtime" if args.hil or args.controller == "none" else "paced"


@dataclass(frozen=True)
class _Demo:
    """A run.

    Attributes:
        args: Command line.
        plan: Nodes.
        name: Of the robot, or of all.
        robots: The robots.
        duration: Simulated time, [s]; 0: until Ctrl-C.
        out: Run folder.
        foreseen: What robots were found not to be able to do before it began, by namespaces.
    """

    args: argparse.Namespace
    plan: Plan
    name: str
    robots: tuple[DemoRobot, ...]
    duration: float
    out: Path
    foreseen: Mapping[str, Sequence[str]]


def _record(
    demo: _Demo, start: Start, extras: Extras, interrupts: RunInterrupts
) -> tuple[int, RunEnd]:
    """Run, write the results, print a summary; return the exit code and how the run ended."""
    args, out = demo.args, demo.out
    end = simulate(args, start, demo.duration, out)
    interrupts.saving()
    parts = [arrange(robot.folder(out)) for robot in demo.robots]
    if not all(parts):
        return nothing_recorded(args, end, out, "simulator"), end
    code = conclude(
        args,
        interrupts,
        end,
        out,
        write=lambda: _write_results(demo, end, parts, extras),
        show=_print_summary,
    )
    return code, end


def _check_references(plan: Plan, robots: tuple[DemoRobot, ...]) -> None:
    """Refuse references that there are not, before any node starts.

    Raises:
        CardsError: There is no such reference; the message lists those there are.
    """
    for one in robots:
        given = {} if one.controller is None else plan.given(one.controller.full_name)
        if one.controller is None or not given.get("reference"):
            continue
        space = controller_class(one.controller.name).space
        file, robot = given.get("reference_file", ""), one.robot
        read_reference(str(given["reference"]), file, robot, robot.tree, space=space)


def _overrides(
    args: argparse.Namespace, plan: Plan, duration: float, out: Path, common: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return full node name to parameters; ``common`` are those of host and controller."""
    overrides: dict[str, dict[str, Any]] = {}
    for node in plan.nodes:
        own = {**common, "log_dir": str(out / node.namespace)}
        if node.role == "host":
            overrides[node.full_name] = own
            if args.hil:
                continue  # a real robot has no end
            own["duration"] = duration
            if plan.values["controller"] == "none":
                own["wait_for_command"] = False
        elif node.role == "controller":
            overrides[node.full_name] = {**own, **_controller_model(args)}
    return overrides


def _show(
    args: argparse.Namespace, plan: Plan, overrides: dict[str, dict[str, Any]], *, tell: bool
) -> dict[str, str]:
    """Give every browser view a port of its own; return the addresses by full names of views."""
    from cards_viz.pages.access import page_url
    from cards_viz.pages.page import reserved_port

    port = args.port
    pages = {}
    for node in plan.nodes:
        if node.name == "browser_view":
            port = reserved_port(args.host, port)
            overrides[node.full_name] = {"host": args.host, "port": port}
            pages[node.full_name] = page_url(args.host, port)
            tell_network(args, port)
            if tell:
                whose = f" ({node.namespace})" if node.namespace else ""
                say(args, f"watch at {pages[node.full_name]}{whose}{instead(args.port, port)}")
            port += 1
    return pages


def _controller_model(args: argparse.Namespace) -> dict[str, Any]:
    """Read ``mass_factor=1.1,attachment_offset=0.002``."""
    if not args.controller_model:
        return {}
    from cards_core.loop.control_setup import MODEL_ERRORS

    known = (*MODEL_ERRORS, "perturbation_seed")
    out: dict[str, Any] = {}
    for part in filter(None, args.controller_model.split(",")):
        name, _, value = part.partition("=")
        if name in out:
            raise CardsError(
                f"--controller-model '{part}': '{name}' is given twice (expected: once)"
            )
        try:
            if name not in known:
                raise ValueError
            seed = name == "perturbation_seed"
            out[name] = int(value) if seed else number_in(value, name, ValueError)
        except ValueError:
            raise CardsError(
                f"--controller-model '{part}' (expected: {'=, '.join(known)}= and a number)"
            ) from None
    return out


def _text_parameter(plan: Plan, node: str, name: str) -> str:
    """Return a text among the parameters of a node, empty if it is not given."""
    found = next((one for one in plan.nodes if one.name == node), None)
    if found is None:
        # the simulator is no node of a real robot, but its section may say which robot that is
        given = load_parameters(plan.parameter_file, node)
    else:
        given = plan.given(found.full_name)
    value = given.get(name, "")
    if not isinstance(value, str):
        raise CardsError(
            f"{plan.parameter_file}: parameter '{name}' of {node} is {value!r} (expected: a text)"
        )
    return value


@dataclass(frozen=True)
class _Tracking:
    """A controller with its reference, and the state of the robot at the start of the run."""

    control: ControlLoop
    start: RobotState


def _trackings(plan: Plan, common: Mapping[str, Any]) -> dict[str, _Tracking]:
    """Return what those controllers of the run track that have a reference, by namespaces.

    Args:
        plan: What runs.
        common: Parameters of host and controllers.

    Raises:
        CardsError: A parameter, the robot or the reference is not usable.
    """
    # here, so that the page starts before what takes long to import
    from cards_core.loop.control_setup import make_control_loop
    from cards_sim.node_parameters import TIME_STEP

    ((host, package),) = ((n.full_name, n.package) for n in plan.nodes if n.role == "host")
    found = {}
    for node in plan.nodes:
        if node.role != "controller" or not plan.given(node.full_name).get("reference"):
            continue
        given = {**common, "log_dir": ""}
        overrides = {host: given, node.full_name: given}
        control = make_control_loop(node.name, plan.parameters_of(node.full_name, overrides))
        tree = control.robot.tree
        place = plan.parameters_of(host, overrides)
        place.declare([initial_positions(tree), TIME_STEP])
        if package == "cards_sim":  # states come no more often: what is not stable now never is
            control.controller.set_period(place["dt"])
        start = RobotState(0.0, np.array(place["initial_positions"]), np.zeros(tree.nv))
        found[node.namespace] = _Tracking(control, start)
    return found


def _duration(args: argparse.Namespace, plan: Plan, trackings: Mapping[str, _Tracking]) -> float:
    """Return the simulated time, [s]: as requested, else the duration of the reference."""
    if args.duration is not None:
        return float(args.duration)
    if plan.values["controller"] == "none":
        return 0.0 if not args.headless else 5.0
    ends = [one.control.end_from(one.start) for one in trackings.values()]
    # NaN: without a reference, or without an end of it
    return max((end for end in ends if math.isfinite(end)), default=10.0)


def _look_ahead(
    args: argparse.Namespace, trackings: Mapping[str, _Tracking], duration: float
) -> dict[str, list[str]]:
    """Tell what the robots are asked for and cannot do; return it by namespaces."""
    from cards_core.loop.preview import preview

    found = {}
    for space, one in trackings.items():
        found[space] = list(preview(one.control, one.start, duration))
        for text in found[space]:
            say(args, f"warning: {f'{space}: ' if space else ''}{text}")
    return found


def _write_results(
    demo: _Demo, end: RunEnd, parts: list[list[RunPart]], extras: Extras
) -> dict[str, Any]:
    """Write the run folders of all robots, and return the summary of the run."""
    from cards_viz.runs.folder import write_summary

    args, plan = demo.args, demo.plan
    say(args, "plots and recording ...")
    common: dict[str, Any] = {
        "controller": plan.values["controller"],
        "mode": plan.values["mode"],
        "simulator": plan.values["simulator"],
        "transport": "in process" if args.no_ros else "ROS topics",
        "controller_model": _controller_model(args),
    }
    if terrain := _text_parameter(plan, "simulator", "terrain"):
        common["terrain"] = terrain
    summaries = {
        robot.namespace: _write_parts(demo, robot, own, common, end=end, extras=extras)
        for robot, own in zip(demo.robots, parts, strict=True)
    }
    if list(summaries) == [""]:
        return summaries[""]
    common |= {"wall_time_s": end.wall, "real_time_factor": end.real_time_factor}
    summary = summary_of_all(summaries, common, demo.name)
    write_summary(demo.out, summary)
    return summary


def _write_parts(
    demo: _Demo,
    robot: DemoRobot,
    parts: list[RunPart],
    common: dict[str, Any],
    *,
    end: RunEnd,
    extras: Extras,
) -> dict[str, Any]:
    """Write a run folder for every part of a robot's run; return the summary of the main one."""
    from cards_viz.runs.folder import write_run_folder

    args = demo.args
    told = list(demo.foreseen.get(robot.namespace, ()))
    common = {**common, "model": robot.model, "warnings": told}
    if robot.controller is None:
        common["controller"] = "none"
    summary: dict[str, Any] = {}
    first, last = parts[0], parts[-1]
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        if not part.useful:
            what = f"only {part.time:.3g} s, logs without plots" if part.time else "nothing"
            say(args, f"{part.folder.name}: {what}")
            continue
        # the first part includes the start of the nodes
        begun = end.begun if part is first else part.begun
        # the start of a part without rows is not known
        ended = min(end.begun + end.wall, following.begun if following else math.inf)
        wall = ended - begun
        metadata: dict[str, Any] = {**common, "wall_time_s": wall}
        if len(parts) == 1:
            metadata["real_time_factor"] = end.real_time_factor
        if part is last:
            metadata |= _ending(end, part.time, demo.duration)
        else:
            metadata |= {"stopped": True, "ended_by": "reset"}
        if not part.name:
            metadata = _merged(metadata, _or_raise(extras, end))
        made = write_run_folder(
            part.folder, robot.robot, metadata, robot_description=to_urdf(robot.robot)
        )
        if part.name:
            say(args, f"{part.folder}: {part.time:.3f} s, {verdict_line(made)}")
        else:
            summary = made
    return summary


def _or_raise(extras: Extras, end: RunEnd) -> dict[str, Any]:
    """Return the extras of a run; raise the error that ended the run if they cannot be made."""
    try:
        return extras(end)
    except CardsError as error:
        if end.error is None:
            raise
        raise end.error from error


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return the union; lists that both have are concatenated, else the second counts."""
    lists = {key for key in a.keys() & b.keys() if isinstance(a[key], list)}
    return a | b | {key: [*a[key], *b[key]] for key in lists}


def _ending(end: RunEnd, recorded: float, duration: float) -> dict[str, Any]:
    """Return the entries of the summary about the end of a run."""
    failures = [end.failure] if end.failure else []
    if not failures and end.reached - recorded > LOG_LAG:
        failures.append(
            f"the simulator's log ends at t = {recorded:.3f} s, the run at {end.reached:.3f} s"
        )
    return {"duration_s": duration, "stopped": end.stopped, "failures": failures}


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    for name, one in summary.get("robots", {}).items():
        print(f"{name}:")
        _print_summary(one, out / name)
    if "robots" in summary:
        return

    def show(label: str, key: str, unit: str, scale: float = 1.0) -> None:
        if (value := summary.get(key)) is not None:
            print(f"  {label:<26} {scale * value:10.4g} {unit}")

    print(f"{summary['robot']}, {summary['controller']}, {summary['mode']}")
    show("simulated", "sim_time_s", "s")
    show("wall time", "wall_time_s", "s")
    show("real-time factor", "real_time_factor", "without the start")
    show("joint error, max", "joint_error_max_rad", "mrad", 1e3)
    show("joint error, RMS", "joint_error_rms_rad", "mrad", 1e3)
    show("sliding joints, max", "joint_error_max_m", "mm", 1e3)
    show("sliding joints, RMS", "joint_error_rms_m", "mm", 1e3)
    show("hand error, RMS", "op_error_rms_m", "mm", 1e3)
    show("hand error, max", "op_error_max_m", "mm", 1e3)
    show("minimum tension", "tension_min_N", "N")
    show("maximum tension", "tension_max_N", "N")
    show("infeasible steps", "qp_infeasible_steps", "")
    show("control rate", "control_rate_hz", "Hz")
    show("control step, median", "loop_p50_us", "us")
    show("control step, 99 %", "loop_p99_us", "us")
    show("missed deadlines", "missed_deadlines", "")
    if "hil" in summary:
        from cards_bringup.hil.results import lines

        print("\n".join(f"  {text}" for text in lines(summary["hil"])))
    print(f"  {'verdict':<26} {verdict_line(summary)}")
    print(f"  {out}")
