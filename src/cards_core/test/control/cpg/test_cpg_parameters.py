"""Files of pattern generators: ours, NASA's learned sets, and mistakes in them."""

import dataclasses
import json
import os

import numpy as np
import pytest
from nasa_structures import NASA, needs_nasa_data

from cards_core.control.cpg.files import read_pattern
from cards_core.control.cpg.morphology import places, shared_body_couplings
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.ntrt import OPEN_LOOP_SIGNED, read_folder, read_json
from cards_core.control.cpg.oscillators import Feedback, OpenLoop, Oscillators
from cards_core.control.cpg.parameters import (
    PatternParameters,
    write_parameters,
)
from cards_core.errors import DescriptionError, ParameterError, ShapeError
from cards_core.formats import load

LEARNED = NASA / "resources" / "src"


def sample(m=2):
    rng = np.random.default_rng(3)
    return PatternParameters(
        Feedback(25.4, 272.8, 9.98, 200.0, 6.05),
        0.01,
        rng.uniform(size=(len(places(m)), 2)),
        per_joint=m,
        feedback=Network.random(2, 4, 3, rng),
        goal=Network.random(4, 3, m, rng),
        goal_tension=12.2,
        tension=0.5,
    )


def assert_equal(a, b):
    for field in dataclasses.fields(a):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(one, Network):
            np.testing.assert_array_equal(one.hidden, other.hidden)
            np.testing.assert_array_equal(one.output, other.output)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other, field.name


def test_written_and_read_back(tmp_path):
    file = tmp_path / "gait.yaml"
    explicit = PatternParameters(
        OpenLoop(1.5, 0.2, convergence=30.0),
        1.0,
        np.array([[1.0, 0.5], [0.3, -0.5]]),
        edges=(("a", "b"), ("b", "a")),
    )
    for parameters in (sample(), explicit):
        write_parameters(parameters, file)
        assert_equal(parameters, read_pattern(file))


def test_network_is_the_printed_one():
    network = Network(np.array([[0.5, -1.0, 0.2]]), np.array([[2.0, 0.3], [-1.0, 0.0]]))
    hidden = 1.0 / (1.0 + np.exp(-(0.5 * 0.7 - 1.0 * 0.4 - 0.2)))
    expected = 1.0 / (1.0 + np.exp(-np.array([2.0 * hidden - 0.3, -hidden])))
    np.testing.assert_allclose(network([0.7, 0.4]), expected, rtol=1e-15)
    np.testing.assert_array_equal(
        network(np.full((5, 2), 1e6)), network([1e6, 1e6])[None] * np.ones((5, 1))
    )


@needs_nasa_data
def test_published_feedback_controller():
    """Values of [Mirletz2016] table 6.1's controller, as NASA's program scales them."""
    found = read_json(LEARNED / "bmirletz/TetrahedralComplex_Contact/tcContact.json")
    p = found.oscillators
    assert (p.frequency, p.amplitude) == pytest.approx((25.403, 272.84), rel=1e-4)
    gains = (p.frequency_gain, p.amplitude_gain, p.phase_gain, p.convergence)
    assert gains == pytest.approx((9.982, 200.0, 6.055, 1.0), rel=1e-4)
    assert (found.per_joint, found.truncate, found.rate_scale) == (8, True, 0.01)
    assert np.sqrt(p.amplitude) == pytest.approx(16.5, abs=0.05)  # cm/s
    # the last pair of the file is the first: w of row 0, j = k = 0
    file = json.loads((LEARNED / "bmirletz/TetrahedralComplex_Contact/tcContact.json").read_text())
    last = file["edgeVals"]["params"][-1]
    assert found.couplings[0] == pytest.approx([last[0], 2.0 * np.pi * last[1] - np.pi])
    # it lies on the grid of 0.01/sqrt(inputs), the first layer divided by sqrt(2)
    hidden = found.feedback.hidden.copy()  # the program maps its inputs to x/2 + 1/2
    hidden[:, -1] += hidden[:, :-1].sum(axis=1)
    hidden[:, :-1] *= 2.0
    grid = hidden * np.sqrt(2.0) * 100.0
    np.testing.assert_allclose(grid, np.round(grid), atol=1e-9)
    grid = found.feedback.output * 2.0 * 100.0
    np.testing.assert_allclose(grid, np.round(grid), atol=1e-9)


