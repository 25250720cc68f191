"""The environments of Gymnasium around the tasks: one robot, or n of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cards_core.checks import check_choice, check_count
from cards_core.errors import CardsError, UnknownNameError
from cards_core.typing import Array
from cards_learning.environments.arm import ReachTask
from cards_learning.environments.pick_and_place import PickAndPlaceTask
from cards_learning.environments.rendering import MODES, Renderer
from cards_learning.environments.task import ActionError, Flags, Outcome, Task
from cards_learning.environments.tensegrity import TensegrityTask
from cards_learning.environments.tracking import TrackingTask

TASKS: dict[str, Callable[..., Task]] = {
    "Tensegrity": TensegrityTask,
    "ArmReach": ReachTask,
    "FlowerTracking": TrackingTask,
    "PickAndPlace": PickAndPlaceTask,
}
"""What is to be done, by name."""


class RobotEnv(gymnasium.Env[Array, Array]):
    """A robot with a task.

    It never truncates an episode: `gymnasium.make` does, after the number of steps that is
    registered.

    Args:
        kind: Key of `TASKS`.
        render_mode: ``rgb_array``: `render` returns a picture; None: there are none.
        **options: Of the task, see its class.

    Attributes:
        task: What is to be done; ``task.layout.physical(observation)`` has SI units,
            ``task.batch`` the robot.

    Raises:
        CardsError: An option does not fit.
    """

    metadata: dict[str, Any] = {"render_modes": list(MODES)}  # noqa: RUF012  as Gymnasium has it

    def __init__(self, kind: str, render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = render_mode
        self.task = _task(kind, 1, 1, options)
        self._renderer = Renderer(self.task, render_mode)
        self.metadata = _metadata(self.task)
        self.observation_space, self.action_space = _spaces(self.task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Of all random numbers from now on; None: they go on.
            options: None or empty.

        Raises:
            CardsError: There are options.
        """
        _check_options(options)
        super().reset(seed=seed)
        return self.task.reset([0], [self.np_random])[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Act for a period.

        Args:
            action: Shape of the action space; values beyond -1 and 1 count as these.

        Returns:
            Observation, reward, whether the task is over or the physics diverged, False, and the
            terms of the reward (``reward_...``) beside other information.

        Raises:
            ActionError: A ValueError: a wrong shape, or a value that is no finite number.
        """
        shape = self.action_space.shape
        if np.shape(action) != shape:
            raise ActionError(f"the action has shape {np.shape(action)}, expected {shape}")
        outcome = self.task.step(np.asarray(action)[None])
        info = {name: values[0].item() for name, values in _info(outcome).items()}
        reward = float(outcome.rewards[0])
        return outcome.observations[0], reward, bool(outcome.terminated[0]), False, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return a picture, shape (480, 640, 3), with the target in red; None without a mode.

        Raises:
            CardsError: Nothing on this machine can draw off-screen.
        """
        return None if self.render_mode is None else self._renderer.draw(0)

    def close(self) -> None:
        """Let go of what pictures need."""
        self._renderer.close()


class RobotVectorEnv(VectorEnv[Array, Array, np.ndarray]):
    """n robots with a task each, stepped together.

    They are those of n single environments, number for number: with the seed s, robot i is that
    of ``reset(seed=s + i)``. An episode that has ended starts again, as with the vectors of
    Gymnasium: in the next step, whose action is not used and whose reward is zero
    (``NEXT_STEP``); or at once (``SAME_STEP``), and the information has ``final_obs`` and
    ``final_info``.

    Args:
        kind: Key of `TASKS`.
        num_envs: n.
        max_episode_steps: After how many an episode is truncated; None: never.
        autoreset_mode: `AutoresetMode.NEXT_STEP` or `SAME_STEP`, or their names.
        threads: How many share the work; as many as there are processors if None.
        render_mode: ``rgb_array``: `render` returns a picture of every robot; None.
        **options: Of the task, see its class.

    Attributes:
        task: What is to be done.

    Raises:
        CardsError: An option does not fit.
    """

    def __init__(
        self,
        kind: str,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_count(num_envs, "num_envs")
        if max_episode_steps is not None:
            check_count(max_episode_steps, "max_episode_steps")
        self._mode = _autoreset(autoreset_mode)
        self.render_mode = render_mode
        self.num_envs, self._most_steps = num_envs, max_episode_steps
        self.task = _task(kind, num_envs, threads, options)
        self._renderer = Renderer(self.task, render_mode)
        self.metadata = {**_metadata(self.task), "autoreset_mode": self._mode}
        self.single_observation_space, self.single_action_space = _spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] = []
        self._taken = np.zeros(num_envs, dtype=int)
        self._over: Flags = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode of each robot.

        Args:
            seed: Of the first robot, those of the others follow; or one for each, None where
                random numbers go on; or None for all.
            options: None or empty.

        Raises:
            CardsError: There are options, or another number of seeds.
        """
        _check_options(options)
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else int(seed))
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise CardsError(f"{len(seeds)} seeds for {self.num_envs} robots (expected: as many)")
        old = self._generators
        self._generators = [
            old[i] if old and value is None else seeding.np_random(value)[0]
            for i, value in enumerate(seeds)
        ]
        self._taken[:], self._over[:] = 0, False
        return self.task.reset(range(self.num_envs), self._generators), {}

    def step(self, actions: Array) -> tuple[Array, Array, Flags, Flags, dict[str, Any]]:
        """Act for a period; robots whose episode has ended start again.

        Args:
            actions: Shape (n, size of an action).

        Returns:
            Observations, rewards, terminations, truncations, information: arrays of shape (n,),
            and for each a mask ``_name`` of the robots that have it.

        Raises:
            ActionError: A ValueError: a wrong shape, or a value that is no finite number.
            gymnasium.error.ResetNeeded: Before the first `reset`.
        """
        if not self._generators:
            raise gymnasium.error.ResetNeeded("step before reset (expected: reset first)")
        outcome = self.task.step(actions)
        going = ~self._over  # without those whose step is the first of a new episode
        taken = np.where(going, self._taken + 1, 0)
        terminated = outcome.terminated & going
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        if self._most_steps is not None:
            truncated = taken >= self._most_steps
        ended = terminated | truncated
        if self._mode is AutoresetMode.NEXT_STEP:
            anew, self._over = self._over, ended
            info = _masked(outcome, going)
        else:
            anew, taken = ended, np.where(ended, 0, taken)
            info = _masked(outcome, ~ended)
            if ended.any():
                final = np.full(self.num_envs, None, dtype=object)
                for i in np.flatnonzero(ended):
                    final[i] = outcome.observations[i]
                info |= {"final_obs": final, "final_info": _masked(outcome, ended)}
                info |= {"_final_obs": ended.copy(), "_final_info": ended.copy()}
        self._taken, observations = taken, outcome.observations
        if anew.any():
            rows = np.flatnonzero(anew).tolist()
            observations = self.task.reset(rows, [self._generators[i] for i in rows])
        return observations, np.where(going, outcome.rewards, 0.0), terminated, truncated, info

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """Return a picture of every robot; see `RobotEnv.render`."""
        if self.render_mode is None:
            return None
        return tuple(self._renderer.draw(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of what pictures need."""
        self._renderer.close()


def _task(kind: str, count: int, threads: int | None, options: dict[str, Any]) -> Task:
    """Return the task of so many robots; an option that it does not have is a `CardsError`."""
    check_choice(kind, "task", TASKS)
    make = TASKS[kind]
    known = [name for name in signature(make).parameters if name not in ("n", "threads")]
    for name in options:
        check_choice(name, "option of the environment", known)
    return make(count, threads=threads, **options)


def _spaces(task: Task) -> tuple[spaces.Box, spaces.Box]:
    return (
        spaces.Box(-1.0, 1.0, (task.layout.size,), np.float64),
        spaces.Box(-1.0, 1.0, (len(task.actions),), np.float32),
    )


def _info(outcome: Outcome) -> dict[str, np.ndarray]:
    return {
        **{f"reward_{name}": values for name, values in outcome.terms.items()},
        **outcome.info,
    }


def _masked(outcome: Outcome, rows: Flags) -> dict[str, Any]:
    """Return the information of some robots as vectors of Gymnasium have it."""
    info: dict[str, Any] = {}
    if rows.any():
        for name, values in _info(outcome).items():
            info[name] = np.where(rows, values, np.zeros_like(values))
            info[f"_{name}"] = rows.copy()
    return info


def _autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    modes = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
    for known in modes:
        if mode in (known, known.name, known.value):
            return known
    raise UnknownNameError("autoreset_mode", mode, [known.name for known in modes])


def _metadata(task: Task) -> dict[str, Any]:
    return {"render_modes": list(MODES), "render_fps": max(1, round(1.0 / task.period))}


def _check_options(options: dict[str, Any] | None) -> None:
    if options:
        raise CardsError(f"options of reset: {', '.join(map(str, options))} (expected: none)")
