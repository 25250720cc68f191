"""A board in Python behind a pseudo-terminal, for what a real one does not do on command.

It speaks the protocol with the codec of the package and does no control: measured tensions follow
the commanded ones at once. It can be made to disobey: another version, another address, no
answers, a clock of its own pace, a second identity, a reset.
"""

from __future__ import annotations

import os
import select
import threading
import time
import tty

import numpy as np

from cards_hardware.protocol.codec import encode, unpack
from cards_hardware.protocol.enums import AckCode, Caps, FastFlag, ParameterId, Request, State
from cards_hardware.protocol.frames import Frame, FrameDecoder
from cards_hardware.protocol.schema import BROADCAST, MAJOR
from cards_hardware.protocol.table import MESSAGES

_CAPS = Caps.IMPEDANCE | Caps.TENSION | Caps.LENGTH | Caps.LOAD | Caps.JOINTS


class FakeBoard:
    """Attributes are read and written by tests; the thread looks at them all the time."""

    def __init__(
        self, muscles: int = 2, joints: int = 1, *, node: int = 1, rate: float = 200.0
    ) -> None:
        self.muscles, self.joints, self.node = muscles, joints, node
        self.rate = rate
        self.uid = bytes(range(node, node + 8))
        self.caps = _CAPS
        self.major = MAJOR
        self.boot_count = 1
        self.state = State.DISARMED
        self.fault = 0
        self.mute = False
        self.silent_types: set[str] = set()
        self.refuse: dict[str, int] = {}
        self.clock_offset = 123_456_789  # [us]
        self.clock_rate = 1.0
        self.limits_loaded = False
        self.limits: dict[str, object] = {}
        self.parameters: dict[tuple[int, int], int] = {(ParameterId.CALIBRATION, 0): 0}
        self.tensions = np.full(muscles, 10.0)
        self.lengths = np.linspace(0.1, 0.2, muscles)
        self.positions = np.linspace(0.1, 0.4, joints)
        self.second_uid: bytes | None = None
        self.keep_commands = True
        self.received: list[tuple[str, Frame]] = []
        self.commands: list[tuple[str, dict]] = []
        self.token = 0
        self.cmd_t_us = 0
        self.cmd_at = 0
        self._seq: dict[str, int] = {}
        self._decoder = FrameDecoder()
        self._end = threading.Event()
        self.port = ""
        self._thread: threading.Thread | None = None
        self._master = -1

    def __enter__(self) -> FakeBoard:
        self.plug()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def plug(self, link: str | None = None) -> None:
        self._master, slave = os.openpty()
        tty.setraw(slave)
        path = os.ttyname(slave)
        os.close(slave)
        if link is not None:
            if os.path.islink(link):
                os.unlink(link)
            os.symlink(path, link)
        self.port = link or path
        os.set_blocking(self._master, False)
        self._end.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join(2.0)
            os.close(self._master)
            self._thread = None

    def reset(self) -> None:
        """Restart, as after a brown-out."""
        self.boot_count += 1
        self.limits_loaded = False
        self.state = State.DISARMED
        self.clock_offset = -self._host_us()
        self.cmd_t_us = 0
        self._seq.clear()

    def _host_us(self) -> int:
        return time.monotonic_ns() // 1000

    def now(self) -> int:
        return int(self._host_us() * self.clock_rate) + self.clock_offset

    def send(self, name: str, values: dict, *, flags: int = 0) -> None:
        if self.mute or name in self.silent_types:
            return
        seq = self._seq[name] = (self._seq.get(name, -1) + 1) & 255
        wire = encode(name, values, node=self.node, seq=seq, t_us=self.now() % 2**32, flags=flags)
        if self.major != MAJOR:
            wire = _other_major(wire, self.major)
        with _ignore_errors():
            os.write(self._master, wire)

    def _run(self) -> None:
        next_fast = next_slow = time.monotonic()
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        while not self._end.is_set():
            now = time.monotonic()
            wait = max(0.0, min(next_fast - now, 0.02))
            if poll.poll(wait * 1e3):
                data = b""
                with _ignore_errors():
                    data = os.read(self._master, 4096)
                if not data:
                    time.sleep(0.001)  # nobody has it open
                for frame in self._decoder.feed(data):
                    self._handle(frame)
            now = time.monotonic()
            if now >= next_fast:
                next_fast = max(next_fast + 1.0 / self.rate, now)
                self.send_fast()
            if now >= next_slow:
                next_slow = now + 0.1
                self.send_slow()
                beat = {"state": int(self.state), "fault": self.fault, "t_peer": 0}
                self.send("HEARTBEAT", beat)

    def send_fast(self) -> None:
        flags = FastFlag.SIMULATED | (FastFlag.LIMITS_LOADED if self.limits_loaded else 0)
        m, j = self.muscles, self.joints
        self.send(
            "STATE_FAST",
            {
                "state": int(self.state),
                "muscles": m,
                "joints": j,
                "flags": int(flags),
                "cmd_t_us": self.cmd_t_us,
                "cmd_age_us": self.now() - self.cmd_at if self.cmd_t_us else 2**32 - 1,
                "loop_us": 100,
                "length": self.lengths[:m],
                "rate": np.zeros(m),
                "tension": self.tensions[:m],
                "current": np.zeros(m),
                "position": self.positions[:j],
                "velocity": np.zeros(j),
            },
        )

    def send_slow(self) -> None:
        m = self.muscles
        zero = dict.fromkeys(
            ("rx_ok", "rx_crc", "rx_gap", "tx_dropped", "drive_errors", "tick_late"), 0
        )
        self.send(
            "STATE_SLOW",
            {
                **zero,
                "muscles": m,
                "fault": self.fault,
                "vbus": 24.0,
                "tick_max_us": 200,
                "refused": [0] * 10,
                "housing": np.full(m, 30.0),
                "core": np.full(m, 35.0),
                "mflags": [0] * m,
                "tension_limit": np.full(m, 400.0),
            },
        )

    def ack(self, frame: Frame, code: int = AckCode.OK, detail: int = 65535) -> None:
        self.send(
            "ACK",
            {"type": frame.type, "seq": frame.seq, "code": int(code), "detail": detail},
            flags=2,
        )

    def _handle(self, frame: Frame) -> None:
        name = frame.name
        self.received.append((name, frame))
        if frame.node not in (self.node, BROADCAST):
            return
        if name in self.refuse:
            self.ack(frame, self.refuse[name])
            return
        values = unpack(frame)
        if name.startswith("CMD_"):
            self._command(name, values, frame)
            return
        handler = getattr(self, f"_on_{name.lower()}", None)
        if handler is not None:
            handler(values, frame)

    def _command(self, name: str, values: dict, frame: Frame) -> None:
        self.commands.append((name, values))
        if self.state not in (State.ARMED, State.ACTIVE, State.HOLD):
            self.ack(frame, AckCode.STATE)
            return
        self.state = State.ACTIVE
        self.cmd_t_us, self.cmd_at = frame.t_us, self.now()
        if name == "CMD_TENSION":
            rows = [i for i in range(self.muscles) if values["mask"] >> i & 1]
            self.tensions[rows] = values["tension"]

    def _on_hello(self, values: dict, _frame: Frame) -> None:
        for uid in filter(None, (self.uid, self.second_uid)):
            self.token += 1
            ident = {
                "nonce": values["nonce"],
                "arm_token": self.token,
                "firmware": 0x010203,
                "hardware": 1,
                "muscles": self.muscles,
                "joints": self.joints,
                "caps": int(self.caps),
                "cfg_crc": 0,
                "reset_cause": 5,
                "boot_count": self.boot_count,
                "limits_loaded": int(self.limits_loaded),
                "uid": uid,
            }
            self.send("IDENT", ident, flags=2 | 4)

    def _on_time_sync(self, values: dict, _frame: Frame) -> None:
        now = self.now() % 2**32
        self.send("TIME_SYNC", {"t1": values["t1"], "t2": now, "t3": now}, flags=2)

    def _on_limits(self, values: dict, frame: Frame) -> None:
        if self.state != State.DISARMED:
            self.ack(frame, AckCode.STATE)
            return
        self.limits, self.limits_loaded = values, True
        self.ack(frame)

    def _on_limits_get(self, _values: dict, _frame: Frame) -> None:
        self.send("LIMITS", self.limits, flags=2)

    def _on_param_set(self, values: dict, frame: Frame) -> None:
        self.parameters[values["id"], values["index"]] = values["value"]
        self.ack(frame)

    def _on_param_get(self, values: dict, _frame: Frame) -> None:
        key = values["id"], values["index"]
        known = key in self.parameters
        self.send(
            "PARAM_VALUE",
            {
                "id": key[0],
                "index": key[1],
                "value": self.parameters.get(key, 0),
                "code": int(AckCode.OK if known else AckCode.UNKNOWN),
            },
            flags=2,
        )

    def _on_param_save(self, _values: dict, frame: Frame) -> None:
        self.ack(frame)

    def _on_state_request(self, values: dict, frame: Frame) -> None:
        request = values["request"]
        if request in (Request.ARM, Request.CLEAR) and values["token"] != self.token:
            self.ack(frame, AckCode.TOKEN)
            return
        latched = self.state in (State.ESTOP, State.FAULT)
        if latched and request != Request.CLEAR:
            self.ack(frame, AckCode.STATE)
            return
        self.token += 1
        self.state = {
            Request.ARM: State.ARMED,
            Request.DISARM: State.DISARMED,
            Request.RELAX: State.RELAX,
            Request.CLEAR: State.DISARMED,
        }[Request(request)]
        self.ack(frame)

    def _on_estop(self, _values: dict, _frame: Frame) -> None:
        self.state = State.ESTOP
        self.tensions[:] = 10.0

    def names(self) -> list[str]:
        """Names of the messages that came, in order."""
        return [name for name, _ in self.received]


def message_id(name: str) -> int:
    return MESSAGES[name].id


class _ignore_errors:  # noqa: N801
    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, OSError)


def _other_major(wire: bytes, major: int) -> bytes:
    """Return the frame as a board of another version would send it."""
    from cards_hardware.protocol.frames import encode_frame

    frame = FrameDecoder().feed(wire)[0]
    return encode_frame(
        Frame(major, frame.flags, frame.node, frame.type, frame.seq, frame.t_us, frame.payload)
    )
