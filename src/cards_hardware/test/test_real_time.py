"""Priorities: given to all threads, taken from none."""

import os
import threading

import pytest

from cards_hardware.real_time import make_real_time


@pytest.fixture
def threads():
    """Numbers of two threads that wait."""
    end, numbers = threading.Event(), []
    both = threading.Barrier(3)

    def work():
        numbers.append(threading.get_native_id())
        both.wait(60.0)
        end.wait(60.0)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    both.wait(60.0)
    yield numbers
    end.set()
    for worker in workers:
        worker.join()


def test_threads_of_higher_priority_keep_it(threads):
    one, two = threads
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(one, os.SCHED_FIFO, os.sched_param(8))
    except OSError:
        pytest.skip("no permission for the real-time scheduler")
    try:
        assert make_real_time(os.getpid(), 5) == "fifo"
        assert os.sched_getparam(one).sched_priority == 8
        assert os.sched_getparam(two).sched_priority == 5
        assert make_real_time(os.getpid(), 9) == "fifo"
        assert os.sched_getparam(one).sched_priority == 9
    finally:
        for task in os.listdir("/proc/self/task"):
            os.sched_setscheduler(int(task), *before)
