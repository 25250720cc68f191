"""Robots as CASPR files: what comes back, what is refused, what is noted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.caspr import find_models, import_caspr, to_caspr, write_caspr
from cards_core.robot.actuators import Cable, ImpedanceControl, Ligament, Pneumatic
from cards_core.robot.elements import (
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Pulley,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

ROWS = [row for row in find_models(SHARED) if row.files] if SHARED.is_dir() else []
OURS = (
    "bm_arm",
    "ipanema_1",
    "musashi_like",
    "planar_2r",
    "planar_xy",
    "roboy_arm",
    "snake_24",
    "spherical_2s",
)
QUANTITIES = ("mass_matrix", "coriolis", "gravity", "muscle_jacobian", "muscle_lengths")


def back(robot, folder):
    """The robot after export and import."""
    return import_caspr(write_caspr(to_caspr(robot), folder), feasibility=False).robot


def assert_same_motion(robot, other):
    """The same coordinates, with the same M, C, G, L and l wherever they are."""
    first, second = (make_dynamics(item, "numeric") for item in (robot, other))
    for name in ("home", "lower", "upper"):
        assert getattr(first.tree, name).tolist() == getattr(second.tree, name).tolist(), name
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, qd = first.tree.random(rng), rng.normal(size=first.tree.nv)
        a, b = first.update(q, qd), second.update(q, qd)
        for name in QUANTITIES:
            expected, found = getattr(a, name), getattr(b, name)
            scale = np.max(np.abs(expected), initial=0.0)
            assert np.max(np.abs(found - expected), initial=0.0) <= 1e-12 * scale, name


@needs_caspr_models
@pytest.mark.parametrize("row", ROWS, ids=[row.name.replace(" ", "_") for row in ROWS])
def test_robots_of_caspr_come_back(row, tmp_path):
    robot = import_caspr(row.files, feasibility=False).robot
    other = back(robot, tmp_path)
    assert other.name == robot.name
    assert other.operational_frame == robot.operational_frame
    assert [link.name for link in other.links] == [link.name for link in robot.links]
    for link, found in zip(robot.links, other.links, strict=True):
        assert found.inertia.mass == pytest.approx(link.inertia.mass, rel=1e-12)
        for what in ("com", "tensor"):
            expected = getattr(link.inertia, what)
            assert getattr(found.inertia, what) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    for joint, found in zip(robot.joints, other.joints, strict=True):
        for what in ("name", "kind", "parent", "child", "motor"):
            assert getattr(found, what) == getattr(joint, what)
        for what in ("parent_to_joint", "joint_to_child"):
            expected = getattr(joint, what).matrix
            assert getattr(found, what).matrix == pytest.approx(expected, rel=1e-12, abs=1e-15)
        for a, b in zip(joint.axes, found.axes, strict=True):
            assert b.axis == pytest.approx(a.axis, rel=1e-12, abs=1e-15)
    for muscle, found in zip(robot.muscles, other.muscles, strict=True):
        assert found.name == muscle.name
        assert found.kind == muscle.kind
        assert (found.tension_min, found.tension_max) == (muscle.tension_min, muscle.tension_max)
        stiffness = muscle.actuator.stiffness
        if stiffness is None:
            assert found.actuator.stiffness is None
        else:
            assert found.actuator.stiffness == pytest.approx(stiffness, rel=1e-12)
        if muscle.kind == "ligament":
            assert found.actuator.slack_length == muscle.actuator.slack_length
        for a, b in zip(muscle.path, found.path, strict=True):
            assert type(b) is type(a)
            assert b.link == a.link
            assert b.position == pytest.approx(a.position, rel=1e-12, abs=1e-15)
            if isinstance(a, Pulley):
                assert b.radius == a.radius
                assert b.axis == pytest.approx(a.axis, rel=1e-12, abs=1e-15)
    places = {frame.name: frame for frame in other.frames}
    for frame in robot.frames:
        assert places[frame.name].link == frame.link
        assert places[frame.name].pose.matrix == pytest.approx(frame.pose.matrix, abs=1e-15)
    assert_same_motion(robot, other)


@pytest.mark.parametrize("name", OURS)
def test_ours_come_back(name, tmp_path):
    robot = load(name)
    assert_same_motion(robot, back(robot, tmp_path))


# Frames that CASPR does not have ---------------------------------------------------------------


def turned(seed):
    """A pose that leaves nothing parallel to anything."""
    rng = np.random.default_rng(seed)
    return Pose.from_xyz_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-1.5, 1.5, 3))


def direction(seed):
    axis = np.random.default_rng(seed).normal(size=3)
    return axis / np.linalg.norm(axis)


def body(name, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(3, 3))
    tensor = np.diag(rng.uniform(1.0, 1.2, 3)) + 0.02 * (factor + factor.T)
    return Link(name, Inertia(rng.uniform(1.0, 2.0), rng.uniform(-0.2, 0.2, 3), 0.1 * tensor))


def tilted():
    """A branched robot of all kinds of joints, none along a coordinate axis, two links welded."""
    kinds = {"revolute": 1, "prismatic": 1, "universal": 2, "planar": 3, "fixed": 0}
    parents = {"a": "stand", "b": "a", "c": "b", "d": "a", "weld": "d", "e": "weld"}
    order = ("revolute", "universal", "planar", "prismatic", "fixed", "revolute")
    joints = [Joint("stand_joint", "fixed", WORLD, "stand", turned(1), turned(2))]
    home = {}
    for seed, ((child, parent), kind) in enumerate(zip(parents.items(), order, strict=True), 10):
        axes = [direction(seed)]
        if kind in ("universal", "planar"):
            axes.append(np.cross(axes[0], direction(seed + 50)))
            axes[1] /= np.linalg.norm(axes[1])
            axes.append(np.cross(axes[0], axes[1]))
        joints.append(
            Joint(
                f"j_{child}",
                kind,
                parent,
                child,
                turned(seed + 20),
                turned(seed + 30),
                axes=tuple(JointAxis(axis, -1.0, 2.0) for axis in axes[: kinds[kind]]),
                motor=child == "e",
            )
        )
        if kind != "fixed":
            home[f"j_{child}"] = tuple(0.1 * (i + 1) for i in range(kinds[kind]))
    rng = np.random.default_rng(5)
    ends = ["c", "e", "weld", "d"]
    muscles = tuple(
        Muscle(
            f"m_{end}",
            tuple(ViaPoint(link, rng.uniform(-1.0, 1.0, 3)) for link in ("stand", "a", end)),
            tension_min=1.0,
            tension_max=50.0 + i,
        )
        for i, end in enumerate(ends)
    )
    pulley = Pulley("stand", np.array([2.0, 1.0, 2.0]), direction(7), 0.05)
    muscles += (Muscle("m_pulley", (pulley, ViaPoint("e", np.full(3, 0.1)))),)
    links = (Link("stand"), *(body(name, 60 + i) for i, name in enumerate(parents)))
    frames = (Frame("tool", "weld", turned(9)),)
    return Robot("tilted", links, tuple(joints), muscles, frames, "tool", home=home)


def test_frames_and_axes_in_any_direction(tmp_path):
    robot = tilted()
    export = to_caspr(robot)
    other = import_caspr(write_caspr(export, tmp_path), feasibility=False).robot
    assert_same_motion(robot, other)
    assert any(joint.motor for joint in other.joints)
    first, second = (make_dynamics(item, "numeric") for item in (robot, other))
    q = first.tree.random(np.random.default_rng(1))
    v = np.ones(first.tree.nv)
    a, b = first.operational(q, v, "tool"), second.operational(q, v, "tool")
    assert b.position == pytest.approx(a.position, abs=1e-12)
    text = " ".join(export.notes)
    assert "link 'd': 'weld' fixed to it became part of it" in text
    assert "frame 'tool': its axes are left out" in text
    assert "'j_a' (a_joint)" in text


def chain(*motions, between=0.0, child=None):
    """Joints of one axis each through links without mass, as CASPR's joints of several axes."""
    joints, links, parent = [], [], WORLD
    for i, (kind, axis) in enumerate(motions):
        last = i == len(motions) - 1
        links.append(body("end", 3) if last else Link(f"between_{i}"))
        pose = Pose(translation=np.array([0.3 if i == 0 else between, 0.0, 0.0]))
        axes = (JointAxis(np.array(axis, dtype=float), -1.0, 1.0 + i),)
        joints.append(Joint(f"j{i}", kind, parent, links[-1].name, pose, axes=axes))
        parent = links[-1].name
    home = {f"j{i}": (0.1 * (i + 1),) for i in range(len(motions))}
    return Robot("chain", tuple(links), tuple(joints), home=home)


