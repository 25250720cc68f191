"""Learned sets in the format of NASA's toolkit, of numbers that are easy to scale."""

import json

import numpy as np
import pytest

from cards_core.control.cpg.morphology import places
from cards_core.control.cpg.ntrt import (
    MAX_BYTES,
    OPEN_LOOP,
    OPEN_LOOP_SIGNED,
    Ranges,
    read_folder,
    read_json,
)
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.errors import DescriptionError

HALF = [0.5] * 5


def set_of(tmp_path, node, edges, **more):
    """Write a learned set; return its file."""
    data = {"nodeVals": {"params": [node]}, "edgeVals": {"params": edges}, **more}
    file = tmp_path / "set.json"
    file.write_text(json.dumps(data))
    return file


def network(tmp_path, name, sizes, rng):
    """Write the weights of a network; return its section, and matrices of both layers."""
    inputs, hidden, outputs = sizes
    first = rng.integers(-8, 9, (inputs + 1, hidden)) / 8.0
    second = rng.integers(-8, 9, (hidden + 1, outputs)) / 8.0
    words = [repr(float(x)) for x in (*first.ravel(), *second.ravel())]
    (tmp_path / name).write_text(",".join(words) + "\n")
    told = {"numStates": inputs, "numHidden": hidden, "numActions": outputs}
    return {"params": {**told, "neuralFilename": name}}, first, second


def answer(first, second, inputs):
    """What the toolkit's program makes of inputs: two sigmoid layers, the last row for -1."""
    for weights in (first, second):
        inputs = 1.0 / (1.0 + np.exp(-(np.append(inputs, -1.0) @ weights)))
    return inputs


# Oscillators ----------------------------------------------------------------------------------


def test_an_open_loop_is_scaled_and_commanded_by_two(tmp_path):
    """A third of v up to 30 Hz, a third of R up to 30 cm/s."""
    found = read_json(set_of(tmp_path, [0.5, 0.25], [[0.25, 0.75], [0.5, 0.0]]))
    assert found.oscillators == OpenLoop(3.0 * 15.0, 3.0 * 7.5)
    assert (found.rate_scale, found.per_joint, found.truncate) == (0.01, 1, True)
    assert (found.feedback, found.goal, found.tension, found.goal_tension) == (None, None, 0, 0)
    # from the end of the list; phases from -pi to pi
    assert found.couplings == pytest.approx(np.array([[0.5, -np.pi], [0.25, 0.5 * np.pi]]))


def test_ranges_are_those_of_the_program(tmp_path):
    file = set_of(tmp_path, [0.0, 1.0], [[0.0, 0.0]] * 2)
    assert read_json(file, OPEN_LOOP).oscillators == OpenLoop(0.0, 90.0)
    assert read_json(file, OPEN_LOOP_SIGNED).oscillators == OpenLoop(-90.0, 90.0)
    assert read_json(file, Ranges()).oscillators == OpenLoop(0.0, 900.0)
    own = Ranges(frequency=(1.0, 2.0), amplitude=(3.0, 5.0))
    assert read_json(file, own).oscillators == OpenLoop(3.0, 15.0)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ([0.0] * 5, (0.0, 0.0, -0.5, 0.0, -0.5)),
        ([1.0] * 5, (30.0, 300.0, 10.0, 200.0, 6.28)),
        ([0.5, 0.25, 0.5, 0.75, 0.5], (15.0, 75.0, 4.75, 150.0, 2.89)),
    ],
)
def test_oscillators_with_feedback_have_five_numbers(tmp_path, node, expected):
    section, *_ = network(tmp_path, "f.nnw", (2, 3, 3), np.random.default_rng(0))
    found = read_json(set_of(tmp_path, node, [[1, 0.5]] * 2, feedbackVals=section))
    p = found.oscillators
    assert isinstance(p, Feedback)
    numbers = (p.frequency, p.amplitude, p.frequency_gain, p.amplitude_gain, p.phase_gain)
    assert numbers == pytest.approx(expected)
    assert found.couplings == pytest.approx(np.array([[1.0, 0.0]] * 2))


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_the_muscles_of_a_joint_follow_from_the_number_of_couplings(tmp_path, m):
    count = len(places(m))
    found = read_json(set_of(tmp_path, [0.5, 0.5], [[k / count, 0.5] for k in range(count)]))
    assert found.per_joint == m
    assert found.couplings[:, 0] == pytest.approx(np.arange(count)[::-1] / count)
    with pytest.raises(DescriptionError, match=f"{count + 1} couplings .*2, 7, 15, 26"):
        read_json(set_of(tmp_path, [0.5, 0.5], [[0.5, 0.5]] * (count + 1)))


