"""The process that starts Gazebo: what Gazebo gets, and that nothing stays behind."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cards_bringup.gazebo import simulator
from cards_bringup.resources import share_folder

WAIT = 20.0  # [s], for processes to start or end


def run(*arguments):
    return simulator.main(["--ros-args", "-p", "model:=planar_2r", *arguments])


def wait_for(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # a zombie has ended; nobody here is its parent
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_what_gazebo_is_started_with(fake_gazebo, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", "/mine")
    assert run("-p", "headless:=true", "-r", "__ns:=/left") == 0
    arguments = fake_gazebo.arguments
    assert arguments[:2] == ["sim", "-r"]
    assert {"-s", "--wait-for-assets"} <= set(arguments)
    env = fake_gazebo.environment
    assert env["PYTHONHOME"] == sys.base_prefix
    assert str(fake_gazebo.prefix / "lib/python") in env["PYTHONPATH"].split(":")
    resources = env["GZ_SIM_RESOURCE_PATH"].split(":")
    assert {str(share_folder() / "models"), str(share_folder() / "worlds")} <= set(resources)
    assert resources[-1] == "/mine"
    assert env["CARDS_CACHE"] == str(tmp_path / "cache")
    assert env["GZ_PARTITION"] == f"cards-{os.getpid()}"
    assert env["GZ_IP"] == "127.0.0.1"
    ros = shlex.split(env["CARDS_GAZEBO_ROS_ARGS"])
    assert ros[:3] == ["--ros-args", "-r", "__ns:=/left"]
    assert "planar_2r" in capfd.readouterr().out


def test_parameters_of_the_plugin(fake_gazebo):
    """It reads them from the file it is told, whatever the namespace of its node."""
    fake_gazebo.simulate(
        f"for last in $CARDS_GAZEBO_ROS_ARGS; do :; done; cat $last > {fake_gazebo.prefix}/p"
    )
    file = share_folder() / "config" / "planar_2r.yaml"
    more = ["--params-file", str(file), "-p", "log_dir:=''", "-p", "world:=empty"]
    assert run(*more, "-p", "mode:=lockstep", "-p", "duration:=2.5") == 0
    given = yaml.safe_load((fake_gazebo.prefix / "p").read_text())
    values = given["/**"]["ros__parameters"]
    assert values["mode"] == "lockstep"
    assert values["duration"] == 2.5
    assert values["initial_positions"] == [-0.5, 0.5]
    assert not {"world", "headless", "model"} & set(values)


@pytest.mark.parametrize(
    ("mode", "speed", "factor"),
    [("realtime", "1.0", 1.0), ("realtime", "0.5", 0.5), ("lockstep", "1.0", 0.0)],
)
def test_speed(fake_gazebo, mode, speed, factor):
    assert run("-p", f"mode:={mode}", "-p", f"speed:={speed}", "-p", "dt:=0.002") == 0
    text = fake_gazebo.seen.read_text()
    assert f"<real_time_factor>{factor}</real_time_factor>" in text
    assert "<max_step_size>0.002</max_step_size>" in text


def test_window_only_where_there_is_a_display(fake_gazebo, monkeypatch):
    assert run() == 0
    assert "-s" in fake_gazebo.arguments
    monkeypatch.setenv("DISPLAY", ":99")
    assert run() == 0
    assert "-s" not in fake_gazebo.arguments


def test_harmonic_has_nothing_to_wait_for(fake_gazebo):
    """It loads all models before time begins, and does not know the option."""
    fake_gazebo.harmonic()
    assert run() == 0
    assert "--wait-for-assets" not in fake_gazebo.arguments


def test_partition_of_the_user_stays(fake_gazebo, monkeypatch):
    monkeypatch.setenv("GZ_PARTITION", "mine")
    assert run() == 0
    assert fake_gazebo.environment["GZ_PARTITION"] == "mine"


def test_muscles_are_compiled_before_gazebo_starts(fake_gazebo, monkeypatch, tmp_path):
    from cards_core.codegen.toolchain import find_compiler

    if find_compiler() is None:
        pytest.skip("no C compiler on this machine")
    cache = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(cache))
    fake_gazebo.simulate('ls "$CARDS_CACHE"/*/model.so || exit 9')
    assert run() == 0


def test_exit_code_is_gazebo_s(fake_gazebo, capfd):
    fake_gazebo.simulate("exit 3")
    assert run() == 3
    fake_gazebo.simulate("kill -SEGV $$")
    assert run() == 128 + signal.SIGSEGV
    assert "SIGSEGV" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "world:=no_such_world"], "two_arms"),
        (["-p", "model:=no_such_robot"], "roboy_arm"),
        (["-p", "dt:=-1.0"], "dt"),
        (["-p", "world:=two_arms", "-r", "__ns:=/left"], "2 robots"),
    ],
)
def test_mistakes_are_told_in_one_line(fake_gazebo, capfd, arguments, message):
    assert run(*arguments) == 2
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not fake_gazebo.seen.exists()


def test_missing_gazebo_is_told_with_the_fix(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run() == 2
    assert "ros-jazzy-gz-sim-vendor >= 0.0.13" in capfd.readouterr().err


class Host:
    """The host in a process of its own, with a Gazebo that has a child, as one with a window."""

    def __init__(self, fake, folder, *, stubborn=False):
        self.pids = folder / "pids"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        ignore = "trap '' INT TERM; " if stubborn else ""
        fake.simulate(
            f"{ignore}sleep 100 & echo $$ $! > {self.pids}.new; mv {self.pids}.new {self.pids}\n"
            "wait; wait"
        )
        script = "import sys; from cards_bringup.gazebo.simulator import main; sys.exit(main())"
        command = [sys.executable, "-c", script, "--ros-args", "-p", "model:=planar_2r"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            start_new_session=True,
        )

    def __enter__(self):
        wait_for(lambda: self.pids.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.stdout.read()
        self.children = [int(number) for number in self.pids.read_text().split()]
        assert all(map(is_running, self.children))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for child in self.children:
            if is_running(child):
                os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
class TestNothingStaysBehind:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_after_ctrl_c(self, fake_gazebo, tmp_path, number):
        with Host(fake_gazebo, tmp_path) as host:
            host.process.send_signal(number)
            assert host.process.wait(WAIT) == 0
            wait_for(lambda: not any(map(is_running, host.children)))
            assert not list(host.temporary.glob("cards-world-*"))

    def test_gazebo_that_does_not_listen(self, fake_gazebo, tmp_path):
        with Host(fake_gazebo, tmp_path, stubborn=True) as host:
            for _ in range(3):  # impatience: each Ctrl-C goes on to the next signal
                host.process.send_signal(signal.SIGINT)
                time.sleep(0.3)
            assert host.process.wait(WAIT) == 0
            wait_for(lambda: not any(map(is_running, host.children)))

    def test_gazebo_ends_with_the_host(self, fake_gazebo, tmp_path):
        with Host(fake_gazebo, tmp_path) as host:
            host.process.kill()
            wait_for(lambda: not is_running(host.children[0]))
