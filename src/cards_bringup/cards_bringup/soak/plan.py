"""Plans of a chaos campaign, and the schedules of faults that are drawn from them.

A campaign is a row of episodes. Each starts one system, puts faults into it one after the other
and ends it. A schedule depends on the plan, the hours and the seed alone, episode by episode:
`numpy.random.default_rng([seed, number])`, so a longer campaign begins as a shorter one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.foreign_files import read_json
from cards_core.formats import load
from cards_core.shared_files import find_file
from cards_core.yaml_fields import Document, Field, read_yaml

TARGETS: Mapping[str, tuple[str, ...]] = {
    "topics": ("simulator", "controller"),
    "page": ("simulator", "controller", "view"),
    "boards": ("hardware", "controller"),
    "process": ("demo",),
}
"""Kind of system to the processes that may be killed and stopped."""

_ROS = ("topics", "page", "boards")

APPLIES: Mapping[str, tuple[str, ...]] = {
    "kill": ("topics", "page", "boards", "process"),
    "stop": ("topics", "page", "boards", "process"),
    "interrupt": ("process",),
    "unplug": ("boards",),
    "board_reset": ("boards",),
    "byte_errors": ("boards",),
    "clock_step": ("topics", "page"),
    "disk_full": ("topics", "process"),
    "read_only": ("topics", "process"),
    "model_changed": ("topics", "process"),
    "second_controller": _ROS,
    "flood": _ROS,
    "not_finite": _ROS,
    "giant": _ROS,
    "foreign_types": _ROS,
    "page_reload": ("page",),
    "foreign_page": ("page",),
}
"""Kind of fault to the systems that it is put into."""

TARGETED = ("kill", "stop")
"""Faults of one process."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        at: When it begins, after the system was ready, [s].
        kind: A key of `APPLIES`.
        target: Process that it concerns; empty: the system.
        duration: How long it lasts where it lasts, [s].
        seed: Chance of what it sends.
    """

    at: float
    kind: str
    target: str
    duration: float
    seed: int


@dataclass(frozen=True)
class Episode:
    """Faults that one system gets, from its start to its end.

    Attributes:
        number: 0 the first.
        system: A key of `TARGETS`.
        duration: [s].
        faults: In the order of time.
    """

    number: int
    system: str
    duration: float
    faults: tuple[Fault, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "faults": [asdict(fault) for fault in self.faults]}


@dataclass(frozen=True)
class Plan:
    """What a campaign does.

    Attributes:
        robot: Name of the robot; its muscles take tensions.
        systems: Kind of system to its share of the episodes.
        faults: Kind of fault to its share.
        episode: Duration of an episode, [s].
        gap: Shortest and longest time between two faults, [s].
        duration: Shortest and longest duration of a fault, [s].
        memory_growth: How much more memory a process may have at its end than when it had
            started, [MB].
        firmware: Of the emulated boards, ``host`` or ``stm32f405``.
    """

    robot: str
    systems: Mapping[str, float]
    faults: Mapping[str, float]
    episode: float
    gap: tuple[float, float]
    duration: tuple[float, float]
    memory_growth: float
    firmware: str

    def schedule(self, hours: float, seed: int) -> list[Episode]:
        """Draw the episodes of a campaign, one at least.

        Args:
            hours: Sum of their durations, [h]; starting and ending systems comes on top.
            seed: Of all chance.
        """
        count = max(1, round(hours * 3600.0 / self.episode))
        return [self._draw(number, seed) for number in range(count)]

    def _draw(self, number: int, seed: int) -> Episode:
        rng = np.random.default_rng([seed, number])
        names, shares = zip(*self.systems.items(), strict=True)
        # the first episodes take each system once, so that a short campaign has all of them
        system = names[number] if number < len(names) else _chosen(rng, names, shares)
        kinds = {k: s for k, s in self.faults.items() if system in APPLIES[k]}
        faults: list[Fault] = []
        t = 0.0
        while True:
            t += rng.uniform(*self.gap)
            kind = _chosen(rng, tuple(kinds), tuple(kinds.values()))
            targets = TARGETS[system]
            target = targets[int(rng.integers(len(targets)))] if kind in TARGETED else ""
            duration = rng.uniform(*self.duration)
            noise = int(rng.integers(2**31))
            if t >= self.episode:
                return Episode(number, system, self.episode, tuple(faults))
            faults.append(Fault(round(t, 3), kind, target, round(duration, 3), noise))
            t += duration


def _chosen(rng: np.random.Generator, names: tuple[str, ...], shares: tuple[float, ...]) -> str:
    weights = np.array(shares) / sum(shares)
    return names[int(rng.choice(len(names), p=weights))]


def read_plan(name: str) -> Plan:
    """Read a plan.

    Args:
        name: Path of a YAML file, or name of one in ``config/soak``.

    Raises:
        DescriptionError: It cannot be read or is no plan; names the place.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = find_file(name, folder="config/soak", suffix=".yaml")
    document = read_yaml(path)
    return _plan(Field(document, (), document.data))


