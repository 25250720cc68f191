"""Checks of the machine: compiler, cache folder, ports, processor and memory.

Also checked is what real and emulated muscle boards need: serial ports, cross compiler, QEMU.
"""

from __future__ import annotations

import ctypes
import glob
import grp
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cards_bringup.findings import Finding, run

FUNCTION = """
double cards_doctor(double x) {
    return 2.0 * x;
}
"""

VIEW_PORT = 8080
MEMORY_NEEDED = 2.0
"""Compiling the model of a large robot takes this much, [GiB]."""


def check_compiler() -> Iterator[Finding]:
    """Compile a function, load it, call it."""
    try:
        from cards_core.codegen.toolchain import find_compiler
    except ImportError as error:
        yield Finding("C compiler", "WARN", f"not looked at: {error}", "./cards setup --recreate")
        return
    compiler = find_compiler()
    if compiler is None:
        yield Finding(
            "C compiler",
            "WARN",
            "none; CasADi evaluates the models, which is much slower",
            "apt install gcc",
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "doctor.c"), Path(folder, "doctor.so")
        source.write_text(FUNCTION)
        answer = run([compiler, "-shared", "-fPIC", "-O2", str(source), "-o", str(library)])
        if not answer.ok:
            yield Finding(
                "C compiler", "WARN", f"{compiler}: {answer.text}", "apt install gcc libc6-dev"
            )
            return
        try:
            function = ctypes.CDLL(str(library)).cards_doctor
            function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
            value = function(21.0)
        except OSError as error:
            yield Finding(
                "C compiler",
                "WARN",
                f"{compiler}: its library cannot be loaded: {error}",
                "let TMPDIR and CARDS_CACHE name folders that are not mounted noexec",
            )
            return
    if value == 42.0:
        yield Finding("C compiler", "OK", compiler)
    else:
        yield Finding("C compiler", "WARN", f"{compiler} computes 2 * 21 = {value}", "another CC")


def check_cache() -> Iterator[Finding]:
    """Whether compiled models can be kept."""
    try:
        from cards_core.codegen.cache import cache_folder
    except ImportError as error:
        yield Finding(
            "cache folder", "WARN", f"not looked at: {error}", "./cards setup --recreate"
        )
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding(
            "cache folder",
            "WARN",
            f"{folder}: {error.strerror}; models are compiled anew each time",
            "let CARDS_CACHE name a folder that you may write",
        )
        return
    models = sum(1 for _ in folder.glob("*/*.so"))
    yield Finding("cache folder", "OK", f"{folder}, {models} compiled models")


def check_ports() -> Iterator[Finding]:
    """The browser view's port."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", VIEW_PORT))
            yield Finding("browser port", "OK", f"127.0.0.1:{VIEW_PORT} is free")
        except OSError as error:
            yield Finding(
                "browser port",
                "WARN",
                f"127.0.0.1:{VIEW_PORT}: {error.strerror}",
                "end the program that has it, or choose another port for the view",
            )


def check_size() -> Iterator[Finding]:
    """Processor cores and memory."""
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        yield Finding(
            "processor", "WARN", "1 core", "mode:=lockstep: realtime needs one core per loop"
        )
    else:
        yield Finding("processor", "OK", f"{cores} cores")
    memory = _available_memory()
    if memory is None:
        return
    if memory < MEMORY_NEEDED:
        yield Finding(
            "memory",
            "WARN",
            f"{memory:.1f} GiB available",
            f"{MEMORY_NEEDED:.0f} GiB while a model is compiled; close other programs",
        )
    else:
        yield Finding("memory", "OK", f"{memory:.1f} GiB available")


def _available_memory() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 2**20
    except (OSError, ValueError, IndexError):
        pass
    return None


PROGRAM = """
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
SERIAL_PATTERNS = ("/dev/ttyACM*", "/dev/ttyUSB*")
GROUP = "dialout"


def check_serial_ports() -> Iterator[Finding]:
    """Whether the ports of boards that are plugged in may be opened, or could be."""
    devices = sorted(name for pattern in SERIAL_PATTERNS for name in glob.glob(pattern))
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
        source.write_text(PROGRAM)
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
