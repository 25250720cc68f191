"""``python -m cards_bringup``: the same as ``./cards``, in an environment that is complete."""

from __future__ import annotations

import sys

from cards_bringup.bootstrap.process import CommandInterrupts, open_streams
from cards_core.exit_codes import ExitCode


def run() -> int:
    """Run the command line and return the exit code."""
    interrupts = CommandInterrupts()
    code: int = ExitCode.INTERRUPTED
    try:
        interrupts.accept()
        open_streams()
        from cards_bringup.cli import main

        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
    except Exception:
        # modules that are interrupted while they are imported may make an error of it
        if not interrupts.seen:
            raise
    interrupts.end(code)
    return code


if __name__ == "__main__":
    sys.exit(run())
