"""Ports that are kept for pages which are not open yet.

A demo says where its page will be seconds before the page's process listens there. Until then a
second demo would find the port free, and say the same. So the first one reserves it, by a lock of
the operating system that ends with the process, and its nodes know of it by `VARIABLE`.
"""

from __future__ import annotations

import os

from cards_core.files import claim

VARIABLE = "CARDS_PORTS"
"""Environment variable: ports that a parent of this process has reserved, with commas between."""

_held: dict[int, int] = {}


def is_reserved(port: int) -> bool:
    """Tell whether a process that is no parent of this one has reserved a port."""
    if port in _held or is_kept(port):
        return False
    lock = claim(_name(port), shared=True)
    if lock is None:
        return True
    os.close(lock)
    return False


def is_kept(port: int) -> bool:
    """Tell whether this process, or a parent of it, has reserved a port, and told its link."""
    return str(port) in os.environ.get(VARIABLE, "").split(",")


def reserve(port: int) -> bool:
    """Keep a port for this process and its children, until it ends; False if another has it."""
    if port in _held:
        return True
    if is_reserved(port):
        return False
    lock = claim(_name(port))
    if lock is None:
        return False
    _held[port] = lock
    before = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = ",".join(filter(None, (before, str(port))))
    return True


def _name(port: int) -> str:
    return f"port-{port}"
