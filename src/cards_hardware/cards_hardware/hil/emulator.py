"""A muscle board that runs on this machine: the flashed binary in QEMU, or the host build.

The binary notices that it is emulated and moves the bytes of its serial ports in blocks through
two file descriptors of QEMU (see ``firmware/boards/stm32f405/streams.c``): 1 is the master side of
the pseudo-terminal whose other side is the port, 0 the socket of the motor drives. Its parameter
slots are files. The host build takes the same pseudo-terminal at 0. As the USB bridge of a real
board, it outlives resets and power cuts: who has the port open keeps it. With ``transport="uart"``
the bytes take QEMU's serial ports instead, one by one, which is how the chip does it but slow: a
tenth of the usual rates is what it can do.

QEMU has two ports of control: its machine protocol (QMP, one line of JSON each way), and the
debugger's, for faults that no message can cause: set a register and go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import termios
import threading
import time
import tty
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from cards_core.checks import check_choice
from cards_core.files import ProcessFolder
from cards_hardware.errors import HardwareError
from cards_hardware.hil.firmware_build import TARGETS, build
from cards_hardware.hil.processes import spawn, stop

ANSWER_TIMEOUT = 30.0
"""Time for an answer, [s]; QEMU may have to wait for a busy machine."""

DEBUGGER_TIMEOUT = 10.0
"""Time for an answer of the debugger port, [s]."""

PROGRAM_COUNTER = 15
"""Number of the register in GDB's order for ARM."""


class Qmp:
    """Connection to one QEMU.

    Args:
        path: Unix socket that QEMU listens on.

    Raises:
        HardwareError: No answer from that address.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_TIMEOUT)
        self._rest = b""
        try:
            self._socket.connect(str(path))
            self._line()  # the greeting
            self.run("qmp_capabilities")
        except HardwareError:
            self.close()  # QEMU talks to one at a time
            raise
        except OSError as error:
            self.close()
            raise HardwareError(f"QEMU does not answer at {path}: {error}") from error

    def run(self, command: str, **arguments: Any) -> Any:
        """Return the answer to a command.

        Raises:
            HardwareError: QEMU refused it, ended, or did not answer in time.
        """
        text = json.dumps({"execute": command, "arguments": arguments})
        try:
            self._socket.sendall(text.encode() + b"\n")
            end = time.monotonic() + ANSWER_TIMEOUT
            while time.monotonic() < end:
                answer = json.loads(self._line())
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise HardwareError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
        except (OSError, ValueError) as error:
            raise HardwareError(f"QEMU does not answer {command}: {error}") from error
        raise HardwareError(f"QEMU does not answer {command} within {ANSWER_TIMEOUT:.0f} s")

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionResetError("it has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the connection; QEMU goes on."""
        self._socket.close()


def jump(path: Path, address: int) -> None:
    """Let an emulated processor continue at another address.

    Args:
        path: Unix socket of QEMU's GDB server.
        address: Where it continues.

    Raises:
        HardwareError: The server does not answer as it should.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(DEBUGGER_TIMEOUT)
        try:
            link.connect(str(path))
            for command, good in (
                ("?", "T"),
                ("qXfer:features:read:target.xml:0,fff", "lm"),  # or QEMU sets no registers
                (f"P{PROGRAM_COUNTER:x}={address.to_bytes(4, 'little').hex()}", "O"),
                ("D", "O"),
            ):
                if _ask(link, command) not in good:
                    raise HardwareError(f"the debugger port at {path} refuses {command}")
        except OSError as error:
            raise HardwareError(f"no debugger port at {path}: {error}") from error


def _ask(link: socket.socket, command: str) -> str:
    """Return the first letter of the answer to a command, past notes that QEMU has stopped."""
    link.sendall(f"${command}#{sum(command.encode()) % 256:02x}".encode())
    received = b""
    while True:
        packet = re.search(rb"\$([^#]*)#..", received)
        if packet is None:
            data = link.recv(8192)
            if not data:
                raise ConnectionResetError("it has ended")
            received += data
            continue
        received = received[packet.end() :]
        link.sendall(b"+")
        letter = packet[1][:1].decode("latin-1")
        if letter != "T" or command == "?":
            return letter


QEMU = "qemu-system-arm"
QEMU_PACKAGE = "qemu-system-arm"
MACHINE = "netduinoplus2"
"""QEMU's board with an STM32F405."""

SLOT_ADDRESSES = (0x080C0000, 0x080E0000)
"""Flash sectors 10 and 11."""

SLOT_BYTES = 8192
"""As much of a slot as the firmware reads, [bytes]."""

MAX_FOLDER_NAME = 64
"""Folders of temporary files with longer names are not used: paths of sockets would not fit."""

START_TIMEOUT = 60.0
"""Time for a board to come up, [s]."""

SWEEP_PERIOD = 0.01
"""Time [s] between sweeps of a port that nobody has open."""

CHECK_PERIOD = 200
"""Time [ms] after which the sweeper of an open port looks whether it shall end."""

