"""The folder of an import: what is in it, what stays, and what is left when the process dies."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_core.formats.imports.folder import write_import_folder
from cards_core.formats.imports.source_file import relation_to, source_name

OURS = {"model.sdf": "one", "model.config": "c", "meshes/a.stl": "a", "import_report.md": "r"}
NEXT = {"model.sdf": "two", "model.config": "c", "meshes/b.stl": "b", "import_report.md": "r"}


def filling(files):
    def fill(folder):
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        (folder / "import_report.json").write_text(json.dumps({"name": "arm"}, indent=2) + "\n")

    return fill


def write(parent, files, **more):
    return write_import_folder(parent, "arm", filling(files), **more)


def content(folder):
    """Return the texts of all files but the report's list, which is checked by itself."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink() or (path.is_file() and path.name != "import_report.json"):
            name = path.relative_to(folder).as_posix()
            found[name] = f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
    return found


def test_the_report_lists_the_files_with_their_sums(tmp_path):
    folder = write(tmp_path, OURS)
    files = json.loads((folder / "import_report.json").read_text())["files"]
    assert sorted(files) == sorted([*OURS, "import_report.json"])
    for name, text in OURS.items():
        assert files[name] == hashlib.sha256(text.encode()).hexdigest()


def test_files_that_nobody_touched_are_replaced_and_removed(tmp_path):
    write(tmp_path, OURS)
    kept = []
    folder = write(tmp_path, NEXT, force=True, on_kept=kept.append)
    assert content(folder) == NEXT
    assert kept == []
    assert [item.name for item in tmp_path.iterdir()] == ["arm"]


def test_what_the_user_put_there_stays_as_it_is(tmp_path):
    folder = write(tmp_path, OURS)
    (folder / "notes").mkdir(mode=0o700)
    (folder / "notes" / "note.txt").write_text("mine")
    (folder / "meshes" / "mine.stl").write_text("mine too")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("nowhere")
    (folder / "model.sdf.~1~").write_text("of the editor")
    (folder / "notes" / "note.txt").chmod(0o640)
    os.utime(folder / "notes" / "note.txt", (1e9, 1e9))
    write(tmp_path, NEXT, force=True)
    assert content(folder) == NEXT | {
        "notes/note.txt": "mine",
        "meshes/mine.stl": "mine too",
        "link": "-> nowhere",
        "model.sdf.~1~": "of the editor",
    }
    assert (folder / "empty").is_dir()
    assert (folder / "notes").stat().st_mode & 0o777 == 0o700
    state = (folder / "notes" / "note.txt").stat()
    assert (state.st_mode & 0o777, state.st_mtime) == (0o640, 1e9)


def test_what_was_changed_is_kept_under_another_name_and_named(tmp_path):
    folder = write(tmp_path, OURS)
    (folder / "model.sdf").write_text("edited")
    (folder / "model.sdf.~1~").write_text("older")
    (folder / "meshes" / "a.stl").write_text("edited mesh")  # which is not made again
    kept = []
    write(tmp_path, NEXT, force=True, on_kept=kept.append)
    assert kept == [folder / "model.sdf.~2~"]
    assert content(folder) == NEXT | {
        "model.sdf.~1~": "older", "model.sdf.~2~": "edited", "meshes/a.stl": "edited mesh",
    }  # fmt: skip
    again = []
    write(tmp_path, NEXT, force=True, on_kept=again.append)
    assert again == []  # the same files are not kept once more


@pytest.mark.parametrize(
    "text", ["{", '{"name": "arm", "mine": 1}', '{"files": []}', '{"files": {"a": 1}}', "[" * 9999]
)
def test_a_report_that_was_changed_is_kept_too(tmp_path, text):
    folder = write(tmp_path, OURS)
    (folder / "import_report.json").write_text(text)
    kept = []
    write(tmp_path, NEXT, force=True, on_kept=kept.append)
    assert folder / "import_report.json.~1~" in kept
    assert (folder / "import_report.json.~1~").read_text() == text


def test_of_an_import_without_a_list_everything_else_is_kept(tmp_path):
    folder = tmp_path / "arm"
    folder.mkdir()
    filling(OURS | {"model.config": NEXT["model.config"]})(folder)
    kept = []
    write(tmp_path, NEXT, force=True, on_kept=kept.append)
    assert sorted(path.name for path in kept) == ["import_report.json.~1~", "model.sdf.~1~"]
    assert content(folder)["model.sdf.~1~"] == "one"
    assert content(folder)["meshes/a.stl"] == "a"


def test_files_and_folders_that_are_in_the_way_are_kept(tmp_path):
    folder = write(tmp_path, {"model.sdf": "one"})
    (folder / "meshes").write_text("a file")
    (folder / "model.config").mkdir()
    (folder / "model.config" / "x").write_text("in a folder")
    kept = []
    write(tmp_path, NEXT, force=True, on_kept=kept.append)
    assert content(folder) == NEXT | {
        "meshes.~1~": "a file", "model.config.~1~/x": "in a folder",
    }  # fmt: skip
    assert len(kept) == 2


def test_a_failure_leaves_the_old_folder(tmp_path):
    folder = write(tmp_path, OURS)
    (folder / "mine").write_text("mine")

    def fail(where):
        filling(NEXT)(where)
        raise CardsError("does not load")

    with pytest.raises(CardsError, match="does not load"):
        write_import_folder(tmp_path, "arm", fail, force=True)
    assert content(folder) == OURS | {"mine": "mine"}
    assert [item.name for item in tmp_path.iterdir()] == ["arm"]


