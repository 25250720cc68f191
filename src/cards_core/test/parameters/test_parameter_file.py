import re

import pytest

from cards_core.errors import DescriptionError, ParameterError
from cards_core.parameters.declaration import Parameter, ParameterSet
from cards_core.parameters.parameter_file import (
    IN_GAZEBO,
    check_nodes,
    check_parameters,
    command_line_sections,
    given_value,
    load_parameters,
    own_parameters,
    read_file,
    where_given,
)

TEXT = """
/**:
  ros__parameters:
    model: roboy_arm
    kp: 1.0
ctc_joint:
  ros__parameters:
    kp: 2.0
    tension: {min: 5.0, max: 300.0}
"""


def test_own_section_wins_and_nested_keys_are_joined(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    assert load_parameters(file, "ctc_joint") == {
        "model": "roboy_arm",
        "kp": 2.0,
        "tension.min": 5.0,
        "tension.max": 300.0,
    }
    assert load_parameters(file, "other") == {"model": "roboy_arm", "kp": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "p.yaml:.*not valid YAML"),
        (
            "a: !!python/object/apply:os.system [ls]",
            r"p.yaml:1: tag '!!python/object/apply:os.system'",
        ),
        ("a: 1\n\0", r"p.yaml:2: not valid YAML: [^\n]*$"),
        ("- 1", "no nodes in it"),
        ("ctc_joint: 3", "node 'ctc_joint': section without parameters"),
        ("ctc_joint: {kp: 3}", "ros__parameters"),
    ],
)
def test_errors_name_the_place(tmp_path, text, message):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    with pytest.raises(DescriptionError, match=message):
        load_parameters(file, "ctc_joint")
    with pytest.raises(DescriptionError, match=r"missing\.yaml"):
        load_parameters(tmp_path / "missing.yaml", "ctc_joint")


PLACES = """
/**:
  ros__parameters: {model: roboy_arm, for_others: 1}
/**/ctc_joint:
  ros__parameters:
    kpp: 3
left:
  ctc_joint:
    ros__parameters:
      kd: 2.0
"""


