"""QEMU's debugger port, for faults that no message can cause: set a register and go on."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from cards_hardware.errors import HardwareError

ANSWER_TIMEOUT = 10.0
"""Time for an answer, [s]."""

PROGRAM_COUNTER = 15
"""Number of the register in GDB's order for ARM."""


def jump(path: Path, address: int) -> None:
    """Let an emulated processor continue at another address.

    Args:
        path: Unix socket of QEMU's GDB server.
        address: Where it continues.

    Raises:
        HardwareError: The server does not answer as it should.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(ANSWER_TIMEOUT)
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
