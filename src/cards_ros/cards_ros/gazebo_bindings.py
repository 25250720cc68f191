"""Gazebo's Python bindings: the one place that knows how their modules are called and finds them.

Up to Ionic the modules carry the number of their library in their names, from Jetty on they do
not; all that is used here is the same in each of them. Standard library only, and nothing of
Gazebo is imported before it is asked for: the search for an installed Gazebo reads the names too.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import astuple, dataclass
from typing import Any

from cards_core.errors import CardsError


@dataclass(frozen=True)
class Names:
    """Names of the modules of one release."""

    sim: str
    math: str
    transport: str
    msgs: str
    sdformat: str

    def __str__(self) -> str:
        """List them, as after ``import``; without messages, which only windows need."""
        return ", ".join(name for name in astuple(self) if name != self.msgs)


NUMBERED = {
    8: Names("gz.sim8", "gz.math7", "gz.transport13", "gz.msgs10", "sdformat14"),  # Harmonic
    9: Names("gz.sim9", "gz.math8", "gz.transport14", "gz.msgs11", "sdformat15"),  # Ionic
}
"""By major version of ``gz sim``."""

UNNUMBERED = Names("gz.sim", "gz.math", "gz.transport", "gz.msgs", "sdformat")
"""Of all later versions."""

EVERY = (UNNUMBERED, *NUMBERED.values())
"""In the order in which they are tried."""


def names(major: int) -> Names:
    """Return the names that belong to a major version of ``gz sim``."""
    return NUMBERED.get(major, UNNUMBERED)


@dataclass(frozen=True)
class Bindings:
    """The modules of the Gazebo that loaded us.

    Attributes:
        sim, math: ``gz.sim`` and ``gz.math``.
        transport: ``gz.transport``, None if it is not installed.
    """

    sim: Any
    math: Any
    transport: Any


def bindings() -> Bindings:
    """Return the bindings of the Gazebo in this process.

    The one that loaded us has imported its ``gz.sim`` already; what else is installed does not
    matter. Without one (tests), the first that can be imported.

    Raises:
        CardsError: There are none.
    """
    loaded = [one for one in EVERY if one.sim in sys.modules]
    for one in loaded or EVERY:
        found = Bindings(_module(one.sim), _module(one.math), _module(one.transport))
        if found.sim is not None and found.math is not None:
            return found
    raise CardsError("Gazebo's Python bindings (gz.sim or gz.sim8, and gz.math) are not installed")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
