"""Which experiments there are, and how other packages add theirs."""

from pathlib import Path

import pytest

from cards_bringup.reproduce import registry
from cards_bringup.reproduce.registry import OWN, experiment, experiment_keys, select
from cards_core.errors import CardsError, UnknownNameError

REFERENCES = Path(__file__).parents[4] / "docs" / "references.md"

OTHER = """
from cards_bringup.reproduce.experiment import Band, Claim, Experiment, Outcome, Paper

def make(paper, name):
    return Experiment(
        Paper(paper, "Of others", "Trendel2018"), name, "an experiment", {"weight": 1.0},
        (Claim("x", "x", "Fig. 1", Band(0, 2), published=1.0),),
        lambda setup, folder, tell: {"x": setup["weight"]},
        lambda runs: Outcome({"x": runs["run"].numbers["x"]}),
    )

ONE = make("777", "A")
MORE = make("000", "Z")
SHADOW = make("000", "A")
NO_EXPERIMENT = "A"
"""


@pytest.fixture
def others(offer):
    """Another package that offers experiments, of which two can be used."""
    entries = {
        "777.A": "ONE",
        "000.Z": "MORE",
        "000.A": "SHADOW",
        "778.A": "NO_EXPERIMENT",
        "779.A": "MISSING",
        "780.A": "ONE",
    }
    offer("other_experiments", OTHER, "cards.experiments", entries)


def test_own_experiments():
    assert list(OWN)[:2] == ["000.A", "000.B"]
    assert [key for key in OWN if key.startswith("004.")] == [
        "004.ROBOTS",
        "004.FK",
        "004.ID",
        "004.WCC",
        "004.WFC",
        "004.COMPILE",
    ]
    assert all(one.key == key for key, one in OWN.items())
    assert experiment_keys()[: len(OWN)] == list(OWN)


def test_every_paper_is_in_the_references():
    listed = REFERENCES.read_text()
    for one in OWN.values():
        assert f"| [{one.paper.reference}] |" in listed


def test_papers_and_experiments_are_selected_once():
    assert [one.key for one in select(["000"])] == ["000.A", "000.B"]
    assert [one.key for one in select(["000.B", "000", "000.A"])] == ["000.B", "000.A"]
    assert select([]) == []
    assert [one.key for one in select(["all"])] == list(OWN)


@pytest.mark.parametrize("name", ["005", "000.", "000.C", "", ".A", "000.a"])
def test_unknown_names_list_those_there_are(name):
    with pytest.raises(
        UnknownNameError,
        match=r"no paper or experiment named .*Known: all, 000, 001, 002, 003, 004",
    ):
        select([name])
    with pytest.raises(UnknownNameError, match="no experiment"):
        experiment(name)


def test_experiments_of_other_packages(others):
    keys = experiment_keys()
    assert keys[len(OWN) :] == ["000.Z", "777.A", "778.A", "779.A", "780.A"]
    assert experiment("777.A").title == "an experiment"
    assert [one.key for one in select(["000"])] == ["000.A", "000.B", "000.Z"]
    assert experiment("000.A") is OWN["000.A"]  # nobody replaces ours


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("778.A", "is no experiment"),
        ("779.A", "cannot be loaded: AttributeError"),
        ("780.A", "has the key '777.A'"),
    ],
)
def test_offers_that_cannot_be_used(others, key, message):
    with pytest.raises(CardsError, match=message):
        experiment(key)
    assert [one.key for one in select(["777"])] == ["777.A"]  # the others still can


def test_the_group_is_the_documented_one():
    assert registry.GROUP == "cards.experiments"
