"""Trajectories: kinds, times, orders of coordinates, rotations, files, what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import PENDULUM, TWO_CABLES, bodies, link, minimal
from scipy.spatial.transform import Rotation, Slerp

from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats.caspr import import_caspr, write_import
from cards_core.formats.caspr.trajectories import KINDS
from cards_core.trajectories import TrajectoryError, load_references

PLANE = bodies(link(1, "P_XZ", q="0 0", q_min="-9 -9", q_max="9 9"))
BALL = {"q": "0 0 0", "q_min": "-3 -3 -3", "q_max": "3 3 3"}


def point(q, time=None, *, qd=None, qdd=None, letter="q", extra=""):
    attribute = "" if time is None else f'time="{time}"'
    out = f"<point {attribute} {extra}><{letter}>{q}</{letter}>"
    out += "" if qd is None else f"<{letter}_dot>{qd}</{letter}_dot>"
    out += "" if qdd is None else f"<{letter}_ddot>{qdd}</{letter}_ddot>"
    return out + "</point>"


def spline(kind, *points, definition="relative", name="a", step="0.01", extra=""):
    return (
        f'<{kind}_trajectory id="{name}" time_definition="{definition}" time_step="{step}" '
        f"{extra}><points>{''.join(points)}</points></{kind}_trajectory>"
    )


def file_of(*joint, operational=()):
    return (
        f"<trajectories><joint_trajectories>{''.join(joint)}</joint_trajectories>"
        f"<operational_trajectories>{''.join(operational)}</operational_trajectories>"
        "</trajectories>"
    )


def load(folder, text, **parts):
    return import_caspr(minimal(folder, trajectories=text, **parts), feasibility=False)


def load_all(model, folder):
    names = model.robot.tree.position_names
    return load_references(folder / "trajectories.yaml", names=names)


def skipped(model):
    return [item for item in model.report.warnings if item.code == "trajectory-skipped"]


def test_relative_and_absolute_times(tmp_path):
    points = [point("0"), point("1", 2), point("0.5", 3)]
    relative = load(tmp_path / "r", file_of(spline("linear_spline", *points)))
    absolute = load(
        tmp_path / "a", file_of(spline("linear_spline", *points, definition="absolute"))
    )
    assert relative.trajectory("a").times.tolist() == [0, 2, 5]
    assert absolute.trajectory("a").times.tolist() == [0, 2, 3]
    # half way through the second segment
    assert relative.reference("a")(3.5)[0] == pytest.approx([0.75])
    assert absolute.reference("a")(2.5)[0] == pytest.approx([0.75])
    assert absolute.reference("a")(2.5)[1] == pytest.approx([-0.5])


def test_cubic(tmp_path):
    text = spline("cubic_spline", point("0 1", qd="1 0"), point("1 0", 2, qd="0 -1"))
    model = load(tmp_path, file_of(text), bodies=PLANE)
    reference = model.reference("a")
    for t, q, qd in ((0, [0, 1], [1, 0]), (2, [1, 0], [0, -1])):
        y, yd, _ = reference(t)
        assert y == pytest.approx(q)
        assert yd == pytest.approx(qd)
    # a cubic: third differences of equidistant samples are constant
    samples = [reference(t)[0] for t in np.linspace(0, 2, 9)]
    third = np.diff(samples, 3, axis=0)
    assert third == pytest.approx(np.broadcast_to(third[0], third.shape), abs=1e-12)


def test_quintic(tmp_path):
    text = spline("quintic_spline", point("0", qd="1", qdd="2"), point("3", 2, qd="-1", qdd="0.5"))
    reference = load(tmp_path, file_of(text)).reference("a")
    assert np.ravel(reference(0)) == pytest.approx([0, 1, 2])
    assert np.ravel(reference(2)) == pytest.approx([3, -1, 0.5])
    fifth = np.diff([reference(t)[0] for t in np.linspace(0, 2, 12)], 5, axis=0)
    assert fifth == pytest.approx(np.broadcast_to(fifth[0], fifth.shape), abs=1e-12)


def test_average_velocity(tmp_path):
    """The velocity inside is the mean of the two secants."""
    kind = "cubic_spline_average_velocity"
    text = spline(kind, point("0", qd="0.3"), point("2", 1), point("3", 2, qd="0"))
    reference = load(tmp_path, file_of(text)).reference("a")
    assert reference(1.0)[1] == pytest.approx([(2 / 1 + 1 / 2) / 2])
    assert reference(0.0)[1] == pytest.approx([0.3])


def test_parabolic_blend(tmp_path):
    text = spline(
        "parabolic_blend",
        point("0"),
        point("1", 5),
        point("0", 5, extra='blend_time="1.5"'),
        extra='blend_time_default="0.5"',
    )
    model = load(tmp_path, file_of(text))
    assert model.trajectory("a").blend_times.tolist() == [0.5, 1.5]
    reference = model.reference("a")
    assert reference(2.5)[1] == pytest.approx([1 / 4.5])  # d / (T - tb)
    assert reference(7.5)[1] == pytest.approx([-1 / 3.5])
    assert reference(0.2)[2] == pytest.approx([1 / (0.5 * 4.5)])
    assert reference(4.0)[2] == pytest.approx([0])


def test_our_order_of_coordinates(tmp_path):
    """S_FIXED_XYZ is the chain g, b, a; a tree is walked depth first."""
    text = bodies(
        link(1, "P_X"), link(2, "S_FIXED_XYZ", parent=1, **BALL), link(3, "P_X", parent=2),
        link(4, "P_XY", parent=1, q="0 0", q_min="-9 -9", q_max="9 9"),
    )  # fmt: skip
    values = "1 0.1 0.2 0.3 5 6 7"
    motion = spline("linear_spline", point("0 0.1 0.2 0.3 0 0 0"), point(values, 1), name="m")
    model = load(tmp_path, file_of(motion), bodies=text)
    assert model.reference("m")(1.0)[0] == pytest.approx([1, 0.3, 0.2, 0.1, 5, 6, 7])
    assert model.to_caspr_q(model.reference("m")(1.0)[0]) == pytest.approx(
        [float(x) for x in values.split()]
    )
    names = model.reference("m").coordinate_names
    assert names == model.robot.tree.position_names
    # the file says the same
    folder = write_import(model, tmp_path / "out")
    back = load_all(model, folder)["m"]
    for t in (0.0, 0.3, 1.0):
        assert back(t)[0] == pytest.approx(model.reference("m")(t)[0], abs=1e-14)


@pytest.mark.parametrize(("kind", "sequence"), [("S_EULER_XYZ", "XYZ"), ("S_FIXED_XYZ", "xyz")])
def test_rotations_turn_about_one_axis(tmp_path, kind, sequence):
    """Against SciPy's Slerp: a rotation at constant angular velocity."""
    ends = np.array([[0.4, -0.3, 0.2], [-0.5, 0.6, 0.9]])
    rows = [" ".join(map(str, row)) for row in ends.tolist()]
    text = file_of(spline("linear_spline", point(rows[0]), point(rows[1], 2)))
    model = load(tmp_path, text, bodies=bodies(link(1, kind, **BALL)))
    reference = model.reference("a")
    expected = Slerp([0, 2], Rotation.from_euler(sequence, ends))
    for t in (0.0, 0.5, 1.3, 2.0):
        angles = model.to_caspr_q(reference(t)[0])
        found = Rotation.from_euler(sequence, angles)
        assert (found.inv() * expected(t)).magnitude() < 1e-9
    middle = model.to_caspr_q(reference(1.0)[0])
    assert np.abs(middle - ends.mean(axis=0)).max() > 1e-3  # not component by component


