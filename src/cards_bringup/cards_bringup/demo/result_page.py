"""The page of a demonstration after its run: it plays what was recorded until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from cards_bringup.demo.demo_robots import DemoRobot
from cards_bringup.demo.run_end import say
from cards_bringup.nodes.node_run import NodeRun


def show_until_stopped(
    args: argparse.Namespace,
    *,
    nodes: NodeRun | None,
    pages: Mapping[str, str],
    views: contextlib.ExitStack,
    robots: Sequence[DemoRobot],
    out: Path,
) -> None:
    """Keep the pages of a run open until Ctrl-C, SIGTERM or SIGHUP.

    They say where the results are. The page of a single robot plays the run, over and over.

    Args:
        args: Arguments of ``./cards demo``.
        nodes: The run, which is over; None: it was in this process, and its pages are closed.
        pages: Full names of its views to the addresses of their pages.
        views: Ends the pages of the run.
        robots: The robots of the run.
        out: Its run folder, with results.
    """
    import cards

    finished = f"finished: results in {out}"
    sys.stdout.flush()
    try:
        if nodes is not None:
            nodes.tell(finished)
        elif len(robots) > 1:
            return  # nothing plays several robots yet
        say(args, f"{finished}; Ctrl-C closes the page")
        if len(robots) > 1:
            threading.Event().wait()
        (address,) = pages.values()
        log = cards.read_run(out, robots[0].robot)
        views.close()  # the port must be free; browsers that show the page find it again
        port = int(address.rpartition(":")[2])
        view = cards.show(log, port=port, block=False, state=finished)
        if view.url != address:
            say(args, f"replay at {view.url}")
        view.wait()
    except KeyboardInterrupt:
        return
