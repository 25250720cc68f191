"""Damaged folders and files of others, given to what reads them: seeded, in bounded processes.

    .venv/bin/python tests/fuzz/foreign.py --cases 20000 --commands 200

Each case damages one file of a folder (a run, learning, a campaign of faults) or one document of
`fuzz_parsers`, and has it read as the commands do. It must end within `SECONDS` of the processor,
in `MEMORY` bytes of address space, with an object or with an error that the command line tells in
one line. What runs out of memory is a finding: readers refuse before. A case depends on its number
and the seed: ``--only 1234`` repeats one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
HELPERS = HERE.parents[1] / "src" / "cards_core" / "test" / "helpers"
sys.path[:0] = [str(HERE), str(HELPERS)]

SECONDS = 10
MEMORY = 1_000_000_000
GIGABYTES = 1

CODES = (0, 1, 2, 130)
"""Exit codes of a command on a damaged folder: answered, not so, an error, interrupted."""

SPECIAL = ("zero", "pipe", "folder", "nowhere", "circle", "empty", "giant")
"""What may lie in place of a file."""


class HangError(BaseException):
    """A case takes too long; no ``except Exception`` hides it."""


def limit(seconds: int) -> None:
    """Raise `HangError` after this time of the processor, [s], or six times as long in all."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(6 * seconds)


# Damage ------------------------------------------------------------------------------------------

DEEP = "[" * 3000 + "]" * 3000

ODD = (
    "true", "null", "[]", "{}", '""', "-1", "0", "1" + "0" * 400, "1e999", "NaN", "-Infinity",
    "0.5", "9" * 19, DEEP, "[" * 60 + "]" * 60, '"\\ud800"', '"a\\u0000b"', '"' + "x" * 5000 + '"',
    '"planar_2r"', "[[1, 2], [3]]", '[1, "a"]', '{"a": {"b": []}}', '"none"', '"../../x"',
)  # fmt: skip
"""JSON of a kind that a place does not expect."""

MARK = "@@odd@@"


