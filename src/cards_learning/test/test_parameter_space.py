"""Points of the unit cube are patterns and come back."""

import numpy as np
import pytest
from small_experiments import TEXT, small

from cards_core.control.cpg.files import read_pattern
from cards_core.control.cpg.parameters import read_parameters, write_parameters
from cards_core.errors import DescriptionError, ParameterError
from cards_core.formats import load
from cards_core.shared_files import find_file
from cards_learning.experiment import parse_experiment
from cards_learning.parameter_space import shared_bodies

GOAL = (
    TEXT.replace("hidden: 4", "hidden: 4\n  goal_hidden: 8").replace(
        "[0, 300]", "[0, 300], goal_tension: [0, 20]"
    )
    + "goals: [[1, 0]]\n"
)

SHARED = TEXT.replace("tetrahedral_6", "superball").replace("per_joint: 8", "edges: shared_bodies")


OPEN = TEXT.replace("oscillators: feedback", "oscillators: open_loop").replace("  hidden: 4\n", "")


@pytest.mark.parametrize(("text", "count"), [(TEXT, 230), (GOAL, 343), (SHARED, None)])
def test_points_come_back(text, count):
    space = small(text).space
    if count is not None:  # 2 x 100 couplings, 27 and 112 weights, 3 and 4 numbers
        assert len(space.genes) == count
    point = space.random(np.random.default_rng(0))
    assert ((point >= 0.0) & (point <= 1.0)).all()
    pattern = space.pattern(space.values(point))
    np.testing.assert_allclose(space.point(pattern), point, rtol=0.0, atol=1e-15)


def test_patterns_survive_their_file(tmp_path):
    space = small(GOAL).space
    values = space.values(space.random(np.random.default_rng(1)))
    write_parameters(space.pattern(values), tmp_path / "p.yaml")
    again = space.point(read_parameters(tmp_path / "p.yaml"))
    np.testing.assert_allclose(space.values(again), values, rtol=0.0, atol=1e-13)


def test_both_directions_of_a_shared_pair_have_one_weight():
    space = small(SHARED).space
    muscles = load("superball").muscles
    assert space.edges == shared_bodies(muscles)
    pattern = space.pattern(space.values(space.random(np.random.default_rng(2))))
    couplings = pattern.couple(muscles)
    table = {
        (t, s): (w, p)
        for t, s, w, p in zip(
            couplings.targets, couplings.sources, couplings.weights, couplings.phases, strict=True
        )
    }
    assert len(table) == 2 * len(space.edges)
    assert all(table[s, t] == pair for (t, s), pair in table.items())


def test_random_weights_of_networks_are_those_of_the_network_class():
    """Within 1/sqrt(inputs), which is half of the range for four hidden neurons."""
    space = small().space
    rng = np.random.default_rng(3)
    values = np.array([space.values(space.random(rng)) for _ in range(200)])
    output = [i for i, name in enumerate(space.names) if name.startswith("feedback.output")]
    assert len(output) == 15
    assert 0.45 < np.abs(values[:, output]).max() <= 0.5


def test_the_shipped_pattern_has_a_point():
    pattern = read_pattern(find_file("tetrahedral", folder="config/patterns", suffix=".yaml"))
    text = TEXT.replace("[-0.5, 10]}", "[-0.5, 10], amplitude_gain: [0, 200], phase_gain: [0, 6]}")
    space = small(text).space
    again = space.pattern(space.values(space.point(pattern)))
    np.testing.assert_allclose(again.couplings, pattern.couplings, atol=1e-12)
    np.testing.assert_allclose(again.feedback.output, pattern.feedback.output, atol=1e-12)
    assert again.oscillators.frequency == pytest.approx(pattern.oscillators.frequency)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("hidden: 4", "hidden: 5"), "its feedback network has .* 5 hidden neurons"),
        (OPEN, "not of the kind open_loop"),
        (SHARED, "100 couplings and 8 muscles at a joint"),
    ],
)
def test_patterns_of_another_structure_are_refused(text, words):
    pattern = read_pattern(find_file("tetrahedral", folder="config/patterns", suffix=".yaml"))
    with pytest.raises(ParameterError, match=words):
        small(text).space.point(pattern)


def test_a_network_without_a_place_is_refused():
    steered = small(GOAL).space
    pattern = steered.pattern(steered.values(steered.random(np.random.default_rng(1))))
    hidden = len(pattern.goal.hidden)
    words = f"goal network, which would be lost .expected: 'goal_hidden: {hidden}'"
    with pytest.raises(ParameterError, match=words):
        small().space.point(pattern)


def test_a_network_that_the_start_has_not_begins_with_zeros():
    """It shapes nothing then: the outputs 1/2 of its neurons are F = 0, or T0 = g everywhere."""
    pattern = read_pattern(find_file("tetrahedral", folder="config/patterns", suffix=".yaml"))
    space = small(GOAL).space
    values = dict(zip(space.names, space.values(space.point(pattern)), strict=True))
    goal = [value for name, value in values.items() if name.startswith("goal.")]
    assert len(goal) == 112
    assert not np.any(goal)
    assert values["frequency"] == pytest.approx(pattern.oscillators.frequency)
    feedback = values["feedback.hidden[0][0]"]
    assert feedback == pytest.approx(pattern.feedback.hidden[0, 0])


