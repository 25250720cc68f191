"""QEMU's machine protocol, the few commands needed: one line of JSON each way."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

from cards_hardware.errors import HardwareError

ANSWER_TIMEOUT = 30.0
"""Time for an answer, [s]; QEMU may have to wait for a busy machine."""


class QmpError(HardwareError):
    """QEMU does not answer, or refuses."""


class Qmp:
    """Connection to one QEMU.

    Args:
        path: Unix socket that QEMU listens on.

    Raises:
        QmpError: Nobody answers there.
    """

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_TIMEOUT)
        self._rest = b""
        try:
            self._socket.connect(str(path))
            self._line()  # the greeting
            self.run("qmp_capabilities")
        except QmpError:
            self.close()  # QEMU talks to one at a time
            raise
        except OSError as error:
            self.close()
            raise QmpError(f"QEMU does not answer at {path}: {error}") from error

    def run(self, command: str, **arguments: Any) -> Any:
        """Return the answer to a command.

        Raises:
            QmpError: QEMU refused it, ended, or did not answer in time.
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
                    raise QmpError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
        except (OSError, ValueError) as error:
            raise QmpError(f"QEMU does not answer {command}: {error}") from error
        raise QmpError(f"QEMU does not answer {command} within {ANSWER_TIMEOUT:.0f} s")

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
