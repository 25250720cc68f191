"""All environments: Gymnasium's checker, vectors as single ones, seeds, mistakes, divergence."""

import dataclasses
import importlib
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import cards

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from cards_core.dynamics import make_dynamics  # noqa: E402
from cards_core.errors import CardsError  # noqa: E402
from cards_core.muscles.command import CommandPart  # noqa: E402
from cards_core.robot.perturb import perturbed  # noqa: E402
from cards_core.trajectories.library import (  # noqa: E402
    find_reference_file,
    load_references,
)
from cards_learning.environments import IDS  # noqa: E402
from cards_learning.environments.environment import RobotEnv  # noqa: E402
from cards_learning.environments.quantities import Layout, Quantity  # noqa: E402
from cards_learning.environments.task import FAILURE  # noqa: E402
from cards_sim.batch import ModelErrors  # noqa: E402

SMALL = {
    "cards/Tensegrity-v0": {"robot": "prism_3"},
    "cards/ArmReach-v0": {"robot": "planar_2r"},
}
"""Options with which an environment is small and fast."""


@pytest.fixture(params=IDS)
def name(request):
    return request.param


def same_information(ours, theirs):
    """Tell whether the information of two vectors is the same."""
    if isinstance(ours, dict):
        same = ours.keys() == theirs.keys()
        return same and all(same_information(ours[key], theirs[key]) for key in ours)
    if ours.dtype == object:
        return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    return ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def random_actions(space, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (count, *space.shape)).astype(np.float32)


def test_gymnasium_has_nothing_to_say(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment = gymnasium.make(name, **SMALL.get(name, {}))
        check_env(environment.unwrapped, skip_render_check=True)  # it would need OpenGL
        environment.close()
    for space in (environment.observation_space, environment.action_space):
        assert np.isfinite(space.low).all()
        assert np.isfinite(space.high).all()


@pytest.mark.parametrize("errors", [{}, {"joint_noise": 0.01, "length_noise": 0.002}])
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_a_vector_is_as_many_single_ones(name, mode, errors):
    """Number for number, through the ends of episodes, with the information and the noise."""
    options = {**SMALL.get(name, {}), "max_episode_steps": 4, "errors": errors}
    many = gymnasium.make_vec(name, num_envs=5, autoreset_mode=mode, **options)
    single = gymnasium.make_vec(
        name,
        num_envs=5,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode[mode]},
        **options,
    )
    assert many.metadata["autoreset_mode"] is AutoresetMode[mode]
    assert many.single_observation_space == single.single_observation_space
    assert many.action_space == single.action_space
    for seed in (3, [7, 1, 4, 4, 9]):
        (ours, _), (theirs, _) = many.reset(seed=seed), single.reset(seed=seed)
        assert ours.tobytes() == theirs.tobytes()
        for actions in random_actions(many.action_space, 12):
            ours, theirs = many.step(actions), single.step(actions)
            for a, b in zip(ours[:4], theirs[:4], strict=True):
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes()
            assert same_information(ours[4], theirs[4])
    assert ours[0] in many.observation_space


def test_seeds_tell_everything(name):
    environment = gymnasium.make(name, **SMALL.get(name, {}))
    actions = random_actions(environment.action_space, 3)

    def episode(seed):
        out = [environment.reset(seed=seed)[0]]
        out += [environment.step(action)[0] for action in actions]
        return np.array(out)

    first = episode(1)
    other = episode(2)
    assert first.tobytes() == episode(1).tobytes()
    assert (first != other).any()
    environment.reset(seed=1)
    again = environment.reset()[0]
    assert (again != first[0]).any() or (environment.step(actions[0])[0] != first[1]).any()