def die_at(step, parent):
    """Import in a process of its own that is gone at its n-th change of the file system."""
    child = os.fork()
    if child == 0:
        count = 0

        def counting(call):
            def counted(*args, **kwargs):
                nonlocal count
                count += 1
                if count == step:
                    os._exit(9)
                return call(*args, **kwargs)

            return counted

        for name in ("rename", "link", "mkdir", "rmdir", "unlink"):
            setattr(os, name, counting(getattr(os, name)))
        write(parent, NEXT, force=True)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_killed_at_any_step_it_is_old_or_new_and_nothing_is_lost(tmp_path):
    mine = {"mine": "mine", "sub/mine": "deep"}
    old = OURS | mine | {"model.sdf": "edited"}
    new = NEXT | mine | {"model.sdf.~1~": "edited"}
    seen = set()
    for step in range(1, 200):
        parent = tmp_path / str(step)
        folder = write(parent, OURS)
        (folder / "sub").mkdir()
        for name, text in old.items():
            (folder / name).write_text(text)
        done = die_at(step, parent) == 0
        if folder.exists():
            found = content(folder)
            assert found in (old, new), step
            seen.add("old" if found == old else "new")
        else:  # between the two calls
            seen.add("none")
            with pytest.raises(CardsError, match="--force"):
                write(parent, NEXT)
            assert content(folder) == old, step
        write(parent, NEXT, force=True)
        assert content(folder) == new, step
        assert [item.name for item in parent.iterdir()] == ["arm"], step
        if done:
            break
    assert seen == {"old", "none", "new"}
    assert 10 < step < 199


def test_what_an_import_that_runs_is_using_stays(tmp_path):
    def fill(folder):
        filling(OURS)(folder)
        assert write(tmp_path, NEXT) == tmp_path / "arm"  # another import of this name, meanwhile
        assert (folder / "model.sdf").is_file()

    write_import_folder(tmp_path, "arm", fill, force=True)
    assert content(tmp_path / "arm") == OURS


@pytest.mark.parametrize("place", ["file", "file/deep/er"])
def test_a_file_is_no_place_for_a_folder(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CardsError, match=r"file is no folder \(expected: a folder"):
        write(tmp_path / place, OURS)
    assert (tmp_path / "file").read_text() == "mine"


def test_random_changes_never_lose_a_byte_of_the_user(tmp_path):
    rng = np.random.default_rng(0)
    names = [*OURS, *NEXT, "meshes", "x", "sub/y", "import_report.json", "model.sdf.~1~"]
    for case in range(60):
        parent = tmp_path / str(case)
        folder = write(parent, OURS)
        mine = set()
        for number in range(int(rng.integers(1, 6))):
            path = folder / names[int(rng.integers(len(names)))]
            if path.is_dir() or any(item.is_file() for item in path.parents):
                continue
            path.parent.mkdir(exist_ok=True)
            mine.discard(path.read_text() if path.is_file() else "")
            path.write_text(text := f"of the user {case} {number}")
            mine.add(text)
        write(parent, NEXT, force=True)
        write(parent, OURS, force=True)
        found = {p.read_text() for p in folder.rglob("*") if p.is_file()}
        assert mine <= found, case
        assert {name: (folder / name).read_text() for name in OURS} == OURS, case


# Which file it was imported from ---------------------------------------------------------------


@pytest.fixture
def sources(tmp_path):
    for name in ("a/arm.urdf", "b/arm.urdf", "a/other.urdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_folder_knows_the_file_it_was_imported_from(sources):
    file = sources / "a" / "arm.urdf"
    folder = write(sources, OURS, source=file)
    entry = json.loads((folder / "import_report.json").read_text())["source_file"]
    digest = hashlib.sha256(b"a/arm.urdf").hexdigest()
    assert entry == {"path": "../a/arm.urdf", "sha256": digest}
    assert source_name(folder) == "arm.urdf"
    assert relation_to(folder, file) == "same"
    assert relation_to(folder, sources / "b" / "arm.urdf") == "other"
    assert relation_to(folder, sources / "a" / "other.urdf") == "other"
    (sources / "b" / "copy.urdf").write_text("a/arm.urdf")
    assert relation_to(folder, sources / "b" / "copy.urdf") == "same"
    file.write_text("later")
    assert relation_to(folder, file) == "changed"
    (sources / "c").mkdir()
    file.rename(sources / "c" / "arm.urdf")  # it moved
    assert relation_to(folder, sources / "c" / "arm.urdf") == "changed"
    assert relation_to(folder, sources / "a" / "other.urdf") == "other"


def test_an_import_of_another_file_is_not_replaced(sources):
    file = sources / "a" / "arm.urdf"
    write(sources, OURS, source=file)
    before = content(sources)
    with pytest.raises(CardsError, match=r"from another file, arm.urdf, .*--name, another folder"):
        write(sources, NEXT, source=sources / "b" / "arm.urdf", force=True, other_name="--name")
    assert content(sources) == before
    file.write_text("later")
    folder = write(sources, NEXT, source=file, force=True)
    assert content(folder) == NEXT
    assert relation_to(folder, file) == "same"


@pytest.mark.parametrize(("named", "relation"), [("x/arm.urdf", "unknown"), ("b.urdf", "other")])
def test_reports_of_old_have_the_name_of_the_file_alone(sources, named, relation):
    folder = write(sources, OURS)
    (folder / "import_report.json").write_text(json.dumps({"source": named}))
    assert relation_to(folder, sources / "a" / "arm.urdf") == relation
    (folder / "import_report.json").write_text("no JSON")
    assert relation_to(folder, sources / "a" / "arm.urdf") == "unknown"
