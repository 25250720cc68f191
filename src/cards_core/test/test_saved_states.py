"""Saved states: names, files, and what a wrong one says."""

import json

import pytest

from cards_core.errors import CardsError, UnknownNameError
from cards_core.saved_states import SavedStates

STATE = {"joints": {"slide_1": 0.25}, "pose": [[1.0, 0.0], [0.0, 1.0]]}


def test_a_file_keeps_them_for_the_next_run(tmp_path):
    file = tmp_path / "deep" / "states.json"
    states = SavedStates("toy", file)
    states.save("left of the table", STATE)
    states.save("right", {"joints": {}})
    states.save("right", {"joints": {"slide_1": 1e-17}})  # replaces the one before
    again = SavedStates("toy", file)
    assert again.names == ("left of the table", "right")
    assert again["left of the table"] == STATE
    assert again["right"] == {"joints": {"slide_1": 1e-17}}
    again.delete("right")
    assert SavedStates("toy", file).names == ("left of the table",)
    assert json.loads(again.text()) == {"left of the table": STATE}
    assert [path.name for path in file.parent.iterdir()] == ["states.json"]


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 65])
def test_names_that_nobody_could_read_are_refused(name):
    states = SavedStates("toy")
    with pytest.raises(CardsError, match="1 to 64 printable characters"):
        states.save(name, STATE)
    assert states.names == ()


def test_unknown_names_are_told_with_the_known_ones():
    states = SavedStates("toy")
    states.save("home", STATE)
    for ask in (states.__getitem__, states.delete):
        with pytest.raises(UnknownNameError, match=r"hoem.*home"):
            ask("hoem")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"states": {}}', '{"robot": "toy", "states": 3}']
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path, text):
    file = tmp_path / "states.json"
    file.write_text(text)
    with pytest.raises(CardsError, match=r"states\.json: no saved states"):
        SavedStates("toy", file)
    assert file.read_text() == text


def test_a_file_of_another_robot_is_refused(tmp_path):
    SavedStates("other", tmp_path / "s.json").save("home", STATE)
    with pytest.raises(CardsError, match="robot 'other' \\(expected: 'toy'\\)"):
        SavedStates("toy", tmp_path / "s.json")


def test_numbers_that_json_does_not_know_are_no_state():
    states = SavedStates("toy")
    states.save("bad", {"pose": [float("nan")]})
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        states.text()
