"""A Gazebo that is none: what `cards_bringup.gazebo` looks at, around a program of the test."""

import os
import sys
from pathlib import Path

import pytest

LDD = """\
echo "	libgz-sim.so => /nowhere/libgz-sim.so (0x1)"
echo "	libpython{version}.so.1.0 => {home}/lib/libpython{version}.so.1.0 (0x2)"
"""


class FakeGazebo:
    """Files of an installation, and the environment in which they are found."""

    def __init__(self, folder, monkeypatch):
        self.prefix = folder
        self.seen = folder / "seen.txt"
        self._monkeypatch = monkeypatch
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        self.loader = self.write(
            "lib/gz-sim-10/plugins/libgz-sim-python-system-loader-system.so", ""
        )
        for name in ("gz/sim", "gz/math", "gz/transport", "sdformat"):
            self.write(f"lib/python/{name}/__init__.py", "")
        self.write("plugin/cards_muscle_plugin/__init__.py", "")
        self.write("plugin/cards_muscle_plugin/system.py", "")
        self.python(version, sys.base_prefix)
        self.simulate("exit 0")
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        paths = [str(folder / "plugin"), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        monkeypatch.syspath_prepend(str(folder / "plugin"))
        for name in [m for m in sys.modules if m.split(".")[0] == "cards_muscle_plugin"]:
            monkeypatch.delitem(sys.modules, name)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "GZ_PARTITION", "GZ_SIM_SYSTEM_PLUGIN_PATH"):
            monkeypatch.delenv(name, raising=False)

    def write(self, name, text, mode=0o644):
        file = self.prefix / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def program(self, name, text):
        return self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n", 0o755)

    def python(self, version, home):
        """Let the loader be linked to this Python."""
        self.program("ldd", LDD.format(version=version, home=home))

    def harmonic(self):
        """Be a Gazebo whose version 8 is in the names of its parts."""
        self.simulate("exit 0", version="8.14.0")
        self.loader = self.loader.rename(
            self.write(f"lib/gz-sim-8/plugins/{self.loader.name}", "")
        )
        python = self.prefix / "lib" / "python"
        for name, number in (
            ("gz/sim", 8),
            ("gz/math", 7),
            ("gz/transport", 13),
            ("sdformat", 14),
        ):
            (python / name).rename(python / f"{name}{number}")

    def simulate(self, text, version="10.4.0"):
        """Let ``gz sim WORLD`` note its arguments, the world and its environment, then do this."""
        self.program(
            "gz",
            f'[ "$2" = --versions ] && {{ echo {version}; exit 0; }}\n'
            f'for last; do :; done\n{{ echo "$@"; env; cat "$last"; }} > {self.seen}.new\n'
            f"mv {self.seen}.new {self.seen}\n{text}",
        )

    @property
    def environment(self):
        """What ``gz sim`` was started with, by name."""
        lines = self.seen.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def arguments(self):
        """The arguments of ``gz``."""
        return self.seen.read_text().splitlines()[0].split()


@pytest.fixture
def fake_gazebo(tmp_path, monkeypatch):
    if not Path(
        sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"
    ).exists():
        pytest.skip(f"no interpreter in {sys.base_prefix}/bin")
    monkeypatch.delenv("PYTHONPATH", raising=False)  # bindings of a real Gazebo may be there
    yield FakeGazebo(tmp_path / "gazebo", monkeypatch)
    for name in [m for m in sys.modules if m.split(".")[0] == "cards_muscle_plugin"]:
        del sys.modules[name]  # its own


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Install packages of one module that offer something by entry points."""
    modules = []

    def install(module, source, group, entries):
        place = tmp_path / "packages"
        info = place / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (place / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{item}\n" for name, item in entries.items()]
        (info / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")
        monkeypatch.syspath_prepend(str(place))
        modules.append(module)

    yield install
    for module in modules:
        sys.modules.pop(module, None)
