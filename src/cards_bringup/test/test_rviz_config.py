"""The RViz configuration that a launch makes for a robot."""

import numpy as np
import pytest
import yaml

from cards_bringup.nodes.rviz_config import rviz_config
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_viz.muscles.scene import Scene


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def manager(file):
    return yaml.safe_load(file.read_text())["Visualization Manager"]


@pytest.mark.parametrize(
    ("model", "rods"), [("snake_24", False), ("antagonist_joint", False), ("planar_3efr", True)]
)
def test_the_camera_sees_the_whole_robot(model, rods):
    view = manager(rviz_config(model, rods=rods))["Views"]["Current"]
    middle = np.array([view["Focal Point"][axis] for axis in "XYZ"])
    if not rods:
        scene = Scene(load(model), backend="numeric")
        # half the field of view of RViz's orbit view, 0.785 rad high
        assert np.linalg.norm(scene.outline - middle, axis=1).max() < (
            view["Distance"] * np.tan(0.785 / 2)
        )
    else:
        # its motors are 1 m from the middle
        assert view["Distance"] > 2.0
        np.testing.assert_allclose(middle[:2], 0.0, atol=0.3)


def test_topics_have_the_namespace(cache):
    file = rviz_config("planar_2r", rods=False, namespace="left")
    assert file.is_relative_to(cache)
    topics = [d["Topic"]["Value"] for d in manager(file)["Displays"] if "Topic" in d]
    assert "/left/muscle_markers" in topics
    assert all(topic.startswith("/left/") for topic in topics)
    alone = rviz_config("planar_2r", rods=False)
    assert alone != file
    assert "/left/" not in alone.read_text()


def test_folder_that_cannot_be_written(cache):
    cache.write_text("a file")
    with pytest.raises(CardsError, match="cannot be written"):
        rviz_config("planar_2r", rods=False)