def test_episodes_are_truncated_after_their_steps(name):
    many = gymnasium.make_vec(name, num_envs=2, max_episode_steps=3, **SMALL.get(name, {}))
    many.reset(seed=0)
    flags = [many.step(0.0 * many.action_space.sample()) for _ in range(5)]
    assert [bool(step[3].all()) for step in flags] == [False, False, True, False, False]
    assert not any(step[2].any() for step in flags)
    assert flags[3][1].tolist() == [0.0, 0.0]  # the step in which they start again


def test_bad_actions_are_named_and_nothing_is_done(name):
    many = gymnasium.make_vec(name, num_envs=2, **SMALL.get(name, {}))
    with pytest.raises(gymnasium.error.ResetNeeded):
        many.step(many.action_space.sample())
    many.reset(seed=0)
    actions = np.zeros(many.action_space.shape)
    many.step(actions)
    time = many.task.batch.state.time.copy()
    actions[1, 2] = np.nan
    label = re.escape(many.task.actions[2])
    with pytest.raises(ValueError, match=f"action '{label}' of robot 1 is nan"):
        many.step(actions)
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        many.step(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="no array of numbers"):
        many.step([["left"], ["right"]])
    assert many.task.batch.state.time.tolist() == time.tolist()
    one = gymnasium.make(name, **SMALL.get(name, {})).unwrapped
    one.reset(seed=0)
    with pytest.raises(ValueError, match=f"action '{label}' of robot 0 is inf"):
        one.step(np.where(np.arange(actions.shape[1]) == 2, np.inf, 0.0))
    with pytest.raises(ValueError, match="shape"):
        one.step(np.zeros(actions.shape[1] + 1))


def test_actions_beyond_their_ends_count_as_these(name):
    many = gymnasium.make_vec(name, num_envs=2, **SMALL.get(name, {}))
    many.reset(seed=[1, 1])
    ends = np.where(np.arange(many.action_space.shape[1]) % 2, -1.0, 1.0)
    observations, *_ = many.step(np.array([ends, 7.0 * ends]))
    assert observations[0].tobytes() == observations[1].tobytes()


def test_options_that_do_not_fit_are_refused(name):
    many = gymnasium.make_vec(name, num_envs=2, **SMALL.get(name, {}))
    one = gymnasium.make(name, **SMALL.get(name, {})).unwrapped
    for call, message in (
        (lambda: many.reset(seed=[1]), "1 seeds for 2 robots"),
        (lambda: many.reset(seed=0, options={"low": 1}), "options of reset: low"),
        (lambda: one.reset(seed=0, options={"low": 1}), "options of reset: low"),
        (lambda: gymnasium.make(name, robot="nobody"), "nobody"),
        (lambda: gymnasium.make(name, robot="stewart_gough"), "is a robot of rods"),
        (lambda: gymnasium.make(name, period=0.0123456), "period is 0.0123456 s"),
        (lambda: gymnasium.make(name, period=float("nan")), "period"),
        (lambda: gymnasium.make(name, errors={"weight": 0.1}), "weight.*mass"),
        (lambda: gymnasium.make(name, errors={"mass": -0.1}), "mass"),
        (lambda: gymnasium.make(name, errors=0.1), "errors"),
        (lambda: gymnasium.make_vec(name, num_envs=0), "num_envs is 0"),
        (lambda: gymnasium.make_vec(name, num_envs=1, autoreset_mode="DISABLED"), "SAME_STEP"),
        (lambda: gymnasium.make_vec(name, num_envs=1, max_episode_steps=0), "max_episode_steps"),
        (lambda: gymnasium.make_vec(name, num_envs=1, threads=0), "threads"),
    ):
        with pytest.raises(CardsError, match=message):
            call()
    with pytest.raises(CardsError, match=r"option of the environment named 'nonsense'.*errors"):
        gymnasium.make(name, nonsense=1)
    with pytest.raises(CardsError, match="did you mean 'period'"):
        gymnasium.make_vec(name, num_envs=2, periode=1)


