"""Which numbers of a pattern generator are learnt, and within which ranges.

Every number has a place u in 0 .. 1 of its range, ``value = low + u (high - low)``; a search moves
in the unit cube of all of them. Couplings that are equal by structure are one number
(`cards_core.control.cpg.morphology`); otherwise every pair of muscles that share a body has its
own weight and phase, for both directions. Parts that are not learnt stay as they are in a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cards_core.control.cpg.morphology import places
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Feedback, OpenLoop
from cards_core.control.cpg.parameters import (
    FEEDBACK_INPUTS,
    FEEDBACK_OUTPUTS,
    GOAL_INPUTS,
    PatternParameters,
)
from cards_core.errors import ParameterError
from cards_core.robot.elements import Muscle
from cards_core.typing import Array

OSCILLATORS = {"open_loop": OpenLoop, "feedback": Feedback}

OSCILLATOR_NAMES = {
    "open_loop": ("frequency", "amplitude", "frequency_gain", "amplitude_gain", "convergence"),
    "feedback": (
        *("frequency", "amplitude", "frequency_gain", "amplitude_gain", "phase_gain"),
        "convergence",
    ),
}

PARTS = ("oscillators", "tension", "couplings", "feedback", "goal")
"""What may be learnt of a pattern."""

PHASE = (-math.pi, math.pi)

Range = tuple[float, float]
"""Lowest and highest value; a fixed value twice."""


@dataclass(frozen=True)
class Gene:
    """A number that is learnt.

    Attributes:
        name: In tables.
        low, high: Its range.
        first: Range of its random first values, within the former.
        replaced: A mutation of a child replaces it where defects of [NTRT]_ are asked for: it is
            a weight from a hidden to an output neuron.
    """

    name: str
    low: float
    high: float
    first: Range
    replaced: bool = False


@dataclass(frozen=True)
class ParameterSpace:
    """All patterns that a search may find.

    Attributes:
        kind: ``open_loop`` or ``feedback``.
        ranges: Of every parameter: those of the oscillators by name, ``coupling_weight``,
            ``coupling_phase``, ``tension``, ``joint_tension``, ``goal_tension``,
            ``feedback_weight``, ``goal_weight``.
        rate_scale: See `PatternParameters`.
        per_joint: Muscles at a joint; 0: the robot has no equal joints, and `edges` counts.
        edges: Pairs of muscles that share a body, by name.
        feedback_hidden, goal_hidden: Hidden neurons of the networks; 0: there is none.
        goal_frame: Of the goal network's inputs, a key of `GOAL_INPUTS`.
        learnt: Some of `PARTS`.
        kept: Pattern that has the other parts; None: everything is learnt.
    """

    kind: str
    ranges: Mapping[str, Range]
    rate_scale: float
    per_joint: int = 0
    edges: tuple[tuple[str, str], ...] = ()
    feedback_hidden: int = 0
    goal_hidden: int = 0
    goal_frame: str = "world"
    learnt: tuple[str, ...] = PARTS
    kept: PatternParameters | None = field(default=None, compare=False)  # it holds arrays

    @cached_property
    def genes(self) -> tuple[Gene, ...]:
        """What is learnt; the order is that of a point."""
        found: list[Gene] = []
        single = {
            "oscillators": OSCILLATOR_NAMES[self.kind],
            "tension": ("tension",),
            "goal": ("goal_tension",),
        }
        for part, names in single.items():
            for name in names if part in self.learnt else ():
                self._append(found, name, name)
        for i in range(self.per_joint) if "tension" in self.learnt else ():
            self._append(found, f"joint_tension[{i}]", "joint_tension")
        for i in range(self._pairs) if "couplings" in self.learnt else ():
            self._append(found, f"coupling[{i}].weight", "coupling_weight")
            self._append(found, f"coupling[{i}].phase", "coupling_phase")
        for network, inputs, hidden, outputs in self._networks():
            if network not in self.learnt:
                continue
            for layer, rows, columns in (
                ("hidden", hidden, inputs),
                ("output", outputs, hidden),
            ):
                for row in range(rows):
                    for column in range(columns + 1):
                        self._append(
                            found,
                            f"{network}.{layer}[{row}][{column}]",
                            f"{network}_weight",
                            largest=1.0 / math.sqrt(columns),
                            replaced=layer == "output",
                        )
        return tuple(found)

    def _append(
        self,
        found: list[Gene],
        name: str,
        parameter: str,
        *,
        largest: float = math.inf,
        replaced: bool = False,
    ) -> None:
        low, high = self.ranges.get(parameter, (0.0, 0.0))
        if low < high:
            first = (max(low, -largest), min(high, largest))
            found.append(
                Gene(name, low, high, first if first[0] < first[1] else (low, high), replaced)
            )

    def _networks(self) -> list[tuple[str, int, int, int]]:
        sizes = [
            ("feedback", FEEDBACK_INPUTS, self.feedback_hidden, FEEDBACK_OUTPUTS),
            ("goal", GOAL_INPUTS[self.goal_frame], self.goal_hidden, self.per_joint),
        ]
        return [size for size in sizes if size[2]]

    @property
    def _pairs(self) -> int:
        return len(places(self.per_joint)) if self.per_joint else len(self.edges)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the genes."""
        return tuple(gene.name for gene in self.genes)

    @cached_property
    def low(self) -> Array:
        """Lowest values, shape (d,)."""
        return np.array([gene.low for gene in self.genes])

    @cached_property
    def span(self) -> Array:
        """Widths of the ranges, shape (d,)."""
        return np.array([gene.high - gene.low for gene in self.genes])

    def random(self, generator: np.random.Generator) -> Array:
        """Return a random point of the unit cube, shape (d,)."""
        first = np.array([gene.first for gene in self.genes])
        values = generator.uniform(first[:, 0], first[:, 1])
        out: Array = (values - self.low) / self.span
        return out

    def values(self, point: Array) -> Array:
        """Return the values of a point of the unit cube, shape (d,)."""
        out: Array = self.low + np.clip(point, 0.0, 1.0) * self.span
        return out

    def pattern(self, values: Array) -> PatternParameters:
        """Return the pattern generator of values, shape (d,).

        Raises:
            ParameterError: Another number of values.
        """
        if np.shape(values) != (len(self.genes),):
            raise ParameterError(
                f"{np.size(values)} values of a pattern (expected: {len(self.genes)})"
            )
        given = {} if self.kept is None else self._numbers(self.kept)
        given |= zip(self.names, np.asarray(values, dtype=float).tolist(), strict=True)

        def value(name: str, parameter: str = "") -> float:
            low, high = self.ranges.get(parameter or name, (0.0, 0.0))
            fixed = low == high and (parameter or name) in self.ranges
            return low if fixed else given.get(name, low)

        kind: Any = OSCILLATORS[self.kind]
        oscillators = kind(
            **{n: value(n) for n in OSCILLATOR_NAMES[self.kind] if n in self.ranges or n in given}
        )
        pairs = np.array(
            [
                (
                    value(f"coupling[{i}].weight", "coupling_weight"),
                    value(f"coupling[{i}].phase", "coupling_phase"),
                )
                for i in range(self._pairs)
            ]
        ).reshape(-1, 2)
        networks: dict[str, Network] = {}
        for network, inputs, hidden, outputs in self._networks():
            layers = [
                np.array(
                    [
                        [
                            value(f"{network}.{layer}[{row}][{column}]", f"{network}_weight")
                            for column in range(columns + 1)
                        ]
                        for row in range(rows)
                    ]
                )
                for layer, rows, columns in (
                    ("hidden", hidden, inputs),
                    ("output", outputs, hidden),
                )
            ]
            networks[network] = Network(*layers)
        joint = tuple(value(f"joint_tension[{i}]", "joint_tension") for i in range(self.per_joint))
        both = self.edges if not self.per_joint else ()
        return PatternParameters(
            oscillators,
            self.rate_scale if self.kept is None else self.kept.rate_scale,
            np.repeat(pairs, 2, axis=0) if both else pairs,
            per_joint=self.per_joint,
            truncate=self.kept is not None and self.kept.truncate,
            edges=tuple(edge for a, b in both for edge in ((a, b), (b, a))),
            feedback=networks.get("feedback"),
            goal=networks.get("goal"),
            goal_tension=value("goal_tension") if "goal" in networks else 0.0,
            tension=value("tension"),
            joint_tensions=joint if any(joint) else (),
        )

    def point(self, pattern: PatternParameters) -> Array:
        """Return the point of a pattern, shape (d,); values outside of a range go to its end.

        A network that the pattern has not has weights of zero: F = 0, or T0 = g everywhere.

        Raises:
            ParameterError: The pattern has other oscillators, couplings or networks, or a network
                for which there is no place.
        """
        found = self._numbers(pattern)
        values = np.array([found[name] for name in self.names])
        out: Array = np.clip((values - self.low) / self.span, 0.0, 1.0)
        return out

    def _numbers(self, pattern: PatternParameters) -> dict[str, float]:
        """Return all numbers of a pattern by the names of genes; see `point`."""
        if not isinstance(pattern.oscillators, OSCILLATORS[self.kind]):
            raise ParameterError(f"its oscillators are not of the kind {self.kind}")
        shape = (2 * self._pairs if self.edges and not self.per_joint else self._pairs, 2)
        if pattern.per_joint != self.per_joint or pattern.couplings.shape != shape:
            raise ParameterError(
                f"it has {len(pattern.couplings)} couplings and {pattern.per_joint} muscles at a "
                f"joint (expected: {shape[0]} and {self.per_joint})"
            )
        found: dict[str, float] = {
            "tension": pattern.tension,
            "goal_tension": pattern.goal_tension,
        }
        for name in OSCILLATOR_NAMES[self.kind]:
            found[name] = getattr(pattern.oscillators, name)
        joint = pattern.joint_tensions or (0.0,) * self.per_joint
        found |= {f"joint_tension[{i}]": tension for i, tension in enumerate(joint)}
        pairs = pattern.couplings[:: 2 if self.edges and not self.per_joint else 1]
        for i, (weight, phase) in enumerate(pairs.tolist()):
            found[f"coupling[{i}].weight"] = weight
            found[f"coupling[{i}].phase"] = phase
        networks = self._networks()
        for network, key in (("feedback", "hidden"), ("goal", "goal_hidden")):
            if getattr(pattern, network) is not None and network not in {n for n, *_ in networks}:
                size = len(getattr(pattern, network).hidden)
                raise ParameterError(
                    f"it has a {network} network, which would be lost (expected: '{key}: {size}', "
                    "or a pattern without one)"
                )
        for network, inputs, hidden, outputs in networks:
            made: Network | None = getattr(pattern, network)
            if made is None:
                made = Network(np.zeros((hidden, inputs + 1)), np.zeros((outputs, hidden + 1)))
            if (made.inputs, len(made.hidden)) != (inputs, hidden):
                raise ParameterError(
                    f"its {network} network has {made.inputs} inputs and {len(made.hidden)} "
                    f"hidden neurons (expected: {inputs} inputs and {hidden} hidden neurons)"
                )
            for layer in ("hidden", "output"):
                for (row, column), weight in np.ndenumerate(getattr(made, layer)):
                    found[f"{network}.{layer}[{row}][{column}]"] = float(weight)
        return found


def shared_bodies(muscles: Sequence[Muscle]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of muscles that share a body, by name, each once."""
    return tuple(
        (a.name, b.name)
        for i, a in enumerate(muscles)
        for b in muscles[i + 1 :]
        if set(a.end_links) & set(b.end_links)
    )
