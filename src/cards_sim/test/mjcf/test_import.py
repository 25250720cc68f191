"""MJCF files as robots: the numbers are those of MuJoCo."""

import json
import math
import re
from pathlib import Path

import mjcf_samples
import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import known_models, load
from cards_core.formats.imports.model import write_imported
from cards_core.formats.locate import find_model, has_rods
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.elements import Cylinder, Mesh, Sphere, Wrap
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_sim.build import build_host
from cards_sim.export import exported_mjcf
from cards_sim.mjcf.cli import main
from cards_sim.mjcf.importer import import_mjcf


@pytest.fixture
def arm(tmp_path):
    return mjcf_samples.write_arm(tmp_path)


def findings(imported, code):
    return [item for item in imported.findings if item.code == code]


def mass_matrix(model, data):
    """MuJoCo's, without armature."""
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix)
    return matrix - np.diag(model.dof_armature)


def tendon_jacobian(model, data):
    dense = np.zeros((model.ntendon, model.nv))
    mujoco.mju_sparse2dense(
        dense, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
    )
    return dense


def random_pose(model, rng):
    qpos = np.array(model.qpos0)
    mujoco.mj_integratePos(model, qpos, rng.uniform(-1.0, 1.0, model.nv), 1.0)
    for joint in range(model.njnt):
        if model.jnt_limited[joint] and model.jnt_type[joint] >= 2:
            qpos[model.jnt_qposadr[joint]] = rng.uniform(*model.jnt_range[joint])
    return qpos