def test_noise_is_in_what_is_seen_and_not_in_what_counts(name):
    """The difference of two runs is the noise, of the deviation that was asked for."""
    noise = {"joint_noise": 1e-3, "length_noise": 2e-3}
    many = {"num_envs": 40 if "Tensegrity" in name else 300, **SMALL.get(name, {})}
    exact = gymnasium.make_vec(name, **many)
    noisy = gymnasium.make_vec(name, errors=noise, **many)
    exact.reset(seed=1), noisy.reset(seed=1)
    action = np.zeros(exact.action_space.shape)
    for _ in range(2):
        ours, theirs = exact.step(action), noisy.step(action)
        assert ours[1].tobytes() == theirs[1].tobytes()  # rewards
    layout = exact.unwrapped.task.layout
    quantity, deviation = ("lengths", 2e-3) if "Tensegrity" in name else ("q", 1e-3)
    seen = [layout.physical(obs[0].astype(float))[quantity] for obs in (ours, theirs)]
    difference = seen[1] - seen[0]
    assert np.std(difference) == pytest.approx(deviation, rel=0.1)
    assert abs(np.mean(difference)) < 4.0 * deviation / np.sqrt(difference.size)
    rates = "rates" if "Tensegrity" in name else "qd"
    same = [layout.physical(obs[0])[rates] for obs in (ours, theirs)]
    assert same[0].tobytes() == same[1].tobytes()


def test_robots_of_a_vector_have_errors_of_their_own():
    """Four arms of four masses move apart under the same tensions, each time in the same way."""
    errors = ModelErrors(mass=0.2, seed=3)
    many = gymnasium.make_vec("cards/ArmReach-v0", num_envs=4, errors=errors)
    assert many.unwrapped.task.batch.errors == errors
    again = gymnasium.make_vec("cards/ArmReach-v0", num_envs=4, errors={"mass": 0.2, "seed": 3})
    action = np.zeros(many.action_space.shape)
    seen = []
    for environment in (many, again):
        environment.reset(seed=[5] * 4)
        for _ in range(5):
            observation = environment.step(action)[0]
        seen.append(observation)
    assert seen[0].tobytes() == seen[1].tobytes()
    assert len({row.tobytes() for row in seen[0]}) == 4


def test_without_gymnasium_the_package_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "cards_learning.environments")
    with pytest.raises(ImportError, match=r"needs gymnasium 1\.2.*cards-robotics\[environments\]"):
        importlib.import_module("cards_learning.environments")


def test_observations_are_numbers_in_units():
    layout = Layout(
        [
            Quantity.of("length", "m", ["a", "b"], 0.0, [2.0, 4.0]),
            Quantity.of("speed", "m/s", ["a"], -1.0, 1.0),
        ]
    )
    values = {"length": np.array([[0.5, 1.0]]), "speed": np.array([[3.0]])}
    seen = layout.observation(values)
    assert seen.tolist() == [[-0.5, -0.5, 1.0]]
    back = layout.physical(seen)
    assert back["length"].tolist() == [[0.5, 1.0]]
    assert back["speed"].tolist() == [[1.0]]  # cut off
    assert layout.physical(seen[0])["length"].tolist() == [0.5, 1.0]
    with pytest.raises(CardsError, match="shape"):
        layout.physical(seen[0, :2])
    with pytest.raises(CardsError, match="length of 'b' ranges from 0 to inf m"):
        Quantity.of("length", "m", ["a", "b"], 0.0, [2.0, np.inf])


def test_the_page_has_all_ids_and_options():
    page = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
    for name, (_, steps) in IDS.items():
        assert f"`{name}`" in page
        assert f"{steps} steps" in page
        spec = gymnasium.spec(name)
        assert spec.max_episode_steps == steps
        many = gymnasium.make_vec(name, num_envs=1, **SMALL.get(name, {}))
        for quantity in many.task.layout.quantities:
            assert f"`{quantity.name}`" in page, (name, quantity.name)
        many.reset(seed=0)
        for key in many.step(many.action_space.sample())[4]:
            if not key.startswith("_"):
                assert f"`{key}`" in page, (name, key)
    assert f"{FAILURE:g}" in page
    for field in dataclasses.fields(ModelErrors):
        assert f"`{field.name}`" in page


