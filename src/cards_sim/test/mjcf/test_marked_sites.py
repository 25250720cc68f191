"""Sites of MJCF with the names of markers are via points: the arm of the CAD tests."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from marked_arm import mjcf, muscle_lengths

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.imports.model import write_imported
from cards_core.formats.sdf.reader import read_sdf
from cards_sim.mjcf.importer import import_mjcf

POSES = ((0.0, 0.0), (0.4, -0.7), (-1.1, 1.0))


def check_lengths(robot):
    assert [muscle.name for muscle in robot.muscles][-6:] == list("123456")
    dynamics = make_dynamics(robot, "numeric")
    for angles in POSES:
        state = dynamics.update(np.array(angles), np.zeros(2))
        np.testing.assert_allclose(
            state.muscle_lengths[-6:], muscle_lengths(angles), atol=1e-12, rtol=0.0
        )


def test_sites_become_muscles(tmp_path):
    (tmp_path / "arm.xml").write_text(mjcf())
    model = import_mjcf(tmp_path / "arm.xml")
    check_lengths(model.robot)
    assert "tension-assumed" in {item.code for item in model.warnings}
    assert [frame.name for frame in model.robot.frames] == ["hand"]
    assert model.robot.operational_frame == "hand"
    assert not model.renamed
    check_lengths(read_sdf(write_imported(model, tmp_path / "out") / "model.sdf"))


def test_tendons_stay(tmp_path):
    """Muscles of sites come after those of tendons, whose lengths are compared with MuJoCo."""
    tendon = """<tendon><spatial name="own" range="0 1"><site site="o"/><site site="i"/></spatial>
    </tendon><actuator><motor tendon="own" ctrlrange="-100 0"/></actuator></mujoco>"""
    text = mjcf().replace("</mujoco>", tendon)
    text = text.replace("<worldbody>", '<worldbody><site name="o" pos="-0.1 0 0.2"/>')
    text = text.replace('<body name="lower_arm"', '<site name="i"/><body name="lower_arm"')
    (tmp_path / "arm.xml").write_text(text)
    model = import_mjcf(tmp_path / "arm.xml")
    assert [muscle.name for muscle in model.robot.muscles] == ["own", *"123456"]
    check_lengths(model.robot)
    (row,) = model.to_dict()["muscles"]
    assert row["errors"]["length"] < 1e-12
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    state = make_dynamics(model.robot, "numeric").update(np.zeros(2), np.zeros(2))
    assert state.muscle_lengths[0] == pytest.approx(data.ten_length[0], abs=1e-12)


def test_points_on_the_world(tmp_path):
    text = mjcf().replace("<worldbody>", '<worldbody><site name="muscle:w:1" pos="0 0 1"/>')
    text = text.replace(
        '<body name="lower_arm"', '<site name="muscle:w:2"/><body name="lower_arm"'
    )
    (tmp_path / "arm.xml").write_text(text)
    robot = import_mjcf(tmp_path / "arm.xml").robot
    assert [item.link for item in robot.muscle("w").path] == ["world", "upper_arm"]
    assert "surroundings" not in {link.name for link in robot.links}


def test_misspelt_sites_are_named_and_a_capital_counts(tmp_path):
    text = mjcf().replace("muscle:1:1", "Muscle:1:1").replace(
        '<body name="lower_arm"', '<site name="muscel:1:9"/>\n<body name="lower_arm"'
    )  # fmt: skip
    (tmp_path / "arm.xml").write_text(text)
    model = import_mjcf(tmp_path / "arm.xml")
    check_lengths(model.robot)
    (found,) = [item for item in model.warnings if item.code == "marker-misspelt"]
    assert found.subject == "site 'muscel:1:9'"
    assert "did you mean 'muscle:1:9'?" in found.message


def test_wrong_names_are_said_with_their_line(tmp_path):
    (tmp_path / "arm.xml").write_text(mjcf().replace("muscle:1:1", "muscle:1:x"))
    with pytest.raises(DescriptionError, match=r"arm.xml:1: frame 'muscle:1:x': the name begins"):
        import_mjcf(tmp_path / "arm.xml")
