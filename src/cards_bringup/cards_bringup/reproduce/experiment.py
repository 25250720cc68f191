"""What an experiment is: what a paper claims, how it is measured here, and when both agree.

An experiment has one or more *runs*, which it compares (with and without a controller's feature,
or one robot after the other). `Experiment.perform` makes one run, which may take long, and leaves
its results in a folder. `Experiment.evaluate` makes values, tables and plots of all finished runs;
it is quick and repeated whenever a report is written. `judge` compares the values with the claims.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from matplotlib.figure import Figure

from cards_core.errors import CardsError
from cards_core.names import name_problem
from cards_core.typing import Array

VerdictName: TypeAlias = Literal["reproduced", "differs", "not reproduced"]
"""``differs``: outside the accepted band in a way that is known, with its reason."""

VERDICTS: tuple[VerdictName, ...] = ("reproduced", "differs", "not reproduced")
"""From best to worst."""

Setup: TypeAlias = Mapping[str, Any]
"""All that a run depends on, as data for JSON. ``robot`` is the name or path of a robot; the
content of its description counts as part of the set-up."""

Tell: TypeAlias = Callable[[float], None]
"""Told how much of a run is done, from 0 to 1."""

_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Band:
    """The range of values that is accepted, both ends included.

    Attributes:
        low: Minimum value.
        high: Maximum value.
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise CardsError(f"band from {self.low} to {self.high} (expected: low <= high)")

    @classmethod
    def at_most(cls, high: float) -> Band:
        """Return the band of all values up to one."""
        return cls(high=high)

    @classmethod
    def at_least(cls, low: float) -> Band:
        """Return the band of all values from one on."""
        return cls(low=low)

    @classmethod
    def around(cls, value: float, *, relative: float = 0.0, absolute: float = 0.0) -> Band:
        """Return the band ``|x - value| <= relative |value| + absolute``.

        Args:
            value: Middle of the band.
            relative: Half width as a share of ``|value|``, >= 0.
            absolute: Further half width, in the unit of ``value``, >= 0.
        """
        half = relative * abs(value) + absolute
        return cls(value - half, value + half)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low == self.high:
            return number(self.low)
        if self.low == -math.inf:
            return "any" if self.high == math.inf else f"<= {number(self.high)}"
        if self.high == math.inf:
            return f">= {number(self.low)}"
        return f"{number(self.low)} to {number(self.high)}"


@dataclass(frozen=True)
class Difference:
    """A known difference from the paper.

    Attributes:
        reason: Why our value is another one, in a sentence.
        band: Where it is then; a value outside is not reproduced.
    """

    reason: str
    band: Band


@dataclass(frozen=True)
class Claim:
    """One published result.

    Attributes:
        value: Key of our value in `Outcome.values`.
        text: What is claimed, e.g. ``maximum error of joint 1``.
        source: Figure, table or section of the paper, or how the value follows from its data.
        band: Accepted values.
        unit: Of our value and the published one.
        published: The published value; None where there is only a statement.
        statement: What the paper states, where it states no number.
        why: Why this band.
        difference: What is known to differ.
    """

    value: str
    text: str
    source: str
    band: Band
    unit: str = ""
    published: float | None = None
    statement: str = ""
    why: str = ""
    difference: Difference | None = None

    def __post_init__(self) -> None:
        if (self.published is None) == (not self.statement):
            raise CardsError(
                f"claim '{self.value}' has {'both' if self.statement else 'neither'} (expected: a "
                "published value or a statement)"
            )

    @property
    def published_text(self) -> str:
        """What was published, with its unit."""
        if self.published is None:
            return self.statement
        return with_unit(self.published, self.unit)


@dataclass(frozen=True)
class Judgement:
    """A claim and our value.

    Attributes:
        claim: The claim.
        value: Ours.
        verdict: Whether the value agrees with the claim.
    """

    claim: Claim
    value: float
    verdict: VerdictName

    @property
    def reason(self) -> str:
        """Why it differs; empty unless it does."""
        known = self.claim.difference
        return known.reason if known is not None and self.verdict == "differs" else ""


@dataclass(frozen=True)
class Plot:
    """A figure of a report.

    Attributes:
        figure: The figure.
        caption: What is to be seen, and what it corresponds to in the paper.
    """

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes:
        values: By `Claim.value`; more than the claims ask for are allowed.
        tables: Name of a table to its columns, by name with unit, of equal length.
        plots: Name to plot, in the order of the report.
    """

    values: Mapping[str, float]
    tables: Mapping[str, Mapping[str, Array | Sequence[Any]]] = field(default_factory=dict)
    plots: Mapping[str, Plot] = field(default_factory=dict)


@dataclass(frozen=True)
class FinishedRun:
    """A run that was made, now or earlier.

    Attributes:
        name: Of the run.
        setup: Its set-up.
        folder: What it left.
        numbers: What `Experiment.perform` returned.
    """

    name: str
    setup: Setup
    folder: Path
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        key: Short name, the first part of the keys of its experiments.
        title: What it is about.
        reference: Key in docs/references.md, without brackets.
    """

    key: str
    title: str
    reference: str


