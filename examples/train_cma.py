"""Train a policy for an environment of CARDS with CMA-ES.

    python examples/train_cma.py cards/ArmReach-v0 --generations 100 --out policy.npz
    python examples/train_cma.py cards/ArmReach-v0 --option robot=planar_2r --generations 30

The policy is linear, a = W o + b, of the observations o; the environment cuts a off. All
candidates of a generation act side by side in one vector environment, in the same episodes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import cma
import gymnasium
import numpy as np

import cards_learning.environments  # noqa: F401  registers them
from cards_core.errors import CardsError


def values_of(candidates: np.ndarray, environment: Any, episodes: int, seed: int) -> np.ndarray:
    """Return what candidates are worth: the mean reward of an episode, shape (c,).

    Args:
        candidates: W and b of each, shape (c, (k + 1) x actions).
        environment: Of c x episodes robots, that start again in the next step.
        episodes: Of each candidate.
        seed: Of the first episode; the same for all candidates.
    """
    count, size = len(candidates), environment.single_action_space.shape[0]
    policies = np.repeat(candidates.reshape(count, size, -1), episodes, axis=0)
    seeds = [seed + i for _ in range(count) for i in range(episodes)]
    observations, _ = environment.reset(seed=seeds)
    total = np.zeros(len(policies))
    going = np.ones(len(policies), dtype=bool)
    while going.any():
        actions = np.einsum("naj,nj->na", policies[:, :, :-1], observations) + policies[:, :, -1]
        observations, rewards, terminated, truncated, _ = environment.step(actions)
        total += np.where(going, rewards, 0.0)
        going &= ~(terminated | truncated)
    return total.reshape(count, episodes).mean(axis=1)


def train(
    name: str,
    *,
    generations: int,
    population: int,
    episodes: int = 4,
    deviation: float = 0.2,
    seed: int = 1,
    **options: Any,
) -> tuple[np.ndarray, list[float]]:
    """Return the last mean of the search, (actions, k + 1), and its value after each generation.

    Args:
        name: Id of the environment.
        generations: How many.
        population: Candidates of each.
        episodes: Of every candidate.
        deviation: First standard deviation of W and b.
        seed: Of the search and the episodes.
        **options: Of the environment.
    """
    many = gymnasium.make_vec(name, num_envs=population * episodes, **options)
    one = gymnasium.make_vec(name, num_envs=episodes, **options)
    shape = (one.single_action_space.shape[0], one.single_observation_space.shape[0] + 1)
    # variances alone: a covariance matrix of hundreds of weights would take longer than physics
    settings = {"seed": seed, "popsize": population, "verbose": -9, "CMA_diagonal": True}
    search = cma.CMAEvolutionStrategy(np.zeros(np.prod(shape)), deviation, settings)
    values = [float(values_of(np.zeros((1, np.prod(shape))), one, episodes, seed)[0])]
    print(f"before: {values[0]:.3f}")
    for generation in range(generations):
        candidates = search.ask()
        worth = values_of(np.array(candidates), many, episodes, seed)
        search.tell(candidates, (-worth).tolist())
        values.append(float(values_of(search.mean[None], one, episodes, seed)[0]))
        print(f"{generation + 1}: best {worth.max():.3f}, mean of the search {values[-1]:.3f}")
    return search.mean.reshape(shape), values


def option(text: str) -> tuple[str, Any]:
    """Return name and value of ``NAME=VALUE``; the value is JSON, or else a text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"'{text}' (expected: NAME=VALUE)")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environment", nargs="?", default="cards/ArmReach-v0", help="its id")
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--population", type=int, default=32)
    parser.add_argument("--episodes", type=int, default=8, help="of every candidate")
    parser.add_argument("--deviation", type=float, default=0.2, help="of the first weights")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--option", type=option, action="append", default=[], help="NAME=VALUE of the environment"
    )
    parser.add_argument("--out", help="file for the policy, .npz with W and b")
    given = parser.parse_args(arguments)
    try:
        policy, _ = train(
            given.environment,
            generations=given.generations,
            population=given.population,
            episodes=given.episodes,
            deviation=given.deviation,
            seed=given.seed,
            **dict(given.option),
        )
    except (CardsError, gymnasium.error.Error) as error:
        print(f"train_cma: {error}", file=sys.stderr)
        return 1
    if given.out:
        np.savez(given.out, W=policy[:, :-1], b=policy[:, -1])
        print(f"wrote {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
