"""Processes of a campaign: their ends are judged, nothing of them is left."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cards_bringup.soak.processes import MARK, Processes
from cards_bringup.soak.small_disk import SmallDisk

pytestmark = pytest.mark.serial

WAITS = "import time; print('there', flush=True); time.sleep(600)"


@pytest.fixture
def processes(tmp_path):
    made = Processes(tmp_path, {}, f"test-{os.getpid()}")
    yield made
    made.stop()


def python(code):
    return [sys.executable, "-c", code]


def until(condition):
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_end_that_nobody_asked_for(processes):
    life = processes.start("node", python("import sys; print('oh'); sys.exit(3)"))
    life.process.wait()
    (violation,) = processes.watch()
    assert violation.invariant == "exit codes"
    assert violation.text == (
        "node ended with code 3 (expected: it runs until it is ended); its output ends: oh"
    )
    assert processes.watch() == []
    assert processes.after_the_end(1.0) == []


def test_a_kill_that_was_asked_for(processes):
    life = processes.start("node", python(WAITS))
    until(lambda: life.log.read_bytes())
    processes.kill(life)
    assert processes.watch() == []
    assert processes.after_the_end(1.0) == []
    assert processes.life("node") is None


def test_a_wrong_end_by_ctrl_c(processes):
    code = "import signal, sys; signal.signal(2, lambda *_: sys.exit(5)); " + WAITS
    life = processes.start("node", python(code))
    until(lambda: life.log.read_bytes())
    assert processes.end(life) == 5
    (violation,) = processes.after_the_end(1.0)
    assert "ended with code 5 (expected: 0)" in violation.text


def test_an_orphan_is_found_and_ended(processes):
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; "
        "time.sleep(600)'], start_new_session=True); print(p.pid, flush=True)"
    )
    life = processes.start("node", python(code))
    life.process.wait(60.0)
    assert processes.end(life) == 0
    orphan = int(life.log.read_text())
    (violation,) = processes.after_the_end(1.0)
    assert violation.text.startswith(f"process {orphan} is left: ")
    until(lambda: not alive(orphan))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_outlives_the_campaign(tmp_path):
    """A campaign that is killed takes its processes along."""
    code = (
        "import sys, time; from pathlib import Path; "
        "from cards_bringup.soak.processes import Processes; "
        f"p = Processes(Path({str(tmp_path)!r}), {{}}, 'killed'); "
        "x = p.start('node', [sys.executable, '-c', 'import time; time.sleep(600)']); "
        "print(x.process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as campaign:
        child = int(campaign.stdout.readline())
        campaign.kill()
    until(lambda: not alive(child))


def test_the_mark(processes):
    life = processes.start("node", python(f"import os; print(os.environ['{MARK}'], flush=True)"))
    life.process.wait()
    assert life.log.read_text().strip() == f"test-{os.getpid()}"


def test_a_small_disk_is_full_and_then_it_is_not(tmp_path):
    disk = SmallDisk(tmp_path / "disk")
    if not disk.mounted:
        assert disk.problem
        pytest.skip(disk.problem)
    try:
        assert disk.fill() > 1_000_000
        with pytest.raises(OSError, match="No space left"):
            (disk.folder / "file").write_bytes(b"x" * 10_000)
        disk.free()
        (disk.folder / "file").write_bytes(b"x" * 10_000)
    finally:
        disk.close()
    assert not (tmp_path / "disk" / "file").exists()
