"""The doctor sees what is wrong, says what to do, and does not fall ill itself."""

import importlib.util
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cards_bringup import cli, doctor, findings
from cards_bringup.findings import Finding, shadowing

pytestmark = pytest.mark.serial

TOP = Path(__file__).resolve().parents[3]

HERE = doctor.Installation(TOP)
PIP = doctor.Installation(by_pip=True)


def only(findings):
    (one,) = list(findings)
    return one


def program(folder, name, text):
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_compiler_that_works():
    if doctor.run(["cc", "--version"]).ok is False:
        pytest.skip("no C compiler on this machine")
    assert only(doctor.check_compiler(HERE)).status == "OK"


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    found = only(doctor.check_compiler(HERE))
    assert found.status == "WARN"
    assert "apt install gcc" in found.fix


def test_compiler_that_fails(monkeypatch, tmp_path):
    broken = program(tmp_path, "broken-cc", "echo 'fatal: no crt1.o' >&2; exit 1")
    monkeypatch.setenv("CC", str(broken))
    found = only(doctor.check_compiler(HERE))
    assert found.status == "WARN"
    assert "no crt1.o" in found.text


def test_compiler_whose_output_is_no_library(monkeypatch, tmp_path):
    lazy = program(tmp_path, "lazy-cc", 'for last; do :; done; echo text > "$last"')
    monkeypatch.setenv("CC", str(lazy))
    found = only(doctor.check_compiler(HERE))
    assert found.status == "WARN"
    assert "cannot be loaded" in found.text


def test_cache_that_can_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    assert only(doctor.check_cache(HERE)).status == "OK"


def test_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "file" / "cache"))
    found = only(doctor.check_cache(HERE))
    assert found.status == "WARN"
    assert "CARDS_CACHE" in found.fix


def test_port_in_use(monkeypatch):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setattr(doctor, "VIEW_PORT", server.getsockname()[1])
        port = next(doctor.check_ports())
    assert port.status == "WARN"
    assert "in use" in port.text


def test_serial_port_without_permission(monkeypatch, tmp_path):
    port = tmp_path / "ttyACM0"
    port.touch()
    monkeypatch.setattr(doctor, "SERIAL_PATTERNS", (f"{tmp_path}/ttyACM*",))
    assert only(doctor.check_serial_ports()) == Finding("serial ports", "OK", str(port))
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    found = only(doctor.check_serial_ports())
    assert found.status == "WARN"
    assert "dialout" in found.fix


