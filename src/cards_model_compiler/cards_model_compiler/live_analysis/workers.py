"""Threads that always work on the newest item, so that nothing queues up; no ROS.

An item that comes while a worker is busy replaces the one that waits for it. A worker rests after
its work, so that a slow one takes `MOST` of a core and no more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

MOST = 0.25
"""Largest share of a core that one worker takes."""

END_TIME = 2.0
"""How long `LatestWorkers.close` waits for what still runs, [s]."""


class Numbered(Protocol):
    """What is worked on: later items have greater numbers."""

    @property
    def number(self) -> int:
        """Of the item."""
        ...


Item = TypeVar("Item", bound=Numbered)
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Outcome(Generic[Item, Result]):
    """What a worker did last.

    Attributes:
        item: What it worked on.
        result: None if it failed.
        seconds: How long that took.
        error: Why it failed, else None.
    """

    item: Item
    result: Result | None
    seconds: float
    error: Exception | None = None


class LatestWorkers(Generic[Item, Result]):
    """One thread per function.

    Args:
        functions: What to do with items, by name; each is called by its own thread alone.
        patience: Time after which a worker counts as slow, [s]: `wait` does not wait for it.
    """

    def __init__(self, functions: Mapping[str, Callable[[Item], Result]], patience: float) -> None:
        self._done = threading.Condition()
        self.patience = patience
        self._workers = {
            name: _Worker(name, function, self._done) for name, function in functions.items()
        }

    def submit(self, item: Item, without: frozenset[str] = frozenset()) -> None:
        """Hand an item to all workers but some; replaces one that still waits."""
        for name, worker in self._workers.items():
            if name not in without:
                worker.submit(item)

    def wait(self, timeout: float) -> bool:
        """Wait until all that are not slow have done what they were given.

        Returns:
            Whether they have, within ``timeout`` [s].
        """
        with self._done:
            return self._done.wait_for(self._ready, timeout)

    def _ready(self) -> bool:
        return not any(
            worker.open and not worker.last_took_longer_than(self.patience)
            for worker in self._workers.values()
        )

    def latest(self, name: str) -> Outcome[Item, Result] | None:
        """Return what a worker did last, None before its first result."""
        return self._workers[name].latest

    def close(self) -> None:
        """End all threads; one that does not end in time ends with the process."""
        for worker in self._workers.values():
            worker.stop()
        end = time.monotonic() + END_TIME
        for worker in self._workers.values():
            worker.thread.join(max(0.0, end - time.monotonic()))


class _Worker(Generic[Item, Result]):
    def __init__(
        self, name: str, function: Callable[[Item], Result], done: threading.Condition
    ) -> None:
        self._function = function
        self._done = done
        self._news = threading.Condition()
        self._waiting: Item | None = None
        self._stopped = False
        self._submitted = self._finished = -1
        self.latest: Outcome[Item, Result] | None = None
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    @property
    def open(self) -> bool:
        """Whether the newest item has not been worked on."""
        return self._finished < self._submitted

    def last_took_longer_than(self, seconds: float) -> bool:
        return self.latest is not None and self.latest.seconds > seconds

    def submit(self, item: Item) -> None:
        with self._news:
            self._waiting = item
            self._submitted = item.number
            self._news.notify()

    def stop(self) -> None:
        with self._news:
            self._stopped = True
            self._news.notify()

    def _next(self) -> Item | None:
        """Wait for an item; None: the end."""
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._waiting is not None)
            item, self._waiting = self._waiting, None
            return None if self._stopped else item

    def _work(self) -> None:
        while (item := self._next()) is not None:
            begin = time.monotonic()
            result, error = None, None
            try:
                # numbers that do not exist are NaN, which is what they are published as
                with np.errstate(all="ignore"):
                    result = self._function(item)
            except Exception as problem:  # one bad state must not end the thread
                error = problem
            seconds = time.monotonic() - begin
            with self._done:
                self.latest = Outcome(item, result, seconds, error)
                self._finished = item.number
                self._done.notify_all()
            with self._news:
                self._news.wait_for(lambda: self._stopped, seconds * (1.0 / MOST - 1.0))
