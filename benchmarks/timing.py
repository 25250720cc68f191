"""What the measurements share: medians of calls, an empty cache, the name of the machine."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Say = Callable[[str], None]
"""Told what is being measured."""


def time_call(function: Callable[[], Any], *, seconds: float = 1.0) -> dict[str, float]:
    """Call ``function`` for about ``seconds`` and return median and 99th percentile, [us]."""
    samples: list[int] = []
    clock = time.perf_counter_ns
    for _ in range(3):
        function()
    end = clock() + int(seconds * 1e9)
    while (start := clock()) < end:
        function()
        samples.append(clock() - start)
    array = np.array(samples) / 1e3
    return {"median": float(np.median(array)), "p99": float(np.percentile(array, 99))}


def quiet_median(function: Callable[[], Any]) -> float:
    """Return the median time of a call in the quietest of five stretches, [us].

    Microseconds depend on what else the machine does, and on the clock of its processor.
    """
    return min(time_call(function, seconds=0.2)["median"] for _ in range(5))


@contextmanager
def empty_cache() -> Iterator[None]:
    """Compile into a cache of its own for a while."""
    old = os.environ.get("CARDS_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CARDS_CACHE"] = folder
        try:
            yield
        finally:
            if old is None:
                del os.environ["CARDS_CACHE"]
            else:
                os.environ["CARDS_CACHE"] = old


def machine() -> dict[str, Any]:
    """Return what numbers depend on."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    except OSError:
        pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}