@needs_nasa_data
def test_published_goal_controller():
    path = LEARNED / "bmirletz/TC_nn_Tension/monteOut_0.json"
    found = read_json(path)
    assert found.oscillators.frequency == pytest.approx(18.36, abs=0.01)
    assert found.goal_tension == pytest.approx(12.226, abs=1e-3)
    assert (found.goal.inputs, found.goal.outputs) == (4, 8)
    # the file holds the weights twice, in the networks' files and by itself
    weights = json.loads(path.read_text())["feedbackVals"]["params"]["neuralParams"]
    np.testing.assert_allclose(found.feedback.hidden.T.ravel(), weights[:12], atol=1e-11)
    np.testing.assert_allclose(found.feedback.output.T.ravel(), weights[12:], atol=1e-11)
    goal = np.array(json.loads(path.read_text())["goalVals"]["params"]["neuralParams"][:40])
    goal = goal.reshape(5, 8)
    x, z, hx, hz = 0.3, -0.9, 0.6, 0.8  # in the toolkit's axes; z there is -y here
    direct = goal.T @ [x, z, hx, hz, -1.0]
    ours = found.goal.hidden @ [x, -z, hx, -hz, -1.0]
    np.testing.assert_allclose(ours, direct, atol=1e-11)


@needs_nasa_data
@pytest.mark.parametrize(
    ("folder", "ranges", "frequency", "amplitude", "m"),
    [
        ("TetrahedralComplex", OPEN_LOOP_SIGNED, 11.36, 48.9, 8),
        ("OctahedralComplex", None, 62.5, 28.4, 4),
        ("TetraSpine", None, 16.7, 89.3, 6),
        ("ribDemo", None, 5.94, 72.0, 7),
    ],
)
def test_published_open_loop_controllers(folder, ranges, frequency, amplitude, m):
    path = LEARNED / "learningSpines" / folder / "logs"
    found = read_folder(path, "bestParameters-default", ranges)
    p = found.oscillators
    assert (p.frequency, p.amplitude) == pytest.approx((frequency, amplitude), rel=2e-3)
    assert (found.per_joint, found.feedback) == (m, None)
    count = 3 * m
    bodies = [(i // m, i // m + 1) for i in range(count)]
    network = shared_body_couplings(bodies, m, found.couplings, truncate=True)
    Oscillators(count, p, network).advance(0.5)


@needs_nasa_data
def test_set_of_the_spine_fits_the_shipped_robot():
    found = read_json(LEARNED / "bmirletz/TetrahedralComplex_Contact/tcContact.json")
    robot = load("tetrahedral_6")
    couplings = found.couple(robot.muscles)
    item = Oscillators(len(robot.muscles), found.oscillators, couplings)
    for _ in range(100):
        item.advance(0.01)
    assert np.all(np.abs(item.output) < 17.0)


def test_couplings_by_name():
    robot = load("prism_3")
    names = [muscle.name for muscle in robot.muscles]
    explicit = PatternParameters(
        OpenLoop(1.0, 0.1), 1.0, np.array([[1.0, 0.5]]), edges=((names[2], names[0]),)
    )
    found = explicit.couple(robot.muscles)
    assert (found.targets.tolist(), found.sources.tolist()) == ([2], [0])
    wrong = dataclasses.replace(explicit, edges=((names[2], "nobody"),))
    with pytest.raises(ParameterError, match="muscle 'nobody'; expected some of"):
        wrong.couple(robot.muscles)


HEAD = "format: cpg/1\nrate_scale: 0.01\n"
LOOP = "oscillators: {kind: open_loop, frequency: 1, amplitude: 2}\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("format: cpg/2\n", 1, "expected: one of cpg/1"),
        (HEAD + "oscillators: {kind: open_loop, amplitude: 2}\nper_joint: 1\n", 3, "'frequency'"),
        (HEAD + "oscillators: {kind: van_der_pol}\n", 3, "one of open_loop, feedback"),
        (HEAD + LOOP + "speed: 3\n", 4, "unknown key 'speed'"),
        (HEAD + LOOP + "per_joint: 1\ncouplings: [[1, 0]]\n", 5, "has 1 pairs"),
        (HEAD + LOOP + "per_joint: 1\ncouplings: [[1, 0], [1]]\n", 5, "has 1 values"),
        (HEAD + LOOP + "per_joint: 1\nedges: [[a, b, 1]]\n", 5, "has 3 elements"),
        (HEAD + LOOP + "couplings: [[1, 0], [.inf, 0]]\nper_joint: 1\n", 4, "finite number"),
        (
            HEAD + LOOP + "edges: []\nfeedback: {hidden: [[1, 1]], output: [[1, 1]]}\n",
            None,
            "feedback network for oscillators of the open loop",
        ),
    ],
)
def test_mistakes_in_our_file(tmp_path, text, line, words):
    file = tmp_path / "gait.yaml"
    file.write_text(text)
    with pytest.raises(DescriptionError, match=words) as caught:
        read_pattern(file)
    assert caught.value.source == str(file)
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "nodeVals.params is missing"),
        ('{"nodeVals": {"params": [[0.1, 0.2, 0.3]]}}', "one row of 2 or 5"),
        (
            '{"nodeVals": {"params": [[0.1, 0.2]]}, "edgeVals": {"params": [[1, NaN]]}}',
            "finite numbers",
        ),
        (
            '{"nodeVals": {"params": [[1, 0]]}, "edgeVals": {"params": [[1, 0], [1, 0], [1, 0]]}}',
            "3 couplings",
        ),
        (
            '{"nodeVals": {"params": [[0,0,0,0,0]]}, "edgeVals": {"params": [[1, 0], [1, 1]]}}',
            "feedbackVals.params is not complete",
        ),
    ],
)
def test_mistakes_in_a_learned_set(tmp_path, text, words):
    file = tmp_path / "set.json"
    file.write_text(text)
    with pytest.raises(DescriptionError, match=words) as caught:
        read_pattern(file)
    assert caught.value.source == str(file)


