"""Write what is derived from the protocol's tables.

Run as ``python -m cards_hardware.protocol.generate``. With ``--check`` nothing is written; the
exit status is 1 if a file differs from the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cards_hardware.protocol.generate import c_codec, golden


def files() -> dict[str, str]:
    """Return the text of every generated file by its path below the checkout."""
    return {
        "firmware/core/protocol.h": c_codec.header(),
        "firmware/core/protocol.c": c_codec.source(),
        "firmware/test/golden_vectors.txt": golden.text(),
    }


def checkout() -> Path:
    """Return the top folder of the checkout that this module lies in."""
    return Path(__file__).resolve().parents[5]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cards_hardware.protocol.generate")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--top", type=Path, default=checkout(), help="top folder to write in")
    options = parser.parse_args(arguments)
    different = []
    for name, text in files().items():
        file = options.top / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            different.append(name)
            if not options.check:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    for name in different:
        print(f"{name}: {'differs from the tables' if options.check else 'written'}")
    if options.check and different:
        print("run: python -m cards_hardware.protocol.generate", file=sys.stderr)
        return 1
    return 0