X, Y, Z = np.eye(3).tolist()
SLIDES = [("prismatic", axis) for axis in (X, Y, Z)]
TURNS = [("revolute", axis) for axis in (X, Y, Z)]


@pytest.mark.parametrize(
    ("motions", "types"),
    [
        (TURNS, ["S_EULER_XYZ"]),
        (TURNS[::-1], ["S_FIXED_XYZ"]),
        (SLIDES + TURNS, ["SPATIAL_EULER_XYZ"]),
        (SLIDES, ["T_XYZ"]),
        (SLIDES[::2], ["P_XZ"]),
        ([TURNS[1], *TURNS], ["R_Y", "S_EULER_XYZ"]),
        ([SLIDES[1], ("revolute", [0.0, -1.0, 0.0])], ["P_AXIS", "R_AXIS"]),
    ],
)
def test_chains_become_one_joint(motions, types, tmp_path):
    robot = chain(*motions)
    text = to_caspr(robot).files["bodies"]
    assert [part.split('"')[0] for part in text.split('<joint type="')[1:]] == types
    assert_same_motion(robot, back(robot, tmp_path))


def test_chains_that_are_not_one_joint(tmp_path):
    apart = chain(*TURNS, between=0.1)
    heavy = replace(apart, links=(apart.links[0], body("between_1", 2), apart.links[2]))
    seen = replace(chain(*TURNS), frames=(Frame("f", "between_0"), Frame("g", "between_1")))
    for i, robot in enumerate((apart, heavy, seen)):
        assert "S_EULER" not in to_caspr(robot).files["bodies"]
        assert_same_motion(robot, back(robot, tmp_path / str(i)))


