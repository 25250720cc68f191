"""``./cards reproduce``: repeat experiments of papers, and put their results beside ours.

Without arguments it lists papers and experiments. Otherwise it runs those that are named, and
writes a folder with report (HTML, Markdown, JSON), tables, plots and run folders.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cards_bringup.cli import print_columns, say
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import new_run_folder

EXAMPLES = """examples:
  ./cards reproduce                            what there is
  ./cards reproduce 000.A                      one experiment
  ./cards reproduce 000                        all experiments of a paper
  ./cards reproduce all --quick --out results  everything, in hours
  ./cards reproduce 000 004 --out results      several, into a folder of your own
  ./cards reproduce --resume results           the rest after Ctrl-C; changed set-ups again
  ./cards reproduce 004.WFC --resume results   one more experiment, into the same report
  ./cards reproduce 003 --quick                ensembles of few short runs
  ./cards reproduce 000 --json                 report.json on standard output

A value within the accepted band is reproduced. One outside differs, if the experiment knows the
reason and the value is as that reason says; else it is not reproduced. An experiment whose data
are not here is skipped, with the reason.

Exit code: 0 everything was reproduced, differs for a known reason or was skipped; 1 something was
not reproduced; 2 something could not run; 130 Ctrl-C, which leaves a report of what is finished.

Experiments of your own: docs/reproduce.md"""


def add_reproduce(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("reproduce", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("what", nargs="*", metavar="PAPER[.EXPERIMENT]", help="what to run (default: list all)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--out", type=Path, metavar="DIR", help="folder (default: runs/reproduce_PAPER_TIME)"
    )
    place.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="resume in this folder: finished runs are kept unless their set-up has changed",
    )
    add("--quick", action="store_true", help="fewer and shorter runs, where there are many")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.reproduce.registry import select
    from cards_bringup.reproduce.report import HTML
    from cards_bringup.reproduce.runner import Reproduction, asked_in

    if not args.what and args.resume is None:
        if args.out is not None:
            raise CardsError("--out without an experiment (expected: e.g. 000 or 000.A)")
        return _list(as_json=args.json)
    earlier = [] if args.resume is None else asked_in(args.resume)
    chosen = select([*earlier, *args.what])
    if args.quick:
        chosen = [one.shortened() for one in chosen]
    folder = args.resume or args.out or new_run_folder(f"reproduce_{chosen[0].paper.key}")
    if args.out is not None and folder.exists() and not _is_empty(folder):
        raise CardsError(
            f"--out {folder} is not an empty folder (expected: a new or empty one, or --resume)"
        )
    made = Reproduction(folder, chosen, _shown, say)
    again = f"./cards reproduce --resume {folder}{' --quick' * args.quick}"
    try:
        result = made.run()
    except KeyboardInterrupt:
        say(f"interrupted (go on with {again})")
        raise
    if args.json:
        print(json.dumps({**result, "folder": str(folder)}))
    else:
        print(f"report: {folder / HTML}")
    return int(result["exit_code"])


def _list(*, as_json: bool) -> int:
    """List all experiments; an error if one cannot be loaded."""
    from cards_bringup.reproduce.registry import experiment, experiment_keys

    rows: list[dict[str, Any]] = []
    for key in experiment_keys():
        try:
            one = experiment(key)
        except CardsError as error:
            rows.append({"key": key, "error": str(error)})
            continue
        rows.append(
            {
                "key": key,
                "paper": vars(one.paper),
                "title": one.title,
                "claims": len(one.claims),
                "runs": list(one.runs),
                "setup": dict(one.setup),
            }
        )
    if as_json:
        print(json.dumps({"experiments": rows}))
    else:
        _print_list(rows)
    return ExitCode.ERROR if any("error" in row for row in rows) else ExitCode.DONE


def _print_list(rows: list[dict[str, Any]]) -> None:
    good = [row for row in rows if "error" not in row]
    cells = []
    for number, row in enumerate(good):
        paper = row["paper"]
        if not number or paper["key"] != good[number - 1]["paper"]["key"]:
            cells.append((paper["key"], f"{paper['title']} [{paper['reference']}]", "", ""))
        claims, runs = (
            f"{count} {word}{'' if count == 1 else 's'}"
            for count, word in ((row["claims"], "claim"), (len(row["runs"]), "run"))
        )
        cells.append((f"  {row['key']}", row["title"], claims, runs))
    print_columns(cells)
    for row in rows:
        if "error" in row:
            print(f"{row['key']}: error: {row['error']}")


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


@contextlib.contextmanager
def _shown(title: str) -> Iterator[Any]:
    from cards_bringup.progress import ShareProgress  # needs rich, as --help does not

    with ShareProgress(title) as bar:
        yield bar.update
