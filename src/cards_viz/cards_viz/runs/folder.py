"""The folder that a run leaves behind: summary, plots, recording, logs.

A new folder appears complete or not at all. Into an existing one (the nodes' ``log_dir``) every
file is moved when it is complete, ``summary.json`` last: where it is, everything else is.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cards_core.files import replacing
from cards_core.json_values import json_value
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_viz.labels import signal_unit
from cards_viz.plots import runs as plots
from cards_viz.plots.drawing import save
from cards_viz.plots.runs import actuator_states
from cards_viz.runs import recording
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog
from cards_viz.runs.recorded import check_widths, labels_of
from cards_viz.runs.recorded_scene import scene_channels
from cards_viz.runs.summary import SUMMARY, RunInfo, position_entries, summarise

LOG = logging.getLogger(__name__)

RECORDING = "recording.mcap"
PLOTS = (
    "tracking",
    "path",
    "tensions",
    "efforts",
    "muscle_lengths",
    "actuator_states",
    "signals",
    "loop_time",
)


def write_run_folder(
    folder: Path | str,
    robot: Robot,
    metadata: Mapping[str, Any] | RunInfo,
    *,
    logs: Path | str | None = None,
    robot_description: str | None = None,
) -> dict[str, Any]:
    """Make a run folder from the logs of simulator and controller.

    Args:
        folder: Folder to write, e.g. ``runs/<robot>_<controller>_<time>``; may exist.
        robot: The robot that was simulated; gives names and limits.
        metadata: What the logs do not know, see `RunInfo`; other keys go to the summary.
        logs: Folder with ``simulator.npz`` and, where a controller ran, ``controller.npz``;
            default: ``folder``.
        robot_description: Text of the description, for the recording.

    Returns:
        The content of ``summary.json``.

    Raises:
        RunLogError: A log is missing, damaged or does not fit the robot, or the metadata lack a
            key; nothing was written then.
    """
    target = Path(folder)
    source = target if logs is None else Path(logs)
    path = source / CONTROLLER_LOG
    files = [source / SIMULATOR_LOG, *([path] if path.exists() else [])]
    simulator = SimulatorLog.load(files[0])
    controller = ControllerLog.load(path) if path in files else None
    info = metadata if isinstance(metadata, RunInfo) else RunInfo.from_mapping(metadata)
    keep = [] if target.exists() and source.samefile(target) else files
    return _write(
        target,
        robot,
        info,
        (simulator, controller),
        files=keep,
        robot_description=robot_description,
    )


def write_run(
    folder: Path | str,
    robot: Robot,
    metadata: Mapping[str, Any] | RunInfo,
    simulator: SimulatorLog,
    controller: ControllerLog | None,
    *,
    robot_description: str | None = None,
) -> dict[str, Any]:
    """Make a run folder from logs in memory; else as `write_run_folder`."""
    info = metadata if isinstance(metadata, RunInfo) else RunInfo.from_mapping(metadata)
    return _write(
        Path(folder),
        robot,
        info,
        (simulator, controller),
        files=None,
        robot_description=robot_description,
    )


def write_summary(folder: Path | str, summary: Mapping[str, Any]) -> None:
    """Write ``summary.json`` of a run whose robots have run folders of their own below it.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(Path(folder, SUMMARY)) as temporary:
        temporary.write_text(_json(summary), encoding="utf-8")