# Tensegrity -------------------------------------------------------------------------------------


def test_a_tensegrity_that_diverges_is_over():
    """Velocities beyond what MuJoCo takes; the others go on, and it starts again."""
    options = {**SMALL["cards/Tensegrity-v0"], "perturbation": 1e9}
    many = gymnasium.make_vec("cards/Tensegrity-v0", num_envs=2, **options)
    many.reset(seed=0)
    zero = np.zeros(many.action_space.shape)
    for _ in range(3):
        observations, rewards, terminated, truncated, info = many.step(zero)
        if terminated.any():
            break
    assert terminated.all()
    assert not truncated.any()
    assert rewards.tolist() == [FAILURE, FAILURE]
    assert info["diverged"].all()
    assert observations in many.observation_space
    _, rewards, terminated, _, info = many.step(zero)
    assert not terminated.any()
    assert rewards.tolist() == [0.0, 0.0]
    assert info == {}


def test_the_reward_of_a_tensegrity_is_distance_less_work():
    """Beside the simulator under the same commands, whose links' poses come from MuJoCo."""
    options = {"work_weight": 0.3, "perturbation": 0.05}
    environment = gymnasium.make("cards/Tensegrity-v0", robot="tetrahedral_6", **options)
    environment = environment.unwrapped
    task = environment.task
    observation, _ = environment.reset(seed=4)
    robot = cards.load("tetrahedral_6")
    rates = np.random.default_rng(4).uniform(-0.05, 0.05, robot.tree.nv)
    simulator = cards.Simulator(robot, terrain="flat:friction=0.5", command_timeout=3600.0)
    simulator.simulator.begin_at(robot.tree.home, rates)
    simulator.reset()
    masses = np.array([link.inertia.mass for link in robot.links])
    coms = np.array([link.inertia.com for link in robot.links])

    def centre():
        poses = simulator.simulator.link_poses()
        places = [pose[:3, :3] @ com + pose[:3, 3] for pose, com in zip(poses, coms, strict=True)]
        return masses @ np.array(places) / masses.sum()

    home = simulator.state.muscle_lengths
    fastest = np.array([muscle.actuator.winch_speed for muscle in robot.muscles])
    first, lengths, tensions = centre(), home, simulator.state.tensions
    assert task.layout.physical(observation)["lengths"] == pytest.approx(home)
    before = total = 0.0
    for action in random_actions(environment.action_space, 8, seed=2):
        observation, reward, _, _, info = environment.step(action)
        rates = action.astype(float) * fastest
        part = CommandPart("impedance", task.actions, np.zeros(len(home)), home, rates)
        simulator.submit((part,))
        simulator.steps(50)
        state = simulator.state
        distance = float(np.linalg.norm((centre() - first)[:2]))
        work = float(np.sum(tensions * np.maximum(lengths - state.muscle_lengths, 0.0)))
        lengths, tensions = state.muscle_lengths, state.tensions
        assert info["work"] == pytest.approx(work, abs=1e-12)
        assert info["distance"] == pytest.approx(distance, abs=1e-9)
        assert reward == pytest.approx(distance - before - 0.3 * work, abs=1e-9)
        before = distance
        total += info["reward_distance"]
    assert total == pytest.approx(distance, abs=1e-12)
    assert work > 0.0
    seen = task.layout.physical(observation)
    assert seen["tensions"] == pytest.approx(state.tensions, abs=1e-9)
    assert seen["way"] == pytest.approx((centre() - first)[:2] / distance, abs=1e-6)


