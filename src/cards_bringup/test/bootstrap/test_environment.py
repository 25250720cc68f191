"""The virtual environment: made, found, repaired, refused. Nothing is fetched from anywhere."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from cards_bringup.bootstrap import environment as environment_module
from cards_bringup.bootstrap import install, ros
from cards_bringup.bootstrap.environment import PATH_FILE, STAMP, Environment
from cards_bringup.bootstrap.reporting import SetupError

pytestmark = pytest.mark.serial

TOP = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def clean_shell(monkeypatch):
    for name in ("ROS_DISTRO", "AMENT_PREFIX_PATH", "PYTHONPATH", "CARDS_VENV"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def checkout(tmp_path):
    top = tmp_path / "check out"
    package = top / "src" / "toy_package"
    (package / "toy_package").mkdir(parents=True)
    (package / "setup.py").write_text("")
    (package / "toy_package" / "__init__.py").write_text("VALUE = 7\n")
    (top / "requirements").mkdir()
    for name in ("runtime", "ros", "cad", "docs", "test"):
        (top / "requirements" / f"{name}.txt").write_text("# nothing\n")
    return top


@pytest.fixture
def without_pip(monkeypatch):
    """Make environments quickly; for tests that install nothing."""
    monkeypatch.setattr(environment_module, "VENV_OPTIONS", ("--without-pip",))
    monkeypatch.setattr(environment_module, "install", lambda *_: None)


def make_wheel(folder, name, version="1.0", content="VALUE = 1\n"):
    """Write a wheel with one module."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", content)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def output_of(environment, script):
    env = {k: v for k, v in os.environ.items() if not k.startswith("_ROS_WHEELS")}
    return subprocess.run(
        [str(environment.python), "-P", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=env,
        timeout=60,
    ).stdout.strip()


def test_packages_of_the_checkout_are_on_the_path(checkout, without_pip):
    environment = Environment(checkout, ros.NONE)
    assert environment.ensure(environment.sets())
    assert output_of(environment, "import toy_package; print(toy_package.VALUE)") == "7"


def test_second_run_has_nothing_to_do(checkout, without_pip):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])
    assert environment.is_ready(["runtime"])
    assert not environment.ensure(["runtime"])


def test_new_package_in_the_checkout_is_found(checkout, without_pip):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])
    (checkout / "src" / "another").mkdir()
    (checkout / "src" / "another" / "setup.py").write_text("")
    assert not environment.is_ready(["runtime"])
    environment.ensure(["runtime"])
    file = next(environment.path.glob(f"lib/python3*/site-packages/{PATH_FILE}"))
    assert str(checkout / "src" / "another") in file.read_text().splitlines()


def test_changed_requirements_are_installed_into_what_is_there(checkout, without_pip):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])
    kept = environment.path / "kept"
    kept.touch()
    (checkout / "requirements" / "runtime.txt").write_text("# something else\n")
    assert not environment.is_ready(["runtime"])
    assert environment.ensure(["runtime"])
    assert environment.is_ready(["runtime"])
    assert kept.exists()


def test_interrupted_installation_is_made_anew(checkout, without_pip, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    environment = Environment(checkout, ros.NONE)
    with monkeypatch.context() as patch:
        patch.setattr(environment_module, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            environment.ensure(["runtime"])
    assert not environment.is_ready(["runtime"])
    leftover = environment.path / "leftover"
    leftover.touch()
    assert environment.ensure(["runtime"])
    assert environment.is_ready(["runtime"])
    assert not leftover.exists()


@pytest.mark.parametrize("damage", ["stamp", "python"])
def test_damaged_environment_is_made_anew(checkout, without_pip, damage):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])
    if damage == "stamp":
        (environment.path / STAMP).write_text("{half")
    else:
        environment.python.unlink()
    assert not environment.is_ready(["runtime"])
    environment.ensure(["runtime"])
    assert environment.is_ready(["runtime"])


def test_moved_checkout_gets_a_new_environment(checkout, without_pip):
    Environment(checkout, ros.NONE).ensure(["runtime"])
    moved = checkout.rename(checkout.with_name("moved"))
    environment = Environment(moved, ros.NONE)
    assert not environment.is_ready(["runtime"])
    environment.ensure(["runtime"])
    assert str(moved) in output_of(environment, "import toy_package; print(toy_package.__file__)")


