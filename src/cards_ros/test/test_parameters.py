"""Parameters must refuse what does not fit, and say what would."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rcl_interfaces.msg import ParameterType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from cards_core.errors import DescriptionError, ParameterError, UnknownNameError
from cards_core.parameters.declaration import ParameterSet
from cards_ros import loop
from cards_ros.parameters import Parameter, Parameters, keep_arguments
from cards_ros.testing import private_domain

pytestmark = pytest.mark.ros

KP = Parameter(
    "kp", [400.0, 400.0], "Stiffness.", "1/s^2", lower=0.0, length=2, names=("a", "b"), live=True
)
RATE = Parameter("rate", 50.0, "Rate.", "Hz", lower=1.0, upper=1000.0)
COUNT = Parameter("count", 3, "How many.", lower=0, upper=10)
MODE = Parameter("mode", "fast", "Mode.", choices=("fast", "slow"))
FLAG = Parameter("flag", True, "On or off.")
POSTURE = Parameter(
    "posture", "mid", "Where.", choices=("mid", "home"), or_vector=True, length=2, names=("a", "b")
)
LIMIT = Parameter("limit", [np.inf, 5.0], "Limit.", length=2, lower=0.0, infinite=True)
ALL = (KP, RATE, COUNT, MODE, FLAG, POSTURE, LIMIT)


@pytest.mark.parametrize(
    ("spec", "value", "result"),
    [
        (KP, [1.0, 2.0], [1.0, 2.0]),
        (KP, [1, 2], [1.0, 2.0]),
        (KP, 7, [7.0, 7.0]),
        (KP, np.array([3.0, 4.0]), [3.0, 4.0]),
        (RATE, 20, 20.0),
        (RATE, 1000.0, 1000.0),
        (COUNT, 0, 0),
        (MODE, "slow", "slow"),
        (FLAG, False, False),
        (POSTURE, "home", "home"),
        (POSTURE, [0.5, 1], [0.5, 1.0]),
        (LIMIT, [np.inf, 1.0], [np.inf, 1.0]),
    ],
)
def test_accepted_values(spec, value, result):
    checked = spec.check(value)
    assert type(checked) is (np.ndarray if isinstance(result, list) else type(result))
    assert np.array_equal(checked, result)


@pytest.mark.parametrize(
    ("spec", "value", "words"),
    [
        (KP, [1.0, 2.0, 3.0], ["kp", "3 values", "2 numbers, one for each of a, b"]),
        (KP, [], ["kp", "0 values", "2 numbers"]),
        (KP, [1.0, -1.0], ["-1", "0 .. inf"]),
        (KP, [1.0, np.nan], ["finite"]),
        (KP, [1.0, np.inf], ["finite"]),
        (KP, "400", ["list of 2 numbers"]),
        (KP, [True, False], ["list of 2 numbers"]),
        (KP, ["1", "2"], ["list of 2 numbers"]),
        (KP, None, ["0 values"]),
        (RATE, 0.5, ["rate", "0.5", "1 .. 1000"]),
        (RATE, np.nan, ["1 .. 1000"]),
        (RATE, True, ["a number"]),
        (RATE, [1.0], ["a number"]),
        (COUNT, 11, ["0 .. 10"]),
        (COUNT, 1.5, ["whole number"]),
        (MODE, "quick", ["fast or slow"]),
        (MODE, 1, ["text"]),
        (FLAG, 1, ["true or false"]),
        (POSTURE, "left", ["mid or home"]),
        (POSTURE, [1.0], ["1 values", "a, b"]),
        (LIMIT, [np.nan, 1.0], ["0 .. inf"]),
        (LIMIT, [-1.0, 1.0], ["0 .. inf"]),
    ],
)
def test_refused_values(spec, value, words):
    with pytest.raises(ParameterError) as caught:
        spec.check(value)
    for word in [f"'{spec.name}'", "expected", *words]:
        assert word in str(caught.value)


@pytest.fixture(scope="module")
def context():
    with private_domain() as domain:
        context = Context()
        context.init(args=[], domain_id=domain)
        yield context
        context.try_shutdown()


def make_node(context, overrides=None, on_change=None):
    values = [RosParameter(name, value=value) for name, value in (overrides or {}).items()]
    node = Node("thing", context=context, parameter_overrides=values)
    return node, Parameters(node, on_change)


def test_declared_values_and_descriptors(context):
    node, parameters = make_node(context, {"kp": [1, 2], "rate": 20, "posture": [0.1, 0.2]})
    parameters.declare(ALL)
    assert parameters["kp"].tolist() == [1.0, 2.0]
    assert parameters["rate"] == 20.0
    assert parameters["posture"].tolist() == [0.1, 0.2]
    assert parameters["mode"] == "fast"
    descriptor = node.describe_parameter("rate")
    assert descriptor.description == "Rate. [Hz] 1 .. 1000"
    assert descriptor.read_only
    assert descriptor.floating_point_range[0].to_value == 1000.0
    descriptor = node.describe_parameter("kp")
    assert not descriptor.read_only
    assert descriptor.additional_constraints == "2 values: a, b"
    assert node.describe_parameter("flag").type == ParameterType.PARAMETER_BOOL
    with pytest.raises(UnknownNameError, match="no parameter named 'kq'"):
        parameters["kq"]
    node.destroy_node()


def test_bad_values_at_start_are_refused_with_the_expected_length(context):
    node, parameters = make_node(context, {"kp": [1.0, 2.0, 3.0]})
    with pytest.raises(ParameterError, match=r"kp.*3 values.*2 numbers, one for each of a, b"):
        parameters.declare(ALL)
    node.destroy_node()


def test_a_process_says_where_a_value_that_does_not_fit_was_given(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("parameter_test:\n  ros__parameters:\n    rate: .nan\n    kp: [1.0]\n")
    arguments = ["--ros-args", "--params-file", str(file)]
    with private_domain() as domain:
        context = Context()
        context.init(args=arguments, domain_id=domain)
        keep_arguments(context, arguments)
        for spec, line, what in ((RATE, 3, "rate' is nan"), (KP, 4, "kp' has 1 values")):
            node = Node("parameter_test", context=context)
            with pytest.raises(ParameterError, match=what) as caught:
                Parameters(node).declare([spec])
            assert str(caught.value).startswith(f"{file}:{line}: node 'parameter_test': ")
            node.destroy_node()
        context.try_shutdown()


def test_changes_while_running(context):
    seen = []

    def on_change(changes):
        if "kp" in changes and changes["kp"][0] == 13.0:
            raise ParameterError("not this one")
        seen.append(changes)

    node, parameters = make_node(context, on_change=on_change)
    parameters.declare(ALL)
    assert seen == []

    def put(name, value):
        return node.set_parameters_atomically([RosParameter(name, value=value)])

    assert put("kp", [1, 2]).successful
    assert parameters["kp"].tolist() == [1.0, 2.0]
    assert seen[-1]["kp"].tolist() == [1.0, 2.0]
    for bad, word in (([1.0], "2 numbers"), ([1.0, -2.0], "0 .. inf"), ([13.0, 1.0], "not this")):
        result = put("kp", bad)
        assert not result.successful
        assert word in result.reason
    assert parameters["kp"].tolist() == [1.0, 2.0]
    assert not put("rate", 30.0).successful  # read only
    assert parameters["rate"] == 50.0
    node.destroy_node()


def test_what_no_node_declares_is_refused(context):
    node, parameters = make_node(context, {"kp": [1, 2], "ratte": 20})
    parameters.declare(ALL)
    with pytest.raises(DescriptionError, match="no parameter 'ratte'; did you mean 'rate'"):
        parameters.refuse_others()
    node.destroy_node()
    node, parameters = make_node(context, {"use_sim_time": True, "qos_overrides./a.b.c": 1})
    parameters.declare(ALL)
    parameters.refuse_others()
    node.destroy_node()
    alone = ParameterSet({"kp": [1, 2], "ratte": 20}, "thing")
    alone.declare(ALL)
    with pytest.raises(DescriptionError, match="node 'thing': no parameter 'ratte'"):
        alone.refuse_others()


def test_a_process_says_where_a_wrong_parameter_was_given(tmp_path, capfd):
    class Thing(Node):
        def __init__(self, context, stop):
            super().__init__("thing", context=context)
            parameters = Parameters(self)
            parameters.declare(ALL)
            parameters.refuse_others()

        def run(self):
            return 0

        def close(self):
            self.destroy_node()

    def code(*arguments):
        return loop.run(Thing, "thing", ["--ros-args", *arguments])

    file = tmp_path / "p.yaml"
    file.write_text("/**: {ros__parameters: {ratte: 2.0}}\n")
    with private_domain():
        assert code("--params-file", str(file), "-p", "use_sim_time:=true") == 0
        assert code("-p", "ratte:=2.0") == 2
        file.write_text("thing:\n  ros__parameters:\n    ratte: 2.0\n")
        assert code("--params-file", str(file)) == 2
    error = capfd.readouterr().err
    assert "-p ratte:=2.0: node 'thing': no parameter 'ratte'; did you mean 'rate'?" in error
    assert f"{file}:3: node 'thing': no parameter 'ratte'; did you mean 'rate'?" in error
