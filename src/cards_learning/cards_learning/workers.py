"""Who runs the trials: processes of this machine, or the workers of a Dask scheduler.

Trials come back in any order; each belongs to its number, so the order decides nothing. A process
that dies takes the trial with it that it had: another process runs it again, and a trial that
kills two is given up as ``crashed``.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import numpy as np

from cards_core.analysis.workspace.execute import CONNECT_TIMEOUT, check_reachable
from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_learning.experiment import Experiment
from cards_learning.trial import Laboratory, TrialResult, failed_trial

ATTEMPTS = 2
"""How many processes may die of a trial before it is given up."""

HOPELESS = 3
"""How many trials are given up, before any other has given a result, until the run is."""

DIED = "the processes that ran it died"

STOP_TIMEOUT = 5.0
"""How long a process that is told to end may take before it is killed, [s]."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One process per core is enough; threads in each would only be in each other's way."""

Task = tuple[int, Array]
"""Number of a trial, and values of its parameters."""


# Processes ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    """A process with the task it has, if any."""

    process: Any
    pipe: Connection
    task: Task | None = None


class Processes:
    """Processes of this machine that run trials; a context manager.

    They are spawned: a fork of a process with threads may hang.

    Args:
        experiment: Of the trials.
        count: How many.
        single: A task is one run of a trial, and its number that in `Experiment.runs`.

    Attributes:
        crashes: How many have died so far.
    """

    def __init__(self, experiment: Experiment, count: int, *, single: bool = False) -> None:
        self._experiment = experiment
        self._job = pickle.dumps((experiment, single))
        self._count = count
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._answered, self._given_up = False, 0
        self.crashes = 0

    def __enter__(self) -> Processes:
        """Start nothing yet: processes start with the first trials."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, also those amid a trial."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(STOP_TIMEOUT)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def run(self, tasks: Iterable[Task]) -> Generator[TrialResult]:
        """Run trials; yields their results as they come.

        Raises:
            CardsError: A trial cannot be run: robot, terrain or pattern do not fit; or processes
                die of everything.
        """
        waiting = list(tasks)[::-1]
        attempts: dict[int, int] = {}
        while len(self._workers) < min(self._count, len(waiting)):
            self._workers.append(self._start())
        while waiting or any(worker.task for worker in self._workers):
            for worker in self._workers:
                if worker.task is None and waiting:
                    self._give(worker, waiting.pop())
            busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]
                task = cast(Task, worker.task)
                result = self._take(worker)
                if result is not None:
                    self._answered = True
                    yield result
                    continue
                number, values = task
                self.crashes += 1
                self._replace(worker)
                attempts[number] = attempts.get(number, 0) + 1
                if attempts[number] < ATTEMPTS:
                    waiting.append(task)
                else:
                    self._give_up()
                    yield failed_trial(self._experiment, number, values, "crashed", DIED)

    def _give_up(self) -> None:
        self._given_up += 1
        if not self._answered and self._given_up >= HOPELESS:
            raise CardsError(
                f"{self.crashes} processes died, and none gave a result (expected: processes that "
                "live, see what they wrote; a script needs 'if __name__ == \"__main__\":')"
            )

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(theirs, self._job), name="trials", daemon=True
        )
        # Ctrl-C while a process is being started would end it with a traceback: it begins with the
        # signal blocked; here it comes a moment later. The tracker would unblock it as it starts
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _environment(dict.fromkeys(THREADS, "1")):
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # else the end of the process is not the end of the pipe
        return _Worker(process, ours)

    def _replace(self, worker: _Worker) -> None:
        worker.process.join(STOP_TIMEOUT)
        worker.pipe.close()
        fresh = self._start()
        worker.process, worker.pipe, worker.task = fresh.process, fresh.pipe, None

    def _give(self, worker: _Worker, task: Task) -> None:
        worker.task = task
        with contextlib.suppress(OSError):  # it died meanwhile, as is seen when it answers
            worker.pipe.send(task)

    def _take(self, worker: _Worker) -> TrialResult | None:
        """Return a result, None if the process died."""
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            return None
        worker.task = None
        if isinstance(answer, str):
            raise CardsError(answer)
        return answer


def _work(pipe: Connection, job: bytes) -> None:
    """Run trials until the pipe ends."""
    # Ctrl-C reaches the whole group; the parent ends its processes itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    perform: Callable[[int, Array], TrialResult] | None = None
    while True:
        try:
            number, values = pipe.recv()
        except (EOFError, OSError):
            return
        answer: TrialResult | str
        try:
            if perform is None:
                experiment, single = pickle.loads(job)
                laboratory = Laboratory(experiment)
                perform = laboratory.single_run if single else laboratory.trial
            answer = perform(number, values)
        except CardsError as error:
            # errors that build their own message do not survive the way to another process
            answer = f"trial {number}: {error}"
        pipe.send(answer)


def _end_with_parent() -> None:
    """End this process when its parent has ended, also when that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Generator[None]:
    """Set variables of the environment that processes inherit, for as long as the block lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# Dask --------------------------------------------------------------------------------------------


LOCAL = "local"
"""Stands for a cluster of this machine in place of an address."""


class Dask:
    """Workers of a Dask scheduler that run trials; a context manager.

    Every worker needs CARDS in the same version.

    Args:
        experiment: Of the trials.
        address: Of the scheduler, or `LOCAL`.
        count: Workers of a local cluster.

    Raises:
        CardsError: Dask is not installed.
    """

    def __init__(self, experiment: Experiment, address: str, count: int) -> None:
        self._experiment = experiment
        self._job = pickle.dumps(experiment)
        self._address = address
        self._count = count
        self._open = contextlib.ExitStack()
        self._client: Any = None
        self.crashes = 0
        try:
            import distributed
        except ImportError as error:
            raise CardsError(
                f"--dask {address} needs the Python package distributed: {error} (expected: pip "
                "install distributed, or no --dask)"
            ) from None
        self._distributed = distributed

    def __enter__(self) -> Dask:
        """Connect.

        Raises:
            CardsError: The scheduler cannot be reached or has no workers.
        """
        distributed, address = self._distributed, self._address
        self._open.enter_context(_silent())
        try:
            if address == LOCAL:
                # what Dask makes where temporary files go has a name that all users know
                folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="cards-"))
                with _environment(dict.fromkeys(THREADS, "1")):
                    address = self._open.enter_context(
                        distributed.LocalCluster(
                            n_workers=self._count,
                            threads_per_worker=1,
                            dashboard_address=None,
                            local_directory=folder,
                            silence_logs=50,
                        )
                    )
            else:
                check_reachable(address)
            self._client = self._open.enter_context(
                distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
            )
            self._client.wait_for_workers(1, timeout=CONNECT_TIMEOUT)
        except (OSError, ValueError, TimeoutError) as error:
            self._open.close()
            raise CardsError(
                f"no Dask scheduler with workers answers at '{self._address}': {error} (expected: "
                "the address that 'dask scheduler' prints, e.g. tcp://10.0.0.5:8786, with a "
                f"'dask worker ADDRESS' at least, or {LOCAL})"
            ) from None
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect; end a local cluster."""
        self._open.close()

    def run(self, tasks: Iterable[Task]) -> Generator[TrialResult]:
        """Run trials; yields their results as they come.

        Raises:
            CardsError: The cluster is lost, or a trial cannot be run.
        """
        distributed, client = self._distributed, self._client
        given = {
            client.submit(_run_task, self._job, number, values.tolist(), pure=False, retries=0): (
                number,
                values,
            )
            for number, values in tasks
        }
        futures = distributed.as_completed(list(given), loop=client.loop)
        try:
            for future in futures:
                number, values = given.pop(future)
                yield self._result(future, number, values)
        finally:
            with contextlib.suppress(Exception):  # the cluster may be gone
                client.cancel(list(given))

    def _result(self, future: Any, number: int, values: Array) -> TrialResult:
        distributed = self._distributed
        try:
            answer = future.result()
        except distributed.KilledWorker:
            self.crashes += 1
            return failed_trial(self._experiment, number, values, "crashed", DIED)
        except (distributed.CancelledError, OSError, TimeoutError) as error:
            raise CardsError(
                f"the Dask cluster at '{self._address}' is lost: {_first_line(error)} "
                "(expected: scheduler and workers that live as long as the run; the trials so far "
                "are kept, go on with --resume)"
            ) from None
        if isinstance(answer, str):
            raise CardsError(answer)
        found: TrialResult = answer
        return found


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def _silent() -> Generator[None]:
    """Keep Dask from writing tracebacks of what is told in one line."""
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _run_task(job: bytes, number: int, values: list[float]) -> TrialResult | str:
    try:
        return _laboratory(job).trial(number, np.array(values))
    except CardsError as error:
        return f"trial {number}: {error}"


@lru_cache(maxsize=1)
def _laboratory(job: bytes) -> Laboratory:
    return Laboratory(pickle.loads(job))