def test_environment_of_somebody_else_is_left_alone(checkout):
    foreign = checkout / ".venv"
    foreign.mkdir()
    (foreign / "pyvenv.cfg").write_text("home = /usr/bin\n")
    environment = Environment(checkout, ros.NONE)
    with pytest.raises(SetupError, match="was not made by"):
        environment.ensure(["runtime"])
    with pytest.raises(SetupError, match="was not made by"):
        environment.remove()
    assert [file.name for file in foreign.iterdir()] == ["pyvenv.cfg"]


def test_what_is_behind_a_link_is_left_alone(checkout, without_pip):
    other = Environment(checkout, ros.NONE)
    other.ensure(["runtime"])
    second = checkout.with_name("second")
    shutil.copytree(checkout / "requirements", second / "requirements")
    (second / ".venv").symlink_to(other.path)
    environment = Environment(second, ros.NONE)
    with pytest.raises(SetupError, match="is a link; remove it, and let CARDS_VENV name"):
        environment.ensure(["runtime"])
    with pytest.raises(SetupError, match="is a link"):
        environment.remove()
    assert other.is_ready(["runtime"])


def test_interrupted_removal_is_finished(checkout, without_pip, monkeypatch):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environment_module.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            environment.remove()
    assert not environment.is_ready(["runtime"])
    environment.remove()
    assert not environment.path.exists()


def test_full_disk_is_noticed_before_anything_is_written(checkout, monkeypatch):
    monkeypatch.setattr(
        environment_module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**8})
    )
    environment = Environment(checkout, ros.NONE)
    with pytest.raises(SetupError, match=r"has 0\.1 GB free and 1\.3 GB are needed"):
        environment.ensure(["runtime"])
    assert not environment.path.exists()