@pytest.fixture
def learned(tmp_path):
    """A function that writes a learned set with one network, whose file has a name."""
    folder = tmp_path / "set"
    (folder / "logs").mkdir(parents=True)

    def write(name):
        section = {"numStates": 2, "numHidden": 4, "numActions": 3, "neuralFilename": name}
        data = {
            "nodeVals": {"params": [[0.5] * 5]},
            "edgeVals": {"params": [[1, 0], [1, 0]]},
            "feedbackVals": {"params": section},
        }
        file = folder / "set.json"
        file.write_text(json.dumps(data))
        return file

    return write


def test_a_missing_file_of_a_network_is_named(learned):
    with pytest.raises(DescriptionError, match=r"set\.json: feedbackVals.*'gone\.nnw' is no file"):
        read_pattern(learned("gone.nnw"))


@pytest.mark.parametrize(
    "name",
    [
        "../secret.nnw",
        "/etc/passwd",
        "logs/../../secret.nnw",
        "link.nnw",
        "deep/secret.nnw",
        "a\0b",
    ],
)
def test_files_of_networks_lie_below_their_set(learned, tmp_path, name):
    (tmp_path / "secret.nnw").write_text(",".join(["0.5"] * 27))
    file = learned(name)
    (file.parent / "link.nnw").symlink_to("../secret.nnw")
    (file.parent / "deep").symlink_to("..")
    with pytest.raises(DescriptionError, match="is outside of this folder") as caught:
        read_pattern(file)
    assert caught.value.source == str(file)
    assert "feedbackVals.params.neuralFilename" in str(caught.value)
    # within, links and .. are right
    (file.parent / "logs" / "a.nnw").write_text(",".join(["0.5"] * 27))
    assert read_pattern(learned("logs/../logs/a.nnw")).feedback is not None