def test_half_a_turn_has_no_axis(tmp_path):
    rows = ["0 0 0", f"{np.pi} 0 0"]
    text = file_of(spline("linear_spline", point(rows[0]), point(rows[1], 2)))
    ball = bodies(link(1, "S_EULER_XYZ", q="0 0 0", q_min="-4 -4 -4", q_max="4 4 4"))
    model = load(tmp_path, text, bodies=ball)
    assert "rotation-componentwise" in [item.code for item in model.report.warnings]
    assert model.trajectory("a").componentwise
    assert model.reference("a")(1.0)[0] == pytest.approx([np.pi / 2, 0, 0])
    folder = write_import(model, tmp_path / "out")
    assert load_all(model, folder)["a"](1.0)[0][0] == pytest.approx(np.pi / 2)


def test_caspr_sampling(tmp_path):
    """0.4 s does not divide 1 s: CASPR reaches the end at the last sample, 0.8 s."""
    text = file_of(spline("linear_spline", point("0"), point("1", 1), step="0.4"))
    model = load(tmp_path, text)
    assert model.reference("a")(0.8)[0] == pytest.approx([0.8])
    assert model.reference("a", caspr_sampling=True)(0.8)[0] == pytest.approx([1.0])
    free = load(tmp_path, text.replace('time_step="0.4"', ""))
    with pytest.raises(TrajectoryError, match="time_step"):
        free.reference("a", caspr_sampling=True)


