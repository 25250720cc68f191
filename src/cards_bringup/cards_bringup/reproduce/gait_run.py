"""Ensembles of runs of one pattern generator, described by data.

Distances of robots that crawl are chaotic: a velocity of 1 mm/s at time zero leads to another one.
So a run of an experiment is an ensemble, and what is compared are medians and quartiles.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.reproduce.experiment import FinishedRun, Setup, Tell
from cards_core.control.cpg.controller import LIVE, PatternGenerator
from cards_core.control.cpg.files import pattern_file, read_pattern
from cards_core.control.cpg.oscillators import OpenLoop
from cards_core.control.cpg.parameters import PatternParameters, write_parameters
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.spatial import placed
from cards_core.typing import Array
from cards_sim.build import build_host

OSCILLATIONS = "oscillations.npz"
"""File of `switch_run`, n rows: time [s]; place of the centre of mass [m]; theta, r and omega of
all oscillators, shape (n, m, 3)."""

USED = "pattern.yaml"
"""File of `gait_run`: the pattern without what is not used of it."""

SPREAD = ("least", "quartile 1", "median", "quartile 3", "most")
"""What tables say of an ensemble."""


def gait_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Run a robot with a pattern several times.

    The `Experiment.perform` of such runs; one process per core.

    Args:
        setup: ``robot``, ``pattern``: names or paths; ``muscles``: patterns of names of those
            that oscillate; ``feedback``: whether the network of the pattern is used; ``terrain``,
            with ``{seed}`` where that of the repetition goes; ``goals``: x, y [m], or none;
            ``duration`` [s]; ``repetitions``; ``perturbation``: of all velocities at time zero.
        folder: Gets `USED`, where networks of the pattern are not used.
        tell: Told the share that is done, 0 to 1.

    Returns:
        ``runs``: of each its state and measures.

    Raises:
        CardsError: The set-up does not fit the robot; the message says why.
    """
    from cards_learning.ensemble import ensemble
    from cards_learning.experiment import parse_experiment

    start = setup["pattern"]
    whole = pattern = read_pattern(pattern_file(start))
    if not setup["feedback"]:
        pattern = replace(pattern, feedback=None)
    if not setup["goals"]:
        pattern = replace(pattern, goal=None, goal_tension=0.0)
    if pattern.feedback is not whole.feedback or pattern.goal is not whole.goal:
        start = str(folder / USED)
        write_parameters(pattern, start)
    experiment = parse_experiment(json.dumps(_learning(setup, pattern, start)), "set-up")
    result = ensemble(experiment, workers=os.cpu_count() or 1, progress=tell)
    runs = [
        {"goal": run.goal, "repetition": run.repetition, "state": made.state, **made.measures}
        for run, made in zip(experiment.runs, result.runs, strict=True)
    ]
    return {"runs": runs}


def _learning(setup: Setup, pattern: PatternParameters, start: str) -> dict[str, Any]:
    """Return an experiment of `cards_learning` whose start is the pattern, to the last bit."""
    oscillators = pattern.oscillators
    controller: dict[str, Any] = {
        "kind": "cpg",
        "oscillators": "open_loop" if isinstance(oscillators, OpenLoop) else "feedback",
        "per_joint": pattern.per_joint,
        "muscles": list(setup["muscles"]),
        "start": start,
        # something has to be learnt; the start is at the lower end of its range
        "learn": ["oscillators"],
        "parameters": {
            "frequency": [oscillators.frequency, oscillators.frequency + 1.0],
            "amplitude": oscillators.amplitude,
        },
    }
    if pattern.feedback is not None:
        controller["hidden"] = len(pattern.feedback.hidden)
    if pattern.goal is not None:
        controller["goal_hidden"] = len(pattern.goal.hidden)
        controller["goal_frame"] = pattern.goal_frame
    return {
        "format": "learning/1",
        "robot": setup["robot"],
        "terrains": [setup["terrain"]],
        "duration": setup["duration"],
        "repetitions": setup["repetitions"],
        "perturbation": setup["perturbation"],
        "goals": [list(goal) for goal in setup["goals"]],
        "controller": controller,
        "algorithm": {"kind": "gaussian"},
        "objective": {"distance": 1.0},
        "trials": 1,
    }