def test_cables_that_are_not_told_stay_springs():
    """Beside the simulator whose other cables are told, and those never."""
    options = {"robot": "prism_3", "muscles": ["bottom*-top*"], "perturbation": 0.0}
    names = [muscle.name for muscle in cards.load("prism_3").muscles]
    told = ["bottom0-top0", "bottom1-top1", "bottom2-top2"]
    environment = gymnasium.make("cards/Tensegrity-v0", **options).unwrapped
    assert environment.task.actions == tuple(told)
    environment.reset(seed=0)
    robot = cards.load("prism_3")
    simulator = cards.Simulator(robot, terrain="flat:friction=0.5", command_timeout=3600.0)
    home = simulator.state.muscle_lengths[[names.index(name) for name in told]]
    action = np.linspace(-0.5, 0.5, len(told))
    zero, rates = np.zeros(len(told)), 0.2 * action
    simulator.submit((CommandPart("impedance", told, zero, home, rates),))
    simulator.steps(50)
    environment.step(action)
    state = environment.task.batch.state
    assert state.q[0] == pytest.approx(simulator.state.q, abs=1e-9)
    assert state.tensions[0] == pytest.approx(simulator.state.tensions, abs=1e-6)


def test_cables_without_a_winch_need_a_rate():
    robot = cards.load("prism_3")
    bare = tuple(
        dataclasses.replace(
            muscle, actuator=dataclasses.replace(muscle.actuator, winch_speed=None)
        )
        for muscle in robot.muscles
    )
    robot = dataclasses.replace(robot, muscles=bare)
    with pytest.raises(CardsError, match=f"muscle '{bare[0].name}' has no winch.*largest_rate"):
        gymnasium.make("cards/Tensegrity-v0", robot=robot)
    environment = gymnasium.make("cards/Tensegrity-v0", robot=robot, largest_rate=0.1)
    environment.reset(seed=0)
    environment.step(environment.action_space.sample())
    with pytest.raises(CardsError, match="no muscle is called 'ropes'"):
        gymnasium.make("cards/Tensegrity-v0", robot="prism_3", muscles=["ropes"])
    for option, value in (("perturbation", -1.0), ("work_weight", -1.0), ("tension", np.nan)):
        with pytest.raises(CardsError, match=option):
            gymnasium.make("cards/Tensegrity-v0", robot="prism_3", **{option: value})


# Arms -------------------------------------------------------------------------------------------


def of_strong_muscles(robot):
    """Return a robot whose muscles can tear everything apart."""
    muscles = tuple(dataclasses.replace(m, tension_max=1e15) for m in robot.muscles)
    return dataclasses.replace(robot, muscles=muscles)


def test_an_arm_that_diverges_is_over():
    options = {"robot": of_strong_muscles(cards.load("planar_2r")), "largest_tension": None}
    many = gymnasium.make_vec("cards/ArmReach-v0", num_envs=2, **options)
    many.reset(seed=0)
    actions = -np.ones(many.action_space.shape)
    actions[1, 0] = 1.0
    observations, rewards, terminated, truncated, info = many.step(actions)
    assert terminated.tolist() == info["diverged"].tolist() == [False, True]
    assert not truncated.any()
    assert rewards[1] == FAILURE
    assert 0.0 < rewards[0] < 1.0
    assert observations in many.observation_space
    _, rewards, terminated, _, info = many.step(-np.ones(many.action_space.shape))
    assert not terminated.any()
    assert rewards[1] == 0.0
    assert info["_diverged"].tolist() == [True, False]