def _plan(top: Field) -> Plan:
    keys = (
        "robot", "systems", "faults", "episode", "gap", "duration", "memory_growth", "firmware",
    )  # fmt: skip
    top.mapping(keys)
    systems = _shares(top["systems"], tuple(TARGETS))
    faults = _shares(top["faults"], tuple(APPLIES))
    for system in systems:
        if not any(system in APPLIES[kind] for kind in faults):
            possible = [kind for kind, where in APPLIES.items() if system in where]
            raise top["faults"].error(
                f"has no fault for the system '{system}'", f"one of {', '.join(possible)}"
            )
    return Plan(
        robot=_robot(top["robot"]),
        systems=systems,
        faults=faults,
        episode=top["episode"].number(above=0.0),
        gap=_range(top["gap"], 0.0),
        duration=_range(top["duration"], 0.0),
        memory_growth=top["memory_growth"].number(above=0.0),
        firmware=top["firmware"].text(("host", "stm32f405")) if top.has("firmware") else "host",
    )


def _robot(field: Field) -> str:
    """Return the name of a robot whose muscles take tensions."""
    name = field.text()
    try:
        robot = load(name)
    except CardsError as error:
        raise field.error(f"cannot be loaded: {error}") from error
    if not any(one.takes_tension for one in robot.muscles):
        raise field.error(f"is '{name}', no muscle of which takes a tension", "another robot")
    return name


def _shares(field: Field, known: tuple[str, ...]) -> dict[str, float]:
    names = field.mapping(known)
    if not names:
        raise field.error("is empty", f"some of {', '.join(known)}, each with its share")
    return {name: field[name].number(above=0.0) for name in names}


def _range(field: Field, least: float) -> tuple[float, float]:
    low, high = field.vector(2, "shortest and longest")
    if low < least or high < low or high <= 0.0:
        raise field.error(
            f"is {low:g} to {high:g}", f"{least:g} <= shortest <= longest, longest > 0"
        )
    return float(low), float(high)


def read_report(path: Path) -> tuple[Plan, list[Episode], int]:
    """Return plan, episodes that were done, and seed of an earlier campaign.

    Args:
        path: ``report.json``, or the folder that has it.

    Raises:
        DescriptionError: It is no such report.
    """
    file = path / "report.json" if path.is_dir() else path
    data = read_json(file, "the report.json of a ./cards soak")
    top = Field(Document(data, str(file)), (), data)
    episodes = [_episode(item) for item in top["schedule"].items(at_least=0)]
    done = top["episodes_done"].whole()
    return _plan(top["plan"]), episodes[:done], top["seed"].whole()


def _episode(field: Field) -> Episode:
    system = field["system"].text(TARGETS)
    possible = [kind for kind, where in APPLIES.items() if system in where]
    faults = tuple(
        Fault(
            fault["at"].number(at_least=0.0),
            fault["kind"].text(possible),
            fault["target"].text(TARGETS[system]) if fault["target"].value else "",
            fault["duration"].number(at_least=0.0),
            fault["seed"].whole(),
        )
        for fault in field["faults"].items(at_least=0)
    )
    return Episode(field["number"].whole(), system, field["duration"].number(above=0.0), faults)
