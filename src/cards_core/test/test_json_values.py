"""Values as JSON holds them: what is written is what strict JSON reads."""

import enum
import json
from pathlib import Path

import numpy as np
import pytest

from cards_core.json_values import json_value


class _Level(enum.IntEnum):
    WARN = 2


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.float32(0.5), 0.5),
        (float("nan"), None),
        (-np.inf, None),
        (np.bool_(True), True),
        (np.int64(3), 3),
        (_Level.WARN, 2),
        (np.array(1.5), 1.5),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        ({1: (np.float64(2.0), "a", None)}, {"1": [2.0, "a", None]}),
        (Path("a/b"), "a/b"),
    ],
)
def test_values(value: object, wanted: object) -> None:
    found = json_value(value)
    assert found == wanted
    assert type(found) is type(wanted)
    assert json.loads(json.dumps(found, allow_nan=False)) == wanted
