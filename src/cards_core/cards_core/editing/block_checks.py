"""Whether the reader would take an edited block; drafts of muscles, and names that are free."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable
from dataclasses import replace

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.sdf.elements import add_muscle, add_wrap_surface
from cards_core.formats.sdf.muscle_block import MODULE, parse_muscle_block
from cards_core.formats.sdf.muscle_text import EditedBlock
from cards_core.names import EXPECTED, name_problem
from cards_core.robot.elements import Muscle, Wrap


def is_draft(muscle: Muscle) -> bool:
    """Return whether a muscle is none yet: fewer than two points, or a wrap at an end."""
    path = muscle.path
    points = sum(not isinstance(item, Wrap) for item in path)
    return points < 2 or isinstance(path[0], Wrap) or isinstance(path[-1], Wrap)


def drafts(block: EditedBlock) -> list[str]:
    """Return the names of the muscles that are none yet."""
    return [e.muscle.name for e in block.muscles if is_draft(e.muscle)]


def without_drafts(block: EditedBlock) -> EditedBlock:
    """Return a block without the muscles that are none yet."""
    kept = tuple(e for e in block.muscles if not is_draft(e.muscle))
    return block if len(kept) == len(block.muscles) else replace(block, muscles=kept)


def check_new_name(kind: str, name: str, taken: Iterable[str]) -> None:
    """Check a name that something is to have.

    Args:
        kind: What it is a name of, for messages.
        name: The name.
        taken: Names that others have.

    Raises:
        CardsError: It is none (`cards_core.names`), or taken.
    """
    if problem := name_problem(name):
        raise CardsError(f"{kind} '{name}': {problem} (expected: {EXPECTED})")
    if name in set(taken):
        raise CardsError(f"there is a {kind} '{name}' already (expected: another name)")


def check_block(
    block: EditedBlock, links: Collection[str], before: EditedBlock | None = None
) -> None:
    """Check muscles and surfaces by the rules of the reader; drafts are passed over.

    Args:
        block: To be checked.
        links: Names of the robot's links.
        before: A block that is known to be right: what both have is not checked again.

    Raises:
        DescriptionError: The message names muscle or surface, what is wrong and what would be
            right.
    """
    known = set() if before is None else {id(e.muscle) for e in before.muscles}
    surfaces = [edited.surface for edited in block.surfaces]
    same = before is not None and [e.surface for e in before.surfaces] == surfaces
    changed = [e.muscle for e in block.muscles if not (same and id(e.muscle) in known)]
    if same and not changed:
        return
    plugin = ET.Element("plugin")
    ET.SubElement(plugin, "module_name").text = MODULE
    for surface in surfaces:
        add_wrap_surface(plugin, surface, None)
    for muscle in changed:
        if not is_draft(muscle):
            add_muscle(plugin, muscle)
    text = ET.tostring(plugin, encoding="unicode")
    try:
        parse_muscle_block(text, links=links)
    except DescriptionError as error:
        # lines of this text mean nothing to anybody
        raise EditError(error.problem, element=error.element, expected=error.expected) from None


class EditError(CardsError):
    """An edit that the reader would refuse.

    Args:
        problem: What would be wrong.
        element: Where, e.g. ``<wrap> of muscle 'biceps'``.
        expected: What would be right.
    """

    def __init__(self, problem: str, *, element: str | None, expected: str | None) -> None:
        place = "" if element is None else f"{element}: "
        super().__init__(f"{place}{problem}" + (f" (expected: {expected})" if expected else ""))
