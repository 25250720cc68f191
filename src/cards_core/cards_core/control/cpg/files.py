"""Pattern generators from files of either kind."""

from __future__ import annotations

from pathlib import Path

from cards_core.control.cpg.ntrt import read_json
from cards_core.control.cpg.parameters import PatternParameters, read_parameters


def read_pattern(path: str | Path) -> PatternParameters:
    """Read the file of a pattern generator: ours, or a learned set of NASA's toolkit (JSON).

    Raises:
        DescriptionError: It cannot be read, or a value is missing or does not fit.
    """
    return (read_json if Path(path).suffix.lower() == ".json" else read_parameters)(path)
