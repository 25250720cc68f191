"""Which ROS an environment is made for, and that two never mix."""

import os
import platform
import sys

import pytest

from cards_bringup.bootstrap import environment as environment_module
from cards_bringup.bootstrap import ros
from cards_bringup.bootstrap.environment import Environment
from cards_bringup.bootstrap.reporting import SetupError

SOURCED = {"ROS_DISTRO": "jazzy", "ROS_VERSION": "2", "AMENT_PREFIX_PATH": "/opt/ros/jazzy"}


def fake_ros(folder, *, broken=False, wheel=False):
    """Make a folder with a package rclpy, as a sourced ROS has on PYTHONPATH."""
    (folder / "rclpy").mkdir(parents=True)
    text = "raise ImportError('librcl.so: no such file')\n" if broken else ""
    (folder / "rclpy" / "__init__.py").write_text(text)
    if wheel:
        (folder / "ros_rclpy-7.1.6.dist-info").mkdir()
    return {**SOURCED, "PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="wheels are for x86_64 Linux"
)
def test_plain_shell_means_wheels():
    assert ros.in_shell({}) == ros.WHEELS


def test_sourced_shell_means_that_ros():
    assert ros.in_shell(SOURCED) == "sourced:jazzy"


def test_name_of_a_distribution_alone_is_no_sourced_ros():
    assert not ros.in_shell({"ROS_DISTRO": "jazzy"}).startswith(ros.SOURCED)


def test_ros_1_is_refused():
    with pytest.raises(SetupError, match="ROS 1 is sourced"):
        ros.in_shell({"ROS_DISTRO": "noetic", "ROS_VERSION": "1"})


def test_machine_without_wheels(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert ros.in_shell({}) == ros.NONE
    assert "ros" not in Environment(environment_module.Path("/x"), ros.NONE).sets()


def test_sourced_ros_that_python_can_import(tmp_path):
    ros.check_source("sourced:jazzy", fake_ros(tmp_path / "ros"), sys.executable)


def test_sourced_ros_of_another_python(tmp_path):
    env = fake_ros(tmp_path / "ros", broken=True)
    with pytest.raises(SetupError, match=r"cannot import its rclpy .*librcl\.so.*python3 ./cards"):
        ros.check_source("sourced:jazzy", env, sys.executable)


def test_sourced_ros_hidden_by_a_wheel(tmp_path):
    env = fake_ros(tmp_path / "ros", wheel=True)
    with pytest.raises(SetupError, match="pip uninstall ros-rclpy"):
        ros.check_source("sourced:jazzy", env, sys.executable)


def test_stray_rclpy_on_the_path(tmp_path):
    env = fake_ros(tmp_path / "ros")
    del env["ROS_DISTRO"]
    with pytest.raises(SetupError, match="unset PYTHONPATH"):
        ros.check_source(ros.WHEELS, env, sys.executable)


@pytest.mark.parametrize(
    ("made_for", "kind", "expected"),
    [
        (ros.WHEELS, "sourced:jazzy", "ROS 2 jazzy is sourced, but .* made with the ROS wheels"),
        ("sourced:jazzy", ros.WHEELS, r"no ROS 2 is sourced .*source /opt/ros/jazzy/setup\.bash"),
        ("sourced:jazzy", "sourced:lyrical", "ROS 2 lyrical is sourced, .* made for ROS 2 jazzy"),
    ],
)
def test_environment_for_another_ros_is_refused(tmp_path, made_for, kind, expected):
    with pytest.raises(SetupError, match=expected) as caught:
        ros.check_same(made_for, kind, tmp_path)
    assert "./cards setup --recreate" in str(caught.value)


def test_environment_refuses_when_the_shell_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(environment_module, "VENV_OPTIONS", ("--without-pip",))
    monkeypatch.setattr(environment_module, "install", lambda *_: None)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("CARDS_VENV", raising=False)
    (tmp_path / "requirements").mkdir()
    for name in ("runtime", "ros"):
        (tmp_path / "requirements" / f"{name}.txt").write_text("")
    made = Environment(tmp_path, ros.WHEELS)
    made.ensure(made.sets())
    for name, value in fake_ros(tmp_path / "ros").items():
        monkeypatch.setenv(name, value)
    sourced = Environment(tmp_path, ros.in_shell(os.environ))
    with pytest.raises(SetupError, match="two rclpy must not mix"):
        sourced.ensure(sourced.sets())
    sourced.remove()
    sourced.ensure(sourced.sets())
    assert "include-system-site-packages = true" in (sourced.path / "pyvenv.cfg").read_text()


def test_sourced_ros_installs_no_wheels(tmp_path):
    assert Environment(tmp_path, "sourced:jazzy").sets(test=True) == [
        "runtime",
        "cad",
        "docs",
        "test",
    ]
    assert Environment(tmp_path, ros.WHEELS).sets(test=True) == [
        "runtime",
        "ros",
        "cad",
        "docs",
        "test",
    ]


def test_what_reads_cad_files_is_installed_for_it(tmp_path):
    assert Environment(tmp_path, "sourced:jazzy").sets(cad=True) == ["runtime", "cad"]
    assert Environment(tmp_path, "sourced:jazzy").sets(docs=True) == ["runtime", "docs"]


def test_library_path_of_other_wheels_is_dropped():
    env = ros.process_environment(
        ros.WHEELS,
        {
            ros.WHEEL_GUARD: "1",
            "LD_LIBRARY_PATH": "/v/lib/python3.11/site-packages/ros_rcl.libs:/opt/mine/lib",
        },
    )
    assert ros.WHEEL_GUARD not in env
    assert env["LD_LIBRARY_PATH"] == "/opt/mine/lib"


def test_library_path_of_the_user_is_kept():
    env = ros.process_environment(ros.WHEELS, {"LD_LIBRARY_PATH": "/opt/mine/lib"})
    assert env["LD_LIBRARY_PATH"] == "/opt/mine/lib"


def test_other_rmw_cannot_be_meant_for_wheels(capsys):
    env = {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}
    assert ros.process_environment(ros.WHEELS, env)["RMW_IMPLEMENTATION"] == "rmw_fastrtps_cpp"
    assert "rmw_cyclonedds_cpp" in capsys.readouterr().err
    sourced = ros.process_environment("sourced:jazzy", env)
    assert sourced["RMW_IMPLEMENTATION"] == "rmw_cyclonedds_cpp"
