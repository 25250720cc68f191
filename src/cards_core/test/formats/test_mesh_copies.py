"""Copies of meshes beside a file: names without collisions, and nothing replaced or left over."""

from __future__ import annotations

import pytest

from cards_core.errors import CardsError
from cards_core.formats.mesh_copies import place_meshes


@pytest.fixture
def files(tmp_path):
    out = {}
    for name in ("a/part.stl", "b/part.stl", "c/PART.STL", "d/b/part.stl", "d/other.stl"):
        file = tmp_path / "from" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        out[name] = file
    out["d/other.stl"].write_text("a/part.stl")  # the same content as the first
    return out


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "out"
    place.mkdir()
    return place


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_names_are_different_where_the_content_is(files, folder):
    copies = place_meshes(files.values(), folder)
    assert {name: copies.uri(str(file)) for name, file in files.items()} == {
        "a/part.stl": "meshes/part.stl",
        "b/part.stl": "meshes/b/part.stl",
        "c/PART.STL": "meshes/c/PART.STL",
        "d/b/part.stl": "meshes/b/part_2.stl",
        "d/other.stl": "meshes/part.stl",
    }
    assert copies.uri("https://example.org/part.stl") == "https://example.org/part.stl"
    assert not content(folder)
    with copies.made():
        pass
    assert content(folder) == {
        "meshes/part.stl": "a/part.stl",
        "meshes/b/part.stl": "b/part.stl",
        "meshes/c/PART.STL": "c/PART.STL",
        "meshes/b/part_2.stl": "d/b/part.stl",
    }


def test_what_is_there_is_used_or_left_alone(files, folder):
    (folder / "meshes").mkdir()
    (folder / "meshes" / "part.stl").write_text("mine")
    (folder / "meshes" / "b").write_text("a file in place of a folder")
    (folder / "meshes" / "c").symlink_to(files["c/PART.STL"].parent)
    before = content(folder)
    for _ in range(2):
        copies = place_meshes([files["a/part.stl"], files["b/part.stl"]], folder)
        # "b" is no folder, so that no name is left there; nothing is ever replaced
        assert copies.uri(str(files["a/part.stl"])) == "meshes/a/part.stl"
        assert copies.uri(str(files["b/part.stl"])) == "meshes/part_2.stl"
        with copies.made():
            pass
        assert {name: content(folder)[name] for name in before} == before
    assert not copies.new
    # a link is no copy, nor is there room below one
    (folder / "meshes" / "PART.STL").symlink_to(files["c/PART.STL"])
    assert place_meshes([files["c/PART.STL"]], folder).listed == ["meshes/PART_2.STL"]


def test_nothing_new_is_left_when_the_file_cannot_be_written(files, folder):
    (folder / "meshes").mkdir()
    (folder / "meshes" / "mine.stl").write_text("mine")
    with pytest.raises(KeyboardInterrupt), place_meshes(files.values(), folder).made():
        raise KeyboardInterrupt
    assert content(folder) == {"meshes/mine.stl": "mine"}
    assert [path.name for path in (folder / "meshes").iterdir()] == ["mine.stl"]
    copies = place_meshes(files.values(), folder)
    files["b/part.stl"].unlink()
    with pytest.raises(FileNotFoundError), copies.made():
        pass
    assert content(folder) == {"meshes/mine.stl": "mine"}


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_what_is_no_folder_of_its_own_is_refused(kind, files, folder, tmp_path):
    if kind == "file":
        (folder / "meshes").write_text("mine")
    else:
        (folder / "meshes").symlink_to(tmp_path / ("from" if kind == "link" else "nowhere"))
    with pytest.raises(CardsError, match="is no folder of its own"):
        place_meshes(files.values(), folder)
