"""What is not the same in two models, in words; works without ROS."""

from __future__ import annotations

from collections.abc import Sequence

from cards_core.loop.model_identity import Limits, ModelIdentity

_SHOWN = 3  # entries of a long list that are named


def differences(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    """Return what is not the same in two models, in words; empty if they are the same.

    Names of robots and versions of CARDS do not count, nor does what one side does not know.

    Args:
        own: The model "here".
        other: The model "there".
    """
    found = []
    if own.joint_names != other.joint_names:
        found.append(_name_difference("joints", own.joint_names, other.joint_names))
    elif None not in (own.joint_limits, other.joint_limits):
        pairs = (own.joint_limits or (), other.joint_limits or ())
        found += _limit_difference("joint limits", own.joint_names, *pairs)
    if own.muscle_names != other.muscle_names:
        found.append(_name_difference("muscles", own.muscle_names, other.muscle_names))
    else:
        found += _entries(
            "muscle types",
            [
                f"{name} {mine} here, {theirs} there"
                for name, mine, theirs in zip(
                    own.muscle_names, own.muscle_types, other.muscle_types, strict=True
                )
                if mine != theirs
            ],
        )
        found += _limit_difference(
            "tension limits [N]", own.muscle_names, own.tension_limits, other.tension_limits
        )
    found += _motor_difference(own, other)
    if None not in (own.gravity, other.gravity) and own.gravity != other.gravity:
        found.append(f"gravity: {_vector(own.gravity)} here, {_vector(other.gravity)} there")
    return found + _equation_difference(own, other)


def _motor_difference(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    if own.motor_names is None or other.motor_names is None:
        return []
    if own.motor_names != other.motor_names:
        return [_name_difference("joint motors", own.motor_names, other.motor_names)]
    if own.effort_limits is None or other.effort_limits is None:
        return []
    return _limit_difference(
        "effort limits [Nm or N]",
        own.motor_names,
        tuple((-x, x) for x in own.effort_limits),
        tuple((-x, x) for x in other.effort_limits),
    )


def _equation_difference(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    if None in (own.hash, other.hash) or own.hash == other.hash:
        return []
    if own.bodies_hash != other.bodies_hash:
        part = "masses, inertias or placements of links and joints"
    elif own.muscles_hash != other.muscles_hash:
        part = "muscle paths"
    else:
        part = "named frames"
    text = f"equations ({part}): hash {own.hash} here, {other.hash} there"
    if own.cards_version != other.cards_version:
        text += f", of CARDS {own.cards_version} here, {other.cards_version} there"
    return [text]


def _name_difference(what: str, own: Sequence[str], other: Sequence[str]) -> str:
    here = [name for name in own if name not in other]
    there = [name for name in other if name not in own]
    parts = [
        f"{_listed(names)} only {place}"
        for names, place in ((here, "here"), (there, "there"))
        if names
    ]
    return f"{what}: {'; '.join(parts) or 'in another order'}"


def _limit_difference(what: str, names: Sequence[str], own: Limits, other: Limits) -> list[str]:
    return _entries(
        what,
        [
            f"{name} {_range(mine)} here, {_range(theirs)} there"
            for name, mine, theirs in zip(names, own, other, strict=True)
            if mine != theirs
        ],
    )


def _entries(what: str, entries: Sequence[str]) -> list[str]:
    return [f"{what}: {_listed(entries, '; ')}"] if entries else []


def _listed(items: Sequence[str], separator: str = ", ") -> str:
    rest = len(items) - _SHOWN
    return separator.join(items[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _range(pair: tuple[float, float]) -> str:
    # as many digits as tell the two sides apart
    return f"{pair[0]!r} .. {pair[1]!r}"


def _vector(values: tuple[float, ...] | None) -> str:
    return "(" + ", ".join(f"{x:.12g}" for x in values or ()) + ")"
