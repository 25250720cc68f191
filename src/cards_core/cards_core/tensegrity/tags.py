"""Tags of nodes, pairs and parts, and searches for them.

Tags are words in one text, ``"outer cable"``. A search is a text, too: every word must be
among the tags (``outer cable``), ``a|b`` asks for one of several, ``-a`` for the absence of one.
Plain words are NASA's; the signs are ours.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


def split_tags(text: str) -> tuple[str, ...]:
    """Return the words of a text, each once, in their order."""
    return tuple(dict.fromkeys(text.split()))


@dataclass(frozen=True)
class TagSearch:
    """What a builder looks for.

    Attributes:
        text: As it was written.
        wanted: Groups of tags; of each group one must be there.
        unwanted: Tags none of which may be there.
    """

    text: str
    wanted: tuple[tuple[str, ...], ...]
    unwanted: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TagSearch:
        """Read a search.

        Raises:
            ValueError: The text has no word, or a sign without one; the message says what.
        """
        wanted, unwanted = [], []
        for word in text.split():
            parts = word.removeprefix("-").split("|")
            if not all(parts) or (word.startswith("-") and len(parts) > 1):
                raise ValueError(f"'{word}' is no part of a search for tags")
            if word.startswith("-"):
                unwanted.append(parts[0])
            else:
                wanted.append(tuple(parts))
        if not wanted and not unwanted:
            raise ValueError("it has no tag")
        return cls(text, tuple(wanted), tuple(unwanted))

    def matches(self, tags: Collection[str], inherited: Collection[str] = ()) -> bool:
        """Tell whether something is found.

        Args:
            tags: Its own tags.
            inherited: Tags of the part that it is in, which count as its own. NASA removes them
                from the search, which is the same.
        """
        known = {*tags, *inherited}
        return all(known.intersection(group) for group in self.wanted) and not (
            known.intersection(self.unwanted)
        )
