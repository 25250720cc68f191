"""What browsers and hostile pages do to a page: reloads, broken connections, foreign requests."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import time
from importlib.metadata import version

import numpy as np

TIMEOUT = 10.0
"""Of an answer, [s]."""

UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"


def request(
    port: int,
    path: str,
    *,
    host: str | None = None,
    origin: str | None = None,
    websocket: bool = False,
    hang_up: bool = False,
) -> int | None:
    """Send one request; return the status of the answer, None without one.

    Args:
        port: Of the page.
        path: With its query.
        host: ``Host``; None: this machine and port.
        origin: ``Origin``; None: none.
        websocket: Ask for a websocket.
        hang_up: Close without waiting, in the middle of the request.
    """
    lines = f"GET {path} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{port}'}\r\n"
    if origin is not None:
        lines += f"Origin: {origin}\r\n"
    if websocket:
        lines += f"{UPGRADE}Sec-WebSocket-Protocol: viser-v{version('viser')}\r\n"
        lines += f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), TIMEOUT) as s:
        s.settimeout(TIMEOUT)
        text = (lines + "\r\n").encode()
        if hang_up:
            s.sendall(text[: len(text) // 2])
            return None
        s.sendall(text)
        first = s.recv(64).decode("latin-1")
        if first.startswith("HTTP/1.1 "):
            return int(first[9:12])
    return None


def reload(port: int, token: str, duration: float, seed: int) -> dict[str, int]:
    """Load the page and its websocket again and again; some browsers vanish half-way.

    Args:
        port: Of the page.
        token: The right one.
        duration: [s].
        seed: Chance.

    Returns:
        Answers by status, ``none`` for those that there were not.
    """
    rng = np.random.default_rng(seed)
    query = f"/?token={token}"
    own = f"http://127.0.0.1:{port}"
    seen: dict[str, int] = {}
    end = time.monotonic() + duration
    while time.monotonic() < end:
        status = request(port, query)
        seen[str(status)] = seen.get(str(status), 0) + 1
        hang_up = bool(rng.random() < 0.3)
        status = request(port, query, origin=own, websocket=True, hang_up=hang_up)
        if not hang_up:
            seen[f"websocket {status}"] = seen.get(f"websocket {status}", 0) + 1
        time.sleep(float(rng.uniform(0.0, 0.2)))
    return seen


def intrude(port: int, token: str, duration: float) -> tuple[dict[str, int], list[str]]:
    """Ask as a hostile page does; return answers by status, and what was let in.

    Args:
        port: Of the page.
        token: The right one: the other checks must hold by themselves.
        duration: [s].
    """
    wrong = "A" * len(token)
    right, own = f"/?token={token}", f"http://127.0.0.1:{port}"
    attempts = {
        "another origin": {"path": right, "origin": "http://evil.example", "websocket": True},
        "no token": {"path": "/", "origin": own, "websocket": True},
        "a wrong token": {"path": f"/?token={wrong}", "origin": own, "websocket": True},
        "another host": {
            "path": right,
            "host": f"evil.example:{port}",
            "origin": f"http://evil.example:{port}",
            "websocket": True,
        },
        "a page without a token": {"path": "/"},
        "origin null": {"path": right, "origin": "null", "websocket": True},
    }
    seen: dict[str, int] = {}
    let_in: list[str] = []
    end = time.monotonic() + duration
    while True:
        for name, keywords in attempts.items():
            status = request(port, **keywords)  # type: ignore[arg-type]
            seen[str(status)] = seen.get(str(status), 0) + 1
            if status is not None and status < 400:
                let_in.append(f"{name}: status {status}")
        if time.monotonic() > end:
            return seen, sorted(set(let_in))
        time.sleep(0.05)
