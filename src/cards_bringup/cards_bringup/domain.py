"""A ROS domain of our own: two runs at once on one machine must not hear each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from cards_core.errors import CardsError

DOMAINS_TRIED = 20
"""How many domains from the wanted one upwards are tried."""

LAST_DOMAIN = 101
"""Highest domain that works on every platform."""


class RosDomain:
    """The first ROS domain, from ``$ROS_DOMAIN_ID`` upwards, that no other run of ours uses.

    The lock is held by the operating system and ends with the process, however it ends.

    Attributes:
        wanted: ``$ROS_DOMAIN_ID``, or 0.
        number: The domain that is ours.

    Raises:
        CardsError: ``$ROS_DOMAIN_ID`` is not a domain, or all are taken.
    """

    def __init__(self) -> None:
        text = os.environ.get("ROS_DOMAIN_ID", "0") or "0"
        if not text.isdecimal() or int(text) > LAST_DOMAIN:
            raise CardsError(f"ROS_DOMAIN_ID is '{text}' (expected: 0 to {LAST_DOMAIN})")
        self.wanted = int(text)
        folder = Path(tempfile.gettempdir()) / f"cards-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in range(self.wanted, min(self.wanted + DOMAINS_TRIED, LAST_DOMAIN + 1)):
            descriptor = os.open(folder / f"domain-{number}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            self.number = number
            self._descriptor = descriptor
            return
        raise CardsError(
            f"ROS domains {self.wanted} to {number} are all used by other runs; stop one"
        )

    def __enter__(self) -> Self:
        """Return the domain."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the domain back."""
        os.close(self._descriptor)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of processes in this domain; discovery stays on this machine."""
        out = {"ROS_DOMAIN_ID": str(self.number)}
        if "ROS_AUTOMATIC_DISCOVERY_RANGE" not in os.environ:
            out["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        return out