def _write(
    target: Path,
    robot: Robot,
    info: RunInfo,
    logs: tuple[SimulatorLog, ControllerLog | None],
    *,
    files: Sequence[Path] | None,
    robot_description: str | None,
) -> dict[str, Any]:
    """Write everything; the log ``files`` are copied, None stands for the logs in memory."""
    simulator, controller = logs
    if target.exists() and not target.is_dir():
        raise RunLogError(str(target), "is not a folder", "a folder or a new name")
    tree = robot.tree
    check_widths(robot, simulator, controller)
    labels = labels_of(tree, controller, info)
    summary: dict[str, Any] = json_value(
        summarise(
            robot.name,
            simulator,
            controller,
            info,
            muscles=robot.muscles,
            error_units=labels.error_units,
        )
    )
    for warning in summary["warnings"]:
        LOG.warning("%s", warning)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        if files is None:
            _write_logs(work, simulator, controller)
        for path in files or ():
            shutil.copy2(path, work)
        for name, figure in run_figures(robot, simulator, controller, info).items():
            save(figure, work / f"{name}.png")
        names = recording.Names(
            tree.position_names,
            tree.velocity_slots.tolist(),
            [muscle.name for muscle in robot.muscles],
            labels.names,
            labels.error_names,
            info.controller,
            [muscle.name for muscle in robot.commanded().muscles],
            tree.velocity_slots[motors_of(tree).rows].tolist(),
        )
        recording.write_mcap(
            work / RECORDING,
            [
                *recording.channels(simulator, controller, names, robot_description),
                *scene_channels(robot, simulator),
            ],
            {"robot": robot.name, "controller": info.controller, "mode": info.mode},
        )
        (work / SUMMARY).write_text(_json(summary), encoding="utf-8")
        _publish(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return summary


def _write_logs(work: Path, simulator: SimulatorLog, controller: ControllerLog | None) -> None:
    np.savez(work / SIMULATOR_LOG, **vars(simulator))
    if controller is not None:
        np.savez(work / CONTROLLER_LOG, **controller.arrays())


def run_figures(
    robot: Robot, simulator: SimulatorLog, controller: ControllerLog | None, info: RunInfo
) -> dict[str, Figure]:
    """Return the figures of a run, by names of `PLOTS`, as far as they apply.

    Args:
        robot: The robot that was simulated.
        simulator: Log of the simulator.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.

    Raises:
        RunLogError: A log does not fit the robot.
    """
    labels = labels_of(robot.tree, controller, info)
    muscles = [muscle.name for muscle in robot.muscles]
    figures = {}
    if muscles:
        lower = np.array([muscle.tension_min for muscle in robot.muscles])
        upper = np.array([muscle.tension_max for muscle in robot.muscles])
        figures["tensions"] = plots.tensions(
            simulator.time, simulator.tensions, muscles, lower, upper
        )
        figures["muscle_lengths"] = plots.muscle_lengths(
            simulator.time, simulator.muscle_lengths, muscles
        )
    if simulator.motor_names:
        figures["efforts"] = plots.efforts(
            simulator.time,
            simulator.efforts,
            simulator.motor_names,
            motors_of(robot.tree).efforts,
        )
    if simulator.actuator_names:
        figures["actuator_states"] = actuator_states(
            simulator.time, simulator.actuators, simulator.actuator_names
        )
    if controller is not None:
        title = f"{robot.name}: {info.controller}, {info.mode}"
        figures["tracking"] = plots.tracking(
            controller.time,
            controller.desired,
            controller.actual,
            controller.error,
            labels=labels,
            title=title,
        )
        positions = position_entries(info.axes, controller.desired.shape[1])
        if info.space == "operational" and positions >= 2:
            figures["path"] = plots.path(
                controller.desired[:, :positions],
                controller.actual[:, :positions],
                labels.names[:positions],
                title,
            )
        if controller.signals:
            shown = controller.signals
            figures["signals"] = plots.signals(
                controller.time,
                {name: signal.values for name, signal in shown.items()},
                {name: signal.names for name, signal in shown.items()},
                {
                    name: signal_unit(signal.field, of_muscles=set(signal.names) <= set(muscles))
                    for name, signal in shown.items()
                },
            )
        steps = np.diff(controller.time)
        # where every state waits for its answer there is no deadline
        deadline = (
            1e6 * float(np.median(steps)) if len(steps) and info.mode == "realtime" else None
        )
        figures["loop_time"] = plots.loop_time(controller.loop_us, deadline)
    return figures


def _publish(work: Path, target: Path) -> None:
    """Move the finished files into place."""
    # mkdtemp makes private folders; a run folder has the rights of any new folder
    umask = os.umask(0)
    os.umask(umask)
    work.chmod(0o777 & ~umask)
    if not target.exists():
        work.rename(target)
        return
    files = sorted(work.iterdir(), key=lambda path: path.name == SUMMARY)
    (target / SUMMARY).unlink(missing_ok=True)
    made = {path.name for path in files}
    for name in (*(f"{plot}.png" for plot in PLOTS), RECORDING):
        # what an earlier run left and this one does not have
        if name not in made:
            (target / name).unlink(missing_ok=True)
    for path in files:
        path.replace(target / path.name)


def _json(summary: Mapping[str, Any]) -> str:
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"
