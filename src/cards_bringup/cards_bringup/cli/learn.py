"""``./cards learn``: learn a gait for a robot by trials in the simulator.

An experiment is one YAML file: robot, terrains, parameters and their ranges, algorithm, objective.
A robot stands for the experiment of its name in config/learning. Results depend on the experiment
alone, not on the number of workers.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from cards_bringup.cli import say
from cards_bringup.option_types import COUNT, WholeNumber
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import new_run_folder

ALGORITHMS = ("evolution", "monte_carlo", "gaussian", "cma")

REPORT = "report"

SEED = WholeNumber(at_most=2**53)
"""Numbers of YAML are floating-point: larger ones would be rounded in the folder."""

EXAMPLES = """examples:
  ./cards learn tetrahedral_6                          the experiment in config/learning
  ./cards learn tetrahedral_6 --algorithm cma --trials 200
  ./cards learn my_gait.yaml --workers 8 --out gait    an experiment of your own
  ./cards learn my_gait.yaml --dask tcp://10.0.0.5:8786
  ./cards learn --resume gait                          go on after Ctrl-C, a crash, a kill
  ./cards learn --resume gait --trials 2000            more trials
  ./cards learn --resume gait --trial 137              run a trial again: the same to the last bit
  ./cards learn report gait --out page                 its report, written to another folder
  ./cards demo tetrahedral_6 --controller cpg --params-file gait/demo.yaml

The folder has experiment.yaml, trials.parquet (a row for each trial), best.yaml (the best pattern
and where it comes from), demo.yaml and report.html with its plots, which a browser reads again
every 20 s while trials are missing; until then also journal.jsonl.

