"""What the symbolic model is asked for, and which robots it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.robot.model import WORLD_NODE, Node, Tree
from cards_core.typing import Array

Parameters = Literal["numbers", "symbols"]
Simplification = Literal["none", "trig", "full"]
Muscles = Literal["all", "straight", "none"]
Constants = Literal["decimal", "binary"]

Progress = Callable[[str, int, int], None]
"""Called with the name of a quantity, how many entries are done, and how many there are."""

SIZE_LIMIT = 80
"""Largest `predicted_size` that is taken without being told to."""


@dataclass(frozen=True)
class SymbolicOptions:
    """How a robot is written as expressions.

    Attributes:
        parameters: ``numbers``, or ``symbols`` for masses, inertias, lengths and points.
        simplification: ``none``: as derived; ``trig``: polynomials in sines and cosines in normal
            form, sums of parallel joints' angles; ``full``: SymPy's ``factor_terms`` and
            ``simplify`` in addition, kept where they shorten an entry.
        muscles: ``straight`` leaves out muscles with wraps and pulleys, ``none`` all.
        constants: ``decimal``: 0.1 is 1/10, as the file says; ``binary``: the float's exact value,
            with which other backends calculate.
        time_limit: After this time ``full`` leaves entries as ``trig`` has them, [s].
        size_limit: See `predicted_size`; infinite: take any robot.
        progress: Told what is being simplified.

    Raises:
        UnknownNameError: No such choice.
    """

    parameters: Parameters = "numbers"
    simplification: Simplification = "trig"
    muscles: Muscles = "all"
    constants: Constants = "decimal"
    time_limit: float = math.inf
    size_limit: float = SIZE_LIMIT
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_choice(self.parameters, "choice of parameters", get_args(Parameters))
        check_choice(self.simplification, "level of simplification", get_args(Simplification))
        check_choice(self.muscles, "choice of muscles", get_args(Muscles))
        check_choice(self.constants, "choice of constants", get_args(Constants))


def predicted_size(tree: Tree) -> float:
    """Return about how long the expressions of a robot become.

    Every joint multiplies the number of terms of what it moves: a prismatic joint, or a revolute
    one parallel to that before it, hardly at all; a revolute joint along an axis of its frame by
    some 1.6; one in a general direction, whose rotation has no zeros, by 2.5; ball joints by 4 and
    8. The factors were measured. The sum over the nodes counts every body with all that moves it.
    """
    return sum(math.prod(_growth(tree, k) for k in chain) for chain in tree.chains)


def _growth(tree: Tree, index: int) -> float:
    node = tree.nodes[index]
    if node.kind == "prismatic" or parallel_ancestor(tree, index) is not None:
        return 1.0
    aligned = _aligned(node.placement.rotation) and (node.kind == "ball" or _aligned(node.axis))
    if node.kind == "ball":
        return 4.0 if aligned else 8.0
    return 1.6 if aligned else 2.5


def _aligned(values: Array) -> bool:
    """Whether all entries are 0 or 1 in size."""
    sizes = np.abs(values)
    return bool(np.all(np.minimum(sizes, np.abs(sizes - 1.0)) < 1e-12))


def parallel_ancestor(tree: Tree, index: int) -> int | None:
    """Return the nearest revolute ancestor if its axis is parallel to that of a revolute node.

    Prismatic joints between the two do not matter; a ball joint does.
    """
    node: Node = tree.nodes[index]
    if node.kind != "revolute":
        return None
    axis = node.placement.rotation @ node.axis
    above = node.parent
    while above != WORLD_NODE:
        other = tree.nodes[above]
        if other.kind == "revolute":
            return above if abs(abs(float(other.axis @ axis)) - 1.0) < 1e-12 else None
        if other.kind == "ball":
            return None
        axis = other.placement.rotation @ axis
        above = other.parent
    return None


def check_size(tree: Tree, limit: float) -> None:
    """Refuse a robot whose expressions would become too long.

    Raises:
        CardsError: With the prediction and what can be done.
    """
    size = predicted_size(tree)
    if size > limit:
        raise CardsError(
            f"the equations of '{tree.robot.name}' ({tree.nv} degrees of freedom) would be too "
            f"long: predicted size {size:.0f}, limit {limit:g} (six revolute joints in a row: 42, "
            "with axes in general directions: 405). Use the compiled backend for numbers, or "
            "raise the limit (size_limit, on the command line --limit) and be patient"
        )
