"""``./cards compile``: turn a robot into native code, with a report."""

from __future__ import annotations

from typing import Any


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    from cards_model_compiler.command import add_arguments

    parser = subparsers.add_parser(
        "compile", help="turn a robot into native code, with a report", description=__doc__
    )
    add_arguments(parser, "./cards compile")