def test_the_reward_of_an_arm_is_closeness_less_effort():
    """Beside the simulator under the same tensions, before it meets a limit."""
    options = {"close": 0.2, "effort_weight": 0.5, "largest_tension": 60.0, "period": 0.005}
    environment = gymnasium.make("cards/ArmReach-v0", robot="planar_2r", **options).unwrapped
    layout = environment.task.layout
    observation, _ = environment.reset(seed=6)
    robot = cards.load("planar_2r")
    seen = layout.physical(observation)
    numeric = make_dynamics(robot, "numeric")

    def hand(q):
        return numeric.operational(q, np.zeros(2)).position.copy()

    point = hand(seen["q"]) + seen["error"]
    simulator = cards.Simulator(robot, dt=environment.task.batch.dt, command_timeout=3600.0)
    simulator.simulator.begin_at(seen["q"])
    simulator.reset()
    low = np.array([muscle.tension_min for muscle in robot.muscles])
    for action in 0.2 * random_actions(environment.action_space, 6, seed=1) - 0.6:
        observation, reward, terminated, _, info = environment.step(action)
        tensions = low + 0.5 * (action.astype(float) + 1.0) * (60.0 - low)
        simulator.submit((CommandPart("force", environment.task.actions, tensions),))
        simulator.steps(environment.task.steps)
        distance = np.linalg.norm(point - hand(simulator.state.q))
        effort = np.mean((0.5 * (action.astype(float) + 1.0)) ** 2)
        assert reward == pytest.approx(
            1.0 / (1.0 + (distance / 0.2) ** 2) - 0.5 * effort, abs=1e-9
        )
        assert info["distance"] == pytest.approx(distance, abs=1e-9)
        assert not terminated
        seen = layout.physical(observation)
        assert seen["q"] == pytest.approx(simulator.state.q, abs=1e-9)
        assert seen["qd"] == pytest.approx(simulator.state.qd, abs=1e-8)
        assert seen["tensions"] == pytest.approx(tensions, abs=1e-9)


def test_points_can_be_reached_and_are_reached():
    options = {"robot": "planar_2r", "reached": 10.0}
    many = gymnasium.make_vec("cards/ArmReach-v0", num_envs=20, **options)
    observations, _ = many.reset(seed=0)
    seen = many.task.layout.physical(observations)
    robot = cards.load("planar_2r")
    assert abs(seen["q"] - robot.tree.home).max() <= 0.05 + 1e-12
    assert len(np.unique(seen["error"], axis=0)) == 20
    assert many.step(many.action_space.sample())[4]["is_success"].all()


def test_arms_need_limits_and_muscles():
    for options, message in (
        ({"robot": "prism_3"}, "has no limits"),
        ({"largest_tension": 1.0}, "largest_tension"),
        ({"effort_weight": -1.0}, "effort_weight"),
        ({"close": 0.0}, "close"),
        ({"spread": 0.0}, "spread"),
        ({"reached": -1.0}, "reached"),
        ({"start_spread": -1.0}, "start_spread"),
    ):
        with pytest.raises(CardsError, match=message):
            gymnasium.make("cards/ArmReach-v0", **{"robot": "planar_2r", **options})


# A path -----------------------------------------------------------------------------------------


def test_an_arm_follows_its_path():
    """It begins there, at rest, at one of many places; the path goes on after its end."""
    many = gymnasium.make_vec("cards/FlowerTracking-v0", num_envs=8, period=1.5, ahead=3.0)
    robot, layout = many.task.batch.robot, many.task.layout
    file, names = find_reference_file("", robot), robot.tree.position_names
    path = load_references(file, names=names, operational_size=3)["flower"]
    observations, _ = many.reset(seed=0)
    seen = layout.physical(observations)
    numeric = make_dynamics(robot, "numeric")

    def hands(q):
        return np.array([numeric.operational(row, np.zeros(4)).position.copy() for row in q])

    assert np.linalg.norm(seen["error"], axis=1).max() < 1e-3
    assert abs(seen["qd"]).max() < 1e-12
    assert ((seen["q"] >= robot.tree.lower) & (seen["q"] <= robot.tree.upper)).all()
    times = 1.5 * np.arange(20)
    places = path.sample(times)[0]
    points = hands(seen["q"]) + seen["error"]
    begin = np.array([np.linalg.norm(places - point, axis=1).argmin() for point in points])
    assert len(set(begin.tolist())) > 3
    still = np.zeros(many.action_space.shape)
    for step in range(1, 22):  # each passes the end
        observations, _, _, _, info = many.step(still)
        seen = layout.physical(observations)
        now, later = (begin + step) % 20, (begin + step + 2) % 20
        at = hands(many.task.batch.state.q)
        assert at + seen["error"] == pytest.approx(places[now], abs=1e-9)
        assert at + seen["ahead"] == pytest.approx(places[later], abs=1e-9)
        assert seen["velocity"] == pytest.approx(path.sample(times)[1][now], abs=1e-9)
        assert info["distance"] == pytest.approx(np.linalg.norm(seen["error"], axis=1), abs=1e-9)
        assert info["reward_closeness"] == pytest.approx(1 / (1 + (info["distance"] / 0.05) ** 2))


