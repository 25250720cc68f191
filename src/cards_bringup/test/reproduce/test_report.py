"""What reports say."""

import re
from html.parser import HTMLParser

import pytest

from cards_bringup.reproduce import report
from cards_bringup.reproduce.report import Result, exit_code
from cards_bringup.reproduce.runner import Reproduction
from cards_core.exit_codes import ExitCode

VOID = {"meta", "img", "br", "link"}


class Page(HTMLParser):
    """Checks that every element ends, and keeps texts, links and pictures."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.links, self.sources, self.ids = [], [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def folder(toy, tmp_path):
    toy.broken["bad"] = ValueError("<script>")
    broken = toy.experiment("C", runs={"with": {"name": "bad"}, "without": {"name": "x"}})
    Reproduction(tmp_path, [toy.experiment(), broken]).run()
    return tmp_path


def test_the_page_is_complete_and_self_contained(folder):
    page = Page((folder / "report.html").read_text())
    text = " ".join(page.texts)
    for wanted in (
        "900.A",
        "A paper <of nobody> [Trendel2018]",
        "Loads with & without",
        "load | with : without",
        "hardly any",
        "10 N",
        "<= 5 N",
        "0.45 to 0.55",
        "source: Fig. 3",
        "accepted: read from a plot",
        "differs: our weight is heavier",
        "note: The robot is not that of the paper.",
        "Loads <with> and without.",
        "ValueError: <script>",
    ):
        assert wanted in text, wanted
    assert len(page.sources) == 1
    assert page.sources[0].startswith("data:image/png;base64,iVBOR")
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).exists(), link


def test_the_markdown_says_the_same(folder):
    text = (folder / "report.md").read_text()
    assert "| 900.A | Loads with & without | **differs**: 1 of 2 reproduced, 1 different" in text
    assert r"| load \| with : without | 0.5 | 0.5 | 0.45 to 0.55 | reproduced |" in text
    assert "| load with | hardly any | 10 N | <= 5 N | differs |" in text
    assert "- differs: our weight is heavier (load with)" in text
    assert "| run with | `{" in text
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert "900.A/loads.png" in links
    assert all((folder / link).exists() for link in links)
    for line in text.splitlines():  # tables whose rows have as many cells as their heads
        if line.startswith("| load"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6


def result(toy, state, *verdicts):
    one = Result(toy.experiment(), state)
    one.judgements = [
        report.Judgement(claim, 0.0, verdict)
        for claim, verdict in zip(one.experiment.claims, verdicts, strict=False)
    ]
    return one


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([("done", "reproduced", "reproduced")], ExitCode.DONE),
        ([("done", "reproduced", "differs")], ExitCode.DONE),
        ([("done", "differs", "not reproduced")], ExitCode.FAILED),
        ([("done", "not reproduced"), ("could not run",)], ExitCode.ERROR),
        ([("done", "not reproduced"), ("interrupted",)], ExitCode.INTERRUPTED),
        ([("done", "reproduced"), ("not run",)], ExitCode.INTERRUPTED),
        ([], ExitCode.DONE),
    ],
)
def test_exit_codes(toy, kinds, code):
    assert exit_code([result(toy, *kind) for kind in kinds]) == code


def test_an_experiment_that_is_not_done_has_no_verdict(toy):
    one = result(toy, "interrupted", "reproduced")
    assert one.verdict is None
    assert one.outcome == "interrupted"
    assert report.line(one) == "900.A: interrupted"