def test_lengths_moment_arms_mass_matrix_and_forces_are_those_of_mujoco(arm):
    imported = import_mjcf(arm, all_tendons=True)
    model = mujoco.MjModel.from_xml_path(str(arm))
    data = mujoco.MjData(model)
    dynamics = make_dynamics(imported.robot, "numeric")
    rows = {row["muscle"]: row for row in imported.sections[0].data}
    index = [model.tendon(row["tendon"]).id for row in rows.values()]
    assert len(index) == 7
    bore = list(rows).index("bore")  # MuJoCo's own iteration ends early inside a cylinder
    others = [i for i in range(len(index)) if i != bore]
    rng = np.random.default_rng(3)
    wrapped = np.zeros(len(index))
    for _ in range(200):
        data.qpos[:] = random_pose(model, rng)
        data.qvel[:] = rng.uniform(-1.0, 1.0, model.nv)
        mujoco.mj_forward(model, data)
        state = dynamics.update(data.qpos.copy(), data.qvel.copy())
        length, jacobian = data.ten_length[index], tendon_jacobian(model, data)[index]
        np.testing.assert_allclose(state.muscle_lengths, length, atol=1e-9)
        np.testing.assert_allclose(
            state.muscle_jacobian[others], jacobian[others], rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(state.muscle_jacobian[bore], jacobian[bore], atol=1e-5)
        np.testing.assert_allclose(state.mass_matrix, mass_matrix(model, data), atol=1e-9)
        bias = state.coriolis + state.gravity
        np.testing.assert_allclose(bias, data.qfrc_bias, rtol=1e-9, atol=1e-9)
        wrapped += data.ten_wrapnum[index] > [2, 3, 3, 2, 2, 2, 2]
    assert np.all(wrapped[[1, 2, 3, 4]] > 5)  # all surfaces were touched


def test_every_number_has_its_place(arm):
    robot = import_mjcf(arm).robot
    muscles = {muscle.name: muscle for muscle in robot.muscles}
    assert list(muscles) == ["pull", "biceps", "flexor", "cord", "bore", "leash"]
    assert (muscles["pull"].tension_min, muscles["pull"].tension_max) == (10.0, 300.0)
    hill = muscles["biceps"].actuator
    assert hill.max_isometric_force == 500.0
    assert hill.optimal_fiber_length == pytest.approx(0.3)
    assert hill.tendon_slack_length == pytest.approx(0.15)
    assert (hill.activation_time, hill.deactivation_time) == (0.02, 0.05)
    assert (hill.max_velocity, hill.tendon) == (1.5, "rigid")
    cord = muscles["cord"]
    assert (cord.actuator.stiffness, cord.actuator.damping) == (900.0, 7.0)
    assert cord.actuator.rest_length == pytest.approx(0.2)  # of the keyframe's control
    assert (cord.tension_min, cord.tension_max) == (0.0, 250.0)
    leash = muscles["leash"].actuator
    assert (leash.stiffness, leash.damping, leash.slack_length) == (160.0, 0.8, 0.8)
    assert not muscles["leash"].takes_tension
    surfaces = {surface.name: surface.geometry for surface in robot.wrap_surfaces}
    assert surfaces == {"ball": Sphere(0.05), "roll": Cylinder(0.04, math.inf)}
    inside = [w for w in muscles["bore"].path if isinstance(w, Wrap)]
    assert [w.inside for w in inside] == [True]
    yaw, elbow = robot.joint("yaw"), robot.joint("elbow")
    assert yaw.motor
    assert yaw.axes[0].effort == 6.0
    assert elbow.motor
    assert elbow.axes[0].effort == pytest.approx(0.3)
    assert (elbow.axes[0].damping, elbow.axes[0].friction) == (0.1, 0.2)
    assert elbow.axes[0].lower == pytest.approx(math.radians(-110.0))
    assert robot.home["lift"] == (0.05,)
    assert robot.gravity.tolist() == [0.0, 0.0, -9.5]
    upper = robot.link("upper")
    assert [type(v.geometry) for v in upper.visuals].count(Mesh) == 1
    wedge = next(v for v in upper.visuals if isinstance(v.geometry, Mesh))
    assert wedge.rgba == (0.0, 1.0, 0.0, 1.0)
    assert {c.friction for c in upper.collisions} == {0.8}
    assert [c.name for c in upper.collisions].count("ball") == 0
    assert {frame.name for frame in robot.frames} >= {"tip", "mark"}


def test_what_has_no_counterpart_is_named_with_its_line(arm):
    imported = import_mjcf(arm)
    lines = mjcf_samples.ARM.splitlines()
    for code, word in {
        "coupling": 'joint1="yaw"',
        "ball-limit": 'name="wrist"',
        "fixed-tendon": 'name="pair"',
        "no-force": 'name="hoist"',
        "pushes": 'name="bore"',
        "servo": 'name="cord"',
    }.items():
        found = findings(imported, code)
        assert found, code
        assert any(word in lines[item.line - 1] for item in found), code
    assert "0 .. 0.4 m" in findings(imported, "tendon-limit")[0].message
    rows = {row["muscle"]: row for row in imported.sections[0].data}
    assert rows["pull"]["error"] == ""
    errors = rows["biceps"]["errors"]
    # of MuJoCo's curves against De Groote's at a length of 1.5 and at the fastest lengthening
    assert errors["passive"] == pytest.approx(1.0, abs=0.05)
    assert 0.1 < errors["active"] < 0.5
    assert 0.3 < errors["velocity"] < 0.7


def test_a_side_site_on_the_other_body_of_a_hinge_is_exact(tmp_path):
    """A cylinder that turns about its own axis is the same surface on either body."""
    path = tmp_path / "hinge.xml"
    path.write_text("""<mujoco><worldbody>
      <site name="o" pos="-0.2 0.02 0"/><site name="side" pos="0 -0.3 0"/>
      <body><joint name="j" axis="0 0 1" limited="true" range="-60 100"/>
        <geom name="wheel" type="cylinder" size="0.1 0.05"/><site name="i" pos="0.3 -0.05 0"/>
      </body></worldbody>
      <tendon><spatial name="t"><site site="o"/><geom geom="wheel" sidesite="side"/>
        <site site="i"/></spatial></tendon>
      <actuator><motor name="m" tendon="t" gear="-1" ctrlrange="0 9"/></actuator></mujoco>""")
    imported = import_mjcf(path)
    assert imported.robot.wrap_surfaces[0].link == "world"
    assert not findings(imported, "moving-side")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    dynamics = make_dynamics(imported.robot, "numeric")
    for q in np.linspace(-1.0, 1.7, 28):
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        state = dynamics.update(np.array([q]), np.zeros(1))
        np.testing.assert_allclose(state.muscle_lengths, data.ten_length, atol=1e-12)
        np.testing.assert_allclose(
            state.muscle_jacobian[0], tendon_jacobian(model, data)[0], atol=1e-12
        )


def test_a_locked_joint_is_fixed_where_the_constraint_holds_it(tmp_path):
    path = tmp_path / "locked.xml"
    path.write_text("""<mujoco><compiler angle="radian"/><worldbody><body>
      <joint name="a" axis="0 1 0" ref="0.2"/><joint name="b" axis="1 0 0" pos="0 0.1 0"/>
      <joint name="c" axis="0 0 1" pos="0.1 0 0"/>
      <geom size="0.1" pos="0.5 0 0"/></body></worldbody>
      <equality><joint joint1="a" polycoef="0.3 0 0 0 0"/>
        <joint joint1="c" polycoef="-0.4 0 0 0 0"/></equality></mujoco>""")
    robot = import_mjcf(path).robot
    assert robot.tree.position_names == ("b",)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.5, 0.7, -0.4]
    mujoco.mj_forward(model, data)
    state = make_dynamics(robot, "numeric").update(np.array([0.7]), np.zeros(1))
    assert state.mass_matrix[0, 0] == pytest.approx(mass_matrix(model, data)[1, 1], rel=1e-12)
    assert state.gravity[0] == pytest.approx(data.qfrc_bias[1], rel=1e-12)


