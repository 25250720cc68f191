"""Pictures show what they should; films have what was asked for; failures leave nothing."""

import numpy as np
import pytest
from PIL import Image

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_viz.film.film import film_run
from cards_viz.film.picture import Pictures
from cards_viz.film.view import View
from cards_viz.muscles.scene import Scene
from cards_viz.runs.log import SimulatorLog
from cards_viz.runs.recorded import RecordedRun
from cards_viz.runs.summary import RunInfo

SIZE = (160, 96)


@pytest.fixture(scope="module")
def scene():
    return Scene(load("roboy_arm"))


@pytest.fixture(scope="module")
def pictures(scene):
    try:
        made = Pictures(scene, width=SIZE[0], height=SIZE[1])
    except CardsError as error:
        pytest.skip(f"no OpenGL here: {error}")
    with made:
        yield made


def tensions(scene, value):
    return np.full(len(scene.robot.muscles), value)


def recorded(scene, count=41, **extra):
    """A run of 0.4 s in which the last joint moves."""
    robot, n = scene.robot, scene.tree
    time = 0.01 * np.arange(count)
    q = np.tile(n.home, (count, 1))
    q[:, -1] += 0.5 * time
    m = len(robot.muscles)
    rows = {
        "time": time,
        "q": q,
        "qd": np.zeros((count, n.nv)),
        "tensions": np.full((count, m), 20.0),
    }
    log = SimulatorLog.__new__(SimulatorLog)
    for name, values in rows.items():
        object.__setattr__(log, name, values)
    return RecordedRun(
        "run", robot, log, None, RunInfo("none", "lockstep", 0.1, "joint", (), extra=extra)
    )


def test_a_picture_shows_the_robot_and_its_muscles(pictures, scene):
    home = scene.tree.home
    picture = pictures.draw(home, tensions(scene, 5.0))
    assert picture.shape == (SIZE[1], SIZE[0], 3)
    assert picture.dtype == np.uint8
    assert np.array_equal(pictures.draw(home, tensions(scene, 5.0)), picture)
    bent = home.copy()
    bent[-1] += 0.8
    assert np.abs(pictures.draw(bent, tensions(scene, 5.0)).astype(int) - picture).max() > 50


def test_muscles_have_the_colour_of_their_tension(scene, pictures):
    """Only pixels of muscles change with tensions, and only their colour."""
    home = scene.tree.home
    slack, taut = (
        pictures.draw(home, tensions(scene, f)).astype(int) for f in (0.0, pictures.scale.high)
    )
    changed = np.abs(slack - taut).max(axis=2) > 40
    assert 5 < changed.sum() < 0.1 * changed.size


def test_the_camera_follows_a_robot_that_moves(pictures):
    robot = load("tetrahedral_6")
    scene = Scene(robot)
    far = scene.tree.home.copy()
    for joint in range(len(robot.links)):
        far[7 * joint] += 2.0  # x of each free body
    quiet = tensions(scene, 0.0)
    with Pictures(scene, width=SIZE[0], height=SIZE[1]) as follows:
        followed = follows.draw(far, quiet).astype(int)
    with Pictures(scene, width=SIZE[0], height=SIZE[1], view=View(follow=False)) as stays:
        home, gone = (stays.draw(q, quiet).astype(int) for q in (scene.tree.home, far))
    dark = [(picture.sum(axis=2) < 250).mean() for picture in (home, followed, gone)]
    assert dark[1] > 0.5 * dark[0] > 2.0 * dark[2]


def test_every_robot_can_be_drawn(pictures):
    """Meshes, tori and planes too."""
    for name in ("wrap_elbow", "musashi_like", "ipanema_1", "superball"):
        scene = Scene(load(name))
        with Pictures(scene, width=SIZE[0], height=SIZE[1]) as made:
            picture = made.draw(scene.tree.home, tensions(scene, 10.0))
        assert picture.std() > 5.0, name


@pytest.mark.parametrize("suffix", ["gif", "mp4", "webm"])
def test_films_have_their_pictures_and_their_pace(pictures, scene, tmp_path, suffix):
    if suffix != "gif":
        pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed")
    file = tmp_path / f"film.{suffix}"
    shares = []
    count = film_run(
        recorded(scene), file, rate=10.0, speed=0.5, size=SIZE, progress=shares.append
    )
    assert count == len(shares) == 9  # 0.4 s at half speed, first and last included
    assert shares[-1] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    if suffix == "gif":
        with Image.open(file) as film:
            assert (film.n_frames, film.size) == (9, SIZE)
            assert film.info["duration"] == 100
    else:
        from imageio_ffmpeg import count_frames_and_secs, read_frames

        frames, seconds = count_frames_and_secs(str(file))
        assert (frames, seconds) == (9, pytest.approx(0.9, abs=0.11))
        assert next(read_frames(str(file)))["size"] == SIZE


def test_a_part_of_a_run(pictures, scene, tmp_path):
    run = recorded(scene)
    file = tmp_path / "film.gif"
    assert film_run(run, file, rate=10.0, size=SIZE, begin=0.1, end=0.3) == 3
    with pytest.raises(CardsError, match="there is nothing"):
        film_run(run, file, rate=10.0, size=SIZE, begin=1.0)


def test_what_fails_leaves_the_old_film(pictures, scene, tmp_path):
    file = tmp_path / "film.gif"
    file.write_bytes(b"old")

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film_run(recorded(scene), file, rate=10.0, size=SIZE, progress=stop)
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("film.avi", {}, "no film"),
        ("film", {}, "no film"),
        ("film.gif", {"speed": 0.0}, "speed is 0"),
        ("film.gif", {"rate": float("nan")}, "rate is nan"),
        ("film.gif", {"rate": 60.0}, "at most 50 in a GIF"),
        ("film.mp4", {"size": (641, 360)}, "641x360"),
        ("film.mp4", {"size": (8, 8)}, "8x8"),
        ("film.mp4", {"rate": 1e9}, "pictures"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_drawn(
    scene, tmp_path, name, changes, message
):
    with pytest.raises(CardsError, match=message):
        film_run(recorded(scene), tmp_path / name, **{"size": SIZE, **changes})
    assert not list(tmp_path.iterdir())


def test_a_film_has_the_terrain_of_the_run(pictures, tmp_path):
    scene = Scene(load("prism_3"))
    shown = {}
    for name, extra in (("bare", {}), ("blocks", {"terrain": "blocks:extent=1,height=0.03"})):
        file = tmp_path / f"{name}.gif"
        assert film_run(recorded(scene, count=2, **extra), file, size=SIZE) == 1
        with Image.open(file) as film:
            shown[name] = np.asarray(film.convert("RGB")).astype(int)
    changed = np.abs(shown["bare"] - shown["blocks"]).max(axis=2) > 10
    assert changed.mean() > 0.1
