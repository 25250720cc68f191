"""Change the code by one small fault at a time; tell which no test notices. See README.md.

    python tests/mutation/run.py [--seed N] [--each N] [--area NAME ...] [--journal FILE] [--json]

Works on a clone of what is committed, in a temporary folder. Ends with 0 if the share of faults
that were noticed is at least `--share`, with 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from points import Mutant, mutants  # noqa: E402

SEED = 20261128
"""Of the sample; fixed before the tests that are judged with it were written."""

CORE = "src/cards_core/cards_core"
HARDWARE_TESTS = "src/cards_hardware/test"
AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # the protocol's codec is generated, the STM32's registers are only in part in an emulator
    "firmware": (
        ("firmware/core", "firmware/boards/host"),
        (f"{HARDWARE_TESTS}/test_firmware_core.py", f"{HARDWARE_TESTS}/firmware_check",
         f"{HARDWARE_TESTS}/boards", f"{HARDWARE_TESTS}/bridge", f"{HARDWARE_TESTS}/hil",
         f"{HARDWARE_TESTS}/test_fuzz.py"),
    ),
    "hardware": (
        ("src/cards_hardware/cards_hardware",),
        (HARDWARE_TESTS, "tests/test_calibrate_hil.py", "tests/test_hil.py"),
    ),
    "control": (
        (f"{CORE}/control",),
        ("src/cards_core/test/control", "src/controllers/test", "src/cards_sim/test"),
    ),
    "muscles": (
        (f"{CORE}/muscles",),
        ("src/cards_core/test/muscles", "src/cards_core/test/control", "src/cards_sim/test",
         "src/cards_muscle_plugin/test"),
    ),
    "loop": (
        (f"{CORE}/loop",),
        ("src/cards_core/test/loop", "src/cards_sim/test", "src/cards_ros/test",
         "src/cards_bringup/test/test_in_process.py", "src/cards_bringup/test/cli"),
    ),
}  # fmt: skip
"""Per area: folders that are changed, and tests that guard them, in the order they are tried."""

LEFT_OUT = ("firmware/core/protocol.c",)
TIMEOUT = 1200.0
"""A stage that takes longer hangs; that is noticed, [s]."""


def sources(root: Path, folders: tuple[str, ...]) -> list[str]:
    """Files of an area, as paths from the root of a checkout."""
    found = [
        path.relative_to(root).as_posix()
        for folder in folders
        for ending in ("*.py", "*.c")
        for path in (root / folder).rglob(ending)
    ]
    return sorted(name for name in found if name not in LEFT_OUT)


def sample(root: Path, area: str, seed: int) -> list[Mutant]:
    """All mutants of an area in the order of the draw."""
    everything = [
        mutant
        for name in sources(root, AREAS[area][0])
        for mutant in mutants(name, (root / name).read_text(encoding="utf-8"))
    ]
    random.Random(f"{seed} {area}").shuffle(everything)
    return everything


def nearest(root: Path, path: str) -> list[str]:
    """Test files that name the module: by their own name, or by what they import."""
    stem = Path(path).stem.lstrip("_")
    package = Path(path).parent.name
    found: list[tuple[int, str]] = []
    pattern = re.compile(rf"\b{re.escape(package)}(?:\.| import .*\b){re.escape(stem)}\b")
    for file in sorted(root.glob("src/*/test/**/test_*.py")):
        name = file.relative_to(root).as_posix()
        if file.stem == f"test_{stem}":
            found.append((0, name))
        elif path.endswith(".py") and pattern.search(file.read_text(encoding="utf-8")):
            found.append((1, name))
    return [name for _, name in sorted(found)]


def mirrored(root: Path, path: str) -> list[str]:
    """The test folder that mirrors a module's, `src/PACKAGE/PACKAGE/PART/...`, if there is one."""
    parts = Path(path).parts
    folder = Path(*parts[:2], "test", *parts[3:4])
    return [folder.as_posix()] if len(parts) > 4 and (root / folder).is_dir() else []