def test_files_of_networks_are_regular_short_and_not_shown(learned):
    file = learned("pipe.nnw")
    os.mkfifo(file.parent / "pipe.nnw")
    with pytest.raises(DescriptionError, match=r"'pipe\.nnw' is no file .*a file in the folder"):
        read_pattern(file)
    text = file.parent / "text.nnw"
    text.write_text("password\n" * 100)
    with pytest.raises(DescriptionError, match=r"text\.nnw: does not hold numbers") as caught:
        read_pattern(learned("text.nnw"))
    assert "password" not in str(caught.value)
    with text.open("w") as long:
        long.truncate(10_000_001)
    with pytest.raises(
        DescriptionError, match=r"text\.nnw: is too large .expected: at most 10 MB"
    ):
        read_pattern(learned("text.nnw"))
    for name in (5, None, "", ["a"]):
        with pytest.raises(DescriptionError, match=r"set\.json: feedbackVals.*neuralFilename is"):
            read_pattern(learned(name))


def test_networks_of_the_wrong_size():
    with pytest.raises(ShapeError, match="one more than there are hidden neurons"):
        Network(np.ones((4, 3)), np.ones((3, 4)))
    with pytest.raises(ParameterError, match="3 inputs and 3 outputs; expected 2 and 3"):
        dataclasses.replace(sample(), feedback=Network.random(3, 4, 3, np.random.default_rng(0)))


# Bounds of our file ------------------------------------------------------------------------------


def text_of(tmp_path, text):
    file = tmp_path / "gait.yaml"
    file.write_text(text)
    return file


TWO = "per_joint: 1\ncouplings: [[1, 0], [0.5, 1]]\n"


def test_what_a_file_need_not_say(tmp_path):
    found = read_pattern(text_of(tmp_path, HEAD + LOOP + TWO))
    assert found.oscillators == OpenLoop(1.0, 2.0)
    assert (found.oscillators.frequency_gain, found.oscillators.amplitude_gain) == (0.0, 0.0)
    assert found.oscillators.convergence == 20.0
    assert (found.truncate, found.edges, found.feedback, found.goal) == (False, (), None, None)
    assert (found.tension, found.goal_tension, found.joint_tensions) == (0.0, 0.0, ())
    assert found.goal_frame == "world"
    closed = LOOP.replace("open_loop", "feedback")
    found = read_pattern(text_of(tmp_path, HEAD + closed + TWO + "truncate: true\ntension: 3\n"))
    assert found.oscillators == Feedback(1.0, 2.0, 0.0, 0.0, 0.0, 1.0)
    assert (found.truncate, found.tension) == (True, 3.0)
    # by edges, nothing need be equal at joints
    found = read_pattern(text_of(tmp_path, HEAD + LOOP + "edges: [[a, b, 2, -1]]\n"))
    assert (found.edges, found.per_joint) == ((("a", "b"),), 0)
    assert found.couplings.tolist() == [[2.0, -1.0]]
    found = read_pattern(text_of(tmp_path, HEAD + LOOP + "edges: []\nper_joint: 3\n"))
    assert (found.edges, found.per_joint, found.couplings.shape) == ((), 3, (0, 2))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (TWO.replace("1\n", "0\n", 1), "per_joint"),
        ("per_joint: 101\ncouplings: []\n", "per_joint"),
        ("per_joint: 1\ncouplings: [[1, 0], [1, 0], [1, 0]]\n", "has 3 pairs .*2 for 1 muscles"),
        (TWO + "edges: []\n", "has edges and couplings .expected: one of the two"),
        ("edges: []\ntruncate: true\n", "has edges and couplings"),
        ("edges: [[a, b, 1, 2, 3]]\n", "has 5 elements .expected: target, source, weight, phase"),
        (
            "edges: []\njoint_tensions: [1]\n",
            "without equal joints .*key 'per_joint'",
        ),
        (TWO + "tension: -1\n", "tension"),
        (
            TWO + "goal: {hidden: [[1, 1, 1]], outputs: [[1, 1]], tension: 1}\n",
            "unknown key 'outputs'",
        ),
        (TWO + "goal: {hidden: [[1, 1, 1]], output: [[1, 1]], tension: 1, bias: 1}\n", "'bias'"),
        (TWO + "rate_scale: 1\n", "rate_scale"),  # twice
        ("couplings: [[1, 0], [1, 0]]\n", "per_joint"),
        (TWO + "goal: {hidden: [[1, 1, 1]], output: [[1, 1]], tension: -1}\n", "tension"),
        (TWO + "goal: {hidden: [[1, 1, 1]], output: [[1, 1]]}\n", "tension"),
        (TWO + "goal: {hidden: [[1, 1], [1]], output: [[1, 1]], tension: 1}\n", "rows of differ"),
        (
            TWO + "goal: {hidden: [[1, 1, 1, 1]], output: [[1, 1]], tension: 1}\n",
            "the goal network has 3 inputs; expected 4",
        ),
        (
            TWO + "goal: {hidden: [[1, 1, 1]], output: [[1, 1], [1, 1]], tension: 1}\n",
            "2 inputs and 2 outputs; expected 2 and 1",
        ),
    ],
)
def test_more_mistakes_in_our_file(tmp_path, more, words):
    with pytest.raises(DescriptionError, match=words):
        read_pattern(text_of(tmp_path, HEAD + LOOP + more))


