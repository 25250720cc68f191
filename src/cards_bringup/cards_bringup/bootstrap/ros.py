"""Which ROS 2 there is: the one sourced in this shell, wheels from the package index, or none.

Two builds of rclpy in one process crash or, worse, half work. So an environment is made for one
of them and refuses to run with the other.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from cards_bringup.bootstrap.reporting import SetupError

WHEELS = "wheels"
"""ROS comes as wheels inside the environment."""

NONE = "none"
"""No ROS: there are no wheels for this kind of machine, and none is sourced."""

SOURCED = "sourced:"
"""Prefix of the kind for a ROS 2 in the shell; the distribution's name follows."""

WHEEL_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
"""Set by the wheels in every process they started with a library path of theirs."""


def in_shell(environ: Mapping[str, str]) -> str:
    """Return the kind of ROS that this shell asks for: `WHEELS`, `NONE` or `SOURCED` + name."""
    distro = environ.get("ROS_DISTRO")
    if distro and environ.get("AMENT_PREFIX_PATH"):
        return SOURCED + distro
    if environ.get("ROS_VERSION") == "1":
        raise SetupError(
            "a ROS 1 is sourced in this shell and its Python path would get in the way; "
            "open a shell without it"
        )
    if sys.platform.startswith("linux") and platform.machine() == "x86_64":
        return WHEELS
    return NONE


def check_source(kind: str, environ: Mapping[str, str], python: str) -> None:
    """Check, before an environment is made, that the ROS of this shell can be used.

    Args:
        kind: As `in_shell` returns.
        environ: The shell's environment.
        python: The interpreter that the environment will be made from.

    Raises:
        SetupError: The sourced rclpy does not work with this Python, or there are two of them.
    """
    if kind.startswith(SOURCED):
        _check_sourced(kind.removeprefix(SOURCED), environ, python)
        return
    for entry in environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry and Path(entry, "rclpy", "__init__.py").is_file():
            raise SetupError(
                f"PYTHONPATH holds an rclpy ({entry}) but no ROS 2 is sourced, and it would mix "
                "with the one that ./cards installs; run: unset PYTHONPATH"
            )


def _check_sourced(distro: str, environ: Mapping[str, str], python: str) -> None:
    script = "import rclpy, os; print(os.path.dirname(os.path.dirname(rclpy.__file__)))"
    probe = subprocess.run(
        [python, "-c", script],
        env=dict(environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if probe.returncode != 0:
        reason = (probe.stderr.strip().splitlines() or ["no message"])[-1]
        raise SetupError(
            f"ROS 2 {distro} is sourced, but {python} cannot import its rclpy ({reason}). "
            f"Use the Python that this ROS was built for, e.g. /usr/bin/python3 ./cards ..., "
            "or a shell in which no ROS is sourced"
        )
    folder = Path(probe.stdout.strip().splitlines()[-1])
    if any(folder.glob("ros_rclpy-*.dist-info")):
        raise SetupError(
            f"ROS 2 {distro} is sourced, but Python finds the rclpy wheel in {folder} first; "
            f"remove it: {python} -m pip uninstall ros-rclpy, or use a shell without ROS"
        )


def check_same(made_for: str, kind: str, folder: Path) -> None:
    """Refuse to run an environment with another ROS than it was made for.

    Args:
        made_for: Kind of ROS that the environment was made for, as `in_shell` gives it.
        kind: Kind of ROS of this shell.
        folder: Folder of the environment, named in the message.

    Raises:
        SetupError: They differ.
    """
    if made_for == kind:
        return
    here = f"ROS 2 {kind.removeprefix(SOURCED)} is sourced"
    made = f"made for ROS 2 {made_for.removeprefix(SOURCED)}"
    if not kind.startswith(SOURCED):
        here = "no ROS 2 is sourced in this shell"
    if not made_for.startswith(SOURCED):
        made = "made with the ROS wheels" if made_for == WHEELS else "made without ROS"
    back = "use a shell in which no ROS is sourced"
    if made_for.startswith(SOURCED):
        back = (
            f"source that one first (source /opt/ros/{made_for.removeprefix(SOURCED)}/setup.bash)"
        )
    raise SetupError(
        f"{here}, but {folder} was {made}; two rclpy must not mix. Either {back}, "
        "or rebuild the environment for this shell: ./cards setup --recreate"
    )


def process_environment(kind: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that CARDS is started with.

    The wheels start Python again with a library path of theirs and mark that in a variable. If we
    come from another environment with wheels, both are of no use here and are taken out. Wheels
    hold Fast DDS alone, so another RMW from the shell's profile cannot be meant for them.
    """
    env = dict(environ)
    if env.pop(WHEEL_GUARD, None) is not None:
        libraries = env.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        kept = [entry for entry in libraries if entry and not _is_wheel_folder(entry)]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(kept)
        if not kept:
            del env["LD_LIBRARY_PATH"]
    if kind == WHEELS and env.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp":
        print(
            f"cards: RMW_IMPLEMENTATION={env['RMW_IMPLEMENTATION']} is not among the wheels; "
            "using rmw_fastrtps_cpp",
            file=sys.stderr,
        )
        env["RMW_IMPLEMENTATION"] = "rmw_fastrtps_cpp"
    return env


def _is_wheel_folder(entry: str) -> bool:
    path = Path(entry)
    return path.name.startswith("ros_") and path.parent.name == "site-packages"
