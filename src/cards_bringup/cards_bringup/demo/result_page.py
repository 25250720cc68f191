"""The page of a demonstration after its run: it plays what was recorded until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cards_bringup.demo.demo_robots import DemoRobot
from cards_bringup.nodes.node_run import NodeRun


def show_until_stopped(
    nodes: NodeRun | None,
    pages: Mapping[str, str],
    views: contextlib.ExitStack,
    robots: Sequence[DemoRobot],
    out: Path,
    *,
    host: str,
    stopped: threading.Event,
    note: Callable[[str], None],
) -> None:
    """Keep the pages of a run open until it is stopped.

    They say where the results are. The page of a single robot plays the run, over and over.

    Args:
        nodes: The run, which is over; None: it was in this process, and its pages are closed.
        pages: Full names of its views to the addresses of their pages.
        views: Ends the pages of the run.
        robots: The robots of the run.
        out: Its run folder, with results.
        host: Address that the page listens on.
        stopped: Set by Ctrl-C.
        note: Told what the user should know, a line each.
    """
    import cards
    from cards_viz.pages.access import page_port

    if stopped.is_set():
        return
    finished = f"finished: results in {out}"
    sys.stdout.flush()
    if nodes is not None:
        nodes.tell(finished)
    elif len(robots) > 1:
        return  # nothing plays several robots yet
    note(f"{finished}; Ctrl-C closes the page")
    if len(robots) > 1:
        stopped.wait()
        return
    (address,) = pages.values()
    log = cards.read_run(out, robots[0].robot)
    views.close()  # the port must be free; browsers that show the page find it again
    view = cards.show(log, host=host, port=page_port(address), block=False, state=finished)
    stopped.wait()
    view.close()