def test_paths_that_cannot_be_followed_are_refused(tmp_path):
    file = tmp_path / "far.yaml"
    file.write_text(
        "trajectories:\n  far: {kind: hold, space: operational, position: [3.0, 0.0, 0.0], "
        "duration: 2.0}\n"
    )
    name = "cards/FlowerTracking-v0"
    for options, message in (
        ({"reference": "far", "reference_file": str(file)}, "gets nowhere to reference 'far'"),
        ({"reference": "daisy"}, "daisy"),
        ({"robot": "planar_2r", "reference": "there_and_back"}, "joint space"),
        ({"ahead": -1.0}, "ahead"),
    ):
        with pytest.raises(CardsError, match=message):
            gymnasium.make(name, **options)


# A load -----------------------------------------------------------------------------------------


def towards(seen, task):
    """Return actions that move set-points to where platforms are to go next, ever slower."""
    return np.clip((seen["next"] - seen["set_point"]) / (4.0 * 0.5 * task.period), -1.0, 1.0)


def test_loads_are_fetched_and_brought():
    """Every platform does it; what it is worth is the way and two bonuses."""
    many = gymnasium.make_vec("cards/PickAndPlace-v0", num_envs=12)
    task, layout = many.task, many.task.layout
    observations, info = many.reset(seed=0)
    seen = layout.physical(observations)
    apart = np.linalg.norm(seen["place"] - seen["next"], axis=1)
    assert apart.min() > 0.25 * np.linalg.norm([1.6, 1.2, 0.8]) - 1e-9
    way = np.linalg.norm(seen["next"], axis=1) + apart
    goals = {False: seen["q"][:, :3] + seen["next"], True: seen["q"][:, :3] + seen["place"]}
    value, ended = np.zeros(12), np.zeros(12, dtype=bool)
    for _ in range(200):
        was = seen["carrying"][:, 0] > 0.5
        observations, rewards, terminated, truncated, info = many.step(towards(seen, task))
        value += np.where(ended, 0.0, rewards)
        seen = layout.physical(observations)
        for i in np.flatnonzero(~ended):
            changed = info["carrying"][i] != was[i] or terminated[i]
            place, rate = task.batch.state.q[i, :3], task.batch.state.qd[i, :3]
            near = np.linalg.norm(goals[bool(was[i])][i] - place) <= 0.05
            assert changed == (near and np.linalg.norm(rate) <= 0.1)
            assert terminated[i] == info["is_success"][i] == (changed and was[i])
        assert not truncated.any()
        ended |= terminated
        if ended.all():
            break
    assert ended.all()
    # the tolerance counts three times: at the load both ways are measured, and at the end
    assert abs(value - way - 3.0).max() <= 3.0 * 0.05 + 1e-9


