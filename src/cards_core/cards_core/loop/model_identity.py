"""Which model a node has, as data that can be sent and read; works without ROS.

The topic ``model`` carries `Announcement` objects as JSON. An identity holds all that a controller
and a simulator must have in common: names and their order, limits, gravity, and a hash of the
equations. Numbers survive JSON exactly, so equal means equal to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from cards_core import __version__
from cards_core.errors import CardsError
from cards_core.foreign_files import parse_json
from cards_core.paths.layout import robot_hash
from cards_core.robot.elements import Mesh, WrapSurface
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of

SCHEMA = 1
"""Number of the format of the messages; another one is not understood."""

Role = Literal["host", "controller", "compiler", "observer"]
ROLES: tuple[Role, ...] = get_args(Role)
"""host: moves the robot; controller: commands it; compiler: made native code of it; observer:
computes with its states."""

Limits = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ModelIdentity:
    """What two nodes must have in common. None stands for what a node does not know.

    Attributes:
        robot: Name; for people, it is not compared.
        hash: Of everything that M, C, G, l and L depend on.
        bodies_hash: Of links, joints and gravity alone.
        muscles_hash: Of these and the muscle paths.
        joint_names: Name of each coordinate, in the order of q.
        joint_limits: Lower and upper limit of each, [rad or m].
        muscle_names: In the order of the tension vector.
        muscle_types: Type of each muscle's actuator.
        tension_limits: Minimum and maximum tension of each muscle, [N].
        gravity: In world axes, [m/s^2].
        motor_names: Of the joint motors, in the order of the velocities.
        effort_limits: Maximum effort of each motor, [Nm] or [N], infinite without a limit.
        cards_version: Version of CARDS that read the model; not compared.
    """

    robot: str
    hash: str | None
    bodies_hash: str | None
    muscles_hash: str | None
    joint_names: tuple[str, ...]
    joint_limits: Limits | None
    muscle_names: tuple[str, ...]
    muscle_types: tuple[str, ...]
    tension_limits: Limits
    gravity: tuple[float, ...] | None
    motor_names: tuple[str, ...] | None = None
    effort_limits: tuple[float, ...] | None = None
    cards_version: str = field(default=__version__)


@dataclass(frozen=True)
class Announcement:
    """What a node says of its model.

    Attributes:
        node: Its full name, e.g. ``/left_arm/simulator``.
        instance: Tells two nodes of the same name apart.
        role: See `ROLES`.
        model: Its model.
        commands: Whether it sends commands now that were computed with this model.
        ready: Whether a host obeys commands now; the real robot does not until it is armed.
        period: From one state of a host to the next, [s]; None: it does not say.
    """

    node: str
    instance: str
    role: Role
    model: ModelIdentity
    commands: bool = False
    ready: bool = True
    period: float | None = None


def identity_of(robot: Robot, *, complete: bool = True) -> ModelIdentity:
    """Return the identity of a robot.

    Args:
        robot: As it was read, with all muscles, those that take no commands too.
        complete: False where its bodies and axes are placeholders; then only names, muscle types
            and tension limits are known.

    Raises:
        DescriptionError: The joints do not form a tree, or a muscle path is not possible.
    """
    robot = replace(robot, wrap_surfaces=tuple(map(_by_content, robot.wrap_surfaces)))
    tree = robot.tree
    frameless = replace(robot, frames=(), operational_frame=None)
    bare = replace(frameless, muscles=(), wrap_surfaces=())
    motors = motors_of(tree)
    limits = zip(tree.lower.tolist(), tree.upper.tolist(), strict=True)
    return ModelIdentity(
        robot=robot.name,
        hash=robot_hash(tree) if complete else None,
        bodies_hash=robot_hash(bare.tree) if complete else None,
        muscles_hash=robot_hash(frameless.tree) if complete else None,
        joint_names=tuple(tree.position_names),
        joint_limits=tuple(limits) if complete else None,
        muscle_names=tuple(muscle.name for muscle in robot.muscles),
        muscle_types=tuple(muscle.kind for muscle in robot.muscles),
        tension_limits=tuple((float(m.tension_min), float(m.tension_max)) for m in robot.muscles),
        gravity=tuple(robot.gravity.tolist()) if complete else None,
        motor_names=motors.names,
        effort_limits=tuple(motors.efforts.tolist()) if complete else None,
    )


def _by_content(surface: WrapSurface) -> WrapSurface:
    """Replace the path of a mesh by a hash of the file: each machine has it somewhere else."""
    if not isinstance(surface.geometry, Mesh):
        return surface
    try:
        digest = hashlib.sha256(Path(surface.geometry.uri).read_bytes()).hexdigest()
    except OSError:
        return surface
    return replace(surface, geometry=replace(surface.geometry, uri=f"sha256:{digest}"))


# JSON ----------------------------------------------------------------------------------------


def identity_json(model: ModelIdentity) -> dict[str, Any]:
    """Return an identity as what JSON can hold: an infinite limit becomes null."""

    def limits(pairs: Limits | None) -> list[list[float | None]] | None:
        if pairs is None:
            return None
        return [[x if math.isfinite(x) else None for x in pair] for pair in pairs]

    return {
        "robot": model.robot,
        "hash": model.hash,
        "bodies_hash": model.bodies_hash,
        "muscles_hash": model.muscles_hash,
        "joint_names": list(model.joint_names),
        "joint_limits": limits(model.joint_limits),
        "muscle_names": list(model.muscle_names),
        "muscle_types": list(model.muscle_types),
        "tension_limits": limits(model.tension_limits),
        "gravity": None if model.gravity is None else list(model.gravity),
        "motor_names": None if model.motor_names is None else list(model.motor_names),
        "effort_limits": (
            None
            if model.effort_limits is None
            else [x if math.isfinite(x) else None for x in model.effort_limits]
        ),
        "cards_version": model.cards_version,
    }


def encode(announcement: Announcement) -> str:
    """Return the JSON text of an announcement."""
    head = {
        "schema": SCHEMA,
        "node": announcement.node,
        "instance": announcement.instance,
        "role": announcement.role,
        "commands": announcement.commands,
        "ready": announcement.ready,
        "period": announcement.period,
    }
    return json.dumps({**head, **identity_json(announcement.model)}, allow_nan=False)


def decode(text: str) -> Announcement:
    """Read the JSON text of an announcement.

    Raises:
        CardsError: It is no JSON, or something is missing or of the wrong kind in it.
    """
    data = parse_json(text, "the message")
    if not isinstance(data, dict):
        raise CardsError(f"a JSON {type(data).__name__} (expected: an object)")
    if data.get("schema") != SCHEMA:
        raise CardsError(f"'schema' is {_short(data.get('schema'))} (expected: {SCHEMA})")
    role = _text(data, "role")
    if role not in ROLES:
        raise CardsError(f"'role' is '{role}' (expected: {', '.join(ROLES)})")
    if not isinstance(data.get("commands"), bool):
        raise _wrong(data, "commands", "true or false")
    ready = data.get("ready", True)  # nodes that do not say it always obey
    if not isinstance(ready, bool):
        raise _wrong(data, "ready", "true or false")
    period = data.get("period")
    if period is not None and not (_is_number(period) and period > 0.0):
        raise _wrong(data, "period", "a time > 0 in s, or null")
    return Announcement(
        _text(data, "node"),
        _text(data, "instance"),
        role,
        identity_from(data),
        data["commands"],
        ready,
        period,
    )


def identity_from(data: dict[str, Any]) -> ModelIdentity:
    """Read what `identity_json` made.

    Raises:
        CardsError: Something is missing or of the wrong kind.
    """
    joints, muscles = _names(data, "joint_names"), _names(data, "muscle_names")
    types = _names(data, "muscle_types")
    if len(types) != len(muscles):
        raise _wrong(data, "muscle_types", f"{len(muscles)} texts, one for each muscle")
    tension_limits = _limits(data, "tension_limits", len(muscles))
    # nodes that do not know of motors do not say anything of them
    motors = None if data.get("motor_names") is None else _names(data, "motor_names")
    gravity = data.get("gravity")
    if gravity is not None and not (
        isinstance(gravity, list) and len(gravity) == 3 and all(map(_is_number, gravity))
    ):
        raise _wrong(data, "gravity", "three numbers or null")
    return ModelIdentity(
        robot=_text(data, "robot"),
        hash=_hash(data, "hash"),
        bodies_hash=_hash(data, "bodies_hash"),
        muscles_hash=_hash(data, "muscles_hash"),
        joint_names=joints,
        joint_limits=(
            None
            if data.get("joint_limits") is None
            else _limits(data, "joint_limits", len(joints))
        ),
        muscle_names=muscles,
        muscle_types=types,
        tension_limits=tension_limits,
        gravity=None if gravity is None else tuple(float(x) for x in gravity),
        motor_names=motors,
        effort_limits=_efforts(data, 0 if motors is None else len(motors)),
        cards_version=_text(data, "cards_version"),
    )


def _wrong(data: dict[str, Any], key: str, expected: str) -> CardsError:
    found = _short(data[key]) if key in data else "missing"
    return CardsError(f"'{key}' is {found} (expected: {expected})")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(data: dict[str, Any], key: str) -> str:
    if not isinstance(data.get(key), str):
        raise _wrong(data, key, "a text")
    return str(data[key])


def _hash(data: dict[str, Any], key: str) -> str | None:
    return None if key in data and data[key] is None else _text(data, key)


def _names(data: dict[str, Any], key: str) -> tuple[str, ...]:
    names = data.get(key)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(data, key, "a list of texts")
    return tuple(names)


def _efforts(data: dict[str, Any], count: int) -> tuple[float, ...] | None:
    efforts = data.get("effort_limits")
    if efforts is None:
        return None
    if (
        not isinstance(efforts, list)
        or len(efforts) != count
        or not all(x is None or _is_number(x) for x in efforts)
    ):
        raise _wrong(data, "effort_limits", f"{count} numbers, null for no limit")
    return tuple(math.inf if x is None else float(x) for x in efforts)


def _limits(data: dict[str, Any], key: str, count: int) -> Limits:
    pairs = data.get(key)

    def is_pair(pair: Any) -> bool:
        return (
            isinstance(pair, list)
            and len(pair) == 2
            and all(x is None or _is_number(x) for x in pair)
        )

    if not isinstance(pairs, list) or len(pairs) != count or not all(map(is_pair, pairs)):
        raise _wrong(data, key, f"{count} pairs of numbers, null for no limit")
    return tuple(
        (
            -math.inf if lower is None else float(lower),
            math.inf if upper is None else float(upper),
        )
        for lower, upper in pairs
    )
