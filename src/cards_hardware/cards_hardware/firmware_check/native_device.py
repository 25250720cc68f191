"""A whole board in this process, whose clock the caller advances.

The firmware's core as it is flashed, compiled for this machine; drives that answer every tick and
load cells that show what the current pulls. For tests that must see every tick.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cards_hardware.errors import HardwareError
from cards_hardware.firmware_check.native_codec import build
from cards_hardware.protocol.codec import Values, encode, unpack
from cards_hardware.protocol.enums import AckCode, Request, State
from cards_hardware.protocol.frames import FrameDecoder
from cards_hardware.protocol.parameters import ParameterId
from cards_hardware.protocol.schema import MAX_MUSCLES

_ROOM = 65536

LIMITS: dict[str, float] = {
    "tension_max": 400.0,
    "tension_min": 0.0,
    "tension_safe": 10.0,
    "length_min": 0.1,
    "length_max": 0.6,
    "rate_max": 1.0,
    "current_max": 9.0,
    "soft": 60.0,
    "hard": 80.0,
    "slew": 2000.0,
}
"""Limits of every muscle, SI units."""


class _View(ctypes.Structure):
    _fields_ = (
        ("time_us", ctypes.c_uint32),
        ("state", ctypes.c_uint32),
        ("cmd_t_us", ctypes.c_uint32),
        ("refused", ctypes.c_uint32 * (len(AckCode) - 1)),
        ("tension", ctypes.c_int16 * MAX_MUSCLES),
        ("slew", ctypes.c_uint16 * MAX_MUSCLES),
        ("current", ctypes.c_int16 * MAX_MUSCLES),
    )


class NativeDevice:
    """A board.

    The library has one board: a new object of the same library starts it anew.

    Args:
        folder: Where the library is built.
        time_us: Its clock at start, [us].

    Attributes:
        view: What may be seen of the last tick: time_us, state, cmd_t_us, refused per `AckCode`
            from 1 on, tension [0.1 N] and slew [N/s] commanded, current sent to the drives [mA].

    Raises:
        HardwareError: It cannot be built.
    """

    def __init__(self, folder: Path, time_us: int = 1_000_000) -> None:
        self._library = build(folder, "native_device", ("test/native_device.c", "core/*.c"))
        self._library.native_tick.restype = ctypes.c_size_t
        self._out = ctypes.create_string_buffer(_ROOM)
        self._decoder = FrameDecoder()
        self._seq: dict[str, int] = {}
        self.view = _View()
        self.view.time_us = time_us
        self._library.native_start(ctypes.c_uint32(time_us))

    @property
    def state(self) -> State:
        """State after the last tick."""
        return State(self.view.state)

    def tick(self, data: bytes = b"", step_us: int = 1000) -> bytes:
        """Hand over bytes of the host, let time pass, tick; return the bytes for the host."""
        used = self._library.native_tick(
            ctypes.c_uint32(step_us),
            data,
            ctypes.c_size_t(len(data)),
            self._out,
            ctypes.c_size_t(_ROOM),
            ctypes.byref(self.view),
        )
        return self._out.raw[:used] if used else b""

    def send(
        self, name: str, values: Mapping[str, Any], flags: int = 0
    ) -> list[tuple[str, Values]]:
        """Send a message stamped with the time of the next tick; return what comes in it."""
        seq = self._seq[name] = (self._seq.get(name, -1) + 1) % 256
        t_us = (self.view.time_us + 1000) % 2**32
        answer = self.tick(encode(name, values, node=1, seq=seq, t_us=t_us, flags=flags))
        return [(frame.name, unpack(frame)) for frame in self._decoder.feed(answer)]

    def request(self, name: str, values: Mapping[str, Any]) -> None:
        """Send a message that must be answered by ACK ok."""
        for kind, answer in self.send(name, values, flags=1):
            if kind == "ACK" and answer["code"] == AckCode.OK:
                return
            if kind == "ACK":
                raise HardwareError(
                    f"{name}: refused, {AckCode(answer['code']).name}, detail {answer['detail']}"
                )
        raise HardwareError(f"{name}: no answer")

    def prepare(self, muscles: int, parameters: Mapping[ParameterId, int] | None = None) -> int:
        """Set it up as a host would; return the arm token."""
        for _ in range(20):
            self.tick()
        hello = {"min_major": 1, "max_major": 1, "nonce": 77}
        token = next(v["arm_token"] for name, v in self.send("HELLO", hello) if name == "IDENT")
        for parameter, value in {ParameterId.MUSCLES: muscles, **(parameters or {})}.items():
            self.request("PARAM_SET", {"id": parameter, "index": 0, "value": value})
        for _ in range(50):
            self.tick()
        self.request("LIMITS", {key: [value] * muscles for key, value in LIMITS.items()})
        for _ in range(50):
            self.tick()
        return int(token)

    def arm(self, token: int) -> None:
        """Lead it to ARMED."""
        self.send("HEARTBEAT", {"state": State.ARMED, "fault": 0, "t_peer": 0})
        self.request("STATE_REQUEST", {"request": Request.ARM, "token": token})
