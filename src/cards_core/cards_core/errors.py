"""Exceptions of CARDS: one base class, narrow subclasses that build their own message.

Every message names the place, what was wrong and what would be right.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class CardsError(Exception):
    """Base of all errors that CARDS raises on purpose."""


class DescriptionError(CardsError):
    """A robot description (SDF, CASPR XML, YAML) that cannot be understood.

    Args:
        problem: What is wrong, in one sentence without a final period.
        source: File the text came from, or a name such as ``<string>``.
        line: Line number in that file, 1-based, if known.
        element: The element concerned, e.g. ``joint 'elbow'``.
        expected: What would be accepted.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        line: int | None = None,
        element: str | None = None,
        expected: str | None = None,
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.element = element
        self.expected = expected
        place = source or "<description>"
        if line is not None:
            place += f":{line}"
        message = f"{place}: "
        if element:
            message += f"{element}: "
        message += problem
        if expected:
            message += f" (expected: {expected})"
        super().__init__(_one_line(message))


class UnknownNameError(CardsError):
    """A name that does not exist; the message lists the names that do.

    Args:
        kind: What was looked up, e.g. ``link``.
        name: The name that was asked for.
        known: The names that exist.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        # whoever looks up a number by mistake is to read this message too
        close = get_close_matches(str(name), self.known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        super().__init__(
            f"no {kind} named '{name}'{hint} Known: {', '.join(self.known) or 'none'}"
        )

    @classmethod
    def of_type(cls, kind: str, value: object, known: Iterable[type]) -> "UnknownNameError":
        """Return the error for an object whose type is none of those known.

        Args:
            kind: What the types are, e.g. ``geometry``.
            value: The object.
            known: The types that are accepted.
        """
        return cls(kind, type(value).__name__, (item.__name__ for item in known))


class ShapeError(CardsError):
    """An array argument of the wrong shape, or with values that are not finite."""


class ParameterError(CardsError):
    """A parameter of a controller or node of the wrong type or size, or outside its range."""


class RodError(CardsError):
    """A rod, section, material or load that cannot exist; the message names the quantity."""


class CompilationError(CardsError):
    """The C compiler refused generated code, or the compiled model could not be loaded."""


def _one_line(text: str) -> str:
    """Return a text with what cannot be printed, a line break in a name say, as its escape."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
