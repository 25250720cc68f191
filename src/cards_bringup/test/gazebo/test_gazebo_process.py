"""That nothing of Gazebo stays behind, whoever ends it and however it is made up."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cards_bringup.gazebo import subreaper
from cards_bringup.gazebo.process import STOP_TIME
from cards_bringup.gazebo.subreaper import descendants

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

PATIENCE = 60.0
"""Time [s] after which a test gives up on a busy machine; nothing is measured with it."""

WINDOW = '''
"""As cmdsim.rb of gz sim 8: server and window in process groups of their own, with titles."""

import json, os, signal, sys, time

folder, stage, patience, deaf = sys.argv[1:5]


def note(word):
    with open(folder + "/ended", "a") as file:
        file.write(word + "\\n")


def part(word):
    number = os.fork()
    if number:
        return number
    os.setpgid(0, 0)
    code = f"import sys; sys.argv = {sys.argv!r}; exec(open({__file__!r}).read())"
    os.environ["PART"] = word
    os.execv(sys.executable, ["gz sim " + word, "-c", code])


def end(number, patience):
    os.killpg(number, signal.SIGINT)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if os.waitpid(number, os.WNOHANG)[0]:
            return
        time.sleep(0.001)
    note("killed")
    os.killpg(number, signal.SIGKILL)
    os.waitpid(number, 0)


def handle(*_):
    end(window, float(patience))
    end(server, float(patience))
    sys.exit(1)


if "PART" in os.environ:
    word = os.environ["PART"]
    if word == deaf:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        def leave(*_):
            time.sleep(0.1)  # it has something to tidy up
            note(word)
            sys.exit(0)
        signal.signal(signal.SIGINT, leave)
    open(f"{folder}/{word}", "w").close()
    while True:
        signal.pause()
server, window = part("server"), part("gui")
if stage == "up":
    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)
while not all(os.path.exists(f"{folder}/{word}") for word in ("server", "gui")):
    time.sleep(0.01)
with open(folder + "/pids.new", "w") as file:
    json.dump([os.getpid(), server, window], file)
os.rename(folder + "/pids.new", folder + "/pids")
while stage != "ends":
    signal.pause()
if stage == "ends":
    sys.exit(3)
'''


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process):
    return any(one.number == process for one in subreaper.processes())


HOST = """
import os, sys
from cards_bringup.gazebo.process import run_until_end
sys.exit(run_until_end(sys.argv[1:], os.environ))
"""


class Host:
    """The host in a process of its own; what it starts writes its process ids down.

    Attributes:
        parts: Of Gazebo, the process that was started first.
        subreaper: The process between host and Gazebo.
    """

    def __init__(self, folder, *command, lasting=True):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, *command], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.lasting = lasting

    def __enter__(self):
        pids = self.folder / "pids"
        wait_for(lambda: pids.exists() or self.process.poll() is not None)
        assert pids.exists(), self.process.stdout.read()
        self.parts = json.loads(pids.read_text())
        if self.lasting:
            assert all(map(is_running, self.parts))
            self.subreaper = descendants(self.process.pid)[0]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for part in self.parts:
            if is_running(part):
                os.kill(part, signal.SIGKILL)

    @property
    def ended(self):
        """What the parts wrote when they ended by themselves, or were killed by their parent."""
        file = self.folder / "ended"
        return file.read_text().split() if file.exists() else []

    def gone(self):
        return not any(map(is_running, self.parts))


@pytest.fixture
def one_group(tmp_path):
    """A Gazebo with a child in its group; the option lets both ignore what asks them to end."""

    def make(*, stubborn=False):
        script = (
            "import json, os, signal, subprocess\n"
            f"for number in (signal.SIGINT, signal.SIGTERM) * {stubborn}:\n"
            "    signal.signal(number, signal.SIG_IGN)\n"
            "child = subprocess.Popen(['sleep', '1000'])\n"
            f"open({str(tmp_path / 'new')!r}, 'w').write(json.dumps([os.getpid(), child.pid]))\n"
            f"os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pids')!r})\n"
            "child.wait()\n"
        )
        return Host(tmp_path, sys.executable, "-c", script)

    return make


@pytest.fixture
def with_window(tmp_path):
    """A Gazebo like Harmonic's with its window.

    Its stage: ``starts``: it has no handlers yet; ``up``: it has; ``ends``: it ends with code 3.
    It gives each part a patience [s]; the deaf part does not hear a SIGINT.
    """

    def make(stage="up", *, patience=PATIENCE, deaf="none"):
        script = tmp_path / "cmdsim.py"
        script.write_text(WINDOW)
        command = (sys.executable, str(script), str(tmp_path), stage, str(patience), deaf)
        return Host(tmp_path, *command, lasting=stage != "ends")

    return make


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_ctrl_c(one_group, number):
    with one_group() as host:
        host.process.send_signal(number)
        assert host.process.wait(PATIENCE) == 0
        assert host.gone()


def test_gazebo_that_does_not_listen(one_group):
    with one_group(stubborn=True) as host:
        for _ in range(3):  # impatience: each Ctrl-C goes on to the next signal
            host.process.send_signal(signal.SIGINT)
            time.sleep(subreaper.SAME_WISH + 0.1)
        assert host.process.wait(PATIENCE) == 0
        assert host.gone()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_window_and_server_end_in_the_order_of_gazebo(with_window, number):
    with with_window() as host:
        for _ in range(3):  # a terminal and a launch system may send the same twice
            host.process.send_signal(number)
            time.sleep(0.01)
        assert host.process.wait(PATIENCE) == 0
        assert host.gone()
        assert host.ended == ["gui", "server"]


def test_ctrl_c_while_the_window_starts(with_window):
    """The process above the two ends at once; they are asked to end, and do."""
    with with_window("starts") as host:
        host.process.send_signal(signal.SIGINT)
        assert host.process.wait(PATIENCE) == 0
        assert host.gone()
        assert sorted(host.ended) == ["gui", "server"]


def test_gazebo_that_ends_before_its_parts(with_window):
    with with_window("ends") as host:
        assert host.process.wait(PATIENCE) == 3
        assert host.gone()
        assert sorted(host.ended) == ["gui", "server"]


def test_gazebo_kills_a_part_after_its_own_patience(with_window):
    """The signal that ends all goes to the process above the two, which knows how long to wait."""
    with with_window(patience=1.0, deaf="gui") as host:
        host.process.send_signal(signal.SIGINT)
        assert host.process.wait(PATIENCE) == 0
        assert host.gone()
        assert host.ended == ["killed", "server"]


def test_who_ends_the_host_waits_as_long_as_gazebo_may_take():
    gazebo = 2 * subreaper.GZ_PATIENCE
    assert subreaper.STAGES[0] == (signal.SIGINT, pytest.approx(gazebo, abs=2.0))
    assert subreaper.STAGES[0][1] > gazebo
    assert sum(patience for _, patience in subreaper.STAGES) < subreaper.LONGEST < STOP_TIME


@pytest.mark.parametrize("group", [False, True], ids=["process", "group"])
def test_gazebo_ends_in_order_with_a_host_that_is_killed(with_window, group):
    with with_window() as host:
        (os.killpg if group else os.kill)(host.process.pid, signal.SIGKILL)
        host.process.wait(PATIENCE)
        wait_for(host.gone)
        assert host.ended == ["gui", "server"]


def test_gazebo_ends_with_a_subreaper_that_is_killed(with_window):
    with with_window() as host:
        os.kill(host.subreaper, signal.SIGKILL)
        assert host.process.wait(PATIENCE) == 128 + signal.SIGKILL
        wait_for(host.gone)


def test_descendants_are_found_in_whatever_session_and_under_whatever_title():
    script = (
        "import subprocess, sys\n"
        "one = subprocess.Popen(['a title ) 1 2', '-c', 'input()'], executable=sys.executable,\n"
        "                       stdin=sys.stdin, start_new_session=True)\n"
        "print(one.pid, flush=True)\n"
        "one.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        child = int(process.stdout.readline())
        assert descendants(process.pid) == [child]
        assert descendants(os.getpid())[-1] == child
        process.stdin.close()
    assert child not in descendants(os.getpid())


def test_program_that_is_missing_is_told(tmp_path):
    missing = str(tmp_path / "gz")
    command = [sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), missing]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 127
    assert result.stderr == f"cannot start {missing}: No such file or directory\n"
