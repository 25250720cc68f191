"""Node ``impedance``: set-points of the muscles' impedance law, sine gaits, replay."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cards_ros.controller_node import run_controller


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``impedance``."""
    return run_controller("impedance", args)


if __name__ == "__main__":
    sys.exit(main())
