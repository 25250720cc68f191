"""Finding robots by name and path."""

import pytest
from sdf_documents import link, model

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats import find_model, known_models, load


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder on CARDS_MODEL_PATH with two models and one empty folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.sdf").write_text(model(link("a"), name=name))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("CARDS_MODEL_PATH", f"/nowhere::{tmp_path}")
    return tmp_path


def test_the_repository_s_models_are_known():
    assert {"planar_2r", "roboy_arm"} <= set(known_models())
    assert find_model("planar_2r").name == "model.sdf"
    assert load("planar_2r").name == "planar_2r"


def test_names_on_the_model_path(shelf):
    assert find_model("one") == shelf / "one" / "model.sdf"
    assert {"one", "two", "planar_2r"} <= set(known_models())
    assert "empty" not in known_models()
    assert load("two").name == "two"


def test_earlier_folders_win(shelf, monkeypatch):
    other = shelf / "other"
    (other / "one").mkdir(parents=True)
    (other / "one" / "model.sdf").write_text(model(link("b"), name="shadow"))
    monkeypatch.setenv("CARDS_MODEL_PATH", f"{other}:{shelf}")
    assert load("one").name == "shadow"


def test_installed_models_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "share" / "cards_bringup" / "models" / "installed"
    folder.mkdir(parents=True)
    (folder / "model.sdf").write_text(model(link("a"), name="installed"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert load("installed").name == "installed"


def test_paths_of_files_and_folders(shelf):
    file = shelf / "one" / "model.sdf"
    for location in (file, str(file), file.parent, str(file.parent)):
        assert load(location).name == "one"
        assert load(location).source == str(file)


def test_an_unknown_name_lists_the_known_ones(shelf):
    with pytest.raises(UnknownNameError, match=r"did you mean 'planar_2r'\?.*one.*roboy_arm.*two"):
        find_model("planar2r")
    for name in ("", ".", "..", "../one", "a\0b", "x" * 5000, "one/nothing"):
        with pytest.raises(UnknownNameError):
            find_model(name)


def test_a_folder_without_model_says_so(shelf):
    with pytest.raises(DescriptionError, match=r"holds no model.*model\.config or model\.sdf"):
        find_model(str(shelf / "empty"))


def test_model_config_names_the_file(shelf):
    folder = shelf / "one"
    (folder / "model.sdf").rename(folder / "new.sdf")
    (folder / "old.sdf").write_text("<sdf version='1.4'/>")
    config = folder / "model.config"
    config.write_text(
        '<model><sdf version="1.4">old.sdf</sdf><sdf version="1.10">new.sdf</sdf></model>'
    )
    assert find_model("one") == folder / "new.sdf"
    config.write_text("<model>\n<sdf>gone.sdf</sdf></model>")
    with pytest.raises(DescriptionError, match=r"gone\.sdf' does not exist") as caught:
        find_model("one")
    assert caught.value.line == 2
    config.write_text("<model/>")
    with pytest.raises(DescriptionError, match="names no SDF file"):
        find_model("one")