def crank(joint):
    """Return a body with a site at 0.2 m along x from its joint, and muscles to z = 0.5 m.

    MuJoCo finds no length range for a muscle that crosses no joint, and then for none.
    """
    return f"""<mujoco><worldbody>
      <site name="o" pos="0 0 0.5"/><site name="beside" pos="0.1 0 0.5"/>
      <body name="arm">{joint}
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/><site name="i" pos="0.2 0 0"/>
      </body></worldbody>
      <tendon><spatial name="t"><site site="o"/><site site="i"/></spatial>
        <spatial name="fixed"><site site="o"/><site site="beside"/></spatial></tendon>
      <actuator><muscle name="turns" tendon="t" force="100" range="0.4 1.2"/>
        <muscle name="still" tendon="fixed" force="100" range="0.4 1.2"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("joint", "low", "high"),
    [
        ('<joint name="j" axis="0 1 0"/>', 0.3, 0.7),
        ('<joint name="j" axis="0 1 0" range="0 90"/>', 0.29**0.5, 0.7),
        ('<joint type="ball"/>', 0.3, 0.7),
        ('<joint type="ball" range="0 60"/>', (0.29 - 0.2 * 0.75**0.5) ** 0.5,
         (0.29 + 0.2 * 0.75**0.5) ** 0.5),
    ],
)  # fmt: skip
def test_where_mujoco_finds_no_length_range_all_joints_are_moved(tmp_path, joint, low, high):
    path = tmp_path / "crank.xml"
    path.write_text(crank(joint))
    imported = import_mjcf(path)
    (muscle,) = imported.robot.muscles
    optimal = (high - low) / 0.8
    assert muscle.actuator.optimal_fiber_length == pytest.approx(optimal, rel=0.01)
    assert muscle.actuator.tendon_slack_length == pytest.approx(low - 0.4 * optimal, rel=0.02)
    (said,) = findings(imported, "length-range")
    assert said.subject == "actuator 'turns'"
    (left_out,) = findings(imported, "muscle")
    assert (left_out.subject, left_out.line) == ("actuator 'still'", 9)
    assert "its length does not change (0.1 .. 0.1 m)" in left_out.message


def test_a_slide_without_limits_moves_by_the_extent_of_the_model(tmp_path):
    path = tmp_path / "crank.xml"
    path.write_text(crank('<joint name="j" type="slide" axis="0 0 1"/>'))
    imported = import_mjcf(path)
    (said,) = findings(imported, "length-range")
    extent = float(said.message.rsplit(" by ", 1)[1].removesuffix(" m"))
    longest = math.hypot(0.2, 0.5 + extent)
    shortest = 0.2 if extent > 0.5 else math.hypot(0.2, 0.5 - extent)
    low, high = re.search(r"; ([\d.]+) \.\. ([\d.]+) m is taken", said.message).groups()
    assert (float(low), float(high)) == pytest.approx((shortest, longest), rel=0.01)


def test_joints_that_a_constraint_holds_are_not_moved_for_the_length_range(tmp_path):
    path = tmp_path / "crank.xml"
    text = crank('<joint name="j" axis="0 1 0"/><joint name="k" type="slide" axis="0 0 1"/>')
    path.write_text(text.replace(
        "</mujoco>", '<equality><joint joint1="k" polycoef="0.1 0 0 0 0"/></equality></mujoco>'
    ))  # fmt: skip
    hill = import_mjcf(path).robot.muscles[0].actuator
    # the slide is after the hinge, so the site turns about the joint in 0.2, 0.1
    reach = math.hypot(0.2, 0.1)
    assert hill.optimal_fiber_length == pytest.approx(2 * reach / 0.8, rel=0.01)


@pytest.mark.parametrize(("text", "lines"), [("0 -110", [4]), ("-110 0", []), ("0 0", [])])
def test_a_range_the_wrong_way_round_is_named(tmp_path, text, lines):
    path = tmp_path / "crank.xml"
    path.write_text(crank(f'\n<joint name="j" axis="0 1 0" range="{text}"/>'))
    imported = import_mjcf(path)
    said = findings(imported, "range")
    assert [item.line for item in said] == lines
    for item in said:
        assert item.subject == "joint 'j'"
        assert 'expected: range="-110 0"' in item.message
        assert imported.robot.joint("j").axes[0].lower == -math.inf


def test_the_folder_reads_back_with_the_same_numbers(arm, tmp_path):
    imported = import_mjcf(arm)
    folder = write_imported(imported, tmp_path / "out")
    robot = load(folder)
    assert robot.tree.position_names == imported.robot.tree.position_names
    np.testing.assert_allclose(robot.tree.home, imported.robot.tree.home, atol=1e-12)
    ours, theirs = (make_dynamics(r, "numeric") for r in (robot, imported.robot))
    a, b = (d.update(robot.tree.home, np.zeros(robot.tree.nv)) for d in (ours, theirs))
    np.testing.assert_allclose(a.muscle_lengths, b.muscle_lengths, atol=1e-12)
    np.testing.assert_allclose(a.muscle_jacobian, b.muscle_jacobian, atol=1e-12)
    change = imported.sections[1].data
    assert 0.0 < change < 1e-5  # links between the joints of one body have a small mass in SDF
    np.testing.assert_allclose(a.mass_matrix, b.mass_matrix, rtol=1e-4, atol=1e-5)
    vertices = [
        [float(x) for x in line.split()[1:]]
        for line in (folder / "meshes" / "wedge.obj").read_text().splitlines()
        if line.startswith("v")
    ]
    wedge = next(v for v in robot.link("upper").visuals if isinstance(v.geometry, Mesh))
    placed = np.array([wedge.pose.apply(v) for v in vertices])
    for corner in ((0, 0, 0), (0.05, 0, 0), (0, 0.1, 0), (0, 0, 0.1)):
        apart = placed - np.array(corner) - np.array([0.1, 0.0, 0.1])
        assert np.min(np.linalg.norm(apart, axis=1)) < 1e-7


WRAPPED = [name for name in known_models() if not has_rods(find_model(name))]


@pytest.mark.parametrize("name", WRAPPED)
def test_from_ours_to_mjcf_and_back_the_numbers_are_the_same(name, tmp_path):
    robot = load(name)
    path = tmp_path / f"{name}.xml"
    path.write_text(exported_mjcf(robot).text)
    back = import_mjcf(path, all_tendons=True).robot
    tree, other = robot.tree, back.tree
    assert (tree.nq, tree.nv) == (other.nq, other.nv)
    np.testing.assert_allclose(other.home, tree.home, atol=1e-12)
    np.testing.assert_allclose(other.lower, tree.lower, atol=1e-9)
    np.testing.assert_allclose(other.upper, tree.upper, atol=1e-9)
    ours, theirs = make_dynamics(robot, "numeric"), make_dynamics(back, "numeric")
    exact = [i for i, muscle in enumerate(robot.muscles) if is_native(muscle, robot)]
    assert len(robot.muscles) == len(back.muscles)
    rng = np.random.default_rng(5)
    for k in range(3):
        q = tree.home + 0.02 * k * rng.standard_normal(tree.nq)
        qd = rng.standard_normal(tree.nv)
        a, b = ours.update(q, qd), theirs.update(q, qd)
        np.testing.assert_allclose(b.mass_matrix, a.mass_matrix, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(b.gravity, a.gravity, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(b.coriolis, a.coriolis, rtol=1e-9, atol=1e-9)
        lengths, jacobians = (
            (b.muscle_lengths, a.muscle_lengths),
            (
                b.muscle_jacobian,
                a.muscle_jacobian,
            ),
        )
        np.testing.assert_allclose(lengths[0][exact], lengths[1][exact], atol=1e-9)
        np.testing.assert_allclose(jacobians[0][exact], jacobians[1][exact], atol=1e-9)
    frames = {frame.name: frame for frame in back.frames}
    for frame in robot.frames:
        poses = node_pose(robot, frame, tree.home), node_pose(back, frames[frame.name], tree.home)
        np.testing.assert_allclose(poses[1], poses[0], atol=1e-12)
    for old, new in zip(robot.muscles, back.muscles, strict=True):
        if old.takes_tension:
            assert new.tension_min == pytest.approx(old.tension_min, rel=1e-12)
            assert new.tension_max == pytest.approx(old.tension_max, rel=1e-12)


def node_pose(robot, frame, q):
    """Return the pose of a frame in the world, shape (4, 4)."""
    node, offset = robot.tree.link_node[frame.link]
    motion = forward_kinematics(robot.tree, q, np.zeros(robot.tree.nv))
    out = np.eye(4)
    out[:3, :3] = motion.rotation[node] @ offset.rotation @ frame.pose.rotation
    out[:3, 3] = motion.point(node, offset.apply(frame.pose.translation))
    return out


def is_native(muscle, robot):
    """Whether MuJoCo has all surfaces of a muscle as they are."""
    for item in muscle.path:
        if hasattr(item, "axis"):
            return False
        if isinstance(item, Wrap):
            geometry = robot.wrap_surface(item.surface).geometry
            if not isinstance(geometry, Sphere | Cylinder):
                return False
            if isinstance(geometry, Cylinder) and math.isfinite(geometry.length):
                return False
    return True


def test_an_imported_arm_is_controlled(tmp_path):
    path = tmp_path / "musashi.xml"
    path.write_text(exported_mjcf(load("musashi_like")).text)
    robot = load(write_imported(import_mjcf(path), tmp_path / "out"))
    host = build_host(ParameterSet({"dt": 1e-3}, "simulator"), robot)
    loop = make_control_loop(
        "ctc_joint", ParameterSet({"reference": "wiggle"}, "ctc_joint"), robot
    )
    for _ in range(200):
        host.submit(loop.step(host.state))
        host.step()
    assert np.abs(host.state.q - robot.tree.home).max() > 1e-4
    assert np.all(np.isfinite(host.state.q))


def test_frames_of_the_world_are_not_on_a_body_that_is_called_like_their_link(tmp_path):
    path = tmp_path / "frames.xml"
    path.write_text("""<mujoco><worldbody><site name="mark" pos="1 2 3"/>
      <body name="surroundings" pos="9 9 9"><geom size="0.1"/></body>
      <body><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>""")
    robot = import_mjcf(path, frame="mark").robot
    dynamics = make_dynamics(robot, "numeric")
    assert dynamics.operational(np.zeros(1), np.zeros(1)).position.tolist() == [1.0, 2.0, 3.0]
    assert load(write_imported(import_mjcf(path), tmp_path / "out")).frame("mark").link != "mark"


# Command line ------------------------------------------------------------------------------------


def test_the_command_writes_a_folder_and_a_report(arm, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(arm), "-o", str(out), "--json", "--name", "mine", "--frame", "tip"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["name"] == "mine"
    assert report["program"] == "MuJoCo"
    assert Path(report["output"]) == out / "mine"
    assert load(out / "mine").operational_frame == "tip"
    assert main([str(arm), "-o", str(out), "--name", "mine"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([str(arm), "-q"]) == 0
    assert "nothing written" in capsys.readouterr().out


def test_names_that_do_not_exist_are_said_with_those_that_do(arm):
    with pytest.raises(UnknownNameError, match=r"'rest'.*start, home"):
        import_mjcf(arm, keyframe="rest")
    with pytest.raises(UnknownNameError, match="tip"):
        import_mjcf(arm, frame="tap")
    with pytest.raises(CardsError, match="above 0 N"):
        import_mjcf(arm, tension_max=math.nan)
    assert import_mjcf(arm, keyframe="start").robot.home["yaw"] == (0.1,)


BEYOND = """<mujoco>
  <worldbody>
    <body name="a">
      <joint name="j" axis="0 1 0" limited="true" range="0 1" ref="0"/>
      <geom size="0.02" mass="1" pos="0.3 0 0"/>
      <site name="end" pos="0.3 0 0"/>
    </body>
    <geom name="roll" type="cylinder" size="0.05 0.1" pos="0.3 0 0" euler="90 0 0"
      contype="0" conaffinity="0"/>
    <site name="start" pos="-0.2 0 0"/>
  </worldbody>
  <tendon>
    <spatial name="cord">
      <site site="start"/>
      <geom geom="roll"/>
      <site site="end"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="m" tendon="cord" gear="-1" ctrllimited="true" ctrlrange="0 10"/>
  </actuator>
  <keyframe><key name="home" qpos="-1"/></keyframe>
