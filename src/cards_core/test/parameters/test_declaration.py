"""Parameters must refuse what does not fit, and say what would."""

import numpy as np
import pytest
from parameter_samples import COUNT, FLAG, KP, LIMIT, MODE, POSTURE, RATE

from cards_core.errors import ParameterError


@pytest.mark.parametrize(
    ("spec", "value", "result"),
    [
        (KP, [1.0, 2.0], [1.0, 2.0]),
        (KP, [1, 2], [1.0, 2.0]),
        (KP, 7, [7.0, 7.0]),
        (KP, np.array([3.0, 4.0]), [3.0, 4.0]),
        (RATE, 20, 20.0),
        (RATE, 1000.0, 1000.0),
        (COUNT, 0, 0),
        (MODE, "slow", "slow"),
        (FLAG, False, False),
        (POSTURE, "home", "home"),
        (POSTURE, [0.5, 1], [0.5, 1.0]),
        (LIMIT, [np.inf, 1.0], [np.inf, 1.0]),
    ],
)
def test_accepted_values(spec, value, result):
    checked = spec.check(value)
    assert type(checked) is (np.ndarray if isinstance(result, list) else type(result))
    assert np.array_equal(checked, result)


@pytest.mark.parametrize(
    ("spec", "value", "words"),
    [
        (KP, [1.0, 2.0, 3.0], ["kp", "3 values", "2 numbers, one for each of a, b"]),
        (KP, [], ["kp", "0 values", "2 numbers"]),
        (KP, [1.0, -1.0], ["-1", "0 .. inf"]),
        (KP, [1.0, np.nan], ["finite"]),
        (KP, [1.0, np.inf], ["finite"]),
        (KP, "400", ["list of 2 numbers"]),
        (KP, [True, False], ["list of 2 numbers"]),
        (KP, ["1", "2"], ["list of 2 numbers"]),
        (KP, None, ["0 values"]),
        (RATE, 0.5, ["rate", "0.5", "1 .. 1000"]),
        (RATE, np.nan, ["1 .. 1000"]),
        (RATE, True, ["a number"]),
        (RATE, [1.0], ["a number"]),
        (COUNT, 11, ["0 .. 10"]),
        (COUNT, 1.5, ["whole number"]),
        (MODE, "quick", ["fast or slow"]),
        (MODE, 1, ["text"]),
        (FLAG, 1, ["true or false"]),
        (POSTURE, "left", ["mid or home"]),
        (POSTURE, [1.0], ["1 values", "a, b"]),
        (LIMIT, [np.nan, 1.0], ["0 .. inf"]),
        (LIMIT, [-1.0, 1.0], ["0 .. inf"]),
    ],
)
def test_refused_values(spec, value, words):
    with pytest.raises(ParameterError) as caught:
        spec.check(value)
    for word in [f"'{spec.name}'", "expected", *words]:
        assert word in str(caught.value)
