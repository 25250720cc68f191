"""What a campaign keeps of each fault and each episode, and the part that all systems share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_bringup.soak.judge import Release, Violation
from cards_bringup.soak.plan import Episode, Fault, Plan
from cards_bringup.soak.processes import Processes

WATCH_PERIOD = 0.25
"""Time between two looks at all processes, [s]."""

BEFORE, AFTER = 0.3, 3.0
"""What was seen so long before a fault's begin or after its end belongs to it, [s]."""


class SkippedError(Exception):
    """A fault that cannot be made on this machine; says why."""


@dataclass
class FaultRecord:
    """A fault and what came of it.

    Attributes:
        fault: As scheduled.
        begin: When it began, monotonic [s].
        end: When it was over, [s].
        skipped: Why it was not made.
        note: What was seen.
        to_safe: Longest time to the safe state, [s] of the robot's clock; None: commands went on,
            or there was no robot any more.
        recovered: From its end until commands drove the robot again, [s]; None: not yet.
    """

    fault: Fault
    begin: float
    end: float = 0.0
    skipped: str = ""
    note: str = ""
    to_safe: float | None = None
    recovered: float | None = None

    def covers(self, wall: float) -> bool:
        """Tell whether what was seen at a time, [s], belongs to it."""
        return self.begin - BEFORE <= wall <= self.end + (self.recovered or 0.0) + AFTER


class System(ABC):
    """A system under test.

    Args:
        plan: The plan.
        episode: What is done to it.
        folder: Of everything that it writes.
        mark: See `processes.MARK`.

    Attributes:
        violations: Found so far.
        facts: What else is told in the report.
        records: Of the faults so far.
    """

    def __init__(self, plan: Plan, episode: Episode, folder: Path, mark: str) -> None:
        self.plan = plan
        self.episode = episode
        self.folder = folder
        self.mark = mark
        self.violations: list[Violation] = []
        self.facts: dict[str, Any] = {}
        self.records: list[FaultRecord] = []
        self.processes: Processes

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it does what it is for. Raises `CardsError`."""

    @abstractmethod
    def apply(self, fault: Fault) -> str:
        """Make a fault and undo it; return what was seen. Raises `SkippedError`."""

    @abstractmethod
    def recover(self) -> None:
        """Wait until it does again what it is for; a violation if it does not."""

    @abstractmethod
    def finish(self) -> None:
        """End it in order and judge all that was seen."""

    @abstractmethod
    def abort(self) -> None:
        """End what still runs, at once."""

    def violate(self, invariant: str, text: str) -> None:
        """Note a violation that is seen now."""
        self.violations.append(Violation(invariant, time.monotonic(), text))

    def sleep(self, seconds: float) -> None:
        """Wait, and watch meanwhile."""
        end = time.monotonic() + seconds
        while True:
            self.watch()
            rest = end - time.monotonic()
            if rest <= 0.0:
                return
            time.sleep(min(WATCH_PERIOD, rest))

    def watch(self) -> None:
        """Look at all processes."""
        self.violations += self.processes.watch()

    def run(self) -> None:
        """Do the whole episode. Raises `CardsError` if the system does not start."""
        try:
            self.start()
            self.processes.settle()
            begin = time.monotonic()
            late = 0.0  # recoveries that took longer move what comes
            for fault in self.episode.faults:
                self.sleep(max(0.0, begin + late + fault.at - time.monotonic()))
                self._do(fault)
                late = max(late, time.monotonic() - begin - fault.at - fault.duration)
            self.sleep(max(0.0, begin + self.episode.duration - time.monotonic()))
            self.finish()
        finally:
            self.abort()

    def _do(self, fault: Fault) -> None:
        record = FaultRecord(fault, time.monotonic())
        self.records.append(record)
        try:
            record.note = self.apply(fault)
        except SkippedError as reason:
            record.skipped = str(reason)
        record.end = time.monotonic()
        if not record.skipped:
            self.recover()
            self.processes.settle()
            record.recovered = time.monotonic() - record.end

    def assign(self, releases: list[Release]) -> None:
        """Give releases of the muscles to the faults that they followed."""
        for release in releases:
            for record in reversed(self.records):
                if record.covers(release.wall):
                    record.to_safe = max(record.to_safe or 0.0, release.delay)
                    break

    def to_json(self, begin: float) -> dict[str, Any]:
        """Return what became of the episode as plain data.

        Args:
            begin: Of the episode, monotonic [s].
        """
        of_faults: dict[int, list[str]] = {}
        for violation in self.violations:
            for number in reversed(range(len(self.records))):
                if self.records[number].covers(violation.wall):
                    of_faults.setdefault(number, []).append(violation.invariant)
                    break
        return {
            "number": self.episode.number,
            "system": self.episode.system,
            "faults": [
                {
                    "at": round(record.begin - begin, 3),
                    "kind": record.fault.kind,
                    "target": record.fault.target,
                    "duration": record.fault.duration,
                    "skipped": record.skipped,
                    "note": record.note,
                    "to_safe_s": _rounded(record.to_safe),
                    "recovered_s": _rounded(record.recovered),
                    "violations": of_faults.get(number, []),
                }
                for number, record in enumerate(self.records)
            ],
            "facts": self.facts,
            "violations": [
                {"invariant": v.invariant, "at": round(v.wall - begin, 3), "text": v.text}
                for v in self.violations
            ],
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