def test_no_serial_port(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SERIAL_PATTERNS", (f"{tmp_path}/*",))
    monkeypatch.setattr(doctor, "_may_open_ports", lambda: False)
    found = only(doctor.check_serial_ports())
    assert found.status == "OK"  # who has no robot needs no permission
    assert "usermod -aG dialout" in found.text


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (doctor.check_cross_compiler, doctor.CROSS_COMPILER),
        (doctor.check_emulator, doctor.QEMU),
    ],
)
def test_tools_of_the_firmware(monkeypatch, tmp_path, check, name):
    if doctor.shutil.which(name) is not None:
        assert only(check()).status == "OK"
    monkeypatch.setenv("PATH", str(tmp_path))
    found = only(check())
    assert found.status == "WARN"
    assert "apt install" in found.fix
    program(tmp_path, name, "echo 'no such library' >&2; exit 1")
    found = only(check())
    assert found.status == "WARN"
    assert "no such library" in found.text


def test_qemu_without_the_board(monkeypatch, tmp_path):
    program(tmp_path, doctor.QEMU, "echo virt")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "has no machine netduinoplus2" in only(doctor.check_emulator()).text


def test_one_core(monkeypatch):
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda _: {0})
    assert next(doctor.check_size()).status == "WARN"


def test_little_memory(monkeypatch):
    monkeypatch.setattr(doctor, "_available_memory", lambda: 0.5)
    assert list(doctor.check_size())[-1].status == "WARN"


def test_package_that_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "MODULES", {"no-such-package": "nothing"})
    found = only(doctor.check_packages(HERE))
    assert found == Finding("no-such-package", "FAIL", "not installed", "./cards setup")


def test_package_that_cannot_be_imported(monkeypatch):
    monkeypatch.setattr(doctor, "MODULES", {"numpy": "numpy.no_such_module"})
    found = only(doctor.check_packages(HERE))
    assert found.status == "FAIL"
    assert "cannot be imported" in found.text


def test_a_library_of_another_program_in_the_place_of_ours(monkeypatch, tmp_path):
    """As after ``import opensim``, whose folder with a CasADi is then on LD_LIBRARY_PATH."""
    folder = Path(importlib.util.find_spec("casadi").origin).parent
    (name,) = {item.name for item in folder.glob("libcasadi.so.*.*")}
    source = tmp_path / "stand_in.c"
    source.write_text("int stand_in;\n")
    made = tmp_path / name
    command = ["cc", "-shared", "-fPIC", str(source), "-o", str(made), f"-Wl,-soname,{name}"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folder}:{tmp_path}")
    assert shadowing(folder) == [str(made)]
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))  # what is built needs no CasADi
    monkeypatch.setattr(doctor, "MODULES", {"casadi": "casadi"})
    found = only(doctor.check_packages(HERE))
    assert found.status == "FAIL"
    assert found.fix == (f"unset LD_LIBRARY_PATH: it puts another program's {made} in their place")
    (simulator,) = doctor.check_dynamics(HERE)
    assert simulator.fix == found.fix
    script = "from cards_bringup.cli import main; raise SystemExit(main(['eval', 'planar_2r']))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"error: LD_LIBRARY_PATH puts another program's {made} in the place of ours: "
    )
    assert done.stderr.count("\n") == 1


def test_package_of_another_version(monkeypatch):
    monkeypatch.setattr(doctor, "MODULES", {"numpy": "numpy"})
    monkeypatch.setattr(doctor, "pinned", lambda _: {"numpy": "1.0"})
    found = only(doctor.check_packages(HERE))
    assert found.status == "WARN"
    assert "tested with 1.0" in found.text


def test_simulator_makes_a_step():
    found = only(doctor.check_dynamics(HERE))
    assert found.status == "OK", found.text


def test_simulator_that_fails_is_named():
    found = only(doctor.check_dynamics(HERE, "no_such_robot"))
    assert found.status == "FAIL"
    assert "no_such_robot" in found.text


@pytest.mark.ros
def test_message_comes_back():
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    found = next(doctor.check_ros(HERE))
    assert found.status == "OK", found.text
    assert "message came back" in found.text


def test_ros_that_cannot_be_imported(monkeypatch):
    monkeypatch.setattr(doctor, "LOOPBACK", "import no_such_rclpy")
    found = next(doctor.check_ros(HERE))
    assert found.status == "FAIL"
    assert "no_such_rclpy" in found.text
    assert "--no-ros" in found.fix


def test_pip_installed_it_without_ros(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    found = only(doctor.check_ros(PIP))
    assert (found.status, found.fix) == ("WARN", "pip install 'cards-robotics[ros]'")
    # where ./cards made the environment, ROS belongs to it
    monkeypatch.setattr(doctor, "LOOPBACK", "import no_such_rclpy")
    assert next(doctor.check_ros(HERE)).status == "FAIL"


@pytest.mark.parametrize(
    ("record", "by"),
    [("cards_robotics-0.2.0.dist-info", "pip"), ("numpy-2.0.dist-info", "colcon")],
)
def test_who_installed_it(monkeypatch, tmp_path, record, by):
    (tmp_path / record).mkdir()
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "cards_bringup" / "doctor.py"))
    here = doctor.Installation.of(None)
    assert only(doctor.check_environment(here)).text.startswith(f"installed by {by}")
    assert doctor.Installation.of(TOP) == HERE


def test_what_mends_a_package(monkeypatch):
    monkeypatch.setattr(doctor, "MODULES", {"viser": "nothing_like_it"})
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda _: "1.0")
    fix = "pip install --force-reinstall 'cards-robotics[view]'"
    assert only(doctor.check_packages(PIP)).fix == fix
    assert only(doctor.check_packages(HERE)).fix == "./cards setup --recreate"
    assert "Python of ROS 2" in only(doctor.check_packages(doctor.Installation())).fix


def test_domain_out_of_range(monkeypatch):
    monkeypatch.setattr(doctor, "LOOPBACK", "print('rmw_x'); print('/folder')")
    monkeypatch.setenv("ROS_DOMAIN_ID", "200")
    assert [f.status for f in doctor.check_ros(HERE)] == ["OK", "WARN"]


def test_probe_that_hangs_or_crashes():
    slow = findings.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5)
    assert not slow.ok
    assert "no answer" in slow.text
    crash = findings.run([sys.executable, "-c", "import os; os.abort()"])
    assert not crash.ok
    assert "signal 6" in crash.text
    assert not findings.run(["no-such-program-anywhere"]).ok


@pytest.mark.parametrize(("status", "code"), [("OK", 0), ("WARN", 0), ("FAIL", 1)])
def test_exit_code_and_json(monkeypatch, capsys, status, code):
    one = Finding("part", status, "text", "a fix")
    monkeypatch.setattr(doctor, "examine", lambda _: iter([one]))
    assert cli.main(["doctor", "--json"]) == code
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is (code == 0)
    assert printed["findings"] == [
        {"part": "part", "status": status, "text": "text", "fix": "a fix"}
    ]
    assert cli.main(["doctor"]) == code
    out = capsys.readouterr().out
    assert f"{status.ljust(4)}  part" in out
    assert "-> a fix" in out
