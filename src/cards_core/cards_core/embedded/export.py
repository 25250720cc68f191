"""What exported controllers have in common: their files, what is told of them, their texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.codegen.emit import Precision
from cards_core.control.model import ControlModel
from cards_core.dynamics.differences import geodesic_muscles
from cards_core.embedded import c_text
from cards_core.errors import CardsError
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.optimize.qp import QP_INFINITY
from cards_core.robot.elements import Muscle

NATIVE = Path(__file__).parent / "native"

DUE = NATIVE / "due.c"
"""When something is due."""

LAW = NATIVE / "law.c"
"""The muscles' impedance law; follows the parameters."""

PLAIN = (
    "Makefile",
    "CMakeLists.txt",
    "stm32f405_startup.c",
    "stm32f405.ld",
)
"""Files that are the same for all robots; two of them name the sources of the library."""

LIBRARY = ("controller.c", "model.c")
"""Sources of the library; not every controller has a model."""

FILES = (
    *PLAIN,
    *LIBRARY,
    "README.md",
    "controller.h",
    "curve.h",
    "main.c",
    "parameters.h",
)
"""All files that a controller may have."""


_NEEDS_NAN = """\
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "checks for numbers that are not finite need them: compile without -ffast-math"
#endif
"""


class NotExportableError(CardsError):
    """A controller has no form in C; the message is the reason."""


@dataclass(frozen=True)
class ControllerExport:
    """Files of a controller.

    Attributes:
        files: Name within the folder to text.
        report: What it is, JSON-ready: ``robot``, ``controller``, ``precision``, ``muscles``,
            ``bytes`` of all texts; of computed torque ``coordinates``, ``velocities``, ``motors``,
            ``task``, ``variables`` and ``equations`` of the program, ``operations`` of the model,
            ``curve``; of set-points ``period`` [s], ``pattern``, ``feedback``.
    """

    files: dict[str, str]
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Texts:
    """Texts of one kind of controller.

    Args:
        folder: With ``controller.h``, ``main.c``, ``README.md``, below `NATIVE`.
        report: What the controller is, see `ControllerExport`.
    """

    folder: str
    report: dict[str, Any]

    @property
    def head(self) -> str:
        """The first line of every file."""
        name = "{controller} of {robot}, {precision} precision".format(**self.report)
        return f"/* {comment(name)}; written by ./cards export controller. */\n"

    def path(self, name: str) -> Path:
        """Return where one of the texts of this kind is."""
        return NATIVE / self.folder / name

    def read(self, name: str) -> str:
        """Return one of the texts of this kind."""
        return self.path(name).read_text(encoding="utf-8")

    def header(self, sizes: Mapping[str, int], marks: Mapping[str, str]) -> str:
        """Return ``controller.h``.

        Args:
            sizes: Constants with the prefix ``CARDS_``.
            marks: What stands in the text between two ``@``, and what comes there.
        """
        precision: Precision = self.report["precision"]
        text = f"#define CARDS_ROBOT {c_text.quoted(self.report['robot'])}\n"
        text += f"#define CARDS_CONTROLLER {c_text.quoted(self.report['controller'])}\n"
        text += f"typedef {'float' if precision == 'single' else 'double'} cards_real;\n\n"
        text += "".join(c_text.define(f"CARDS_{name}", size) for name, size in sizes.items())
        return self.head + _filled(self.read("controller.h"), {"SIZES": text, **marks})

    def controller(self, sources: Sequence[Path], steps: Sequence[Path]) -> str:
        """Return ``controller.c``.

        Args:
            sources: Texts before the parameters.
            steps: Texts behind them.
        """
        single = "#define CARDS_SINGLE\n" if self.report["precision"] == "single" else ""
        before, after = (
            [file.read_text(encoding="utf-8") for file in files] for files in (sources, steps)
        )
        parts = [*before, '#include "parameters.h"\n', *after]
        return f'{self.head}{single}{_NEEDS_NAN}#include "controller.h"\n\n' + "\n".join(parts)

    def export(self, files: Mapping[str, str]) -> ControllerExport:
        """Return all files.

        Args:
            files: Those that depend on the robot.
        """
        library = " ".join(name for name in LIBRARY if name in files)
        plain = {
            name: _filled((NATIVE / name).read_text(encoding="utf-8"), {"LIBRARY": library})
            for name in PLAIN
        }
        marks = {
            name.upper(): ", ".join(value) if isinstance(value, list) else str(value)
            for name, value in self.report.items()
        }
        readme = _filled(self.read("README.md"), marks)
        every = {**plain, "main.c": self.read("main.c"), "README.md": readme, **files}
        report = {**self.report, "bytes": sum(len(text.encode()) for text in every.values())}
        return ControllerExport(dict(sorted(every.items())), report)


def check_muscles(model: ControlModel) -> None:
    """Refuse muscles that a model in C does not have.

    Args:
        model: Of the controller.

    Raises:
        NotExportableError: Muscles take no tension, or their paths are found by iteration.
    """
    robot = model.dynamics.robot
    if model.load is not None:
        raise NotExportableError(
            f"{robot.name} has muscles that take no tension: {', '.join(model.load.names)}; their "
            "forces are not in the C form (expected: muscles that are all commanded)"
        )
    indirect = geodesic_muscles(model.dynamics.tree)
    if len(indirect):
        named = ", ".join(robot.muscles[i].name for i in indirect)
        raise NotExportableError(
            f"muscles of {robot.name} wrap around surfaces without a closed form: {named}; their "
            "paths are found by iteration, which the C form does not have (expected: straight "
            "muscles, pulleys, cylinders or spheres)"
        )


def law_parameters(muscles: tuple[Muscle, ...]) -> str:
    """Return the constants that `LAW` reads.

    Args:
        muscles: That are under the law.
    """
    law = ImpedanceLaw(muscles)
    least, most = (
        np.clip([getattr(muscle, name) for muscle in muscles], -QP_INFINITY, QP_INFINITY)
        for name in ("tension_min", "tension_max")
    )
    text = "\n/* The muscles' law; stiffness [N/m], damping [N s/m], tensions [N]. */\n"
    for name, values in (
        ("stiffness", law.stiffness),
        ("damping", law.damping),
        ("tension_floor", law.tension_floor),
        ("tension_min", least),
        ("tension_max", most),
    ):
        text += c_text.array("cards_real", name, values)
    return text


def comment(text: str) -> str:
    """Return a name that cannot end a comment."""
    return text.replace("*/", "* /").replace("\n", " ")


def _filled(text: str, marks: Mapping[str, str]) -> str:
    # at once: what replaces a mark may look like another one
    return re.sub(r"@([A-Z_]+)@", lambda found: marks.get(found[1], found[0]), text)
