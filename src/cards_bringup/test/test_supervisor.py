import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from cards_bringup.nodes.supervisor import ProcessFailedError, Supervisor
from cards_core.errors import CardsError

pytestmark = pytest.mark.serial

FOREVER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time\n"
    "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
    "print('up', flush=True); time.sleep(600)",
]


def wait_for(condition, timeout=20.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().split()[2] != "Z"


def test_everything_is_stopped_at_the_end(tmp_path):
    with Supervisor(tmp_path) as nodes:
        nodes.start("a", FOREVER)
        nodes.start("b", FOREVER)
        wait_for(lambda: (tmp_path / "b.log").read_text() == "up\n")
        assert nodes.poll() == set()
        pids = [child.process.pid for child in nodes._children]
    assert not any(alive(pid) for pid in pids)


def test_a_process_that_ignores_signals_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "cards_bringup.nodes.supervisor.STOP_SIGNALS",
        ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0)),
    )
    with Supervisor(tmp_path) as nodes:
        nodes.start("mule", STUBBORN)
        wait_for(lambda: (tmp_path / "mule.log").read_text() == "up\n")
        pid = nodes._children[0].process.pid
    assert not alive(pid)


def test_a_process_that_needs_longer_to_end_gets_it(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "cards_bringup.nodes.supervisor.STOP_SIGNALS",
        ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 5.0)),
    )
    slow = (
        "import sys, signal, time\n"
        "def leave(*_): time.sleep(1.0); print('tidy', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGINT, leave); print('up', flush=True); signal.pause()"
    )
    log = tmp_path / "slow.log"
    with Supervisor(tmp_path) as nodes:
        nodes.start("slow", [sys.executable, "-c", slow], stop_time=60.0)
        wait_for(lambda: log.read_text() == "up\n")
    assert log.read_text() == "up\ntidy\n"


def test_failure_carries_the_end_of_the_output(tmp_path):
    with Supervisor(tmp_path) as nodes:
        nodes.start("bad", [sys.executable, "-c", "print('no model'); raise SystemExit(3)"])
        with pytest.raises(
            ProcessFailedError, match=r"'bad' ended with exit code 3(?s:.*)no model"
        ):
            wait_for(lambda: nodes.poll() and False)


def test_an_optional_process_may_fail(tmp_path):
    with Supervisor(tmp_path) as nodes:
        nodes.start("view", [sys.executable, "-c", "raise SystemExit(3)"], essential=False)
        wait_for(lambda: nodes.poll() == {"view"})


def test_missing_program(tmp_path):
    with Supervisor(tmp_path) as nodes, pytest.raises(CardsError, match="cannot start 'x'"):
        nodes.start("x", [str(tmp_path / "nothing")])


def test_children_die_with_a_killed_parent(tmp_path):
    script = textwrap.dedent(f"""
        import pathlib, time
        from cards_bringup.nodes.supervisor import Supervisor
        with Supervisor(pathlib.Path({str(tmp_path)!r})) as nodes:
            nodes.start("child", {FOREVER!r})
            print(nodes._children[0].process.pid, flush=True)
            time.sleep(600)
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    wait_for(lambda: (tmp_path / "child.log").read_text() == "up\n")
    parent.kill()
    parent.wait()
    wait_for(lambda: not alive(pid))
