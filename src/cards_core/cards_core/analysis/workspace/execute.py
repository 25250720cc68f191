"""Who computes the chunks: threads, processes, or the workers of a Dask scheduler."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from cards_core.analysis.workspace.chunks import compute_chunk
from cards_core.errors import CardsError

AHEAD = 2
"""Chunks that wait per worker, so that none is idle; more would only take memory."""

CONNECT_TIMEOUT = 20.0
"""Longest time [s] to reach a scheduler and to see its first worker."""

RETRIES = 3
"""How often Dask tries a chunk whose worker died."""

Task = tuple[int, bytes | None]
"""Index of a chunk, and what varies in its points where the worker cannot know."""


def run_locally(
    job: bytes, tasks: Iterable[Task], workers: int, *, processes: bool = False
) -> Generator[tuple[int, bytes]]:
    """Compute chunks on this machine; yields them as they are done.

    Native code of the conditions runs without the GIL, so threads are enough unless a condition
    spends its time in Python.

    Args:
        job: From `pack_job`.
        tasks: Which chunks.
        workers: Number of threads or processes.
        processes: Use processes.

    Raises:
        CardsError: A process died, or the condition cannot be made.
    """
    executor: Executor
    if processes:
        # a fork of a process with threads may hang
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(workers, mp_context=context)
    else:
        executor = ThreadPoolExecutor(workers, thread_name_prefix="workspace")
    try:
        yield from _collect(
            tasks,
            lambda task: executor.submit(_indexed, job, *task),
            workers * (1 + AHEAD),
        )
    except BrokenProcessPool as error:
        raise CardsError(
            "a worker process died, e.g. killed for want of memory (expected: all to live; what "
            "was computed is kept, the same command goes on with it, perhaps with fewer workers; "
            "a script that uses processes needs 'if __name__ == \"__main__\":')"
        ) from error
    finally:
        executor.shutdown(cancel_futures=True)


def _indexed(job: bytes, index: int, values: bytes | None) -> tuple[int, bytes]:
    try:
        return index, compute_chunk(job, index, values)
    except CardsError as error:
        # errors that build their own message do not survive the way to another process
        raise CardsError(str(error)) from None


def _collect(
    tasks: Iterable[Task], submit: Callable[[Task], Future[Any]], limit: int
) -> Iterator[tuple[int, bytes]]:
    """Keep up to ``limit`` tasks in flight; yield results as they come."""
    rest = iter(tasks)
    flying = {submit(task) for task in islice(rest, limit)}
    while flying:
        done, flying = wait(flying, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
            flying |= {submit(task) for task in islice(rest, 1)}


def run_on_dask(job: bytes, tasks: Iterable[Task], scheduler: Any) -> Generator[tuple[int, bytes]]:
    """Compute chunks on the workers of a Dask scheduler; yields them as they are done.

    Every worker needs CARDS in the same version; it gets the job with each chunk and makes the
    condition once.

    Args:
        job: From `pack_job`.
        tasks: Which chunks.
        scheduler: Address, e.g. ``tcp://10.0.0.5:8786``, or a `distributed.Client`, which may
            have settings of its own, e.g. for TLS.

    Raises:
        CardsError: The scheduler cannot be reached, has no workers, or lost them.
    """
    distributed = _distributed()
    mine = not isinstance(scheduler, distributed.Client)
    try:
        if mine:
            check_reachable(scheduler)
            client = distributed.Client(scheduler, timeout=CONNECT_TIMEOUT, set_as_default=False)
        else:
            client = scheduler
    except (OSError, ValueError, TimeoutError) as error:
        raise CardsError(
            f"no Dask scheduler answers at '{scheduler}': {error} (expected: the address that "
            "'dask scheduler' prints, e.g. tcp://10.0.0.5:8786)"
        ) from error
    try:
        yield from _collect_from_dask(client, job, tasks)
    except distributed.KilledWorker as error:
        raise CardsError(
            f"a chunk was given up after its worker died {RETRIES + 1} times: {error} (expected: "
            "workers with enough memory; the same command goes on)"
        ) from error
    finally:
        if mine:
            client.close()


def _distributed() -> Any:
    # it takes long to import, and few jobs run on other machines
    import distributed

    return distributed


def check_reachable(address: str) -> None:
    """Connect once: Dask itself asks again and again, and complains when it gives up.

    Raises:
        OSError: Nothing listens at that address.
        ValueError: It is not an address.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "tls", "ws", "wss") or not parts.hostname or not parts.port:
        raise ValueError("not the address of a scheduler")
    with socket.create_connection((parts.hostname, parts.port), CONNECT_TIMEOUT):
        pass


def _collect_from_dask(
    client: Any, job: bytes, tasks: Iterable[Task]
) -> Iterator[tuple[int, bytes]]:
    try:
        client.wait_for_workers(1, timeout=CONNECT_TIMEOUT)
    except TimeoutError as error:
        raise CardsError(
            f"the Dask scheduler {client.scheduler.address} has no workers (expected: at least "
            "one 'dask worker ADDRESS')"
        ) from error

    def submit(task: Task) -> Any:
        return client.submit(_indexed, job, *task, pure=False, retries=RETRIES)

    threads = sum(client.nthreads().values())
    rest = iter(tasks)
    futures = _distributed().as_completed(
        [submit(task) for task in islice(rest, threads * (1 + AHEAD))],
        loop=client.loop,
        with_results=True,
    )
    try:
        for future, result in futures:
            yield result
            future.release()
            for task in islice(rest, 1):
                futures.add(submit(task))
    finally:
        client.cancel(list(futures.futures))
