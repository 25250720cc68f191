"""C text of constants: every number as it is, so that the same robot gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

WIDTH = 96
"""Longest line of an array."""


def number(value: float) -> str:
    """Return a finite number as a constant of the type ``cards_real``.

    Raises:
        ValueError: It is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no constant in C")
    return f"(cards_real){float(value)!r}"


def array(
    kind: str, name: str, values: npt.ArrayLike, remark: str = "", *, missing: bool = False
) -> str:
    """Return the definition of a constant array; an empty one has one entry, 0.

    Args:
        kind: C type of the entries, ``cards_real`` or a kind of integer.
        name: Of the array.
        values: Flattened by rows; finite.
        remark: Put into a comment before it.
        missing: Whether there may be NaN for what is not known.

    Raises:
        ValueError: A number is not finite.
    """
    flat = np.asarray(values).ravel()
    if kind == "cards_real":
        texts = [
            "(cards_real)NAN" if missing and math.isnan(value) else number(float(value))
            for value in flat
        ]
    else:
        texts = [str(int(value)) for value in flat]
    head = f"/* {remark} */\n" if remark else ""
    return f"{head}static const {kind} {name}[] = {{\n{_lines(texts or ['0'])}}};\n"


def names(symbol: str, size: str, values: Sequence[str]) -> str:
    """Return the definition of an array of names.

    Args:
        symbol: Of the array.
        size: Its size in C.
        values: The names; none: one empty name.
    """
    texts = [quoted(value) for value in values] or ['""']
    return f"const char *const {symbol}[{size}] = {{\n{_lines(texts)}}};\n"


def quoted(text: str) -> str:
    """Return a string constant; what is not printable ASCII becomes its bytes in UTF-8."""
    out = ""
    for byte in text.encode():
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        out += chr(byte) if plain else f"\\{byte:03o}"
    return f'"{out}"'


def define(name: str, value: str | int | float) -> str:
    """Return a line that defines a macro."""
    return f"#define {name} {number(value) if isinstance(value, float) else value}\n"


def _lines(texts: Iterable[str]) -> str:
    out, line = "", "   "
    for text in texts:
        if len(line) + len(text) + 2 > WIDTH:
            out, line = out + line + "\n", "   "
        line += f" {text},"
    return out + line + "\n"
