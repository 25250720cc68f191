"""Compare an imported robot with OpenSim itself, muscle by muscle, over the range of motion.

Needs a Python with the package ``opensim``, which is no dependency of CARDS. Each free
coordinate is swept over its range with the others at their defaults. Lengths and
moment arms are compared at every pose; fibres at rest and in equilibrium with the tendon, at the
smallest activation, at a half and at full activation, at every pose at which the fibre is longer
than OpenSim's lower limit and within the range of our curves.

Ours in equilibrium solves for the tendon's normalised length lt

    fT(lt) = (a fL(lm) + fP(lm)) cos,    l = l_opt lm cos + l_slack lt
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats.imports.model import ImportedModel, Section, table
from cards_core.formats.opensim.importer import (
    OpenSimImport,
    crossed_coordinates,
    our_coordinates,
)
from cards_core.formats.opensim.kinematics import free_coordinates, values
from cards_core.formats.opensim.wraps import coordinate_range
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.hill import LONGEST_FIBER, SHORTEST_FIBER, curves_of
from cards_core.robot.actuators import Hill, Ligament
from cards_core.typing import Array

SWEEP = 21
"""Poses of each coordinate's range."""

ACTIVATIONS = (0.01, 0.5, 1.0)
"""At which fibres are compared; the first shows the passive force."""

QUANTITIES = ("length", "moment_arm", "fiber_length", "active_force", "passive_force")
"""Errors that are measured: [m], [m] or 1, optimal fibre lengths, F0, F0 (ligaments: [N])."""

BISECTIONS = 50
"""Of the tendon's length, to 1e-15 of its range."""

LONGEST_RUN = 600.0
"""Seconds that OpenSim may take."""

LIMITS = {
    "length": 1e-6,
    "moment_arm": 1e-5,
    "fiber_length": 1e-4,
    "active_force": 1e-4,
    "passive_force": 1e-4,
}
"""Up to which an error counts as agreement."""


def fiber_equilibrium(
    hill: Hill, lengths: Array, activations: Array
) -> tuple[Array, Array, Array]:
    """Return fibre lengths [m], active and passive fibre forces [N] at rest, shape (n,).

    Args:
        hill: The muscle.
        lengths: Of the path, shape (n,), [m].
        activations: 0 to 1, shape (n,).
    """
    curves = curves_of(hill)
    strain = hill.tendon_strain or curves.strain
    stiffness = curves.tendon_stiffness(strain)
    width = np.sin(hill.pennation_angle)
    opt, slack = hill.optimal_fiber_length, hill.tendon_slack_length

    def fiber(lt: Array) -> tuple[Array, Array, Array, Array]:
        y = np.maximum((lengths - slack * lt) / opt, SHORTEST_FIBER)
        lm = np.hypot(y, width)
        return lm, y / lm, activations * curves.active(NUMPY, lm)[0], curves.passive(NUMPY, lm)[0]

    low = np.ones(len(lengths))
    high = np.maximum((lengths - opt * SHORTEST_FIBER) / slack, 1.0)
    for _ in range(0 if hill.rigid_tendon else BISECTIONS):
        lt = 0.5 * (low + high)
        _, cosine, force, passive = fiber(lt)
        short = curves.tendon(NUMPY, lt, strain, stiffness)[0] < (force + passive) * cosine
        low, high = np.where(short, lt, low), np.where(short, high, lt)
    lm, _, force, passive = fiber(low)
    return lm * opt, force * hill.max_isometric_force, passive * hill.max_isometric_force


@dataclasses.dataclass
class Worst:
    """Largest error of a quantity: relative to its scale, the two values, and the pose."""

    error: float = 0.0
    theirs: float = 0.0
    ours: float = 0.0
    where: str = ""

    def see(self, theirs: float, ours: float, scale: float, where: str) -> None:
        """Keep the values if their error is the largest so far.

        Args:
            theirs: OpenSim's value.
            ours: The same here.
            scale: What the error is divided by.
            where: The pose, in words.
        """
        error = abs(theirs - ours) / scale
        if not error <= self.error:
            self.error, self.theirs, self.ours, self.where = error, theirs, ours, where


