"""The Gazebo system of the tests loads in every release, under the names that it has there."""

import importlib
import sys
from types import ModuleType

import pytest

from cards_ros.gazebo_bindings import EVERY, names

pytestmark = pytest.mark.serial


@pytest.mark.parametrize("major", [8, 9, 10])
def test_with_the_bindings_of_each_release(monkeypatch, major):
    for one in EVERY:
        for name in (one.sim, one.math, one.transport):
            monkeypatch.delitem(sys.modules, name, raising=False)
    # a package without a path has no modules to be found
    monkeypatch.setitem(sys.modules, "gz", ModuleType("gz"))
    for name in (names(major).sim, names(major).math):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.delitem(sys.modules, "watch_plate", raising=False)
    watch = importlib.import_module("watch_plate")
    monkeypatch.delitem(sys.modules, "watch_plate")
    assert watch.gz.sim.__name__ == names(major).sim
    assert watch.gz.math.__name__ == names(major).math