def test_sections_know_names_lines_and_whom_they_concern(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(PLACES)
    every, anywhere, nested = read_file(file)
    assert (every.name, anywhere.name, nested.name) == ("/**", "/**/ctc_joint", "left/ctc_joint")
    assert (anywhere.line, anywhere.lines["kpp"], nested.lines["kd"]) == (4, 6, 10)
    names = ("/ctc_joint", "/left/ctc_joint", "/a/b/ctc_joint", "/simulator")
    assert [every.concerns(name) for name in names] == [True] * 4
    assert [anywhere.concerns(name) for name in names] == [True, True, True, False]
    assert [nested.concerns(name) for name in names] == [False, True, False, False]


def test_a_parameter_that_a_node_has_not_is_named_with_its_place(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(PLACES)
    sections = read_file(file)
    known = ["model", "kp", "kd"]
    with pytest.raises(DescriptionError, match=r"did you mean 'kp'\?") as caught:
        check_parameters("/ctc_joint", ["model", "kpp"], known, sections)
    assert (caught.value.source, caught.value.line) == (str(file), 6)
    for allowed in ("for_others", "use_sim_time", "qos_overrides./clock.subscription.depth"):
        check_parameters("/ctc_joint", [allowed, "kp"], known, sections)
    typed = command_line_sections(
        ["--ros-args", "--params-file", str(file), "-p", "for_others:=2", "--", "-p", "x"]
    )
    with pytest.raises(DescriptionError, match=r"^-p for_others:=2: node 'ctc_joint'"):
        check_parameters("/ctc_joint", ["for_others"], known, typed)


def test_the_node_in_gazebo_may_have_its_parameters_in_the_same_section(tmp_path):
    from cards_bringup.gazebo.simulator import world_parameters
    from cards_rod_plugin.node_parameters import parameters as in_gazebo
    from cards_rods.node_parameters import parameters as alone

    world = [spec.name for spec in world_parameters()]
    assert sorted(IN_GAZEBO["simulator"]) == sorted(world)
    more = {spec.name for spec in in_gazebo()} - {spec.name for spec in alone()}
    assert set(IN_GAZEBO["rod_solver"]) == {*world, "mode", "dt", "speed", *more}
    file = tmp_path / "p.yaml"
    file.write_text("rod_solver: {ros__parameters: {theta: 0.6}}\n")
    check_parameters("/rod_solver", ["theta"], ["rate"], read_file(file))
    with pytest.raises(DescriptionError, match="no parameter 'theta'"):
        check_parameters(
            "/rod_solver",
            ["theta"],
            ["rate"],
            command_line_sections(["--ros-args", "-p", "theta:=0.6"]),
        )


def test_sections_of_nodes_that_there_are_not(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**: {ros__parameters: {a: 1}}\nleft/ctc_jont: {ros__parameters: {kp: 1}}\n")
    with pytest.raises(DescriptionError, match=r"p\.yaml:2: .*did you mean 'ctc_joint'"):
        check_nodes(file, ["simulator", "ctc_joint"])
    check_nodes(file, ["simulator", "ctc_jont"])


def test_patterns_count_without_ros_too(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(PLACES)
    assert load_parameters(file, "ctc_joint") == {"model": "roboy_arm", "for_others": 1, "kpp": 3}
    assert own_parameters(file, "ctc_joint") == {"kpp": 3}
    assert own_parameters(file, "simulator") == {}


def test_a_key_twice_is_refused(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("ctc_joint:\n  ros__parameters:\n    kp: 1\n    kp: 2\n")
    with pytest.raises(DescriptionError, match=r"p\.yaml:4: .*'kp' appears twice"):
        load_parameters(file, "ctc_joint")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (".nan", r"'dt' is nan \(expected: finite, 0 \.\. 1\)"),
        ("'abc'", r"'dt' is 'abc' \(expected: a number\)"),
        ("[1.0, 2.0]", r"'dt' is \[1\.0, 2\.0\] \(expected: a number\)"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_place(tmp_path, value, expected):
    file = tmp_path / "p.yaml"
    file.write_text(f"# one node\n\nsimulator:\n  ros__parameters:\n    dt: {value}\n")
    sections = read_file(file)
    values = ParameterSet(load_parameters(file, "simulator"), "simulator", sections)
    place = rf"^{re.escape(str(file))}:5: node 'simulator': parameter "
    with pytest.raises(ParameterError, match=place + expected):
        values.declare([Parameter("dt", 0.1, "Step.", lower=0.0, upper=1.0)])


def test_a_value_from_elsewhere_is_not_said_to_be_in_the_file(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("simulator: {ros__parameters: {dt: 0.5}}\n")
    sections = read_file(file)
    assert where_given("/simulator", "dt", 0.5, sections) == f"{file}:1: node 'simulator': "
    assert where_given("/simulator", "dt", 7.0, sections) == ""
    assert where_given("/other", "dt", 0.5, sections) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e4", 1e4),
        ("1.0e7", 1e7),
        ("-.5E-3", -5e-4),
        ("3", 3),
        ("0.5", 0.5),
        ("'1e4'", "1e4"),
        ("1e4x", "1e4x"),
        ("[1e4, 2]", [1e4, 2]),
    ],
)
def test_numbers_with_a_power_are_numbers_as_in_ros(tmp_path, text, value):
    """YAML 1.1, and so PyYAML, takes those without a point or a sign for texts."""
    file = tmp_path / "a.yaml"
    file.write_text(f"ctc_joint:\n  ros__parameters:\n    kp: {text}\n")
    for found in (load_parameters(file, "ctc_joint")["kp"], given_value(text, "--set")):
        assert found == value
        assert type(found) is type(value)
