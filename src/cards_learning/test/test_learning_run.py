"""Whole runs: the same bytes for any workers and interruptions; nothing is lost."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pyarrow.parquet
import pytest
from small_experiments import BROKEN, TEXT, small

from cards_core.control.cpg.parameters import read_parameters
from cards_core.errors import CardsError
from cards_learning import workers
from cards_learning.folder import BEST, DEMO, EXPERIMENT, JOURNAL, TRIALS, RunFolder
from cards_learning.run import learn, repeat
from cards_learning.workers import Dask, Processes

RESULTS = (EXPERIMENT, TRIALS, BEST)
"""The files that depend on the experiment alone; the other names the folder."""

SCRIPT = """\
import sys
from pathlib import Path
from small_experiments import small
from cards_learning.run import learn

if __name__ == "__main__":
    learn(small(duration=sys.argv[2]), Path(sys.argv[1]), workers=2, resume=len(sys.argv) > 3)
"""


def digest(folder):
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in RESULTS]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without interruptions, with one worker."""
    folder = tmp_path_factory.mktemp("learning") / "whole"
    learn(small(), folder, workers=1)
    return folder


def test_one_and_two_workers_give_the_same_bytes(whole, tmp_path):
    seen = []
    made = learn(small(), tmp_path / "two", workers=2, progress=lambda *now: seen.append(now[:2]))
    assert digest(tmp_path / "two") == digest(whole)
    assert made.made == len(made.trials) == 11
    assert made.states == {"done": 11}
    assert made.best.score == max(trial.score for trial in made.trials)
    assert seen == [(i, 11) for i in range(1, 12)]
    assert sorted(item.name for item in whole.iterdir()) == sorted((*RESULTS, DEMO))


def test_a_dask_cluster_gives_the_same_bytes(whole, tmp_path):
    pytest.importorskip("distributed")
    learn(small(), tmp_path / "dask", workers=2, dask="local")
    assert digest(tmp_path / "dask") == digest(whole)


@pytest.mark.parametrize("kind", ["monte_carlo", "gaussian", "cma"])
def test_every_algorithm_goes_on_where_it_was(kind, tmp_path):
    """Stopped amid a generation, and with more trials than at first."""
    settings = {
        "monte_carlo": "{kind: monte_carlo}",
        "gaussian": "{kind: gaussian, initial: 4, population: 3}",
        "cma": "{kind: cma, population: 4}",
    }
    text = TEXT.replace("0.3", "0.1")
    experiment = small(text, algorithm=settings[kind])
    learn(experiment, tmp_path / "whole", workers=2)

    def stop(done, total, best):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(experiment, tmp_path / "parts", workers=2, progress=stop)
    assert (tmp_path / "parts" / JOURNAL).is_file()
    fewer = experiment.with_changes(trials=9)
    assert 1 <= learn(fewer, tmp_path / "parts", workers=1, resume=True).made <= 3
    assert learn(experiment, tmp_path / "parts", workers=1, resume=True).made == 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert learn(experiment, tmp_path / "parts", workers=1, resume=True).made == 0
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def alive(process):
    """Return the processes that a session still has."""
    found = []
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(other.pid) == process.pid and other.status() != psutil.STATUS_ZOMBIE:
                found.append(other.pid)
    return found


def start(tmp_path, folder, *more):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    helpers = os.path.dirname(sys.modules["small_experiments"].__file__)
    path = os.pathsep.join([helpers, *(p for p in sys.path if p)])
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), "0.3", *more],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_lines(folder, count):
    """Wait until a journal has some trials, a minute at most."""
    for _ in range(6000):
        file = folder / JOURNAL
        if file.is_file() and file.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.01)
    raise AssertionError("no trials came")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_half_and_resumed_it_gives_the_same_bytes(number, whole, tmp_path):
    folder = tmp_path / "killed"
    process = start(tmp_path, folder)
    try:
        wait_for_lines(folder, 4)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as Ctrl-C in a terminal does
        else:
            process.kill()
        process.communicate(timeout=60)
        for _ in range(1000):
            if not alive(process):
                break
            time.sleep(0.01)
        assert not alive(process)  # its workers have ended with it
    finally:
        process.kill()
    assert not (folder / TRIALS).exists()
    known = RunFolder(folder).trials(small())
    assert 4 <= len(known) < 11
    made = learn(small(), folder, workers=2, resume=True)
    assert made.made == 11 - len(known)
    assert digest(folder) == digest(whole)


