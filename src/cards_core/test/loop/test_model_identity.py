"""Identities of models: exact through JSON, and changed by just what changes the robot."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hybrid_robots import platform_arm

from cards_core import __version__
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_core.paths.layout import robot_hash
from cards_core.robot.elements import Mesh
from changed_robots import with_mass, with_moved_point

ROBOTS = ["planar_2r", "roboy_arm", "wrap_elbow", "antagonist_joint"]
PLANAR = load("planar_2r")


def announcement(robot=PLANAR, **changes):
    return Announcement("/simulator", "a1", "host", identity_of(robot), **changes)


@pytest.mark.parametrize("name", ROBOTS)
def test_nothing_is_lost_in_a_message(name):
    sent = announcement(load(name), commands=True)
    assert decode(encode(sent)) == sent


@pytest.mark.parametrize("name", ROBOTS)
def test_an_identity_says_what_the_tree_says(name):
    robot = load(name)
    tree = robot.tree
    data = json.loads(encode(announcement(robot)))
    assert data["hash"] == robot_hash(tree)
    assert data["robot"] == robot.name
    assert data["joint_names"] == list(tree.position_names)
    assert data["muscle_names"] == [muscle.name for muscle in robot.muscles]
    assert data["gravity"] == [0.0, 0.0, -9.81]
    assert data["cards_version"] == __version__
    lower = [-math.inf if pair[0] is None else pair[0] for pair in data["joint_limits"]]
    upper = [math.inf if pair[1] is None else pair[1] for pair in data["joint_limits"]]
    assert lower == tree.lower.tolist()
    assert upper == tree.upper.tolist()


def test_awkward_numbers_come_back_to_the_last_bit():
    value = math.nextafter(0.1, 1.0)
    first = replace(PLANAR.muscles[0], tension_min=value, tension_max=math.inf)
    sent = announcement(replace(PLANAR, muscles=(first, *PLANAR.muscles[1:])))
    text = encode(sent)
    assert "Infinity" not in text  # which is no JSON
    assert decode(text).model.tension_limits[0] == (value, math.inf)


def hashes(robot):
    model = identity_of(robot)
    return model.bodies_hash, model.muscles_hash, model.hash


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (with_mass(PLANAR, 1.0 + 1e-12), (False, False, False)),
        (replace(PLANAR, gravity=np.array([0.0, 0.0, -1.62])), (False, False, False)),
        (with_moved_point(PLANAR, 1e-12), (True, False, False)),
        (replace(PLANAR, frames=(), operational_frame=None), (True, True, False)),
        (replace(PLANAR, name="other", home={}), (True, True, True)),
        (with_moved_point(PLANAR, 0.0), (True, True, True)),
    ],
)
def test_each_hash_covers_its_part(changed, same):
    pairs = zip(hashes(PLANAR), hashes(changed), strict=True)
    assert tuple(a == b for a, b in pairs) == same


def test_a_mesh_counts_by_its_content_and_not_by_its_place(tmp_path):
    robot = load("wrap_elbow")

    def with_mesh(file, content):
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
        first = replace(robot.wrap_surfaces[0], geometry=Mesh(str(file)))
        return replace(robot, wrap_surfaces=(first, *robot.wrap_surfaces[1:]))

    here = with_mesh(tmp_path / "a" / "bone.obj", "v 0 0 0")
    there = with_mesh(tmp_path / "b" / "bone.obj", "v 0 0 0")
    other = with_mesh(tmp_path / "c" / "bone.obj", "v 0 0 1")
    gone = replace(here.wrap_surfaces[0], geometry=Mesh("/nowhere/bone.obj"))
    assert hashes(here) == hashes(there)
    assert hashes(here)[1:] != hashes(other)[1:]
    identity_of(replace(here, wrap_surfaces=(gone, *here.wrap_surfaces[1:])))


def test_motors_and_limits_survive_a_message_and_may_be_missing():
    sent = announcement(platform_arm((math.inf, 5.0)))
    assert decode(encode(sent)) == sent
    assert sent.model.motor_names == ("shoulder", "elbow")
    assert sent.model.effort_limits == (math.inf, 5.0)
    data = json.loads(encode(sent))
    assert data["effort_limits"] == [None, 5.0]
    del data["motor_names"], data["effort_limits"]
    silent = decode(json.dumps(data)).model
    assert (silent.motor_names, silent.effort_limits) == (None, None)


def test_placeholders_are_not_compared():
    model = identity_of(PLANAR, complete=False)
    assert (model.hash, model.joint_limits, model.gravity) == (None, None, None)
    assert model.joint_names == ("joint_1", "joint_2")
    sent = Announcement("/simulator", "a1", "host", model)
    assert decode(encode(sent)) == sent


GOOD = json.loads(encode(announcement()))


def broken(**changes):
    return json.dumps({**GOOD, **changes})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the message: cannot be read"),
        ("{'node': 1}", "the message: cannot be read"),
        ("[" * 100000, "the message: cannot be read"),
        ("3", "a JSON int (expected: an object)"),
        ("{}", "'schema' is null (expected: 1)"),
        (broken(schema=2), "'schema' is 2 (expected: 1)"),
        (broken(role="boss"), "'role' is 'boss' (expected: host, controller, compiler"),
        (broken(role=None), "'role' is null (expected: a text)"),
        (broken(commands=1), "'commands' is 1 (expected: true or false)"),
        (broken(node=["a"]), "'node' is [\"a\"] (expected: a text)"),
        (broken(hash=7), "'hash' is 7"),
        (broken(joint_names="joint_1"), "'joint_names' is \"joint_1\" (expected: a list of texts"),
        (broken(joint_names=["joint_1"]), "'joint_limits' is [["),
        (broken(muscle_types=["cable"]), "expected: 4 texts, one for each muscle"),
        (broken(tension_limits=None), "'tension_limits' is null (expected: 4 pairs"),
        (broken(tension_limits=[[1, "x"]] * 4), "expected: 4 pairs of numbers"),
        (broken(tension_limits=[[1, 2, 3]] * 4), "expected: 4 pairs of numbers"),
        (broken(motor_names="elbow"), "'motor_names' is \"elbow\" (expected: a list of texts"),
        (broken(effort_limits=[1.0]), "'effort_limits' is [1.0] (expected: 0 numbers"),
        (broken(motor_names=["a"], effort_limits=["x"]), "expected: 1 numbers, null for no limit"),
        (broken(gravity=[0, 0]), "'gravity' is [0, 0] (expected: three numbers or null)"),
        (broken(gravity=[0, 0, True]), "'gravity' is [0, 0, true]"),
        (json.dumps({**GOOD, "gravity": [0, 0, math.nan]}), "'gravity' is [0, 0, NaN]"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "hash"}), "'hash' is missing"),
    ],
)
def test_messages_that_are_none_are_refused_with_what_is_wrong(text, words):
    with pytest.raises(CardsError) as error:
        decode(text)
    assert words in str(error.value)


def test_what_a_later_version_adds_does_no_harm():
    assert decode(broken(colour="red")) == announcement()


def test_what_is_missing_or_has_a_wrong_number_is_named():
    for name in GOOD:
        without = json.dumps({key: value for key, value in GOOD.items() if key != name})
        if name in ("ready", "period", "joint_limits", "gravity", "motor_names", "effort_limits"):
            decode(without)  # nodes may know nothing of that
            continue
        with pytest.raises(CardsError, match=f"'{name}' is (missing|null)"):
            decode(without)
    for changes, words in (
        ({"period": 0.0}, "'period' is 0.0 (expected: a time > 0 in s, or null)"),
        ({"period": -1}, "'period' is -1"),
        ({"period": True}, "'period' is true"),
        ({"period": "1"}, "'period' is \"1\""),
        ({"ready": None}, "'ready' is null"),
        ({"gravity": [0, 0, 0, 0]}, "'gravity' is [0, 0, 0, 0]"),
        ({"gravity": 9.81}, "'gravity' is 9.81"),
        ({"gravity": [0, 0, None]}, "'gravity' is [0, 0, null]"),
        ({"joint_limits": [[0, 1]]}, "'joint_limits' is [[0, 1]] (expected: 2 pairs of numbers"),
        ({"joint_limits": [[0, True]] * 2}, "expected: 2 pairs of numbers, null for no limit"),
        ({"joint_limits": [0, 1]}, "expected: 2 pairs of numbers"),
        ({"muscle_names": ["a", 1]}, "'muscle_names' is [\"a\", 1] (expected: a list of texts)"),
        ({"motor_names": ["a"], "effort_limits": [1, 2]}, "expected: 1 numbers"),
        ({"motor_names": ["a"], "effort_limits": [False]}, "expected: 1 numbers"),
        ({"motor_names": None, "effort_limits": [1]}, "expected: 0 numbers"),
        ({"bodies_hash": 1}, "'bodies_hash' is 1 (expected: a text)"),
        ({"cards_version": None}, "'cards_version' is null (expected: a text)"),
    ):
        with pytest.raises(CardsError) as caught:
            decode(broken(**changes))
        assert words in str(caught.value)


def test_what_is_shown_of_long_values_ends_after_sixty_characters():
    for size, shown in ((58, '"' + 58 * "x" + '"'), (59, '"' + 59 * "x" + "...")):
        with pytest.raises(CardsError) as caught:
            decode(broken(schema=size * "x"))
        assert str(caught.value) == f"'schema' is {shown} (expected: 1)"


def test_infinite_limits_are_null_in_messages_and_come_back_with_their_sign():
    data = json.loads(encode(announcement()))
    data["joint_limits"] = [[None, 1.0], [-1.0, None]]
    data["tension_limits"] = [[None, None]] * 4
    found = decode(json.dumps(data)).model
    assert found.joint_limits == ((-math.inf, 1.0), (-1.0, math.inf))
    assert found.tension_limits == ((-math.inf, math.inf),) * 4
    again = json.loads(encode(replace(announcement(), model=found)))
    assert again["joint_limits"] == data["joint_limits"]
    assert again["tension_limits"] == data["tension_limits"]


def test_what_a_node_says_of_itself():
    said = announcement(period=0.5, ready=False, commands=True)
    data = json.loads(encode(said))
    assert (data["period"], data["ready"], data["commands"]) == (0.5, False, True)
    assert (data["schema"], data["role"], data["node"]) == (1, "host", "/simulator")
    assert decode(encode(said)) == said
    quiet = announcement()
    assert (quiet.commands, quiet.ready, quiet.period) == (False, True, None)
