"""Node of a controller from a Python file: ``ros2 run cards_ros controller my_controller.py``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cards_core.control.registry import controller_file
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_ros.controller_node import run_controller


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``controller``.

    Args:
        args: The file, then arguments for ROS; default ``sys.argv``.
    """
    given = list(sys.argv[1:] if args is None else args)
    if not given or given[0].startswith("-"):
        print("usage: controller FILE.py [--ros-args ...]", file=sys.stderr)
        return ExitCode.ERROR
    try:
        kind = controller_file(given[0])
    except CardsError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.ERROR
    return run_controller(kind, [sys.argv[0], *given[1:]])


if __name__ == "__main__":
    sys.exit(main())
