"""Which of Gazebo's bindings are taken."""

import sys
from types import ModuleType

import pytest

from cards_core.errors import CardsError
from cards_ros.gazebo_bindings import UNNUMBERED, bindings, names

pytestmark = pytest.mark.serial

HARMONIC = ("gz.sim8", "gz.math7", "gz.transport13")
IONIC = ("gz.sim9", "gz.math8", "gz.transport14")
JETTY = ("gz.sim", "gz.math", "gz.transport")


def test_names_of_the_releases():
    """As their sources have them: cmake's versions, and what the loader of systems imports."""
    assert str(names(8)) == "gz.sim8, gz.math7, gz.transport13, sdformat14"
    assert str(names(9)) == "gz.sim9, gz.math8, gz.transport14, sdformat15"
    assert names(8).msgs == "gz.msgs10"
    assert names(10) == names(11) == UNNUMBERED


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    for name in (*HARMONIC, *IONIC, *JETTY):
        monkeypatch.delitem(sys.modules, name, raising=False)
    # a package without a path has no modules to be found
    monkeypatch.setitem(sys.modules, "gz", ModuleType("gz"))


def install(monkeypatch, *names):
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


@pytest.mark.parametrize("names", [HARMONIC, IONIC, JETTY])
def test_those_of_the_gazebo_that_loaded_us(monkeypatch, names):
    install(monkeypatch, *names)
    found = bindings()
    assert (found.sim.__name__, found.math.__name__, found.transport.__name__) == names


def test_those_that_are_loaded_and_not_what_else_is_installed(monkeypatch):
    install(monkeypatch, *HARMONIC, "gz.math", "gz.transport")
    assert bindings().math.__name__ == "gz.math7"


def test_without_transport_time_cannot_be_controlled_but_muscles_work(monkeypatch):
    install(monkeypatch, "gz.sim", "gz.math")
    assert bindings().transport is None


def test_without_bindings_it_says_so():
    with pytest.raises(CardsError, match="Python bindings"):
        bindings()
