"""Films of recorded runs: MP4, WebM or GIF."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError
from cards_core.files import replacing
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_viz.film.picture import Image, Pictures
from cards_viz.film.view import View
from cards_viz.muscles.scene import Scene
from cards_viz.muscles.world_scene import WorldScene
from cards_viz.runs.recorded import RecordedRun, row_at

FORMATS = (".mp4", ".webm", ".gif")

SIZE = (1280, 720)
"""Default width and height, [pixel]."""

LARGEST = 4096
"""Maximum width and height, [pixel]."""

RATE = 30.0
"""Default updates per second."""

GIF_RATE = 50.0
"""Most updates per second of a GIF, whose times are hundredths of a second."""

MOST = 100_000
"""Most pictures of a film: an hour at 28 a second."""


def film_run(
    run: RecordedRun,
    file: Path,
    *,
    speed: float = 1.0,
    rate: float = RATE,
    size: tuple[int, int] = SIZE,
    view: View | None = None,
    begin: float = 0.0,
    end: float = math.inf,
    progress: Callable[[float], None] | None = None,
) -> int:
    """Draw a recorded run and write it as a film.

    Args:
        run: The run.
        file: What to write; its suffix is the format, one of `FORMATS`.
        speed: Simulated seconds per second of the film, > 0.
        rate: Pictures per second of the film, > 0.
        size: Width and height, even numbers of at most `LARGEST`, [pixel].
        view: Where the camera is.
        begin: Simulation time of the first picture, [s].
        end: That of the last one, at most, [s].
        progress: Told the share that is done, from 0 to 1.

    Returns:
        Number of pictures.

    Raises:
        CardsError: An argument does not fit, this machine cannot draw, or FFmpeg is missing.
        OSError: The file cannot be written.
    """
    check_name(file)
    _check(file, speed, rate, size)
    times = _times(run, begin, end, speed / rate)
    scene = Scene(run.robot)
    around = _surroundings(run)
    ground, fixed = (None, ()) if around is None else (around.ground, around.fixed)
    rows = row_at(run.time, times)
    with Pictures(
        scene, width=size[0], height=size[1], view=view, ground=ground, fixed=fixed
    ) as pictures:
        # one colour scale for the whole film
        pictures.scale.include(run.simulator.tensions[rows])

        def images() -> Iterator[Image]:
            for k, row in enumerate(rows.tolist()):
                yield pictures.draw(run.simulator.q[row], run.simulator.tensions[row])
                if progress is not None:
                    progress((k + 1) / len(rows))

        with replacing(file) as temporary:
            _WRITERS[file.suffix.lower()](temporary, images(), rate, size)
    return len(rows)


def _surroundings(run: RecordedRun) -> WorldScene | None:
    """Return the terrain that a run was on, if its summary says so."""
    terrain = run.info.extra.get("terrain", "")
    if not terrain:
        return None
    return WorldScene(on_terrain(read_terrain(str(terrain)), run.robot), backend="numeric")


def check_name(file: Path) -> None:
    """Raise `CardsError` if the name of a film does not say its format."""
    if file.suffix.lower() not in FORMATS:
        raise CardsError(f"{file} is no film (expected: a name that ends in {', '.join(FORMATS)})")


def _check(file: Path, speed: float, rate: float, size: tuple[int, int]) -> None:
    for what, value in (("speed", speed), ("rate", rate)):
        if not (math.isfinite(value) and value > 0.0):
            raise CardsError(f"{what} is {value:g} (expected: above zero)")
    if file.suffix.lower() == ".gif" and rate > GIF_RATE:
        raise CardsError(f"rate is {rate:g} (expected: at most {GIF_RATE:g} in a GIF)")
    if any(not 16 <= pixels <= LARGEST or pixels % 2 for pixels in size):
        raise CardsError(
            f"the size is {size[0]}x{size[1]} (expected: even numbers from 16 to {LARGEST})"
        )


def _times(run: RecordedRun, begin: float, end: float, step: float) -> npt.NDArray[np.float64]:
    first, last = max(begin, float(run.time[0])), min(end, float(run.time[-1]))
    if not first <= last:
        raise CardsError(
            f"from {begin:g} s to {end:g} s there is nothing (expected: within {run.time[0]:g} s "
            f"to {run.time[-1]:g} s)"
        )
    count = int((last - first) / step + 1e-9) + 1
    if count > MOST:
        raise CardsError(f"the film has {count} pictures (expected: at most {MOST})")
    return np.asarray(first + step * np.arange(count))


def _write_gif(file: Path, images: Iterator[Image], rate: float, size: tuple[int, int]) -> None:
    from PIL import Image as Pillow

    frames = (Pillow.fromarray(image).quantize(128) for image in images)
    first = next(frames)
    first.save(
        file,
        format="GIF",
        save_all=True,
        append_images=frames,
        duration=round(1000.0 / rate),
        loop=0,
        optimize=False,
    )


def _write_video(
    file: Path, images: Iterator[Image], rate: float, size: tuple[int, int], *, kind: str
) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise CardsError(
            f"films need the Python package imageio-ffmpeg: {error} (expected: pip install "
            "imageio-ffmpeg, or a GIF)"
        ) from None
    codec, quality = _CODECS[kind]
    settings: dict[str, Any] = {
        "codec": codec,
        # the file has no suffix yet that says what it is
        "output_params": [*quality, "-f", kind],
        "quality": None,
        "macro_block_size": 2,
        "ffmpeg_log_level": "error",
    }
    writer = imageio_ffmpeg.write_frames(str(file), size, fps=rate, **settings)
    writer.send(None)
    try:
        for image in images:
            writer.send(np.ascontiguousarray(image))
    finally:
        writer.close()


_CODECS = {
    "mp4": ("libx264", ["-crf", "20", "-movflags", "+faststart"]),
    "webm": ("libvpx-vp9", ["-crf", "30", "-b:v", "0"]),
}

_WRITERS: dict[str, Callable[[Path, Iterator[Image], float, tuple[int, int]], None]] = {
    ".gif": _write_gif,
    ".mp4": partial(_write_video, kind="mp4"),
    ".webm": partial(_write_video, kind="webm"),
}