class Checkout:
    """A clone in a temporary folder, in which one mutant at a time is tried."""

    def __init__(self, revision: str):
        self.folder = Path(tempfile.mkdtemp(prefix="cards-mutation-"))
        self.root = self.folder / "cards"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root)], check=True)
        subprocess.run(["git", "-C", str(self.root), "checkout", "-q", revision], check=True)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of a command in the clone; 124 for one that takes too long."""
        paths = [str(path) for path in sorted(self.root.glob("src/*")) if path.is_dir()]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CARDS_CACHE": str(self.folder / "cache"),
            "ROS_LOG_DIR": str(self.folder / "log"),
        }
        process = subprocess.Popen(
            arguments, cwd=self.root, env=environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return 124, f"took longer than {TIMEOUT:g} s"
        finally:
            # what a test left running would go on with the changed code
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, said

    def tests(self, *arguments: str) -> tuple[bool, str]:
        """Whether tests failed, and the first that did."""
        status, said = self.command(
            sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider",
            "-m", "not gazebo and not browser and not real_time", *arguments,
        )  # fmt: skip
        if status == 124:
            return True, "hangs"
        if status == 4:
            raise RuntimeError(f"pytest did not understand {arguments}:\n{said}")
        match = re.search(r"^(?:FAILED|ERROR) ([^\s]+)", said, re.MULTILINE)
        return status not in (0, 5), match[1] if match else said[-300:]

    def judge(self, mutant: Mutant, area: str, *, near: bool = False) -> dict[str, object]:
        """Try a mutant: who noticed it, or that nobody did, or that it does not compile."""
        file = self.root / mutant.path
        text = file.read_text(encoding="utf-8")
        started = time.monotonic()
        result: dict[str, object] = {
            "area": area, "what": mutant.describe(text), "new": mutant.new,
            "start": mutant.start, "path": mutant.path,
        }  # fmt: skip
        file.write_text(mutant.apply(text), encoding="utf-8")
        try:
            result.update(self._verdict(mutant, area, near))
        finally:
            file.write_text(text, encoding="utf-8")
        result["seconds"] = round(time.monotonic() - started, 1)
        return result

    def _verdict(self, mutant: Mutant, area: str, near: bool) -> dict[str, object]:
        if mutant.path.startswith("firmware/core"):
            build = ["make", "-s", "-C", "firmware", "test", f"BUILD={self.folder / 'build'}"]
            status, said = self.command(*build)
            if "error:" in said:
                return {"verdict": "invalid", "by": said[:300]}
            if status:
                match = re.search(r"^(.*(?:FAILED|failed).*)$", said, re.MULTILINE)
                return {"verdict": "killed", "by": match[1] if match else said[-300:]}
        elif mutant.path.endswith(".c"):
            checked = self.command(
                "gcc", "-fsyntax-only", "-w", "-I", "firmware/core", mutant.path
            )
            if "error:" in checked[1] and mutant.path.startswith("firmware"):
                return {"verdict": "invalid", "by": checked[1][:300]}
        close = nearest(self.root, mutant.path)
        far = [] if near else [[name] for name in AREAS[area][1]]
        stages = [stage for stage in (close, mirrored(self.root, mutant.path), *far) if stage]
        for stage in stages:
            failed, by = self.tests(*stage)
            if failed:
                return {"verdict": "killed", "by": by}
        return {"verdict": "survived", "by": ""}


def told(results: list[dict[str, object]]) -> dict[str, object]:
    """Sums, per area and of all."""
    areas: dict[str, dict[str, int]] = {}
    for result in results:
        row = areas.setdefault(str(result["area"]), {"killed": 0, "survived": 0})
        if result["verdict"] in row:
            row[str(result["verdict"])] += 1
    killed = sum(row["killed"] for row in areas.values())
    survived = sum(row["survived"] for row in areas.values())
    return {
        "areas": areas, "killed": killed, "survived": survived,
        "share": killed / max(1, killed + survived),
    }  # fmt: skip


def options(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tests/mutation/run.py",
        description="Change the code by one small fault at a time; tell which no test notices.",
        epilog="example: python tests/mutation/run.py --area firmware --each 30 --journal m.jsonl",
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the sample (default {SEED})")
    parser.add_argument("--each", type=int, default=30, help="mutants per area (default 30)")
    parser.add_argument("--area", choices=sorted(AREAS), nargs="+", default=sorted(AREAS))
    parser.add_argument("--revision", default="HEAD", help="what is tried (default HEAD)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time (default 2)")
    parser.add_argument(
        "--journal", type=Path, help="results, a line each; goes on where it ended"
    )
    parser.add_argument(
        "--share", type=float, default=0.92, help="that is demanded (default 0.92)"
    )
    parser.add_argument("--near", action="store_true", help="only tests nearest to the module")
    parser.add_argument("--list", action="store_true", help="only tell the sample")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Draw, try, tell."""
    given = options(arguments)
    done: dict[tuple[object, ...], dict[str, object]] = {}
    if given.journal and given.journal.exists():
        for line in given.journal.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            done[result["path"], result["start"], result["new"]] = result
    checkouts = [Checkout(given.revision) for _ in range(given.jobs)]
    free: SimpleQueue[Checkout] = SimpleQueue()
    for checkout in checkouts:
        free.put(checkout)
    root = checkouts[0].root
    results: list[dict[str, object]] = []

    def attempt(mutant: Mutant, area: str) -> dict[str, object]:
        key = (mutant.path, mutant.start, mutant.new)
        if key in done:
            return done[key]
        checkout = free.get()
        try:
            result = checkout.judge(mutant, area, near=given.near)
        finally:
            free.put(checkout)
        if given.journal:
            with given.journal.open("a", encoding="utf-8") as out:
                out.write(json.dumps(result) + "\n")
        return result

    try:
        with ThreadPoolExecutor(given.jobs) as pool:
            for area in given.area:
                order = sample(root, area, given.seed)
                if given.list:
                    for mutant in order[: given.each]:
                        print(mutant.describe((root / mutant.path).read_text(encoding="utf-8")))
                    continue
                wanted = given.each
                while wanted and order:  # one that does not compile is replaced by the next
                    batch, order = order[:wanted], order[wanted:]
                    for result in pool.map(lambda mutant, area=area: attempt(mutant, area), batch):
                        wanted -= result["verdict"] != "invalid"
                        results.append(result)
                        print(
                            f"{result['verdict']:9}{result['what']}  {result['by']}",
                            file=sys.stderr,
                            flush=True,
                        )
    finally:
        for checkout in checkouts:
            checkout.close()
    if given.list:
        return 0
    summary = told(results)
    survivors = [result["what"] for result in results if result["verdict"] == "survived"]
    if given.json:
        print(json.dumps({**summary, "survivors": survivors}))
    else:
        for area, row in summary["areas"].items():
            print(f"{area:10} {row['killed']} noticed, {row['survived']} not")
        share = f"{summary['share']:.1%}"
        print(f"{'all':10} {summary['killed']} noticed, {summary['survived']} not: {share}")
        print(*survivors, sep="\n")
    return 0 if summary["share"] >= given.share else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
