"""Parameters must refuse what does not fit, and say what would."""

import numpy as np
import pytest
from parameter_samples import (
    ABOVE,
    COUNT,
    FLAG,
    KP,
    LIMIT,
    MAYBE,
    MODE,
    NUMBERS,
    POSTURE,
    RATE,
    ROWS,
    TEXTS,
)

from cards_core.errors import ParameterError
from cards_core.parameters.declaration import parameter_table

HUGE = 10**400
"""A whole number beyond the range of floating point."""


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
        (ABOVE, 1, 1.0),
        (MAYBE, None, None),
        (MAYBE, 2, 2.0),
        (NUMBERS, 5, [5.0]),
        (NUMBERS, (1, 2, 3), [1.0, 2.0, 3.0]),
        (NUMBERS, np.arange(2), [0.0, 1.0]),
        (TEXTS, "a", ("a",)),
        (TEXTS, ["a", "b"], ("a", "b")),
    ],
)
def test_accepted_values(spec, value, result):
    checked = spec.check(value)
    assert type(checked) is (np.ndarray if isinstance(result, list) else type(result))
    assert np.array_equal(checked, result)


def test_rows_of_numbers():
    first, second = ROWS.check([[1, 2], (3.0,)])
    assert first.tolist() == [1.0, 2.0]
    assert second.tolist() == [3.0]


def test_types_and_limits_in_words():
    specs = (ABOVE, MAYBE, NUMBERS, TEXTS, ROWS)
    names = ["double", "double", "double[]", "string[]", "double[][]"]
    assert [spec.type_name for spec in specs] == names
    assert ABOVE.full_description == "Step. [s] > 0, <= 1"
    assert [spec.ros_default for spec in specs] == [1e-3, None, [], [], []]


def test_tables():
    assert parameter_table([KP, MAYBE]) == [
        "| parameter | type | default | live | meaning |",
        "|---|---|---|---|---|",
        "| `kp` | double[] | 400 each | yes | Stiffness. [1/s^2] >= 0 |",
        "| `reach` | double | none |  | Reach, if there is one. [m] >= 0 |",
    ]
    assert parameter_table([ROWS], live=False) == [
        "| option | type | default | meaning |",
        "|---|---|---|---|",
        "| `rows` | double[][] | [] | Rows of numbers. >= 0 |",
    ]


@pytest.mark.parametrize(
    ("spec", "value", "words"),
    [
        (KP, [1.0, 2.0, 3.0], ["kp", "3 values", "2 numbers, one for each of a, b"]),
        (KP, [], ["kp", "0 values", "2 numbers"]),
        (KP, [1.0, -1.0], ["-1", "0 .. inf"]),
        (KP, [1.0, np.nan], ["finite"]),
        (KP, [1.0, np.inf], ["finite"]),
        (KP, [1.0, HUGE], ["finite", "0 .. inf"]),
        (KP, "400", ["list of 2 numbers"]),
        (KP, [True, False], ["list of 2 numbers"]),
        (KP, ["1", "2"], ["list of 2 numbers"]),
        (KP, None, ["0 values"]),
        (RATE, 0.5, ["rate", "0.5", "1 .. 1000"]),
        (RATE, np.nan, ["1 .. 1000"]),
        (RATE, True, ["a number"]),
        (RATE, [1.0], ["a number"]),
        (RATE, -HUGE, ["1 .. 1000"]),
        (COUNT, 11, ["0 .. 10"]),
        (COUNT, HUGE, ["0 .. 10"]),
        (COUNT, 1.5, ["whole number"]),
        (MODE, "quick", ["fast or slow"]),
        (MODE, 1, ["text"]),
        (FLAG, 1, ["true or false"]),
        (POSTURE, "left", ["mid or home"]),
        (POSTURE, [1.0], ["1 values", "a, b"]),
        (LIMIT, [np.nan, 1.0], ["0 .. inf"]),
        (LIMIT, [-1.0, 1.0], ["0 .. inf"]),
        (LIMIT, HUGE, ["0 .. inf"]),
        (KP, True, ["list of 2 numbers"]),
        (KP, "", ["list of 2 numbers"]),
        (ABOVE, 0.0, ["finite, > 0, <= 1"]),
        (MAYBE, "near", ["a number"]),
        (MAYBE, -1.0, ["0 .. inf"]),
        (NUMBERS, [[1.0]], ["a list of numbers"]),
        (TEXTS, 1, ["a list of texts"]),
        (TEXTS, ["a", 1], ["a list of texts"]),
        (ROWS, 5.0, ["option", "a list of lists of numbers"]),
        (ROWS, [["a"]], ["a list of numbers"]),
        (ROWS, [[-1.0]], ["0 .. inf"]),
    ],
)
def test_refused_values(spec, value, words):
    with pytest.raises(ParameterError) as caught:
        spec.check(value)
    for word in [f"'{spec.name}'", "expected", *words]:
        assert word in str(caught.value)
