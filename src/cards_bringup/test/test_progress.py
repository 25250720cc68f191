"""Progress of counted things where there is no terminal."""

import pytest

from cards_bringup import progress

pytestmark = pytest.mark.serial


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_now_and_then_with_rate_and_time_left(clock, capsys):
    with progress.CountProgress("robot question", "points") as bar:
        bar.update(1000, 5000)  # of an earlier run
        clock[0] += 5.0
        bar.update(1500, 5000)
        clock[0] += 5.0
        bar.update(3000, 5000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["robot question: 3000 of 5000 points, 200 per second, 10 s left"]


def test_the_best_so_far_is_in_the_line(clock, capsys):
    with progress.BestProgress("robot evolution", "trials") as bar:
        bar.update(1, 50, 0.25)
        clock[0] += 10.0
        bar.update(20, 50, 0.56789)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["robot evolution: 20 of 50 trials in 10 s, best 0.5679"]


def test_quiet(clock, capsys):
    with progress.CountProgress("robot question", "points", quiet=True) as bar:
        clock[0] += 50.0
        bar.update(1, 2)
    assert capsys.readouterr().err == ""
