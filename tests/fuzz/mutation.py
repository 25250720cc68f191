"""Damaged copies of documents for a guided search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import yaml
from damaged_files import mutate_tree, mutate_values, mutate_yaml


def mutated(
    grammar: str, plain: Callable[[bytes, int], bytes], data: bytes, longest: int, seed: int
) -> bytes:
    """Return a damaged copy: half of them as libFuzzer makes them, half within the grammar.

    Nearly all of the first are no XML or YAML any more, and most of a reader lies behind that.

    Args:
        grammar: "xml" or "yaml".
        plain: libFuzzer's own mutation of bytes, with the longest that may come out.
        data: The document.
        longest: Of the copy, bytes.
        seed: Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    choice = int(rng.integers(4))
    if choice >= 2 and b"<!ENTITY" not in data:  # which would grow here
        try:
            text = data.decode("utf-8")
            if grammar == "yaml":
                out = mutate_yaml(rng, text)
            else:
                out = (mutate_tree if choice == 2 else mutate_values)(rng, text)
        except (ValueError, TypeError, SyntaxError, RecursionError, yaml.YAMLError):
            pass  # the copy that is to be damaged is no document itself
        else:
            if len(out) <= longest:
                return out
    return plain(data, longest)
