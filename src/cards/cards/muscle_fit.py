"""Fit muscles from Python, as ``./cards fit-muscles`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from cards_core.analysis.muscle_fit.fit import ITERATIONS, STARTS, FitProgress, MuscleFit
from cards_core.analysis.muscle_fit.folder import (
    STATE,
    check_new,
    check_writable,
    resumed,
    save_result,
    save_state,
)
from cards_core.analysis.muscle_fit.reading import read_specification
from cards_core.analysis.muscle_fit.result import FitResult
from cards_core.checks import check_kind
from cards_core.errors import CardsError
from cards_core.files import making
from cards_core.robot.model import Robot

SAVED_EVERY = 2.0
"""The state is saved this often, [s]."""


def fit_muscles(
    robot: Robot | None = None,
    specification: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    starts: int = STARTS,
    iterations: int = ITERATIONS,
    seed: int = 0,
    force: bool = False,
    resume: bool = False,
    progress: Callable[[FitProgress], None] | None = None,
) -> FitResult:
    """Move via points so that moment arms, lengths, torques and force closure are as wanted.

    Args:
        robot: A robot with muscles; None with ``resume``.
        specification: YAML file, see docs/fit_muscles.md; None with ``resume``.
        out: Folder for the fitted robot as an SDF, the report and plots, and for the state if
            it is interrupted; None: nothing is written.
        starts: Most starts: the robot as it is, then random ones until all goals are met.
        iterations: Most steps from each start.
        seed: Of the random starts.
        force: Replace an earlier result in ``out``.
        resume: Go on with the interrupted fit in ``out``, with its settings.
        progress: Called after every step.

    Returns:
        The best that was found; ``result.met`` says whether all goals are met, ``result.robot``
        is the fitted robot.

    Raises:
        CardsError: The robot or a number is none, or ``out`` has something already.
        DescriptionError: The specification has a mistake; the message names file, line and key.
        OSError: ``out`` cannot be written.
    """
    folder = None if out is None else Path(out)
    if resume:
        if folder is None or specification is not None:
            raise CardsError("resume with a specification or without out (expected: out alone)")
        fit = resumed(folder, robot)
    else:
        check_kind(robot, Robot, "the robot", 'a robot with muscles, e.g. cards.load("planar_2r")')
        assert robot is not None
        what = "the path of a YAML file"
        check_kind(specification, (str, os.PathLike), "the specification", what)
        assert specification is not None
        read = read_specification(Path(specification), robot)
        fit = MuscleFit(read, starts=starts, iterations=iterations, seed=seed)
        if folder is not None:
            check_new(folder, force=force)
    if folder is None:
        return fit.run(progress)
    check_writable(fit.specification, folder)
    return _run_in_folder(fit, folder, progress, resume=resume)


def _run_in_folder(
    fit: MuscleFit,
    folder: Path,
    progress: Callable[[FitProgress], None] | None,
    *,
    resume: bool,
) -> FitResult:
    from cards_viz.plots import muscle_fit as plots
    from cards_viz.plots.drawing import save

    with making(folder):
        saved = time.monotonic()
        if not resume:
            (folder / STATE).unlink(missing_ok=True)  # of the fit that is replaced

        def told(now: FitProgress) -> None:
            nonlocal saved
            if time.monotonic() - saved >= SAVED_EVERY:
                save_state(fit, folder)
                saved = time.monotonic()
            if progress is not None:
                progress(now)

        try:
            result = fit.run(told)
            save_result(result, folder)
            for name, figure in plots.figures(result).items():
                save(figure, folder / f"{name}.png")
        except BaseException:
            save_state(fit, folder)
            raise
        (folder / STATE).unlink(missing_ok=True)
    return result
