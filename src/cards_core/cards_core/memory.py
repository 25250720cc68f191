"""How much memory there is, and the refusal of what would not fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from cards_core.errors import CardsError

SHARE = 0.5
"""Of the free memory that one computation may take: others run on the machine too."""


def free_memory() -> int:
    """Return the memory that can be had without swapping, [bytes]."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def most_items(bytes_each: float) -> int:
    """Return how many things of a size fit into the share of the memory that we take."""
    return max(1, int(SHARE * free_memory() / bytes_each))


def check_fits(count: float, bytes_each: float, what: str, remedy: str) -> None:
    """Refuse more than fits into the memory.

    Args:
        count: Number of things; may be infinite.
        bytes_each: Memory that each takes, [bytes].
        what: What they are, in the plural.
        remedy: What would be right; ``{most}`` stands for the largest number of things.

    Raises:
        CardsError: They do not fit; the message says how many they are and how much they take.
    """
    most = most_items(bytes_each)
    if not count <= most:
        raise CardsError(
            f"{count:.4g} {what} take {_size(count * bytes_each)} of memory; "
            f"{_size(free_memory())} are free, of which half may be used (expected: "
            f"{remedy.format(most=most)})"
        )


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000.0:
            return f"{number:.3g} {unit}"
        number /= 1000.0
    return f"{number:.3g} PB"
