"""What the plant process is told, as a JSON file: it is started by programs, not by hand."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from cards_core.errors import CardsError


@dataclass(frozen=True)
class BoardWiring:
    """A board and what is behind it.

    Attributes:
        name: Of the board.
        socket: Path of the unix socket at which the plant waits for it.
        muscles: Names, in the order of its channels.
        joints: Names of the joint coordinates that it measures.
    """

    name: str
    socket: str
    muscles: tuple[str, ...]
    joints: tuple[str, ...]


@dataclass(frozen=True)
class PlantSettings:
    """What to simulate, and where to leave it.

    Attributes:
        robot: Name of a folder in models/, or path of an SDF.
        boards: The first one's ticks are the time.
        status: Path of a small JSON file that says how far the plant is.
        log_dir: Folder for ``simulator.npz`` and ``hil.npz``; empty: no logs.
        duration: Logged time after the first command, [s]; 0: to the end.
        log_always: Log from the start on, not from the first command of a controller on.
        log_every: Only every so many ticks are logged.
        seed: Chance of manufacture and noise.
        strength: Of the muscle units, see `UnitDesign.scaled`.
        stand_time: How long after the first command the robot stays on its stand, [s].
        patience: Without a word from the first board for longer than this, time goes on without
            it, [s]. Shorter silence is the emulator's, whose machine has other things to do.
    """

    robot: str
    boards: tuple[BoardWiring, ...]
    status: str
    log_dir: str = ""
    duration: float = 0.0
    log_always: bool = False
    log_every: int = 1
    seed: int = 0
    strength: float = 1.0
    stand_time: float = 0.4
    patience: float = 0.1

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            CardsError: It cannot be read, or lacks something.
        """
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            boards = tuple(
                BoardWiring(
                    item["name"], item["socket"], tuple(item["muscles"]), tuple(item["joints"])
                )
                for item in data.pop("boards")
            )
            return cls(boards=boards, **data)
        except (OSError, ValueError, KeyError, TypeError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise CardsError(
                f"{path}: no settings of a plant ({error}) (expected: {known})"
            ) from error
