"""Numbers for people: no -0, no nan, columns that stay in line."""

import math

import numpy as np

from cards_bringup.cli.printed import array_text, number_text


def test_rounding_leaves_no_negative_zero():
    assert array_text([-1e-12, 0.5, -0.0], 6) == "[0.  0.5 0. ]"
    assert array_text([[1.0, -1e-9], [-2.25, 0.0]]) == "[[ 1.    0.  ]\n [-2.25  0.  ]]"
    assert "nan" in array_text([math.nan, 1.0])


def test_a_column_has_a_dash_where_there_is_no_number():
    assert [number_text(x, 6) for x in (math.nan, -0.0, 1.5)] == ["     -", "     0", "   1.5"]
    assert number_text(np.float64(-12.3456789012)) == "    -12.345679"
