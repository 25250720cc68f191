"""``./cards test``: run the tests, apart from whatever else runs on this machine.

Tests of hosts, nodes and boards keep time, and beside others on a busy machine a controller may be
late. Those that fail in a whole run are run once more, alone; the rest of the suite gets one try.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode, of_process
from cards_core.shared_files import checkout

EXAMPLES = """examples:
  ./cards test                            everything; skipped tests say why
  ./cards test src/cards_core             one package
  ./cards test -k wrench -x               pytest's own options
  ./cards test --dev --lf                 remember and repeat what failed
"""

FIRST_DOMAIN = "60"
"""ROS domain of the tests; those above it serve tests that run at the same time."""

HYPOTHESIS = "_hypothesis_pytestplugin"
"""The one pytest plugin that our tests need."""

XDIST = "xdist.plugin"
"""Runs the tests of the library beside those of hosts and nodes; see ``conftest.py``."""

ALONE = "real_time"
"""Marks tests that fail, as robots do, on a machine that is busy with something else."""

FAILED = "CARDS_TESTS_FAILED"
"""Environment variable with the file to which ``conftest.py`` adds what failed, and its kind."""

MOST_AGAIN = 10
"""If more tests of hosts fail, timing is not the reason."""

MOST_WORKERS = 8
"""For the library; one more is there for hosts, nodes and boards, which mostly wait."""

TESTS_FAILED, STOPPED = 1, 2
"""Exit codes of pytest: some tests failed; Ctrl-C, or errors while they were collected."""

WITHOUT_VALUE = ("-x", "-v", "-vv", "-q", "-s", "-l", "--dev", "--lf", "--ff", "--sw", "--pdb")
"""Options of pytest behind which a path stands; behind others it may be their value."""


def add_test(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "test",
        usage="./cards test [-h] [--dev] [pytest arguments ...]",
        description=__doc__,
        epilog=EXAMPLES,
    )
    parser.add_argument("--dev", action="store_true", help="let pytest keep its cache")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.passes_on = True
    parser.set_defaults(run=run)


def isolated(environ: Mapping[str, str], domain: int, bytecode: Path) -> dict[str, str]:
    """Return the environment for tests, isolated from other ROS and Gazebo processes.

    Args:
        environ: The present one.
        domain: ROS domain that no other run uses.
        bytecode: Folder for compiled modules if they may not lie beside their sources: the tests
            start many processes, each of which would compile all it imports.
    """
    compiled = {}
    if environ.get("PYTHONDONTWRITEBYTECODE"):
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bytecode)}
    return {
        **environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "GZ_PARTITION": f"cards_test_{domain}",
        "GZ_IP": "127.0.0.1",
        # an installed ROS brings plugins, some of which the newest pytest refuses
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **compiled,
    }


def commands(rest: list[str], *, dev: bool) -> list[list[str]]:
    """Return the pytest command lines, to be run one after the other."""
    if rest[:1] == ["--"]:
        rest = rest[1:]
    pytest = [sys.executable, "-P", "-m", "pytest", "-rs", "-p", HYPOTHESIS]
    if not dev:
        pytest += ["-p", "no:cacheprovider"]
    cores = os.cpu_count() or 1
    if rest or cores == 1:
        return [[*pytest, *rest]]
    # one worker for everything that needs the machine's clock, the others for the library; robots
    # in real time have the machine to themselves afterwards
    workers = str(min(cores, MOST_WORKERS) + 1)
    together = ["-p", XDIST, "-n", workers, "--dist", "loadscope", "-m", f"not {ALONE}"]
    return [[*pytest, *together], [*pytest, *_files_alone(), "-m", ALONE]]


def _files_alone() -> list[str]:
    """Return the files with tests marked `ALONE`, so that pytest imports no others."""
    top = checkout()
    if top is None:
        return []
    files = [file for folder in ("src", "tests") for file in (top / folder).rglob("test_*.py")]
    marked = [file for file in files if f"mark.{ALONE}" in file.read_text(encoding="utf-8")]
    return sorted(str(file.relative_to(top)) for file in marked)


def check_paths(rest: Sequence[str], top: Path) -> None:
    """Refuse paths of tests that do not exist, before anything is installed for them.

    Args:
        rest: Arguments for pytest.
        top: Where it is started.

    Raises:
        CardsError: Names the path.
    """
    before = ""
    for word in rest:
        own = not before.startswith("-") or before in WITHOUT_VALUE
        before = word
        if own and word and not word.startswith("-") and "--pyargs" not in rest:
            path = word.partition("::")[0]
            if not (top / path).exists():
                raise CardsError(
                    f"no tests '{path}' (expected: a file or folder in {top}, e.g. "
                    "src/cards_core, or -k and a part of their names)"
                )


def exit_code(codes: Sequence[int]) -> int:
    """Return the exit code of runs of pytest: that of the first that went wrong.

    Args:
        codes: Exit codes of pytest, or `ExitCode.INTERRUPTED`.
    """
    worst = next((code for code in codes if code), 0)
    if worst in (0, TESTS_FAILED, ExitCode.INTERRUPTED):
        return worst
    return of_process(worst) if worst < 0 else ExitCode.ERROR


def once_more(failed: Path) -> list[str]:
    """Return the tests to run again, alone; none if a failure does not depend on timing.

    Args:
        failed: File with a line ``kind<tab>test`` for each that failed; kind is ``hosts`` or
            ``library``.
    """
    if not failed.exists():
        return []
    lines = dict.fromkeys(failed.read_text(encoding="utf-8").splitlines())
    kinds, tests = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return list(tests) if set(kinds) == {"hosts"} and len(tests) <= MOST_AGAIN else []


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.nodes.ros_network import RosDomain

    top = checkout()
    if top is None:
        raise CardsError("the tests are in the repository; run ./cards test there")
    rest, dev = list(args.rest), args.dev
    if "--dev" in rest:
        rest.remove("--dev")
        dev = True
    check_paths(rest, top)
    # never the user's domain, where a real robot may listen
    os.environ["ROS_DOMAIN_ID"] = FIRST_DOMAIN
    with RosDomain() as domain, tempfile.TemporaryDirectory(prefix="cards-test-") as folder:
        failed = Path(folder) / "failed"
        bytecode = Path(folder) / "bytecode"
        environment = {**isolated(os.environ, domain.number, bytecode), FAILED: str(failed)}
        lines = commands(rest, dev=dev)
        codes = []
        for command in lines:
            codes.append(_wait(subprocess.Popen(command, cwd=top, env=environment)))
            if codes[-1] in (STOPPED, ExitCode.INTERRUPTED) or codes[-1] < 0:  # or killed
                break
        whole = len(lines) > 1 and set(codes) <= {0, TESTS_FAILED}
        if whole and any(codes) and (tests := once_more(failed)):
            print("\nonce more, alone:", *tests, sep="\n  ", flush=True)
            (again,) = commands(tests, dev=dev)
            return exit_code([_wait(subprocess.Popen(again, cwd=top, env=environment))])
        return exit_code(codes)


def _wait(process: subprocess.Popen[bytes]) -> int:
    interrupted = False
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # pytest got it too, and has fixtures to take down
            interrupted = True
        else:
            return ExitCode.INTERRUPTED if interrupted and code == STOPPED else code