</mujoco>
"""


def test_wraps_are_looked_at_where_the_robot_stands_not_outside_of_its_limits(tmp_path, capsys):
    """At the keyframe the site is outside of the surface, at the limit it is inside."""
    file = tmp_path / "beyond.xml"
    file.write_text(BEYOND)
    assert main([str(file)]) == 0
    alone = capsys.readouterr().out
    assert main([str(file), "-o", str(tmp_path / "out")]) == 0
    written = capsys.readouterr().out
    said = (
        "beyond.xml:13: tendon 'cord': does not wrap over geom 'roll' at home, where an end is 50"
    )
    for output in (alone, written):
        assert said in output
        assert "[inside]" in output
    assert alone.split("nothing written")[0] == written.split("written to")[0]
    path = load(tmp_path / "out" / "beyond").muscles[0].path
    assert [item.free_ends for item in path if isinstance(item, Wrap)] == [True]


@pytest.mark.parametrize(
    ("gear", "reason"),
    [("0", "its gear or its range gives no force"), ("1", "it only pushes")],
)
def test_a_motor_that_cannot_pull_is_left_out_with_the_reason(gear, reason, tmp_path, capsys):
    file = tmp_path / "motor.xml"
    file.write_text(BEYOND.replace('gear="-1"', f'gear="{gear}"'))
    main([str(file)])
    assert f"actuator 'm': left out: {reason}" in capsys.readouterr().out
