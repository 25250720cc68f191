"""Threads that work on the newest item; events instead of times."""

import threading
import time
from dataclasses import dataclass
from itertools import pairwise

import pytest

from cards_model_compiler.live_analysis.workers import MOST, LatestWorkers

pytestmark = pytest.mark.serial

PATIENCE = 60.0


@dataclass(frozen=True)
class Item:
    number: int


@pytest.fixture
def workers():
    made = []

    def make(functions, patience=PATIENCE):
        made.append(LatestWorkers(functions, patience))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_every_item_is_worked_on_if_there_is_time(workers):
    seen = []
    group = workers({"square": lambda item: seen.append(item.number) or item.number**2})
    assert group.latest("square") is None
    for number in range(5):
        group.submit(Item(number))
        assert group.wait(PATIENCE)
        outcome = group.latest("square")
        assert (outcome.item.number, outcome.result, outcome.error) == (number, number**2, None)
        assert outcome.seconds >= 0.0
    assert seen == [0, 1, 2, 3, 4]


def test_a_slow_worker_takes_the_newest_and_makes_nobody_else_wait(workers):
    busy, go = threading.Event(), threading.Event()
    seen = []

    def slow(item):
        seen.append(item.number)
        busy.set()
        assert go.wait(PATIENCE)

    group = workers({"slow": slow, "fast": lambda item: item.number}, patience=0.0)
    group.submit(Item(0))
    assert busy.wait(PATIENCE)
    for number in range(1, 50):
        group.submit(Item(number))
        with group._done:
            done = group._done.wait_for(
                lambda n=number: group.latest("fast") and group.latest("fast").item.number == n,
                PATIENCE,
            )
        assert done
    assert not group.wait(0.0)  # nobody knows yet how slow it is
    go.set()
    with group._done:
        assert group._done.wait_for(
            lambda: group.latest("slow") and group.latest("slow").item.number == 49, PATIENCE
        )
    # those in between were dropped: nothing queues up
    assert seen == [0, 49]


def test_who_was_slow_is_not_waited_for(workers):
    go = threading.Event()
    group = workers({"slow": lambda item: item.number == 0 or go.wait(PATIENCE)}, patience=-1.0)
    group.submit(Item(0))
    group.wait(PATIENCE)
    group.submit(Item(1))
    assert group.wait(0.0)
    assert group.latest("slow").item.number == 0
    go.set()


def test_an_exception_is_an_outcome_and_the_thread_goes_on(workers):
    def function(item):
        if item.number == 1:
            raise ValueError("bad state")
        return item.number

    group = workers({"a": function})
    for number, result, error in ((0, 0, None), (1, None, "bad state"), (2, 2, None)):
        group.submit(Item(number))
        assert group.wait(PATIENCE)
        outcome = group.latest("a")
        assert outcome.item.number == number
        assert outcome.result == result
        assert (None if outcome.error is None else str(outcome.error)) == error


def test_some_can_be_left_out(workers):
    group = workers({"a": lambda item: item.number, "b": lambda item: item.number})
    group.submit(Item(0), without=frozenset({"b"}))
    assert group.wait(PATIENCE)
    assert group.latest("a").result == 0
    assert group.latest("b") is None


def test_a_worker_rests_so_that_it_takes_no_more_than_its_share(workers):
    times = []

    def function(_item):
        begin = time.monotonic()
        threading.Event().wait(0.02)
        times.append((begin, time.monotonic()))

    group = workers({"a": function})
    for number in range(3):
        group.submit(Item(number))
        assert group.wait(PATIENCE)
    for (begin, end), (following, _) in pairwise(times):
        assert (end - begin) / (following - begin) <= MOST * (1.0 + 1e-9)


def test_close_ends_a_rest_at_once_and_does_not_wait_for_ever():
    stuck, begun = threading.Event(), threading.Event()

    def function(item):
        begun.set()
        if item.number:
            stuck.wait(PATIENCE)

    group = LatestWorkers({"a": function}, PATIENCE)
    thread = group._workers["a"].thread
    group.submit(Item(0))
    assert group.wait(PATIENCE)
    group.close()
    assert not thread.is_alive()
    begun.clear()
    group = LatestWorkers({"a": function}, PATIENCE)
    group.submit(Item(1))
    assert begun.wait(PATIENCE)
    group.close()  # returns although the thread is busy
    stuck.set()