# Networks -------------------------------------------------------------------------------------


def test_a_feedback_network_without_a_goal_sees_halved_inputs(tmp_path):
    """The program maps lengths and tensions x to x/2 + 1/2; ours takes them as they are."""
    rng = np.random.default_rng(1)
    section, first, second = network(tmp_path, "f.nnw", (2, 4, 3), rng)
    found = read_json(set_of(tmp_path, HALF, [[0, 0]] * 2, feedbackVals=section))
    for _ in range(10):
        x = rng.uniform(-1.0, 1.0, 2)
        assert found.feedback(x) == pytest.approx(answer(first, second, 0.5 * x + 0.5))


def test_a_goal_network_has_its_own_axes_and_tension(tmp_path):
    rng = np.random.default_rng(2)
    feedback, first, second = network(tmp_path, "f.nnw", (2, 4, 3), rng)
    goal, goal_first, goal_second = network(tmp_path, "g.nnw", (4, 5, 2), rng)
    tensions = {"params": [[0.5, 0.1, 0.2, 0.25]]}
    file = set_of(
        tmp_path,
        HALF,
        [[0, 0]] * 7,
        feedbackVals=feedback,
        goalVals=goal,
        impedenceVals=tensions,
    )
    found = read_json(file)
    # 0 to 2000 cN; the goal gives T0 in the place of the fixed one
    assert (found.tension, found.goal_tension) == (0.0, pytest.approx(5.0))
    for _ in range(10):
        x, z, heading_x, heading_z = rng.uniform(-1.0, 1.0, 4)
        ours = found.goal([x, -z, heading_x, -heading_z])
        theirs = answer(goal_first, goal_second, [x, z, heading_x, heading_z])
        assert ours == pytest.approx(theirs)
        both = rng.uniform(-1.0, 1.0, 2)
        assert found.feedback(both) == pytest.approx(answer(first, second, both))


def test_tensions_without_a_goal_are_those_of_the_muscles(tmp_path):
    tensions = {"params": [[0.5, 0.1, 0.2, 0.25]]}
    file = set_of(tmp_path, [0.5, 0.5], [[0, 0]] * 2, impedenceVals=tensions)
    found = read_json(file)
    assert (found.tension, found.goal_tension) == (pytest.approx(10.0), pytest.approx(5.0))
    narrow = Ranges(impedance=(1000.0, 2000.0))
    assert read_json(file, narrow).tension == pytest.approx(15.0)


def test_a_network_of_an_open_loop_is_not_read(tmp_path):
    file = set_of(tmp_path, [0.5, 0.5], [[0, 0]] * 2, feedbackVals={"params": "nothing"})
    assert read_json(file).feedback is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"numStates": 0}, r"has the sizes \[0, 3, 3\] .expected: whole numbers > 0"),
        ({"numHidden": 1000}, "has the sizes"),
        ({"numActions": 2.0}, "has the sizes"),
        ({"numHidden": 4}, r"holds 21 numbers .expected: 27 finite numbers"),
        ({"numHidden": None}, "has the sizes"),
    ],
)
def test_sizes_of_networks_are_whole_and_those_of_the_file(tmp_path, changes, words):
    section, *_ = network(tmp_path, "f.nnw", (2, 3, 3), np.random.default_rng(0))
    section["params"] |= changes
    with pytest.raises(DescriptionError, match=words):
        read_json(set_of(tmp_path, HALF, [[0, 0]] * 2, feedbackVals=section))


def test_networks_of_999_neurons_are_read(tmp_path):
    section, *_ = network(tmp_path, "f.nnw", (2, 999, 3), np.random.default_rng(0))
    found = read_json(set_of(tmp_path, HALF, [[0, 0]] * 2, feedbackVals=section))
    assert found.feedback.hidden.shape == (999, 3)


