"""Which tests may run side by side: those of code without clock or network, file by file."""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# neither the seconds that an example takes nor luck decide about a test
settings.register_profile(
    "cards", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cards")

SOURCES = Path(__file__).parent / "src"
LIBRARY = SOURCES / "cards_core"
OTHERS = [
    SOURCES / name
    for name in ("cards_hardware", "cards_sim", "cards_viz", "cards_rods", "controllers")
]

PROGRAMS = {
    SOURCES / "cards_bringup" / "test": (
        "cli_cable_function",
        "cli_rods_analysis",
        "eval",
        "export",
        "paper_benchmark",
    ),
    SOURCES / "cards_hardware" / "test": ("firmware_core", "fuzz"),
    SOURCES.parent / "tests": ("analyse_points", "analyse_workspace", "eval"),
}
"""Tests that start programs, but programs that read neither clock nor network."""

HOST = re.compile(
    r"\b(rclpy|subprocess|Popen|threading|Thread|socket|pty|sleep|monotonic|signal|Node\w*|demo|cards"
    r"|Emulator|Supervisor|chromium|playwright|multiprocessing)\b(?!_)"
)
"""Words of tests that use the machine's clock, network or processes."""

COURTESY = 5
"""Niceness of a worker with tests that may run beside those of hosts, which keep time."""


@cache
def alone(path: Path) -> bool:
    """Tell whether the tests of a file disturb no others and are not disturbed."""
    if LIBRARY in path.parents or path.stem.removeprefix("test_") in PROGRAMS.get(path.parent, ()):
        return True
    return any(folder in path.parents for folder in OTHERS) and not HOST.search(path.read_text())


def pytest_runtest_setup(item):
    """Let hosts and nodes go first: to them a slow machine is a late controller."""
    if "PYTEST_XDIST_WORKER" in os.environ and alone(item.path):
        os.nice(max(0, COURTESY - os.nice(0)))


def pytest_runtest_logreport(report):
    """Note what failed for ``./cards test``, which runs tests of hosts once more, alone."""
    file = os.environ.get("CARDS_TESTS_FAILED")
    if report.failed and file and "PYTEST_XDIST_WORKER" not in os.environ:
        path = SOURCES.parent / report.nodeid.split("::", 1)[0]
        kind = "library" if alone(path) else "hosts"
        with open(file, "a", encoding="utf-8") as out:
            out.write(f"{kind}\t{report.nodeid}\n")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let pytest-xdist keep the tests of a file together, and those of all hosts.

    Hosts, nodes and programs share the machine's clock and network, and are tested one at a time.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::", 1)[0]
            return path if alone(config.rootpath / path) else "hosts"

    return Scheduling(config, log)
