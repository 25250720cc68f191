"""Options of a run on emulated boards, and the tools that it needs."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from collections.abc import Callable

from cards_core.errors import CardsError

FIRMWARES = ("stm32f405", "host")

_TOOLS = {
    "stm32f405": ("arm-none-eabi-gcc", "qemu-system-arm", "make"),
    "host": ("gcc", "make"),
}
_PACKAGES = {
    "stm32f405": "gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm and make",
    "host": "gcc and make",
}


def choose_firmware(wanted: str | None, note: Callable[[str], None]) -> str:
    """Return the firmware to run: as wanted, else the best one that this machine can.

    Args:
        wanted: One of `FIRMWARES`, None for the best.
        note: Told why it is not the one that is flashed.

    Raises:
        CardsError: Tools are missing; the message says which packages bring them.
    """

    def missing(firmware: str) -> str:
        return ", ".join(tool for tool in _TOOLS[firmware] if shutil.which(tool) is None)

    if wanted is not None:
        if lacking := missing(wanted):
            raise CardsError(
                f"--firmware {wanted} needs {lacking}, which is not installed "
                f"(expected: {_PACKAGES[wanted]})"
            )
        return wanted
    lacking = missing("stm32f405")
    if not lacking:
        return "stm32f405"
    if missing("host"):
        raise CardsError(
            f"--hil needs a compiler for the firmware: {lacking} are not installed (expected: "
            f"{_PACKAGES['stm32f405']}; or {_PACKAGES['host']} for the host build)"
        )
    note(f"{lacking} not installed: the firmware runs as a host build, not as the binary that "
         "is flashed")  # fmt: skip
    return "host"


def firmware(args: argparse.Namespace, note: Callable[[str], None]) -> str:
    """Return the firmware of a run with ``--hil``, empty without it.

    Raises:
        CardsError: Other options do not go with it, or something is not installed.
    """
    if not args.hil:
        if args.firmware:
            raise CardsError(f"--firmware {args.firmware} without --hil (expected: --hil)")
        if args.boards:
            raise CardsError(f"--boards {args.boards} without --hil (expected: --hil)")
        return ""
    for given, wrong in (
        (f"--simulator {args.simulator}", args.simulator != "mujoco"),
        (f"--mode {args.mode}", args.mode not in (None, "realtime")),
        ("--world", bool(args.world)),
        ("--terrain", bool(args.terrain)),
        ("--no-ros", args.no_ros),
        ("--controller none", args.controller == "none"),
    ):
        if wrong:
            raise CardsError(
                f"{given} does not go with --hil, which runs the nodes of the real robot, in real "
                "time, on a MuJoCo plant (expected: one of both)"
            )
    if args.boards and not args.boards.is_file():
        raise CardsError(f"--boards {args.boards}: no such file (expected: a .boards.yaml)")
    for module, package in (("rclpy", "rclpy"), ("serial", "pyserial")):
        if importlib.util.find_spec(module) is None:
            raise CardsError(f"--hil needs {package}, which is not installed (./cards setup)")
    return choose_firmware(args.firmware, note)
