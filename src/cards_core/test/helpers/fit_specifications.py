"""Specifications of muscle fits from plain data instead of a file."""

import json
import tempfile
from pathlib import Path

import numpy as np

from cards_core.analysis.muscle_fit.reading import read_specification


def specification_of(data, robot):
    """Return the specification that a file with this data states."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fit.yaml"  # JSON is YAML
        file.write_text(json.dumps(data, default=np.ndarray.tolist), encoding="utf-8")
        return read_specification(file, robot)
