"""Learned pattern generators of NASA's toolkit: ``.json``, and folders of ``.nnw`` files.

Learned values are between 0 and 1 and stand for a range that the program knew, not the file; the
ranges of the published programs are here. Units are cm and cN; the order of couplings is that of
`morphology.places`, from the end of the list; phases span a full turn. Weights of networks come
row by row, a row per input, the last row for the constant -1, and y is up.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.checks import shown
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.control.cpg.parameters import GOAL_INPUTS, PatternParameters
from cards_core.errors import CardsError, DescriptionError
from cards_core.foreign_files import parse_json, read_text
from cards_core.typing import Array

CENTIMETRE, CENTINEWTON = 0.01, 0.01

MAX_BYTES = 10_000_000
"""Longest file that is read; those of the toolkit have some ten thousand."""

COMMAND = 2.0
"""The descending command, fixed in the toolkit."""


@dataclass(frozen=True)
class Ranges:
    """What learned values from 0 to 1 stand for.

    Attributes:
        frequency: omega with feedback, [rad/s]; else a third of v, [Hz].
        amplitude: R with feedback, [cm^2/s^2]; else a third of it, [cm/s].
        frequency_gain, amplitude_gain, phase_gain: k_omega, k_r, k_theta.
        impedance: Of T0, K, B and the tension of the goal, [cN] and as in the toolkit.
    """

    frequency: tuple[float, float] = (0.0, 30.0)
    amplitude: tuple[float, float] = (0.0, 300.0)
    frequency_gain: tuple[float, float] = (-0.5, 10.0)
    amplitude_gain: tuple[float, float] = (0.0, 200.0)
    phase_gain: tuple[float, float] = (-0.5, 6.28)
    impedance: tuple[float, float] = (0.0, 2000.0)


OPEN_LOOP = Ranges(amplitude=(0.0, 30.0))
"""Of the tetraspine and the ribbed and octahedral spines."""

OPEN_LOOP_SIGNED = Ranges(frequency=(-30.0, 30.0), amplitude=(-30.0, 30.0))
"""Of the tetrahedral complex of twelve segments."""


def read_json(path: str | Path, ranges: Ranges | None = None) -> PatternParameters:
    """Read a learned set with its networks, whose files are in its folder or below.

    Args:
        path: The ``.json`` file.
        ranges: None: those of the published programs.

    Raises:
        DescriptionError: It cannot be read, or a value is missing or does not fit.
    """
    path = Path(path)
    data = parse_json(read_text(path, most=MAX_BYTES), str(path))
    try:
        return _of_json(data, path, ranges)
    except DescriptionError:
        raise
    except CardsError as error:
        raise DescriptionError(str(error), source=str(path)) from None


def _of_json(data: Any, path: Path, ranges: Ranges | None) -> PatternParameters:
    node = _rows(data, "nodeVals", path)
    if node.shape[0] != 1 or node.shape[1] not in (2, 5):
        raise _error(path, f"nodeVals.params of shape {node.shape}", "one row of 2 or 5")
    edges = _rows(data, "edgeVals", path)
    closed = node.shape[1] == 5
    ranges = ranges or (Ranges() if closed else OPEN_LOOP)
    goal = _network(data, "goalVals", path) if "goalVals" in data else None
    feedback = _network(data, "feedbackVals", path) if closed else None
    if feedback is not None and goal is None:
        feedback = _of_halved_inputs(feedback)
    tension = goal_tension = 0.0
    if "impedenceVals" in data:  # spelt so
        values = _scaled(_rows(data, "impedenceVals", path)[0], [ranges.impedance] * 4, path)
        tension, goal_tension = CENTINEWTON * values[0], CENTINEWTON * values[3]
    if goal is not None:
        if goal.inputs != GOAL_INPUTS["world"]:
            problem = f"goalVals.params.numStates is {goal.inputs}"
            raise _error(path, problem, str(GOAL_INPUTS["world"]))
        # y is up in the toolkit, z here: its z is our -y
        flip = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        goal = Network(goal.hidden * flip, goal.output)
        tension = 0.0  # the goal replaces it
    found = _oscillating(node[0], edges, ranges, path)
    return dataclasses.replace(
        found, feedback=feedback, goal=goal, goal_tension=goal_tension, tension=tension
    )


def read_folder(folder: str | Path, name: str, ranges: Ranges | None = None) -> PatternParameters:
    """Read a learned set of the open loop, ``NAME_node-0.nnw`` and ``NAME_edge-0.nnw`` ...

    Args:
        folder: Where the files are.
        name: How they begin, e.g. ``bestParameters-default``.
        ranges: None: `OPEN_LOOP`.

    Raises:
        DescriptionError: A file is missing or holds no pair of numbers.
    """
    folder = Path(folder)
    node = _numbers(folder / f"{name}_node-0.nnw")
    edges: list[Array] = []
    while (file := folder / f"{name}_edge-{len(edges)}.nnw").is_file():
        edges.append(_numbers(file, size=2))
    if not edges:
        raise _error(folder, f"no file {name}_edge-0.nnw", "one file per coupling")
    return _oscillating(node, np.array(edges), ranges or OPEN_LOOP, folder)


def _oscillating(node: Array, edges: Array, ranges: Ranges, path: Path) -> PatternParameters:
    """Return the oscillators and their couplings, without networks."""
    if edges.shape[1] != 2:
        raise _error(path, f"couplings of {edges.shape[1]} learned values", "weight and phase, 2")
    oscillators: OpenLoop | Feedback
    if node.size == 5:
        spans = [
            *(ranges.frequency, ranges.amplitude, ranges.frequency_gain),
            *(ranges.amplitude_gain, ranges.phase_gain),
        ]
        oscillators = Feedback(*_scaled(node, spans, path))
    else:
        frequency, amplitude = _scaled(node, [ranges.frequency, ranges.amplitude], path)
        whole = 1.0 + COMMAND
        oscillators = OpenLoop(whole * frequency, whole * amplitude)
    couplings = edges[::-1].copy()
    couplings[:, 1] = 2.0 * math.pi * couplings[:, 1] - math.pi
    return PatternParameters(
        oscillators,
        CENTIMETRE,
        couplings,
        per_joint=_per_joint(len(edges), path),
        truncate=True,
    )


def _per_joint(count: int, path: Path) -> int:
    m = (math.isqrt(1 + 24 * count) - 1) // 6
    if m < 1 or m * (3 * m + 1) // 2 != count:
        wanted = "m(3m + 1)/2 of them: 2, 7, 15, 26, 40, 57, 77, 100 ..."
        raise _error(path, f"{count} couplings", wanted)
    return m


def _scaled(values: Array, spans: Sequence[tuple[float, float]], path: Path) -> list[float]:
    if values.size != len(spans):
        raise _error(path, f"{values.size} learned values", f"{len(spans)}")
    return [low + float(v) * (high - low) for v, (low, high) in zip(values, spans, strict=True)]


def _rows(data: Any, key: str, path: Path) -> Array:
    try:
        rows = np.array(data[key]["params"], dtype=float)
        if rows.ndim == 2 and rows.size and np.isfinite(rows).all():
            return rows
        found = shown(data[key]["params"])
    except (KeyError, TypeError, ValueError, IndexError):
        found = "missing"
    raise _error(path, f"{key}.params is {found}", "a list of rows of finite numbers")


def _network(data: Any, key: str, path: Path) -> Network:
    try:
        section: Mapping[str, Any] = data[key]["params"]
        sizes = [section[name] for name in ("numStates", "numHidden", "numActions")]
        name = section["neuralFilename"]
    except (KeyError, TypeError, IndexError):
        wanted = "numStates, numHidden, numActions and neuralFilename"
        raise _error(path, f"{key}.params is not complete", wanted) from None
    if not all(isinstance(size, int) and 0 < size < 1000 for size in sizes):
        raise _error(path, f"{key}.params has the sizes {shown(sizes)}", "whole numbers > 0")
    i, h, o = sizes
    file = _beside(path, name, f"{key}.params.neuralFilename")
    weights = _numbers(file, size=(i + 1) * h + (h + 1) * o)
    first = (i + 1) * h
    return Network(weights[:first].reshape(i + 1, h).T, weights[first:].reshape(h + 1, o).T)


def _of_halved_inputs(network: Network) -> Network:
    """Return the network that gives of x what a given one gives of x/2 + 1/2.

    The program without a goal maps lengths and tensions so, that with a goal does not.
    """
    hidden = network.hidden.copy()
    hidden[:, :-1] *= 0.5
    hidden[:, -1] -= hidden[:, :-1].sum(axis=1)
    return Network(hidden, network.output)


def _beside(path: Path, name: Any, what: str) -> Path:
    """Return a file that a learned set names; it is in the folder of the set or below."""
    expected = "a file in the folder of this one, or below it"
    if not isinstance(name, str) or not name:
        raise _error(path, f"{what} is {shown(name)}", expected)
    file = path.parent / name
    try:
        inside = file.resolve().is_relative_to(path.parent.resolve())
        regular = file.is_file()
    except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
        inside = regular = False
    if not inside:
        raise _error(path, f"{what} {shown(name)} is outside of this folder", expected)
    if not regular:
        raise _error(path, f"{what} {shown(name)} is no file", expected)
    return file


def _numbers(path: Path, size: int | None = None) -> Array:
    expected = "numbers with commas between"
    words = read_text(path, expected, most=MAX_BYTES).strip().split(",")
    try:
        values = np.array([float(word) for word in words])
    except ValueError:  # not its text: the file may not be what it should be
        raise _error(path, "does not hold numbers", expected) from None
    if not np.isfinite(values).all() or (size is not None and values.size != size):
        wanted = "finite numbers" if size is None else f"{size} finite numbers"
        raise _error(path, f"holds {values.size} numbers", wanted)
    return values


def _error(path: Path, problem: str, expected: str) -> DescriptionError:
    return DescriptionError(problem, source=str(path), expected=expected)