def switch_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Let a robot crawl without feedback and switch it on on the way.

    The `Experiment.perform` of such runs.

    Args:
        setup: ``robot``, ``pattern``, ``muscles``, ``terrain``, ``duration`` [s] as those of
            `gait_run`; ``switch``: time at which the feedback is switched on, [s]; ``row_period``
            [s].
        folder: Gets `OSCILLATIONS`.
        tell: Told the share that is done, 0 to 1.

    Returns:
        Nothing: all is in `OSCILLATIONS`.

    Raises:
        CardsError: The set-up does not fit the robot, or the oscillators diverged.
    """
    robot = load(setup["robot"])
    simulator = {"terrain": setup["terrain"], "dt": 0.001, "command_timeout": 0.2}
    host = build_host(ParameterSet(simulator, "simulator"), robot)
    parameters = ParameterSet(
        {
            "backend": "numeric",
            "file": setup["pattern"],
            "muscles": list(setup["muscles"]),
            "feedback": False,
        },
        "cpg",
    )
    loop = make_control_loop("cpg", parameters, robot)
    generator = loop.controller
    if not isinstance(generator, PatternGenerator):
        raise CardsError(f"cpg is {type(generator).__name__} (expected: PatternGenerator)")
    masses = np.array([link.inertia.mass for link in robot.links])
    centres = np.array([link.inertia.com for link in robot.links])
    duration, switch, period = (float(setup[n]) for n in ("duration", "switch", "row_period"))
    rows: list[tuple[float, Array, Array]] = []
    switched = False
    while (time := host.state.time) < duration:
        if not switched and time >= switch:
            generator.change({name: parameters[name] for name in LIVE} | {"feedback": True})
            switched = True
        host.submit(loop.step(host.state))
        if generator.reason:
            raise CardsError(f"{setup['pattern']} at {time:g} s: {generator.reason}")
        host.step()
        if (len(rows) + 1) * period <= host.state.time + 1e-9:
            poses = host.simulator.link_poses()
            place = masses @ placed(poses, centres) / masses.sum()
            rows.append((host.state.time, place, generator.oscillators.state.copy()))
            tell(host.state.time / duration)
    times, places, states = (np.array(column) for column in zip(*rows, strict=True))
    np.savez(folder / OSCILLATIONS, time=times, place=places, oscillators=states)
    return {}


def random_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Try random patterns, as `./cards learn` does.

    The `Experiment.perform` of such runs; one process per core.

    Args:
        setup: ``experiment``: name in config/learning; ``trials``: how many.
        folder: Gets the folder of the trials.
        tell: Told the share that is done, 0 to 1.

    Returns:
        ``distances`` of all trials, [m], zero where one failed.

    Raises:
        CardsError: The experiment cannot be read or run.
    """
    from cards_learning.experiment import read_experiment
    from cards_learning.run import learn

    experiment = read_experiment(setup["experiment"]).with_changes(trials=setup["trials"])
    found = learn(
        experiment,
        folder / "trials",
        workers=os.cpu_count() or 1,
        progress=lambda done, total, _: tell(done / total),
    )
    good = [
        trial.runs[0].measures["distance"] if trial.state == "done" else 0.0
        for trial in found.trials
    ]
    return {"distances": good}


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What a finished ensemble gave.

    Attributes:
        setup: Its set-up.
        runs: State and measures of each.
    """

    setup: Setup
    runs: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, run: FinishedRun) -> Ensemble:
        """Read the numbers of a run."""
        return cls(run.setup, tuple(run.numbers["runs"]))

    def of_measure(self, name: str) -> Array:
        """Return a measure of all runs, shape (n,); NaN where a run diverged."""
        return np.array([float(run[name]) for run in self.runs])

    def median(self, name: str) -> float:
        """Return the median of a measure; runs that diverged count as the worst, zero."""
        return float(np.median(np.nan_to_num(self.of_measure(name), nan=0.0)))

    def row(self, name: str, factor: float = 1.0) -> dict[str, float]:
        """Return least, quartiles and largest of a measure, for a table."""
        values = factor * np.nan_to_num(self.of_measure(name), nan=0.0)
        found = np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
        return dict(
            zip(("least", "quartile 1", "median", "quartile 3", "most"), found, strict=True)
        )
