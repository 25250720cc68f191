"""Equality constraints: a locked joint is fixed here, all others are named."""

from __future__ import annotations

import mujoco

from cards_sim.mjcf.names import SCALAR_JOINTS, Names

_EQ = mujoco.mjtEq


def locked_joints(names: Names) -> dict[int, float]:
    """Return the joints that a constraint holds at a place, and that place.

    Every other active constraint is a warning: a description has a tree of joints, without loops
    and couplings.

    Args:
        names: Of the model; gets the warnings.

    Returns:
        Joint to its coordinate, [rad] or [m].
    """
    model = names.compiled.model
    locked: dict[int, float] = {}
    for index in range(model.neq):
        kind = _EQ(int(model.eq_type[index]))
        if not model.eq_active0[index]:
            names.note("constraint", "equality", index, "not active, left out")
            continue
        first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
        if kind != _EQ.mjEQ_JOINT:
            text = kind.name.removeprefix("mjEQ_").lower()
            names.warn("constraint", "equality", index, f"constraint '{text}' left out")
            continue
        if second < 0 and model.jnt_type[first] in SCALAR_JOINTS and first not in locked:
            reference = float(model.qpos0[model.jnt_qposadr[first]])
            locked[first] = reference + float(model.eq_data[index, 0])
            names.note(
                "locked",
                "equality",
                index,
                f"holds {names.label('joint', first)} at {locked[first]:g}: it is no joint here",
            )
            continue
        pair = names.label("joint", first)
        if second >= 0:
            pair += f" and {names.label('joint', second)}"
        names.warn(
            "coupling", "equality", index, f"coupling of {pair} left out: they move freely here"
        )
    return locked