def test_a_goal_network_of_other_inputs_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    feedback, *_ = network(tmp_path, "f.nnw", (2, 3, 3), rng)
    goal, *_ = network(tmp_path, "g.nnw", (2, 3, 1), rng)
    file = set_of(tmp_path, HALF, [[0, 0]] * 2, feedbackVals=feedback, goalVals=goal)
    with pytest.raises(DescriptionError, match=r"goalVals.params.numStates is 2 .expected: 4"):
        read_json(file)


# Folders --------------------------------------------------------------------------------------


def folder_of(tmp_path, node, edges):
    (tmp_path / "best_node-0.nnw").write_text(node)
    for number, edge in enumerate(edges):
        (tmp_path / f"best_edge-{number}.nnw").write_text(edge)
    return tmp_path


def test_a_folder_has_a_file_for_each_coupling(tmp_path):
    edges = [f"{k / 8}, 0.5\n" for k in range(7)]
    found = read_folder(folder_of(tmp_path, "0.5,0.25\n", edges), "best")
    assert found.oscillators == OpenLoop(45.0, 22.5)
    assert found.couplings == pytest.approx(np.array([[k / 8, 0.0] for k in range(6, -1, -1)]))
    assert (found.per_joint, found.rate_scale, found.truncate) == (2, 0.01, True)
    signed = read_folder(tmp_path, "best", OPEN_LOOP_SIGNED)
    assert signed.oscillators == OpenLoop(0.0, -45.0)


@pytest.mark.parametrize(
    ("node", "edges", "words"),
    [
        ("0.5,0.5", [], "no file best_edge-0.nnw"),
        ("0.5,0.5", ["1,2", "1,2,3"], r"best_edge-1\.nnw: holds 3 numbers .expected: 2 finite"),
        ("0.5,0.5", ["1,2", "1,nan"], r"best_edge-1\.nnw: holds 2 numbers"),
        ("0.5,inf", ["1,2"] * 2, r"best_node-0\.nnw: holds 2 numbers .expected: finite numbers"),
        ("0.5", ["1,2"] * 2, "1 learned values .expected: 2"),
        ("0.5,0.5,0.5", ["1,2"] * 2, "3 learned values"),
        ("0.5,x", ["1,2"] * 2, "does not hold numbers"),
    ],
)
def test_mistakes_in_a_folder(tmp_path, node, edges, words):
    with pytest.raises(DescriptionError, match=words):
        read_folder(folder_of(tmp_path, node, edges), "best")
    with pytest.raises(DescriptionError, match=r"other_node-0\.nnw: no such file"):
        read_folder(tmp_path, "other")


# Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"nodeVals": {"params": [[0.5, 0.5]] * 2}}, r"of shape \(2, 2\) .expected: one row"),
        ({"nodeVals": {"params": [0.5, 0.5]}}, r"nodeVals.params is \[0.5, 0.5\]"),
        ({"nodeVals": {"params": []}}, "a list of rows of finite numbers"),
        ({"nodeVals": {"params": [["x", 1]]}}, "nodeVals.params is missing"),
        ({"edgeVals": {"params": [[1, 2, 3]] * 2}}, "couplings of 3 learned values"),
        ({"edgeVals": {"params": [[1]] * 2}}, "couplings of 1 learned values"),
        ({"edgeVals": {"params": [[1, 2]]}}, "1 couplings"),
        ({"impedenceVals": {"params": [[1, 2, 3]]}}, "3 learned values .expected: 4"),
    ],
)
def test_mistakes_in_a_set(tmp_path, data, words):
    good = {"nodeVals": {"params": [[0.5, 0.5]]}, "edgeVals": {"params": [[1, 2]] * 2}}
    file = tmp_path / "set.json"
    file.write_text(json.dumps(good | data))
    with pytest.raises(DescriptionError, match=words) as caught:
        read_json(file)
    assert caught.value.source == str(file)


def test_files_have_a_largest_size(tmp_path):
    assert MAX_BYTES == 10_000_000
    file = set_of(tmp_path, [0.5, 0.5], [[1, 2]] * 2)
    text = file.read_text()
    file.write_text(text + " " * (MAX_BYTES - len(text)))
    assert read_json(file).per_joint == 1
    file.write_text(text + " " * (MAX_BYTES + 1 - len(text)))
    with pytest.raises(DescriptionError, match=r"is too large .expected: at most 10 MB"):
        read_json(file)
