"""Units of quantities that have one entry per coordinate: those that the robot's joints have."""

from __future__ import annotations

from cards_core.robot.model import Tree

UNITS = {"energy_error": "J"}
"""Of single numbers of a result."""


def column_units(unit: str, key: str, count: int, tree: Tree) -> list[str]:
    """Return the unit of every column.

    Args:
        unit: Of turning and of sliding joints, e.g. ``rad or m`` or ``Nm/rad, N/m``.
        key: The quantity; ``q`` has an entry per coordinate, others one per velocity.
        count: Number of columns.
        tree: Has the joints.

    Returns:
        A unit per column, empty for entries of a quaternion; an empty list where the unit is that
        of all columns already, or differs in a way that columns do not tell.
    """
    turning, either, sliding = unit.partition(" or ")
    if not either:
        turning, either, sliding = unit.partition(", ")
    if not either or not count:
        return []
    kinds = {node.kind == "prismatic" for node in tree.nodes}
    if len(kinds) == 1 and not (key == "q" and tree.nq != tree.nv):
        return [sliding if kinds == {True} else turning] * count
    if count != (tree.nq if key == "q" else tree.nv) or ", " in unit:
        return []
    out: list[str] = []
    for node in tree.nodes:
        if node.kind == "ball" and key == "q":
            out += [""] * 4
        else:
            out += [sliding if node.kind == "prismatic" else turning] * node.nv
    return out
