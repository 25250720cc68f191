"""Train a policy for an environment of CARDS with PPO of Stable-Baselines3.

    pip install stable-baselines3
    python examples/train_ppo.py cards/ArmReach-v0 --steps 2000000 --out policy.zip

All robots act side by side in one vector environment of CARDS, which `SideBySide` shows to
Stable-Baselines3 as its own kind of vector.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

import cards_learning.environments  # noqa: F401  registers them
from cards_core.errors import CardsError


class SideBySide(VecEnv):
    """A vector environment of Gymnasium as one of Stable-Baselines3.

    Args:
        environment: Whose episodes start again at once (``SAME_STEP``).
        seed: Of the first robot.
    """

    def __init__(self, environment: Any, seed: int) -> None:
        self.environment = environment
        self._actions: np.ndarray | None = None
        super().__init__(
            environment.num_envs,
            environment.single_observation_space,
            environment.single_action_space,
        )
        self.seed(seed)

    def reset(self) -> np.ndarray:
        """Begin an episode of each robot; random numbers go on unless `seed` was called."""
        observations, _ = self.environment.reset(seed=list(self._seeds))
        self._reset_seeds()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all robots."""
        observations, rewards, terminated, truncated, info = self.environment.step(self._actions)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return observations, rewards, ended, infos

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, which is the same for all."""
        return [getattr(self.environment, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: robots of a vector have no attributes of their own."""
        raise NotImplementedError(f"attribute '{attr_name}' of some robots cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Refuse: robots of a vector have no methods of their own."""
        raise NotImplementedError(f"method '{method_name}' of some robots cannot be called")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Tell that none is wrapped."""
        return [False] * len(list(self._get_indices(indices)))


def train(
    name: str, *, steps: int, robots: int, rollout: int, seed: int, **options: Any
) -> tuple[PPO, list[float]]:
    """Return the policy and the mean reward of an episode before and after the training.

    Args:
        name: Id of the environment.
        steps: Of all robots together.
        robots: How many act side by side.
        rollout: Steps of each robot between two changes of the policy.
        seed: Of everything random.
        **options: Of the environment.
    """

    def vector(seed: int) -> VecMonitor:
        made = gymnasium.make_vec(name, num_envs=robots, autoreset_mode="SAME_STEP", **options)
        return VecMonitor(SideBySide(made, seed))

    model = PPO(
        "MlpPolicy",
        vector(seed),
        n_steps=rollout,
        batch_size=max(2, robots * rollout // 8),
        gae_lambda=0.95,
        gamma=0.98,
        seed=seed,
        device="cpu",
        verbose=0,
    )

    def worth() -> float:
        mean, _ = evaluate_policy(model, vector(seed + 10_000), n_eval_episodes=robots)
        return float(mean)

    values = [worth()]
    print(f"before: {values[0]:.3f}", flush=True)
    model.learn(steps)
    values.append(worth())
    print(f"after {model.num_timesteps} steps: {values[1]:.3f}")
    return model, values


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
    parser.add_argument("--steps", type=int, default=2_000_000, help="of all robots together")
    parser.add_argument("--robots", type=int, default=64)
    parser.add_argument("--rollout", type=int, default=80, help="steps between two changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--option", type=option, action="append", default=[], help="NAME=VALUE of the environment"
    )
    parser.add_argument("--out", help="file for the policy, .zip")
    given = parser.parse_args(arguments)
    try:
        model, _ = train(
            given.environment,
            steps=given.steps,
            robots=given.robots,
            rollout=given.rollout,
            seed=given.seed,
            **dict(given.option),
        )
    except (CardsError, gymnasium.error.Error) as error:
        print(f"train_ppo: {error}", file=sys.stderr)
        return 1
    if given.out:
        model.save(given.out)
        print(f"wrote {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