@pytest.mark.parametrize(
    "damage", ["cut", b"\xff\xfe\x00", b'{"number": 3}', b"[1, 2]", b'{"number": 1, "runs": 7}']
)
def test_a_line_that_was_cut_short_or_damaged_is_run_again(damage, whole, tmp_path):
    def stop(done, total, best):
        if done == 5:
            raise KeyboardInterrupt

    folder = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        learn(small(), folder, workers=1, progress=stop)
    journal = folder / JOURNAL
    *lines, last = journal.read_bytes().splitlines()
    last = last[:-40] if damage == "cut" else damage
    journal.write_bytes(b"\n".join([*lines, last]))
    assert learn(small(), folder, workers=1, resume=True).made == 7
    assert digest(folder) == digest(whole)


def test_damaged_trials_are_told_without_a_python_file(whole, tmp_path, monkeypatch):
    """A thread of Arrow that reads a Python file while Python ends would abort the process."""
    sources, read = [], pyarrow.parquet.read_table

    def spy(source, **options):
        sources.append(source)
        return read(source, **options)

    monkeypatch.setattr(pyarrow.parquet, "read_table", spy)
    good = (whole / TRIALS).read_bytes()
    rng = np.random.default_rng(3)
    said = []
    for _ in range(100):
        data = bytearray(good)
        # what is damaged in the footer tells everything else
        data[-int(rng.integers(1, 9000))] ^= 1 << int(rng.integers(8))
        (tmp_path / TRIALS).write_bytes(data)
        try:
            RunFolder(tmp_path).trials(small())
        except CardsError as error:
            said.append(str(error))
    assert 20 < len(said) < 100
    assert all(str(tmp_path / TRIALS) in message for message in said)
    assert not any("\n" in message for message in said)
    assert all(type(source) is pyarrow.BufferReader for source in sources)
    assert len(sources) == 100


@pytest.mark.parametrize("name", [JOURNAL, TRIALS])
def test_a_pipe_in_the_place_of_trials_is_told(name, tmp_path):
    """To add to it would wait for somebody who reads it, for ever."""
    RunFolder(tmp_path).create(small())
    os.mkfifo(tmp_path / name)
    with pytest.raises(CardsError, match=rf"{name}: is not a regular file"):
        RunFolder(tmp_path).trials(small())


def test_a_worker_that_dies_loses_one_trial_which_is_run_again():
    experiment = small()
    points = experiment.algorithm.search(experiment.space, 1, None).ask()
    tasks = [(i, experiment.space.values(point)) for i, point in enumerate(points)]
    with Processes(experiment, 2) as processes:
        found = {result.number: result for result in processes.run(tasks)}
    with Processes(experiment, 2) as processes:
        results = processes.run(tasks)
        first = next(results)
        processes._workers[0].process.kill()
        again = {result.number: result for result in [first, *results]}
        assert processes.crashes == 1
    assert again.keys() == found.keys()
    assert all(again[number].same_as(found[number]) for number in found)


def test_a_trial_that_kills_its_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(workers, "ATTEMPTS", 1)
    experiment = small(failure="{score: -3.0}")
    values = experiment.space.values(np.full(len(experiment.space.genes), 0.5))
    with Processes(experiment, 1) as processes:
        results = processes.run([(0, values), (1, values)])
        next(results)
        processes._workers[0].process.kill()
        (last,) = list(results)
    assert (last.number, last.state, last.score) == (1, "crashed", -3.0)


def test_processes_that_die_of_everything_end_the_run(monkeypatch, tmp_path):
    """As those of a script without the guard that spawned processes need."""
    monkeypatch.setattr(workers, "_work", os.getcwd)  # takes no arguments
    with pytest.raises(CardsError, match="6 processes died, and none gave a result"):
        learn(small(), tmp_path / "run", workers=1)


def test_diverged_trials_are_counted_and_the_run_goes_on(tmp_path):
    experiment = small(BROKEN, trials="5")
    made = learn(experiment, tmp_path / "run", workers=2)
    assert made.states == {"diverged": 5}
    assert made.best.number == 0  # the first of equals
    table = pyarrow.parquet.read_table(tmp_path / "run" / TRIALS)
    assert table.column("state").to_pylist() == ["diverged"] * 5


