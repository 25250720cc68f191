"""What a name in a description may be: it becomes a column, and part of the name of a file."""

from __future__ import annotations

LONGEST = 100
"""Characters of the longest accepted name; file names, with more in them, may have 255 bytes."""

EXPECTED = (
    f"1 to {LONGEST} printable characters, no / or \\, without a dot or blank at the beginning "
    "and at the end"
)

_SEPARATORS = "/\\"


def name_problem(name: str, longest: int = LONGEST) -> str | None:
    """Return what keeps ``name`` from being a name, in words; None if nothing does.

    A name that passes is one part of a path: joined to a folder it names something directly in
    that folder, which is neither hidden nor the folder itself.

    Args:
        name: Of a model, link, joint, frame, muscle, surface, node or board.
        longest: Most characters.
    """
    if not name:
        return "the name is empty"
    if len(name) > longest:
        return f"the name has {len(name)} characters"
    for character in name:
        if character in _SEPARATORS or not character.isprintable():
            return f"the name has the character {character!r}"
    if name[0] in ". " or name[-1] in ". ":
        where = "begins" if name[0] in ". " else "ends"
        return f"the name {where} with {(name[0] if where == 'begins' else name[-1])!r}"
    return None
