"""The examples that train policies: rewards rise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(name):
    """Return a script of ``examples`` as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def train_cma():
    pytest.importorskip("cma", reason="cma is not installed")
    return example("train_cma")


def test_an_arm_learns_to_reach_by_evolution(train_cma):
    """The mean of the search is worth twice as much after ten generations; by half is asked."""
    options = {"generations": 10, "population": 24, "deviation": 0.1, "effort_weight": 0.0}
    policy, values = train_cma.train("cards/ArmReach-v0", **options)
    assert values[-1] > 1.5 * values[0] > 0.0
    again, same = train_cma.train("cards/ArmReach-v0", **options | {"generations": 2})
    assert same == values[:3]
    assert policy.shape == again.shape == (11, 23)


def test_candidates_are_judged_in_the_same_episodes(train_cma):
    """Whatever the company: a candidate is worth what it is worth alone."""
    options = {"robot": "planar_2r", "max_episode_steps": 10}
    many = gymnasium.make_vec("cards/ArmReach-v0", num_envs=6, **options)
    one = gymnasium.make_vec("cards/ArmReach-v0", num_envs=2, **options)
    size = 4 * (many.single_observation_space.shape[0] + 1)
    candidates = 0.1 * np.random.default_rng(0).standard_normal((3, size))
    candidates[2] = candidates[0]
    values = train_cma.values_of(candidates, many, 2, 5)
    assert values[0] == values[2] != values[1]
    assert values[1] == train_cma.values_of(candidates[1:2], one, 2, 5)[0]


def test_the_command_line_of_evolution(train_cma, tmp_path, capsys):
    file = tmp_path / "policy.npz"
    small = ["--generations", "1", "--population", "4", "--episodes", "1"]
    small += ["--option", "robot=planar_2r", "--option", "max_episode_steps=5"]
    assert train_cma.main([*small, "--out", str(file)]) == 0
    assert np.load(file)["W"].shape == (4, 11)
    assert "1: best" in capsys.readouterr().out
    assert train_cma.main([*small, "--option", "robot=nobody"]) == 1
    assert "nobody" in capsys.readouterr().err
    assert train_cma.main(["cards/Nothing-v0"]) == 1
    assert "Nothing" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        train_cma.main(["--option", "robot"])


def test_an_arm_learns_to_reach_by_ppo(tmp_path):
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    train_ppo = example("train_ppo")
    file = tmp_path / "policy.zip"
    _, values = train_ppo.train(
        "cards/ArmReach-v0", steps=40_000, robots=32, rollout=50, seed=1, effort_weight=0.0
    )
    assert values[1] > values[0]
    assert train_ppo.main(["--steps", "100", "--robots", "2", "--out", str(file)]) == 0
    assert file.is_file()
