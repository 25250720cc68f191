"""The installation of Gazebo: program, loader of Python systems, Python, bindings.

Gazebo embeds the Python it was built for, not the one in use here. Standard library only, and
nothing of Gazebo is imported in this process: the doctor reads this too.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cards_bringup.findings import Answer, Finding, run
from cards_ros import gazebo_bindings

LOADER = "libgz-sim-python-system-loader-system.so"
"""The Gazebo system that runs Python systems such as ours."""

OLDEST = 8
"""First major version whose bindings can do what the plugin needs (Harmonic)."""

RELEASES = {8: "Harmonic", 9: "Ionic", 10: "Jetty"}

PACKAGES = ("cards_core", "cards_ros", "cards_muscle_plugin")
"""Our packages that run inside Gazebo."""

ROD_PACKAGES = ("cards_viz", "cards_rods", "cards_rod_plugin")
"""Those that robots of rods need beyond them."""

PLUGIN = "cards_muscle_plugin.system"

GET = (
    "apt: ros-jazzy-gz-sim-vendor >= 0.0.13; or gz-harmonic with python3-gz-sim8, "
    "python3-gz-transport13 and python3-sdformat14 from packages.osrfoundation.org"
)
"""The two set-ups with Python; Jazzy's vendor packages before 0.0.13 were built without it."""


@dataclass(frozen=True)
class EmbeddedPython:
    """The Python that Gazebo embeds.

    Attributes:
        version: E.g. ``3.12``.
        home: Its prefix, e.g. ``/usr``.
    """

    version: str
    home: Path

    @property
    def executable(self) -> Path:
        """The interpreter of the same installation."""
        return self.home / "bin" / f"python{self.version}"


@dataclass(frozen=True)
class Gazebo:
    """A Gazebo that can run our plugin.

    Attributes:
        program: The command ``gz``.
        version: Version of ``gz sim``.
        loader: `LOADER`.
        python: What it embeds.
        python_path: Folders that this Python needs beyond its own and those of ``PYTHONPATH``.
    """

    program: Path
    version: str
    loader: Path
    python: EmbeddedPython
    python_path: tuple[str, ...]

    @property
    def major(self) -> int:
        """First number of the version."""
        return _numbers(self.version)[0]

    @property
    def title(self) -> str:
        """Release and version, e.g. ``Gazebo Jetty 10.4.0``."""
        name = RELEASES.get(self.major, "")
        return " ".join(filter(None, ("Gazebo", name, self.version)))


def examine() -> tuple[Gazebo | None, list[Finding]]:
    """Check each part in turn, up to the first that is missing.

    Returns:
        The installation, None if it cannot be used, and what was found; the last finding is then
        the reason.
    """
    findings: list[Finding] = []

    def found(part: str, text: str) -> None:
        findings.append(Finding(part, "OK", text))

    def missing(part: str, text: str, fix: str) -> tuple[None, list[Finding]]:
        findings.append(Finding(part, "WARN", text, fix))
        return None, findings

    name = shutil.which("gz")
    if name is None:
        return missing("Gazebo", "gz is not installed", f"only for simulator:=gazebo; {GET}")
    answer = run([name, "sim", "--versions"], timeout=20)
    version = max(re.findall(r"\d+\.\d+\.\d+", answer.text) or [""], key=_numbers)
    if not answer.ok or not version:
        said = f": {answer.text.splitlines()[0]}" if answer.text else ""
        return missing("Gazebo", f"{name} has no `sim`{said}", GET)
    major = _numbers(version)[0]
    if major < OLDEST:
        return missing("Gazebo", f"gz sim {version} is too old", f"Harmonic or newer; {GET}")
    found("Gazebo", f"gz sim {version} ({name})")
    loader = find_loader(Path(name), major)
    if loader is None:
        return missing("Gazebo loader", f"{LOADER} of gz sim {major} not found", GET)
    found("Gazebo loader", str(loader))
    python = embedded_python(loader)
    if python is None:
        return missing(
            "Gazebo Python",
            f"the Python that {loader} embeds was not found",
            "install the Python that this Gazebo was built for",
        )
    found("Gazebo Python", f"{python.version} ({python.home})")
    modules = str(gazebo_bindings.names(major))
    folders = [*_package_folders(), *_binding_folders(loader)]
    answer = _import(python, modules, folders)
    if not answer.ok:
        return missing("Gazebo bindings", f"{python.executable}: {answer.text}", GET)
    found("Gazebo bindings", modules)
    # the embedded Python may have them itself, or from a sourced ROS; ours come last
    answer = _import(python, "numpy, rclpy", folders)
    if not answer.ok and python.version == _own_version():
        folders.append(sysconfig.get_path("purelib"))
        answer = _import(python, "numpy, rclpy", folders)
    if not answer.ok:
        return missing(
            "Gazebo packages",
            f"Gazebo's Python {python.version} ({python.home}): {answer.text}; this Python, "
            f"which has them, is {_own_version()}",
            f"source a ROS 2 for Python {python.version} (apt: python3-numpy), or make the "
            f"environment with that Python: {python.executable} ./cards setup --recreate",
        )
    found("Gazebo packages", "numpy, rclpy")
    if importlib.util.find_spec(PACKAGES[-1]) is None:
        return missing(
            "muscle plugin", f"package {PACKAGES[-1]} is not installed", "colcon build, or ./cards"
        )
    answer = _import(python, PLUGIN, folders)
    if not answer.ok:
        return missing("muscle plugin", f"import {PLUGIN}: {answer.text}", "./cards doctor")
    found("muscle plugin", PLUGIN)
    return Gazebo(Path(name), version, loader, python, tuple(folders)), findings


