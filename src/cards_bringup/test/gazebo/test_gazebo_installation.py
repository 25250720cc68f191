"""What is missing of Gazebo is found, named, and comes with the way to get it."""

import sys
from pathlib import Path

import pytest

from cards_bringup import doctor
from cards_bringup.gazebo import installation
from cards_bringup.gazebo.installation import EmbeddedPython, examine, problem, python_environment


def parts(findings):
    return {finding.part: finding for finding in findings}


def test_complete_installation(fake_gazebo):
    gazebo, findings = examine()
    assert problem(findings) == ""
    assert {finding.status for finding in findings} == {"OK"}
    assert gazebo.title == "Gazebo Jetty 10.4.0"
    assert gazebo.loader == fake_gazebo.loader
    assert gazebo.python.version == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert str(fake_gazebo.prefix / "lib" / "python") in gazebo.python_path
    assert str(fake_gazebo.prefix / "plugin") in gazebo.python_path


def test_doctor_prints_the_same(fake_gazebo):
    assert list(doctor.check_gazebo()) == examine()[1]


def test_no_gazebo(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    gazebo, (found,) = examine()
    assert gazebo is None
    assert found.status == "WARN"
    assert "0.0.13" in found.fix
    assert "python3-gz-sim8" in problem([found])


def test_gz_without_sim(fake_gazebo):
    fake_gazebo.program("gz", "echo 'unknown command sim' >&2; exit 1")
    gazebo, (found,) = examine()
    assert gazebo is None
    assert "has no `sim`: unknown command" in found.text


def test_gazebo_that_is_too_old(fake_gazebo):
    fake_gazebo.simulate("", version="7.5.0")
    assert "7.5.0 is too old" in examine()[1][-1].text


def test_newest_of_several_versions_counts(fake_gazebo):
    fake_gazebo.simulate("", version="'8.14.0\n10.4.0\n9.5.0'")
    assert "gz sim 10.4.0" in examine()[1][0].text


def test_harmonic_has_numbers_in_its_names(fake_gazebo):
    fake_gazebo.simulate("", version="8.14.0")
    _, findings = examine()
    assert parts(findings)["Gazebo loader"].text.endswith("of gz sim 8 not found")
    fake_gazebo.write(f"lib/gz-sim-8/plugins/{installation.LOADER}", "")
    _, findings = examine()
    assert "gz.sim8" in parts(findings)["Gazebo bindings"].text  # not gz.sim, which is there
    fake_gazebo.harmonic()
    gazebo, _ = examine()
    assert gazebo.title == "Gazebo Harmonic 8.14.0"


def test_missing_loader(fake_gazebo):
    fake_gazebo.loader.unlink()
    gazebo, findings = examine()
    assert gazebo is None
    assert findings[-1].part == "Gazebo loader"
    assert "gz-sim-vendor >= 0.0.13" in findings[-1].fix


def test_loader_is_found_where_gazebo_looks(fake_gazebo, monkeypatch, tmp_path):
    fake_gazebo.loader.unlink()
    own = tmp_path / "own" / installation.LOADER
    own.parent.mkdir()
    own.touch()
    monkeypatch.setenv("GZ_SIM_SYSTEM_PLUGIN_PATH", f"/nowhere:{own.parent}")
    assert installation.find_loader(fake_gazebo.prefix / "bin" / "gz", 10) == own


def test_missing_bindings(fake_gazebo):
    (fake_gazebo.prefix / "lib/python/gz/sim/__init__.py").write_text("import no_such_binding")
    gazebo, findings = examine()
    assert gazebo is None
    assert findings[-1].part == "Gazebo bindings"
    assert "no_such_binding" in findings[-1].text
    assert "python3-gz-sim8" in findings[-1].fix


@pytest.mark.parametrize(("harmonic", "name"), [(False, "sdformat"), (True, "sdformat14")])
def test_missing_bindings_of_sdformat(fake_gazebo, harmonic, name):
    """Gazebo's loader imports them before our system, and leaves our system out without them."""
    if harmonic:
        fake_gazebo.harmonic()
    (fake_gazebo.prefix / f"lib/python/{name}/__init__.py").unlink()
    (fake_gazebo.prefix / f"lib/python/{name}").rmdir()
    gazebo, findings = examine()
    assert gazebo is None
    assert findings[-1].part == "Gazebo bindings"
    assert f"No module named '{name}'" in findings[-1].text
    assert "python3-sdformat14" in findings[-1].fix


def test_python_that_is_not_there(fake_gazebo):
    fake_gazebo.python("3.12", "/nowhere")
    assert examine()[1][-1].part == "Gazebo Python"


def test_another_python_than_ours(fake_gazebo):
    """Its minor version differs, so the packages of this environment are of no use to it."""
    home = fake_gazebo.prefix / "home"
    fake_gazebo.write(
        "home/bin/python3.99",
        '#!/bin/sh\ncase "$*" in *numpy*) echo "No module named \'numpy\'" >&2; exit 1;; esac',
        0o755,
    )
    fake_gazebo.python("3.99", home)
    gazebo, findings = examine()
    assert gazebo is None
    found = findings[-1]
    assert found.part == "Gazebo packages"
    assert "Python 3.99" in found.text
    assert "No module named 'numpy'" in found.text
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in found.text
    assert "./cards setup --recreate" in found.fix


def test_plugin_that_does_not_load(fake_gazebo):
    fake_gazebo.write("plugin/cards_muscle_plugin/system.py", "raise ImportError('broken')")
    gazebo, findings = examine()
    assert gazebo is None
    assert findings[-1].part == "muscle plugin"
    assert "broken" in findings[-1].text


def test_embedded_python_is_told_where_its_library_is():
    """Else it looks beside the first ``python3`` on PATH, which may be of another version."""
    python = EmbeddedPython("3.12", Path("/usr"))
    given = {"PYTHONPATH": "/ros:/ours", "HOME": "/home"}
    env = python_environment(python, ["/ours", "/other"], given)
    assert env == {"PYTHONHOME": "/usr", "PYTHONPATH": "/ours:/other:/ros", "HOME": "/home"}
