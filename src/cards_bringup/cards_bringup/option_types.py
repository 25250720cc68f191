"""Types of options with numbers: NaN, infinity and an empty text are refused.

An option with one number has a `Number` as its ``type``; texts with several numbers go through
`cards_bringup.vectors.vector`, and single numbers inside a text through `number_in`. A test
checks this for the options of all commands.
"""

from __future__ import annotations

import argparse
import math
import re


class Number:
    """Type of an option: a finite number within a range.

    Args:
        above: Exclusive lower end.
        at_least: Inclusive lower end.
        below: Exclusive upper end.
        at_most: Inclusive upper end.
        infinite: ``inf`` is accepted; only where the help says what it means.
    """

    def __init__(
        self,
        *,
        above: float = -math.inf,
        at_least: float = -math.inf,
        below: float = math.inf,
        at_most: float = math.inf,
        infinite: bool = False,
    ) -> None:
        self._above, self._at_least = above, at_least
        self._below, self._at_most = below, at_most
        self.infinite = infinite

    def __call__(self, text: str) -> float:
        """Read the text of an option. Raises `argparse.ArgumentTypeError`."""
        from cards_core.checks import finite_number
        from cards_core.errors import CardsError

        try:
            return finite_number(
                text,
                "it",
                above=self._above,
                at_least=self._at_least,
                below=self._below,
                at_most=self._at_most,
                infinite=self.infinite,
            )
        except CardsError as error:
            wanted = str(error).rpartition(" (expected: ")[2]
            raise argparse.ArgumentTypeError(f"'{text}' (expected: {wanted}") from None


class WholeNumber(Number):
    """Type of an option: a whole number within a range, in decimal digits.

    Args:
        at_least: Smallest that is accepted.
        at_most: Largest that is accepted, None if there is none.
    """

    def __init__(self, *, at_least: int = 0, at_most: int | None = None) -> None:
        super().__init__()
        self._least, self._most = at_least, at_most

    def __call__(self, text: str) -> int:
        """Read the text of an option. Raises `argparse.ArgumentTypeError`."""
        # int() takes 1_000 and the digits of all scripts too; more digits than it takes are no
        # number of anything
        if re.fullmatch(r"\s*[+-]?[0-9]{1,300}\s*", text):
            value = int(text)
            if value >= self._least and (self._most is None or value <= self._most):
                return value
        limits = f">= {self._least}" + ("" if self._most is None else f" and <= {self._most}")
        raise argparse.ArgumentTypeError(f"'{text}' (expected: a whole number {limits})")


POSITIVE = Number(above=0.0)
"""Type of times, lengths, tolerances."""

COUNT = WholeNumber(at_least=1)
"""Type of how many of something."""

SEED = WholeNumber(at_most=2**128 - 1)
"""Type of seeds of random numbers."""


def number_in(part: str, place: str, error: type[Exception]) -> float:
    """Read a number that is part of something.

    Args:
        part: What should be a number.
        place: The option, or file and line, with which the message begins.
        error: Class of the error.

    Returns:
        The number, finite.

    Raises:
        Exception: An error of the given class.
    """
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise error(f"{place} '{part}' (expected: a finite number)")
    return value
