"""Which tests run side by side: all but those with a marker that says otherwise.

The markers are registered in ``pyproject.toml``. ``./cards test`` runs the unmarked tests file by
file on all cores and those marked ``serial`` one at a time on one worker of its own.
"""

import os
import signal
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a suite that was started in the background would hand this on to the programs it tests
    signal.signal(signal.SIGINT, signal.default_int_handler)

# neither the seconds that an example takes nor luck decide about a test
settings.register_profile(
    "cards", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cards")

SERIAL = frozenset({"serial", "ros", "gazebo", "browser", "real_time"})
"""Markers of tests that run one at a time: they share the machine's clock and network."""

SUFFIX = "@serial"
"""Appended to the names of serial tests while they are sent to the scheduler."""

COURTESY = 5
"""Niceness of a worker with tests that may run beside those of hosts, which keep time."""


@pytest.fixture
def hangup():
    """Let SIGHUP be heard by this test and the programs it starts; under nohup it is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def domain():
    """Number of a ROS domain that no other test has; needs rclpy, as `probe` does."""
    from cards_ros.testing import private_domain

    with private_domain() as number:
        yield number


@pytest.fixture
def probe(domain):
    """A node beside those that are tested."""
    from cards_ros.testing import Probe

    with Probe(domain) as probe:
        yield probe


def is_serial(item):
    """Tell whether a test has a marker that forbids running it beside others of that kind."""
    return any(marker.name in SERIAL for marker in item.iter_markers())


def pytest_runtest_setup(item):
    """Let hosts and nodes go first: to them a slow machine is a late controller."""
    if "PYTEST_XDIST_WORKER" in os.environ and not is_serial(item):
        os.nice(max(0, COURTESY - os.nice(0)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Note in the report whether the test is serial; reports travel from workers, items do not."""
    report = yield
    report.serial = is_serial(item)
    return report


def pytest_runtest_logreport(report):
    """Note what failed for ``./cards test``, which runs serial tests once more, alone."""
    file = os.environ.get("CARDS_TESTS_FAILED")
    if report.failed and file and "PYTEST_XDIST_WORKER" not in os.environ:
        # the report of a worker that crashed has the scheduler's name of the test
        serial = getattr(report, "serial", report.nodeid.endswith(SUFFIX))
        kind = "hosts" if serial else "library"
        with open(file, "a", encoding="utf-8") as out:
            out.write(f"{kind}\t{report.nodeid.removesuffix(SUFFIX)}\n")


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session):
    """Send the names of serial tests with a suffix: the scheduler gets names and no markers."""
    items = session.items
    if "PYTEST_XDIST_WORKER" in os.environ:
        session.items = [
            SimpleNamespace(nodeid=item.nodeid + SUFFIX) if is_serial(item) else item
            for item in items
        ]
    try:
        return (yield)
    finally:
        session.items = items


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let pytest-xdist keep the tests of a file together, and all serial tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return SUFFIX if nodeid.endswith(SUFFIX) else nodeid.split("::", 1)[0]

    return Scheduling(config, log)
