"""Parameters of nodes: what ROS declares, sets and refuses."""

import pytest
from parameter_samples import ALL, KP, RATE

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rcl_interfaces.msg import ParameterType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from cards_core.errors import DescriptionError, ParameterError, UnknownNameError
from cards_core.parameters.declaration import ParameterSet
from cards_ros import loop
from cards_ros.parameters import Parameters, keep_arguments
from cards_ros.testing import private_domain

pytestmark = pytest.mark.ros


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