def test_folder_can_be_chosen(checkout, without_pip, monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_VENV", str(tmp_path / "else where"))
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime"])
    assert environment.python.is_relative_to(tmp_path / "else where")
    assert not (checkout / ".venv").exists()


def test_two_runs_at_once_install_once(checkout, tmp_path):
    log = tmp_path / "log"
    script = tmp_path / "setup_one.py"
    script.write_text(
        textwrap.dedent(f"""
            import sys, time
            sys.path.insert(0, {str(TOP / "src/cards_bringup")!r})
            from pathlib import Path
            from cards_bringup.bootstrap import environment
            def slow(*_):
                with open({str(log)!r}, "a") as file:
                    file.write("begin\\n")
                time.sleep(1.0)
                with open({str(log)!r}, "a") as file:
                    file.write("end\\n")
            environment.install = slow
            environment.VENV_OPTIONS = ("--without-pip",)
            one = environment.Environment(Path({str(checkout)!r}), "none")
            print(one.ensure(["runtime"]))
        """)
    )
    runs = [
        subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    results = [run.communicate(timeout=60)[0].strip() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert sorted(results) == ["False", "False", "True"]
    assert log.read_text().splitlines() == ["begin", "end"]


def test_lock_outlives_a_killed_run_while_its_installer_works(checkout, tmp_path):
    """The orphaned installer still writes, so nobody else may."""
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(f"""
            import os, signal, subprocess, sys
            sys.path.insert(0, {str(TOP / "src/cards_bringup")!r})
            from pathlib import Path
            from cards_bringup.bootstrap import environment
            one = environment.Environment(Path({str(checkout)!r}), "none")
            with one._lock():
                subprocess.Popen(
                    [sys.executable, "-c", "import time; time.sleep(2)"],
                    close_fds=False, stdout=subprocess.DEVNULL, start_new_session=True,
                )
                os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    killed = subprocess.run([sys.executable, str(script)], check=False, timeout=60)
    assert killed.returncode == -9
    import fcntl

    with (checkout / ".venv.lock").open("r+") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(lock, fcntl.LOCK_EX)  # free when the installer is gone


@pytest.fixture(scope="module")
def real_environment(tmp_path_factory):
    """An environment with pip, which it borrows from the one the tests run in."""
    pip = pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("real") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "borrowed.pth").write_text(f"{Path(pip.__file__).parents[1]}\n")
    return folder


def requirements(tmp_path, name, *lines):
    file = tmp_path / f"{name}.txt"
    options = ["--no-index", f"--find-links {(tmp_path / 'wheels').as_uri()}"]
    file.write_text("\n".join([*options, *lines]) + "\n")
    return file


def test_install_puts_pinned_wheels_in_place(real_environment, tmp_path):
    make_wheel(tmp_path / "wheels", "toy_one")
    make_wheel(tmp_path / "wheels", "toy_two", content="import toy_one\nVALUE = 2\n")
    files = [
        requirements(tmp_path, "first", "toy_one==1.0  # a remark"),
        requirements(tmp_path, "second", "toy_two==1.0"),
    ]
    site = next(real_environment.glob("lib/python3*/site-packages"))
    python = real_environment / "bin" / "python"
    install.install(python, files, site, tmp_path / "install.log")
    assert (site / "toy_one.py").is_file()
    assert (site / "toy_two.py").is_file()


def test_install_of_what_the_index_lacks(real_environment, tmp_path):
    make_wheel(tmp_path / "wheels", "toy_one")
    file = requirements(tmp_path, "first", "no_such_toy==9.9")
    site = next(real_environment.glob("lib/python3*/site-packages"))
    with pytest.raises(SetupError, match="has no no_such_toy==9") as caught:
        install.install(real_environment / "bin" / "python", [file], site, tmp_path / "i.log")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "i-first.log") in str(caught.value)


def test_network_off(real_environment, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "runtime.txt"
    file.write_text("toy_package_nowhere==1.0\n")
    site = next(real_environment.glob("lib/python3*/site-packages"))
    with pytest.raises(SetupError, match="no connection to the package index") as caught:
        install.install(real_environment / "bin" / "python", [file], site, tmp_path / "i.log")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on "
            "device",
            "the disk is full",
        ),
        (
            "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, "
            "status=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3."
            "connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: "
            "[Errno -3] Temporary failure in name resolution')': /simple/numpy/\n"
            "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 (from "
            "versions: none)\nERROR: No matching distribution found for numpy==2.4.6",
            "no connection to the package index",
        ),
        (
            "connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: "
            "CERTIFICATE_VERIFY_FAILED] certificate verify failed",
            "certificate",
        ),
        (
            "connection broken by 'ProxyError('Cannot connect to proxy.', "
            "NewConnectionError('...'))'",
            "the proxy refused",
        ),
        ("ERROR: No matching distribution found for casadi==3.8.2", "has no casadi==3.8.2"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: "
            "'/x/y'",
            "may not write /x/y",
        ),
        ("ERROR: something new", "something new"),
        ("", "pip gave no reason"),
    ],
)
def test_causes_in_one_line(output, expected):
    text = install.explain(output)
    assert expected in text
    assert "\n" not in text


def test_loose_requirement_is_refused(tmp_path):
    file = tmp_path / "runtime.txt"
    file.write_text("numpy==2.4.6\nscipy>=1.0\n")
    with pytest.raises(SetupError, match=r"runtime\.txt:2: 'scipy>=1\.0' \(expected: name==ver"):
        install.pinned(file)


def test_no_package_is_required_twice():
    """Sets are installed at the same time, so they must not share a package."""
    seen = {}
    for name in ("runtime", "ros", "cad", "docs", "test"):
        for package in install.pinned(TOP / "requirements" / f"{name}.txt"):
            key = package.lower().replace("_", "-")
            assert key not in seen, f"{package} is in {seen.get(key)} and {name}"
            seen[key] = name
    assert seen["numpy"] == "runtime"
    assert seen["ros-rclpy"] == "ros"
    assert seen["pytest"] == "test"


def test_stamp_says_what_is_there(checkout, without_pip):
    environment = Environment(checkout, ros.NONE)
    environment.ensure(["runtime", "test"])
    stamp = json.loads((environment.path / STAMP).read_text())
    assert stamp["state"] == "complete"
    assert stamp["ros"] == "none"
    assert set(stamp["sets"]) == {"runtime", "test"}
