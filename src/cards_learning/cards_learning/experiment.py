"""What is learnt, how, and what counts: an experiment is one YAML file.

    format: learning/1
    robot: tetrahedral_6
    terrains: ["flat:friction=0.5", "blocks:seed={seed}"]    # {seed}: of the repetition
    duration: 30.0                    # [s] of every run
    repetitions: 1                    # runs on every terrain, each with a seed of its own
    goals: [[-3.5, 0.2]]              # x, y [m]: runs towards each of them
    perturbation: 0.0                 # [m/s, rad/s] largest random velocity at time zero
    controller:
      kind: cpg
      oscillators: feedback           # or open_loop
      per_joint: 8                    # or edges: shared_bodies
      hidden: 4                       # neurons of the feedback network
      parameters: {frequency: [0, 30], amplitude: [0, 300], convergence: 1.0, ...}
      start: tetrahedral              # a pattern to begin with
      learn: [goal]                   # the other parts stay as in start; without it: everything
      goal_frame: heading             # of the goal network's inputs, or world
    algorithm: {kind: evolution, population: 50}
    objective: {distance: 1.0, cost_of_transport_ideal: -0.02}
    failure: {score: -1.0, height: [0.01, 0.25]}
    trials: 1000
    seed: 1

A trial is one pattern in all runs: terrains x goals x repetitions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.control.cpg.files import pattern_file, read_pattern
from cards_core.control.cpg.morphology import PER_JOINT_MOST
from cards_core.control.cpg.parameters import GOAL_INPUTS, PatternParameters, as_text
from cards_core.control.set_points import told_muscles
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.robot.model import Robot
from cards_core.robot.terrain import ground_shapes, read_terrain
from cards_core.shared_files import find_file
from cards_core.typing import Array
from cards_core.yaml_fields import Field, parse_yaml, read_yaml
from cards_learning.measures import NAMES, OF_GOALS
from cards_learning.parameter_space import (
    OSCILLATOR_NAMES,
    PARTS,
    PHASE,
    ParameterSpace,
    Range,
    shared_bodies,
)
from cards_learning.search import ALGORITHMS, Settings, algorithm, setting, settings_of

FORMAT = "learning/1"

FOLDER = "config/learning"

COMBINATIONS = ("mean", "median", "worst")
"""How the scores of the runs of a trial become one."""

LARGEST_SEED = 2**53
"""Numbers of YAML are floating-point: larger ones would be rounded."""

NEURONS_MOST = 1000
"""Hidden neurons of a network, at most: each has its own numbers to be learnt."""

WHOLE = "com"
"""Name of the centre of mass of the whole robot, where a link may be named as reference."""

CONTROL_PERIOD = 0.01
"""Of oscillators and feedback, [s]."""

_KEYS = (
    *("format", "robot", "terrains", "duration", "repetitions", "goals", "perturbation"),
    *("reference", "time_step", "controller", "algorithm", "objective", "combine", "failure"),
    *("trials", "seed"),
)

_DEFAULTS: dict[str, Range] = {
    "coupling_weight": (0.0, 1.0),
    "coupling_phase": PHASE,
    "feedback_weight": (-1.0, 1.0),
    "goal_weight": (-1.0, 1.0),
}

_ALWAYS_POSITIVE = ("amplitude", "tension", "joint_tension", "goal_tension")


@dataclass(frozen=True)
class Run:
    """One simulation of a trial.

    Attributes:
        terrain: What it crawls over.
        goal: x, y, [m]; None without.
        repetition: Its number.
    """

    terrain: str
    goal: tuple[float, float] | None
    repetition: int


@dataclass(frozen=True)
class Experiment:
    """An experiment; see the module.

    Attributes:
        source: File that it was read from, for messages and provenance.
        robot: Name or path.
        terrains: Descriptions with ``{seed}`` where that of the repetition goes.
        duration: Of every run, [s].
        repetitions: Runs on every terrain.
        goals: x, y, [m].
        perturbation: Largest random velocity at time zero, [m/s, rad/s].
        reference: Link whose centre of mass counts, or `WHOLE`.
        time_step: Of the simulator, [s].
        muscles: Patterns of names of the muscles that oscillate.
        space: What is learnt.
        start: Name or path of the pattern to begin with; empty: none.
        algorithm: How it is searched.
        objective: Weights of measures.
        combine: One of `COMBINATIONS`.
        failure_score: Score of a run that failed.
        height: The reference must stay within these heights, [m]; None: it may be anywhere.
        trials: How many.
        seed: Of everything random.
    """

    source: str
    robot: str
    terrains: tuple[str, ...]
    duration: float
    repetitions: int
    goals: tuple[tuple[float, float], ...]
    perturbation: float
    reference: str
    time_step: float
    muscles: tuple[str, ...]
    space: ParameterSpace
    start: str
    algorithm: Settings
    objective: Mapping[str, float]
    combine: str
    failure_score: float
    height: Range | None
    trials: int
    seed: int

    @property
    def runs(self) -> list[Run]:
        """The runs of a trial."""
        return [
            Run(terrain, goal, repetition)
            for terrain in self.terrains
            for goal in (self.goals or (None,))
            for repetition in range(self.repetitions)
        ]

    def draw(self, run: Run) -> tuple[str, np.random.Generator]:
        """Return the terrain of a run with its seed, and the random numbers of the rest of it."""
        rng = np.random.default_rng([self.seed, run.repetition])
        return run.terrain.replace("{seed}", str(int(rng.integers(2**31 - 1)))), rng

    def start_pattern(self) -> PatternParameters | None:
        """Return the pattern to begin with. Raises `CardsError` if it cannot be read."""
        return read_pattern(pattern_file(self.start)) if self.start else None

    def start_point(self) -> Array | None:
        """Return its point, shape (d,). Raises `CardsError` if it is of another structure."""
        pattern = self.start_pattern()
        return None if pattern is None else self.space.point(pattern)

    def with_changes(
        self, *, kind: str | None = None, trials: int | None = None, seed: int | None = None
    ) -> Experiment:
        """Return the same with another algorithm, at its default settings, trials or seed.

        Args:
            kind: Name of the algorithm; None: the same, with its settings.
            trials: Number of trials; None: the same.
            seed: Of the random numbers; None: the same.

        Raises:
            UnknownNameError: There is no such algorithm.
        """
        found = self if seed is None else replace(self, seed=seed)
        if kind is not None and kind != self.algorithm.kind:
            found = replace(found, algorithm=algorithm(kind))
        return found if trials is None else replace(found, trials=trials)

    def content(self) -> dict[str, Any]:
        """Return the whole experiment as its file has it, defaults written out."""
        space = self.space
        parameters = {
            name: low if low == high else [low, high] for name, (low, high) in space.ranges.items()
        }
        couplings = (
            {"per_joint": space.per_joint} if space.per_joint else {"edges": "shared_bodies"}
        )
        failure: dict[str, Any] = {"score": self.failure_score}
        if self.height is not None:
            failure["height"] = list(self.height)
        settings = {k: v for k, v in settings_of(self.algorithm).items() if v is not None}
        content: dict[str, Any] = {
            "format": FORMAT,
            "robot": self.robot,
            "terrains": list(self.terrains),
            "duration": self.duration,
            "repetitions": self.repetitions,
            "goals": [list(goal) for goal in self.goals],
            "perturbation": self.perturbation,
            "reference": self.reference,
            "time_step": self.time_step,
            "controller": {
                "kind": "cpg",
                "oscillators": space.kind,
                **({"rate_scale": space.rate_scale} if space.kept is None else {}),
                **couplings,
                "hidden": space.feedback_hidden,
                "goal_hidden": space.goal_hidden,
                "muscles": list(self.muscles),
                "parameters": parameters,
            },
            "algorithm": settings,
            "objective": dict(self.objective),
            "combine": self.combine,
            "failure": failure,
            "trials": self.trials,
            "seed": self.seed,
        }
        if self.start:
            content["controller"]["start"] = self.start
        if space.learnt != PARTS:
            content["controller"]["learn"] = list(space.learnt)
        if space.goal_hidden and space.goal_frame != "world":
            content["controller"]["goal_frame"] = space.goal_frame
        return content

    def text(self) -> str:
        """Return it as YAML that `parse_experiment` reads back to the same."""
        lines = [f"{key}: {json.dumps(value)}" for key, value in self.content().items()]
        return "\n".join(lines) + "\n"

    @property
    def identity(self) -> str:
        """What trials depend on, as a short text: all but their number."""
        content = self.content()
        del content["trials"]
        pattern = self.start_point()
        start = "" if pattern is None else pattern.tobytes().hex()
        if self.space.kept is not None:
            start += as_text(self.space.kept)
        return hashlib.sha256((json.dumps(content) + start).encode()).hexdigest()[:16]


def read_experiment(name: str | Path) -> Experiment:
    """Read an experiment: a path, or a name in ``config/learning``.

    Raises:
        UnknownNameError: There is no such file.
        DescriptionError: It cannot be read, or a value does not fit; file and line are named.
    """
    path = find_file(name, folder=FOLDER, suffix=".yaml")
    document = read_yaml(path)
    return _read(Field(document, (), document.data), path.name)


def parse_experiment(text: str, source: str) -> Experiment:
    """Like `read_experiment` for a text."""
    document = parse_yaml(text, source)
    return _read(Field(document, (), document.data), source)


def _read(root: Field, source: str) -> Experiment:
    root.mapping(_KEYS)
    root["format"].text((FORMAT,))
    name = root["robot"].text()
    robot = _checked(root["robot"], lambda: load(name))
    name = _absolute(name)
    terrains = root["terrains"].items()
    for item in terrains:
        text = item.text()
        _checked(item, lambda text=text: ground_shapes(read_terrain(text.replace("{seed}", "1"))))
    goals = tuple(
        _pair(item, "x, y")
        for item in (root["goals"].items(at_least=0) if root.has("goals") else ())
    )
    reference = root["reference"].text() if root.has("reference") else WHOLE
    if reference != WHOLE:
        _checked(root["reference"], lambda: robot.link(reference))
    controller = root["controller"]
    space, muscles, start = _controller(controller, robot, with_goals=bool(goals))
    weights = {key: root["objective"][key].number() for key in root["objective"].mapping(NAMES)}
    if not any(weights.values()):
        raise root["objective"].error("weighs nothing", "a weight other than zero")
    for key in OF_GOALS:
        if key in weights and not goals:
            raise root["objective"][key].error("needs a goal", "the key 'goals', x and y of each")
    score, height = -1.0, None
    if root.has("failure"):
        root["failure"].mapping(("score", "height"))
        if root["failure"].has("score"):
            score = root["failure"]["score"].number()
        if root["failure"].has("height"):
            height = _range(root["failure"]["height"])
    made = Experiment(
        source=source,
        robot=name,
        terrains=tuple(item.text() for item in terrains),
        duration=root["duration"].number(at_least=0.1),
        repetitions=_whole(root, "repetitions", 1, 1),
        goals=goals,
        perturbation=_number(root, "perturbation", 0.0, at_least=0.0),
        reference=reference,
        time_step=_number(root, "time_step", 0.001, above=0.0),
        muscles=muscles,
        space=space,
        start=start,
        algorithm=_algorithm(root["algorithm"]),
        objective=weights,
        combine=root["combine"].text(COMBINATIONS) if root.has("combine") else "mean",
        failure_score=score,
        height=height,
        trials=root["trials"].whole(at_least=1),
        seed=_whole(root, "seed", 1, 0, LARGEST_SEED),
    )
    period = f"{CONTROL_PERIOD:g} s"
    if made.time_step > CONTROL_PERIOD:
        raise root["time_step"].error(
            f"is {made.time_step:g}", f"at most the {period} of the controller"
        )
    steps = CONTROL_PERIOD / made.time_step
    if abs(steps - round(steps)) > 1e-6 * steps:
        expected = f"{period}, the period of the controller, over a whole number"
        raise root["time_step"].error(f"is {made.time_step:g}", expected)
    _checked(
        controller["per_joint"] if space.per_joint else controller,
        lambda: space.pattern(space.values(np.full(len(space.genes), 0.5))).couple(
            told_muscles(robot.commanded(), muscles)
        ),
    )
    if start:
        _checked(controller["start"], made.start_point)
    return made


def _controller(
    section: Field, robot: Robot, *, with_goals: bool
) -> tuple[ParameterSpace, tuple[str, ...], str]:
    section.mapping(
        (
            *("kind", "oscillators", "rate_scale", "per_joint", "edges", "hidden", "goal_hidden"),
            *("goal_frame", "muscles", "parameters", "start", "learn"),
        )
    )
    section["kind"].text(("cpg",))
    kind = section["oscillators"].text(OSCILLATOR_NAMES)
    if section.has("per_joint") == section.has("edges"):
        raise section.error(
            "needs either per_joint or edges",
            "per_joint: muscles at every joint of a spine, or edges: shared_bodies",
        )
    patterns = ["*"]
    if section.has("muscles"):
        patterns = [item.text() for item in section["muscles"].items()]
    place = section["muscles"] if section.has("muscles") else section
    muscles = _checked(place, lambda: told_muscles(robot.commanded(), patterns))
    per_joint = 0
    edges: tuple[tuple[str, str], ...] = ()
    if section.has("edges"):
        section["edges"].text(("shared_bodies",))
        edges = shared_bodies(muscles)
    else:
        per_joint = section["per_joint"].whole(at_least=1, at_most=PER_JOINT_MOST)
    hidden = _whole(section, "hidden", 0, 0, NEURONS_MOST)
    goal_hidden = _whole(section, "goal_hidden", 0, 0, NEURONS_MOST)
    if hidden and kind == "open_loop":
        raise section["hidden"].error(
            "a feedback network of an open loop", "oscillators: feedback"
        )
    if goal_hidden and not per_joint:
        raise section["goal_hidden"].error("a goal network without equal joints", "per_joint")
    if bool(goal_hidden) != with_goals:
        raise section.error(
            "a goal network and goals go together", "both the keys 'goal_hidden' and 'goals'"
        )
    goal_frame = "world"
    if section.has("goal_frame"):
        if not goal_hidden:
            raise section["goal_frame"].error("without a goal network", "the key 'goal_hidden'")
        goal_frame = section["goal_frame"].text(GOAL_INPUTS)
    learnt: tuple[str, ...] = PARTS
    start = _absolute(section["start"].text()) if section.has("start") else ""
    if section.has("learn"):
        if not start:
            raise section["learn"].error(
                "without a pattern that has the rest", "the key 'start', a pattern"
            )
        named = [item.text(PARTS) for item in section["learn"].items()]
        learnt = tuple(part for part in PARTS if part in named)
        if section.has("rate_scale"):
            raise section["rate_scale"].error(
                "is that of the pattern", "no such key beside 'learn'"
            )
    least = min(muscle.tension_max for muscle in muscles)
    of_part = {
        "oscillators": OSCILLATOR_NAMES[kind],
        "couplings": ("coupling_weight", "coupling_phase"),
        "tension": ("tension", "joint_tension") if per_joint else ("tension",),
        "feedback": ("feedback_weight",) if hidden else (),
        "goal": ("goal_weight", "goal_tension") if goal_hidden else (),
    }
    known = [name for part, names in of_part.items() if part in learnt for name in names]
    given = section["parameters"]
    given.mapping(known)
    ranges = {name: usual for name, usual in _DEFAULTS.items() if name in known}
    for name in given.mapping():
        ranges[name] = _range(given[name])
        if name in _ALWAYS_POSITIVE and ranges[name][0] < 0.0:
            raise given[name].error(f"begins at {ranges[name][0]:g}", "values >= 0")
        if name in ("tension", "joint_tension") and ranges[name][1] > least:
            raise given[name].error(
                f"goes to {ranges[name][1]:g} N",
                f"at most {least:g} N, the smallest of the muscles' largest tensions",
            )
        if name == "convergence" and ranges[name][0] <= 0.0:
            raise given[name].error(f"begins at {ranges[name][0]:g}", "values > 0")
    for name in ("frequency", "amplitude", "goal_tension"):
        if name in known:
            given[name]
    ordered = {name: ranges[name] for name in known if name in ranges}
    space = ParameterSpace(
        kind,
        ordered,
        section["rate_scale"].number(above=0.0) if section.has("rate_scale") else 0.01,
        per_joint=per_joint,
        edges=edges,
        feedback_hidden=hidden,
        goal_hidden=goal_hidden,
        goal_frame=goal_frame,
        learnt=learnt,
    )
    if learnt != PARTS:
        kept = _checked(section["start"], lambda: read_pattern(pattern_file(start)))
        space = replace(space, kept=kept)
    if not space.genes:
        raise given.error("has no range", "at least one range [low, high] to learn in")
    return (
        space,
        tuple(patterns),
        start,
    )


def _algorithm(section: Field) -> Settings:
    kind = section["kind"].text(ALGORITHMS)
    values = {key: section[key].value for key in section.mapping() if key != "kind"}
    for key, value in values.items():
        _checked(section[key], lambda key=key, value=value: setting(kind, key, value))
    return _checked(section, lambda: algorithm(kind, **values))


def _checked(place: Field, make: Any) -> Any:
    """Return what a function gives; its errors name a place in the file."""
    try:
        return make()
    except DescriptionError as error:
        if error.source == place.document.source:
            raise
        raise place.error(str(error)) from None
    except CardsError as error:
        raise place.error(str(error)) from None


def _absolute(name: str) -> str:
    """Return a path that means the same in every current folder; names stay as they are."""
    path = Path(name).expanduser()
    is_path = path.is_file() or (path.name != name and path.exists())
    return str(path.resolve()) if is_path else name


def _range(field: Field) -> Range:
    """Read ``[low, high]`` or one fixed value."""
    if isinstance(field.value, int | float) and not isinstance(field.value, bool):
        value = field.number()
        return value, value
    low, high = _pair(field, "lowest and highest value, or one value")
    if low >= high:
        raise field.error(f"is {low:g} .. {high:g}", "the lower value first")
    return low, high


def _pair(field: Field, what: str) -> tuple[float, float]:
    first, second = field.vector(2, what).tolist()
    return first, second


def _whole(root: Field, key: str, default: int, at_least: int, at_most: int | None = None) -> int:
    return root[key].whole(at_least=at_least, at_most=at_most) if root.has(key) else default


def _number(root: Field, key: str, default: float, **limits: float) -> float:
    return root[key].number(**limits) if root.has(key) else default
