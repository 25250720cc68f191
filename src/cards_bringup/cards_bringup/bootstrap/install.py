"""Installing requirement files with pip, several at a time.

The files are complete and exact, so nothing is resolved (``--no-deps``) and they can be
installed side by side. Most of the time goes into waiting for the package index, file by file;
two installers at once take half as long as one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from cards_bringup.bootstrap.reporting import Progress, SetupError

PIP_OPTIONS = (
    "--disable-pip-version-check",
    "--no-input",
    "--no-color",
)
INSTALL_OPTIONS = (
    "--no-deps",
    "--no-compile",  # Python compiles what is imported, once; all of it would take longer
    "--progress-bar=off",
)
FORBIDDEN_SETTINGS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_HASHES")
"""pip settings of the user that would send packages elsewhere or refuse our files."""

CAUSES = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full; make room, or let CARDS_VENV (and TMPDIR) name folders on another disk",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "the package index cannot be trusted (certificate); if your network replaces "
        "certificates, let PIP_CERT name the file of its authority",
    ),
    (
        r"ProxyError|Tunnel connection failed",
        "the proxy refused; look at HTTPS_PROXY and at `pip config list`",
    ),
    (
        r"Temporary failure in name resolution|Name or service not known|NewConnectionError|"
        r"Failed to establish a new connection|ConnectTimeout|ReadTimeout|Read timed out|"
        r"Network is unreachable|Connection (refused|reset|aborted)|RemoteDisconnected",
        "no connection to the package index; check the network and run this again (what was "
        "downloaded is kept)",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "the package index has no {what} for this Python and machine (CPython 3.11 to 3.14 on "
        "x86_64 Linux is known to work, try e.g. python3.12 ./cards ...), or was not reached",
    ),
    (r"Permission denied: (?P<what>\S+)", "may not write {what}"),
)
"""Patterns in pip's output and what to tell the user; the first that occurs counts."""


def install(python: Path, files: Sequence[Path], site_packages: Path, log: Path) -> None:
    """Install requirement files into the environment of an interpreter.

    Args:
        python: Interpreter of the environment.
        files: Requirement files; no package is in two of them.
        site_packages: Where the packages arrive; watched for the progress line.
        log: File for the whole output.

    Raises:
        SetupError: An installer failed; the message names the likely cause.
        KeyboardInterrupt: Passed on, after the installers were stopped.
    """
    total = sum(len(pinned(file)) for file in files)
    names = ", ".join(file.stem for file in files)
    before = _count_installed(site_packages)
    logs = [log.with_name(f"{log.stem}-{file.stem}{log.suffix}") for file in files]
    running: list[subprocess.Popen[bytes]] = []
    try:
        with Progress(f"installing {total} packages ({names})") as progress:
            for file, output in zip(files, logs, strict=True):
                running.append(_start(python, file, output))
            while any(process.poll() is None for process in running):
                fetched = sum(_count_fetched(output) for output in logs)
                unpacked = _count_installed(site_packages) - before
                progress.update(f"{min(fetched, total)} fetched, {max(unpacked, 0)} unpacked")
                if any(process.poll() not in (None, 0) for process in running):
                    break
                time.sleep(0.1)
    finally:
        for process in running:
            _stop(process)
    for process, output in zip(running, logs, strict=True):
        # stopped because another one failed is no failure of its own
        if process.returncode > 0:
            raise SetupError(f"{explain(output.read_text(errors='replace'))} (details: {output})")


def pinned(file: Path) -> dict[str, str]:
    """Return the packages of a requirement file: name without extras to exact version.

    Raises:
        SetupError: A line is neither a pin nor an option nor a comment.
    """
    out: dict[str, str] = {}
    for number, raw in enumerate(file.read_text().splitlines(), start=1):
        line = raw.split("#")[0].strip()
        if not line or line.startswith("--"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)(\[[A-Za-z0-9,_-]+\])?==([A-Za-z0-9.+!]+)", line)
        if match is None:
            raise SetupError(f"{file}:{number}: '{line}' (expected: name==version)")
        out[match[1]] = match[3]
    return out


def explain(output: str) -> str:
    """Return one line on why pip failed."""
    for pattern, text in CAUSES:
        if match := re.search(pattern, output):
            what = match.groupdict().get("what", "").strip("'\"")
            return "installation failed: " + text.format(what=what)
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    reason = errors[-1].removeprefix("ERROR: ") if errors else "pip gave no reason"
    return f"installation failed: {reason[:200]}"


def _start(python: Path, file: Path, output: Path) -> subprocess.Popen[bytes]:
    env = {key: value for key, value in os.environ.items() if key not in FORBIDDEN_SETTINGS}
    for name in ("PYTHONPATH", "PYTHONHOME"):  # a sourced ROS would look like installed packages
        env.pop(name, None)
    env["PYTHONUNBUFFERED"] = "1"
    env["PIP_USER"] = "0"
    command = [str(python), "-m", "pip", *PIP_OPTIONS, "install", *INSTALL_OPTIONS]
    with output.open("wb") as stream:
        return subprocess.Popen(
            [*command, "-r", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=env,
            close_fds=False,  # the lock goes with it
            start_new_session=True,  # Ctrl-C reaches us alone, and we stop the whole group
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=5)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _count_fetched(output: Path) -> int:
    try:
        return len(re.findall(rb"^(?:Collecting|Processing) ", output.read_bytes(), re.MULTILINE))
    except OSError:
        return 0


def _count_installed(site_packages: Path) -> int:
    try:
        return sum(1 for entry in os.scandir(site_packages) if entry.name.endswith(".dist-info"))
    except OSError:
        return 0
