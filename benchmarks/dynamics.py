"""``./cards bench dynamics``: an update of the model, numeric and compiled."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from cards_bringup.benchmarks.timing import empty_cache, time_call
from cards_core.dynamics import Dynamics, make_dynamics
from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot import Tree
from cards_core.typing import Array


def random_states(tree: Tree, count: int = 64) -> list[tuple[Array, Array]]:
    """Random states within the limits, the same in every run."""
    rng = np.random.default_rng(0)
    return [(tree.random(rng), rng.normal(size=tree.nv)) for _ in range(count)]


def bench_dynamics(robot_name: str) -> dict[str, Any]:
    """Time one update of M, C, G, l, L with both backends, and a compilation from nothing.

    Returns:
        numeric_us, compiled_us (median), compile_s and details.
    """
    robot = load(robot_name)
    with empty_cache():
        start = time.perf_counter()
        compiled = make_dynamics(robot, "compiled")
        compile_s = time.perf_counter() - start
        engine = MuscleEngine(robot)
    numeric = make_dynamics(robot, "numeric")
    states = random_states(compiled.tree)
    timing = {}
    for name, backend in (("numeric", numeric), ("compiled", compiled)):
        timing[name] = time_call(partial(_update_next, backend, itertools.cycle(states)))
    empty = time_call(partial(next, itertools.cycle(states)))["median"]
    poses = compiled.link_poses(states[0][0]).copy()
    twists, tensions = np.zeros((len(robot.links), 6)), np.ones(len(robot.muscles))
    return {
        "robot": robot.name,
        "dof": compiled.tree.nv,
        "muscles": len(robot.muscles),
        "numeric_us": timing["numeric"]["median"] - empty,
        "compiled_us": timing["compiled"]["median"] - empty,
        "compiled_p99_us": timing["compiled"]["p99"],
        "ratio": (timing["numeric"]["median"] - empty) / (timing["compiled"]["median"] - empty),
        "compile_s": compile_s,
        "muscle_engine_us": time_call(lambda: engine.update(poses, twists, tensions))["median"],
    }


def _update_next(backend: Dynamics, states: Iterator[tuple[Array, Array]]) -> None:
    backend.update(*next(states))