def compared(
    found: OpenSimImport,
    python: str = sys.executable,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> ImportedModel:
    """Return the import with a section that compares it with OpenSim.

    Args:
        found: The import.
        python: A Python that has the package ``opensim``.
        progress: Is told what is being done, and how much of it is done, 0 to 1.

    Raises:
        CardsError: The package ``opensim`` is missing, or cannot load the model.
    """
    worst, skipped = measure(found, python, progress)
    data = {
        name: {
            quantity: {
                "error": item.error, "opensim": item.theirs, "cards": item.ours,
                "where": item.where, "agrees": item.error <= LIMITS[quantity],
            }
            for quantity, item in items.items()
        }
        for name, items in worst.items()
    }  # fmt: skip
    rows = [
        [f"`{name}`", *(_cell(quantity, items.get(quantity)) for quantity in QUANTITIES)]
        for name, items in worst.items()
    ]
    _warn(found, worst)
    agree = sum(all(i.error <= LIMITS[q] for q, i in items.items()) for items in worst.values())
    text = (
        f"{agree} of {len(worst)} muscles agree in everything: lengths to {LIMITS['length']:g} m, "
        f"moment arms to {LIMITS['moment_arm']:g} m, fibres to {LIMITS['fiber_length']:g} of the "
        f"optimal length and {LIMITS['active_force']:g} of F0. The largest errors, and where they "
        f"are if they are larger. Fibres at OpenSim's lower "
        f"limit, shorter than {SHORTEST_FIBER:g} or longer than {LONGEST_FIBER:g} optimal lengths "
        f"are left out: {skipped}.\n\n"
    )
    head = ["muscle", "length [m]", "moment arm [m]", "fibre length", "active", "passive"]
    section = Section("comparison", "Compared with OpenSim", data, text + table(head, rows))
    return dataclasses.replace(found.model, sections=(*found.model.sections, section))


def _cell(quantity: str, item: Worst | None) -> str:
    if item is None:
        return "-"
    text = f"{item.error:.1e}"
    return text if item.error <= LIMITS[quantity] else f"{text} ({item.where})"


def _warn(found: OpenSimImport, worst: Mapping[str, Mapping[str, Worst]]) -> None:
    """Name every muscle that differs, with its numbers."""
    for muscle in found.source.muscles:
        off = [
            f"{quantity.replace('_', ' ')} {item.error:.2g} at {item.where} (OpenSim "
            f"{item.theirs:.7g}, here {item.ours:.7g})"
            for quantity, item in worst[muscle.name].items()
            if item.error > LIMITS[quantity]
        ]
        if off:
            found.model.findings.warn(
                "differs-from-opensim", f"muscle '{muscle.name}'", "; ".join(off),
                at=muscle.element,
            )  # fmt: skip


def measure(
    found: OpenSimImport,
    python: str = sys.executable,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> tuple[dict[str, dict[str, Worst]], int]:
    """Return the worst errors by muscle and quantity, and how many fibres were left out.

    Args:
        found: The import.
        python: A Python that has the package ``opensim``.
        progress: Is told what is being done, and how much of it is done, 0 to 1.
    """
    robot = found.model.robot
    poses = _poses(found)
    progress("running OpenSim", 0.0)
    results = _theirs(found, [free for _, free in poses], python)
    dynamics = make_dynamics(robot)
    still = np.zeros(robot.tree.nv)
    columns = {name: i for i, name in enumerate(robot.tree.velocity_names)}
    rows = {muscle.name: i for i, muscle in enumerate(robot.muscles)}
    worst: dict[str, dict[str, Worst]] = {m.name: {} for m in found.source.muscles}
    fibers: dict[str, list[_Row]] = {m.name: [] for m in found.source.muscles}
    for index, ((where, free), result) in enumerate(zip(poses, results, strict=True)):
        progress("comparing with OpenSim", index / len(poses))
        q = values(found.source, free)
        state = dynamics.update(our_coordinates(robot, found.coordinates, q), still)
        lengths, jacobian = state.muscle_lengths.copy(), np.array(state.muscle_jacobian)
        for muscle in found.source.muscles:
            items = worst[muscle.name]
            row = rows[found.muscles[muscle.name]]
            actuator = robot.muscles[row].actuator
            ours = float(lengths[row])
            theirs = result[muscle.name]
            _see(items, "length", (theirs["length"], ours), where)
            for name, theirs_arm in theirs["arms"].items():
                item = found.coordinates.get(name)
                if item is not None and item.angle is None:
                    mine = -float(jacobian[row, columns[item.joint]]) * item.scale
                    about = f"{where}, about {name}"
                    _see(items, "moment_arm", (theirs_arm, mine), about)
            if "fibers" in theirs:
                for activation, numbers in zip(ACTIVATIONS, theirs["fibers"], strict=True):
                    at = f"{where}, activation {activation:g}"
                    fibers[muscle.name].append((at, theirs["length"], activation, numbers))
            elif isinstance(actuator, Ligament) and "tension" in theirs:
                force = _ligament(actuator, theirs["length"])
                _see(items, "passive_force", (theirs["tension"], force), where)
    skipped = 0
    for name, rows_ in fibers.items():
        actuator = robot.muscle(found.muscles[name]).actuator
        if isinstance(actuator, Hill) and rows_:
            skipped += _fibers(actuator, rows_, worst[name])
    return worst, skipped


def _see(
    items: dict[str, Worst], what: str, pair: tuple[float, float], where: str, scale: float = 1.0
) -> None:
    items.setdefault(what, Worst()).see(*pair, scale, where)


_Row: TypeAlias = tuple[str, float, float, "list[float] | None"]
"""Pose, length of the path [m], activation, OpenSim's fibre length [m], active, passive [N]."""


def _fibers(hill: Hill, rows: Sequence[_Row], items: dict[str, Worst]) -> int:
    """Compare fibres at OpenSim's length of the path: what the path is off by counts once."""
    opt, strongest = hill.optimal_fiber_length, hill.max_isometric_force
    shortest = np.hypot(SHORTEST_FIBER, np.sin(hill.pennation_angle)) * 1.0001
    kept = [
        row for row in rows if row[3] is not None and shortest <= row[3][0] / opt <= LONGEST_FIBER
    ]
    mine = fiber_equilibrium(
        hill, np.array([row[1] for row in kept]), np.array([row[2] for row in kept])
    )
    for (at, _, _, theirs), fiber, active, passive in zip(kept, *mine, strict=True):
        assert theirs is not None
        _see(items, "fiber_length", (theirs[0] / opt, float(fiber) / opt), at)
        _see(items, "active_force", (theirs[1], float(active)), at, strongest)
        _see(items, "passive_force", (theirs[2], float(passive)), at, strongest)
    return len(rows) - len(kept)


def _ligament(item: Ligament, length: float) -> float:
    strain = length / item.slack_length - 1.0
    if strain <= 0.0:
        return 0.0
    if strain < item.toe_strain:
        return 0.5 * item.stiffness * strain**2 / item.toe_strain
    return item.stiffness * (strain - 0.5 * item.toe_strain)


def _poses(found: OpenSimImport) -> list[tuple[str, Mapping[str, float]]]:
    out: list[tuple[str, Mapping[str, float]]] = [("default", {})]
    for name in free_coordinates(found.source):
        for q in np.linspace(*coordinate_range(found.source, name), SWEEP):
            out.append((f"{name} = {q:.4g}", {name: float(q)}))
    return out


def _theirs(
    found: OpenSimImport, poses: list[Mapping[str, float]], python: str
) -> list[dict[str, Any]]:
    """Return what OpenSim says, in a process of its own; see `opensim_side`."""
    source = found.source
    job = {
        "file": str(source.path.resolve()),
        "muscles": {muscle.name: muscle.kind for muscle in source.muscles},
        "crossed": {muscle.name: crossed_coordinates(source, muscle) for muscle in source.muscles},
        "poses": [
            (
                list(free),
                {
                    n: q
                    for n, q in values(source, free).items()
                    if not source.coordinates[n].locked
                },
            )
            for free in poses
        ],
        "activations": ACTIVATIONS,
    }
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "job.json", Path(folder) / "result.json"
        given.write_text(json.dumps(job), encoding="utf-8")
        script = str(Path(__file__).with_name("opensim_side.py"))
        try:
            done = subprocess.run(
                [python, script, str(given), str(made)],
                capture_output=True, cwd=folder, timeout=LONGEST_RUN, check=False,
            )  # fmt: skip
        except OSError as error:
            raise CardsError(f"--compare: {python} cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise CardsError(f"OpenSim took more than {LONGEST_RUN} s") from None
        if not made.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
            raise CardsError(f"OpenSim stopped with code {done.returncode}: {last[-1]}")
        result = json.loads(made.read_text(encoding="utf-8"))
    if "missing" in result:
        raise CardsError(
            f"--compare: {python} has no package 'opensim' ({result['missing']}); expected: a "
            "Python with it, --compare PYTHON (pip install opensim), or no --compare"
        )
    if "error" in result:
        raise CardsError(f"{source.path}: OpenSim refuses it: {result['error']}")
    out: list[dict[str, Any]] = result["poses"]
    return out
