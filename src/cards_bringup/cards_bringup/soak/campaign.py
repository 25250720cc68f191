"""Runs the episodes of a campaign one after the other, and keeps the report up to date."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cards_bringup.soak import report
from cards_bringup.soak.plan import Episode, Plan
from cards_bringup.soak.records import System
from cards_core.errors import CardsError

STARTS = 2
"""How often a system is started until it does what it is for, on a busy machine."""


def system_of(plan: Plan, episode: Episode, folder: Path, mark: str) -> System:
    """Return the system of an episode.

    Args:
        plan: The plan.
        episode: The episode.
        folder: Of everything that it writes.
        mark: See `processes.MARK`.

    Raises:
        CardsError: It needs a package that is not installed.
    """
    try:
        if episode.system == "process":
            from cards_bringup.soak.process_system import ProcessSystem

            return ProcessSystem(plan, episode, folder, mark)
        if episode.system == "boards":
            from cards_bringup.soak.board_system import BoardSystem

            return BoardSystem(plan, episode, folder, mark)
        from cards_bringup.soak.ros_system import RosSystem

        return RosSystem(plan, episode, folder, mark)
    except ImportError as error:
        raise CardsError(
            f"the system '{episode.system}' needs {error.name}, which is not installed "
            "(expected: a plan without it)"
        ) from None


class Campaign:
    """A campaign.

    Args:
        plan: The plan.
        schedule: All episodes.
        folder: Of the report; episodes with violations keep their files there.
        seed: Of the schedule.
        hours: After which no episode begins any more, [h].
        say: Told what is done, one line each.
    """

    def __init__(
        self,
        plan: Plan,
        schedule: Sequence[Episode],
        folder: Path,
        *,
        seed: int,
        hours: float,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._schedule = list(schedule)
        self._folder = folder
        self._seed = seed
        self._hours = hours
        self._say = say
        self._done: list[dict[str, Any]] = []
        self._begin = time.monotonic()

    def run(self) -> dict[str, Any]:
        """Do all episodes; return the report, which is written after each of them.

        Raises:
            CardsError: A system needs what is not installed.
            KeyboardInterrupt: Ctrl-C; the report of what was done is written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            for episode in self._schedule:
                if self._done and time.monotonic() - self._begin > 3600.0 * self._hours:
                    return self._write("Its time was over.")
                self._do(episode)
                self._write("It goes on.")
        except KeyboardInterrupt:
            self._write("Ctrl-C ended it early.")
            raise
        except CardsError as error:
            self._write(f"It ended early: {error}")
            raise
        return self._write("All episodes were run.")

    def _do(self, episode: Episode) -> None:
        folder = self._folder / f"episode_{episode.number:04d}"
        for attempt in range(STARTS):
            mark = f"{os.getpid()}-{episode.number}-{attempt}"
            system = system_of(self._plan, episode, folder, mark)
            begin = time.monotonic()
            try:
                system.run()
                break
            except KeyboardInterrupt:
                if not system.violations:
                    shutil.rmtree(folder, ignore_errors=True)
                raise
            except CardsError as error:
                if attempt + 1 == STARTS:
                    system.violate("the system starts", str(error))
                else:
                    self._say(f"episode {episode.number} is started again: {error}"[:500])
                    shutil.rmtree(folder, ignore_errors=True)
        entry = system.to_json(begin)
        self._done.append(entry)
        found = entry["violations"]
        if not found:
            shutil.rmtree(folder, ignore_errors=True)
        elif (folder / "model").exists():
            shutil.rmtree(folder / "model", ignore_errors=True)
        kinds = ", ".join(
            f["kind"] + (f" {f['target']}" if f["target"] else "") for f in entry["faults"]
        )
        self._say(
            f"{time.monotonic() - self._begin:6.0f} s  episode {episode.number} "
            f"({len(self._done)} of {len(self._schedule)}), {episode.system}: "
            f"{kinds or 'no faults'}; {len(found)} violations"
        )
        for one in found:
            self._say(f"          {one['invariant']}: {one['text'][:500]}")

    def _write(self, ended: str) -> dict[str, Any]:
        data = report.summary(
            self._plan,
            [episode.to_json() for episode in self._schedule],
            self._done,
            seed=self._seed,
            hours=self._hours,
            wall_s=round(time.monotonic() - self._begin, 1),
            ended=ended,
        )
        report.write(self._folder, data)
        return data