def nothing_missing() -> str:
    """Return an empty text."""
    return ""


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper, and how it is repeated.

    Attributes:
        paper: The paper.
        name: Second part of the key.
        title: What it shows, in a few words.
        setup: What all runs have in common.
        claims: The published results.
        perform: Makes a run: ``perform(setup, folder, tell)`` writes files into an empty folder
            and returns numbers or texts for JSON.
        evaluate: Makes values, tables and plots of all runs, by name, in the order of `runs`.
        runs: Name of each run to what it changes in the set-up; nested mappings are merged.
        notes: How our set-up departs from the published one, a sentence each.
        quick: What ``--quick`` changes in the set-up of all runs: fewer or shorter ones.
        missing: Says what an experiment needs that is not here, for which it is skipped; an empty
            text: nothing.

    Raises:
        CardsError: A name cannot be that of a folder, or two claims are about the same value.
    """

    paper: Paper
    name: str
    title: str
    setup: Setup
    claims: tuple[Claim, ...]
    perform: Callable[[Setup, Path, Tell], Mapping[str, Any]]
    evaluate: Callable[[Mapping[str, FinishedRun]], Outcome]
    runs: Mapping[str, Setup] = field(default_factory=lambda: {"run": {}})
    notes: tuple[str, ...] = ()
    quick: Setup = field(default_factory=dict)
    missing: Callable[[], str] = nothing_missing

    def __post_init__(self) -> None:
        for part in (self.paper.key, self.name):
            if not _KEY.fullmatch(part):
                raise CardsError(f"experiment '{self.key}' (expected: letters, digits, _ and -)")
        for name in self.runs:
            if problem := name_problem(name):
                raise CardsError(f"run '{name}' of {self.key}: {problem}")
        values = [claim.value for claim in self.claims]
        if not values or not self.runs:
            raise CardsError(f"{self.key} has no claims or no runs (expected: at least one)")
        if twice := sorted({value for value in values if values.count(value) > 1}):
            raise CardsError(f"{self.key} has two claims about {', '.join(twice)} (expected: one)")

    @property
    def key(self) -> str:
        """Paper and experiment, e.g. ``000.A``."""
        return f"{self.paper.key}.{self.name}"

    def shortened(self) -> Experiment:
        """Return the experiment that ``--quick`` runs; the same where there is none."""
        return replace(self, setup=_merged(self.setup, self.quick))

    def setup_of(self, run: str) -> dict[str, Any]:
        """Return the set-up of one run."""
        return _merged(self.setup, self.runs[run])


def _merged(base: Setup, changes: Setup) -> dict[str, Any]:
    out = dict(base)
    for name, value in changes.items():
        old = out.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            value = _merged(old, value)  # noqa: PLW2901
        out[name] = value
    return out


def judge(claims: Iterable[Claim], values: Mapping[str, float]) -> list[Judgement]:
    """Hold values to claims.

    A value in the claim's band is ``reproduced``, one in the band of its known difference
    ``differs``, any other one, and NaN, ``not reproduced``.

    Args:
        claims: What was published.
        values: Ours, by `Claim.value`.

    Raises:
        CardsError: There is no value for a claim.
    """
    out = []
    for claim in claims:
        if claim.value not in values:
            raise CardsError(
                f"there is no value '{claim.value}' (expected: a value for every claim)"
            )
        value = float(values[claim.value])
        verdict: VerdictName = "not reproduced"
        if value in claim.band:
            verdict = "reproduced"
        elif claim.difference is not None and value in claim.difference.band:
            verdict = "differs"
        out.append(Judgement(claim, value, verdict))
    return out


def worst(verdicts: Iterable[VerdictName]) -> VerdictName:
    """Return the worst of some verdicts; ``reproduced`` for none."""
    return max(verdicts, key=VERDICTS.index, default="reproduced")


def number(value: float) -> str:
    """Return a number with four digits, without an exponent where it can be read without."""
    text = f"{value:.4g}"
    return f"{value:,.0f}" if "e" in text and 1.0 <= abs(value) < 1e9 else text


def with_unit(value: float, unit: str) -> str:
    """Return a number with its unit."""
    return f"{number(value)} {unit}".rstrip()
