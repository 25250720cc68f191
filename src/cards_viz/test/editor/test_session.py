"""The editor without a browser: what clicks, drags and buttons do."""

import numpy as np
import pytest

from cards_core.editing import operations as edits
from cards_core.editing import surfaces as shapes
from cards_core.editing.editor import MuscleEditor
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Ellipsoid,
    Torus,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.spatial import Pose, rpy_matrix
from cards_viz.editor.fields import number_of, shown
from cards_viz.editor.muscle_form import typed_position
from cards_viz.editor.pose_form import home_values, pose_of
from cards_viz.editor.session import ADD_POINT, ADD_SURFACE, SELECT, EditorSession, Selection
from cards_viz.editor.surface_form import _surface_of, _surface_values


@pytest.fixture
def session(tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(find_model("wrap_elbow").read_bytes())
    return EditorSession(MuscleEditor(file), 0.6)


def world(session, link, place):
    return session.link_pose(link).apply(np.array(place))


def test_clicks_make_a_muscle_over_a_surface(session):
    seen = []
    session.tell = seen.append
    session.new_muscle()
    assert session.view().mode == ADD_POINT
    session.click_link("humerus", world(session, "humerus", (0.03, 0.0, 0.2)))
    session.click_surface("trochlea")
    assert session.view().robot is session.editor.robot
    assert len(session.view().robot.muscles) == 3  # not finished yet
    session.click_link("forearm", world(session, "forearm", (0.03, 0.01, -0.1)))
    muscle = session.view().robot.muscles[3]
    assert [type(item) for item in muscle.path] == [ViaPoint, Wrap, ViaPoint]
    assert muscle.path[2].position == pytest.approx((0.03, 0.01, -0.1), abs=1e-6)
    # the next click goes behind the selected point
    session.select(Selection(muscle.name, 0))
    session.click_link("humerus", world(session, "humerus", (0.03, 0.0, 0.15)))
    assert session.view().selection == Selection(muscle.name, 1)
    assert session.view().muscle.path[1].position[2] == pytest.approx(0.15)
    assert len(seen) >= 6
    assert seen[-1].muscle is session.view().muscle


def test_a_click_without_a_muscle_says_what_to_do(session):
    session.select(Selection())
    session.set_mode(ADD_POINT)
    with pytest.raises(CardsError, match="'New muscle'"):
        session.click_link("humerus", np.zeros(3))
    session.set_mode(SELECT)
    session.click_link("humerus", np.zeros(3))
    assert not session.editor.unsaved
    for command in (session.remove_muscle, session.remove_element, session.remove_surface):
        with pytest.raises(CardsError, match="is selected"):
            command()


def test_drags_are_one_step_and_never_leave_what_cannot_be(session):
    session.select(Selection("biceps", 0))
    before = session.editor.block
    start = session.point_place()
    session.drag_point("start", start)
    for x in np.linspace(0.0, 0.02, 9):
        session.drag_point("update", start + np.array([0.0, x, 0.0]))
        assert session.view().dragging
    inside = world(session, "humerus", (0.0, 0.0, 0.0))
    session.drag_point("update", inside)
    assert "inside wrap surface 'trochlea'" in session.view().message
    assert session.point_place() == pytest.approx(start + np.array([0.0, 0.02, 0.0]), abs=2e-6)
    session.drag_point("end", inside)
    assert not session.view().dragging
    assert session.point_place() == pytest.approx(start + np.array([0.0, 0.02, 0.0]), abs=2e-6)
    session.undo()
    assert session.editor.block is before


def test_a_handle_that_does_not_move_changes_nothing(session):
    block = session.editor.block
    session.pose(pose_of(session.tree, np.array([0.7])))
    for k in range(3):
        for selection in (Selection("biceps", k), Selection("triceps", k)):
            session.select(selection)
            if (place := session.point_place()) is not None:
                for phase in ("start", "update", "end"):
                    session.drag_point(phase, place)
    session.select(Selection(surface="trochlea"))
    surface = session.view().surface
    pose = session.link_pose(surface.link) @ surface.pose
    for phase in ("start", "update", "end"):
        session.drag_surface(phase, pose)
        session.drag_radius(phase, surface.geometry.radius + 1e-9)
    assert session.editor.block is block
    assert session.editor.undoable is None


def test_a_drag_ends_with_its_page_or_with_undo(session):
    session.select(Selection("biceps", 0))
    start = session.point_place()
    session.drag_point("start", start)
    session.drag_point("update", start + np.array([0.0, 0.01, 0.0]))
    session.let_go()  # the page is gone
    assert not session.view().dragging
    assert session.editor.undoable == "move point 1 of 'biceps'"
    session.drag_point("start", start)
    session.drag_point("update", start + np.array([0.0, 0.02, 0.0]))
    session.undo()  # with the keyboard, while the mouse is held
    session.drag_point("update", start + np.array([0.0, 0.03, 0.0]))
    session.drag_point("end", start + np.array([0.0, 0.03, 0.0]))
    assert session.editor.undoable is None
    assert session.point_place() == pytest.approx(start, abs=1e-6)


def test_points_are_attached_where_they_are(session):
    session.select(Selection("biceps", 0))
    place = session.point_place()
    for link in ("forearm", WORLD, "humerus"):
        session.attach(link)
        assert session.view().muscle.path[0].link == link
        assert session.point_place() == pytest.approx(place, abs=1e-6)
    session.select(Selection("biceps", 1))
    with pytest.raises(CardsError, match="by its surface"):
        session.attach("forearm")


def test_points_come_between_and_change_places(session):
    session.select(Selection("biceps", 0))
    ends = [session._place(session.view().muscle, i) for i in (0, 2)]
    session.insert_point()
    assert session.view().selection.element == 1
    assert session.point_place() == pytest.approx(np.mean(ends, axis=0), abs=1e-6)
    session.move_element(-1)
    assert session.view().selection.element == 0
    with pytest.raises(CardsError, match="no path element"):
        session.move_element(-1)
    session.remove_element()
    assert len(session.view().muscle.path) == 3


def test_the_other_side_of_a_surface(session):
    session.select(Selection("biceps", 1))
    side = session.view().muscle.path[1].side
    lengths = [session.length_of(session.view().muscle)]
    session.flip_side()
    lengths.append(session.length_of(session.view().muscle))
    assert session.view().muscle.path[1].side == pytest.approx(-side)
    assert lengths[1] > lengths[0]
    # without a side: against the shorter way
    session.new_muscle()
    for link, z in (("humerus", 0.2), ("forearm", -0.1)):
        session.click_link(link, world(session, link, (0.03, 0.0, z)))
    session.select(Selection("muscle_1", 0))
    session.wrap("trochlea")
    short = session.length_of(session.view().muscle)
    session.flip_side()
    assert session.length_of(session.view().muscle) > short


def test_surfaces_are_put_on_joints_and_dragged(session):
    session.set_mode(ADD_SURFACE)
    session.click_link("forearm", world(session, "forearm", (0.0, 0.02, -0.1)))
    name = session.view().selection.surface
    assert session.view().mode == SELECT
    assert session.joints_of("forearm") == ["elbow"]
    session.centre_on_joint("elbow")
    surface = session.view().surface
    axis = session.editor.base.joint("elbow").axes[0].axis
    assert surface.pose.translation == pytest.approx((0, 0, 0), abs=1e-12)
    assert surface.pose.rotation[:, 2] == pytest.approx(axis, abs=1e-12)
    session.drag_radius("start", 0.01)
    session.drag_radius("end", 0.015)
    assert session.view().surface.geometry.radius == pytest.approx(0.015)
    pose = Pose(rpy_matrix(0.1, 0.2, 0.3), world(session, "forearm", (0, 0, -0.05)))
    session.drag_surface("start", pose)
    session.drag_surface("end", pose)
    there = session.link_pose("forearm") @ session.view().surface.pose
    assert there.translation == pytest.approx(pose.translation, abs=1e-6)
    assert there.rotation == pytest.approx(pose.rotation, abs=1e-9)
    session.remove_surface()
    assert name not in [s.name for s in session.view().robot.wrap_surfaces]
    assert session.view().selection.surface is None


def test_undo_lets_go_of_what_is_gone(session):
    session.new_muscle()
    name = session.view().selection.muscle
    session.click_link("humerus", world(session, "humerus", (0.03, 0.0, 0.2)))
    session.undo()
    assert session.view().selection == Selection(name)
    session.undo()
    assert session.view().selection.muscle == "capsule"
    session.redo()
    session.redo()
    assert len(session.editor.block.muscles) == 4


def test_what_gets_another_name_stays_selected(session):
    session.select(Selection("biceps", 2))
    session.change("name", lambda b: edits.rename_muscle(b, "biceps", "brachialis"))
    assert session.view().selection.muscle == "brachialis"
    session.undo()
    assert session.view().selection.muscle == "biceps"
    session.redo()
    assert session.view().selection.muscle == "brachialis"
    session.select(Selection(surface="olecranon_fossa"))
    session.change("name", lambda b: shapes.rename_surface(b, "olecranon_fossa", "fossa"))
    assert session.view().selection.surface == "fossa"
    session.undo()
    assert session.view().selection.surface == "olecranon_fossa"


def test_poses_of_the_sliders(session):
    tree = session.tree
    assert pose_of(tree, home_values(tree)) == pytest.approx(tree.home)
    session.pose(pose_of(tree, np.array([0.4])))
    before = session.link_pose("forearm")
    session.pose(pose_of(tree, np.array([1.4])))
    turn = before.rotation.T @ session.link_pose("forearm").rotation
    assert np.trace(turn) == pytest.approx(1.0 + 2.0 * np.cos(1.0))
    ball = load("musashi_like").tree
    values = home_values(ball)
    assert pose_of(ball, values) == pytest.approx(ball.home)


def test_numbers_of_fields():
    assert number_of(" 1e-3 ", "x") == 1e-3
    for text in ("", "1,5", "nan", "inf", "1 2"):
        with pytest.raises(ParameterError, match=r"x \[mm\] is"):
            number_of(text, "x [mm]")
    assert shown(-1e-20 * 0.0) == "0"
    assert shown(None) == ""
    old = np.array([0.1 + 0.2, 1 / 3, -0.0])
    texts = [shown(1e3 * v) for v in old]
    assert np.array_equal(typed_position(texts, old), old)  # to the last digit
    assert typed_position([texts[0], "12.5", texts[2]], old)[1] == 0.0125


@pytest.mark.parametrize(
    "geometry",
    [Cylinder(0.02, 0.1), Cylinder(0.02, np.inf), Ellipsoid(np.array([0.01, 0.02, 0.03])),
     Torus(0.03, 0.01)],
)  # fmt: skip
def test_fields_of_a_surface_say_it_again(geometry):
    surface = WrapSurface("s", "l", geometry, Pose(rpy_matrix(0.1, 0.2, 0.3), np.ones(3) / 3))
    texts = {label: shown(value) for label, value in _surface_values(surface).items()}
    assert _surface_of(surface, texts) == (geometry, surface.pose)
    texts["x [mm]"] = "5"
    new, pose = _surface_of(surface, texts)
    assert pose.translation[0] == 0.005
    assert np.array_equal(pose.rotation, surface.pose.rotation)
    for name, value in vars(new).items():
        assert value == pytest.approx(getattr(geometry, name), rel=1e-9)
    texts["roll [°]"] = "90"
    assert _surface_of(surface, texts)[1].rpy[0] == pytest.approx(np.pi / 2)