Exit code: 0 all trials were run; 1 all of them failed, or a trial that was run again gave
something else; 2 it could not run, or a cluster was lost: what was done is kept; 130 Ctrl-C,
likewise."""


def add_learn(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("learn", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add(
        "what",
        nargs="*",
        metavar="ROBOT|EXPERIMENT.yaml",
        help=f"what to learn; or: {REPORT} FOLDER",
    )
    add(
        "--algorithm",
        choices=ALGORITHMS,
        help="algorithm instead of the experiment's, with default settings",
    )
    add("--trials", type=COUNT, metavar="N", help="how many (default: the experiment's)")
    add("--seed", type=SEED, metavar="N", help="of all random numbers (default: the experiment's)")
    add("--workers", type=COUNT, metavar="N", help="processes (default: one per core)")
    add("--dask", metavar="ADDRESS", help="run on a Dask scheduler; local: on one of this machine")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--out", type=Path, metavar="DIR", help="folder (default: runs/learn_NAME_TIME)"
    )
    place.add_argument("--resume", type=Path, metavar="DIR", help="resume in this folder")
    add("--trial", type=WholeNumber(at_least=0), metavar="N", help="run this trial again, alone")
    add("--quiet", action="store_true", help="no progress")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.what[:1] == [REPORT]:
        return _report(args)
    if len(args.what) > 1:
        raise CardsError(
            f"several experiments, {', '.join(args.what)} (expected: one robot or file)"
        )
    from cards_learning.folder import chosen_experiment

    what = args.what[0] if args.what else None
    experiment = chosen_experiment(
        what, args.resume, algorithm=args.algorithm, trials=args.trials, seed=args.seed
    )
    folder = args.resume or args.out or new_run_folder(f"learn_{Path(what or '').stem}")
    if args.trial is not None:
        return _repeat(args, experiment)
    return _learn(args, experiment, folder)


def _learn(args: argparse.Namespace, experiment: Any, folder: Path) -> int:
    from cards_bringup.learning.report import PAGE, LiveReport, write_report
    from cards_bringup.progress import BestProgress
    from cards_core.cores import available_cores
    from cards_core.json_values import json_value
    from cards_learning.run import learn
    from cards_learning.trial import TrialResult

    begin = time.perf_counter()
    title = f"{Path(experiment.robot).stem} {experiment.algorithm.kind}"
    page, live = folder / PAGE, LiveReport(folder)
    told = args.quiet

    def show(done: int, total: int, best: TrialResult) -> None:
        nonlocal told
        bar.update(done, total, best.score)
        if live.update() and not told:
            told = True
            say(f"scores in the browser: {page.resolve().as_uri()}")

    try:
        with BestProgress(title, "trials", quiet=args.quiet) as bar:
            made = learn(
                experiment,
                folder,
                workers=args.workers or available_cores(),
                dask=args.dask,
                resume=args.resume is not None,
                progress=show,
            )
    except KeyboardInterrupt:
        say(f"stopped; go on: ./cards learn --resume {folder}")
        raise
    write_report(folder, folder)
    seconds = time.perf_counter() - begin
    result = {
        "folder": str(folder),
        "report": str(page),
        "robot": experiment.robot,
        "algorithm": experiment.algorithm.kind,
        "trials": len(made.trials),
        "made": made.made,
        "states": made.states,
        "worker_crashes": made.crashes,
        "best": {
            "trial": made.best.number,
            "score": made.best.score,
            "state": made.best.state,
            "measures": json_value([run.measures for run in made.best.runs]),
        },
        "seconds": round(seconds, 3),
    }
    if args.json:
        print(json.dumps(result))
    else:
        states = ", ".join(f"{count} {state}" for state, count in made.states.items())
        print(f"{len(made.trials)} trials ({states}), {made.made} of them in {seconds:.0f} s")
        print(f"best: trial {made.best.number}, score {made.best.score:.4g}")
        print(f"pattern: {folder / 'best.yaml'}")
        terrain, _ = experiment.draw(experiment.runs[0])
        print(
            f"watch it: ./cards demo {experiment.robot} --controller cpg "
            f"--terrain {terrain} --params-file {folder / 'demo.yaml'}"
        )
        print(f"report: {page}")
    return ExitCode.DONE if set(made.states) != {"diverged"} else ExitCode.FAILED


def _repeat(args: argparse.Namespace, experiment: Any) -> int:
    """Run one trial again and compare it with what is recorded."""
    from cards_core.json_values import json_value
    from cards_learning.folder import RunFolder
    from cards_learning.run import repeat

    if args.out is not None or args.dask is not None:
        raise CardsError("--trial with --out or --dask (expected: --trial runs one trial here)")
    known = None
    if args.resume is not None:
        known = RunFolder(args.resume).trials(experiment).get(args.trial)
    found = repeat(experiment, args.trial, known)
    same = None if known is None else found.same_as(known)
    if args.json:
        record = found.record() | {"same": same}
        record["runs"] = [{**r, "measures": json_value(r["measures"])} for r in record["runs"]]
        print(json.dumps(record))
    else:
        print(f"trial {found.number}: score {found.score!r}, {found.state}")
        for one, what in zip(found.runs, experiment.runs, strict=True):
            shown = ", ".join(
                f"{name} {value:.4g}" for name, value in json_value(one.measures).items() if value
            )
            why = f" ({one.reason})" if one.reason else ""
            print(f"  {what.terrain}: {one.state}{why}, {shown}")
        if same is not None:
            print("the same as recorded" if same else "NOT the same as recorded")
    if known is not None and not same:
        say(
            f"trial {found.number} gave {found.score!r}, recorded is {known.score!r} (expected: "
            "the same; another version of CARDS, MuJoCo or NumPy, or another kind of processor?)"
        )
        return ExitCode.FAILED
    return ExitCode.DONE


def _report(args: argparse.Namespace) -> int:
    """Write the report of a folder."""
    if len(args.what) != 2 or args.resume is not None or args.trial is not None:
        raise CardsError("expected: ./cards learn report FOLDER [--out DIR]")
    from cards_bringup.learning.report import write_report

    folder = Path(args.what[1])
    page = write_report(folder, args.out or folder)
    print(json.dumps({"report": str(page)}) if args.json else f"report: {page}")
    return ExitCode.DONE
