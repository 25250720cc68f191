"""Names that are safe in SDF, ROS messages, YAML and file systems.

CASPR names are free text (``IPAnema 1 (Fraunhofer IPA)``) and need not be unique. Ours consist of
letters, digits, ``_``, ``-`` and ``.``; every run of other characters becomes one ``_``. Links,
joints and frames share one name space, as SDF demands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(text: str, fallback: str = "unnamed") -> str:
    """Return ``text`` with unsafe characters replaced, ``fallback`` if nothing is left."""
    name = _UNSAFE.sub("_", text.strip()).strip("_.")
    # a leading dash would read as an option on a command line
    return name.lstrip("-") or fallback


class NameTable:
    """Hands out unique names and remembers what was renamed.

    Args:
        reserved: Names that may not be handed out.

    Attributes:
        renamed: (original, name) pairs of everything whose name changed, in order.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self.renamed: list[tuple[str, str]] = []

    def claim(self, text: str, fallback: str = "unnamed") -> str:
        """Return a safe, unique name for ``text``: the first free of name, name_2, name_3, ..."""
        base = safe_name(text, fallback)
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        if name != text:
            self.renamed.append((text, name))
        return name
