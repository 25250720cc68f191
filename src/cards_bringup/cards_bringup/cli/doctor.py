"""``./cards doctor``: look at this machine, part by part, and say what is missing."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards doctor              OK, WARN (something optional is missing) or FAIL, and what to do
  ./cards doctor --json       for a bug report

Exit code 0 unless something that is required fails. Nothing is installed or changed.
"""

COLORS = {"OK": "\033[32m", "WARN": "\033[33m", "FAIL": "\033[31m"}


def add_doctor(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("doctor", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; it fails if something required does."""
    from cards_bringup.cli import version
    from cards_bringup.doctor import examine
    from cards_core.shared_files import checkout

    findings = []
    colored = sys.stdout.isatty()
    for finding in examine(checkout()):
        findings.append(finding)
        if args.json:
            continue
        status = finding.status.ljust(4)
        if colored:
            status = f"{COLORS[finding.status]}{status}\033[0m"
        print(f"{status}  {finding.part:<16}  {finding.text}", flush=True)
        if finding.fix:
            print(f"{'':22}  -> {finding.fix}", flush=True)
    failed = sum(finding.status == "FAIL" for finding in findings)
    warned = sum(finding.status == "WARN" for finding in findings)
    if args.json:
        rows = [asdict(finding) for finding in findings]
        print(json.dumps({"version": version(), "ok": not failed, "findings": rows}))
    else:
        print(f"cards {version()}: {failed} failed, {warned} warnings")
    return ExitCode.FAILED if failed else ExitCode.DONE