def test_what_parquet_and_pattern_hold(whole):
    experiment = small()
    table = pyarrow.parquet.read_table(whole / TRIALS)
    assert table.column("trial").to_pylist() == list(range(11))
    metadata = table.schema.metadata
    assert metadata[b"experiment"].decode() == experiment.text()
    scores = table.column("score").to_numpy()
    best = int(np.argmax(scores))
    values = [table.column(f"parameter/{n}")[best].as_py() for n in experiment.space.names]
    pattern = read_parameters(whole / BEST)
    assert pattern.oscillators.frequency == values[0]
    head = (whole / BEST).read_text(encoding="utf-8").split("\nformat")[0]
    assert head.startswith("# learned by CARDS")
    for what in (
        "small.yaml",
        "tetrahedral_6",
        "seed: 1",
        f"trial: {best}",
        repr(float(scores[best])),
    ):
        assert what in head


def test_a_trial_is_run_again_by_its_number(whole):
    experiment = small()
    known = RunFolder(whole).trials(experiment)
    assert repeat(experiment, 9, known[9]).same_as(known[9])
    # those of the first generation need no folder
    assert repeat(experiment, 5, None).same_as(known[5])
    with pytest.raises(CardsError, match="depends on the trials before it"):
        repeat(experiment, 9, None)
    with pytest.raises(CardsError, match="0 to 10"):
        repeat(experiment, 11, None)


def test_what_a_folder_refuses(whole, tmp_path):
    with pytest.raises(CardsError, match="not an empty folder"):
        learn(small(), whole, workers=1)
    with pytest.raises(CardsError, match="another experiment"):
        learn(small(seed="2"), whole, workers=1, resume=True)
    with pytest.raises(CardsError, match="expected: at least 11"):
        learn(small(trials="4"), whole, workers=1, resume=True)
    with pytest.raises(CardsError, match=r"has no experiment\.yaml"):
        learn(small(), tmp_path, workers=1, resume=True)
    with (
        RunFolder(whole).locked(),
        pytest.raises(CardsError, match="one at a time"),
    ):
        learn(small(), whole, workers=1, resume=True)


def test_a_scheduler_that_is_not_there():
    pytest.importorskip("distributed")
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with pytest.raises(CardsError, match="expected: the address"), Dask(small(), address, 1):
            pass


def test_a_scheduler_that_is_not_there_leaves_a_finished_run_alone(whole):
    pytest.importorskip("distributed")
    before = {file.name: file.read_bytes() for file in whole.iterdir() if file.is_file()}
    with pytest.raises(CardsError, match="expected: the address"):
        learn(small(trials="14"), whole, dask="tcp://127.0.0.1:9", resume=True)
    assert before == {file.name: file.read_bytes() for file in whole.iterdir() if file.is_file()}


def test_a_cluster_that_is_lost_keeps_what_was_done(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "lost"
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )

    def lose(done, total, best):
        if done == 3:
            cluster.close()

    try:
        with pytest.raises(CardsError, match=r"is lost.*--resume"):
            learn(small(), folder, dask=cluster.scheduler_address, progress=lose)
    finally:
        cluster.close()
    assert len(RunFolder(folder).trials(small())) >= 3
    learn(small(), folder, workers=1, resume=True)
    assert digest(folder) == digest(whole)


def test_an_experiment_of_a_folder_that_is_no_text_is_told(tmp_path):
    store = RunFolder(tmp_path)
    store.create(small())
    file = tmp_path / EXPERIMENT
    file.write_bytes(file.read_bytes() + b"# \xff\n")
    with pytest.raises(CardsError, match=r"experiment\.yaml:\d+: .*byte 0xff is not UTF-8"):
        store.experiment()


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "3",
        "[" * 9999,
        '{"number": "one"}',
        '{"number": 1, "values": [1], "runs": []}',
        "\xff",
    ],
)
def test_lines_of_a_journal_that_are_no_trial_are_passed_over(tmp_path, line):
    store = RunFolder(tmp_path)
    store.create(small())
    (tmp_path / JOURNAL).write_bytes(line.encode("latin-1") + b"\n")
    assert store.trials(small()) == {}