OPERATIONAL = """<operational_spaces default_operational_set="tip"><operational_set id="tip">
<position marker_id="1" name="tip"><link>1</link><offset>0 0 1</offset>
<axes active_axes="xz"/></position></operational_set></operational_spaces>"""


def test_operational_trajectory(tmp_path):
    motion = spline("linear_spline", point("0 1", letter="y"), point("1 0", 1, letter="y"))
    model = load(tmp_path, file_of(operational=[motion]), operational_spaces=OPERATIONAL)
    item = model.trajectory("a")
    assert (item.space, item.operational_space) == ("operational", "tip")
    assert model.reference("a")(0.5)[0] == pytest.approx([0.5, 0.5])
    assert model.reference("a").space == "operational"


def test_files_by_operational_space(tmp_path):
    """A controller reads a file whole: all its operational trajectories have the same axes."""
    more = OPERATIONAL.replace(
        "</operational_spaces>",
        """<operational_set id="up"><position marker_id="1" name="up"><link>1</link>
        <axes active_axes="z"/></position></operational_set></operational_spaces>""",
    )
    two = spline("linear_spline", point("0 1", letter="y"), point("1 0", 1, letter="y"), name="t")
    one = spline("linear_spline", point("1", letter="y"), point("0", 1, letter="y"), name="u")
    model = load(tmp_path, file_of(GOOD, operational=[two, one]), operational_spaces=more)
    folder = write_import(model, tmp_path / "out")
    read = {
        path.name: load_references(path, names=model.robot.tree.position_names)
        for path in folder.glob("*.yaml")
    }
    found = {name: sorted(references) for name, references in read.items()}
    assert found == {"trajectories.yaml": ["a", "t"], "trajectories_up.yaml": ["u"]}


def test_three_coordinates_for_two_axes(tmp_path):
    motion = spline("linear_spline", point("0 7 1", letter="y"), point("1 8 0", 1, letter="y"))
    model = load(tmp_path, file_of(operational=[motion]), operational_spaces=OPERATIONAL)
    assert model.trajectory("a").positions.tolist() == [[0, 1], [1, 0]]
    assert "trajectory-axes" in [item.code for item in model.report.warnings]


def test_operational_trajectory_without_space(tmp_path):
    motion = spline("linear_spline", point("0 1", letter="y"), point("1 0", 1, letter="y"))
    model = load(tmp_path, file_of(operational=[motion]))
    assert model.trajectories == ()
    assert "none" in skipped(model)[0].message


def samples(labels, values):
    """Lines of a .traj file; ``labels`` of the three groups, ``t`` before them or not."""
    lines = ["time_step,0.5"]
    for k, (q, v, a) in enumerate(values):
        groups = [f"{label},{x}" for label, x in zip(labels[-3:], (q, v, a), strict=True)]
        time = [f"t,{0.5 * k}"] if labels[0] == "t" else []
        lines.append(",".join(time + groups))
    return "\n".join(lines)


@pytest.mark.parametrize("labels", ["tpva", "qva"])
def test_file_trajectory(tmp_path, labels):
    text = file_of('<file_trajectory id="f" filename="motion.traj"/>')
    folder = minimal(tmp_path, trajectories=text)
    (folder / "motion.traj").write_text(samples(labels, [(0, 0, 2), (0.25, 1, 2), (1, 2, 2)]))
    model = import_caspr(folder, feasibility=False)
    assert not skipped(model)
    reference = model.reference("f")
    assert reference.duration == 1.0
    assert np.ravel(reference(0.75)) == pytest.approx([0.75**2, 1.5, 2])
    out = write_import(model, tmp_path / "out")
    assert (out / "f.traj").is_file()
    back = load_all(model, out)["f"]
    assert np.ravel(back(0.75)) == pytest.approx([0.75**2, 1.5, 2])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("", "no time step"),
        ("time_step,0\n", "no time step"),
        ("time_step,0.1\nq,1,v,1,a,1", "1 samples"),
        ("time_step,0.1\nq,1,v,1,a,1\nq,1,2,v,1,a,1", "not a sample"),
        ("time_step,0.1\nq,1,v,1,a,1\nq,x,v,1,a,1", "not a finite number"),
        ("time_step,0.1\nt,0,p,1,v,1,a,1\nt,0.3,p,1,v,1,a,1", "multiple of the time step"),
        ("time_step,0.1\nt\nt", "not a sample"),
    ],
)
def test_bad_file_trajectory(tmp_path, content, words):
    text = file_of('<file_trajectory id="f" filename="motion.traj"/>')
    folder = minimal(tmp_path, trajectories=text)
    if content is not None:
        (folder / "motion.traj").write_text(content)
    model = import_caspr(folder, feasibility=False)
    assert model.trajectories == ()
    assert words in skipped(model)[0].message


