"""Speaks the protocol with a board on a port and listens on its drive bus; no bridge code."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
import tty

from cards_hardware.protocol.codec import encode, unpack
from cards_hardware.protocol.frames import FrameDecoder
from cards_hardware.protocol.schema import MAJOR

PATIENCE = 20.0
"""Time [s] after which a test gives up on a busy machine; nothing is measured with it."""


def now_us():
    return time.monotonic_ns() // 1000 % 2**32


class Talk:
    """The host's end of a link, as plain as possible."""

    def __init__(self, port):
        self.fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self.fd)
        self.decoder = FrameDecoder()
        self.frames = []
        self.seq = {}
        self.node = 127
        self.sent_us = 0
        self.received_us = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def send(self, name, values=None, *, flags=0):
        node = 127 if name == "HELLO" else self.node
        seq = self.seq[name] = (self.seq.get(name, -1) + 1) % 256
        self.sent_us = now_us()
        wire = encode(name, values or {}, node=node, seq=seq, t_us=self.sent_us, flags=flags)
        self.write(wire)

    def write(self, data):
        while data:
            _, ready, _ = select.select([], [self.fd], [], PATIENCE)
            assert ready, "the board does not read"
            data = data[os.write(self.fd, data) :]

    def poll(self, timeout=0.05):
        """Read what is there into `frames`."""
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if ready:
            with contextlib.suppress(BlockingIOError):
                data = os.read(self.fd, 65536)
                self.received_us = now_us()
                self.frames += self.decoder.feed(data)

    def wait(self, name, accept=lambda _frame: True):
        """Return the next frame of a kind, and forget all before it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.poll()
            for number, frame in enumerate(self.frames):
                if frame.name == name and accept(frame):
                    del self.frames[: number + 1]
                    return frame
        raise AssertionError(f"no {name}; got {sorted({frame.name for frame in self.frames})}")

    def identify(self, nonce=77):
        """Return the answer to a HELLO, header and content."""
        self.send("HELLO", {"min_major": MAJOR, "max_major": MAJOR, "nonce": nonce})
        frame = self.wait("IDENT", lambda found: unpack(found)["nonce"] == nonce)
        self.node = frame.node
        return frame, unpack(frame)

    def ask(self, name, values=None):
        """Return the code of the answer to a request."""
        from cards_hardware.protocol.enums import HeaderFlag

        self.send(name, values, flags=HeaderFlag.ACK_REQUEST)
        return unpack(self.wait("ACK"))["code"]


class Drives:
    """Listens on the drive bus and answers nothing."""

    def __init__(self, path):
        self.path = path
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()
        self.peer = None
        self.decoder = FrameDecoder()

    def accept(self):
        """Take the board that has connected."""
        self.server.settimeout(PATIENCE)
        self.peer, _ = self.server.accept()
        self.peer.settimeout(PATIENCE)
        self.decoder = FrameDecoder()

    def hear(self, count):
        """Return that many frames of the board."""
        frames = []
        while len(frames) < count:
            data = self.peer.recv(65536)
            assert data, "the board has gone"
            frames += self.decoder.feed(data)
        return frames

    def close(self):
        if self.peer is not None:
            self.peer.close()
        self.server.close()