def test_scales_are_positive(tmp_path):
    for bad in ("0", "-1", ".inf"):
        text = HEAD.replace("0.01", bad) + LOOP + TWO
        with pytest.raises(DescriptionError, match="rate_scale"):
            read_pattern(text_of(tmp_path, text))


def test_a_hundred_muscles_at_a_joint_may_be_told():
    parameters = dataclasses.replace(
        sample(), per_joint=100, couplings=np.zeros((len(places(100)), 2)), goal=None
    )
    assert len(places(100)) == 15_050
    assert parameters.per_joint == 100


def test_how_a_goal_is_seen_follows_from_the_inputs():
    rng = np.random.default_rng(0)
    heading = dataclasses.replace(sample(), goal=Network.random(2, 3, 2, rng))
    assert (sample().goal_frame, heading.goal_frame) == ("world", "heading")


def test_tensions_of_all_muscles():
    plain = sample()
    assert plain.tensions(5).tolist() == [0.5] * 5
    more = dataclasses.replace(plain, joint_tensions=(1.0, 2.0))
    assert more.tensions(4).tolist() == [1.5, 2.5, 1.5, 2.5]
    with pytest.raises(ParameterError, match="5 muscles; expected a multiple of the 2"):
        more.tensions(5)
    with pytest.raises(ParameterError, match="3 tensions of muscles at a joint; expected 2"):
        dataclasses.replace(plain, joint_tensions=(1.0, 2.0, 3.0))


def test_weights_of_networks_are_rows_of_finite_numbers():
    for hidden, words in (
        (np.ones((3, 1)), r"hidden layer have shape \(3, 1\)"),
        (np.ones(3), r"shape \(3,\)"),
        (np.array([[1.0, np.nan]]), "finite"),
    ):
        with pytest.raises(ShapeError, match=words):
            Network(hidden, np.ones((1, 2)))
    with pytest.raises(ShapeError, match="output layer have 3 columns; expected 2"):
        Network(np.ones((1, 2)), np.ones((4, 3)))
    network = Network.random(4, 9, 2, np.random.default_rng(0))
    assert (network.inputs, network.outputs, network.hidden.shape) == (4, 2, (9, 5))
    assert 0.25 < np.abs(network.hidden).max() <= 0.5  # 1/sqrt(4)
    assert 0.2 < np.abs(network.output).max() <= 1.0 / 3.0
