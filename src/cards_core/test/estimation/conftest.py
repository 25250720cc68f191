"""Dynamics of robots, made once for the tests of a module."""

import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load


@pytest.fixture(scope="module")
def models():
    made = {}

    def get(name):
        if name not in made:
            made[name] = make_dynamics(load(name))
        return made[name]

    return get
