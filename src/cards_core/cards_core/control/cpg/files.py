"""Pattern generators from files of either kind."""

from __future__ import annotations

from pathlib import Path

from cards_core.control.cpg.ntrt import read_json
from cards_core.control.cpg.parameters import PatternParameters, read_parameters
from cards_core.shared_files import find_file

FOLDER = "config/patterns"
"""Where patterns are found by name."""


def pattern_file(name: str) -> Path:
    """Return the file of a pattern: a path, or a name in `FOLDER`.

    Raises:
        UnknownNameError: There is no such file.
    """
    return find_file(name, folder=FOLDER, suffix=".yaml")


def read_pattern(path: str | Path) -> PatternParameters:
    """Read the file of a pattern generator: ours, or a learned set of NASA's toolkit (JSON).

    Raises:
        DescriptionError: It cannot be read, or a value is missing or does not fit.
    """
    return (read_json if Path(path).suffix.lower() == ".json" else read_parameters)(path)
