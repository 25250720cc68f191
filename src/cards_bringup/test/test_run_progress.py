"""A run that has not begun says so, and does not count simulated time that is none."""

import pytest

from cards_bringup import progress
from cards_bringup.progress import RunProgress


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "PREPARATION", 0.0)
    monkeypatch.setattr(progress, "LINE_PERIOD", 0.0)


def test_before_time_passes_the_model_is_prepared(at_once, capsys):
    with RunProgress("arm", 2.0) as bar:
        bar._waiting.join()
        bar.update(0.0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "arm: being prepared; a model that is new is compiled first"


def test_once_time_passes_it_is_counted(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_PERIOD", 0.0)
    with RunProgress("arm", 2.0) as bar:
        bar.update(0.5)
        bar._say_waiting()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("arm: 0.5 of 2.0 s simulated")


def test_quiet_is_quiet(at_once, capsys):
    with RunProgress("arm", 2.0, quiet=True) as bar:
        bar._waiting.join()
        bar.update(1.0)
    assert capsys.readouterr().err == ""
