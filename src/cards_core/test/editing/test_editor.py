"""Undo, the file, its copies, and what was not saved."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cards_core.editing import operations as edits
from cards_core.editing import surfaces as shapes
from cards_core.editing.block_checks import EditError, drafts
from cards_core.editing.editor import MuscleEditor, discard, unsaved_file
from cards_core.errors import CardsError, ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.formats.sdf.checks import home_poses
from cards_core.formats.sdf.muscle_text import EditedMuscle
from cards_core.robot.actuators import ACTUATORS
from cards_core.robot.elements import Mesh, Sphere, ViaPoint, Wrap, WrapSurface
from cards_core.spatial import Pose


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(find_model("wrap_elbow").read_bytes())
    return file


def moved(editor, x):
    """Move a point of the first muscle."""
    muscle = editor.block.muscles[0].muscle
    place = np.array([x, 0.0, 0.3])
    editor.change(
        f"to {x}", lambda b: edits.place_point(b, muscle.name, 0, muscle.path[0].link, place)
    )


def test_undo_and_redo_walk_through_the_steps(file):
    editor = MuscleEditor(file)
    states = [editor.block]
    for x in (0.03, 0.04, 0.05):
        moved(editor, x)
        states.append(editor.block)
    assert editor.undoable == "to 0.05"
    for state in states[-2::-1]:
        editor.undo()
        assert editor.block is state
    assert editor.undo() is None
    assert not editor.unsaved  # back at what the file says
    for state in states[1:3]:
        editor.redo()
        assert editor.block is state
    moved(editor, 0.06)
    assert editor.redoable is None
    assert editor.robot.muscles[0].path[0].position[0] == 0.06
    assert editor.robot.muscles[1] is editor.base.muscles[1]


def test_a_refused_change_changes_nothing_and_says_where(file):
    editor = MuscleEditor(file)
    before = editor.block
    inside = np.array([0.0, 0.0, 0.0])  # of the surface that the muscle wraps over
    with pytest.raises(EditError, match=r"'biceps'.*inside wrap surface 'trochlea'"):
        editor.change("", lambda b: edits.place_point(b, "biceps", 0, "humerus", inside))
    with pytest.raises(EditError, match="nowhere"):
        editor.change("", lambda b: edits.place_point(b, "biceps", 0, "nowhere", inside))
    for change, words in (
        (lambda b: edits.remove_muscle(b, "bizeps"), "did you mean 'biceps'"),
        (lambda b: edits.rename_muscle(b, "biceps", "triceps"), "there is a muscle 'triceps'"),
        (lambda b: edits.rename_muscle(b, "biceps", "a/b"), "the character '/'"),
        (lambda b: edits.set_tension(b, "biceps", 5.0, 1.0), "0 <= minimum <= maximum"),
        (lambda b: edits.set_tension(b, "biceps", 5.0, np.nan), "0 <= minimum <= maximum"),
        (lambda b: edits.set_friction_speed(b, "biceps", 0.0), "speed greater than 0"),
        (lambda b: edits.set_parameters(b, "biceps", {"pennation_angle": 3.0}), "'biceps'.*1.4"),
        (lambda b: edits.set_parameters(b, "biceps", {"pen": 3.0}), "no parameter named 'pen'"),
        (lambda b: edits.move_element(b, "biceps", 0, 7), "no path element 8"),
        (lambda b: edits.insert_element(b, "biceps", 9, Wrap("trochlea")), "no place 9"),
        (lambda b: edits.set_wrap(b, "biceps", 0, side=None, inside=False), "is no wrap"),
        (lambda b: edits.set_contact_friction(b, "biceps", 0, 0.1), "does not slide"),
        (lambda b: edits.place_point(b, "biceps", 1, "humerus", inside), "is a wrap"),
        (lambda b: shapes.remove_surface(b, "trochlea"), "wrapped over by biceps"),
        (lambda b: shapes.rename_surface(b, "trochlea", "olecranon_fossa"), "already"),
        (lambda b: edits.set_kind(b, "biceps", "rope", 0.1), "no kind of actuator"),
    ):
        with pytest.raises(CardsError, match=words):
            editor.change("", change)
        assert editor.block is before
    editor.change("", lambda b: edits.move_element(b, "biceps", 0, 1))
    assert drafts(editor.block) == ["biceps"]  # it begins on the wrap now


def test_previews_come_and_go(file):
    editor = MuscleEditor(file)
    before = editor.block
    place = np.array([0.02, 0.0, 0.3])
    editor.preview(lambda b: edits.place_point(b, "biceps", 0, "humerus", place))
    assert editor.robot.muscles[0].path[0].position[0] == 0.02
    with pytest.raises(EditError):
        editor.preview(lambda b: edits.place_point(b, "biceps", 0, "humerus", np.zeros(3)))
    assert editor.robot.muscles[0].path[0].position[0] == 0.02  # the last one that could be
    editor.keep("drag")
    assert editor.undoable == "drag"
    editor.undo()
    assert editor.block is before
    editor.keep("nothing")
    assert editor.block is before


def test_saving_keeps_a_copy_of_every_version(file):
    first = file.read_bytes()
    editor = MuscleEditor(file)
    moved(editor, 0.03)
    saved = editor.save()
    assert saved.backup == file.with_name("model.sdf.~1~")
    assert saved.backup.read_bytes() == first
    assert not editor.unsaved
    second = file.read_bytes()
    assert load(file).muscles[0].path[0].position[0] == 0.03
    editor.undo()
    assert editor.unsaved
    saved = editor.save()
    assert saved.backup.read_bytes() == second
    assert file.read_bytes() == first
    assert editor.save().backup is None  # nothing is different
    assert sorted(p.name for p in file.parent.iterdir()) == [
        "model.sdf", "model.sdf.~1~", "model.sdf.~2~",
    ]  # fmt: skip


def test_another_program_is_not_overwritten(file):
    editor = MuscleEditor(file)
    moved(editor, 0.03)
    file.write_bytes(file.read_bytes().replace(b"humerus", b"humerus "))
    theirs = file.read_bytes()
    with pytest.raises(CardsError, match="changed by another program"):
        editor.save()
    assert file.read_bytes() == theirs
    assert editor.unsaved


def test_recovered_changes_keep_what_another_program_wrote(file):
    editor = MuscleEditor(file)
    moved(editor, 0.03)
    theirs = file.read_bytes().replace(b'name="humerus"', b'name="humerus" ')
    file.write_bytes(theirs)
    with pytest.raises(CardsError, match=r"another program .*--recover, which keeps both"):
        editor.save()
    kept = editor.keep_unsaved()
    for _ in range(2):  # it is not forgotten by looking
        again = MuscleEditor(file, recover=True)
        assert again.foreign
        moved(again, 0.04)
        assert again.keep_unsaved() == kept
    again = MuscleEditor(file, recover=True)
    saved = again.save()
    assert saved.foreign
    assert saved.backup.read_bytes() == theirs
    assert load(file).muscles[0].path[0].position[0] == 0.04
    assert b"SHA-256" not in file.read_bytes()
    assert not kept.exists()
    moved(again, 0.05)
    assert not again.save().foreign


@pytest.mark.parametrize("change", ["nothing", "unmarked", "deleted", "output", "new output"])
def test_recovering_knows_whether_the_file_is_what_it_was(file, tmp_path, change):
    output = tmp_path / "out.sdf" if "output" in change else None
    editor = MuscleEditor(file, output=output)
    moved(editor, 0.03)
    kept = editor.keep_unsaved()
    if change == "unmarked":  # as by an older version
        kept.write_bytes(kept.read_bytes().rpartition(b"\n<!-- ./cards")[0])
    if change == "new output":
        output.write_bytes(b"<sdf/>")
    target = file if output is None else output
    again = MuscleEditor(file, output=output, recover=True)
    assert again.foreign == (change in ("unmarked", "new output"))
    before = target.read_bytes() if target.exists() else None
    if change == "deleted":
        target.unlink()
        with pytest.raises(CardsError, match="changed by another program"):
            again.save()
        return
    saved = again.save()
    assert (None if saved.backup is None else saved.backup.read_bytes()) == before
    assert saved.foreign == again.foreign or change in ("unmarked", "new output")
    assert load(target).muscles[0].path[0].position[0] == 0.03


def test_a_full_disk_leaves_the_file_and_says_so(file, monkeypatch):
    editor = MuscleEditor(file)
    moved(editor, 0.03)
    before = file.read_bytes()

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("cards_core.editing.editor.write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        editor.save()
    assert file.read_bytes() == before
    assert editor.unsaved
    assert [p.name for p in file.parent.iterdir()] == ["model.sdf"]


def test_unsaved_changes_are_kept_and_recovered(file):
    before = file.read_bytes()
    editor = MuscleEditor(file)
    assert editor.keep_unsaved() is None
    moved(editor, 0.03)
    editor.change("new", lambda b: edits.add_muscle_draft(b, "draft"))
    kept = editor.keep_unsaved()
    assert kept == unsaved_file(file)
    assert file.read_bytes() == before
    with pytest.raises(CardsError, match=r"model.sdf.unsaved .*--recover .*--discard"):
        MuscleEditor(file)
    again = MuscleEditor(file, recover=True)
    assert again.unsaved
    assert again.robot.muscles[0].path[0].position[0] == 0.03
    assert "draft" not in [m.name for m in again.robot.muscles]
    assert again.save().backup.read_bytes() == before
    assert not kept.exists()
    with pytest.raises(CardsError, match="nothing to recover"):
        MuscleEditor(file, recover=True)
    # undone changes need not be kept
    moved(again, 0.05)
    again.keep_unsaved()
    again.undo()
    assert again.keep_unsaved() is None
    assert not kept.exists()
    with pytest.raises(CardsError, match="nothing to discard"):
        discard(file)


def test_unfinished_muscles_are_not_saved(file):
    editor = MuscleEditor(file)
    editor.change("new", lambda b: edits.add_muscle_draft(b, "half"))
    point = ViaPoint("humerus", np.array([0.1, 0.0, 0.0]))
    editor.change("point", lambda b: edits.insert_element(b, "half", 0, point))
    with pytest.raises(CardsError, match="muscle half is not finished"):
        editor.save()
    assert [m.name for m in editor.robot.muscles] == ["biceps", "triceps", "capsule"]


def test_what_is_impossible_at_home_is_not_saved(file):
    """A point of another link inside of a surface: it depends on the pose."""
    editor = MuscleEditor(file)
    poses = home_poses(editor.base)
    point = editor.base.muscle("capsule").path[0]
    there = poses["forearm"].inverse().apply(poses["humerus"].apply(point.position))
    surface = WrapSurface("ball", "forearm", Sphere(0.01), Pose(translation=there))
    editor.change("ball", lambda b: shapes.add_surface(b, surface))
    editor.change("wrap", lambda b: edits.insert_element(b, "capsule", 1, Wrap("ball")))
    before = file.read_bytes()
    with pytest.raises(CardsError, match=r"model.sdf:\d+: .*inside wrap surface 'ball'"):
        editor.save()
    assert file.read_bytes() == before


@pytest.mark.parametrize("kind", ACTUATORS)
def test_every_actuator_can_be_chosen_and_saved(file, kind):
    editor = MuscleEditor(file)
    editor.change(kind, lambda b: edits.set_kind(b, "biceps", kind, 0.3))
    editor.save()
    muscle = load(file).muscle("biceps")
    assert muscle.kind == kind
    muscle.actuator.check()
    again = MuscleEditor(file)
    other = "cable" if kind != "cable" else "ligament"
    again.change(other, lambda b: edits.set_kind(b, "biceps", other, 0.3))
    again.save()
    assert load(file).muscle("biceps").kind == other


def test_groups_and_laws_of_parameters(file):
    editor = MuscleEditor(file)
    editor.change("", lambda b: edits.set_kind(b, "biceps", "cable", 0.3))
    changes = {"stiffness": 5e3, "motor.resistance": 2.0, "control.stiffness": 100.0}
    editor.change("", lambda b: edits.set_parameters(b, "biceps", changes))
    actuator = editor.robot.muscle("biceps").actuator
    assert (actuator.stiffness, actuator.motor.resistance) == (5e3, 2.0)
    assert editor.robot.muscle("biceps").control.stiffness == 100.0
    # each alone would be refused: a motor's spool without motor
    both = {"motor": None, "stiffness": None}
    editor.change("", lambda b: edits.set_parameters(b, "biceps", both))
    with pytest.raises(ParameterError, match="'spool_radius' needs a 'motor'"):
        editor.change("", lambda b: edits.set_parameters(b, "biceps", {"spool_radius": 0.01}))
    editor.change("", lambda b: edits.set_friction_speed(b, "biceps", 0.02))
    editor.save()
    assert load(file).muscle("biceps").actuator.motor is None
    assert load(file).muscle("biceps").friction_speed == 0.02


def test_a_renamed_surface_keeps_its_muscles(file):
    editor = MuscleEditor(file)
    editor.change("", lambda b: shapes.rename_surface(b, "trochlea", "roll"))
    editor.change("", lambda b: shapes.change_surface(b, "roll", link="forearm"))
    editor.undo()
    editor.save()
    robot = load(file)
    assert [w.surface for w in robot.muscle("biceps").path if isinstance(w, Wrap)] == ["roll"]
    assert b"trochlea" not in file.read_bytes().split(b"<plugin")[1]


def test_shapes_keep_their_radius():
    for kind in shapes.SHAPES:
        geometry = shapes.first_shape(kind, 0.02)
        assert shapes.radius_of(geometry) == pytest.approx(0.02)
        assert shapes.radius_of(shapes.resized(geometry, 0.05)) == pytest.approx(0.05)
        for wrong in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(CardsError, match="greater than 0"):
                shapes.resized(geometry, wrong)
    with pytest.raises(CardsError, match="no hole"):
        shapes.resized(shapes.first_shape("torus", 0.02), 0.001)


def test_robots_of_rods_and_unknown_ones_are_refused(tmp_path):
    with pytest.raises(CardsError, match="robot of rods"):
        MuscleEditor("stewart_gough")
    with pytest.raises(UnknownNameError, match="no model or file named 'roboy_ram'"):
        MuscleEditor("roboy_ram")


def test_output_elsewhere_leaves_the_robot_alone(file, tmp_path):
    before = file.read_bytes()
    out = tmp_path / "other.sdf"
    editor = MuscleEditor(file, output=out)
    moved(editor, 0.03)
    assert editor.save().backup is None
    assert file.read_bytes() == before
    assert load(out).muscles[0].path[0].position[0] == 0.03


MESHES = {"meshes/skin.stl": "skin", "skin.stl": "another skin", "knob.stl": "knob"}


@pytest.fixture
def with_meshes(file, tmp_path):
    """A robot with meshes, and one for a wrap surface, in ``lab/arm`` with others beside it."""
    folder = tmp_path / "lab" / "arm"
    for name, text in MESHES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    text = file.read_text()
    shapes = "".join(
        f"<visual name='v{i}'><geometry><mesh><uri><!-- here --> {name}</uri></mesh></geometry>"
        "</visual>\n"
        for i, name in enumerate(("meshes/skin.stl", "skin.stl", f"file://{folder}/skin.stl"))
    )
    text = text.replace("<inertial>", f"{shapes}<inertial>", 1)
    wall = "<wrap_surface name='k' link='humerus'><mesh uri='knob.stl'/></wrap_surface>"
    text = text.replace("<muscle ", f"{wall}\n<muscle ", 1)
    (folder / "model.sdf").write_text(text)
    return folder / "model.sdf"


def mesh_contents(robot):
    visuals = [v for link in robot.links for v in link.visuals if isinstance(v.geometry, Mesh)]
    walls = [s for s in robot.wrap_surfaces if isinstance(s.geometry, Mesh)]
    paths = [Path(item.geometry.uri) for item in (*visuals, *walls)]
    return [path.read_text() for path in paths], paths


def test_a_robot_takes_its_meshes_to_another_folder(with_meshes, tmp_path):
    out = tmp_path / "other" / "arm.sdf"
    (out.parent / "meshes").mkdir(parents=True)
    (out.parent / "meshes" / "skin.stl").write_text("mine")
    before = with_meshes.read_bytes()
    editor = MuscleEditor(with_meshes, output=out)
    moved(editor, 0.03)
    assert [p.name for p in out.parent.rglob("*.stl")] == ["skin.stl"]
    assert editor.save().meshes == 3
    with_meshes.parents[1].rename(tmp_path / "gone")
    texts, paths = mesh_contents(load(out))
    assert texts == ["skin", "another skin", "another skin", "knob"]
    assert [str(path.relative_to(out.parent)) for path in paths] == [
        "meshes/meshes/skin.stl",
        "meshes/arm/skin.stl",
        "meshes/arm/skin.stl",
        "meshes/knob.stl",
    ]
    assert (out.parent / "meshes" / "skin.stl").read_text() == "mine"
    assert out.read_text().count("<!-- here -->") == 3
    assert len(out.read_bytes().splitlines()) == len(before.splitlines())


def test_saving_there_again_copies_nothing_twice(with_meshes, tmp_path):
    out = tmp_path / "other" / "arm.sdf"
    out.parent.mkdir()
    editor = MuscleEditor(with_meshes, output=out)
    moved(editor, 0.03)
    first = editor.save()
    editor.undo()
    second = editor.save()
    assert (first.meshes, second.meshes) == (3, 0)
    assert len(list(out.parent.rglob("*.stl"))) == 3
    again = MuscleEditor(out)  # its own file now
    moved(again, 0.05)
    again.save()
    assert mesh_contents(load(out))[0] == ["skin", "another skin", "another skin", "knob"]


def test_a_save_that_fails_there_leaves_no_meshes(with_meshes, tmp_path, monkeypatch):
    out = tmp_path / "other" / "arm.sdf"
    out.parent.mkdir()
    editor = MuscleEditor(with_meshes, output=out)
    moved(editor, 0.03)

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("cards_core.editing.editor.write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        editor.save()
    assert not list(out.parent.iterdir())


def test_what_cannot_be_saved_there_is_said_at_the_start(file, tmp_path):
    whole = tmp_path / "lab" / "whole.sdf"
    whole.parent.mkdir()
    (whole.parent / "hand.sdf").write_bytes(find_model("planar_2r").read_bytes())
    whole.write_text(
        file.read_text().replace("<joint", "<include><uri>hand.sdf</uri></include>\n<joint", 1)
    )
    (tmp_path / "other").mkdir()
    with pytest.raises(CardsError, match=r"whole.sdf:\d+: .*'hand.sdf' is not found from .*other"):
        MuscleEditor(whole, output=tmp_path / "other" / "x.sdf")
    (tmp_path / "other" / "meshes").write_text("mine")
    assert MuscleEditor(file, output=tmp_path / "other" / "x.sdf").file.parent.name == "other"


def test_provenance_must_fit():
    muscle = load("wrap_elbow").muscles[0]
    with pytest.raises(ValueError, match="does not fit"):
        EditedMuscle(replace(muscle), 0, (0,))
