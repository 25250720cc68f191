"""``./cards soak``: put random faults into running systems, and judge what they do.

A plan says which systems and faults, how often and how long. Processes are killed and stopped,
cables are unplugged, bytes are disturbed, disks are full, strangers talk on every topic and page,
while an observer checks that tensions stay within their limits, that no stale command drives the
robot, that watchdogs act in time, and what is left when all has ended.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from cards_bringup.bootstrap.process import ended_by_signals
from cards_bringup.cli import say
from cards_bringup.option_types import POSITIVE, WholeNumber
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import new_run_folder

SEED = WholeNumber(at_most=2**53)

EXAMPLES = """examples:
  ./cards soak --plan quick                          a short one: the plan in config/soak
  ./cards soak --plan hour --hours 1 --seed 7        an hour of everything
  ./cards soak --plan my_plan.yaml --hours 0.1 --out soak
  ./cards soak --plan hour --hours 1 --seed 7 --dry-run    its schedule; nothing is run
  ./cards soak --replay soak                         the same faults at the same times
  ./cards soak --plan quick --json                   report.json on standard output

The folder has report.html and report.json, up to date after every episode; episodes with
violations keep the output of all their processes. The same plan, hours and seed give the same
schedule. Plans, faults, invariants, and what needs root: docs/soak.md

Exit code: 0 no violation; 1 violations; 2 it could not run; 130 Ctrl-C, which leaves a report of
what was done."""


def add_soak(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("soak", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--plan", metavar="PLAN", help="YAML file, or name of one in config/soak: quick, hour"
    )
    what.add_argument(
        "--replay", type=Path, metavar="REPORT", help="report.json of a campaign, or its folder"
    )
    add(
        "--hours",
        type=POSITIVE,
        metavar="H",
        help="duration, [h]; no episode begins after it (default: one episode)",
    )
    add("--seed", type=SEED, metavar="N", help="of all random numbers (default: 0)")
    add("-o", "--out", type=Path, metavar="DIR", help="folder (default: runs/soak_TIME)")
    add("--dry-run", action="store_true", help="print the schedule alone")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.soak.campaign import Campaign
    from cards_bringup.soak.plan import read_plan, read_report
    from cards_bringup.soak.report import HTML

    if args.replay is not None:
        for name in ("hours", "seed"):
            if getattr(args, name) is not None:
                raise CardsError(
                    f"--{name} with --replay (expected: without it; the report has it)"
                )
        plan, schedule, seed = read_report(args.replay)
        hours = math.inf
    else:
        plan = read_plan(args.plan)
        seed = args.seed or 0
        hours = args.hours or 0.0
        schedule = plan.schedule(hours, seed)
    if args.dry_run:
        _print_schedule(schedule, as_json=args.json)
        return ExitCode.DONE
    folder = args.out or new_run_folder("soak")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CardsError(f"--out {folder} is not an empty folder (expected: a new or empty one)")
    with ended_by_signals(once=False):
        result = Campaign(plan, schedule, folder, seed=seed, hours=hours, say=say).run()
    if args.json:
        print(json.dumps({**result, "folder": str(folder)}))
    else:
        print(
            f"{result['verdict']}: {result['faults_done']} faults in {result['episodes_done']} "
            f"episodes, {result['faults_skipped']} skipped, {result['violations']} violations"
        )
        print(f"report: {folder / HTML}")
    return ExitCode.FAILED if result["violations"] else ExitCode.DONE


def _print_schedule(schedule: list[Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schedule": [episode.to_json() for episode in schedule]}))
        return
    for episode in schedule:
        print(f"episode {episode.number}: {episode.system}, {episode.duration:g} s")
        for fault in episode.faults:
            print(f"  {fault.at:8.3f} s  {fault.duration:6.3f} s  {fault.kind} {fault.target}")