def places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every value below, as what holds it and its key."""
    for key, value in list(enumerate(holder) if isinstance(holder, list) else holder.items()):
        yield holder, key
        if isinstance(value, list | dict) and value:
            yield from places(value)


def odd_json(rng: np.random.Generator, text: str) -> bytes:
    """Return JSON with other values, keys or entries."""
    root = [json.loads(text)]
    for _ in range(int(rng.integers(1, 3))):
        known = list(places(root))
        holder, key = known[int(rng.integers(len(known)))]
        other, place = known[int(rng.integers(len(known)))]
        match int(rng.integers(5)):
            case 0 | 1 | 2:
                holder[key] = MARK
            case 3 if holder is not root:
                del holder[key]
            case _:
                holder[key] = json.loads(json.dumps(other[place]))
    out = json.dumps(root[0] if root else None)
    while f'"{MARK}"' in out:
        out = out.replace(f'"{MARK}"', ODD[int(rng.integers(len(ODD)))], 1)
    return out.encode()


def damaged_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a copy with a few bytes lost, doubled or changed, most near the begin or the end."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not out:
            break
        near = min(len(out), 400)
        at = int(rng.choice([rng.integers(near), len(out) - 1 - rng.integers(near),
                             rng.integers(len(out))]))  # fmt: skip
        size = int(rng.integers(1, 20))
        match int(rng.integers(5)):
            case 0:
                del out[at : at + size]
            case 1:
                out[at:at] = out[at : at + size]
            case 2:
                out[at : at + size] = rng.bytes(size)
            case 3:
                out[at] ^= 1 << int(rng.integers(8))
            case 4:
                out[at] = int(rng.choice(list(b"0123456789\xff(),'{}<>=f")))
    return bytes(out[: int(rng.integers(len(out) + 1))] if rng.random() < 0.1 else out)


def odd_arrays(rng: np.random.Generator, data: bytes) -> bytes:
    """Return an NPZ archive with another array, key, type or compression."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    names = sorted(arrays)
    name, other = (names[int(k)] for k in rng.integers(len(names), size=2))
    values = arrays[name]
    bomb = False
    match int(rng.integers(14)):
        case 0:
            arrays[name] = np.concatenate([values, values], axis=-1) if values.ndim else values
        case 1:
            arrays[name] = values[..., :-1] if values.ndim else values
        case 2:
            arrays[name] = values.T
        case 3:
            del arrays[name]
        case 4:
            arrays[name] = arrays[other]
        case 5:
            kinds = ("i8", "f2", "U9", "c16", "?", "M8[s]", "S3", "u1", "O", "i4,f8")
            arrays[name] = np.zeros(values.shape, dtype=kinds[int(rng.integers(len(kinds)))])
        case 6 if values.dtype.kind == "f" and values.size:
            arrays[name] = values.copy()
            filled = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320)
            arrays[name].flat[int(rng.integers(values.size)) :] = filled[int(rng.integers(6))]
        case 7:
            arrays = {key: value[:0] if value.ndim else value for key, value in arrays.items()}
        case 8:
            arrays[name] = values[None]
        case 9:
            arrays[name] = np.asarray(values.ravel()[0] if values.size else 0.0)
        case 10:
            arrays = {
                key: value[: 1 + int(rng.integers(3))] if value.ndim and len(value) > 9 else value
                for key, value in arrays.items()
            }
        case 11 if rng.random() < 0.25:
            bomb = True
        case 12:
            arrays[name] = np.array(["\ud800", "a\0b", "x" * 3000])
        case _:
            arrays[name] = rng.normal(size=values.shape) * 10.0 ** float(rng.integers(-300, 300))
    out = io.BytesIO()
    # most are not compressed, as those of our logs
    method = int(rng.choice([0, 0, 8, 12, 14]))
    with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for key, value in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as stream:
                try:
                    np.lib.format.write_array(stream, value, allow_pickle=True)
                except UnicodeEncodeError:
                    stream.write(b"text")
        if bomb:  # gigabytes of zeros
            head = {"descr": "<f8", "fortran_order": False, "shape": (GIGABYTES * 125_000_000,)}
            bombed = other if rng.random() < 0.5 else "unused"
            entry = zipfile.ZipInfo(f"{bombed}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array_header_1_0(stream, head)
                for _ in range(GIGABYTES * 100):
                    stream.write(bytes(10_000_000))
    return damaged_bytes(rng, out.getvalue()) if method and rng.random() < 0.5 else out.getvalue()


def put_special(rng: np.random.Generator, path: Path) -> str:
    """Put something that is not a file of data in place of a file."""
    kind = SPECIAL[int(rng.integers(len(SPECIAL)))]
    path.unlink()
    match kind:
        case "zero":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "nowhere":
            path.symlink_to(path.parent / "nothing")
        case "circle":
            path.symlink_to(path)
        case "empty":
            path.touch()
        case "giant":
            path.touch()
            os.truncate(path, 20_000_000_000)
    return kind


def damage(rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of a folder; says what was done."""
    from damaged_files import mutate, mutate_yaml

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[int(rng.integers(len(files)))]
    if rng.random() < 0.05:
        return f"{path.name}: {put_special(rng, path)}"
    data = path.read_bytes()
    kind = path.suffix
    how = "bytes"
    if rng.random() < 0.6 and kind in (".json", ".npz", ".yaml", ".jsonl"):
        how = "content"
        if kind == ".json":
            data = odd_json(rng, data.decode())
        elif kind == ".npz":
            data = odd_arrays(rng, data)
        elif kind == ".jsonl":
            lines = data.decode().splitlines()
            k = int(rng.integers(len(lines)))
            lines[k] = odd_json(rng, lines[k]).decode()
            data = "\n".join(lines).encode()
        else:
            data = mutate_yaml(rng, data.decode())
    elif rng.random() < 0.5 and kind in (".json", ".yaml", ".jsonl"):
        how, data = "text", mutate(rng, data.decode())
    else:
        data = damaged_bytes(rng, data)
    path.write_bytes(data)
    return f"{path.name}: {how}"


# What reads --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What reads folders of one kind.

    Attributes:
        make: Makes a good folder.
        read: Reads one as the commands do; the second folder is a good one.
        commands: Command lines of ``./cards`` that read it; ``{0}`` stands for the folder,
            ``{1}`` for a good one.
    """

    make: Callable[[Path], None]
    read: Callable[[Path, Path, np.random.Generator], object]
    commands: tuple[str, ...] = ()


def make_run(folder: Path, kind: str = "ctc_joint", **settings: Any) -> None:
    import cards

    robot = cards.load("planar_2r")
    controller = cards.Controller(kind, robot, **settings)
    cards.simulate(cards.Simulator(robot), controller, duration=0.2).save(folder)


def make_operational_run(folder: Path) -> None:
    make_run(folder, "ctc_operational")


def read_run(folder: Path, good: Path, rng: np.random.Generator) -> object:
    from cards_viz.runs.comparison import compare
    from cards_viz.runs.comparison_report import cells
    from cards_viz.runs.recorded import RecordedRun
    from cards_viz.runs.replay import Replay

    run = RecordedRun.read(folder)
    replay = Replay(run)
    for time in (-1.0, 0.05, 1e9):
        replay.at(time)
    if rng.random() < 0.02:
        import cards

        cards.read_run(folder).figures()
    pair = (run, RecordedRun.read(good))
    compared = compare(*(pair if rng.random() < 0.5 else pair[::-1]))
    return json.dumps(compared.to_json()), [cells(row) for row in compared.differences()]


def make_learning(folder: Path) -> None:
    from cards_learning.experiment import parse_experiment
    from cards_learning.folder import RunFolder
    from cards_learning.trial import RunResult, TrialResult, _unknown

    sys.path.append(str(HERE.parents[1] / "src" / "cards_learning" / "test" / "helpers"))
    from small_experiments import TEXT

    experiment = parse_experiment(TEXT, "small.yaml")
    rng = np.random.default_rng(0)
    size, runs = len(experiment.space.names), len(experiment.runs)
    trials = []
    for number in range(8):
        measures = {name: float(rng.uniform()) for name in _unknown()}
        state = "diverged" if number == 3 else "done"
        result = RunResult(state, float(rng.uniform()), measures)
        values = tuple(experiment.space.values(experiment.space.random(rng)).tolist())
        assert len(values) == size
        trials.append(TrialResult(number, values, result.score, state, (result,) * runs))
    store = RunFolder(folder)
    store.create(experiment)
    store.finish(experiment, trials[:5])
    with store.journal(experiment) as journal:
        for trial in trials[5:]:
            journal.add(trial)


def read_learning(folder: Path, good: Path, rng: np.random.Generator) -> object:
    from cards_bringup.learning.report import write_report
    from cards_learning.folder import RunFolder, chosen_experiment

    if rng.random() < 0.05:
        return write_report(folder, folder / "out")
    experiment = chosen_experiment(None, folder)
    store = RunFolder(folder)
    known = store.trials(experiment)
    with store.locked(), store.journal(experiment):
        return sorted(known.values(), key=lambda trial: (-trial.score, trial.number))


def make_campaign(folder: Path) -> None:
    from cards_bringup.soak import report
    from cards_bringup.soak.plan import read_plan

    plan = read_plan("quick")
    schedule = [episode.to_json() for episode in plan.schedule(0.05, 3)]
    entries = [
        {"number": n, "system": "topics", "faults": [], "facts": {}, "violations": []}
        for n in range(len(schedule))
    ]
    data = report.summary(plan, schedule, entries, seed=3, hours=0.05, wall_s=1.0, ended="It is.")
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(data))


def read_campaign(folder: Path, good: Path, rng: np.random.Generator) -> object:
    from cards_bringup.cli import soak
    from cards_bringup.soak.plan import read_report

    _, schedule, _ = read_report(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        soak._print_schedule(schedule, as_json=bool(rng.integers(2)))
    return schedule


TARGETS: dict[str, Target] = {
    "run": Target(
        make_run,
        read_run,
        ("compare {0} {1}", "show {0} {1} --port 0", "compare {1} {0} --json"),
    ),
    "operational run": Target(make_operational_run, read_run, ("compare {0} {1}",)),
    "learning": Target(
        make_learning,
        read_learning,
        ("learn report {0} --out {0}/out", "learn --resume {0} --trial 0"),
    ),
    "campaign": Target(make_campaign, read_campaign, ("soak --replay {0} --dry-run",)),
}


# Cases -------------------------------------------------------------------------------------------


def kinds() -> list[str]:
    """Return what the cases take in turn: a folder as often as documents of all readers."""
    from fuzz_parsers import PARSERS

    documents = [f"document {name}" for name in PARSERS]
    folders = [f"folder {name}" for name in TARGETS]
    out = []
    for k, document in enumerate(documents):
        out += [folders[k % len(folders)], document]
    return out


class Bench:
    """Good folders, and a place for damaged ones."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name, target in TARGETS.items():
            if not (place / "good" / name).exists():
                (place / "good").mkdir(exist_ok=True)
                target.make(place / "good" / name)

    def damaged(self, name: str, rng: np.random.Generator, number: int) -> tuple[Path, str]:
        folder = self.place / f"damaged-{os.getpid()}-{number}"
        shutil.copytree(self.place / "good" / name, folder)
        return folder, damage(rng, folder)

    def run(self, number: int, seed: int) -> str | None:
        """Run a case; returns what is wrong."""
        rng = np.random.default_rng([seed, number])
        all_kinds = kinds()
        kind, _, name = all_kinds[number % len(all_kinds)].partition(" ")
        what, folder = name, None
        try:
            if kind == "document":
                limit(SECONDS)
                what = _document(name, rng)
            else:
                folder, done = self.damaged(name, rng, number)
                what = f"{name}, {done}"
                limit(SECONDS)
                _quietly(lambda: TARGETS[name].read(folder, self.place / "good" / name, rng))
        except HangError:
            return f"case {number} ({what}): hangs\n{traceback.format_exc()}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"case {number} ({what}): {traceback.format_exc()}"
        finally:
            limit(0)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return None


def _document(name: str, rng: np.random.Generator) -> str:
    from fuzz_parsers import PARSERS

    from mutation import mutated

    parser = PARSERS[name]
    seeds = parser.seeds()
    seed = seeds[int(rng.integers(len(seeds)))]
    data = seed.read_bytes()
    copy = damaged_bytes(rng, data)
    if parser.grammar:
        plain = lambda _, longest: copy[:longest]  # noqa: E731
        copy = mutated(parser.grammar, plain, data, parser.longest, int(rng.integers(2**31)))
    _quietly(lambda: parser(copy))
    return f"{name} {seed.name}"


def _quietly(read: Callable[[], object]) -> None:
    """Read; an error that the command line tells in one line is as it should be."""
    from cards_bringup import cli

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            read()
        except (AssertionError, MemoryError):
            raise
        except Exception as error:
            message = cli._words(error)
            assert 0 < len(message) < 3000, message
            assert "\n" not in message, message


def work(place: Path, numbers: list[int], seed: int) -> int:
    """Run cases in this process; a line before each, so that its end is seen."""

    def alarm(*_: object) -> None:
        raise HangError

    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, alarm)
    bench = Bench(place)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    failed = 0
    for number in numbers:
        print(f"at {number}", flush=True)
        problem = bench.run(number, seed)
        if problem is not None:
            failed += 1
            print(f"found {json.dumps(problem)}", flush=True)
    return failed


def hold_interrupts() -> None:
    """Let Ctrl-C wait until the command can answer it, as ``./cards`` does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def commands(place: Path, count: int, seed: int) -> list[str]:
    """Run command lines on damaged folders; returns what is wrong."""
    # a shell that starts this in the background has it, and what it starts, ignore the signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bench, found = Bench(place), []
    lines = [(name, line) for name, target in TARGETS.items() for line in target.commands]
    for number in range(count):
        rng = np.random.default_rng([seed, 1, number])
        name, line = lines[number % len(lines)]
        folder, done = bench.damaged(name, rng, number)
        words = [word.format(folder, place / "good" / name) for word in line.split()]
        page = "show" in words
        process = subprocess.Popen(
            [sys.executable, "-m", "cards_bringup", *words], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=hold_interrupts,
        )  # fmt: skip
        # a page ends by one Ctrl-C: once it is there, and as often at any moment of its start
        patience = float(rng.choice([12.0, rng.uniform(0.0, 4.0)])) if page else 60.0
        code: int | None = None
        try:
            said, _ = process.communicate(timeout=patience)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            said = "hangs"
            with contextlib.suppress(subprocess.TimeoutExpired):
                said, _ = process.communicate(timeout=30)
                code = process.returncode if page else None
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        if code is None or "Traceback" in said or code not in CODES:
            how = "hangs" if code is None else code
            found.append(f"command {number} ({line}; {done}): {how}\n{said}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="one case, in this process")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    # threads of linear algebra take address space, a stack each
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    if args.work:
        place, first, step, stop = args.work
        numbers = list(range(int(first), int(stop), int(step)))
        return int(work(Path(place), numbers, args.seed) > 0)
    with tempfile.TemporaryDirectory(prefix="cards-foreign-") as name:
        place = Path(name)
        # the good folders, once, in a process of its own: it takes more memory than a case may
        make = [sys.executable, __file__, "--work", str(place), "0", "1", "0"]
        subprocess.run(make, check=True)
        if args.only is not None:
            return int(work(place, [args.only], args.seed) > 0)
        found = run_cases(place, args.cases, args.workers, args.seed)
        found += commands(place, args.commands, args.seed)
    for problem in found:
        print(problem)
    print(f"{args.cases} cases and {args.commands} command lines: {len(found)} findings")
    return int(bool(found))


def run_cases(place: Path, cases: int, workers: int, seed: int) -> list[str]:
    """Run cases in bounded processes, a new one where one died; returns what is wrong."""
    found: list[str] = []

    def one(first: int) -> None:
        while first < cases:
            words = [str(place), str(first), str(workers), str(cases)]
            process = subprocess.Popen(
                [sys.executable, __file__, "--seed", str(seed), "--work", *words],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert process.stdout is not None
            at, said = None, [""]
            for line in process.stdout:
                word, _, rest = line.partition(" ")
                if word == "at" and rest.strip().isdigit():
                    at = int(rest)
                elif word == "found":
                    found.append(json.loads(rest))
                else:
                    said.append(line)
            code = process.wait()
            if code in (0, 1) and at is not None and at + workers >= cases:
                return
            found.append(f"case {at}: the process ended with {code}\n{''.join(said[-40:])}")
            if at is None:
                return
            first = at + workers

    threads = [threading.Thread(target=one, args=(k,)) for k in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    sys.exit(main())