STEERED = """format: learning/1
robot: tetrahedral_6
terrains: ["flat:friction=0.5"]
duration: 0.3
goals: [[1, 0]]
controller:
  kind: cpg
  oscillators: feedback
  per_joint: 8
  hidden: 4
  goal_hidden: 3
  goal_frame: heading
  start: tetrahedral_6
  learn: [goal]
  parameters: {goal_tension: [0, 10], goal_weight: [-4, 4]}
algorithm: {kind: cma}
objective: {nearest: -1.0}
trials: 2
"""


def test_parts_that_are_not_learnt_stay_those_of_the_start():
    space = parse_experiment(STEERED, "mine.yaml").space
    start = read_pattern(find_file("tetrahedral_6", folder="config/patterns", suffix=".yaml"))
    assert len(space.genes) == 1 + 3 * 3 + 4 * 8
    assert all(name.startswith("goal") for name in space.names)
    values = space.values(np.linspace(0.0, 1.0, len(space.genes)))
    made = space.pattern(values)
    assert made.oscillators == start.oscillators
    assert made.rate_scale == start.rate_scale
    np.testing.assert_array_equal(made.couplings, start.couplings)
    np.testing.assert_array_equal(made.feedback.hidden, start.feedback.hidden)
    np.testing.assert_array_equal(made.feedback.output, start.feedback.output)
    assert made.goal_tension == values[0] == 0.0
    weights = np.concatenate([made.goal.hidden.ravel(), made.goal.output.ravel()])
    np.testing.assert_array_equal(weights, values[1:])
    # without a network in the start its weights begin at zero
    first = space.pattern(space.values(space.point(start)))
    assert not first.goal.hidden.any()
    assert not first.goal.output.any()


def test_a_fixed_number_of_a_learnt_part_replaces_that_of_the_start():
    text = STEERED.replace("learn: [goal]", "learn: [oscillators, goal]").replace(
        "parameters: {", "parameters: {frequency: [0, 30], amplitude: 665, "
    )
    space = parse_experiment(text, "mine.yaml").space
    start = read_pattern(find_file("tetrahedral_6", folder="config/patterns", suffix=".yaml"))
    made = space.pattern(space.values(space.point(start)))
    assert made.oscillators.amplitude == 665.0 != start.oscillators.amplitude
    assert made.oscillators.frequency == pytest.approx(start.oscillators.frequency)
    assert made.oscillators.phase_gain == start.oscillators.phase_gain  # not named: kept


def test_what_is_kept_is_part_of_the_identity():
    one = parse_experiment(STEERED, "mine.yaml")
    other = STEERED.replace("start: tetrahedral_6", "start: tetrahedral")
    assert one.identity == parse_experiment(one.text(), "again.yaml").identity
    assert one.identity != parse_experiment(other, "mine.yaml").identity


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("learn: [goal]", "learn: [gaol]", "did you mean 'goal'|one of"),
        ("learn: [goal]", "learn: []", "learn"),
        ("  start: tetrahedral_6\n", "", "the key 'start'"),
        ("goal_tension: [0, 10]", "goal_tension: [0, 10], frequency: 3", "frequency"),
        ("goal_frame: heading", "goal_frame: robot", "world"),
        ("hidden: 4", "hidden: 4\n  rate_scale: 0.02", "no such key beside 'learn'"),
        ("goal_tension: [0, 10], ", "", "goal_tension"),
    ],
)
def test_errors_of_what_is_learnt_name_the_place(before, after, words):
    assert before in STEERED
    text = STEERED.replace(before, after, 1)
    with pytest.raises(DescriptionError, match=rf"(?s)^mine\.yaml:\d+: .*({words})"):
        parse_experiment(text, "mine.yaml")


def test_tensions_of_the_muscles_at_a_joint_are_learnt():
    text = (
        STEERED.replace("[goal]", "[tension]")
        .replace("goal_tension: [0, 10], goal_weight: [-4, 4]", "joint_tension: [0, 20]")
        .replace("  goal_hidden: 3\n  goal_frame: heading\n", "")
        .replace("goals: [[1, 0]]\n", "")
        .replace("nearest: -1.0", "distance: 1.0")
    )
    space = parse_experiment(text, "mine.yaml").space
    assert space.names == tuple(f"joint_tension[{i}]" for i in range(8))
    values = np.arange(8.0)
    made = space.pattern(values)
    assert made.joint_tensions == tuple(values)
    np.testing.assert_allclose(space.values(space.point(made)), values, atol=1e-12)
    start = read_pattern(find_file("tetrahedral_6", folder="config/patterns", suffix=".yaml"))
    first = space.pattern(space.values(space.point(start)))
    assert first.joint_tensions == (start.joint_tensions or (0.0,) * 8)
