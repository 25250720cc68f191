"""A CAD assembly becomes a robot that a controller moves, by the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("OCP", reason="needs cadquery-ocp-novtk: ./cards setup --test")

import marked_arm
from cad_samples import CONFIG, write_arm

import cards
from cards_bringup.cli import main
from cards_core.dynamics import make_dynamics

WAVE = """\
trajectories:
  wave:
    description: Up and down, from rest to rest
    kind: quintic
    space: joint
    time_definition: relative
    points:
      - {position: [0, 0]}
      - {time: 1, position: [0.4, -0.5]}
      - {time: 1, position: [-0.3, 0.4]}
      - {time: 1, position: [0, 0]}
"""


def test_from_step_to_a_controlled_robot(tmp_path, capsys):
    file, config = write_arm(tmp_path / "arm.step"), tmp_path / "arm.yaml"
    capsys.readouterr()
    assert main(["import", "cad", str(file), "--propose", str(config), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in said["joint_candidates"]] == ["revolute", "revolute"]
    assert len(said["markers"]) == 17
    # nobody has confirmed the joints: refused, and nothing is written
    out = tmp_path / "robots"
    line = ["import", "cad", str(file), "--config", str(config), "-o", str(out)]
    assert main(line) == 2
    assert "nobody has confirmed it" in capsys.readouterr().err
    assert not out.exists()
    assert main(["import", "cad", str(file), "--propose", str(config)]) == 2
    assert "exists already" in capsys.readouterr().err

    config.write_text(CONFIG)
    assert main([*line, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["muscles"] == 6
    assert report["findings"][0]["level"] == "note"
    folder = out / "two_link_arm"
    (folder / "trajectories.yaml").write_text(WAVE)
    robot = cards.load(str(folder / "model.sdf"))
    sim = cards.Simulator(robot)
    controller = cards.Controller("ctc_joint", robot, reference="wave")
    run = cards.simulate(sim, controller, duration=3.0)
    error = np.abs(run.arrays["error"])
    assert np.ptp(run.q[:, 0]) > 0.65
    assert np.ptp(run.q[:, 1]) > 0.85
    assert error.max() < 1e-3
    low, high = run.arrays["tensions"].min(), run.arrays["tensions"].max()
    assert 0.0 < low < high < 600.0


def test_exporters_that_keep_names_give_the_same_robot(tmp_path, capsys):
    """Links of URDF, sites of MJCF and frames of SDF with the names of the assembly's markers."""
    file, config = write_arm(tmp_path / "arm.step"), tmp_path / "arm.yaml"
    config.write_text(CONFIG)
    assert main(["import", "cad", str(file), "--config", str(config), "-o", str(tmp_path)]) == 0
    cad = cards.load(str(tmp_path / "two_link_arm" / "model.sdf"))
    texts = {"urdf": marked_arm.urdf(), "mjcf": marked_arm.mjcf(), "cad": marked_arm.sdf()}
    rng = np.random.default_rng(3)
    poses = rng.uniform(-1.2, 1.2, (5, 2))
    for importer, text in texts.items():
        suffix = {"urdf": "urdf", "mjcf": "xml", "cad": "sdf"}[importer]
        source = tmp_path / f"arm.{suffix}"
        source.write_text(text)
        out = tmp_path / importer
        assert main(["import", importer, str(source), "-o", str(out)]) == 0
        robot = cards.load(str(out / "two_link_arm" / "model.sdf"))
        assert robot.tree.position_names == cad.tree.position_names
        assert robot.operational_frame == cad.operational_frame
        ours, theirs = make_dynamics(cad, "numeric"), make_dynamics(robot, "numeric")
        for q in poses:
            a, b = (item.update(q, np.array([0.3, -0.2])) for item in (ours, theirs))
            for what in ("muscle_lengths", "muscle_jacobian", "mass_matrix"):
                np.testing.assert_allclose(
                    getattr(b, what), getattr(a, what), rtol=1e-9, atol=1e-12, err_msg=importer
                )
    capsys.readouterr()


def test_muscles_of_frames_in_sdf(tmp_path, capsys):
    """What exporters write that keep names: frames of an SDF file become muscles."""
    frames = "".join(
        f'<frame name="muscle:{name}" attached_to="{link}"><pose>{x} 0 {z} 0 0 0</pose></frame>'
        for name, link, x, z in (
            ("up:1", "base", -0.1, 0.1),
            ("up:2", "rod", 0.2, 0.02),
            ("down:1", "base", -0.1, -0.1),
            ("down:2", "rod", 0.2, -0.02),
        )
    )
    inertial = "<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz>"
    inertial += "</inertia></inertial>"
    (tmp_path / "rod.sdf").write_text(
        f'<sdf version="1.11"><model name="rod"><link name="base">{inertial}</link>'
        f'<link name="rod">{inertial}</link>{frames}'
        '<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>'
        '<joint name="hinge" type="revolute"><parent>base</parent><child>rod</child>'
        "<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"
    )
    line = ["import", "cad", str(tmp_path / "rod.sdf"), "-o", str(tmp_path / "out")]
    assert main(line) == 0
    assert "2 muscles" in capsys.readouterr().out
    robot = cards.load(str(tmp_path / "out" / "rod" / "model.sdf"))
    up = robot.muscle("up")
    assert [item.link for item in up.path] == ["base", "rod"]
    assert up.path[1].position.tolist() == [0.2, 0.0, 0.02]
    assert not robot.frames
    assert main([*line, "--material", "steel"]) == 2
    assert "a material is given, 'steel'" in capsys.readouterr().err


def test_materials(capsys):
    assert main(["import", "cad", "--materials", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steel"] == 7850.0


@pytest.mark.parametrize("value", ["0", "nan", "-1", "x", "1"])
def test_tolerance(value, capsys):
    assert main(["import", "cad", "x.step", "--tolerance", value]) == 2
    assert "expected 1e-6 to 0.1" in capsys.readouterr().err