# Muscles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_coordinates_keep_their_order(seed, tmp_path):
    """Trees with links that are fixed to others, declared in any order."""
    rng = np.random.default_rng(seed)
    names = [f"l{i}" for i in range(7)]
    parents = [WORLD if i == 0 else [WORLD, *names[:i]][rng.integers(i + 1)] for i in range(7)]
    kinds = ["fixed" if i != 6 and rng.random() < 0.4 else "revolute" for i in range(7)]
    joints = [
        Joint(
            f"j{i}", kind, parent, name,
            parent_to_joint=turned(10 * seed + i),
            axes=(JointAxis(direction(10 * seed + i)),) if kind == "revolute" else (),
        )
        for i, (kind, parent, name) in enumerate(zip(kinds, parents, names, strict=True))
    ]  # fmt: skip
    order = rng.permutation(7) if seed % 2 else range(7)
    links = tuple(body(name, 10 * seed + i) for i, name in enumerate(names))
    robot = Robot("tree", links, tuple(joints[i] for i in order))
    other = back(robot, tmp_path)
    assert [name.removesuffix("_joint") for name in other.tree.position_names] == [
        f"l{name[1:]}" for name in robot.tree.position_names
    ]
    first, second = (make_dynamics(item, "numeric") for item in (robot, other))
    q, qd = rng.normal(size=(2, robot.tree.nv))
    expected, found = first.update(q, qd), second.update(q, qd)
    np.testing.assert_allclose(found.mass_matrix, expected.mass_matrix, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.coriolis, expected.coriolis, rtol=0, atol=1e-11)


def with_muscle(**changes):
    robot = chain(TURNS[1])
    path = (ViaPoint(WORLD, np.array([0.0, 0.0, 1.0])), ViaPoint("end", np.array([0.5, 0.0, 0.0])))
    return replace(robot, muscles=(replace(Muscle("m", path), **changes),))


def test_elastic_cables_and_ligaments(tmp_path):
    elastic = with_muscle(actuator=Cable(stiffness=700.0), tension_max=90.0)
    found = back(elastic, tmp_path / "1").muscles[0]
    assert found.actuator.stiffness == pytest.approx(700.0, rel=1e-12)
    assert found.tension_max == 90.0
    # above the toe region the tension is k (e - e_t/2)
    ligament = with_muscle(actuator=Ligament(stiffness=300.0, slack_length=0.8, toe_strain=0.1))
    spring = back(ligament, tmp_path / "2").muscles[0].actuator
    for length in (0.9, 1.0):
        expected = 300.0 * (length / 0.8 - 1.0 - 0.05)
        slope = spring.stiffness / spring.slack_length
        assert slope * (length - spring.slack_length) == pytest.approx(expected, rel=1e-12)
    notes = " ".join(to_caspr(ligament).notes)
    assert "at most 3.75 N" in notes  # k e_t / 8
    assert "damping 0.003 N s" in notes


