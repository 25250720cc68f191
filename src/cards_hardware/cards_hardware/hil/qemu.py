"""QEMU's control ports: its machine protocol (QMP), and its debugger port.

QMP is one line of JSON each way; the few commands needed. The debugger port is for faults that no
message can cause: set a register and go on.
"""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

from cards_hardware.errors import HardwareError

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
        HardwareError: Nobody answers there.
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
