import pytest

from cards_bringup.parameters import load_parameters
from cards_core.errors import DescriptionError

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
