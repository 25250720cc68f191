"""Operational spaces become named frames and axes."""

from __future__ import annotations

import numpy as np
import pytest
from caspr_samples import minimal

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.caspr import import_caspr


def entry(kind="position", link=1, offset="0 0 1", axes="xyz", name="hand"):
    point = f"<offset>{offset}</offset>" if offset else ""
    return (
        f'<{kind} marker_id="1" name="{name}"><link>{link}</link>{point}'
        f'<axes active_axes="{axes}"/></{kind}>'
    )


def spaces(sets, default=""):
    body = "".join(f'<operational_set id="{k}">{v}</operational_set>' for k, v in sets.items())
    return f'<operational_spaces default_operational_set="{default}">{body}</operational_spaces>'


def load(folder, text):
    return import_caspr(minimal(folder, operational_spaces=text), feasibility=False)


def test_frame_is_at_the_offset_from_the_joint(tmp_path):
    model = load(tmp_path, spaces({"ee": entry(offset="0.1 0.2 0.9")}, "ee"))
    assert model.robot.operational_frame == "hand"
    state = make_dynamics(model.robot, "numeric").operational(np.zeros(1), np.zeros(1))
    assert state.position == pytest.approx([0.1, 0.2, 0.9])
    assert model.operational_space("ee").entries[0].axes == "xyz"
    with pytest.raises(UnknownNameError, match="Known: ee"):
        model.operational_space("x")


def test_axes_keep_their_order_and_convention(tmp_path):
    sets = {
        "a": entry("orientation_euler_xyz", axes="ga", offset="", name="a"),
        "b": entry("pose_euler_xyz", axes="zxb", name="b") + entry(axes="y", name="c"),
    }
    model = load(tmp_path, spaces(sets, "b"))
    a, b = model.operational_spaces
    assert [(e.axes, e.angles) for e in a.entries] == [("ga", "intrinsic_xyz")]
    assert [(e.axes, e.angles) for e in b.entries] == [("zxb", "fixed_xyz"), ("y", "none")]
    assert (a.size, b.size) == (2, 4)
    assert model.robot.operational_frame == "b"
    assert [f.name for f in model.robot.frames] == ["a", "b", "c"]


def test_default(tmp_path):
    two = {"a": entry(name="a"), "b": entry(name="b", offset="0 0 2")}
    assert load(tmp_path, spaces(two)).robot.operational_frame is None
    assert load(tmp_path, spaces(two, "b")).robot.operational_frame == "b"
    only = load(tmp_path, spaces({"a": entry(name="a")}))
    assert only.robot.operational_frame == "a"
    assert "no-default-operational-set" in [item.code for item in only.report.findings]


def test_names_do_not_collide_with_links(tmp_path):
    model = load(tmp_path, spaces({"a": entry(name="link 1"), "b": entry(name="")}, "a"))
    assert [f.name for f in model.robot.frames] == ["link_1_2", "b"]
    (finding,) = [item for item in model.report.findings if item.code == "duplicate-frame"]
    assert finding.source.endswith("robot_operational_spaces.xml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (spaces({"a": entry(axes="xx")}), "each at most once"),
        (spaces({"a": entry(axes="abg")}), "letters out of 'xyz'"),
        (spaces({"a": entry("orientation_euler_xyz", axes="x")}), "letters out of 'abg'"),
        (spaces({"a": entry(axes="")}), "no attribute 'active_axes'"),
        (spaces({"a": entry("velocity")}), "position, orientation_euler_xyz, pose_euler_xyz"),
        (spaces({"a": entry(link=0)}), "1 to 1"),
        (spaces({"a": entry(link=2)}), "1 to 1"),
        (spaces({"a": ""}), "at least one of position"),
        (spaces({"a": entry()}, "b"), "'b' does not exist"),
        (spaces({"a": entry(offset="0 0")}), "3 numbers"),
        (spaces({"": entry()}), "no attribute 'id'"),
        ("<spaces/>", "<operational_spaces>"),
    ],
)
def test_refusals_name_the_place(tmp_path, text, words):
    with pytest.raises(DescriptionError) as info:
        load(tmp_path, text)
    assert words in str(info.value)
    assert info.value.source.endswith("robot_operational_spaces.xml")
    assert info.value.line == 1
