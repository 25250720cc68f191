"""Checks of what real and emulated muscle boards need: serial ports, cross compiler, QEMU."""

from __future__ import annotations

import glob
import grp
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cards_bringup.doctor.finding import Finding, run

SOURCE = """
#include <math.h>
#include <stdint.h>
volatile float cards_doctor;
int main(void) { cards_doctor = sqrtf(cards_doctor); return 0; }
"""

CROSS_COMPILER = "arm-none-eabi-gcc"
CROSS_FLAGS = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -specs=nosys.specs"
CROSS_FIX = "apt install gcc-arm-none-eabi libnewlib-arm-none-eabi"
QEMU = "qemu-system-arm"
QEMU_FIX = "apt install qemu-system-arm"
MACHINE = "netduinoplus2"
PATTERNS = ("/dev/ttyACM*", "/dev/ttyUSB*")
GROUP = "dialout"


def check_serial_ports() -> Iterator[Finding]:
    """Whether the ports of boards that are plugged in may be opened, or could be."""
    devices = sorted(name for pattern in PATTERNS for name in glob.glob(pattern))
    closed = [name for name in devices if not os.access(name, os.R_OK | os.W_OK)]
    fix = f"sudo usermod -aG {GROUP} $USER, then log in again"
    if closed:
        yield Finding("serial ports", "WARN", f"no permission for {', '.join(closed)}", fix)
    elif devices:
        yield Finding("serial ports", "OK", ", ".join(devices))
    elif _may_open_ports():
        yield Finding("serial ports", "OK", "none (no robot plugged in)")
    else:
        text = f"none (no robot plugged in); you are not in group {GROUP}, which a robot needs"
        yield Finding("serial ports", "OK", f"{text}: {fix}")


def _may_open_ports() -> bool:
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return True  # this system does it another way
    return os.geteuid() == 0 or number in os.getgroups()


def check_cross_compiler() -> Iterator[Finding]:
    """Compile and link a program for the processor of the boards."""
    part = "ARM compiler"
    compiler = shutil.which(CROSS_COMPILER)
    if compiler is None:
        yield Finding(part, "WARN", "none; the firmware of the boards cannot be built", CROSS_FIX)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "doctor.c"), Path(folder, "doctor.elf")
        source.write_text(SOURCE)
        answer = run([compiler, *CROSS_FLAGS.split(), str(source), "-lm", "-o", str(program)])
    if answer.ok:
        version = run([compiler, "-dumpfullversion"])
        yield Finding(part, "OK", f"{compiler} {version.text}")
    else:
        yield Finding(part, "WARN", f"{compiler}: {answer.text}", CROSS_FIX)


def check_emulator() -> Iterator[Finding]:
    """Whether QEMU is there and knows the board."""
    part = "board emulator"
    qemu = shutil.which(QEMU)
    if qemu is None:
        yield Finding(
            part, "WARN", "none; ./cards demo --hil then needs --firmware host", QEMU_FIX
        )
        return
    answer = run([qemu, "-M", "help"])
    if not answer.ok:
        yield Finding(part, "WARN", f"{qemu}: {answer.text}", QEMU_FIX)
    elif MACHINE not in answer.text:
        yield Finding(part, "WARN", f"{qemu} has no machine {MACHINE}", f"{QEMU_FIX} (7.2 has it)")
    else:
        yield Finding(part, "OK", f"{qemu}, machine {MACHINE}")
