"""Experiments by key: those of CARDS, and those that other installed packages offer.

A package offers an experiment by an entry point of the group `GROUP`, whose name is the key:

    [project.entry-points."cards.experiments"]
    "007.A" = "my_package.my_paper:EXPERIMENT_A"

It is loaded when its paper is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

from cards_bringup.reproduce import (
    cardsflow,
    continuum_robots,
    model_compilation,
    muscle_relaxation,
    tensegrity_crawl,
    tensegrity_gaits,
    tensegrity_hardware,
    tensegrity_toolkit,
)
from cards_bringup.reproduce.experiment import Experiment
from cards_core.errors import UnknownNameError
from cards_core.plugins import load_offered, offered

ALL = "all"
"""Name of all experiments together."""

GROUP = "cards.experiments"
"""Group of entry points."""

OWN: dict[str, Experiment] = {
    one.key: one
    for one in (
        *cardsflow.EXPERIMENTS,
        *continuum_robots.EXPERIMENTS,
        *muscle_relaxation.EXPERIMENTS,
        *tensegrity_crawl.EXPERIMENTS,
        *tensegrity_hardware.EXPERIMENTS,
        *tensegrity_gaits.EXPERIMENTS,
        *tensegrity_toolkit.EXPERIMENTS,
        *model_compilation.EXPERIMENTS,
    )
}
"""The experiments of CARDS, by key."""


def experiment_keys() -> list[str]:
    """Return the keys of all experiments: our own, then those of other packages."""
    return [*OWN, *sorted(set(_offered()) - set(OWN))]


def experiment(key: str) -> Experiment:
    """Return an experiment.

    Raises:
        UnknownNameError: No such key; the message lists all.
        CardsError: A package offers it, but it cannot be loaded or is no experiment.
    """
    if key in OWN:
        return OWN[key]
    known = _offered()
    if key not in known:
        raise UnknownNameError("experiment", key, experiment_keys())
    found: Experiment = load_offered(
        "experiment", known[key], lambda found: _problem_of(found, key)
    )
    return found


def _problem_of(found: Any, key: str) -> str:
    """Return what keeps an object from being the experiment of a key; empty if nothing does."""
    if not isinstance(found, Experiment):
        return (
            "is no experiment (expected: an object of the class "
            "cards_bringup.reproduce.experiment.Experiment)"
        )
    if found.key != key:
        return f"has the key '{found.key}' (expected: the name of its entry point)"
    return ""


def select(names: Sequence[str]) -> list[Experiment]:
    """Return experiments, each once, in the order in which they were asked for.

    Args:
        names: Keys of papers or of experiments, e.g. ``000`` or ``000.A``; ``all``: every one.

    Raises:
        UnknownNameError: There is neither such a paper nor such an experiment.
        CardsError: One of them cannot be loaded.
    """
    keys = experiment_keys()
    papers = list(dict.fromkeys(paper_of(key) for key in keys))
    chosen: dict[str, Experiment] = {}
    for name in names:
        if name not in keys and name not in papers and name != ALL:
            raise UnknownNameError("paper or experiment", name, [ALL, *papers, *keys])
        for key in keys:
            if name in (key, paper_of(key), ALL):
                chosen[key] = experiment(key)
    return list(chosen.values())


def paper_of(key: str) -> str:
    """Return the key of the paper of an experiment's key."""
    return key.partition(".")[0]


def _offered() -> dict[str, EntryPoint]:
    return offered(GROUP)