def test_file_trajectory_stays_in_its_folder(tmp_path):
    text = file_of('<file_trajectory id="f" filename="../../secret.traj"/>')
    folder = minimal(tmp_path / "a" / "b", trajectories=text)
    (tmp_path / "secret.traj").write_text(samples("qva", [(0, 0, 0), (1, 1, 1)]))
    assert skipped(import_caspr(folder, feasibility=False))


GOOD = spline("linear_spline", point("0"), point("1", 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('time="1"', ""), "no attribute 'time'"),
        (('time="1"', 'time="0"'), "a positive duration"),
        (('time="1"', 'time="-1"'), "a positive duration"),
        (('time="1"', 'time="nan"'), "not finite"),
        (("<q>1</q>", "<q>1 2</q>"), "1 numbers"),
        (("<q>1</q>", "<q></q>"), "1 numbers"),
        (("<q>0</q>", "<q>0 1</q>"), "2 numbers"),
        (("<q>1</q>", ""), "<q>"),
        (("relative", "later"), "relative or absolute"),
        (('id="a"', ""), "no attribute 'id'"),
        (("linear_spline", "cubic_spline"), "<q_dot>"),
        (("linear_spline", "parabolic_blend"), "blend_time_default"),
        (('<point time="1" >', '<point time="1" >x'), None),
    ],
)
def test_a_bad_trajectory_is_left_out_by_name(tmp_path, change, words):
    bad = GOOD.replace(*change)
    other = spline("linear_spline", point("0"), point("1", 1), name="other")
    model = load(tmp_path, file_of(bad, other))
    if words is None:  # stray text is harmless
        assert [item.name for item in model.trajectories] == ["a", "other"]
        return
    assert [item.name for item in model.trajectories] == ["other"]
    (finding,) = skipped(model)
    assert words in finding.message
    assert finding.line == 1
    assert finding.source.endswith("robot_trajectories.xml")


def test_all_points_have_as_many_coordinates_as_the_robot(tmp_path):
    text = spline("linear_spline", point("0 0"), point("1 1", 1))
    assert "points have 2 coordinates" in skipped(load(tmp_path, file_of(text)))[0].message


def test_blend_time_must_fit(tmp_path):
    text = spline("parabolic_blend", point("0"), point("1", 1), extra='blend_time_default="0.5"')
    assert "less than half" in skipped(load(tmp_path, file_of(text)))[0].message


def test_same_id_twice(tmp_path):
    model = load(tmp_path, file_of(GOOD, GOOD))
    assert [item.name for item in model.trajectories] == ["a", "a_2"]
    assert [item.original_name for item in model.trajectories] == ["a", "a"]


def test_names_that_yaml_would_misread(tmp_path):
    names = ["1", "no", "3.5", "a: b"]
    motions = [spline("linear_spline", point("0"), point("1", 1), name=n) for n in names]
    model = load(tmp_path, file_of(*motions))
    folder = write_import(model, tmp_path / "out")
    assert list(load_all(model, folder)) == ["1", "no", "3.5", "a_b"]


def test_unknown_name(tmp_path):
    with pytest.raises(UnknownNameError, match="Known: a"):
        load(tmp_path, file_of(GOOD)).reference("b")


def test_unknown_kind_is_named(tmp_path):
    model = load(tmp_path, file_of(GOOD.replace("linear_spline", "septic_spline")))
    assert model.trajectories == ()
    assert "septic_spline_trajectory" in " ".join(str(item) for item in model.report.warnings)
    assert "septic_spline_trajectory" not in KINDS


def test_files_may_be_missing(tmp_path):
    folder = minimal(tmp_path)
    (folder / "robot_trajectories.xml").unlink()
    (folder / "robot_operational_spaces.xml").unlink()
    model = import_caspr(folder)
    assert [item.code for item in model.report.findings] == ["file-missing", "file-missing"]
    (folder / "robot_cables.xml").unlink()
    with pytest.raises(CardsError, match="robot_cables"):
        import_caspr(folder)


def test_mapping_of_files(tmp_path):
    folder = minimal(tmp_path)
    files = {
        "bodies": folder / "robot_bodies.xml",
        "cables": str(folder / "robot_cables.xml"),
    }
    assert import_caspr(files).name == "robot"
    assert import_caspr(folder / "robot_bodies.xml").name == "robot"
    with pytest.raises(UnknownNameError, match="operational_spaces"):
        import_caspr({**files, "spaces": folder})
    assert PENDULUM.count("link_rigid") == 2
    assert TWO_CABLES.count("<attachment>") == 4
