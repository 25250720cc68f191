"""Claims, bands and verdicts: pure functions of data."""

import math

import pytest

from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Difference,
    Paper,
    judge,
    number,
    with_unit,
    worst,
)
from cards_core.errors import CardsError


@pytest.mark.parametrize(
    ("band", "inside", "outside", "text"),
    [
        (Band(1.0, 2.0), (1.0, 1.5, 2.0), (0.999, 2.001), "1 to 2"),
        (Band.at_most(3.0), (-math.inf, 3.0), (3.1, math.inf), "<= 3"),
        (Band.at_least(3.0), (3.0, math.inf), (2.9,), ">= 3"),
        (Band(0.0, 0.0), (0.0,), (1e-300, -1.0), "0"),
        (Band.around(-2.0, relative=0.1), (-2.2, -1.8), (-2.21, -1.79), "-2.2 to -1.8"),
        (Band.around(1.0, absolute=0.5), (0.5, 1.5), (0.49,), "0.5 to 1.5"),
        (Band(), (-1e300, 1e300), (), "any"),
    ],
)
def test_bands(band, inside, outside, text):
    assert all(value in band for value in inside)
    assert not any(value in band for value in (*outside, math.nan))
    assert str(band) == text


@pytest.mark.parametrize("ends", [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_band_has_its_ends_in_order(ends):
    with pytest.raises(CardsError, match="low <= high"):
        Band(*ends)


@pytest.mark.parametrize(
    ("value", "difference", "verdict"),
    [
        (1.0, None, "reproduced"),
        (1.0, Band(0.0, 9.0), "reproduced"),
        (1.2, None, "not reproduced"),
        (1.2, Band(1.2, 9.0), "differs"),
        (0.5, Band(1.2, 9.0), "not reproduced"),
        (math.nan, Band(), "not reproduced"),
        (math.inf, None, "not reproduced"),
    ],
)
def test_verdicts(value, difference, verdict):
    known = None if difference is None else Difference("another machine", difference)
    claim = Claim("x", "a claim", "Fig. 1", Band(0.9, 1.1), published=1.0, difference=known)
    (found,) = judge([claim], {"x": value, "not asked for": 0.0})
    assert found.verdict == verdict
    assert found.claim is claim
    assert found.reason == ("another machine" if verdict == "differs" else "")


def test_the_worst_verdict_counts():
    assert worst([]) == "reproduced"
    assert worst(["reproduced", "differs"]) == "differs"
    assert worst(["differs", "not reproduced", "reproduced"]) == "not reproduced"


def test_a_claim_without_a_value_is_an_error():
    claim = Claim("x", "a claim", "Fig. 1", Band(), published=1.0)
    with pytest.raises(CardsError, match="no value 'x'"):
        judge([claim], {"y": 1.0})


def test_a_claim_states_a_value_or_a_sentence():
    with pytest.raises(CardsError, match="neither"):
        Claim("x", "a claim", "Fig. 1", Band())
    with pytest.raises(CardsError, match="both"):
        Claim("x", "a claim", "Fig. 1", Band(), published=1.0, statement="it holds")
    assert Claim("x", "", "", Band(), "N", published=0.0).published_text == "0 N"
    assert Claim("x", "", "", Band(), "N", statement="less").published_text == "less"


def test_runs_change_nested_parts_of_the_set_up(toy):
    one = toy.experiment()
    assert one.key == "900.A"
    assert one.setup_of("with") == {
        "name": "with",
        "weight": 10.0,
        "gains": {"k": 1.0, "d": 1.0},
        "robot": "planar_2r",
    }
    assert one.setup_of("without")["gains"] == {"k": 2.0, "d": 1.0}
    assert one.setup["gains"] == {"k": 2.0, "d": 1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../A"}, "expected: letters"),
        ({"name": "A.B"}, "expected: letters"),
        ({"name": ""}, "expected: letters"),
        ({"paper": Paper("9/0", "", "")}, "expected: letters"),
        ({"runs": {}}, "no claims or no runs"),
        ({"claims": ()}, "no claims or no runs"),
        ({"runs": {"a/b": {}}}, "the character '/'"),
        ({"claims": (Claim("x", "", "", Band(), published=1.0),) * 2}, "two claims about x"),
    ],
)
def test_experiments_that_cannot_be(toy, changes, message):
    with pytest.raises(CardsError, match=message):
        toy.experiment(**changes)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (41.3328, "41.33"),
        (23167.2, "23,167"),
        (3037850.0, "3,037,850"),
        (8.109e-6, "8.109e-06"),
        (1e12, "1e+12"),
        (math.nan, "nan"),
    ],
)
def test_numbers_for_people(value, text):
    assert number(value) == text
    assert with_unit(value, "") == text
    assert with_unit(value, "N") == f"{text} N"
