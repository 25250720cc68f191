"""``./cards controllers``: what the registry has, for people and for programs."""

import json

import pytest

from cards_bringup import cli
from cards_core.control import controller_kinds, controller_parameters
from cards_core.control.ctc_joint import CtcJoint
from cards_core.formats import load

OTHERS = """
from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.interface import Controller

class Stretch(CtcJoint):
    kind = "stretch"
    summary = "computed torque, with what a muscle measures"
    needs = ("muscle_lengths", "tensions")
    commands = ("length",)

class Silent(Controller):
    kind = "silent"
"""


@pytest.fixture
def others(offer):
    """Another package with three controllers, of which one can be used."""
    entries = {"stretch": "Stretch", "silent": "Silent", "lost": "Lost"}
    offer("other_controllers", OTHERS, "cards.controllers", entries)


def as_json(capsys, *arguments, code=0):
    assert cli.main(["controllers", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_all_controllers_of_the_registry_are_listed(capsys):
    found = as_json(capsys)
    assert found["robot"] is None
    rows = {row["kind"]: row for row in found["controllers"]}
    assert list(rows) == controller_kinds()
    assert rows["ctc_joint"] == {
        "kind": "ctc_joint",
        "summary": CtcJoint.summary,
        "space": "joint",
        "needs": ["q", "qd"],
        "commands": ["force", "effort"],
        "class": "cards_core.control.ctc_joint.CtcJoint",
    }


def test_the_list_as_a_table(capsys):
    assert cli.main(["controllers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["controller", "references"]
    (line,) = [line for line in lines if line.startswith("ctc_operational ")]
    assert line.split()[1:6] == ["operational", "q,", "qd", "force,", "effort"]


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_parameters_are_those_that_the_class_declares(capsys, kind):
    found = as_json(capsys, kind, "--robot", "roboy_arm")
    rows = {row["name"]: row for row in found["parameters"]}
    specs = controller_parameters(kind, load("roboy_arm"))
    assert found["robot"] == "roboy_arm"
    assert list(rows)[: len(specs)] == [spec.name for spec in specs]
    assert list(rows)[len(specs) :] == ["reference_speed"] * (kind == "ctc_operational")
    for spec in specs:
        row = rows[spec.name]
        assert (row["unit"], row["live"], row["length"]) == (spec.unit, spec.live, spec.length)
        assert row["description"] == spec.description
    assert rows["kp"]["lower"] == 0.0
    assert rows["kp"]["upper"] == pytest.approx(2.5e11)
    assert rows["kp"]["default"] == [400.0] * rows["kp"]["length"]
    assert rows["solver"]["range"] == "daqp | osqp"
    assert "approach_speed" in [row["name"] for row in found["shared_parameters"]]


def test_parameters_as_a_table(capsys):
    assert cli.main(["controllers", "ctc_operational"]) == 0
    out = capsys.readouterr().out
    assert "parameters for planar_2r:" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "parameter unit range default live meaning" in lines
    assert (
        "kp 1/s^2 0 .. 2.5e+11 400 each yes Stiffness of the error, or its symmetric "
        "matrix by rows." in lines
    )
    speed = "Maximum speed of the motion to a point received on ~/reference."
    assert f"reference_speed m/s or rad/s 0.001 .. 100 0.25 - {speed}" in lines
    assert "frame - - the model's operational frame - Frame or link to control." in lines


def test_which_controllers_drive_a_robot(tmp_path, capsys):
    from cards_core.formats import find_model

    text = find_model("planar_2r").read_text()
    begin, end = text.index("<operational_frame"), text.index("</operational_frame>")
    file = tmp_path / "blind.sdf"
    file.write_text(text[:begin] + text[end + len("</operational_frame>") :])
    rows = {row["kind"]: row for row in as_json(capsys, "--robot", str(file))["controllers"]}
    assert (rows["ctc_joint"]["suited"], rows["ctc_joint"]["unsuited"]) == (True, "")
    assert not rows["ctc_operational"]["suited"]
    assert "has no operational frame" in rows["ctc_operational"]["unsuited"]
    assert cli.main(["controllers", "--robot", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ctc_joint        yes ") for line in lines)
    assert any(line.startswith("ctc_operational  no: ") for line in lines)
    assert cli.main(["controllers", "ctc_operational", "--robot", str(file)]) == 2
    assert "ctc_operational cannot drive" in capsys.readouterr().err


def test_controllers_of_other_packages(others, capsys):
    rows = {row["kind"]: row for row in as_json(capsys, code=2)["controllers"]}
    assert rows["stretch"]["needs"] == ["q", "qd", "muscle_lengths", "tensions"]
    assert rows["stretch"]["class"] == "other_controllers.Stretch"
    assert "lacks from_parameters" in rows["silent"]["error"]
    assert "cannot be loaded" in rows["lost"]["error"]
    assert "error" not in rows["ctc_joint"]
    assert cli.main(["controllers", "--robot", "planar_2r"]) == 2
    out = capsys.readouterr().out
    assert "no: no muscle of planar_2r takes a command of the kind length" in out
    assert "lost: error: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "no controller named 'nonsense'"),
        (["--robot", "nonsense"], "nonsense"),
        (["--robot", "stewart_gough"], "is a robot of rods"),
        (["ctc_joint", "--robot", "stewart_gough"], "is a robot of rods"),
    ],
)
def test_unknown_names_are_errors(arguments, message, capsys):
    assert cli.main(["controllers", *arguments]) == 2
    assert message in capsys.readouterr().err
