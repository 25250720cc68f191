"""``./cards bench batch``: many robots side by side, beside MuJoCo's own batches; environments."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import mujoco
import numpy as np

from cards import Batch
from cards_bringup.benchmarks.timing import Say
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.robot.model import Robot
from cards_core.typing import Array

ARM, SPINE = "roboy_arm", "tetrahedral_6"
ARMS, SPINES = 1024, 16
STEPS = 100
"""That an arm takes under one command."""

COMMAND_STEPS = 10
"""That a spine takes under one command."""

ENVIRONMENTS = {
    "env": ("cards/ArmReach-v0", True),
    "tensegrity_env": ("cards/Tensegrity-v0", True),
    "single_env": ("cards/ArmReach-v0", False),
}
"""Name to the id, and whether it is a vector of as many robots as above, or one alone."""

ENVIRONMENT_STEPS = {"env": 10, "tensegrity_env": 2, "single_env": 200}

COMPARED = 20
"""Steps after which both trajectories are compared: before the first joint limit."""


def bench_batch(
    say: Say, *, rounds: int = 7, arms: int = ARMS, threads: int | None = None
) -> dict[str, Any]:
    """Measure steps per second of all robots of a batch together.

    - An arm of eleven cables in free air, 1024 of them with a step of 1 ms, 100 steps under a
      command. MuJoCo steps the same model: its tendons are the muscles, motors pull them with the
      same tensions, contacts are off. Both are measured in turns.
    - A tensegrity of six vertebrae on flat ground under the impedance law, 16 of them, 10 steps
      under a command; and one alone.
    - Steps of the environments of `cards_learning.environments` under random actions: vectors of
      as many arms (20 ms a step) and tensegrities (50 ms), and one arm alone.

    Args:
        say: Takes what is being measured.
        rounds: Of each.
        arms: How many arms.
        threads: As many as there are processors if None.

    Returns:
        ``arm_steps_per_s``, ``mujoco_batch_steps_per_s`` and their ratio, ``arm_difference_rad``
        between both after 20 steps; ``tensegrity_steps_per_s``, ``tensegrity_single_steps_per_s``
        and their ratio; ``env_steps_per_s``, ``tensegrity_env_steps_per_s``,
        ``single_env_steps_per_s``, None without gymnasium; ``threads``. Medians.

    Raises:
        CardsError: MuJoCo has no batches.
    """
    ours, theirs = _arms(arms, threads)
    difference = float(np.abs(ours.state.q - theirs.bind("qpos")).max())
    spines, single = _spines(SPINES, threads), _spines(1, 1)
    cases: dict[str, tuple[int, Callable[[], None]]] = {
        "arm": (arms * STEPS, lambda: ours.step(STEPS)),
        "mujoco_batch": (arms * STEPS, lambda: theirs.step(nstep=STEPS)),
        "tensegrity": (SPINES * 5 * COMMAND_STEPS, lambda: _walk(spines)),
        "tensegrity_single": (5 * COMMAND_STEPS, lambda: _walk(single)),
    }
    environments = _environments(arms, threads)
    if not environments:
        say("no environments: gymnasium is not installed (expected: ./cards setup --test)")
    cases |= environments
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        say(f"{turn + 1} of {rounds + 1}")
        for name, (steps, advance) in cases.items():
            begin = time.perf_counter()
            advance()
            if turn:
                rates[name].append(steps / (time.perf_counter() - begin))
    result: dict[str, Any] = {"threads": ours.threads, "arm_difference_rad": difference}
    result |= {f"{name}_steps_per_s": None for name in ENVIRONMENTS}
    result |= {f"{name}_steps_per_s": median(values) for name, values in rates.items()}
    for name, other in (("arm", "mujoco_batch"), ("tensegrity", "tensegrity_single")):
        pairs = zip(rates[name], rates[other], strict=True)
        result[f"{name}_ratio"] = median([a / b for a, b in pairs])
    return result


def _arms(count: int, threads: int | None) -> tuple[Batch, Any]:
    """Return both batches after `COMPARED` steps under the same tensions."""
    try:
        import mujoco.batch as of_mujoco
    except ImportError:
        raise CardsError(
            f"MuJoCo {mujoco.__version__} has no batches (expected: 4.0 or newer)"
        ) from None
    robot = load(ARM)
    ours = Batch(robot, count, threads=threads, dt=1e-3)
    low = np.array([muscle.tension_min for muscle in robot.muscles])
    tensions = low + np.random.default_rng(0).uniform(0.0, 40.0, (count, len(low)))
    ours.command(tensions)
    theirs = of_mujoco.Batch(_with_motors(robot), count, ours.threads, persistent=True)
    theirs.bind("qpos")[:] = robot.tree.home
    theirs.bind("ctrl")[:] = tensions
    ours.step(COMPARED)
    theirs.step(nstep=COMPARED)
    return ours, theirs


def _with_motors(robot: Robot) -> mujoco.MjModel:
    """Return MuJoCo's model of a robot whose tendons are pulled by motors, without contacts."""
    bare = replace(
        robot, links=tuple(replace(link, collisions=(), visuals=()) for link in robot.links)
    )
    root = ET.fromstring(to_mjcf(bare, tendons=True))
    motors = ET.SubElement(root, "actuator")
    for tendon in root.iterfind("tendon/spatial"):
        ET.SubElement(motors, "motor", tendon=tendon.get("name", ""), gear="-1")
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model


def _spines(count: int, threads: int | None) -> Batch:
    robot = load(SPINE)
    batch = Batch(robot, count, terrain="flat:friction=0.5", threads=threads)
    names = [muscle.name for muscle in robot.muscles]
    taken = [names.index(name) for name in batch.muscles("impedance")]
    lengths: Array = batch.state.muscle_lengths[:, taken]
    batch.command(np.zeros(len(taken)), rest_lengths=0.97 * lengths)
    batch.step(300)  # it falls to the ground
    return batch


def _walk(batch: Batch) -> None:
    for _ in range(5):
        batch.step(COMMAND_STEPS)


def _environments(arms: int, threads: int | None) -> dict[str, tuple[int, Callable[[], None]]]:
    """Return cases of environments; none without gymnasium."""
    try:
        import gymnasium

        import cards_learning.environments  # noqa: F401  registers them
    except ImportError:
        return {}
    cases: dict[str, tuple[int, Callable[[], None]]] = {}
    for name, (identifier, several) in ENVIRONMENTS.items():
        count = (SPINES if name == "tensegrity_env" else arms) if several else 1
        if several:
            made: Any = gymnasium.make_vec(identifier, num_envs=count, threads=threads)
        else:
            made = gymnasium.make(identifier)
        made.reset(seed=0)
        made.action_space.seed(0)
        steps = ENVIRONMENT_STEPS[name]
        cases[name] = (count * steps, partial(_act, made, steps, several))
    return cases


def _act(environment: Any, steps: int, several: bool) -> None:
    for _ in range(steps):
        _, _, terminated, truncated, _ = environment.step(environment.action_space.sample())
        if not several and (terminated or truncated):
            environment.reset()
