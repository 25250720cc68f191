"""``./cards video``: a film of a recorded run."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any

from cards_bringup.option_types import Number

EXAMPLES = """examples:
  ./cards demo roboy_arm --headless --out run
  ./cards video run                            run/video.mp4
  ./cards video run -o arm.gif --size 640x360 --fps 20
  ./cards video run --from 5 --to 12 --speed 0.25 --azimuth 90 --elevation -10

It is drawn without a window, so it works on servers too. Exit code: 0; 2 if it cannot be drawn or
written; 130 Ctrl-C, which leaves no file. Python: cards.read_run(FOLDER).video(FILE)
"""


def add_video(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "video",
        description="Write a film of a recorded run of a robot with muscles: MP4, WebM or GIF.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("run_folder", metavar="RUN", help="run folder, e.g. of ./cards demo --out")
    add("-o", "--out", type=Path, metavar="FILE", help="film (default: video.mp4 in the folder)")
    add("--force", action="store_true", help="replace a film")
    add(
        "--speed",
        type=Number(above=0.0),
        default=1.0,
        help="simulated seconds per second (%(default)s)",
    )
    add(
        "--fps",
        type=Number(above=0.0, at_most=240.0),
        default=30.0,
        help="pictures per second (%(default)g)",
    )
    add("--size", default="1280x720", metavar="WxH", help="in pixels (%(default)s)")
    add(
        "--from",
        dest="begin",
        type=Number(at_least=0.0),
        default=0.0,
        metavar="S",
        help="start time [s]",
    )
    add(
        "--to",
        dest="end",
        type=Number(above=0.0),
        default=math.inf,
        metavar="S",
        help="end time [s]",
    )
    add("--azimuth", type=Number(), help="azimuth of the view [deg]")
    add(
        "--elevation",
        type=Number(at_least=-90.0, at_most=90.0),
        help="elevation of the view [deg]; negative looks down",
    )
    add("--distance", type=Number(above=0.0), help="distance of the camera in robot sizes")
    add("--fixed", action="store_true", help="keep the camera fixed")
    add("--robot", help="robot of the run, where summary.json does not say where it is from")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import cards
    from cards_bringup.progress import ShareProgress
    from cards_core.exit_codes import ExitCode
    from cards_core.files import check_new
    from cards_core.formats import load
    from cards_viz.film.view import View

    size = _size(args.size)
    file = args.out or Path(args.run_folder) / "video.mp4"
    check_new(file, force=args.force)
    robot = None if args.robot is None else load(args.robot)
    found = cards.read_run(args.run_folder, robot)
    given = {
        name: getattr(args, name)
        for name in ("azimuth", "elevation", "distance")
        if getattr(args, name) is not None
    }
    with ShareProgress(f"{file.name}") as bar:
        count = found.video(
            file,
            speed=args.speed,
            rate=args.fps,
            size=size,
            view=View(follow=not args.fixed, **given),
            begin=args.begin,
            end=args.end,
            progress=bar.update,
        )
    print(f"{file}: {count} pictures")
    return ExitCode.DONE


def _size(text: str) -> tuple[int, int]:
    from cards_core.errors import CardsError

    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if found is None:
        raise CardsError(f"--size {text} (expected: width and height in pixels, e.g. 1280x720)")
    return int(found[1]), int(found[2])
