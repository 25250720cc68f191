"""Parameters written into their file: what was there stays as it was."""

import difflib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards_core.errors import CardsError
from cards_core.parameters.parameter_file import load_parameters, own_parameters
from cards_core.parameters.parameter_saving import save_parameters

TEXT = """# Gains, found by hand
/**:
  ros__parameters:
    model: arm    # the robot

ctc_joint:
  ros__parameters:
    kp: [400.0, 400.0]    # [1/s^2]
    kd: 40
    solver: daqp

other:
  ros__parameters: {kp: 1.0, name: "a: b"}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(TEXT)
    return path


def changes(file):
    lines = difflib.ndiff(TEXT.splitlines(), file.read_text().splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_values_are_replaced_where_they_stand(file):
    backup = save_parameters(file, "ctc_joint", {"kp": [1.0, 2.5], "kd": [3.0, 4.0]})
    assert changes(file) == [
        "-     kp: [400.0, 400.0]    # [1/s^2]",
        "+     kp: [1.0, 2.5]    # [1/s^2]",
        "-     kd: 40",
        "+     kd: [3.0, 4.0]",
    ]
    assert backup.read_text() == TEXT
    assert backup.name.startswith("arm.yaml.")
    assert backup.suffix == ".bak"
    assert sorted(file.parent.iterdir()) == sorted([file, backup])


def test_what_is_not_there_is_added(file):
    save_parameters(file, "ctc_joint", {"ki": 0.5})
    assert changes(file) == ["+     ki: 0.5"]
    save_parameters(file, "mrc", {"relaxation": True, "kp": 2.0})
    assert load_parameters(file, "mrc") == {"model": "arm", "relaxation": True, "kp": 2.0}
    save_parameters(file, "other", {"kp": 7.5, "kd": 1.0})
    assert own_parameters(file, "other") == {"kp": 7.5, "kd": 1.0, "name": "a: b"}


def test_lists_in_blocks(file):
    file.write_text(
        "ctc_joint:\n  ros__parameters:\n    kp:\n    - 1.0\n    - 2.0\n\n    kd: 3.0\n"
        "last:\n  ros__parameters:\n    kp:\n      - 1.0\n"
    )
    save_parameters(file, "ctc_joint", {"kp": [5.0, 6.0]})
    save_parameters(file, "last", {"kp": [7.0]})
    assert own_parameters(file, "ctc_joint") == {"kp": [5.0, 6.0], "kd": 3.0}
    assert own_parameters(file, "last") == {"kp": [7.0]}


def test_ends_of_lines_stay(file):
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    save_parameters(file, "ctc_joint", {"kd": 41.0})
    assert file.read_bytes().count(b"\r\n") == TEXT.count("\n")
    assert own_parameters(file, "ctc_joint")["kd"] == 41.0


def test_what_would_change_others_is_refused(file):
    text = "a:\n  ros__parameters: &same {kp: 1.0}\nb:\n  ros__parameters: *same\n"
    file.write_text(text)
    with pytest.raises(CardsError, match="not saved"):
        save_parameters(file, "a", {"kp": 2.0})
    assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


def test_no_parameter_file_and_odd_values(file):
    with pytest.raises(CardsError, match="expected: numbers"):
        save_parameters(file, "ctc_joint", {"kp": None})
    file.write_text("a: 1\n")
    with pytest.raises(CardsError, match="section without parameters"):
        save_parameters(file, "a", {"kp": 2.0})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_folder_that_cannot_be_written(file):
    file.parent.chmod(0o500)
    try:
        with pytest.raises(CardsError, match="cannot be written"):
            save_parameters(file, "ctc_joint", {"kd": 1.0})
    finally:
        file.parent.chmod(0o700)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(kp=st.lists(NUMBERS, min_size=1, max_size=4), kd=NUMBERS)
def test_every_number_comes_back(tmp_path_factory, kp, kd):
    path = tmp_path_factory.mktemp("saved") / "arm.yaml"
    path.write_text(TEXT)
    save_parameters(path, "ctc_joint", {"kp": kp, "kd": kd})
    assert own_parameters(path, "ctc_joint") == {"kp": kp, "kd": kd, "solver": "daqp"}
    assert own_parameters(path, "other") == {"kp": 1.0, "name": "a: b"}
