"""Report of a calibration: a file with date, boards, numbers and verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from cards_core.errors import CardsError
from cards_core.files import write_atomically
from cards_hardware.boards.handshake import Ident
from cards_hardware.calibration.check import MuscleCheck
from cards_hardware.calibration.recording import ChannelResult

STEPS = ("tension", "length", "joints", "check")
"""Steps of a calibration, in this order."""


@dataclass
class CalibrationReport:
    """The report.

    Attributes:
        robot: Name of the robot.
        date: When it was begun.
        boards: Name to who it is.
        pose: Coordinate name to where the robot was held.
        steps: Step to results, in the order done.
        skipped: Steps that were left out, and why.
        hints: What to look at.
        saved: Whether the boards' flash has it.
        aborted: Why it ended early; empty if it did not.
        parameters: Board, parameter, values in wire units, at the end.
    """

    robot: str
    date: datetime
    boards: dict[str, dict[str, Any]] = field(default_factory=dict)
    pose: dict[str, float] = field(default_factory=dict)
    steps: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    saved: bool = False
    aborted: str = ""
    parameters: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def add_board(self, name: str, port: str, ident: Ident | None) -> None:
        """Note who a board is.

        Args:
            name: Name of the board in the robot's layout.
            port: Port that it is connected to.
            ident: Serial number and firmware; None if it did not say.
        """
        who = {"port": port}
        if ident is not None:
            who |= {"uid": ident.uid, "firmware": ident.firmware}
        self.boards[name] = who

    def add_step(self, step: str, results: Iterable[ChannelResult | MuscleCheck]) -> None:
        """Note what a step gave; a step done again replaces what was."""
        self.steps[step] = [_rounded(result.as_dict()) for result in results]
        self.skipped.pop(step, None)

    @property
    def problems(self) -> list[str]:
        """Return what is not as it should be, one line each."""
        return [
            f"{step}: {result['name']}: {result['problem']}"
            for step, results in self.steps.items()
            for result in results
            if result["problem"]
        ]

    @property
    def unchecked(self) -> list[str]:
        """Return the muscles whose direction the check was to tell, and did not."""
        return [row["name"] for row in self.steps.get("check", ()) if not row["checked"]]

    @property
    def ok(self) -> bool:
        """True if it ran to its end without a problem, and no direction was left unchecked."""
        return not self.aborted and not self.problems and not self.unchecked

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "robot": self.robot,
            "date": self.date.isoformat(timespec="seconds"),
            "ok": self.ok,
            "saved": self.saved,
            "aborted": self.aborted,
            "problems": self.problems,
            "unchecked": self.unchecked,
            "hints": self.hints,
            "boards": self.boards,
            "pose": {name: round(value, 6) for name, value in self.pose.items()},
            "steps": self.steps,
            "skipped": self.skipped,
            "parameters": self.parameters,
        }

    def write(self, file: Path) -> None:
        """Write it, as JSON or YAML by its ending.

        Raises:
            CardsError: It cannot be written, or ends on something else.
        """
        values = self.as_dict()
        if file.suffix == ".json":
            text = json.dumps(values, indent=2) + "\n"
        elif file.suffix in {".yaml", ".yml"}:
            text = yaml.safe_dump(values, sort_keys=False, width=100)
        else:
            raise CardsError(f"report {file} (expected: a name that ends on .yaml or .json)")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text)
        except OSError as error:
            raise CardsError(f"cannot write the report: {error}") from None


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers with seven digits: the rest is noise, and the file is read by people."""
    return {key: _short(value) for key, value in values.items()}


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None
