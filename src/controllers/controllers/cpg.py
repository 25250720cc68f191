"""Node ``cpg``: a central pattern generator leads the muscles."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cards_ros.controller_node import run_controller


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``cpg``."""
    return run_controller("cpg", args)


if __name__ == "__main__":
    sys.exit(main())