def test_what_is_lost_is_noted():
    lost = {
        "friction along the path": {"friction": 0.1},
        "impedance law": {"control": ImpedanceControl(stiffness=1.0)},
        "pneumatic becomes an ideal cable": {
            "actuator": Pneumatic(thread_length=0.2, turns=1.5, rest_length=0.15)
        },
        "damping of the cable": {"actuator": Cable(stiffness=1.0, damping=0.1)},
    }
    for text, changes in lost.items():
        notes = to_caspr(with_muscle(**changes)).notes
        assert any("'m'" in note and text in note for note in notes), (text, notes)
    assert not any("'m'" in note for note in to_caspr(with_muscle()).notes)
    axis = JointAxis(np.array(Y), effort=5.0, damping=0.3, friction=0.2)
    robot = chain(TURNS[1])
    notes = " ".join(
        to_caspr(replace(robot, joints=(replace(robot.joints[0], axes=(axis,)),))).notes
    )
    for text in ("effort limits", "damping of joints", "friction of joints"):
        assert text in notes
    assert "velocity" not in notes


def test_another_robot_is_refused():
    robot = chain(TURNS[1])
    (joint,) = robot.joints
    moving = Pulley("end", np.array([0.5, 0.0, 0.0]), np.array(Z), 0.05)
    point = ViaPoint(WORLD, np.array([0.0, 0.0, 1.0]))
    refused = {
        "joint 'j0': CASPR has no ball joint": replace(
            robot, joints=(replace(joint, kind="ball", axes=()),), home={}
        ),
        "joint 'j0': CASPR has no free joint": replace(
            robot, joints=(replace(joint, kind="free", axes=()),), home={}
        ),
        "gravity 0 0 -1.62": replace(robot, gravity=np.array([0.0, 0.0, -1.62])),
        "muscle 'm': touches": with_muscle(contact=True),
        "muscle 'm': has a pulley on link 'end'": with_muscle(path=(moving, point)),
        "muscle 'm': all its points": with_muscle(path=(point, point)),
        "no link moves": replace(robot, joints=(replace(joint, kind="fixed", axes=()),), home={}),
        "muscle 'right': wraps over 'wheel'": load("antagonist_joint"),
    }
    for text, item in refused.items():
        with pytest.raises(DescriptionError, match=text):
            to_caspr(item)


# Files -----------------------------------------------------------------------------------------


def test_files_are_whole_or_not_there(tmp_path):
    export = to_caspr(with_muscle())
    folder = write_caspr(export, tmp_path / "out")
    files = sorted(path.name for path in folder.iterdir())
    parts = ("bodies", "cables", "operational_spaces", "trajectories")
    assert files == [f"chain_{part}.xml" for part in parts]
    (row,) = find_models(tmp_path / "out")
    assert (row.name, row.folder, row.problem) == ("chain", "chain", "")
    assert import_caspr(row.files).robot.muscles
    with pytest.raises(CardsError, match=r"chain_bodies\.xml exists already"):
        write_caspr(export, tmp_path / "out")
    write_caspr(export, tmp_path / "out", force=True)
    # what the importer refuses is not put in place
    bad = replace(export, files={**export.files, "cables": "<cables/>"})
    with pytest.raises(DescriptionError):
        write_caspr(bad, tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(CardsError, match="cannot be written"):
        write_caspr(export, tmp_path / "file")


def test_numbers_are_written_with_all_digits():
    text = to_caspr(tilted()).files["bodies"]
    masses = [float(part.split("<")[0]) for part in text.split("<mass>")[1:]]
    robot = tilted()
    assert robot.link("a").inertia.mass in masses
    values = [part for part in text.split(">") if "</location" in part]
    assert all("  " not in value for value in values)  # CASPR splits at single blanks
    assert all(a != b for a, b in pairwise(masses) if a)


@pytest.mark.parametrize("value", [9.80665, 9.832])
def test_gravity_that_differs_a_little_is_noted(value):
    robot = replace(load("planar_2r"), gravity=np.array([0.0, 0.0, -value]))
    (note,) = [text for text in to_caspr(robot).notes if "gravity" in text]
    assert note == f"gravity 0 0 {-value:g} m/s^2 becomes 0 0 -9.81, CASPR's constant"
    for gravity in ([0.0, 0.0, -9.9], [0.1, 0.0, -9.81], [0.0, -9.81, 0.0], [0.0, 0.0, np.nan]):
        with pytest.raises(DescriptionError, match="no file of CASPR states it"):
            to_caspr(replace(robot, gravity=np.array(gravity)))
