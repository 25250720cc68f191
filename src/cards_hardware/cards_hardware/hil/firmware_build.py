"""Builds the firmware with its own Makefile, once for each state of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from cards_core.checks import check_choice
from cards_core.codegen.cache import build_folder, publish, trusted_cache
from cards_core.codegen.toolchain import find_compiler
from cards_hardware.errors import HardwareError

TARGETS = {
    "stm32f405": "stm32f405/cards_muscle_board.elf",
    "host": "cards_board_host",
}
"""What the Makefile builds for each board, below its output folder."""

BUILD_TIMEOUT = 300.0
"""Longest time [s] a build may take."""

CROSS_COMPILER = "arm-none-eabi-gcc"
CROSS_PACKAGES = "gcc-arm-none-eabi libnewlib-arm-none-eabi"


def firmware_folder() -> Path:
    """Return the folder of the firmware's sources: ``$CARDS_FIRMWARE``, else the checkout's.

    Raises:
        HardwareError: It is neither; installed packages come without the sources.
    """
    if named := os.environ.get("CARDS_FIRMWARE"):
        folder = Path(named).expanduser()
        if (folder / "Makefile").is_file():
            return folder
        raise HardwareError(f"CARDS_FIRMWARE={named}: there is no Makefile in it")
    # src/cards_hardware/cards_hardware/hil/firmware_build.py -> the checkout
    for top in (Path(__file__).resolve().parents[4], Path.cwd()):
        if (top / "firmware" / "core" / "board.h").is_file():
            return top / "firmware"
    raise HardwareError(
        "the sources of the firmware are not here: run from the checkout, or let CARDS_FIRMWARE "
        "name its folder firmware/"
    )


def build(target: str) -> Path:
    """Return the program of a board, built if its sources have changed since the last time.

    Args:
        target: ``stm32f405`` (an ELF file, what is flashed) or ``host`` (a Linux program).

    Raises:
        UnknownNameError: There is no such board.
        HardwareError: A compiler or make is missing, or it does not compile.
    """
    check_choice(target, "board of the firmware", TARGETS)
    sources = firmware_folder()
    compiler = _compiler(target)
    if shutil.which("make") is None:
        raise HardwareError(f"firmware for {target}: make is missing (apt install make)")
    name = f"firmware/{target}-{_key(sources, target, compiler)}"
    try:
        folder = trusted_cache(name)
    except OSError as error:
        raise HardwareError(f"firmware for {target}: the cache cannot be used: {error}") from None
    program = folder / TARGETS[target]
    if program.is_file():
        return program
    with build_folder(folder.parent) as work:
        _make(sources, target, compiler, work)
        publish(work, folder, lambda done: (done / TARGETS[target]).is_file())
    return program


def _compiler(target: str) -> str:
    if target == "host":
        compiler = find_compiler()
        if compiler is None:
            raise HardwareError("firmware for host: no C compiler (apt install gcc)")
        return compiler
    compiler = shutil.which(CROSS_COMPILER)
    if compiler is None:
        raise HardwareError(
            f"firmware for {target}: {CROSS_COMPILER} is missing (apt install {CROSS_PACKAGES})"
        )
    return compiler


def _key(sources: Path, target: str, compiler: str) -> str:
    """Hash of all that decides what comes out."""
    digest = hashlib.sha256(target.encode())
    files = [sources / "Makefile", *sources.glob("core/*"), *sources.glob(f"boards/{target}/*")]
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False)
    digest.update(version.stdout)
    return digest.hexdigest()[:32]


def _make(sources: Path, target: str, compiler: str, work: Path) -> None:
    name = {"stm32f405": "stm32", "host": "host"}[target]
    command = ["make", "-s", "-j2", name, f"BUILD={work}"]
    if target == "host":
        command.append(f"CC={compiler}")
    try:
        result = subprocess.run(
            command,
            cwd=sources,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HardwareError(f"firmware for {target}: {error}") from error
    if result.returncode:
        words = (result.stderr.strip() or result.stdout.strip())[:2000]
        hint = ""
        if target == "stm32f405" and ("nano.specs" in words or "math.h" in words):
            hint = f" (apt install {CROSS_PACKAGES})"
        raise HardwareError(f"firmware for {target} does not build{hint}:\n{words}")
