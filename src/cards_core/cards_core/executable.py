"""Executables: Ctrl-C ends them quietly at any time, also while they import.

A node imports for seconds before it can answer Ctrl-C. Its executable imports this module first,
which imports next to nothing itself: before, Python answers Ctrl-C with a traceback.
"""

from __future__ import annotations

import os
import signal

from cards_core.exit_codes import ExitCode

TYPE_CHECKING = False  # the module typing takes as long as all of the others
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def executable(
    module: str, *, interrupted: int = ExitCode.DONE
) -> Callable[[Sequence[str] | None], int]:
    """Return an entry point that imports ``main`` of a module when it is called, and runs it.

    For the main thread: it handles SIGINT, unless the process ignores it.

    Args:
        module: Name of the module.
        interrupted: Exit code after Ctrl-C before ``main`` answers it itself; that of nodes.
    """

    def main(args: Sequence[str] | None = None) -> int:
        code: int = interrupted
        # not as an exception while modules are imported: they may make any error of it
        handled = _end_on_interrupt(code)
        import importlib

        run = importlib.import_module(module).main
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code = run(args)
        except KeyboardInterrupt:
            code = interrupted
        # the same Ctrl-C may come again, from the terminal and from a launcher
        _end_on_interrupt(code)
        return code

    return main


def _end_on_interrupt(code: int) -> bool:
    """Let Ctrl-C end the process at once where Python handles it; tell whether it does."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(code))
    return True