def test_a_load_weighs_and_a_new_episode_has_none():
    """A carried load is that of a heavier platform in the description."""
    environment = gymnasium.make("cards/PickAndPlace-v0", load=10.0).unwrapped
    task = environment.task
    observation, _ = environment.reset(seed=2)
    observation, *_ = environment.step(np.zeros(3))
    seen = task.layout.physical(observation)
    assert seen["q"] == pytest.approx(task.batch.robot.tree.home, abs=1e-9)  # it hangs still
    prestress = seen["tensions"]
    while not seen["carrying"]:
        observation, *_ = environment.step(towards(seen, task))
        seen = task.layout.physical(observation)
    robot = task.batch.robot
    mass = cards.compile(robot, ["M"])(robot.tree.home).M[0, 0]
    heavy = perturbed(robot, mass_factor=(mass + 10.0) / mass)
    others = {name: cards.Batch(one, 1) for name, one in (("heavy", heavy), ("light", robot))}
    start = task.batch.state
    action = np.array([0.3, -0.2, 0.5])
    goal = robot.tree.home.copy()
    goal[:3] = np.clip(
        start.q[0, :3] + seen["set_point"] + 0.5 * task.period * action,
        [-0.8, -0.6, 0.4],
        [0.8, 0.6, 1.2],
    )
    environment.step(action)
    for other in others.values():
        other.reset(q=start.q, qd=start.qd)
        other.command(prestress, rest_lengths=cards.compile(robot, ["l"])(goal).l)
        other.step(task.steps)
    q = task.batch.state.q
    assert q == pytest.approx(others["heavy"].state.q, abs=1e-9)
    assert abs(q - others["light"].state.q).max() > 1e-4
    environment.reset(seed=2)
    observation, *_ = environment.step(np.zeros(3))
    seen = task.layout.physical(observation)
    assert seen["carrying"] == 0.0
    assert seen["q"] == pytest.approx(robot.tree.home, abs=1e-9)


def test_only_platforms_in_ideal_cables_carry():
    for options, message in (
        ({"robot": "prism_3"}, "generated code"),
        ({"robot": "roboy_arm"}, "along x, y and z"),
        ({"load": 0.0}, "load"),
        ({"largest_speed": 0.0}, "largest_speed"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"slow": 0.0}, "slow"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"damping": -1.0}, "damping"),
        ({"prestress": 2.0}, "prestress"),
        ({"box": [[0.0, 0.0, 0.0]]}, "box"),
        ({"box": [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]}, "low corner first"),
        ({"box": [[0.5, 0.5, 0.5], [1.0, 1.0, 1.0]]}, "with the home of 'ipanema_1' in it"),
    ):
        with pytest.raises(CardsError, match=message):
            gymnasium.make("cards/PickAndPlace-v0", **options)


def test_pictures_show_the_robot_and_its_target():
    environment = gymnasium.make("cards/ArmReach-v0", render_mode="rgb_array")
    assert environment.metadata["render_fps"] == 50
    environment.reset(seed=1)
    try:
        picture = environment.render()
    except CardsError as error:
        pytest.skip(f"no OpenGL here: {error}")
    assert (picture.shape, picture.dtype) == ((480, 640, 3), np.uint8)
    red, others = picture[:, :, 0].astype(int), picture[:, :, 1:].astype(int).max(axis=2)
    assert ((red > 100) & (others < red / 2)).sum() > 20
    environment.step(np.ones(environment.action_space.shape, dtype=np.float32))
    assert not np.array_equal(environment.render(), picture)
    environment.close()
    environment.close()
    many = gymnasium.make_vec(
        "cards/ArmReach-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        render_mode="rgb_array",
    )
    many.reset(seed=1)
    first, second = many.render()
    assert (first != picture).any(axis=2).sum() < 50  # rounding may move an edge by a pixel
    assert (second != picture).any(axis=2).sum() > 1000
    many.close()


def test_without_a_mode_there_is_no_picture():
    environment = gymnasium.make("cards/ArmReach-v0").unwrapped
    environment.reset(seed=1)
    assert environment.render() is None
    with pytest.raises(CardsError, match="rgb_array"):
        RobotEnv("ArmReach", render_mode="human")