RESET_PIN = 2
"""Cause of a reset by the button, `ResetCause.PIN`."""

_CHUNK = 4096

Transport = Literal["blocks", "uart"]


class Emulator:
    """Context manager of one emulated board.

    Args:
        target: ``stm32f405`` (QEMU) or ``host`` (the core as a Linux process).
        drive_socket: Unix socket that the motor drives listen on; None: there are no drives (the
            host build then simulates simple ones inside).
        folder: Keeps the parameters and the log; made if it is not there. None: a temporary one.
        transport: How QEMU moves bytes, see above.

    Attributes:
        port: Serial port for the host, a symbolic link that stays the same over resets.
        log: What the emulator prints.

    Raises:
        UnknownNameError: There is no such target.
    """

    def __init__(
        self,
        target: str = "stm32f405",
        *,
        drive_socket: Path | None = None,
        folder: Path | None = None,
        transport: Transport = "blocks",
    ) -> None:
        check_choice(target, "board of the firmware", TARGETS)
        self.target = target
        self.transport = transport
        self._drive_socket = drive_socket
        # short: paths of sockets must fit in 107 bytes
        place = "/tmp" if len(tempfile.gettempdir()) > MAX_FOLDER_NAME else None
        self._own = ProcessFolder("board", place)
        self._private = self._own.path
        # absolute, because the emulator is started in that folder
        self.folder = (folder or self._private / "kept").absolute()
        self.port = self._private / "port"
        self.log = self.folder / "emulator.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._qmp: Qmp | None = None
        self._pty: _PseudoPort | None = None

    # Life -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Build the firmware if needed, and switch the board on.

        Raises:
            HardwareError: It cannot be built, or the emulator is missing or does not start.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Switch the board off; only the folder given by the caller stays."""
        self._end(kill=False)
        if self._pty is not None:
            self._pty.close()
            self._pty = None
        self._own.close()

    def start(self) -> None:
        """Switch the board on, again after `kill`; parameters are those of the folder.

        Raises:
            HardwareError: It is on already, cannot be built or does not start, or the emulator is
                missing.
        """
        if self.pid is not None:
            raise HardwareError(f"the emulated board at {self.port} is on already")
        self._end(kill=True)
        if self.target == "host":
            self._start_host([])
        else:
            self._start_qemu()

    @property
    def pid(self) -> int | None:
        """The emulator's process, None if it does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        return self._process.pid

    def kill(self) -> None:
        """Cut the power: nothing is said any more, nothing is stored."""
        self._end(kill=True)

    def reset(self) -> None:
        """Press the reset button.

        Raises:
            HardwareError: The board is off.
        """
        if self.pid is None:
            raise HardwareError(f"the emulated board at {self.port} is off{self._words()}")
        if self.target == "host":
            self._end(kill=True)
            self._start_host(["--reset-cause", str(RESET_PIN)])
            return
        self._control().run("system_reset")

    def crash(self, address: int) -> None:
        """Let the program jump to an address where no code is (QEMU only).

        Raises:
            HardwareError: The board is off, or has no processor of its own.
        """
        if self.pid is None or self.target == "host":
            raise HardwareError(f"the emulated board at {self.port} has no processor to crash")
        server = self._private / "gdb"
        command = {"command-line": f"gdbserver unix:{server},server=on,wait=off"}
        self._control().run("human-monitor-command", **command)
        jump(server, address)

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of the board's memory (QEMU only), without stopping it."""
        file = self._private / "memory"
        self._control().run("pmemsave", val=address, size=size, filename=str(file))
        return file.read_bytes()

    def _control(self) -> Qmp:
        assert self._qmp is not None
        return self._qmp

    # QEMU -------------------------------------------------------------------------------------

    def _start_qemu(self) -> None:
        image = build(self.target)
        qemu = shutil.which(QEMU)
        if qemu is None:
            raise HardwareError(
                f"{QEMU} is missing (apt install {QEMU_PACKAGE}); the host build runs without it"
            )
        # two boards of one robot have to differ
        identity = hashlib.sha256(str(self.folder.resolve()).encode()).digest()[:8]
        (self.folder / "uid.bin").write_bytes(identity)
        control = self._private / "qmp"
        command = [qemu, "-M", MACHINE, "-display", "none", "-monitor", "none"]
        command += ["-qmp", f"unix:{control},server=on,wait=off", "-kernel", str(image)]
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(self.log.open("wb"))
            if self.transport == "uart":
                command += ["-chardev", "pty,id=host", "-serial", "chardev:host"]
                command += self._flash_images()
                command += ["-serial", self._drive_chardev()]
                self._process = spawn(command, self.folder, stdin=None, stdout=log, stderr=log)
                self._link(self._port_of_log(b"char device redirected to "))
            else:
                command += ["-serial", "none", "-semihosting-config", "enable=on,target=native"]
                drives = stack.enter_context(self._open_drives())
                line = self._line()
                self._process = spawn(command, self.folder, stdin=drives, stdout=line, stderr=log)
        self._qmp = self._connect(control)

    @contextlib.contextmanager
    def _open_drives(self) -> Iterator[int]:
        """Give a descriptor of the drive bus, or of nothing."""
        if self._drive_socket is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            try:
                yield nothing
            finally:
                os.close(nothing)
            return
        with socket.socket(socket.AF_UNIX) as bus:
            try:
                bus.connect(str(self._drive_socket))
            except OSError as error:
                raise HardwareError(
                    f"no motor drives listen at {self._drive_socket}: {error}"
                ) from error
            bus.setblocking(False)
            yield bus.fileno()

    def _drive_chardev(self) -> str:
        return "null" if self._drive_socket is None else f"unix:{self._drive_socket}"

    def _flash_images(self) -> list[str]:
        """Give QEMU's flash the parameters; without a flash controller saving is refused."""
        options: list[str] = []
        for number, address in enumerate(SLOT_ADDRESSES):
            image = self.folder / f"slot{number}.bin"
            if not image.is_file():
                image = self._private / f"erased{number}.bin"
                image.write_bytes(b"\xff" * SLOT_BYTES)
            options += ["-device", f"loader,file={image},addr={address:#x},force-raw=on"]
        return options

    def _connect(self, control: Path) -> Qmp:
        end = time.monotonic() + START_TIMEOUT
        while True:
            self._check()
            try:
                return Qmp(control)
            except HardwareError as error:
                if time.monotonic() > end:
                    raise HardwareError(f"{error}{self._words()}") from error
            time.sleep(0.01)

    # Host build -------------------------------------------------------------------------------

    def _start_host(self, arguments: list[str]) -> None:
        # a board keeps its serial number for life, and that is in its folder
        number = zlib.crc32(str(self.folder.resolve()).encode())
        command = [str(build(self.target)), "--flash", str(self.folder / "flash.bin"), *arguments]
        command += ["--uid", f"484F5354{number:08X}", "--pty", "0"]
        if self._drive_socket is not None:
            command += ["--drive", str(self._drive_socket)]
        line = self._line()
        with self.log.open("wb") as log:
            self._process = spawn(command, self.folder, stdin=line, stdout=log, stderr=log)
        self._port_of_log(b"port ")  # said when the board runs

    # Both -------------------------------------------------------------------------------------

    def _line(self) -> int:
        """Return the board's end of its port; what came while the board was off is lost."""
        if self._pty is None:
            self._pty = _PseudoPort(self.port)
        self._pty.drop_received()
        return self._pty.master

    def _port_of_log(self, before: bytes) -> str:
        """Return the name of the terminal that the program says it made."""
        end = time.monotonic() + START_TIMEOUT
        while True:
            for line in self.log.read_bytes().splitlines(keepends=True):
                if line.startswith(before) and line.endswith(b"\n"):
                    return line[len(before) :].split()[0].decode()
            self._check()
            if time.monotonic() > end:
                raise HardwareError(f"the emulated board does not start{self._words()}")
            time.sleep(0.01)

    def _link(self, target: str) -> None:
        fresh = self._private / "port.new"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target)
        fresh.replace(self.port)

    def _check(self) -> None:
        if self.pid is None:
            raise HardwareError(f"the emulated board ended at once{self._words()}")

    def _words(self) -> str:
        """What the emulator said last, for a message."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-5:]
        except OSError:
            return ""
        return f"; {self.log}:\n  " + "\n  ".join(lines) if lines else ""

    def _end(self, *, kill: bool) -> None:
        if self._qmp is not None:
            self._qmp.close()
            self._qmp = None
        if self._process is not None:
            stop(self._process, kill=kill)
            self._process = None


class _PseudoPort:
    """A pty in raw mode.

    The kernel keeps what a program writes to its master while the other side is closed, up to
    68 kB, and would give a second of stale states to the next who opens it. A wire does not do
    that, so a thread throws it away.

    Args:
        link: Path at which the port appears, a symbolic link.

    Attributes:
        master: The board's end, a file descriptor that does not block.
    """

    def __init__(self, link: Path) -> None:
        self.master, slave = os.openpty()
        try:
            tty.setraw(slave)  # the mode stays when it is closed
            link.symlink_to(os.ttyname(slave))
        finally:
            os.close(slave)
        os.set_blocking(self.master, False)
        self._end = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="port sweeper", daemon=True)
        self._sweeper.start()

    def drop_received(self) -> None:
        """Throw away what was sent to a board that was off, and could not hear it."""
        with contextlib.suppress(OSError):  # nothing more, or nobody there
            while os.read(self.master, _CHUNK):
                pass

    def _sweep(self) -> None:
        watch = select.poll()
        watch.register(self.master, 0)  # hang-ups are always told
        while not self._end.is_set():
            if watch.poll(CHECK_PERIOD):
                with contextlib.suppress(termios.error):
                    termios.tcflush(self.master, termios.TCOFLUSH)
                self._end.wait(SWEEP_PERIOD)

    def close(self) -> None:
        """Take the port away; who has it open sees it hang up."""
        self._end.set()
        self._sweeper.join()
        os.close(self.master)