def problem(findings: list[Finding]) -> str:
    """Return the reason in one line, with what to do; empty if there is none."""
    bad = next((finding for finding in findings if finding.status != "OK"), None)
    return "" if bad is None else f"{bad.text} ({bad.fix})"


def find_loader(program: Path, major: int) -> Path | None:
    """Return the library with which this Gazebo runs Python systems, if it is installed."""
    own = os.environ.get("GZ_SIM_SYSTEM_PLUGIN_PATH", "").split(os.pathsep)
    patterns = [os.path.join(glob.escape(folder), LOADER) for folder in own if folder]
    prefix = glob.escape(str(program.resolve().parents[1]))
    # the vendor packages of ROS have a folder each
    tops = [f"{prefix}/lib", f"{prefix}/lib/*", f"{prefix}/../gz_sim_vendor/lib"]
    tops += ["/usr/lib", "/usr/lib/*", "/opt/ros/*/opt/gz_sim_vendor/lib", "/usr/local/lib"]
    patterns += [f"{top}/gz-sim-{major}/plugins/{LOADER}" for top in tops]
    for pattern in patterns:
        for file in sorted(glob.glob(pattern)):
            return Path(file).resolve()
    return None


def embedded_python(library: Path) -> EmbeddedPython | None:
    """Return the Python that a library is linked to, if that Python is installed."""
    answer = run(["ldd", str(library)], timeout=20)
    match = re.search(r"libpython(3\.\d+)\S*\s+=>\s+(/\S+)", answer.text)
    if match is None:
        return None
    for folder in Path(match[2]).resolve().parents:
        python = EmbeddedPython(match[1], folder)
        if python.executable.exists():
            return python
    return None


def python_environment(
    python: EmbeddedPython, folders: tuple[str, ...] | list[str], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment in which Gazebo's Python finds itself and the folders.

    An embedded Python looks for its library beside the first ``python3`` on PATH, which conda,
    pyenv or a virtual environment may have put there; ``PYTHONHOME`` tells it the right one.

    Args:
        python: The Python that Gazebo embeds.
        folders: Folders that it imports from, first of all.
        environ: Environment to start from; it is not changed.
    """
    given = environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([*folders, *(entry for entry in given if entry)])
    return {**environ, "PYTHONHOME": str(python.home), "PYTHONPATH": os.pathsep.join(path)}


def _import(python: EmbeddedPython, modules: str, folders: list[str]) -> Answer:
    env = python_environment(python, folders, os.environ)
    return run([str(python.executable), "-P", "-c", f"import {modules}"], env=env)


def _package_folders() -> list[str]:
    """Return where our packages are: ``src`` folders, or one folder of installed ones."""
    out: dict[str, None] = {}
    for name in (*PACKAGES, *ROD_PACKAGES):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            out[str(Path(spec.origin).parents[1])] = None
    return list(out)


def _binding_folders(loader: Path) -> Iterator[str]:
    """Yield the folders with bindings that a Gazebo outside ``/usr`` has."""
    for top in loader.parents:
        if (top / "lib" / "python").is_dir():
            # the vendor packages of ROS are installed side by side, and need each other
            tops = sorted(top.parent.glob("*_vendor")) if top.name.endswith("_vendor") else [top]
            yield from (str(one / "lib/python") for one in tops if (one / "lib/python").is_dir())
            return


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".") if number]


def _own_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
